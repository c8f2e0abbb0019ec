"""Servers of notebooks, and what people do on the page in a cell: for tests, and for pictures of the documentation."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import metfa

LONG = 90_000  # milliseconds


@contextmanager
def serving(folder, module, *arguments, asked):
    """The address of a server in a process of its own, which ends with the block, whatever happens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {name: str(folder / "own") for name in ("HOME", "IPYTHONDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    own |= {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    code = filter(None, (str(Path(metfa.__file__).parents[1]), os.environ.get("PYTHONPATH")))
    own |= {"PYTHONPATH": os.pathsep.join(code), "OMP_NUM_THREADS": "1"}
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


@contextmanager
def jupyterlab(folder, cells):
    """The address of a notebook with these cells, in a JupyterLab that asks nothing and knows no settings of others."""
    notebook = {
        "cells": [
            {"cell_type": "code", "id": f"c{k}", "metadata": {}, "source": text, "outputs": [], "execution_count": None}
            for k, text in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (folder / "a.ipynb").write_text(json.dumps(notebook))
    settings = folder / "config/lab/user-settings/@jupyterlab/apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    arguments = ["--no-browser", "--ip=127.0.0.1", "--port={port}", "--ServerApp.root_dir={folder}", "--allow-root"]
    arguments += ["--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True", "--expose-app-in-browser"]
    with serving(folder, "jupyterlab", *arguments, asked="api") as address:
        yield f"{address}/doc/tree/a.ipynb"


def cell_of(page):
    """The page of the report in its cell, ready."""
    frame = page.wait_for_selector("iframe[title='explanations with error bars']", state="attached").content_frame()
    frame.wait_for_selector("html[data-ready=yes]")
    return frame


def draw_a_box(page, frame, first=(0.3, 0.3), last=(0.6, 0.6)):
    """Drag it over the last map; its corners are shares of the width and of the height."""
    frame.check("input[value=box]")
    canvas = frame.locator("canvas[role=application]").last
    canvas.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    box = canvas.bounding_box()
    (x, y), (to_x, to_y) = (
        (box["x"] + across * box["width"], box["y"] + down * box["height"]) for across, down in (first, last)
    )
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(to_x, to_y, steps=4)
    page.mouse.up()
