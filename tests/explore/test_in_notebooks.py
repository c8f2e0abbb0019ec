"""The explorer as people meet it: in JupyterLab and in marimo, each with a server of its own, seen by Chromium."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

import metfa

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
LONG = 90_000  # milliseconds


@contextmanager
def serving(folder, module, *arguments, asked):
    """The address of a server in a process of its own, which ends with the block, whatever happens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {name: str(folder / "own") for name in ("HOME", "IPYTHONDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    own |= {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    own |= {"PYTHONPATH": str(Path(metfa.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    log = folder / "log.txt"
    command = [sys.executable, "-m", module, *(text.format(port=port, folder=folder) for text in arguments)]
    with log.open("w") as out:
        server = subprocess.Popen(
            command, env=os.environ | own, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            address = f"http://127.0.0.1:{port}"
            until = time.monotonic() + LONG / 1000
            while not answers(f"{address}/{asked}"):
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.2)
            yield address
        finally:
            server.terminate()  # it closes its kernels
            try:
                server.wait(20)
            finally:
                kill_all_of(server)


def answers(address):
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except OSError:
        return False


def kill_all_of(server):
    try:
        os.killpg(server.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    server.wait(20)


@pytest.fixture
def page(browser):
    shown = browser.new_page(viewport={"width": 1300, "height": 1000})
    shown.set_default_timeout(LONG)
    yield shown
    shown.close()


def cell_of(page):
    """The page of the report in its cell, ready."""
    frame = page.wait_for_selector("iframe[title='explanations with error bars']", state="attached").content_frame()
    frame.wait_for_selector("html[data-ready=yes]")
    return frame


def draw_a_box(page, frame):
    frame.check("input[value=box]")
    canvas = frame.locator("canvas[role=application]").last
    canvas.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"], steps=4)
    page.mouse.up()


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


def test_in_jupyterlab(page, tmp_path):
    pytest.importorskip("jupyterlab")
    cells = [f"{MADE}explorer = sample.explore(more=again)\nexplorer", SAID, "explorer.sample_more(1000)"]
    notebook = {
        "cells": [
            {"cell_type": "code", "id": f"c{k}", "metadata": {}, "source": text, "outputs": [], "execution_count": None}
            for k, text in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook))
    settings = tmp_path / "config/lab/user-settings/@jupyterlab/apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    arguments = ["--no-browser", "--ip=127.0.0.1", "--port={port}", "--ServerApp.root_dir={folder}", "--allow-root"]
    arguments += ["--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True", "--expose-app-in-browser"]
    with serving(tmp_path, "jupyterlab", *arguments, asked="api") as address:

        def command(name, settings=None):
            page.evaluate("([name, settings]) => jupyterapp.commands.execute(name, settings)", [name, settings or {}])

        def run(place):
            page.evaluate("place => { jupyterapp.shell.currentWidget.content.activeCellIndex = place }", place)
            command("notebook:run-cell")

        def state():
            run(1)
            output = page.locator(".jp-CodeCell").nth(1).locator(".jp-OutputArea-output")
            return shown_state(output.inner_text())

        page.goto(f"{address}/doc/tree/a.ipynb")
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
        run(0)
        frame = cell_of(page)
        light = frame.evaluate("() => getComputedStyle(document.querySelector('.result')).backgroundColor")
        page.wait_for_timeout(500)
        assert fits(frame)
        n, made, alpha, drawn = state()
        assert (n, alpha, drawn) == (20, 0.05, False)
        draw_a_box(page, frame)
        slide(frame, ".threshold input", 7)
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
        page.wait_for_timeout(5000)
        command("notebook:interrupt-kernel")
        frame = with_samples(page, "50+")
        page.get_by_text("KeyboardInterrupt").first.wait_for()
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

        def state():
            page.wait_for_timeout(1500)
            return shown_state(page.inner_text("body"))

        page.goto(address)
        frame = cell_of(page)
        page.wait_for_timeout(500)
        assert fits(frame)
        n, made, alpha, drawn = state()
        assert (n, alpha, drawn) == (20, 0.05, False)
        draw_a_box(page, frame)
        slide(frame, ".threshold input", 7)
        n, moved, alpha, drawn = state()  # other cells follow
        assert moved > made
        assert drawn
        ask_for(frame, 1000)
        frame.wait_for_function("() => document.querySelector('progress').value > 0")
        frame.click(".samples .stop")
        frame = with_samples(page, "20+")
        n, threshold, _, drawn = state()
        assert 20 < n < 1020
        assert threshold == moved
        assert drawn
