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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("superpixels:0", "`--regions` must be at least superpixels:2, so that a region has a rest, got superpixels:0"),
        ("superpixels:1", "`--regions` must be at least superpixels:2, so that a region has a rest, got superpixels:1"),
        ("grid:0", "`--regions` must be at least grid:2, so that a region has a rest, got grid:0"),
        ("grid:1", "`--regions` must be at least grid:2, so that a region has a rest, got grid:1"),
        ("grid:13", "`--regions` grid:13: a map has only 12 rows and 16 columns, write at most grid:12"),
        ("superpixels:193", "`--regions` superpixels:193: a map has only 192 pixels, write at most superpixels:192"),
    ],
)
def test_numbers_that_cannot_be_are_refused(sample, text, message):
    for ask in (regions.regions_named, lambda text, sample: regions.check_regions_of(text, sample.feature_shape)):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            ask(text, sample)


@pytest.mark.parametrize("text", ["superpixels:192", "grid:12"])
def test_the_largest_numbers_that_are_advised_are_taken(sample, text):
    regions.check_regions_of(text, sample.feature_shape)
    made, _ = regions.regions_named(text, sample)
    assert len(made) == {"superpixels:192": 192, "grid:12": 144}[text]


@pytest.mark.parametrize(
    ("name", "picture", "message"),
    [
        ("mask.jpg", LABELS, "`--regions`: mask.jpg is a JPEG, which changes the levels beside each edge: save"),
        ("mask.png", np.dstack([LABELS] * 3), "`--regions`: mask.png holds colours (mode RGB), not labels"),
        ("mask.png", LABELS * 0, "`--regions`: mask.png is 0 everywhere, which is no region: give each region"),
        ("mask.png", LABELS * 0 + 3, "mask.png: one region covers the whole picture, so that it has no rest"),
        ("mask.png", LABELS[:6], "`--regions`: mask.png has 16 x 6 pixels, and the network sees 16 x 12"),
    ],
)
def test_pictures_that_cannot_be_regions_are_refused_before_sampling(picture, name, message, tmp_path):
    Image.fromarray(picture.astype(np.uint8)).save(tmp_path / name)
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        regions.check_regions_of(str(tmp_path / name), (12, 16))
    assert str(error.value).startswith("`--regions`")


def test_names_with_commas_are_quoted_where_names_are_listed(sample):
    text = said(sample, metfa.Regions(LABELS, [f"part {i}, row {i // 3}" for i in range(6)], against="rest"))
    assert 'more than the rest: "part 1, row 0"' in text


def test_small_and_flat_maps_have_regions_too():
    for inputs, number in ((np.zeros((1, 1, 9, 9)), 40), (ROWS[:, :2, :2], 2), (np.ones((1, 5, 6, 8)), 36)):
        sample = metfa.explain(
            lambda rows, target: np.abs(rows).reshape(len(rows), -1, *rows.shape[-2:]).sum(1),
            inputs,
            0,
            noise=metfa.noise.Uniform(0.1),
            n_samples=6,
            rng=0,
        )
        made, note = regions.regions_named(None, sample)
        assert (len(made), made.against) == (number, "rest")
        assert ("superpixels need pictures of 1 or 3 channels" in note) == (inputs.shape[1] == 5)


@pytest.mark.parametrize("text", ["superpixel", "grid:", "none:3", "grid:-1", "mask.png", ""])
def test_what_names_no_regions_is_refused(text):
    with pytest.raises(ValueError, match="`--regions` must be superpixels"):
        regions.check_regions(text)


@pytest.fixture
def saved(tmp_path):
    """Saves the samples of a batch of pictures or rows, and returns them."""

    def save(inputs, **settings):
        settings = {"n_samples": 12, **settings}
        made = metfa.explain(
            lambda rows, target: rows.reshape(len(rows), -1, *rows.shape[2:]).sum(1) if rows.ndim == 4 else rows,
            inputs,
            0,
            noise=metfa.noise.Uniform(0.1),
            rng=0,
            **settings,
        )
        made.save(tmp_path / "saved")
        return made

    return save


@pytest.mark.slow
def test_regions_are_made_and_pooled_once_for_report_and_figure(saved, metfa_command, monkeypatch):
    saved(np.random.default_rng(0).random((1, 1, 12, 12)))
    pooled, over = [], metfa.AttributionSample.over

    def counted(self, *arguments, **settings):
        pooled.append(arguments)
        return over(self, *arguments, **settings)

    monkeypatch.setattr(metfa.AttributionSample, "over", counted)
    assert "regions:  " in metfa_command("show", "saved", "--out", "views").out
    assert len(pooled) == 2  # and once for the page


@pytest.mark.slow
def test_each_input_of_a_batch_has_its_own_regions(saved, metfa_command, tmp_path):
    sample = saved(np.random.default_rng(0).random((2, 1, 9, 9)))
    done = metfa_command("show", "saved", "--regions", "grid:3", "--out", "views")
    pooled = sample.over(metfa.regions.grid(sample, 3), against="rest")
    marks = pooled.significance_map(correction="holm")
    parts = re.split(r"^row: +input [01] of 2$", done.out, flags=re.MULTILINE)
    for row, part in zip(marks, parts[1:], strict=True):
        assert re.findall(r"^regions: +(\d+) of 9 regions", part, re.MULTILINE) == [str((row == 1).sum())]
        assert "a grid of 3 x 3" in part
    assert {path.name for path in (tmp_path / "views").iterdir()} == {
        *("figure-0.png", "figure-1.png", "maps-0.png", "maps-1.png", "report.html", "report.txt"),
    }


def test_what_sampling_asked_about_is_shown_at_its_own_level(saved, metfa_command):
    halves = metfa.Regions(np.repeat([0, 1], 4), against="rest")
    rule = metfa.Until(undecided=0.4, over=halves, alpha=0.01, correction="none", max_samples=60)
    sample = saved(np.linspace(1, 3, 8)[None], n_samples=rule)
    done = metfa_command("show", "saved")
    assert "regions:          1 of 2 regions (50% of the features) gets significantly more than the rest" in done.out
    assert re.search(r"^of regions: +the regions that sampling asked about; .*alpha 0\.01 ", done.out, re.MULTILINE)
    assert (sample.over().significance_map()[0] == [-1, 1]).all()
    assert "regions:" not in metfa_command("show", "saved", "--regions", "none").out


def test_regions_where_maps_have_none_are_refused(saved, metfa_command):
    saved(np.linspace(1, 3, 8)[None])
    assert "regions:" not in metfa_command("show", "saved").out
    error = metfa_command("show", "saved", "--regions", "grid:2").error
    assert "`--regions` grid:2 needs maps (height, width) of single pixels, which this result does not have" in error


def test_regions_that_cannot_be_are_refused_before_sampling(metfa_command, tiny, tmp_path):
    Image.fromarray(np.zeros((60, 80, 3), np.uint8)).save(tmp_path / "a.png")
    done = metfa_command("explain", "a.png", "--model", "tiny:model", "--regions", "grid:97", "--out", "out")
    assert done.error.endswith("grid:97: a map has only 96 rows and 96 columns, write at most grid:96")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_correction_over_pixels_that_needs_more_samples_points_to_regions(metfa_command, tiny, tmp_path):
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)).save(tmp_path / "a.png")
    explain = ("explain", "a.png", "--model", "tiny:model", "--samples", 12)
    advice = "; without `--correction`, 50 regions are still tested by holm, and pixels each alone"
    assert metfa_command(*explain, "--correction", "holm").error.endswith(f"at least 18 are needed{advice}")
    assert "without" not in metfa_command(*explain, "--correction", "holm", "--regions", "none").error
    assert "without" not in metfa_command(*explain, "--correction", "holm", "--samples", 8).error  # too few for 50
    done = metfa_command(*explain)
    assert done.code == 0
    assert re.search(r"^regions: +\d+ of 50 regions", done.out, re.MULTILINE)
    assert re.search(r"^of regions: .*holm\)$", done.out, re.MULTILINE)
    assert "malloc" not in done.err


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
    done = metfa_command("explain-text", "A movie about a big car", "--method", "occlusion", "--samples", 8)
    assert "sentences:" not in done.out


def test_a_text_has_no_regions_of_a_picture(metfa_command, tiny):
    text = "A dull beginning。A brilliant end with a charming cast！"  # no blank follows
    done = metfa_command("explain-text", text, "--method", "occlusion", "--samples", 8, "--out", "out")
    assert re.search(r"^sentences: +[012] of 2 sentences", done.out, re.MULTILINE)
    assert "sentences:" not in metfa_command("show", "out", "--regions", "none").out
    assert (
        "`--regions` must be sentences, phrases, or none, got 'grid:2'"
        in metfa_command("show", "out", "--regions", "grid:2").error
    )


def test_a_correction_over_words_that_needs_more_samples_points_to_sentences(metfa_command, tiny):
    text = "A dull and lifeless film. Nothing but a brilliant end."
    command = ("explain-text", text, "--method", "occlusion", "--samples", 8)
    advice = "; without `--correction`, 2 sentences are still tested by holm, and words each alone"
    assert advice in metfa_command(*command, "--correction", "bonferroni", "--alpha", 0.02).error
    done = metfa_command(*command, "--alpha", 0.02)
    assert re.search(r"^of sentences: .*holm\)$", done.out, re.MULTILINE)


def test_regions_that_sampling_asked_about_are_shown_on_its_own_terms(metfa_command, tmp_path):
    """Its alpha and its correction hold for the single pixels too, with as few samples as they need."""
    regions = metfa.regions.grid((12, 16), 3, against="rest")
    sample = metfa.explain(
        lambda inputs, target: inputs * np.where(LABELS < 2, 3.0, 0.3), np.ones((1, 12, 16)), 0,
        noise=metfa.noise.Uniform(0.3), n_samples=metfa.Until(undecided=0.5, over=regions, alpha=0.3), rng=0,
    )  # fmt: skip
    assert (sample.terms().alpha, sample.terms().correction) == (0.3, "closed-e-bh")
    sample.save(tmp_path / "saved")
    shown = metfa_command("show", "saved")
    assert shown.code == 0
    assert re.search(r"^of regions: .*\(alpha 0\.3 a side, closed-e-bh\)", shown.out, re.MULTILINE)
    assert re.search(r"^false marks: .*\(alpha 0\.3 a side, closed-e-bh", shown.out, re.MULTILINE)
    assert sample.n_samples < 7
