"""Regions by name: one parser for the command line, studies and regression checks."""

import numpy as np
import pytest

from metfa import regions
from metfa.by_name.regions import FORMS, KINDS, region_forms, region_named

PIXELS = np.random.default_rng(0).random((3, 8, 9))


def test_each_kind_makes_what_the_library_makes():
    every = list(FORMS)
    assert region_named("superpixels:5", "over", every)(PIXELS) == regions.superpixels(PIXELS, 5, against="rest")
    assert region_named("grid:3", "over", every, against=None)(PIXELS) == regions.grid((8, 9), 3)
    text = "One. Two, three."
    assert region_named("sentences", "over", every)(text) == regions.sentences(text, against="rest")
    assert region_named("phrases", "over", every)(text) == regions.phrases(text, against="rest")
    assert region_named("none", "over", every) is None
    assert region_named("superpixels", "over", every).number == 50


def test_a_picture_of_labels_is_a_file_that_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mask.png").touch()
    assert region_named("mask.png", "--regions", ["grid", "picture"]).kind == "picture"
    with pytest.raises(ValueError, match=r"such as mask.png, got 'other.png', and there is no such file"):
        region_named("other.png", "--regions", ["grid", "picture"])
    with pytest.raises(ValueError, match=r"`over` must be grid\[:ROWS\], got 'mask.png'$"):
        region_named("mask.png", "over", ["grid"])


@pytest.mark.parametrize("text", ["grid:", "grid:-1", "grid:2.5", "none:3", "sentences:2", "superpixel", "", "picture"])
def test_what_names_no_regions_is_refused(text):
    with pytest.raises(ValueError, match=r"`over` must be superpixels\[:NUMBER\], grid\[:ROWS\], sentences, phrases"):
        region_named(text, "over", [*KINDS["image"], *KINDS["text"], "none"])


def test_one_region_has_no_rest_and_may_stand_alone():
    with pytest.raises(ValueError, match="at least grid:2, so that a region has a rest, got grid:1"):
        region_named("grid:1", "over", KINDS["image"])
    assert region_named("grid:1", "over", KINDS["image"], least=1, against=None).number == 1
    with pytest.raises(TypeError, match=r"`over` must be superpixels.* or grid.*, got int: 3"):
        region_named(3, "over", KINDS["image"])


def test_forms_for_help():
    assert region_forms(["grid"]) == "grid[:ROWS]"
    assert region_forms(KINDS["text"]) == "sentences or phrases"
    assert region_forms(["none", "grid", "sentences"]) == "grid[:ROWS], sentences, or none"
