"""Attributions of tokens summed to words, by themselves and behind Captum's layer methods."""

import numpy as np
import pytest
import torch
from captum.attr import LayerIntegratedGradients

from metfa.text.models import BiLSTM, TrainedBiLSTM
from metfa.text.subwords import words_from_tokens


def by_hand(values, word_index, n_words):
    return [sum(v for v, i in zip(values, word_index, strict=True) if i == word) for word in range(n_words)]


@pytest.mark.parametrize("make", [list, np.array, lambda v: np.array(v, np.float32), torch.tensor, torch.HalfTensor])
def test_sums_over_the_tokens_of_each_word(make):
    values, word_index = [9.0, 1.0, 2.0, -4.0, 0.5, 9.0], [None, 0, 2, 0, 2, None]
    words = words_from_tokens(make(values), word_index, 4)
    assert words.dtype == np.float64
    np.testing.assert_array_equal(words, by_hand(values, word_index, 4))
    assert words[1] == words[3] == 0  # words without a token


def test_axes_behind_the_tokens_are_summed():
    values = np.random.default_rng(0).normal(size=(5, 3, 2))
    word_index = [0, None, 1, 1, 0]
    np.testing.assert_allclose(
        words_from_tokens(values, word_index, 2), by_hand(values.sum((1, 2)), word_index, 2), rtol=1e-12
    )


def test_tensors_with_a_graph_are_detached():
    values = torch.ones(2, requires_grad=True)
    np.testing.assert_array_equal(words_from_tokens(values * 2, [0, 0], 1), [4.0])


def test_captums_layer_integrated_gradients_keep_their_sum():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = TrainedBiLSTM(BiLSTM(5, embedding_size=4, n_units=3).double().eval(), ("a", "fine", "film"), ("-", "+"))
    ids, word_index = model.tokenize("A fine, fine film!")
    batch = torch.tensor([ids])
    method = LayerIntegratedGradients(model.module, model.module.embedding)
    attributions = method.attribute(batch, torch.zeros_like(batch), target=1, n_steps=100)
    words = words_from_tokens(attributions[0], word_index, 4)
    marks = sum(float(attributions[0, place].sum()) for place, word in enumerate(word_index) if word is None)
    with torch.no_grad():
        vectors = model.embed(batch)
        mask = torch.ones_like(batch, dtype=torch.bool)
        rise = (model.forward_embedded(vectors, mask) - model.forward_embedded(vectors * 0, mask))[0, 1]
    assert abs(words.sum() + marks - float(rise)) < 5e-3 * abs(words).sum()  # the maximum over words has kinks
    assert abs(marks) > 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1.0], [0, 1], 2), ValueError, "each of the 2 tokens of `word_index`, got 1"),
        (([1.0, 2.0], [0, 2], 2), ValueError, r"`word_index` must be at most 1, got 2"),
        (([1.0], [-1], 2), ValueError, r"`word_index` must be at least 0, got -1"),
        (([1.0], [0], 0), ValueError, "`n_words` must be at least 1, got 0"),
        (([1], [0], 1), TypeError, "`attributions` must be floating point, .*got int64"),
        ((np.float64(1.0), [], 1), TypeError, r"floating point, \(tokens, \.\.\.\), got float64, \(\)"),
    ],
)
def test_unfit(arguments, error, message):
    with pytest.raises(error, match=message):
        words_from_tokens(*arguments)


@pytest.mark.parametrize(
    ("values", "index", "error", "message"),
    [
        ([1.0, 2.0], "01", TypeError, "`word_index` must be a list with the word of each token, got str"),
        ([1.0, 2.0], [0, 1.0], TypeError, r"must be an integer, got float: 1\.0"),
        ([1.0, np.nan], [0, None], ValueError, "must be finite, but those of token 1 are not"),
    ],
)
def test_what_cannot_be_summed(values, index, error, message):
    with pytest.raises(error, match=message):
        words_from_tokens(values, index, 2)
