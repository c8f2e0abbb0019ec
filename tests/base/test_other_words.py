"""Words of other libraries lead to ours."""

import inspect

import numpy as np
import pytest
import torch

import metfa
from metfa import explainers, text
from metfa._base.other_words import our_word, our_words

NET = torch.nn.Identity()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: explainers.ScoreCAM(NET, target_layers=[NET]), "`target_layers`, here it is 'layer'; it has"),
        (lambda: explainers.CAM(NET, target_layer=NET), r"`target_layer`, for a layer take ScoreCAM\(model, layer="),
        (lambda: explainers.RISE(NET, nsamples=3), "RISE has no argument `nsamples`, here it is 'n_masks'"),
        (lambda: explainers.RISE(NET, baselines=0), "RISE has no argument `baselines`, here it is 'baseline'"),
        (lambda: explainers.MASK(NET, n_steps=3), "MASK has no argument `n_steps`, here it is 'n_iterations'"),
        (lambda: explainers.SmoothGrad(NET, stdevs=1), "SmoothGrad has no argument `stdevs`, here it is 'std'"),
        (lambda: explainers.LIME(NET, num_features=1), "`num_features`, here it is 'n_segments_shown'"),
        (lambda: explainers.RISE(NET, n_maks=1), "RISE has no argument `n_maks`, did you mean 'n_masks'"),
        (lambda: text.LEMNA(len, num_samples=3), "LEMNA has no argument `num_samples`, here it is 'n_perturbations'"),
        (lambda: metfa.explain(np.abs, np.ones((1, 2)), seed=1), "explain has no argument `seed`, here it is 'rng'"),
        (lambda: metfa.explain(np.abs, np.ones((1, 2)), store="x"), r"`store`, here it is `run=metfa.Run\("),
        (lambda: metfa.Smoothed(np.abs, sigma=1), "`sigma`, here it is `noise`, such as metfa.noise"),
    ],
)  # fmt: skip
def test_the_error_says_what_to_write(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_the_signature_and_the_class_stay():
    @our_words
    def made(first, *, second=2):
        """Says so."""
        return first, second

    assert (made(1, second=3), made.__doc__) == ((1, 3), "Says so.")
    assert list(inspect.signature(made).parameters) == ["first", "second"]
    assert isinstance(metfa.Smoothed, type)
    assert list(inspect.signature(metfa.Smoothed).parameters)[:2] == ["explainer", "noise"]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'first'"):
        made()
    assert our_word("nonsense", ["first"]) == ""
