"""LIME for texts against the lime package: the same copies, and its own."""

import itertools
import math

import numpy as np
import pytest
from lime.lime_text import LimeTextExplainer
from sklearn.metrics import pairwise_distances

from metfa import Called, DegenerateAttributionsWarning
from metfa.text import LEMNA, Occlusion
from metfa.text._deletions import deletions
from metfa.text.lime import LIME
from metfa.text.words import words_of

WORTH = {"moving": 1.5, "good": 0.7, "dull": -1.2, "not": -0.4}
TEXTS = ["a moving film and not dull", "not a good film , dull dull", "good good but dull film really"]


def model(texts):
    rows = [text.split() if isinstance(text, str) else text for text in texts]
    good = 1 / (1 + np.exp(-np.array([sum(WORTH.get(word, 0) for word in row) for row in rows])))
    return np.stack([1 - good, good], axis=1)


def generators(seed=3, n=3):
    return [np.random.default_rng([seed, row]) for row in range(n)]


def closeness_of(kept, kernel_width):
    """Shares of the weights of copies."""
    distances = 100 * (1 - np.sqrt(kept.mean(axis=1)))
    weights = np.exp(-(distances**2) / kernel_width**2 / 2)
    return weights / weights.sum()


@pytest.mark.parametrize("kernel_width", [25, 60])
@pytest.mark.parametrize("target", [0, 1])
def test_equals_the_lime_package_on_the_same_copies(kernel_width, target):
    fits, scores = LIME(model, n_perturbations=60, kernel_width=kernel_width).fit(TEXTS, target, rngs=generators())
    np.testing.assert_allclose(scores, model(TEXTS))
    for text, fit, rng in zip(TEXTS, fits, generators(), strict=True):
        words = words_of(text)
        kept = deletions(len(words), 60, rng)
        labels = model([words.kept(mask) for mask in kept])
        distances = pairwise_distances(kept.astype(float), np.ones((1, len(words))), metric="cosine").ravel() * 100
        base = LimeTextExplainer(kernel_width=kernel_width).base
        intercept, pairs, r2, _ = base.explain_instance_with_data(
            kept.astype(int), labels, distances, target, len(words), feature_selection="none"
        )
        expected = np.array([dict(pairs)[place] for place in range(len(words))])
        signed = fit.coefficients != 0  # the others have their signs from the penalty, see the Notes
        np.testing.assert_allclose(fit.coefficients[signed], expected[signed], atol=1e-10)
        assert np.abs(expected[~signed]).max(initial=0) < 0.005
        assert signed.sum() >= len(words) - 1
        moved = expected[~signed].sum() * (closeness_of(kept, kernel_width) @ kept[:, ~signed].any(axis=1))
        assert fit.intercept == pytest.approx(intercept + moved, abs=1e-10)
        assert fit.r2 == pytest.approx(r2, abs=1e-10)
        assert fit.words == words.words


def test_agrees_with_the_lime_package_on_copies_of_its_own():
    """Standard deviations of a coefficient from run to run are below 0.0005 (ten runs of either)."""
    theirs = LimeTextExplainer(bow=False, split_expression=r"\s+", random_state=0)
    found = theirs.explain_instance(TEXTS[0], model, num_features=6, num_samples=5000).local_exp[1]
    ours, _ = LIME(model, scale=False, rng=0)([TEXTS[0]], 1)
    np.testing.assert_allclose(ours[0], [dict(found)[place] for place in range(6)], atol=0.003)


def by_enumeration(words, values, copies, kernel_width=25):
    """The fit to random copies without a penalty in the limit, one distinct copy after the other."""
    rows, weights = [], []
    for mask in itertools.product([1, 0], repeat=len(words)):
        left_out = len(words) - sum(mask)
        number = 1 if not left_out else (copies - 1) / len(words) / math.comb(len(words), left_out)
        distance = 100 * (1 - math.sqrt(sum(mask) / len(words)))
        rows.append([1, *mask])
        weights.append(number * math.sqrt(math.exp(-(distance**2) / kernel_width**2)))
    root = np.sqrt(weights)
    answers = np.array([values[tuple(row[1:])] for row in rows])
    return np.linalg.lstsq(np.array(rows) * root[:, None], answers * root, rcond=None)[0]


@pytest.mark.parametrize("text", ["dull", "not dull", "good dull moving", "not good moving dull"])
@pytest.mark.parametrize("copies", [40, 5000])
def test_every_copy_of_a_short_text_is_asked(text, copies):
    words = text.split()
    values = {
        mask: model([" ".join(itertools.compress(words, mask))])[0, 1]
        for mask in itertools.product([1, 0], repeat=len(words))
    }
    expected = by_enumeration(words, values, copies)
    (fit,), _ = LIME(model, n_perturbations=copies, rng=0).fit([text], 1)
    np.testing.assert_allclose(fit.coefficients, expected[1:], atol=1e-9)
    assert fit.intercept == pytest.approx(expected[0], abs=1e-9)
    (again,), _ = LIME(model, n_perturbations=copies, rng=1).fit([text], 1)
    np.testing.assert_array_equal(fit.coefficients, again.coefficients)


@pytest.mark.parametrize("n_words", [1, 2, 3, 5, 8, 12, 13, 30])
@pytest.mark.parametrize("method", [LIME, LEMNA, Occlusion])
def test_a_word_that_decides_and_words_that_count_for_nothing(method, n_words):
    """The first word moves the probability from 0.3 to 0.7: every method says 0.4, and 0 for the others."""

    def decided(texts):
        return np.array([0.3 + 0.4 * ("w0" in text.split()) for text in texts], dtype=np.float32)

    text = " ".join(f"w{index}" for index in range(n_words))
    given = {} if method is Occlusion else {"rngs": generators()}
    words, _ = method(decided, scale=False)([text] * 3, **given)
    np.testing.assert_allclose(words[:, 0], 0.4, atol=1e-3)
    assert not words[:, 1:].any()


def test_words_that_count_for_nothing_beside_words_that_act_together():
    """The regression alone would give each of them 0.002: they share in what is not a sum."""
    (fit,), _ = LIME(model, rng=0).fit(["a moving film and not dull"], 1)
    np.testing.assert_array_equal(fit.coefficients != 0, [False, True, False, False, True, True])
    (other,), _ = LIME(model, rng=0).fit(["moving not dull"], 1)
    np.testing.assert_allclose(fit.coefficients[[1, 4, 5]], other.coefficients, atol=0.02)


def test_words_that_act_together_are_told():
    def both(texts):
        return np.array([0.2 + 0.6 * (("not" in text) != ("good" in text)) for text in texts])

    with pytest.warns(
        DegenerateAttributionsWarning, match=r"of 1 of 1 row of one call .* badly \(R² 0.00 .*every copy was asked"
    ):
        LIME(both, rng=0)(["not good"])


@pytest.mark.parametrize("method", [LIME, LEMNA])
def test_the_weights_of_a_method_do_not_hide_words_that_act_together(method):
    def turned(texts):
        return np.array([0.65 if text == "not good" else 0.8 if text == "good" else 0.5 for text in texts])

    with pytest.warns(
        DegenerateAttributionsWarning, match=r"of 1 of 1 row of one call .* badly \(R² 0\.91 over all copies alike"
    ):
        (fit,), _ = method(turned, rng=0, scale=False).fit(["not good"])
    copies = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    answers = np.array([0.5, 0.8, 0.5, 0.65])
    design = np.column_stack([np.ones(4), copies])
    rest = answers - design @ np.linalg.lstsq(design, answers, rcond=None)[0]
    assert fit.additive == pytest.approx(1 - (rest @ rest) / (4 * answers.var()))
    assert fit.r2 > fit.additive


def test_a_penalty_that_decides_is_told():
    with pytest.warns(DegenerateAttributionsWarning, match=r"penalty of 50 takes \d\d% of the coefficients of 1 of 1"):
        LIME(model, n_perturbations=60, regularization=50.0, rng=0)([TEXTS[0]], 1)


def test_deletions_follow_their_law():
    kept = deletions(8, 8001, np.random.default_rng(0))
    assert kept[0].all()
    left_out = 8 - kept[1:].sum(axis=1)
    counts = np.bincount(left_out, minlength=9)
    assert counts[0] == 0
    assert np.abs(counts[1:] - 1000).max() < 5 * np.sqrt(1000 * 7 / 8)
    places = (~kept[1:]).mean(axis=0)  # (1 + 8) / 2 of 8 words, at any place alike
    assert np.abs(places - 4.5 / 8).max() < 5 * np.sqrt(0.25 / 8000)


def test_rows_do_not_depend_on_each_other():
    together, _ = LIME(model, n_perturbations=60)(TEXTS, 1, rngs=generators())
    alone = [
        LIME(model, n_perturbations=60)([text], 1, rngs=[rng])[0] for text, rng in zip(TEXTS, generators(), strict=True)
    ]
    np.testing.assert_array_equal(together, np.concatenate(alone))


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_batches_change_nothing(batch_size):
    expected, _ = LIME(model, n_perturbations=60, rng=0, scale=False)(TEXTS, 1)
    found, _ = LIME(Called(model, softmax=False, batch_size=batch_size), n_perturbations=60, rng=0, scale=False)(
        TEXTS, 1
    )
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_seeds():
    first, again, other = (LIME(model, n_perturbations=60, rng=seed)(TEXTS, 1)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0


def test_equal_copies_are_asked_once():
    asked = []

    def counting(texts):
        asked.extend(texts)
        return model(texts)

    LIME(counting, n_perturbations=500, rng=0)(["moving film"], 1)
    copies = ["moving film", "moving film", "moving ", "film", ""]  # the text itself for scores
    assert sorted(asked[:-1]) == sorted(copies)
    assert asked[-1] in ("moving ", "film")  # alone, to see whether the others of the call matter


def test_a_text_of_10000_words():
    words = ["film"] * 10_000
    words[5000] = "moving"
    with pytest.warns(DegenerateAttributionsWarning, match="unrelated numbers .*10000 words and 50 copies"):
        attributions, _ = LIME(model, n_perturbations=50, rng=0)([words], 1)
    assert attributions.shape == (1, 10_000)
    assert np.isfinite(attributions).all()


def test_a_constant_model_gives_zeros_and_says_so():
    with pytest.warns(DegenerateAttributionsWarning, match="all 0 for 2 of 2 rows of one call"):
        attributions, _ = LIME(lambda texts: np.full((len(texts), 2), 0.5), rng=0)(TEXTS[:2], 1)
    assert not attributions.any()


def test_bad_arguments():
    with pytest.raises(ValueError, match="`n_perturbations` must be at least 2, got 1"):
        LIME(model, n_perturbations=1)
    with pytest.raises(ValueError, match="`kernel_width` must be finite and above 0, got 0"):
        LIME(model, kernel_width=0)
    with pytest.raises(TypeError, match="`regularization` must be a number, got str"):
        LIME(model, regularization="1")
    with pytest.raises(ValueError, match="one generator for each of the 3 rows, got 2"):
        LIME(model)(TEXTS, 1, rngs=generators(n=2))
