"""Colours of marks: told apart by everybody and in a grey print, and the same in figures, reports and texts."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import metfa
from metfa._base.palettes import HUES, PALETTES
from metfa.plot._region_map import FILL
from metfa.report.writing import write

# Machado, Oliveira and Fernandes 2009, "A Physiologically-based Model for Simulation of Color Vision Deficiency",
# IEEE TVCG 15(6), doi:10.1109/TVCG.2009.113: their matrices for severity 1.0, for linear RGB.
VISION = {
    "usual": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
PAGE_CSS = Path(__file__).parents[2] / "page" / "src" / "page.css"


def linear(rgb):
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def seen(rgb, matrix):
    """Colours as they look to somebody without one kind of cone."""
    light = np.clip(linear(rgb) @ np.array(matrix).T, 0, 1)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


def lab(rgb):
    """CIE 1976 L*a*b* of sRGB colours."""
    xyz = linear(rgb) @ np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]).T
    t = xyz / [0.9505, 1, 1.089]
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


def colours_of(palette, kind):
    kinds = {1: "positive", 0: "", -1: ""} if kind == "sign" else {1: "important", 0: "", -1: ""}
    return np.array([to_rgb(colour) for _, _, colour in PALETTES[palette].of_marks(kinds)])


@pytest.mark.parametrize("kind", ["threshold", "sign"])
@pytest.mark.parametrize("vision", VISION)
def test_marks_are_told_apart_over_any_picture(vision, kind):
    """Painted as `plot.figure` does over a dark, a middle and a bright pixel of the grey picture."""
    rgb = colours_of("colourblind", kind)
    shown = 0.8 * rgb[:, None] + 0.2 * np.array([0.25, 0.55, 0.85])[:, None]
    found = lab(seen(shown, VISION[vision]))
    for one, other in itertools.combinations(found, 2):
        for a, b in itertools.product(one, other):
            assert np.linalg.norm(a - b) > 20  # a just noticeable difference is 2.3
            assert abs(a[0] - b[0]) > 10  # lightness alone, as in a grey print


@pytest.mark.parametrize("vision", VISION)
def test_bars_and_legends_are_told_apart(vision):
    found = lab(seen(colours_of("colourblind", "threshold"), VISION[vision]))
    for a, b in itertools.combinations(found, 2):
        assert np.linalg.norm(a - b) > 30
        assert abs(a[0] - b[0]) > 25


@pytest.mark.parametrize("vision", VISION)
def test_fills_of_regions_are_told_apart_where_the_picture_is_alike(vision):
    grey = np.array([0.25, 0.55, 0.85])[:, None]
    rgb = colours_of("colourblind", "threshold")
    weights = np.array([FILL[mark] for mark in (1, 0, -1)])[:, None, None]
    found = lab(seen(weights * rgb[:, None] + (1 - weights) * grey, VISION[vision]))
    for one, other in itertools.combinations(found, 2):
        assert (np.linalg.norm(one - other, axis=-1) > 15).all()


def test_the_default_is_the_safe_one_and_the_paper_s_is_not():
    assert next(iter(PALETTES)) == "colourblind"
    found = lab(seen(colours_of("paper", "threshold"), VISION["usual"]))[1:]  # dark purple and dark green
    assert abs(found[0][0] - found[1][0]) < 25
    signs = lab(seen(colours_of("paper", "sign"), VISION["usual"]))[[0, 2]]  # red and blue
    assert abs(signs[0][0] - signs[1][0]) < 10


def test_the_report_takes_its_colours_from_the_palette(table_sample, tmp_path):
    page = write(tmp_path / "r.html", table_sample).read_text(encoding="utf-8")
    style = page[page.index("<style>") : page.index("</style>")]
    for mark, colour in vars(PALETTES["colourblind"]).items():
        assert re.findall(rf"--{mark.replace('_', '-')}: ?([^;}}]+)", style) == [colour]
    assert not re.search(
        r"--(important|undecided|unimportant|positive|negative|no-sign): ", PAGE_CSS.read_text("utf-8")
    )


@pytest.fixture
def table_sample():
    inputs, noise = np.array([[2.0, 1.0, 0.1]]), metfa.noise.Uniform(0.1)
    return metfa.explain(lambda x, target: x**2, inputs, 0, noise=noise, n_samples=8, rng=0)


def test_texts_have_the_hues_of_the_palette():
    """The background of a word is a score; its hue is that of the mark, light enough for letters."""
    angles = {mark: np.angle(complex(*lab(np.array(rgb) / 255)[1:]), deg=True) for mark, rgb in HUES.items()}
    marks = lab(colours_of("colourblind", "sign"))
    for mark, colour in ((1, marks[0]), (-1, marks[2])):
        apart = (angles[mark] - np.angle(complex(*colour[1:]), deg=True) + 180) % 360 - 180
        assert abs(apart) < 25
