"""Maps of which nothing stands out: nothing is decided, and every place says so; a residue of rounding has no sign."""

import numpy as np
import pytest

import metfa
from metfa import stats
from metfa._base.warnings import DegenerateAttributionsWarning
from metfa.explainers import heatmap
from metfa.results.thresholds import ruled
from metfa.results.units import unit_of

NOISE = metfa.noise.Gaussian(0.1)
STANDS_OUT = np.array([0.1, 0.1, 0.1, 0.1, 0.9])
FLAT = 0.005 + 1e-7 * np.array([1.0, -1.0, 0.5, 0.0, -0.5])
IGNORED = "ignore::metfa._base.warnings.DegenerateAttributionsWarning"


def explained(levels, n_samples=20, explainer=None, **settings):
    """Maps near the `levels` (batch, features) or (features,)."""
    levels = np.atleast_2d(np.asarray(levels, dtype=float))
    explainer = explainer or (lambda inputs, target: inputs)
    noise = lambda x, rng: x * (1 + 1e-6 * rng.normal(size=x.shape))  # noqa: E731
    return metfa.explain(explainer, levels, 0, noise=noise, n_samples=n_samples, rng=0, **settings)


def test_scores_that_hardly_differ_are_undecided():
    sample = explained(FLAT)
    with pytest.warns(DegenerateAttributionsWarning, match="no feature stands out: the medians differ by"):
        marks = sample.significance_map()
    assert not marks.any()
    marks = sample.significance_map(0.005 + 2.5e-8)  # a number may be asked about
    np.testing.assert_array_equal(marks, [[1, -1, 1, -1, -1]])


@pytest.mark.filterwarnings(IGNORED)
def test_every_input_for_itself_and_every_place_says_so():
    sample = explained([STANDS_OUT, FLAT])
    decision = sample.decide(sample.terms())
    assert decision.nothing[0] is None
    assert decision.nothing[1].startswith("the medians differ by 2e-07")
    assert np.isnan(decision.thresholds).ravel().tolist() == [False, True]
    np.testing.assert_array_equal(decision.marks, [[-1, -1, -1, -1, 1], [0, 0, 0, 0, 0]])
    one, other = sample.summary()
    assert (one.nothing, other.nothing) == decision.nothing
    assert "nothing stands out" not in str(one)
    assert f"nothing stands out:   {other.nothing}" in str(other)
    alone = sample.of_input(1)
    assert alone.decide(alone.terms()).question("pixel") == f"no pixel stands out: {other.nothing}"


@pytest.mark.filterwarnings(IGNORED)
def test_noise_alone():
    sample = metfa.explain(
        lambda inputs, target: inputs, np.ones((1, 60)), 0, noise=lambda x, g: g.random(60), n_samples=30, rng=0
    )
    summary = sample.summary()[0]
    assert summary.undecided == 1
    assert "the maps agree only by chance" in summary.nothing


@pytest.mark.filterwarnings(IGNORED)
def test_all_samples_are_asked_also_with_a_split():
    """Few samples may choose the threshold; whether anything stands out is a question to all of them."""
    levels = np.linspace(0, 1, 12)
    sample = metfa.explain(
        lambda inputs, target: inputs, levels[None], 0, noise=lambda x, g: np.abs(x + g.normal(0, 0.5, 12)),
        n_samples=60, rng=0,
    )  # fmt: skip
    assert sample.decide(sample.terms(split=6)).nothing == (None,)
    np.testing.assert_array_equal(sample.threshold(split=6), sample.decide(sample.terms(split=6)).thresholds.ravel())


class TestUnit:
    def test_the_smaller_of_clean_score_and_median(self):
        sample = explained([[1.0, -4.0], [0.5, 2.0]])
        medians = np.abs(sample.median()).max(axis=1)
        assert medians[0] < 4 < 4.001 * medians[0]
        np.testing.assert_array_equal(sample.unit, np.minimum(medians, [4, 2]))
        np.testing.assert_array_equal(sample.terms().unit, sample.unit)
        np.testing.assert_array_equal(sample.of_input(1).terms().unit, sample.unit[1:])

    @pytest.mark.parametrize("n", [1, 2, 5, 20])
    def test_the_largest_median_is_found_among_few(self, n):
        rng = np.random.default_rng(n)
        for law in (rng.normal, rng.standard_cauchy, rng.random):
            for shape in ((2, 5, 40), (2, 30, 40)):  # all medians, and few of many
                samples = law(size=(n, *shape)) * rng.normal(size=(1, *shape))
                large = np.full(shape, 1e9)
                medians = np.abs(np.median(samples, 0)).max(axis=(1, 2))
                np.testing.assert_allclose(unit_of(large, samples), medians, rtol=1e-14)

    def test_a_pole_at_the_clean_input_hides_nothing(self):
        weights = np.linspace(1, 2, 64)
        pole = lambda inputs, target: weights / (np.sqrt(abs(inputs)) + 1e-8)  # noqa: E731
        sample = metfa.explain(pole, np.zeros((1, 64)), 0, noise=NOISE, n_samples=50, rng=0)
        assert sample.vanilla.max() > 1e8 > 1e6 * sample.unit[0]
        assert sample.summary()[0].nothing is None
        assert np.corrcoef(sample.median()[0], weights)[0, 1] > 0.9

    def test_that_the_explainer_says(self):
        class Probabilities:
            unit = 1.0

            def __call__(self, inputs, target):
                return inputs

        assert explained([1.0, -4.0], explainer=Probabilities()).unit == 1.0
        assert explained([1.0, -4.0], explainer=metfa.seeded(Probabilities())).unit == 1.0
        scaled = explained([1.0, -4.0], explainer=heatmap(Probabilities(), channel_axis=None))
        np.testing.assert_array_equal(scaled.unit, [1.0])

        class Wrong(Probabilities):
            unit = "percent"

        with pytest.raises(TypeError, match=r"`explainer\.unit` must be a number, got str"):
            explained([1.0, -4.0], explainer=Wrong())

    @pytest.mark.filterwarnings(IGNORED)
    def test_given(self, tmp_path):
        sample = explained(1e-6 * STANDS_OUT)
        assert sample.significance_map().any()
        in_unit = sample.with_unit(1.0)
        assert "which is 8e-07 of 1, and less than 0.0001" in in_unit.summary()[0].nothing
        assert metfa.load(in_unit.save(tmp_path / "one")).summary()[0].nothing == in_unit.summary()[0].nothing
        assert in_unit.of_input(0).terms().unit == 1.0
        each = explained(1e-6 * np.stack([STANDS_OUT] * 2)).with_unit(np.array([1.0, 1e-6]))
        assert [s.nothing is None for s in each.summary()] == [False, True]
        assert each.of_input(1).summary()[0].nothing is None

    @pytest.mark.parametrize(
        ("unit", "error", "message"),
        [
            ("1", TypeError, "`unit` must be a number, got str"),
            (True, TypeError, "`unit` must be a number, got bool"),
            (-1.0, ValueError, "`unit` must be finite and not negative, got -1.0"),
            (np.inf, ValueError, "`unit` must be finite and not negative, got inf"),
        ],
    )
    def test_bad(self, unit, error, message):
        with pytest.raises(error, match=message):
            explained(STANDS_OUT).with_unit(unit)

    def test_of_another_number_of_inputs(self):
        with pytest.raises(ValueError, match=r"`unit` must be a number or one for each input \(1,\), got shape \(2,\)"):
            explained(STANDS_OUT).with_unit(np.ones(2)).terms()


class TestSigns:
    """About 0 a score that is 0 to rounding speaks for neither side."""

    LEVELS = np.array([0.4, -0.3, 1e-5, -1e-5, 2e-16])  # the idle words of a fit with a ridge, and a residue

    def test_residues_have_no_sign(self):
        sample = explained(self.LEVELS)
        assert sample.signed
        np.testing.assert_array_equal(sample.significance_map(), [[1, -1, 0, 0, 0]])
        np.testing.assert_array_equal(sample.test(0).above, [[20, 0, 0, 0, 0]])
        np.testing.assert_array_equal(sample.test(0).below, [[0, 20, 0, 0, 0]])
        np.testing.assert_array_equal(sample.with_unit(1e-6).significance_map(), [[1, -1, 1, -1, 0]])

    @pytest.mark.parametrize("threshold", [None, 0])
    def test_the_words_say_why(self, threshold):
        sample = explained(np.array([0.4, -0.3, 0.2, -0.5, 0.1] + [-1e-9] * 5))
        assert (sample.values[..., 5:] < 0).all()
        summary = sample.summary(threshold)[0]
        assert (summary.near_zero, summary.undecided) == (5, 0.5)
        assert "no sign:              5 features lie within 5e-05 of 0, which counts as rounding" in str(summary)

    def test_until_counts_likewise(self):
        rule = metfa.Until(undecided=0.5, max_samples=30)
        sample = explained(self.LEVELS, n_samples=rule)
        assert sample.stopping.reason == "max_samples"  # three of five stay undecided, whatever comes
        assert sample.stopping.looks[-1].undecided == (sample.significance_map() == 0).mean() == 0.6

    def test_where_all_are_nothing(self):
        summary = explained(self.LEVELS[:4]).with_unit(1e5).summary()[0]
        assert summary.undecided == 1
        assert summary.nothing == "most scores of each are 0 to rounding"

    def test_other_thresholds_have_no_such_zone(self):
        np.testing.assert_array_equal(explained(self.LEVELS).significance_map(1e-6), [[1, -1, 1, -1, -1]])
        per_feature = np.array([[0.0, 0.0, 0.0, -2e-5, -1.0]])
        np.testing.assert_array_equal(explained(self.LEVELS).significance_map(per_feature), [[1, -1, 0, 1, 1]])


def test_until_ends_where_nothing_can_be_decided():
    with pytest.warns(DegenerateAttributionsWarning):
        sample = explained(FLAT, n_samples=metfa.Until(undecided=0.1))
    assert str(sample.stopping).startswith("16 samples, 2 looks: nothing can be decided, as the rule found no thresh")
    assert sample.summary()[0].nothing.startswith("the medians differ by")


@pytest.mark.filterwarnings(IGNORED)
def test_no_mark_no_false_mark():
    summary = explained(FLAT).summary()[0]
    assert summary.expected_false_marks == 0
    assert "false marks:          no feature is marked, and so none falsely" in str(summary)


def test_a_map_without_contrast_is_not_scaled_up():
    explainer = heatmap(lambda inputs, target: inputs, channel_axis=None)
    with pytest.warns(DegenerateAttributionsWarning, match="20 of 20 maps are constant"):
        sample = explained(FLAT, explainer=explainer)
    assert not sample.values.any()
    assert explained(STANDS_OUT, explainer=explainer).values.max() == 1
    with pytest.warns(DegenerateAttributionsWarning, match="no threshold separates"):
        assert sample.summary()[0].nothing == "all scores are equal"


def test_inputs_of_equal_scores_are_named():
    values = np.abs(np.random.default_rng(0).normal(size=(20, 3, 8))) + np.arange(8) ** 2
    values[:, [0, 2]] = 0.25
    with pytest.warns(DegenerateAttributionsWarning) as caught:
        thresholds, nothing = ruled(stats.jenks_of_medians, values)
    assert [str(one.message) for one in caught] == [
        "no threshold separates the equal values of input 0 (all 0.25) and of 1 other: nothing is decided"
    ]
    assert np.isnan(thresholds).tolist() == [True, False, True]
    assert nothing == ("all scores are equal", None, "all scores are equal")


def test_rules_of_ones_own_are_not_asked():
    decision = (sample := explained(FLAT)).decide(sample.terms(np.mean))
    assert decision.nothing == (None,)
    assert decision.marks.any()


@pytest.mark.parametrize("rule", [len, np.size, lambda values: 2 * values.max()])
def test_a_rule_beside_all_scores_warns(rule):
    with pytest.warns(DegenerateAttributionsWarning, match="outside all scores .*every feature lies on the same side"):
        explained(STANDS_OUT).significance_map(rule)


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        (callable, TypeError, "a threshold rule must return one number, got bool: False"),
        (lambda values: np.inf, ValueError, "a threshold rule must return a finite number, or nan .*, got inf"),
        (lambda values: np.datetime64("2020"), TypeError, "a threshold rule must return one number, got datetime64"),
    ],
)
def test_a_rule_that_returns_no_number_is_refused(rule, error, message):
    with pytest.raises(error, match=message):
        explained(STANDS_OUT).significance_map(rule)


def test_the_natural_break_is_that_of_stats_where_something_stands_out():
    sample = explained(STANDS_OUT)
    assert sample.threshold()[0] == stats.jenks_of_medians(sample.values)
    assert sample.threshold(stats.jenks)[0] == stats.jenks(sample.values)


@pytest.mark.filterwarnings(IGNORED)
@pytest.mark.parametrize("rule", [stats.jenks, stats.jenks_of_medians, stats.jenks_of_means])
def test_every_rule_that_cuts_any_scores_is_asked(rule):
    assert explained(FLAT).decide(metfa.Terms(rule)).nothing[0].startswith("the medians differ by 2e-07")
    assert explained(STANDS_OUT).decide(metfa.Terms(rule)).nothing == (None,)
    signed = explained([0.1, -0.9, 0.9, 0.2])
    with pytest.warns(metfa.SignedAttributionsWarning, match="natural breaks would call strong negative evidence"):
        signed.significance_map(rule)
