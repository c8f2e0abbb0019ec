"""Occlusion of words against a loop that leaves them out one by one."""

import numpy as np
import pytest
import torch

from metfa import Called, DegenerateAttributionsWarning, RowDependenceWarning
from metfa.text.occlusion import Occlusion
from metfa.text.words import words_of

WORTH = {"moving": 1.5, "good": 0.7, "dull": -1.2, "not": -0.4}
TEXTS = ["a moving film , not dull", "not a good film - dull", "good good but dull film"]


def model(texts):
    """Probabilities of two classes; "not good" counts as one thing, so words interact."""
    rows = [text.split() if isinstance(text, str) else text for text in texts]
    logits = np.array([
        sum(WORTH.get(word, 0) for word in row) - 2 * ("not good" in " ".join(row).replace("a ", "")) for row in rows
    ])  # fmt: skip
    good = 1 / (1 + np.exp(-logits))
    return np.stack([1 - good, good], axis=1)


def by_loop(text, target):
    words = words_of(text)
    found = []
    for index in range(len(words)):
        mask = [True] * len(words)
        mask[index] = False
        found.append(model([text])[0, target] - model([words.kept(mask)])[0, target])
    return found


@pytest.mark.parametrize("batch_size", [None, 1, 4])
def test_equals_a_loop(batch_size):
    attributions, scores = Occlusion(Called(model, softmax=False, batch_size=batch_size), scale=False)(TEXTS, [1, 0, 1])
    expected = [by_loop(text, target) for text, target in zip(TEXTS, [1, 0, 1], strict=True)]
    np.testing.assert_allclose(attributions, expected, atol=1e-12)
    np.testing.assert_allclose(scores, model(TEXTS))


def test_tokens_are_words():
    tokens = [text.split() for text in TEXTS[:2]]
    attributions, _ = Occlusion(model, scale=False)(tokens, 1)
    np.testing.assert_allclose(attributions, [by_loop(row, 1) for row in tokens], atol=1e-12)


def test_the_predicted_class_is_explained():
    attributions, scores = Occlusion(model, scale=False)(TEXTS)
    expected, _ = Occlusion(model, scale=False)(TEXTS, scores.argmax(axis=1))
    np.testing.assert_array_equal(attributions, expected)


def test_scaled_maps_run_from_0_to_1():
    raw, scaled = Occlusion(model, scale=False)(TEXTS, 1)[0], Occlusion(model)(TEXTS, 1)[0]
    low, high = raw.min(axis=1, keepdims=True), raw.max(axis=1, keepdims=True)
    np.testing.assert_allclose(scaled, (raw - low) / (high - low))


def test_softmax_and_logits():
    def logits(texts):
        return torch.from_numpy(np.log(model(texts)))

    expected, _ = Occlusion(model, scale=False)(TEXTS, 1)
    np.testing.assert_allclose(Occlusion(Called(logits, softmax=True), scale=False)(TEXTS, 1)[0], expected, atol=1e-12)


def test_rows_do_not_depend_on_each_other():
    together, _ = Occlusion(model)(TEXTS, 1)
    alone = np.concatenate([Occlusion(model)([text], 1)[0] for text in TEXTS])
    np.testing.assert_array_equal(together, alone)


def test_one_word_of_which_nothing_is_left():
    attributions, _ = Occlusion(model, scale=False)(["moving !"], 1)
    np.testing.assert_allclose(attributions, [[1 / (1 + np.exp(-1.5)) - 0.5]])


def test_one_word_has_no_scaled_score_and_that_is_told():
    with pytest.warns(DegenerateAttributionsWarning, match=r"single word .* take `scale=False` .* list of tokens"):
        attributions, _ = Occlusion(model)(["moving"], 1)
    assert attributions == [[0]]


def test_a_long_text():
    words = ["film"] * 1500
    words[700] = "moving"
    attributions, _ = Occlusion(model)([words], 1)
    np.testing.assert_array_equal(np.flatnonzero(attributions[0]), [700])


def test_a_constant_model_gives_zeros_and_says_so():
    with pytest.warns(DegenerateAttributionsWarning, match="all 0 for 2 of 2 rows of one call"):
        attributions, _ = Occlusion(lambda texts: np.full((len(texts), 2), 0.5))(TEXTS[:2], 1)
    assert not attributions.any()


def test_rounding_is_no_evidence():
    rng = np.random.default_rng(0)

    def rounding(texts):
        return 0.5 + 1e-7 * rng.random(len(texts), dtype=np.float32)

    with pytest.warns(DegenerateAttributionsWarning, match="all 0 for 1 of 1 row of one call"):
        Occlusion(rounding)(TEXTS[:1])


def test_idle_words_have_no_sign_in_single_precision():
    """Kernels round the same copy differently in another place of a batch, always in the same way."""

    def rounding(texts):
        good = np.array([0.3 + 0.4 * ("moving" in text) for text in texts], dtype=np.float32)
        return good * (1 + 1.2e-7 * np.array([len(text) % 3 for text in texts], dtype=np.float32))

    falls, _ = Occlusion(rounding, scale=False)(["a moving film , not dull"])
    np.testing.assert_allclose(falls, [[0, 0.4, 0, 0, 0]], atol=1e-6)
    np.testing.assert_array_equal(falls != 0, [[False, True, False, False, False]])


def test_a_model_that_mixes_the_texts_of_a_call_is_told_of():
    def padded(texts):
        """The mean over the words and the padding behind them, as in a batch of a Hugging Face decoder."""
        longest = max(len(text.split()) for text in texts)
        return np.array([0.5 + 0.1 * ("moving" in text.split()) / max(longest, 1) for text in texts])

    with pytest.warns(
        RowDependenceWarning, match=r"depends on the other texts of its call \(by 0\.00\d+; .*batch_size=1"
    ):
        Occlusion(padded)(["a moving film not dull"])
    Occlusion(Called(padded, softmax=False, batch_size=1))(["a moving film not dull"])  # the advice


@pytest.mark.parametrize("n_words", [2, 9])
def test_a_text_of_n_words_asks_about_n_and_3_texts(n_words):
    """The text, the text again in the batch of copies, each copy, and one copy alone; as docs/howto/texts.rst says."""
    asked = []

    def counting(texts):
        asked.extend(texts)
        return model(texts)

    Occlusion(Called(counting, softmax=False))([["good"] * n_words], 1)
    assert len(asked) == n_words + 3


def test_bad_arguments():
    with pytest.raises(TypeError, match="`scale` must be True or False, got str: 'yes'"):
        Occlusion(model, scale="yes")
    with pytest.raises(TypeError, match="got NoneType"):
        Occlusion(None)
    with pytest.raises(ValueError, match="5 in input 0 and 2 in input 1"):
        Occlusion(model)([TEXTS[0], "two words"])
    with pytest.raises(ValueError, match=r"must lie in 0\.\.1 .*got 2"):
        Occlusion(model)(TEXTS, 2)
