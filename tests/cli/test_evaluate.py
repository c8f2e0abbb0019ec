"""``metfa evaluate``: from a file to tables, again without work, after failures and interruptions."""

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from metfa._base.own_files import begins_with
from metfa.cli.drawing import MARK_OF_FIGURES

METFA = Path(sys.executable).with_name("metfa")
STUDY = """
    [study]
    n_samples = 6
    n_outer = 2
    [model]
    name = "tiny:model"
    [data]
    inputs = "pictures"
    [explainers]
    gradient = "gradient"
    own = "tiny:slow"
    [sampling]
    normal = "gaussian:0.1"
    [outer]
    uniform = "uniform:0.1"
    [metrics]
    mstd = {}
    faithfulness = {steps = 4}
"""


def save(path, seed):
    path.parent.mkdir(exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (60, 80, 3), dtype=np.uint8)).save(path, format="PNG")


@pytest.fixture
def folder(tmp_path):
    """A study of two pictures."""
    (tmp_path / "study.toml").write_text(STUDY)
    for seed, name in enumerate(("a.png", "b.png")):
        save(tmp_path / "pictures" / name, seed)
    return tmp_path


@pytest.fixture
def evaluate(metfa_command, tiny, folder):
    def run(*arguments, allowed=True):
        allow = ["--allow-import"] if allowed else []
        return metfa_command("evaluate", "study.toml", "--store", "store", *allow, *arguments)

    return run


def files(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def tables_of(text):
    """The tables of a Markdown file, each with its title."""
    ends = [0, *(match.end() for match in re.finditer(r"^(?:\||- ).*\n(?=\n(?!- ))", text, re.MULTILINE)), len(text)]
    return [text[start:end].removeprefix("\n") for start, end in itertools.pairwise(ends)]


@pytest.mark.slow
def test_tables_and_a_second_call_that_measures_nothing(evaluate, folder):
    first = evaluate("--out", "tables")
    assert first.code == 0
    assert "0 of 4 units are in the store" in first.err
    assert "4 units: " in first.err
    assert re.search(r"^measuring what a unit costs \.\.\.\n.* explanations, ", first.err, re.MULTILINE)
    assert "100%" in first.err
    written = (folder / "tables" / "tables.md").read_text()
    assert first.out == "".join(f"\n{text}\n" for text in tables_of(written)) + "tables: tables\n"
    assert "(2 inputs)" in written
    kept = files(folder / "store")
    assert len(kept) == 4
    second = evaluate("--out", "again")
    assert second.code == 0
    assert "4 of 4 units are in the store" in second.err
    assert "explanations" not in second.err
    assert files(folder / "store") == kept
    for name in ("rows.csv", "tables.md", "tables.tex", "table-1.csv", "table-2.csv", "table-3.csv"):
        assert (folder / "again" / name).read_bytes() == (folder / "tables" / name).read_bytes()


@pytest.mark.slow
def test_differences_to_an_explainer(evaluate, folder):
    done = evaluate("--against", "gradient", "--correction", "bonferroni", "--out", "tables", "--figure", "d.png")
    assert done.code == 0, done.err
    written = (folder / "tables" / "differences.md").read_text()
    assert "faithfulness minus that of gradient (2 inputs)" in written
    assert "corrected by bonferroni over " in written
    assert "too few inputs, at least " in written
    shown = (folder / "tables" / "tables.md").read_text()
    assert done.out == "".join(f"\n{text}\n" for text in [*tables_of(shown), *tables_of(written)]) + (
        "tables: tables\nfigure: d.png\n"
    )
    assert begins_with(folder / "d.png", MARK_OF_FIGURES)
    with Image.open(folder / "d.png") as picture:
        assert picture.size[0] > 600
    plain = evaluate("--against", "vanilla")
    assert plain.code == 0
    assert "mstd minus that of the vanilla map" in plain.out
    assert "corrected by holm over " in plain.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "gradent"], "`against` must be an explainer (gradient, own), a map (vanilla, mean), another "),
        (["--correction", "bh"], "`--correction` is of differences: give `--against`"),
        (["--figure", "d.png"], "`--figure` is of differences: give `--against`"),
        (["--against", "own", "--correction", "e-bh"], "`correction` 'e-bh' is for sampling that may stop at any time"),
        (["--against", "own", "--figure", "d.pdf"], "`--figure` must be a new .png file in a folder that exists"),
        (["--against", "own", "--figure", "no/d.png"], "`--figure` must be a new .png file in a folder that exists"),
        (["--against", "own", "--figure", "old.png"], "old.png exists already: give another `--figure`"),
        (["--against", "own", "--figure", "old.png", "--overwrite"], "`overwrite` replaces what an earlier call wrote"),
    ],
)
def test_differences_that_are_refused_before_the_work(evaluate, folder, arguments, message):
    (folder / "old.png").write_bytes(b"")
    done = evaluate(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1].startswith(f"error: {message}")
    assert not (folder / "store").exists()


def test_an_estimate_measures_nothing(evaluate, folder):
    done = evaluate("--estimate")
    assert done.code == 0
    assert "4 units: " in done.err
    assert " forward and " in done.err
    assert done.out == ""
    assert not (folder / "store").exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("always::metfa._base.warnings.FailedUnitsWarning")
def test_a_unit_that_fails_gives_code_1_and_the_others_their_tables(evaluate, folder):
    (folder / "pictures" / "a.png").write_bytes(b"no picture")
    done = evaluate("--out", "tables")
    assert done.code == 1
    assert "failed: a.png, gradient: ValueError: " in done.err
    assert "warning: 2 of 4 units failed, the first with ValueError: " in done.err
    assert "a.png cannot be read as an image" in done.err
    assert "failed: " not in done.out
    assert "(1 of 2 missing)" in done.out
    assert (folder / "tables" / "failures.json").exists()
    save(folder / "pictures" / "a.png", 0)
    mended = evaluate("--out", "mended")
    assert mended.code == 0
    assert "2 of 4 units are in the store" in mended.err
    assert not (folder / "mended" / "failures.json").exists()


def test_an_existing_folder_is_refused_before_the_work(evaluate, folder):
    (folder / "tables").mkdir()
    assert evaluate("--out", "tables").error == "error: tables exists already: give another `--out`, or --overwrite"
    assert not (folder / "store").exists()


@pytest.mark.slow
def test_a_finished_run_can_be_repeated(evaluate, folder):
    assert evaluate("--out", "tables").code == 0
    again = evaluate("--out", "tables")
    assert (again.code, "4 of 4 units are in the store" in again.err) == (0, True)


def test_a_store_in_memory_is_refused(evaluate):
    done = evaluate("--store", "memory://x")
    assert done.code == 2
    assert "`--store` 'memory://x' is this process's memory, which keeps nothing" in done.error


def test_code_is_refused(evaluate, folder):
    sys.modules.pop("tiny", None)
    error = evaluate(allowed=False).error
    assert error == "error: the study names 'tiny:model', and importing it runs its code: allow it by --allow-import"
    assert "tiny" not in sys.modules
    assert not (folder / "store").exists()


def test_downloads_are_refused(evaluate, folder):
    (folder / "study.toml").write_text(STUDY.replace("tiny:model", "timm:resnet18"))
    assert "allow it by --allow-download" in evaluate().error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--executor", "rey"], "`executor` must be one of 'local', 'ray', got 'rey', did you mean 'ray'?"),
        (["--workers", "2"], "`workers` is 2, but `executor='local'` has one: write executor='ray'"),
        (["--store", "ftp://host/x"], "`store` must be a folder or a URL of "),
        (["--store", "study.toml"], "`store` must be a folder, but study.toml is a file"),
    ],
)
def test_a_mistake_is_one_line(evaluate, folder, arguments, message):
    done = evaluate(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1].startswith(f"error: {message}")
    assert not (folder / "store").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n_outer", "n_outter", "[study] has no entry 'n_outter', did you mean 'n_outer'?"),
        ("pictures", "nowhere", "nowhere"),
        ("tiny:model", "tiny:broken", "out of order in two lines"),
        ("tiny:model", "tiny:nothing", "tiny"),
        ("n_samples = 6", "n_samples = 5", "6"),
        ("n_outer = 2", 'device = "cuda:99"', "`device` 'cuda:99' is not available: "),
        ("n_outer = 2", 'device = "nonsense"', "`device` 'nonsense' is not available: "),
        ("[study]", "[study", "study.toml is not a TOML file"),
    ],
)
def test_a_study_that_does_not_serve_is_one_line(evaluate, folder, old, new, message):
    (folder / "study.toml").write_text(STUDY.replace(old, new))
    done = evaluate()
    assert done.code == 2
    assert done.out == ""
    assert message in done.err.splitlines()[-1]
    assert done.err.splitlines()[-1].startswith("error: ")


def test_no_such_study(metfa_command):
    assert metfa_command("evaluate", "nothing.toml", "--store", "x").error == "error: no such study: nothing.toml"


@pytest.mark.slow
def test_an_interrupted_run_goes_on(evaluate, folder, tiny, interrupts_heard):
    """A process of its own, interrupted by SIGINT while it measures its first unit by the method that waits."""
    waits = folder / "waits"
    environment = {**os.environ, "PYTHONPATH": str(tiny), "METFA_TEST_WAITS": str(waits), "OMP_NUM_THREADS": "1"}
    command = [METFA, "evaluate", "study.toml", "--store", "store", "--allow-import", "--out", "tables"]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not waits.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "interrupted: the units so far are kept; repeat the command to resume"
    assert "Traceback" not in err
    assert out == ""
    assert len(files(folder / "store")) == 1
    resumed = evaluate("--out", "tables")
    assert resumed.code == 0
    assert "1 of 4 units are in the store" in resumed.err
    assert evaluate("--store", "whole", "--out", "whole-tables").code == 0
    for path in (folder / "tables").iterdir():
        assert path.read_bytes() == (folder / "whole-tables" / path.name).read_bytes()
