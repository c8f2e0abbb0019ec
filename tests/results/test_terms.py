"""Terms of a decision: what holds where nothing is given, what is refused, and terms on file."""

import datetime as dt
import json
from dataclasses import replace

import numpy as np
import pytest

import metfa
from metfa import stats
from metfa._base.warnings import SignedAttributionsWarning
from metfa.results.moments import of_both_signs
from metfa.results.promises import expected_number, promise
from metfa.results.terms import Terms, checked_threshold

NOISE = metfa.noise.Gaussian(0.5)
WEIGHTS = np.linspace(0.2, 3, 12)


def sample_of(weights=WEIGHTS, n_samples=20, first_sample=0):
    inputs = np.array([[0.9], [0.7]]) * np.ones((2, 12))
    return metfa.explain(
        lambda x, target: weights * x**2,
        inputs,
        0,
        noise=NOISE,
        n_samples=n_samples,
        rng=0,
        run=metfa.Run(first_sample=first_sample),
    )


def signed_sample():
    inputs = np.ones((2, 12))
    return metfa.explain(lambda x, target: np.linspace(-1, 1, 12) * x, inputs, 0, noise=NOISE, n_samples=20, rng=0)


def bare(terms):
    """Terms without the unit and the rule of families, which every result has."""
    assert terms.families == "statements"
    return replace(terms, unit=None, families=None)


def stopped(**settings):
    return sample_of(n_samples=metfa.Until(**{"undecided": 0.5, "max_samples": 200, **settings}))


class TestWhatHolds:
    def test_of_scores_of_one_sign(self):
        assert bare(sample_of().terms()) == Terms(stats.jenks_of_medians, 0.05, None, 0) == Terms()

    def test_of_signed_scores(self):
        assert bare(signed_sample().terms()) == Terms(0.0)
        assert bare(signed_sample().terms(stats.jenks, alpha=0.1, correction="bh", split=5)) == Terms(
            stats.jenks, 0.1, "bh", 5
        )

    @pytest.mark.parametrize("threshold", [[0.8, 0.6], 0.7])
    def test_after_until_by_a_number(self, threshold):
        thresholds = np.broadcast_to(threshold, 2).copy()
        found = stopped(threshold=threshold, alpha=0.1, correction="bonferroni")
        assert bare(found.terms()) == Terms(thresholds, 0.1, "bonferroni", 0)
        assert bare(found.of_input(1).terms()) == Terms(thresholds[1:], 0.1, "bonferroni", 0)

    def test_after_until_by_a_rule(self):
        found = stopped()
        assert bare(found.terms()) == Terms(np.array(found.stopping.thresholds), 0.05, "closed-e-bh", 10)
        assert bare(found.terms(1.0)) == Terms(1.0, 0.05, "closed-e-bh", 0)
        assert found.terms(alpha=0.1) == replace(found.terms(), alpha=0.1)
        assert found.terms(correction="none") == replace(found.terms(), correction=None)
        assert bare(found.terms(split=7)) == Terms(stats.jenks_of_medians, 0.05, "closed-e-bh", 7)
        assert bare(found.terms(split=0)) == Terms(stats.jenks_of_medians, 0.05, "closed-e-bh", 0)

    def test_after_until_that_tested_nothing(self):
        found = sample_of(n_samples=metfa.Until(width=2.0, max_samples=50))
        assert bare(found.terms()) == Terms()
        with pytest.raises(ValueError, match=r"`correction` must hold whenever sampling stops, and 'bh' is for"):
            found.terms(correction="bh")

    def test_of_a_result_with_terms_of_its_own(self):
        own = Terms(0.0, 0.1, "bh")
        found = replace(sample_of(), default_terms=own)
        assert bare(found.terms()) == own
        assert bare(found.terms(1.0)) == Terms(1.0, 0.1, "bh")
        by_rule = replace(found, default_terms=Terms(stats.jenks, 0.01, split=4))
        assert bare(by_rule.terms()) == by_rule.default_terms
        assert replace(by_rule, default_terms=Terms(families="both")).terms().families == "both"
        assert bare(by_rule.terms(split=6)) == Terms(stats.jenks, 0.01, split=6)
        assert replace(stopped(), default_terms=own).terms().correction == "closed-e-bh"

    def test_terms_of_its_own_are_cut_and_joined(self):
        own = Terms(np.array([1.0, 2.0]))
        found = replace(sample_of(), default_terms=own)
        assert found.of_input(1).default_terms == Terms(np.array([2.0]))
        more = replace(sample_of(first_sample=20), default_terms=own)
        assert found.concat(more).default_terms == own
        with pytest.raises(ValueError, match="`other` has other `default_terms`: None against Terms"):
            found.concat(sample_of(first_sample=20))

    def test_the_first_samples_alone_give_the_threshold(self):
        found = sample_of()
        first = found.threshold(split=6)
        np.testing.assert_array_equal(found.significance_map(split=6), found.significance_map(first, split=6))

    def test_none_is_no_correction(self):
        assert Terms(correction="none") == Terms()
        assert metfa.Until(undecided=0.1, correction="none") == metfa.Until(undecided=0.1, correction=None)
        found = stopped(correction="none")
        assert found.terms().correction is None
        assert found.terms(correction="e-bh").correction == "e-bh"


class TestSigned:
    def test_a_little_below_zero_is_no_sign(self):
        values = np.linspace(0, 1, 40).reshape(10, 1, 4)
        values[3, 0, 2] = -0.05
        assert of_both_signs(values) is None
        values[3, 0, 2] = -0.0501
        assert of_both_signs(values) == (0, -0.0501, 1.0)

    def test_an_input_keeps_the_sign_of_its_batch(self, tmp_path):
        whole = metfa.explain(
            lambda x, target: x, np.array([[4.0, 6.0], [-5.0, 5.0]]), 0, noise=NOISE, n_samples=20, rng=0
        )
        assert whole.signed
        one = whole.of_input(0)
        assert of_both_signs(one.values) is None
        assert one.signed
        assert metfa.load(one.save(tmp_path / "one")).signed

    def test_what_the_explainer_says_counts(self):
        explainer = Told()
        assert not metfa.explain(explainer, np.ones((1, 3)), 0, noise=NOISE, n_samples=5, rng=0).signed

    def test_natural_breaks_of_signed_scores_warn(self):
        with pytest.warns(SignedAttributionsWarning, match="use the threshold 0 for positive / negative / undecided"):
            signed_sample().significance_map(stats.jenks)


class Told:
    """Scores that happen to lie below 0."""

    signed = False

    def __call__(self, inputs, target):
        return -inputs


class TestErrors:
    @pytest.mark.parametrize(
        ("threshold", "error", "got"),
        [
            ("jenks", TypeError, "the text 'jenks'"),
            (True, TypeError, "bool: True"),
            (np.array([True, False]), TypeError, "ndarray: array"),
            (None, TypeError, "NoneType: None"),
            (dt.date(2026, 1, 1), TypeError, "date: datetime.date"),
            (np.datetime64("2026-01-01"), TypeError, "datetime64"),
            (1j, TypeError, "complex: 1j"),
            ([[1.0], [2.0, 3.0]], TypeError, "list"),
            (float, TypeError, "the class float"),
            (np.nan, ValueError, "nan"),
            (np.inf, ValueError, "inf"),
            ([0.0, -np.inf], ValueError, "-inf"),
        ],
    )
    def test_a_threshold(self, threshold, error, got):
        message = (
            f"`threshold` must be a number or a rule, got {got}.*: write a rule such as metfa.stats.jenks_of_medians "
            "or metfa.stats.jenks, or a"
        )
        for refused in (checked_threshold, Terms):
            with pytest.raises(error, match=message):
                refused(threshold)
        if threshold is not None:
            found, rule = sample_of(), lambda given: metfa.Until(undecided=0.1, threshold=given)
            for refused in (found.significance_map, found.test, found.certified_radius, rule):
                with pytest.raises(error, match=message):
                    refused(threshold)

    def test_a_rule_that_returns_no_number(self):
        with pytest.raises(TypeError, match="a threshold rule must return one number, got list: "):
            sample_of().significance_map(lambda values: [1, 2])

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"alpha": 0.5}, ValueError, "`alpha` must lie between 0 and 0.5, got 0.5"),
            ({"alpha": "0.05"}, TypeError, "`alpha` must be a number, got str"),
            ({"alpha": True}, TypeError, "`alpha` must be a number, got bool"),
            (
                {"correction": "bonferoni"},
                ValueError,
                "`correction` must be .* got 'bonferoni', did you mean 'bonferroni'",
            ),
            ({"correction": 1}, TypeError, "`correction` must be a string or None, got int: 1"),
            ({"split": -1}, ValueError, "`split` must be at least 0, got -1"),
            ({"split": 2.5}, TypeError, "`split` must be an integer, got float: 2.5"),
            ({"split": 20}, ValueError, "`split` must leave samples to test, got 20 of 20"),
            (
                {"threshold": np.ones(3)},
                ValueError,
                r"one for each input \(2,\) or one for each feature \(2, 12\), got shape \(3,\)",
            ),
        ],
    )
    def test_the_rest(self, settings, error, message):
        found = sample_of()
        for refused in (found.terms, found.significance_map, found.certified_radius, found.summary, found.plot):
            with pytest.raises(error, match=message):
                refused(**settings)

    def test_a_number_needs_no_samples(self):
        for found in (signed_sample(), replace(sample_of(), default_terms=Terms(0.0))):
            with pytest.raises(
                ValueError, match=r"`split` is for choosing a threshold, and that .* is 0, a number .*=5"
            ):
                found.significance_map(split=5)
            assert bare(found.terms(split=0)) == Terms(0.0)
            assert bare(found.terms(0.0, split=5)) == Terms(0.0, split=5)


class TestOnFile:
    @pytest.mark.parametrize(
        "terms",
        [
            Terms(0.0),
            Terms(np.array([0.5, 0.25]), 0.1, "e-bh", 3, families="both"),
            Terms(stats.jenks, 0.01, "by", 2, families="statements"),
        ],
    )
    def test_they_come_back(self, terms, tmp_path):
        found = replace(sample_of(), default_terms=terms)
        assert metfa.load(found.save(tmp_path / "saved")).default_terms == terms

    def test_files_from_before_have_none(self, tmp_path):
        folder = sample_of().save(tmp_path / "saved")
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest.pop("default_terms") is None
        (folder / "manifest.json").write_text(json.dumps(manifest))
        assert metfa.load(folder).default_terms is None

    def test_a_rule_of_ones_own_is_refused(self, tmp_path):
        found = replace(sample_of(), default_terms=Terms(np.median))
        with pytest.raises(
            TypeError, match=r"`default_terms` must have a number or one of metfa\.stats\.jenks, jenks_of_medians"
        ):
            found.save(tmp_path / "saved")
        assert not (tmp_path / "saved").exists()

    @pytest.mark.parametrize(
        "change",
        [
            3,
            {"threshold": "median"},
            {"threshold": None},
            {"threshold": [1.0, 2.0, 3.0]},
            {"threshold": True},
            {"alpha": 5},
            {"alpha": "0.05"},
            {"correction": "most"},
            {"families": "some"},
            {"families": ["both"]},
            {"split": -1},
            {"split": 20},
        ],
    )
    def test_damaged_ones_are_refused(self, change, tmp_path):
        folder = replace(sample_of(), default_terms=Terms(0.0)).save(tmp_path / "saved")
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["default_terms"] = change if isinstance(change, int) else manifest["default_terms"] | change
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(ValueError, match=r"manifest\.json is damaged"):
            metfa.load(folder)


def test_terms_are_equal_by_value():
    assert Terms(np.array([1.0, 2.0])) == Terms([1.0, 2.0])
    assert Terms(np.array([1.0, 2.0])) != Terms(np.array([1.0, 3.0]))
    assert Terms(1.0) != Terms(stats.jenks)
    assert Terms(1) == Terms(np.float32(1.0))
    assert Terms(1.0) != 1.0
    with pytest.raises(ValueError, match="read-only"):
        Terms([1.0, 2.0]).threshold[0] = 3.0


def test_every_text_says_that_bh_is_unproven_about_a_threshold_from_the_same_samples():
    assert Terms(correction="bh").unproven
    assert not any(terms.unproven for terms in (Terms(0.0, correction="bh"), Terms(split=5, correction="bh"), Terms()))
    for unproven in (True, False):
        said = promise(Terms(correction="bh"), 10, expected=None, unproven=unproven, kinds={1: "a", -1: "b"})
        assert ("(unproven with a threshold from the same samples)" in said) == unproven


def test_effects_need_names_and_no_other_threshold_makes_them():
    with pytest.raises(ValueError, match="`effects_at` needs `sides`"):
        Terms(0.5, effects_at=0.5)
    named = Terms(0.5, sides=("more", "less"))
    assert not named.of_effects
    assert named.of_differences
    effects = Terms(0.5, sides=("more", "less"), effects_at=0.5)
    assert effects.of_effects
    assert not effects.of_differences
    assert Terms.read(effects.written(), (4, 1, 3)) == effects != named


def test_a_half_of_a_false_mark_is_rounded_up_as_in_the_page():
    assert [expected_number(number) for number in (22.5, 23.5, 22.4, 3256.9, 9.87)] == [
        "23",
        "24",
        "22",
        "3,257",
        "9.9",
    ]
