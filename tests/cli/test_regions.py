"""Regions on the command line: what they are, and what is said of them."""

import json
import re

import numpy as np
import pytest
from PIL import Image

import metfa
from metfa.cli import regions
from metfa.results.in_words import regions_in_words

ROWS = np.abs(np.random.default_rng(0).normal(size=(1, 12, 16)))
LABELS = np.kron(np.arange(6).reshape(2, 3), np.ones((6, 6), int))[:, :16]


@pytest.fixture(scope="module")
def sample():
    weights = np.where(LABELS == 1, 4.0, np.where(LABELS == 4, 1.0, 0.4))
    return metfa.explain(
        lambda inputs, target: inputs * weights, ROWS, 0, noise=metfa.noise.Uniform(0.2), n_samples=20, rng=0
    )


def said(sample, labels, **settings):
    pooled = sample.over(labels, **settings)
    return regions_in_words(pooled, pooled.decide(pooled.terms(correction="holm")))


def test_each_kind_is_counted_and_the_strongest_are_named(sample):
    text = said(sample, metfa.Regions(LABELS, [f"part {i}" for i in range(6)], against="rest"))
    marks = sample.over(LABELS, against="rest").significance_map(correction="holm")[0]
    assert marks[1] == 1
    more, less, left = (int((marks == mark).sum()) for mark in (1, -1, 0))
    share = np.isin(LABELS, np.flatnonzero(marks == 1)).mean()
    get = "gets" if more == 1 else "get"
    assert text.startswith(
        f"{more} of 6 regions ({share:.0%} of the picture) {get} significantly more than the rest: part 1"
    )
    assert re.search(rf"; {less} \(\d+%\) gets? less than the rest; {left}", text)


def test_regions_without_a_rest_are_important_or_not(sample):
    pooled = sample.over(LABELS)
    text = regions_in_words(pooled, pooled.decide(pooled.terms(1.5, correction="holm")))
    assert text.startswith("1 of 6 regions (19% of the picture) is significantly important: region 1; ")


def test_none_is_named_where_none_is_found(sample):
    flat = metfa.explain(
        lambda inputs, target: 1 + 0.2 * inputs, ROWS * 0 + 0.5, 0, noise=metfa.noise.Uniform(0.5), rng=0
    )
    text = said(flat, metfa.Regions(LABELS, against="rest"))
    nothing = "0 of 6 regions get significantly more than the rest; 0 get less than the rest; 6 (100%) are undecided"
    assert text == nothing


def test_single_features_have_no_such_sentence(sample):
    with pytest.raises(ValueError, match=r"must hold regions: write `sample.over"):
        regions_in_words(sample, sample.decide(sample.terms()))


@pytest.mark.parametrize(
    ("text", "number"), [("grid:3", 9), ("grid", 144), ("superpixels:7", 7), ("superpixels", 50), ("none", None)]
)
def test_regions_by_name(sample, text, number):
    made, _ = regions.regions_named(text, sample)
    assert (None if made is None else len(made)) == number
    assert made is None or made.against == "rest"


def test_regions_of_a_mask_file(sample, tmp_path):
    Image.fromarray(LABELS.astype(np.uint8)).save(tmp_path / "mask.png")
    made, note = regions.regions_named(str(tmp_path / "mask.png"), sample)
    np.testing.assert_array_equal(made.as_masks(), [i == LABELS for i in range(1, 6)])  # 0 is no region
    assert note == "of mask.png"


def test_a_mask_of_another_size_is_refused_for_the_picture_may_be_cropped(sample, tmp_path):
    Image.fromarray(np.kron(LABELS, np.ones((2, 2), int)).astype(np.uint8)).save(tmp_path / "mask.png")
    with pytest.raises(ValueError, match=r"mask.png has 32 x 24 pixels, and the network sees 16 x 12"):
        regions.regions_named(str(tmp_path / "mask.png"), sample)


def test_without_scikit_image_a_grid_is_taken_and_said(sample, monkeypatch):
    monkeypatch.setattr(regions, "find_spec", lambda name: None)
    made, note = regions.regions_named("superpixels:50", sample)
    assert len(made) == 49
    assert note == "a grid of 7 x 7; superpixels need scikit-image: pip install 'metfa[lime]'"


@pytest.mark.parametrize("text", ["superpixels:0", "grid:0", "grid:13", "superpixels:200"])
def test_numbers_that_cannot_be_are_refused(sample, text):
    with pytest.raises(ValueError, match=r"must|`cells`|`n_segments`"):
        regions.regions_named(text, sample)


@pytest.mark.parametrize("text", ["superpixel", "grid:", "none:3", "grid:-1", "mask.png", ""])
def test_what_names_no_regions_is_refused(text):
    with pytest.raises(ValueError, match="`--regions` must be superpixels"):
        regions.check_regions(text)


@pytest.mark.slow
def test_explained_pictures_say_which_regions_matter(metfa_command, tiny, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    done = metfa_command(
        "explain", "a.png", "--model", "tiny:model", "--samples", 12, "--regions", "grid:4", "--out", "out"
    )
    assert done.code == 0
    pooled = metfa.load(tmp_path / "out/sample")
    pooled = pooled.over(metfa.regions.grid(pooled, 4), against="rest")
    marks = pooled.significance_map(correction="holm")[0]
    assert f"regions:          {(marks == 1).sum()} of 16 regions" in done.out
    assert 'no region is called "more than the rest" falsely, with probability at least 95%' in done.out
    shown = metfa_command("show", "out", "--regions", "none")
    assert "regions:" not in shown.out
    assert json.loads((tmp_path / "out/about.json").read_text())["model"] == "tiny:model"
    few = metfa_command("show", "out", "--regions", "grid:14", "--alpha", 0.001)
    assert "regions:          undecided: too few samples" in few.out


def test_texts_of_several_sentences_are_told_by_sentences(metfa_command, tiny):
    text = "A dull beginning. A brilliant end with a charming cast!"
    done = metfa_command("explain-text", text, "--method", "occlusion", "--samples", 8)
    assert re.search(r"^sentences: +[012] of 2 sentences", done.out, re.MULTILINE)
    assert 'no sentence is called "more than the rest" falsely' in done.out
    assert "sentences:" not in metfa_command("explain-text", "A dull end", "--method", "occlusion", "--samples", 8).out
