"""What changed in many inputs: one family, in words, as JSON, and how often an unchanged set raises an alarm."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

import metfa
from metfa.results.changed_inputs import changes_in
from metfa.results.differences import difference_of
from metfa.results.equivalence import changed_together

PLAIN = metfa.explain(lambda inputs, target: inputs, np.ones((1, 4)), 0, noise=metfa.noise.Gaussian(0.1), rng=0)


def compared(differences, scores=(None, None), **made):
    """A comparison of one input with these differences, (n, features)."""
    n, features = differences.shape
    before = replace(
        PLAIN,
        values=np.zeros((n, 1, features)),
        vanilla=np.zeros((1, features)),
        inputs=np.zeros((1, features)),
        sample_ids=tuple(range(n)),
        scores=scores[0],
    )
    after = replace(before, values=differences[:, None], scores=scores[1])
    before, after = (replace(one, provenance={**one.provenance, "looks": [], **made}) for one in (before, after))
    return difference_of(before, after).with_unit(1e-9)


def drawn(medians=0.0, spread=1.0, n=30, features=4, seed=0):
    return np.random.default_rng(seed).normal(medians, spread, (n, features))


def unchanged(n=30, features=4, seed=0):
    return compared(drawn(n=n, features=features, seed=seed))


def twenty(shift=3.0):
    """Twenty inputs, of which one has a planted change of two features, one in each direction."""
    found = {f"{i:02d}.png": unchanged(features=3 + i % 3, seed=i) for i in range(20)}
    planted = drawn(features=5)
    planted[:, 1] += shift
    planted[:, 4] -= shift
    found["13.png"] = compared(planted)
    return found


def test_a_planted_change_in_one_of_twenty_inputs_is_named_and_no_other():
    differences = twenty()
    changes = changes_in(differences)
    assert changes
    assert changes.changed_inputs == ("13.png",)
    assert [(one.feature, one.direction) for one in changes.changes] == [
        ("feature 1", "more than before"),
        ("feature 4", "less than before"),
    ]
    assert changes.family == sum(3 + i % 3 for i in range(20)) + 5 - (3 + 13 % 3)
    for one, sign in zip(changes.changes, (1, -1), strict=True):
        values = differences["13.png"].values[:, 0, int(one.feature[-1])]
        assert one.difference == np.median(values)
        ranks = metfa.stats.median_ranks(30, 0.95, n_features=changes.family)
        assert one.interval == (np.sort(values)[ranks.low - 1], np.sort(values)[ranks.high - 1])
        assert sign * one.difference > 0


def test_marks_are_those_of_one_batch_with_all_inputs():
    parts = [drawn(np.linspace(-1, 1, 6), n=25, features=6, seed=seed) for seed in range(3)]
    marks, _ = changed_together([compared(part) for part in parts], 0.1, None, None)
    joined = compared(np.concatenate(parts, axis=1)).changed(0.1)
    assert np.array_equal(np.concatenate([mark[0] for mark in marks]), joined[0])


def test_words_say_what_was_found_and_what_is_promised():
    text = str(changes_in(twenty(), 0.5))
    assert "changed:          2 of 80 features of 20 inputs changed by more than 0.5, in 13.png\n" in text
    assert "13.png, feature 1: +" in text
    assert "any feature is named falsely with probability at most 5% (holm over all 80 together, both sides" in text
    assert "median differences are shown to lie within 0.5, each falsely with probability at most 5%" in text
    nothing = str(changes_in({"a": unchanged()}))
    assert "no change is shown in 4 features of 1 input; this does not mean that nothing has changed" in nothing
    assert "unchanged" not in nothing
    assert "the same" not in nothing.replace("both sides", "")
    assert "shown to lie within" not in nothing


def test_what_lies_within_is_counted_as_unchanged_counts_it():
    differences = {"a": compared(drawn(0, 0.01, features=5)), "b": compared(drawn(1, 0.01, features=3))}
    changes = changes_in(differences, 0.5)
    assert changes.within == 5 == sum(one.unchanged(0.5).sum() for one in differences.values())
    assert changes.number == 3


def test_equal_samples_and_inputs_without_noise_are_said():
    still = compared(np.ones((30, 2)), unmoved=list(PLAIN.input_names))
    changes = changes_in({"equal": compared(np.zeros((30, 2))), "still": still})
    assert (changes.equal, changes.untested) == (("equal",), ("still",))
    assert not changes
    assert "every sample of equal is the same in both, number by number" in str(changes)
    assert "all samples are the same in still" in str(changes)


def test_another_predicted_class_is_said():
    scores = np.array([[0.1, 0.9]]), np.array([[0.9, 0.1]])
    changes = changes_in({"a": compared(drawn(features=2), scores), "b": unchanged()})
    assert changes.other_predictions == (("a", 1, 0),)
    assert "prediction:       a: class 1 before, class 0 after" in str(changes)
    assert changes.other_targets == ()


def test_another_class_that_was_explained_is_said():
    found = compared(drawn(features=2))
    parts = tuple(replace(part, target=(k,)) for k, part in enumerate(found.pair))
    changes = changes_in({"a": replace(found, pair=parts), "b": unchanged()})
    assert changes.other_targets == (("a", "class 0", "class 1"),)
    assert "explained:        a: class 0 before, class 1 after, so not the same is compared" in str(changes)
    assert changes.as_dict()["other_targets"] == (("a", "class 0", "class 1"),)
    named = [
        replace(one, provenance={**one.provenance, "class_names": [f"of {k}"]}) for k, one in enumerate(found.pair)
    ]
    assert changes_in({"a": replace(found, pair=tuple(named))}).other_targets == ()  # the class is the same
    asked_for = replace(
        found, pair=parts, provenance={**found.provenance, "compared": {**found.provenance["compared"], "word": "for"}}
    )
    assert changes_in({"a": asked_for}).other_targets == ()


@pytest.mark.parametrize(
    ("correction", "said"),
    [
        ("none", "each feature is named falsely with probability at most 5% on each side (no correction over all 80"),
        ("bonferroni", "any feature is named falsely with probability at most 5% (bonferroni"),
        (
            "bh",
            "at most 5% on average are false, and if nothing changed, anything is named with probability at most 5%,",
        ),
        ("by", "anything is named with probability at most 5% (by over"),
    ],
)
def test_each_correction_says_what_it_promises(correction, said):
    assert said in str(changes_in(twenty(), correction=correction))


def test_an_interval_that_holds_0_beside_a_mark_is_explained():
    """Holm goes on at milder levels after the first marks; the intervals hold together and stay as wide as for all."""
    values = drawn([0.9, 3, 3, 3, 3, 3, 3, 3], n=17, features=8)
    values[:, 0] = np.abs(values[:, 0])
    values[:3, 0] = -0.1
    changes = changes_in({"a": compared(values)})
    assert [change.interval[0] < 0 for change in changes.changes] == [True, *[False] * 7]
    said = "they have a level of their own, 95% of all 8 together, so that one may hold 0 although the change is marked"
    assert f"intervals:        {said}: 1 of 8 here\n" in str(changes)
    assert json.loads(json.dumps(changes.as_dict()))["about_intervals"] == f"{said}: 1 of 8 here"
    shifted = changes_in({"a": compared(-0.5 - values)}, 0.5)
    assert "one may hold 0.5 or -0.5 although the change is marked: 1 of 8 here\n" in str(shifted)
    assert changes_in({"a": unchanged()}).as_dict()["about_intervals"] is None


def test_repeated_names_have_their_places():
    values = compared(drawn(3.0, features=3))
    words = replace(values, feature_names=("a", "dull", "a"))
    found = [change.feature for change in changes_in({"text": words}).changes]
    assert found == ["a (feature 1 of 3)", "dull", "a (feature 3 of 3)"]


def test_differences_that_count_as_rounding_are_counted():
    values = drawn(3.0, 0.1, features=3)
    values[:, 1] = drawn(0, 1e-4, features=1)[:, 0]
    one, still = compared(values), compared(values, unmoved=list(PLAIN.input_names))
    changes = changes_in({"a": one.with_unit(250.0), "still": still.with_unit(250.0)})
    assert (changes.zone, changes.near_zero, changes.number) == ((0.025, 0.025), 1, 2)
    assert "differences within 0.025 of 0 count as rounding: most samples of 1 of 6 features" in str(changes)
    assert json.loads(json.dumps(changes.as_dict()))["near_zero"] == 1
    several = changes_in({"a": one.with_unit(250.0), "b": one.with_unit(1e6)})
    assert (several.zone, several.near_zero, several.number) == ((0.025, 100), 4, 2)
    assert "differences within 0.025 to 1e+02 of 0 (by input) count as rounding" in str(several)
    with_delta = changes_in({"a": one.with_unit(250.0)}, 0.5)
    assert (with_delta.zone, with_delta.near_zero) == (None, None)
    assert "rounding" not in str(with_delta)


def test_many_changes_are_counted_and_the_largest_named():
    size = np.linspace(1, 2, 150)
    changes = changes_in({"a": compared(drawn(size, 0.001, features=150))})
    text = str(changes)
    assert (changes.number, len(changes.changes)) == (150, 150)
    assert text.count("a, feature") == 100
    assert "a, feature 149" in text
    assert "a, feature 1:" not in text
    assert "... and 50 more, the smaller ones" in text


def test_json_has_all_of_it():
    changes = changes_in(twenty(), 0.5)
    read = json.loads(json.dumps(changes.as_dict(), allow_nan=False))
    assert read["changed"] is True
    assert (read["delta"], read["alpha"], read["correction"], read["family"]) == (0.5, 0.05, "holm", 80)
    assert [one["input"] for one in read["changes"]] == ["13.png", "13.png"]
    assert read["changes"][0]["interval"] == list(changes.changes[0].interval)
    assert read["before"]["versions"]["metfa"]
    assert read["n_samples"] == 30


def test_too_few_samples_name_the_least_number():
    few = {str(i): unchanged(n=10) for i in range(5)}
    with pytest.raises(
        metfa.TooFewSamplesError, match=r"holm over 20 differences, both sides.*got 10, at least 11 are"
    ):
        changes_in(few, alpha=0.02)
    assert changes_in({str(i): unchanged(n=11) for i in range(5)}, alpha=0.02).family == 20


def test_other_mistakes():
    with pytest.raises(ValueError, match="`differences` is empty"):
        changes_in({})
    with pytest.raises(ValueError, match="all results must have as many samples, got 20, 30"):
        changes_in({"a": unchanged(20), "b": unchanged(30)})
    with pytest.raises(ValueError, match="`delta`"):
        changes_in({"a": unchanged()}, -1)
    with pytest.raises(ValueError, match="`confidence_level`"):
        changes_in({"a": unchanged()}, confidence_level=1.5)
    with pytest.raises(ValueError, match="these are scores"):
        changes_in({"a": PLAIN})


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 0.25])
def test_unchanged_sets_raise_an_alarm_in_at_most_alpha_of_cases(delta):
    """Over sets of two inputs whose medians lie at delta, or at minus it, the worst case."""
    sets, alpha, rng = 400, 0.1, np.random.default_rng(1)
    samples = [compared(np.ones((15, 10))) for _ in range(2)]
    alarms = 0
    for _ in range(sets):
        found = [replace(one, values=rng.normal(rng.choice([-delta, delta], 10), 1, (15, 1, 10))) for one in samples]
        marks, _ = changed_together(found, delta, alpha, None)
        alarms += any(mark.any() for mark in marks)
    assert alarms <= scipy.stats.binom.ppf(0.999, sets, alpha)
    assert alarms > 0.1 * alpha * sets  # the level is used
