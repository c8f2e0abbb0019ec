"""Figures of volumes: three planes in true proportions, their marks, projections and slices."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text

import metfa
from metfa import regions
from metfa.plot import PALETTES, Volume
from metfa.results.sample import AttributionSample

SHAPE = (8, 12, 10)
BLOB = (slice(3, 5), slice(6, 9), slice(2, 5))


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    values = 0.2 * rng.random((20, 1, *SHAPE))
    values[(..., *BLOB)] += 0.5
    values[..., 4, 7, 3] += 1
    return AttributionSample(
        values=values.astype(np.float32),
        inputs=rng.random((1, 1, *SHAPE)),
        target=(0,),
        vanilla=values[0].astype(np.float32),
        scores=None,
        predictions=None,
        sample_ids=tuple(range(20)),
        input_names=("a",),
    )


@pytest.fixture(scope="module")
def drawn(sample):
    return sample.plot(kind=Volume(spacing=(3, 1, 0.5), unit="mm"), threshold=0.4)


def painted(ax):
    return np.asarray(ax.images[0].get_array())


def titles(fig):
    return [ax.get_title() for ax in fig.axes if ax.get_title()]


def test_three_planes_go_through_the_largest_score(drawn):
    panels = drawn.axes
    assert [painted(ax).shape[:2] for ax in panels[:3]] == [(12, 10), (8, 10), (8, 12)]
    places = [ax.get_title().splitlines()[0] for ax in panels[:3]]
    assert places == ["slice 4 (12 mm)", "row 7 (7 mm)", "column 3 (1.5 mm)"]
    assert [ax.get_aspect() for ax in panels[:3]] == [2, 6, 3]  # a pixel's height over its width
    lines = {tuple(np.unique(line.get_xdata())) for line in panels[0].lines}
    assert (3,) in lines


def test_marks_have_their_colours_and_shares(drawn):
    significance = drawn.axes[3]
    assert significance.get_title().endswith("significance")
    marked = painted(significance)[7, 3]
    amber, blue = (np.array(to_rgb(getattr(PALETTES["colourblind"], name))) for name in ("important", "unimportant"))
    assert np.abs(marked - amber).max() < 0.2
    assert np.abs(painted(significance)[0, 0] - blue).max() < 0.25
    labels = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert labels[0] == "important 1.9%"  # 18 of 960
    assert "is the median of a voxel above or below 0.4?" in drawn.legends[0].get_title().get_text()


def test_slices_lie_around_the_marked_ones(drawn):
    slices = titles(drawn)[9:]
    assert slices == [
        *("slice 1 (3 mm)\n0.0% important", "slice 2 (6 mm)\n0.0% important", "slice 3 (9 mm)\n7.5% important"),
        *("slice 4 (12 mm)\n7.5% important", "slice 5 (15 mm)\n0.0% important", "slice 6 (18 mm)\n0.0% important"),
    ]


def test_projections_have_the_largest_score_by_size():
    from metfa.plot._volume import _largest

    values = np.array([[[1.0, -2.0], [0.5, 0.0]], [[-3.0, 1.0], [0.25, 0.0]]])
    np.testing.assert_array_equal(_largest(values, 0), [[-3, -2], [0.5, 0]])


def test_a_given_voxel_and_blocks(sample):
    blocks = sample.over(regions.blocks(sample, (4, 4, 2)), against="rest")
    fig = blocks.plot(kind=Volume(at=(0, 1, 2), axis=1), correction="holm")
    assert [ax.get_title().splitlines()[0] for ax in fig.axes[:3]] == ["slice 0", "row 1", "column 2"]
    assert sum(title.startswith("row") for title in titles(fig)[9:]) == 6
    assert "as given" in fig.legends[0].get_title().get_text()
    with pytest.raises(ValueError, match=r"`at` must be a voxel of a volume \(8, 12, 10\)"):
        sample.plot(kind=Volume(at=(8, 0, 0)))


def test_voxels_in_no_region_show_the_picture(sample):
    labels = np.full(SHAPE, -1)
    labels[BLOB], labels[0, 0, 0] = 0, 1
    fig = sample.over(metfa.Regions(labels)).plot(threshold=0.4)
    scores, significance, projection = (painted(fig.axes[place]) for place in (0, 3, 6))
    slice_at = int(fig.axes[0].get_title().splitlines()[0].removeprefix("slice "))
    outside = labels[slice_at] < 0
    ground = np.repeat((0.25 + 0.6 * sample.inputs[0, 0, slice_at])[..., None], 3, axis=2)
    np.testing.assert_allclose(scores[outside], ground[outside])
    np.testing.assert_allclose(significance[outside], ground[outside])
    assert (np.abs(significance - ground)[~outside].max(axis=-1) > 0.1).all()
    grey = np.ptp(projection, axis=-1) < 1e-9
    np.testing.assert_array_equal(grey, (labels < 0).all(axis=0))
    assert "voxels in no region show the picture alone" in fig.legends[0].get_title().get_text()


def test_a_region_that_smaller_ones_hide(sample):
    masks = np.zeros((3, *SHAPE), bool)
    masks[0], masks[1, :4], masks[2, 4:] = True, True, True
    pooled = sample.over(metfa.Regions(masks, how="sum"))
    scores = pooled.smoothed()[0]
    assert scores.argmax() == 0
    half, at = (1, 1) if scores[1] > scores[2] else (2, 5)
    fig = pooled.plot()
    said = fig.legends[0].get_title().get_text()
    assert "where regions overlap, the smallest is shown" in said
    assert "the largest score of those shown" in said.replace("\n", " ")
    assert fig.axes[0].get_title() == f"slice {at}\nconstant: {scores[half]:.3g}"  # the middle of the larger of both


def test_without_a_channel_axis_and_with_too_few_samples(sample):
    few = replace(sample, values=sample.values[:3], sample_ids=(0, 1, 2), inputs=sample.inputs[:, 0])
    fig = few.plot(kind=Volume())
    assert fig.axes[3].get_title().endswith("no decision")
    assert "at least" in fig.legends[0].get_title().get_text()
    with pytest.raises(ValueError, match="a volume of 8 slices without a channel axis"):
        few.plot()


@pytest.mark.parametrize(("channels", "behind"), [(1, ""), (3, "; behind the scores: mean of 3 channels")])
def test_what_lies_behind_the_scores_is_said_where_it_is_no_plain_picture(sample, channels, behind):
    figure = replace(sample, inputs=np.random.default_rng(1).random((1, channels, *SHAPE))).plot(kind=Volume())
    text = " ".join(" ".join(part.get_text() for part in figure.findobj(Text)).split())
    assert f"planes through slice 4, row 7, column 3, which has the largest score{behind}" in text
    assert "largest score; picture" not in text
