"""Make the pictures of the documentation anew: ``python scripts/documentation_pictures.py [NAME ...]``.

Without names it makes all that are below, in some two minutes. It prints the numbers that the captions state, and where
each caption is: compare them. The report and the explorer need Chromium and playwright, the explorer also JupyterLab.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "_static"
BOX = ((0.22, 0.62), (0.60, 0.93))  # over the foot of the cup, where the scores are high
EDGE = 12  # pixels around what is cut out
CELLS = (
    """
import metfa
from PIL import Image
from skimage import data
loaded = metfa.models.load("efficientnet-lite0")
explainer = metfa.explainers.Gradient(loaded.module)
image = loaded.preprocess(Image.fromarray(data.coffee()))[None]
""",
    """\
from functools import partial
again = partial(metfa.explain, explainer, image, noise=metfa.noise.Uniform(0.1, bounds=(0, 1)))
sample = again(n_samples=50, rng=0)
explorer = sample.explore(more=again, split=10)
explorer""",
)


def main() -> None:
    """Make those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of these alone: {', '.join(MADE)}")
    names = parser.parse_args().names or list(MADE)
    if unknown := sorted(set(names) - MADE.keys()):
        parser.error(f"there is no picture {', '.join(unknown)}; these are: {', '.join(MADE)}")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            make, where = MADE[name]
            said = make(Path(folder), PICTURES / f"{name}.png")
            print(f"{name}.png, {(PICTURES / f'{name}.png').stat().st_size:,} bytes; its caption is in {where}:")
            print("".join(f"    {line}\n" for line in said), flush=True)


def demo(folder: Path, picture: Path) -> list[str]:
    """The figure of ``metfa demo``."""
    made, said = demonstrated(folder)
    keep(Image.open(made / "figure.png"), picture)
    return lines_of(
        said, "prediction", "regions", "of regions", "contradicted", "important", "unimportant", "undecided"
    )


def attack(folder: Path, picture: Path) -> list[str]:
    """The figure of ``metfa attack``, of scikit-image's unchanged photograph."""
    from skimage import data

    photo = folder / "coffee.png"
    Image.fromarray(data.coffee()).save(photo)
    options = ("--target-map", "circle", "--knows", "nothing", "--steps", 60)
    said = metfa("attack", photo, *options, "--out", folder / "attacked")
    keep(Image.open(folder / "attacked" / "figure.png"), picture)
    return lines_of(said, "attacker knows", "outcome", "explanation", "smoothed", "change")


def report(folder: Path, picture: Path) -> list[str]:
    """The page of the demo, with a box that a reader has drawn, down to the figures of all pixels."""
    made, _ = demonstrated(folder)
    with browsing(1280, 1600) as page:
        page.goto((made / "report.html").as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        of_notebooks().draw_a_box(page, page, *BOX)
        page.mouse.move(0, 0)
        said = what_is_drawn(page)
        bottom = page.locator("section.maps .shares").bounding_box()
        page.screenshot(
            path=picture, clip={"x": 0, "y": 0, "width": 1280, "height": bottom["y"] + bottom["height"] + EDGE}
        )
    keep(Image.open(picture), picture)
    return said


def explorer(folder: Path, picture: Path) -> list[str]:
    """A cell of JupyterLab with the explorer, and a box in it."""
    notebooks = of_notebooks()
    lab = folder / "lab"
    lab.mkdir()
    with notebooks.jupyterlab(lab, CELLS) as address, browsing(1240, 1600) as page:
        page.goto(address)
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
        for place in range(len(CELLS)):
            page.evaluate("at => { jupyterapp.shell.currentWidget.content.activeCellIndex = at }", place)
            page.evaluate("() => jupyterapp.commands.execute('notebook:run-cell')")
        frame = notebooks.cell_of(page)
        notebooks.draw_a_box(page, frame, *BOX)
        frame.wait_for_selector(".bound")
        point_at_the_strongest(page, frame)
        page.evaluate("() => { jupyterapp.shell.currentWidget.content.activeCellIndex = 0 }")  # whose bar is not seen
        page.wait_for_timeout(1000)  # the cell grows with its page
        said = what_is_drawn(frame)
        cell = page.locator(".jp-CodeCell").nth(1).bounding_box()
        bottom = frame.locator(".drawing details").bounding_box()
        height = bottom["y"] + bottom["height"] + EDGE - cell["y"]
        page.screenshot(path=picture, clip={**cell, "height": height})
    keep(Image.open(picture), picture)
    return said


MADE: dict[str, tuple[Callable[[Path, Path], list[str]], str]] = {
    "demo": (demo, "README.md and docs/index.rst"),
    "report": (report, "docs/howto/reports.rst"),
    "explorer": (explorer, "docs/howto/notebook.rst"),
    "attack": (attack, "docs/howto/attacks.rst"),
}


@cache
def demonstrated(folder: Path) -> tuple[Path, str]:
    """The folder of ``metfa demo``, and what it printed; two pictures are made of it."""
    return folder / "demo", metfa("demo", "--out", folder / "demo")


def metfa(*words: object) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "metfa", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def lines_of(said: str, *names: str) -> list[str]:
    """Lines of a printed report, by their names."""
    return [line for line in said.splitlines() if line.partition(":")[0] in names]


def what_is_drawn(page: Any) -> list[str]:
    """What the page says about the box."""
    return [page.inner_text(f".drawing {part}") for part in (".drawn-size", ".bound")]


def point_at_the_strongest(page: Any, frame: Any) -> None:
    """Point at the highest score of the box, whose figures the page then shows."""
    down, across = frame.evaluate(
        """() => {
            const { result, drawing: { mask, width, height } } = window.metfaReport[0];
            const score = p => mask[p] ? result.score("smoothed", p) : -Infinity;
            const best = mask.reduce((one, _, p) => score(p) > score(one) ? p : one, 0);
            return [(Math.floor(best / width) + 0.5) / height, (best % width + 0.5) / width];
        }"""
    )
    box = frame.locator("canvas[role=application]").last.bounding_box()
    page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])


def keep(picture: Image.Image, path: Path) -> None:
    """In 256 colours: less than half of the bytes. White stays white, and shades pass into one another."""
    colours = picture.convert("RGB")
    palette = colours.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=5)
    colours.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG).save(path, optimize=True)


def of_notebooks() -> Any:
    """What the tests of notebooks do there."""
    sys.path.append(str(ROOT / "tests"))  # which is no package
    return importlib.import_module("explore.notebooks")


@contextmanager
def browsing(width: int, height: int) -> Iterator[Any]:
    """An empty page of Chromium."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        page.set_default_timeout(90_000)
        yield page
        browser.close()


if __name__ == "__main__":
    main()
