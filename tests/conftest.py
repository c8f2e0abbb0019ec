"""One thread a process, and the tier of tests that are slow or ask for something large."""

import gc
import os
import shutil
import signal
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest

from metfa.allocator import keep_freed_memory

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when NumPy and torch are loaded; two processes share two cores
os.environ.setdefault("RAY_worker_niceness", "0")  # else a test waits for workers that other processes starve
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # shap's masks take longer to compile than to use

# jsonschema loads rfc3987_syntax where JupyterLab has brought it, which reads a grammar for two seconds; and each
# process of Ray and of a notebook loads jsonschema.
NOT_LOADED = Path(__file__).with_name("not_loaded")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(NOT_LOADED), os.environ.get("PYTHONPATH"))))
sys.path.insert(0, str(NOT_LOADED))

# Who asks for one of these fixtures needs what the mark says. `make check` leaves all marks out, see CONTRIBUTING.md.
MARK_OF_FIXTURE = {
    "biased": "slow",
    "browser": "browser",
    "bucket_options": "s3",
    "cluster": "ray",
    "relu_resnet": "weights",
}
MEASURED = Path(__file__).with_name("slow_tests.txt")  # written by `make slow-tests`, never by hand
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SLOW = 0.15  # seconds of the processor; such tests are one in eight
seconds = Counter()
PROCESSOR = pytest.StashKey[float]()
keep_freed_memory()  # else each pass through a network takes its pages anew


def pytest_addoption(parser):
    parser.addoption("--record-slow", action="store_true", help=f"write the tests above {SLOW} s to {MEASURED.name}")


def pytest_collection_modifyitems(items):
    slow = set(MEASURED.read_text().splitlines())
    for item in items:
        for fixture in MARK_OF_FIXTURE.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARK_OF_FIXTURE[fixture])
        if item.nodeid in slow:
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Loads all without the garbage collector, which would look through torch again and again: half of the time.

    What is loaded stays, and the tests' own collections need not look through it either.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Says what each phase took of the processor, children included: a busy machine makes no test slow."""
    report = yield
    now = sum(os.times()[:4])
    report.processor = now - item.session.stash.get(PROCESSOR, now)
    item.session.stash[PROCESSOR] = now
    return report


def pytest_runtest_logreport(report):
    seconds[report.nodeid] += getattr(report, "processor", 0.0)  # the report of a process that died has none


def pytest_sessionfinish(session):
    if session.config.getoption("--record-slow") and not hasattr(session.config, "workerinput"):
        MEASURED.write_text("".join(f"{test}\n" for test in sorted(seconds) if seconds[test] > SLOW))


@pytest.fixture
def interrupts_heard():
    """Ctrl-C raises, also in a run in the background, for which a shell ignores it; and no garbage is collected.

    Python loses an interrupt that comes in a callback of what is collected: one in some thousands.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    if before is not None:  # a handler that is not Python's
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def quick_figures(monkeypatch, request):
    """Figures are made, but without layout and with few pixels, and empty unless a test asks for `whole_figures`.

    Layout and drawing take most of the time of a command.
    """
    from matplotlib.figure import Figure

    whole = Figure.savefig

    def savefig(figure, *arguments, **settings):
        figure.set_layout_engine("none")
        if "whole_figures" not in request.fixturenames:
            for part in (*figure.subfigs, *figure.axes, *figure.legends, *figure.texts):
                part.set_visible(False)
        whole(figure, *arguments, **{**settings, "dpi": 60})

    monkeypatch.setattr(Figure, "savefig", savefig)


@pytest.fixture
def whole_figures():
    """The files of figures show what is in them, see `quick_figures`."""


@pytest.fixture(scope="session")
def path_of_browser():
    path = next((found for found in map(shutil.which, BROWSERS) if found), None)
    if path is None:
        pytest.skip(f"no browser found ({', '.join(BROWSERS)}): install Chromium to run these tests")
    return path


@pytest.fixture(scope="session")
def browser(path_of_browser):
    from playwright.sync_api import sync_playwright

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with sync_playwright() as playwright:
            running = playwright.chromium.launch(executable_path=path_of_browser, args=["--no-sandbox"])
            yield running
            running.close()
