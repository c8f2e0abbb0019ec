"""The explorer as people meet it: in JupyterLab and in marimo, each with a server of its own, seen by Chromium."""

import re
import time

import pytest

from .notebooks import LONG, cell_of, draw_a_box, jupyterlab, serving

pytestmark = [pytest.mark.slow, pytest.mark.browser]
pytest.importorskip("anywidget")

MADE = """
import time
from functools import partial
import numpy as np, metfa
y, x = np.mgrid[:24, :32]
images = (np.exp(-((y - 10) ** 2 + (x - 15) ** 2) / 40) * np.ones((1, 3, 1, 1))) + 0.1
def explainer(inputs, target):
    time.sleep(0.01 * len(inputs))
    return np.abs(inputs.mean(1))
again = partial(metfa.explain, explainer, images, 0, noise=metfa.noise.Uniform(0.3), rng=0)
sample = again(n_samples=20)
"""
SAID = 'f"NOW {explorer.sample.n_samples} {explorer.threshold.round(3)} {explorer.alpha} {explorer.regions}"'


@pytest.fixture
def page(browser):
    shown = browser.new_page(viewport={"width": 1300, "height": 1000})
    shown.set_default_timeout(LONG)
    yield shown
    shown.close()


def slide(frame, selector, step):
    frame.locator(selector).evaluate(
        "(one, step) => { one.value = Number(one.value) + step;"
        " one.dispatchEvent(new Event('input', { bubbles: true })) }",
        step,
    )


def ask_for(frame, number):
    frame.fill(".samples input", str(number))
    frame.click(".samples .start")


def with_samples(page, number):
    """The page once it shows so many samples, or more where `number` ends with "+"."""
    until = time.monotonic() + LONG / 1000
    while True:
        title = cell_of(page).inner_text(".samples strong")
        there = int(re.match(r"[\d,]+", title)[0].replace(",", ""))
        if there == number or (isinstance(number, str) and there > int(number[:-1])):
            return cell_of(page)
        assert time.monotonic() < until, title
        page.wait_for_timeout(200)


def shown_state(text):
    found = re.findall(r"NOW (\d+) \[([\d.]+)\] ([\d.]+) (None|Regions\(1 region, mean\))", text)
    n, threshold, alpha, regions = found[-1]
    return int(n), float(threshold), float(alpha), regions != "None"


def fits(frame):
    """Nothing is cut off or scrolls inside of the cell, and the frame is no taller than its page."""
    return frame.evaluate(
        "() => { const { height } = document.body.getBoundingClientRect();"
        " return document.documentElement.scrollWidth <= innerWidth && Math.abs(innerHeight - height) < 3 }"
    )


def drawn_and_moved(page, frame, state):
    """The threshold of a page that fits and shows what Python has, before a box was drawn and the threshold moved."""
    page.wait_for_timeout(500)
    assert fits(frame)
    n, made, alpha, drawn = state()
    assert (n, alpha, drawn) == (20, 0.05, False)
    frame.frame_element().dispatch_event("pointerenter")  # Playwright's pointer does not
    draw_a_box(page, frame)
    rows = frame.evaluate("() => window.metfaReport[0].drawing.runs.length")
    assert rows == 8  # from 0.3 to 0.6 of 24: the page does not move while it is drawn on
    slide(frame, ".threshold input", 7)
    return made


def test_in_jupyterlab(page, tmp_path):
    pytest.importorskip("jupyterlab")
    cells = [f"{MADE}explorer = sample.explore(more=again)\nexplorer", SAID, "explorer.sample_more(1000)"]
    with jupyterlab(tmp_path, cells) as address:

        def command(name, settings=None):
            page.evaluate("([name, settings]) => jupyterapp.commands.execute(name, settings)", [name, settings or {}])

        def run(place):
            page.evaluate("place => { jupyterapp.shell.currentWidget.content.activeCellIndex = place }", place)
            command("notebook:run-cell")

        def state():
            run(1)
            output = page.locator(".jp-CodeCell").nth(1).locator(".jp-OutputArea-output")
            return shown_state(output.inner_text())

        page.goto(address)
        idle = page.get_by_text("Python 3 (ipykernel) | Idle")
        idle.wait_for()
        run(0)
        frame = cell_of(page)
        light = frame.evaluate("() => getComputedStyle(document.querySelector('.result')).backgroundColor")
        made = drawn_and_moved(page, frame, state)
        slide(frame, "[name=alpha]", -2)
        page.wait_for_timeout(500)
        n, moved, alpha, drawn = state()
        assert moved > made
        assert (n, alpha, drawn) == (20, 0.02, True)
        ask_for(frame, 30)
        frame = with_samples(page, 50)
        page.wait_for_timeout(500)
        assert float(frame.inner_text(".threshold .number")) == pytest.approx(moved, abs=6e-4)
        assert state() == (50, moved, 0.02, True)
        page.evaluate("() => { jupyterapp.shell.currentWidget.content.activeCellIndex = 2 }")
        page.evaluate("() => { jupyterapp.commands.execute('notebook:run-cell') }")  # without waiting for its end
        page.wait_for_timeout(3000)
        command("notebook:interrupt-kernel")
        frame = with_samples(page, "50+")
        page.get_by_text("KeyboardInterrupt").first.wait_for()
        idle.wait_for()
        page.wait_for_timeout(500)  # what is asked for at once is dropped
        n, threshold, _, _ = state()
        assert 50 < n < 1050
        assert threshold == moved
        command("apputils:change-theme", {"theme": "JupyterLab Dark"})
        frame.wait_for_function(
            "light => getComputedStyle(document.querySelector('.result')).backgroundColor !== light", arg=light
        )


def test_in_marimo(page, tmp_path):
    pytest.importorskip("marimo")
    indented = "".join(f"    {line}\n" for line in MADE.strip().splitlines())
    (tmp_path / "a.py").write_text(
        f"import marimo\napp = marimo.App()\n\n@app.cell\ndef _():\n    import marimo as mo\n{indented}"
        "    explorer = mo.ui.anywidget(sample.explore(more=again))\n    explorer\n    return explorer, mo\n\n"
        f"@app.cell\ndef _(explorer, mo):\n    explorer.value\n    mo.plain_text({SAID})\n    return\n"
    )
    arguments = ["run", "{folder}/a.py", "--headless", "--no-token", "--host=127.0.0.1", "--port={port}"]
    arguments += ["--include-code"]
    with serving(tmp_path, "marimo", "--yes", *arguments, asked="health") as address:

        def state(reached=lambda *values: True):
            """What the other cell shows, once it is as it should be; it follows a moment later."""
            until = time.monotonic() + 10
            while "NOW" not in (text := page.inner_text("body")) or not reached(*shown_state(text)):
                assert time.monotonic() < until, text
                page.wait_for_timeout(50)
            return shown_state(text)

        page.goto(address)
        frame = cell_of(page)
        made = drawn_and_moved(page, frame, state)
        _, moved, _, _ = state(lambda n, threshold, alpha, drawn: threshold > made and drawn)
        ask_for(frame, 1000)
        frame.wait_for_function("() => document.querySelector('progress').value > 0")
        frame.click(".samples .stop")
        frame = with_samples(page, "20+")
        n, threshold, _, drawn = state(lambda n, threshold, alpha, drawn: n > 20)
        assert n < 1020
        assert threshold == moved
        assert drawn
