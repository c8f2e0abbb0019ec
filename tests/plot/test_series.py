"""Figures of series: what the axes say, which steps are shaded in which colour, and which kind of map is drawn how."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex

import metfa
from metfa import regions
from metfa.plot import PALETTES, Image, Series, Volume, _series, drawing_of, series
from metfa.results.sample import AttributionSample

N, LENGTH = 20, 60
IMPORTANT = slice(20, 30)
LEADS = ("I", "II", "III")


def made(shape=(LENGTH,), inputs=(3, LENGTH), n=N, signed=False, seed=0, **fields):
    """Scores are high at the important steps (of the last channel), and low elsewhere."""
    rng = np.random.default_rng(seed)
    values = 0.2 * rng.random((n, 1, *shape))
    last = values if len(shape) == 1 else values[:, :, -1]
    last[..., IMPORTANT] += 0.8
    values = values - 0.1 if signed else values
    given = {
        "values": values.astype(np.float32),
        "inputs": None if inputs is None else rng.normal(size=(1, *inputs)),
        "target": (0,),
        "vanilla": values[0].astype(np.float32),
        "scores": None,
        "predictions": None,
        "sample_ids": tuple(range(n)),
        "input_names": ("a",),
    }
    return AttributionSample(**{**given, **fields})


def shaded(ax):
    """First and last time of each shaded piece, by colour; the strip below apart."""
    found = {}
    for pieces in ax.collections:
        if pieces.get_gid() is None and pieces.get_transform() is not None and hasattr(pieces, "get_paths"):
            for path in pieces.get_paths():
                (left, bottom), (right, top) = path.get_extents().min, path.get_extents().max
                if bottom == 0 and top == 1:
                    found.setdefault(to_hex(pieces.get_facecolor()[0][:3]), []).append((left, right))
    return found


def texts(fig):
    legend = fig.legends[0]
    return " ".join([legend.get_title().get_text(), *(text.get_text() for text in legend.get_texts())])


def test_a_series_of_three_channels():
    fig = made().plot(kind=Series(sampling_rate=100, channels=LEADS), threshold=0.5)
    *signals, score = fig.axes
    assert [ax.get_ylabel() for ax in signals] == list(LEADS)
    assert [len(ax.lines) for ax in signals] == [1, 1, 1]
    assert signals[0].lines[0].get_ydata().shape == (LENGTH,)
    assert score.get_xlabel() == "time (s)"
    assert score.get_xlim() == pytest.approx((-0.005, 0.595))
    assert score.get_ylabel() == "attribution score"
    colours = PALETTES["colourblind"]
    for ax in fig.axes:
        assert shaded(ax)[colours.important] == [pytest.approx((0.195, 0.295))]
        assert shaded(ax)[colours.unimportant] == [pytest.approx((-0.005, 0.195)), pytest.approx((0.295, 0.595))]
    assert {line.get_label() for line in score.lines if not line.get_label().startswith("_")} == {
        "vanilla: one explanation, no noise",
        "smoothed over 20 samples, 5 left out on each side",
        "threshold 0.5",
    }
    said = texts(fig)
    assert "is the median of a step above or below 0.5?" in said
    assert "important 16.7%" in said
    assert "interval of the median" in said


def test_the_band_is_the_interval():
    sample = made()
    score = sample.plot().axes[-1]
    interval = sample.confidence_interval()
    (band,) = [one for one in score.collections if one.get_label().endswith("interval of the median")]
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(interval.low.min())
    assert heights.max() == pytest.approx(interval.high.max())


def test_scores_of_each_channel_stand_below_it():
    fig = made((3, LENGTH)).plot(kind=Series(channels=LEADS), threshold=0.5)
    assert [ax.get_ylabel() for ax in fig.axes] == ["I", "score", "II", "score", "III", "score"]
    amber = PALETTES["colourblind"].important
    assert [amber in shaded(ax) for ax in fig.axes] == [False] * 4 + [True] * 2
    assert len({ax.get_ylim() for ax in fig.axes[1::2]}) == 1
    assert fig.axes[-1].get_xlabel() == "step"
    assert "median of a point" in texts(fig)


def test_time_may_come_first():
    late = made((LENGTH,), (LENGTH, 3)).plot(kind=Series(axis=0, channels=LEADS))
    assert [ax.get_ylabel() for ax in late.axes[:3]] == list(LEADS)
    both = made((3, LENGTH))
    turned = {"values": both.values.swapaxes(2, 3), "vanilla": both.vanilla.swapaxes(1, 2)}
    turned = replace(both, inputs=both.inputs.swapaxes(1, 2), **turned)
    first, second = both.plot(kind=Series(), threshold=0.5), turned.plot(kind=Series(axis=0), threshold=0.5)
    for one, other in zip(first.axes, second.axes, strict=True):
        assert shaded(one) == shaded(other)
        np.testing.assert_array_equal(one.lines[0].get_ydata(), other.lines[0].get_ydata())


def test_windows_are_shaded_as_a_whole():
    sample = made()
    fig = sample.over(regions.windows(sample, 15), against="rest").plot(correction="holm")
    colours = PALETTES["colourblind"]
    assert shaded(fig.axes[0])[colours.important] == [(14.5, 29.5)]  # steps 15-29
    assert shaded(fig.axes[0])[colours.unimportant] == [(-0.5, 14.5), (29.5, 59.5)]
    assert "more than the rest" in texts(fig)


def test_uneven_times_and_strange_texts():
    times = np.cumsum(np.linspace(1, 2, LENGTH))
    kind = Series(times=times, unit="$d$", channels=["$\\frac", "II", "x" * 50])
    fig = made().plot(kind=kind)
    assert fig.axes[-1].get_xlabel() == "time ($d$)"
    assert fig.axes[0].get_ylabel() == "$\\frac"
    fig.canvas.draw()
    np.testing.assert_array_equal(fig.axes[0].lines[0].get_xdata(), times)


def test_of_many_channels_some_are_drawn_and_the_rest_is_counted(monkeypatch):
    monkeypatch.setattr(_series, "MOST_CHANNELS", 1)
    fig = made((3, LENGTH), (3, LENGTH)).plot(kind=Series(), threshold=0.5)
    assert [ax.get_ylabel() for ax in fig.axes] == ["channel 2", "score"]  # the only important one
    assert "not shown: 120 points, their scores at most 0.1" in texts(fig)
    assert "; 120 unimportant" in texts(fig)
    fig = made().plot()
    assert [ax.get_ylabel() for ax in fig.axes] == ["channel 0", "attribution score"]
    assert "not shown: the last 2 channels" in texts(fig)


def test_without_a_signal_and_with_too_few_samples():
    fig = made(n=3).plot()
    assert len(fig.axes) == 4
    assert "no interval bands: 3 samples are too few" in texts(fig)
    assert not any(shaded(ax) for ax in fig.axes)
    rows = replace(made(inputs=None), inputs=np.zeros((1, 4)))
    assert len(rows.plot(kind=Series(), threshold=0.5).axes) == 1
    population = metfa.explain(
        lambda x, target: np.abs(x[:, 0]),
        np.random.default_rng(0).normal(size=(12, 2, 30)),
        0,
        noise=metfa.noise.Uniform(0.1),
        n_samples=3,
        rng=0,
    ).across_inputs()
    assert len(population.plot(threshold=0.5).axes) == 1


def test_differences_show_both_parts():
    inputs = np.random.default_rng(0).normal(size=(1, 3, 30))
    settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 12, "rng": 0}
    before, after = (metfa.explain(lambda x, target, k=k: k * x[:, 0], inputs, 0, **settings) for k in (1, 2))
    found = metfa.compare(before, after)
    *signals, parts, score = found.plot().axes
    assert [len(ax.lines) for ax in signals] == [1] * 3
    assert [line.get_label().partition(":")[0] for line in parts.lines[:2]] == ["before", "after"]
    assert "after minus before" in score.get_ylabel().replace("\n", " ")


def test_which_figure_is_drawn():
    assert drawing_of(made()).func is series
    assert drawing_of(made(inputs=(LENGTH,))) is metfa.plot.bars  # columns of a table
    assert drawing_of(made(inputs=(LENGTH,)), Series()).func is series
    assert drawing_of(made((12, 40), (3, 12, 40))) is metfa.plot.figure
    assert drawing_of(made((20, 40), (20, 40))) is metfa.plot.figure
    assert drawing_of(made((2, 4, 40), (1, 2, 4, 40))).func is metfa.plot.volume
    assert drawing_of(made((3, 4, 40), (3, 4, 40)), Volume()).func is metfa.plot.volume


@pytest.mark.parametrize(
    ("shape", "inputs", "said", "remedies"),
    [
        ((3, 60), (3, 60), "a series of 3 channels", [Series(), Image()]),
        ((3,), (3, 3), "time may be their last axis", [Series(), Series(axis=0)]),
        ((3, 4, 4), (3, 4, 4), "a volume of 3 slices", [Volume()]),
        ((2, 3, 4, 4), (2, 3, 4, 4), "heatmap", []),
    ],
)
def test_what_may_be_two_things_is_refused_and_the_advice_works(shape, inputs, said, remedies):
    sample = made(shape, inputs)
    with pytest.raises(ValueError, match=said) as error:
        sample.plot()
    for kind in remedies:
        settings = "axis=0" if isinstance(kind, Series) and kind.axis == 0 else ""
        assert f"kind=metfa.plot.{type(kind).__name__}({settings})" in str(error.value)
        assert sample.plot(kind=kind, threshold=0.1).axes


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: Series(sampling_rate=0), ValueError, "`sampling_rate` must be finite and above 0"),
        (lambda: Series(sampling_rate=1, times=[0, 1]), ValueError, "only one of the two"),
        (lambda: Series(times=[1, 0]), ValueError, "`times` must be finite and ascend"),
        (lambda: Series(times=np.array(["2020"], "datetime64[Y]")), (TypeError, ValueError), "`times`"),
        (lambda: Series(unit="s"), ValueError, "`unit` is that of"),
        (lambda: Series(axis=1), ValueError, "`axis` must be -1"),
        (lambda: Series(channels="I"), TypeError, "`channels`"),
        (lambda: Image(rows=("Hz", 1, 1)), ValueError, "two different values"),
        (lambda: Image(columns=(0, 1)), ValueError, "`columns` must be a label"),
        (lambda: Volume(spacing=(1, 2)), ValueError, "`spacing` must be three numbers"),
        (lambda: Volume(at=(1, 2)), ValueError, "`at` must be three integers"),
        (lambda: Volume(axis=3), ValueError, "`axis` must be 0"),
        (lambda: made().plot(kind=Series), TypeError, "must be an object, got the class Series"),
        (lambda: made().plot(kind="series"), TypeError, "`kind` must be a metfa.plot.Series"),
        (lambda: made().plot(kind=Series(times=[0, 1])), ValueError, "for each of the 60 steps, got 2"),
        (lambda: made().plot(kind=Series(channels=["I"])), ValueError, "for each of the 3 channels, got 1"),
        (lambda: made().plot(kind=Series(axis=0)), ValueError, r"write `Series\(axis=-1\)`"),
        (lambda: made((4, 9), (3, 4, 9)).plot(kind=Volume()), ValueError, "a Volume has maps"),
        (lambda: series(made(), Image()), TypeError, "`kind` must be a metfa.plot.Series, got Image"),
    ],
)
def test_bad_arguments(make, error, said):
    with pytest.raises(error, match=said):
        make()


def test_rows_and_columns_of_a_spectrogram_have_values():
    sample = made((12, LENGTH), (1, 12, LENGTH))
    fig = sample.plot(kind=Image(rows=("frequency (Hz)", 0, 5500), columns=("time (s)", 0, 5.9)))
    first = fig.axes[0]
    assert (first.get_ylabel(), fig.axes[3].get_xlabel()) == ("frequency (Hz)", "time (s)")
    assert first.get_ylim() == pytest.approx((-250, 5750))  # the first row at the bottom
    assert first.get_xlim() == pytest.approx((-0.05, 5.95))
    left, right, bottom, top = first.images[0].get_extent()
    assert (left, right, bottom, top) == pytest.approx((-0.05, 5.95, 5750, -250))
    regions_of = sample.over(regions.grid(sample, (2, 2)))
    with pytest.raises(ValueError, match="leave `kind` out"):
        regions_of.plot(kind=Image(rows=("frequency (Hz)", 0, 5500)))
