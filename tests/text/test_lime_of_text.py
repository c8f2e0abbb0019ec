"""LIME for texts against the lime package: the same copies, and its own."""

import numpy as np
import pytest
from lime.lime_text import LimeTextExplainer
from sklearn.metrics import pairwise_distances

from metfa import Called, DegenerateAttributionsWarning
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


@pytest.mark.parametrize("kernel_width", [25, 60])
@pytest.mark.parametrize("target", [0, 1])
def test_equals_the_lime_package_on_the_same_copies(kernel_width, target):
    fits, scores = LIME(model, n_perturbations=200, kernel_width=kernel_width).fit(TEXTS, target, rngs=generators())
    np.testing.assert_allclose(scores, model(TEXTS))
    for text, fit, rng in zip(TEXTS, fits, generators(), strict=True):
        words = words_of(text)
        kept = deletions(len(words), 200, rng)
        labels = model([words.kept(mask) for mask in kept])
        distances = pairwise_distances(kept.astype(float), np.ones((1, len(words))), metric="cosine").ravel() * 100
        base = LimeTextExplainer(kernel_width=kernel_width).base
        intercept, pairs, r2, _ = base.explain_instance_with_data(
            kept.astype(int), labels, distances, target, len(words), feature_selection="none"
        )
        np.testing.assert_allclose(fit.coefficients, [dict(pairs)[place] for place in range(len(words))], atol=1e-10)
        assert fit.intercept == pytest.approx(intercept, abs=1e-10)
        assert fit.r2 == pytest.approx(r2, abs=1e-10)
        assert fit.words == words.words


def test_agrees_with_the_lime_package_on_copies_of_its_own():
    """Standard deviations of a coefficient from run to run are below 0.0005 (ten runs of either)."""
    theirs = LimeTextExplainer(bow=False, split_expression=r"\s+", random_state=0)
    found = theirs.explain_instance(TEXTS[0], model, num_features=6, num_samples=5000).local_exp[1]
    ours, _ = LIME(model, scale=False, rng=0)([TEXTS[0]], 1)
    np.testing.assert_allclose(ours[0], [dict(found)[place] for place in range(6)], atol=0.003)


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
    with pytest.warns(DegenerateAttributionsWarning, match="all 0 for 2 of 2 texts"):
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
