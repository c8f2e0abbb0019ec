"""Figures of regions: fills, outlines, letters and bars are what was decided, and everything fits."""

import dataclasses
import io
import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

import metfa
from metfa.plot import PALETTES, bars, drawing_of, figure, regions
from metfa.plot._outlines import enlarged, inner_point, outline

SHAPE = (160, 200)  # as fine as the figure draws, so that panels have the picture's own pixels
LABELS = (np.arange(160)[:, None] // 40) * 5 + np.arange(200)[None, :] // 40  # 20 squares
HIGH, LOW = (0, 7, 12), (3, 16)
NAMES = [f"part {i}" for i in range(20)]


def make(n=30, labels=LABELS, batch=1, seed=0, high=HIGH, low=LOW, **fields):
    """Scores of 1 on average, more in the regions `high`, less in those `low`; the others differ from none of them."""
    rng = np.random.default_rng(seed)
    base = 1 + 2.0 * np.isin(labels, high) - 0.9 * np.isin(labels, low)
    wave = rng.normal(size=(n, batch, int(labels.max()) + 1)) * 0.3
    values = np.abs(base + wave[:, :, np.maximum(labels, 0)])
    arguments = {
        "inputs": rng.random((batch, 3, *labels.shape)),
        "target": (0,) * batch,
        "scores": None,
        "predictions": None,
        "input_names": tuple(map(str, range(batch))),
        "provenance": {"signed": False},
    }
    return metfa.AttributionSample(
        values=values, vanilla=values[0].copy(), sample_ids=tuple(range(n)), **(arguments | fields)
    )


def pooled(sample=None, masks=LABELS, against="rest", names=None):
    return (make() if sample is None else sample).over(metfa.Regions(masks, names, against=against))


@pytest.fixture(scope="module")
def sample():
    return make()


@pytest.fixture(scope="module")
def drawn(sample):
    return regions(pooled(sample, names=NAMES), correction="holm")


def panels(fig):
    """The panels by the first line of their title; the chart has none."""
    return {ax.get_title().splitlines()[0] if ax.get_title() else "chart": ax for ax in fig.axes}


def map_of(fig):
    return next(ax for name, ax in panels(fig).items() if "regions" in name)


def chart_of(fig):
    return next(ax for ax in fig.axes if ax.get_yticklabels() and ax.patches)


def rows(fig):
    return [label.get_text() for label in chart_of(fig).get_yticklabels()]


def painted(fig):
    return np.asarray(map_of(fig).images[0].get_array())


def letters(fig):
    return {text.get_text(): text.get_position()[::-1] for text in map_of(fig).texts}


def legend(fig, which=0):
    return [text.get_text() for text in fig.legends[which].get_texts()]


def said(fig, which=0):
    return " ".join(fig.legends[which].get_title().get_text().split())


def widths(ax):
    return [float(c.get_linewidth()[0]) for c in ax.collections if isinstance(c, LineCollection)]


def assert_everything_fits(fig):
    """Panels with their titles, letters, labels and legends lie within the figure and do not overlap."""
    fig.set_dpi(50)
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    renderer = canvas.get_renderer()
    boxes = [ax.get_tightbbox(renderer) for ax in fig.axes] + [one.get_window_extent(renderer) for one in fig.legends]
    if fig._suptitle is not None:
        boxes.append(fig._suptitle.get_window_extent(renderer))
    for box in boxes:
        assert fig.bbox.padded(1).containsx(box.x0)
        assert fig.bbox.padded(1).containsx(box.x1)
        assert fig.bbox.padded(1).containsy(box.y0)
        assert fig.bbox.padded(1).containsy(box.y1)
    for one, other in itertools.combinations(boxes, 2):
        width = min(one.x1, other.x1) - max(one.x0, other.x0)
        height = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(width, height) < 3, (one, other)


class TestWhatIsDecided:
    def test_fills_are_the_marks(self, sample, drawn):
        marks = pooled(sample).significance_map(correction="holm")[0]
        assert set(marks) == {1, 0, -1}
        assert set(np.flatnonzero(marks == 1)) == set(HIGH)
        colours = PALETTES["colourblind"]
        grey = 0.25 + 0.6 * (np.moveaxis(sample.inputs[0], 0, -1) @ [0.299, 0.587, 0.114])
        for region, mark in enumerate(marks):
            at = tuple(np.argwhere(region == LABELS)[777])
            colour = {1: colours.important, 0: colours.undecided, -1: colours.unimportant}[int(mark)]
            weight = 0.62 if mark else 0.3
            np.testing.assert_allclose(painted(drawn)[at], weight * np.array(to_rgb(colour)) + (1 - weight) * grey[at])

    def test_title_and_legend_count_the_regions(self, sample, drawn):
        marks = pooled(sample).significance_map(correction="holm")[0]
        share = np.isin(LABELS, np.flatnonzero(marks == 1)).mean()
        assert map_of(drawn).get_title() == f"more than the rest: 3 of 20 regions\n{share:.0%} of the picture"
        for name, mark in (("more than the rest", 1), ("undecided", 0), ("less than the rest", -1)):
            assert f"{name}: {(marks == mark).sum()}" in legend(drawn)
        assert said(drawn).startswith(
            "does a region get more than the rest, or less than the rest, by its median difference? (alpha 0.05 a "
            "side, holm; 20 regions)"
        )
        assert "important" not in " ".join([*legend(drawn), said(drawn), map_of(drawn).get_title()])

    def test_the_chart_is_sorted_by_the_smoothed_score_with_exact_intervals(self, sample, drawn):
        of_regions = pooled(sample)
        smoothed, interval = of_regions.smoothed()[0], of_regions.confidence_interval()
        order = np.argsort(-smoothed)
        chart = chart_of(drawn)
        np.testing.assert_allclose([patch.get_width() for patch in chart.patches], smoothed[order])
        assert rows(drawn) == [
            f"{letter}  part {i} (5%)" for letter, i in zip("ABCDEFGHIJKLMNOPQRST", order, strict=True)
        ]
        (ends,) = [c for c in chart.collections if to_rgb(c.get_color()[0]) == (0, 0, 0)]
        found = np.array([segment[:, 0] for segment in ends.get_segments()])
        np.testing.assert_allclose(found, np.stack([interval.low[0], interval.high[0]], axis=1)[order])
        about = " ".join(chart.get_xlabel().split())
        assert about.startswith("mean score of a region less that of the rest: smoothed over 30 samples")
        assert "in brackets the share of the picture" in about

    def test_each_letter_lies_in_its_region(self, sample, drawn):
        order = np.argsort(-pooled(sample).smoothed()[0])
        assert len(letters(drawn)) == 20
        for letter, (row, column) in letters(drawn).items():
            assert LABELS[row, column] == order["ABCDEFGHIJKLMNOPQRST".index(letter)]

    def test_regions_that_stand_out_have_thicker_outlines(self, drawn):
        assert widths(map_of(drawn))[1::2] == [0.8, 0.8, 2.2]  # undecided, less, more; each over a dark edge

    @pytest.mark.parametrize("palette", PALETTES)
    def test_scores_about_a_threshold_are_important_or_not(self, sample, palette):
        fig = regions(pooled(sample, against=None), threshold=1.5, palette=palette)
        assert "important: 3" in legend(fig)
        assert "threshold 1.5" in legend(fig)
        assert "mean score of a region: smoothed" in " ".join(chart_of(fig).get_xlabel().split())
        patches = [to_rgb(patch.get_facecolor()) for patch in fig.legends[0].get_patches()]
        colours = PALETTES[palette]
        assert patches == [to_rgb(c) for c in (colours.important, colours.undecided, colours.unimportant)]

    def test_signed_scores_are_positive_or_negative(self, sample):
        signed = dataclasses.replace(
            sample, values=sample.values - 1, vanilla=sample.vanilla - 1, provenance={"signed": True}
        )
        fig = regions(pooled(signed, against=None), pixels=signed)
        assert {"positive: 3", "negative: 2"} <= set(legend(fig))
        assert map_of(fig).get_title().startswith("positive: 3 of 20 regions")
        assert any(text.startswith("positive ") for text in legend(fig, 1))

    def test_flips_make_the_marks_faint_and_the_title_says_so(self, sample):
        flipped = dataclasses.replace(
            sample, scores=np.array([[1.0, 0.0]]), predictions=(np.arange(30) < 9).astype(int)[:, None]
        )
        fig = regions(pooled(flipped))
        assert "The noise changed the prediction in 30% of the noisy copies" in fig.get_suptitle()
        assert {patch.get_alpha() for patch in chart_of(fig).patches} == {0.25}
        pale, full = painted(fig), painted(regions(pooled(flipped), flips_from=0.5))
        where = HIGH[0] == LABELS
        assert np.ptp(pale[where], axis=-1).mean() < np.ptp(full[where], axis=-1).mean() / 2

    @pytest.mark.slow
    def test_too_few_samples_leave_outlines_and_a_note(self):
        few = make(n=4)
        fig = regions(pooled(few), pixels=few, correction="holm", title="few")
        assert_everything_fits(fig)
        assert map_of(fig).get_title() == "20 regions\n"
        assert "too few samples for `alpha`=0.05 (holm over 20" in said(fig)
        assert "no error bars: 4 samples are too few, 95% needs 6" in said(fig)
        assert np.ptp(painted(fig), axis=-1).max() < 1e-9  # grey
        assert len(fig.legends) == 1
        notes = " ".join(" ".join(text.get_text().split()) for ax in fig.axes for text in ax.texts)
        assert "`alpha`=0.05 (each side): got 4, at least 5 are needed" in notes

    def test_nothing_stands_out(self):
        flat = make(high=(), low=())
        still = dataclasses.replace(flat, values=0 * flat.values, vanilla=0 * flat.vanilla)
        fig = regions(pooled(still))
        assert fig.get_suptitle().splitlines()[-1].startswith("No region stands out")
        assert "undecided: 20" in legend(fig)


class TestWhere:
    def test_the_largest_are_charted_and_the_rest_counted(self):
        many = LABELS * 2 + (np.arange(200)[None, :] // 20) % 2  # 40 regions
        one = pooled(make(labels=many, high=(0, 5, 9), low=(12,)), masks=many)
        fig = regions(one)
        scores = one.smoothed()[0]
        largest = np.argsort(-np.abs(scores))[:20]
        shown = [int(row.split()[2]) for row in rows(fig)]
        assert shown == sorted(largest.tolist(), key=lambda i: -scores[i])
        assert len(letters(fig)) == 20
        assert "not shown: 20 regions, their scores at most" in said(fig)

    def test_overlapping_masks_have_coloured_outlines_and_no_fill_where_they_overlap(self, sample):
        masks = np.zeros((3, *SHAPE), bool)
        masks[0, :80, :80], masks[1, 40:120, 40:120], masks[2, 130:, 130:] = True, True, True
        fig = regions(pooled(sample, masks=masks), correction="holm")
        assert np.ptp(painted(fig)[60, 60]) < 1e-9
        assert np.ptp(painted(fig)[10, 10]) > 0.01 or np.ptp(painted(fig)[110, 110]) > 0.01
        covered = masks.sum(axis=0)
        assert f"in no region: {(covered == 0).mean():.0%}" in legend(fig)
        assert f"in several regions, not coloured: {(covered == 2).mean():.0%}" in legend(fig)
        assert painted(fig)[125, 10].min() > 0.75  # pale
        colours = {to_rgb(c.get_color()[0]) for c in map_of(fig).collections if len(c.get_segments())}
        kinds = {mark: colour for _, mark, colour in PALETTES["colourblind"].of_marks({1: "more", 0: "", -1: ""})}
        marks = pooled(sample, masks=masks).significance_map(correction="holm")[0]
        assert {to_rgb(kinds[int(mark)]) for mark in marks} <= colours
        for row, column in letters(fig).values():
            assert covered[row, column] == 1

    def test_a_letter_of_a_region_inside_another_lies_in_both(self, sample):
        masks = np.zeros((2, *SHAPE), bool)
        masks[0, :80], masks[1, 10:30, 10:30] = True, True
        places = set(letters(regions(pooled(sample, masks=masks))).values())
        assert {bool(masks[1][place]) for place in places} == {True, False}

    def test_the_region_that_is_compared_with_is_outlined(self, sample):
        fig = regions(pooled(sample, against=LABELS == 4))
        assert "the other region" in legend(fig)
        assert "more than the other region: 3" in legend(fig)
        segments = map_of(fig).collections[-1].get_segments()
        assert np.concatenate(segments).min(axis=0).tolist() == [159.5, -0.5]

    @pytest.mark.parametrize("labels", [LABELS, np.where(LABELS == 4, -1, LABELS % 4)])
    def test_maps_that_are_smaller_than_the_picture(self, labels):
        coarse = np.array(labels[::40, ::40])
        one = make(labels=coarse, high=(1,), low=(), inputs=np.random.default_rng(0).random((1, 3, 160, 200)))
        fig = regions(pooled(one, masks=coarse), pixels=one)
        assert painted(fig).shape == (160, 200, 3)
        for letter, (row, column) in letters(fig).items():
            name = next(text for text in rows(fig) if text.startswith(letter)).split()[2]
            assert coarse[row // 40, column // 40] == int(name)
        assert ("in no region: 5%" in legend(fig)) == (-1 in coarse)

    def test_without_a_picture_cells_are_whole(self):
        coarse = np.arange(12).reshape(3, 4)
        one = make(labels=coarse, inputs=["a text"])
        fig = regions(pooled(one, masks=coarse))
        assert painted(fig).shape[:2] == (120, 160)
        assert "no picture" in panels(fig)
        again = regions(pooled(one, masks=coarse), picture=np.full((300, 400, 3), 0.5))
        assert painted(again).shape[:2] == (300, 400)

    def test_each_input_has_its_own_regions(self):
        two = make(batch=2)
        turned = LABELS[::-1].copy()
        one = two.over(metfa.Regions([LABELS, turned], NAMES, against="rest"))
        fig = regions(one, index=1)
        order = np.argsort(-one.smoothed()[1])
        for letter, place in letters(fig).items():
            assert turned[place] == order["ABCDEFGHIJKLMNOPQRST".index(letter)]
        assert fig.get_suptitle().startswith("input 1 of 2")


class TestPixels:
    def test_maps_of_the_pixels_stand_beside(self, sample):
        fig = regions(pooled(sample), pixels=sample, alpha=0.01, correction="holm", title="with pixels")
        assert {"picture", "smoothed", "significance"} <= set(panels(fig))
        marks = sample.significance_map(alpha=0.01)[0]
        assert f"important {(marks == 1).mean():.1%}" in legend(fig, 1)
        assert said(fig, 1).endswith("(alpha 0.01 a side, uncorrected; 32,000 pixels)")
        assert "alpha 0.01 a side, holm" in said(fig)
        own = dataclasses.replace(sample, default_terms=sample.terms(1.5, correction="by"))
        assert "above or below 1.5? (alpha 0.05 a side, by; 32,000 pixels)" in said(
            regions(pooled(sample), pixels=own), 1
        )

    def test_others_are_refused(self, sample):
        with pytest.raises(
            ValueError, match=r"`pixels` must hold the maps \(160, 200\) that were pooled, got \(80, 100\)"
        ):
            regions(pooled(sample), pixels=make(labels=LABELS[::2, ::2]))
        with pytest.raises(ValueError, match="`pixels` must be of the inputs and the classes of `sample`, got others"):
            regions(pooled(sample), pixels=dataclasses.replace(sample, target=(1,)))
        with pytest.raises(TypeError, match="`pixels` must be an AttributionSample"):
            regions(pooled(sample), pixels=sample.values)


LONG = "the cup with all that is inside it, its rim and its handle, as drawn by hand $x_1^{ <b> \x1b[31m"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "with_pixels", "names"),
    [
        ((160, 200), True, [f"{LONG} {i}" for i in range(20)]),
        ((160, 200), False, None),
        ((200, 60), False, [f"{LONG} {i}" for i in range(20)]),
        ((200, 60), True, None),
        ((60, 300), True, [f"{LONG} {i}" for i in range(20)]),
    ],
)
def test_everything_fits(shape, with_pixels, names):
    labels = enlarged(LABELS[::40, ::40], shape)
    one = make(labels=labels)
    fig = regions(pooled(one, masks=labels, names=names), pixels=one if with_pixels else None, title="a $ title")
    assert_everything_fits(fig)
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=40)
    assert buffer.tell() > 10_000


def test_names_of_others_are_plain_text(sample):
    fig = regions(pooled(sample, names=[f"{LONG} {i}" for i in range(20)]))
    assert "\x1b" not in "".join(rows(fig))
    assert all(len(row.splitlines()) == 2 for row in rows(fig))
    assert not chart_of(fig).get_yticklabels()[0].get_parse_math()


def test_two_bars_are_not_as_thick_as_the_picture(sample):
    fig = regions(pooled(sample, masks=LABELS // 10))
    low, high = chart_of(fig).get_ylim()
    assert low - high == pytest.approx(8.2)


class TestChoice:
    @pytest.mark.slow
    def test_a_pooled_sample_of_pictures_is_drawn_with_its_regions(self, sample):
        assert drawing_of(pooled(sample)) is regions
        assert drawing_of(sample) is figure
        assert map_of(pooled(sample).plot(correction="holm")).get_title().startswith("more than the rest: 3")
        assert "<img" in pooled(make(n=8))._repr_html_()

    def test_others_are_bars_with_the_words_of_regions(self):
        inputs = np.array([[3.0, 2.0, 1.0, 0.5, 0.2, 0.1]])
        table = metfa.explain(lambda x, target: x**2, inputs, 0, noise=metfa.noise.Uniform(0.05), n_samples=20, rng=0)
        of_variables = table.over(metfa.Regions(np.array([0, 0, 1, 2, 2, 2]), ["a", "b", "c"], against="rest"))
        assert drawing_of(of_variables) is bars
        fig = of_variables.plot(max_features=2)
        assert {"more than the rest: 1", "less than the rest: 2"} <= set(legend(fig))
        about = " ".join(fig.axes[0].get_xlabel().split())
        assert "mean score of a region less that of the rest: smoothed over 20 samples" in about
        assert "not shown: 1 region, its score at most" in about
        assert (
            "does a region get more than the rest, or less than the rest, by its median difference? (alpha 0.05 a "
            "side, uncorrected; 3 regions)" in said(fig)
        )
        one_each = table.over(metfa.Regions(np.arange(6)))  # as many as the input has numbers: they are not its values
        assert not any("=" in label.get_text() for label in one_each.plot().axes[0].get_yticklabels())

    @pytest.mark.parametrize(
        ("how", "words"), [("sum", "sum of the scores of a region"), ("max", "maximum of a region")]
    )
    def test_the_chart_says_how_regions_were_pooled(self, sample, how, words):
        one = sample.over(metfa.Regions(LABELS, how=how))
        assert words in " ".join(chart_of(regions(one, threshold=1)).get_xlabel().split())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda s: regions(s), ValueError, r"must hold regions of maps .* got single features: write `sample.over"),
        (lambda s: regions(pooled(s), index=1), ValueError, r"`index` must lie in 0\.\.0, got 1"),
        (
            lambda s: regions(pooled(s), palette="rainbow"),
            ValueError,
            "`palette` must be one of 'colourblind', 'paper'",
        ),
        (lambda s: regions(pooled(s), alpha=2), ValueError, "`alpha` must lie between 0 and 0.5, got 2"),
        (
            lambda s: regions(pooled(s), picture=np.zeros((9, 9))),
            ValueError,
            r"\(160, 200, 3\), like the maps, or larger",
        ),
        (lambda s: regions(pooled(s), picture=np.full(SHAPE, 255)), ValueError, "divide 8-bit pixels by 255"),
        (lambda s: regions(3), TypeError, "`sample` must be an AttributionSample"),
    ],
)
def test_bad_arguments_are_errors(sample, change, error, message):
    with pytest.raises(error, match=message):
        change(sample)


def test_regions_of_volumes_and_lines_are_no_picture():
    line = metfa.explain(lambda x, target: x**2, np.ones((1, 6)), 0, noise=metfa.noise.Uniform(0.2), n_samples=9, rng=0)
    with pytest.raises(ValueError, match=r"got regions of maps \(6,\)"):
        regions(line.over(np.array([0, 0, 0, 1, 1, 1])))


class TestOutlines:
    def test_they_enclose_the_mask(self):
        mask = np.zeros((20, 30), bool)
        mask[5:10, 8:20] = True
        (line,) = outline(mask)
        assert line.min(axis=0).tolist() == [7.5, 4.5]
        assert line.max(axis=0).tolist() == [19.5, 9.5]
        assert line[0].tolist() == line[-1].tolist()

    def test_holes_and_parts_have_lines_of_their_own(self):
        mask = np.zeros((20, 30), bool)
        mask[2:12, 2:12], mask[5:8, 5:8], mask[15:, 20:] = True, False, True
        assert len(outline(mask)) == 3

    def test_inner_points_lie_inside(self):
        rng = np.random.default_rng(0)
        for _ in range(30):
            mask = rng.random((9, 11)) < 0.2
            mask[4, 4] = True
            assert mask[inner_point(mask)]
        ring = np.ones((21, 21), bool)
        ring[4:, 4:] = False
        assert ring[inner_point(ring)]
        square = np.zeros((40, 40), bool)
        square[3:14, 20:31] = True
        assert inner_point(square) == (8, 25)

    def test_enlarged_gives_each_place_its_cell(self):
        cells = np.arange(6).reshape(2, 3)
        np.testing.assert_array_equal(enlarged(cells, (4, 9)), np.kron(cells, np.ones((2, 3), int)))
        np.testing.assert_array_equal(enlarged(cells, (2, 3)), cells)
