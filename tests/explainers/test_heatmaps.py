"""Heat maps: channels reduced first, then each map scaled by its own range."""

import array_api_strict
import numpy as np
import pytest
import torch

import metfa
from metfa.explainers import heatmap
from metfa.sampling.protocol import explained_model, known_independent

ATTRIBUTIONS = np.random.default_rng(0).normal(size=(4, 3, 5, 2))


def given(attributions):
    return lambda inputs, target: attributions


def by_hand(attributions, channel_axis=1, sign="absolute"):
    strength = np.abs(attributions) if sign == "absolute" else np.maximum(attributions, 0)
    strength = strength if channel_axis is None else strength.max(axis=channel_axis)
    maps = np.zeros_like(strength)
    for row, one in enumerate(strength):
        if one.max() > one.min():
            maps[row] = (one - one.min()) / (one.max() - one.min())
    return maps


@pytest.mark.parametrize("sign", ["absolute", "positive"])
@pytest.mark.parametrize("channel_axis", [1, 2, 3, None])
def test_equals_a_loop(channel_axis, sign):
    maps = heatmap(given(ATTRIBUTIONS), channel_axis=channel_axis, sign=sign)(None)
    np.testing.assert_allclose(maps, by_hand(ATTRIBUTIONS, channel_axis, sign), atol=1e-12)
    assert maps.min() == 0
    assert maps.max() == 1


def test_negative_evidence_counts_by_its_strength_or_not_at_all():
    attributions = np.array([[[-4.0, 1.0, 0.0, 2.0]]])
    assert heatmap(given(attributions))(None).tolist() == [[1.0, 0.25, 0.0, 0.5]]
    assert heatmap(given(attributions), sign="positive")(None).tolist() == [[0.0, 0.5, 0.0, 1.0]]


@pytest.mark.parametrize("value", [0.0, -3.0])
def test_constant_maps_become_zeros(value):
    for sign in ("absolute", "positive"):
        assert (heatmap(given(np.full((2, 3, 4), value)), sign=sign)(None) == 0).all()


@pytest.mark.parametrize(
    ("attributions", "dtype"),
    [
        (ATTRIBUTIONS.astype(np.float16), np.float32),
        (ATTRIBUTIONS.astype(np.float32), np.float32),
        ((ATTRIBUTIONS * 9).astype(np.int8), np.float64),
        (torch.tensor(ATTRIBUTIONS).to(torch.bfloat16), torch.float32),
        (torch.tensor(ATTRIBUTIONS), torch.float64),
        (array_api_strict.asarray(ATTRIBUTIONS), array_api_strict.float64),
    ],
)
def test_library_is_kept_and_halves_are_widened(attributions, dtype):
    maps = heatmap(given(attributions))(None)
    assert type(maps) is type(attributions)
    assert maps.dtype == dtype
    exact = attributions.float() if isinstance(attributions, torch.Tensor) else attributions
    np.testing.assert_allclose(np.asarray(maps), by_hand(np.asarray(exact).astype(np.float64)), atol=1e-6)


def test_graph_is_kept():
    attributions = torch.tensor(ATTRIBUTIONS[:2], requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: heatmap(given(x))(None), (attributions,))


def test_scores_pass_through():
    maps, scores = heatmap(given((ATTRIBUTIONS, "scores")))(None)
    assert maps.shape == (4, 5, 2)
    assert scores == "scores"


def test_arguments_reach_the_explainer():
    def explainer(inputs, target, *, baselines):
        return inputs * target - baselines

    maps = heatmap(explainer)(ATTRIBUTIONS, 2, baselines=1)
    np.testing.assert_allclose(maps, by_hand(2 * ATTRIBUTIONS - 1), atol=1e-12)


def test_randomised_explainers_stay_randomised():
    def explainer(inputs, target, *, rngs):
        return np.stack([row + rng.normal(size=row.shape) for row, rng in zip(inputs, rngs, strict=True)])

    settings = {"noise": None, "n_samples": 4, "rng": 0}
    raw = metfa.explain(metfa.randomised(explainer), ATTRIBUTIONS, 0, **settings)
    maps = metfa.explain(heatmap(metfa.randomised(explainer)), ATTRIBUTIONS, 0, **settings)
    for sample, expected in zip(maps.values, raw.values, strict=True):
        np.testing.assert_allclose(sample, by_hand(expected), atol=1e-12)


def test_model_and_promise_are_those_of_the_explainer():
    class Explainer:
        rows_independent = True

        def model(self, inputs):
            return inputs

        def __call__(self, inputs, target):
            return inputs

    inner = Explainer()
    assert explained_model(heatmap(inner)) == inner.model
    assert known_independent(heatmap(inner))
    assert not known_independent(heatmap(given(ATTRIBUTIONS)))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"explainer": 3}, TypeError, "`explainer` must be callable, got int"),
        ({"channel_axis": 0}, ValueError, "`channel_axis` must be at least 1, got 0"),
        ({"channel_axis": -1}, ValueError, "`channel_axis` must be at least 1, got -1"),
        ({"channel_axis": 1.0}, TypeError, r"`channel_axis` must be an integer, got float: 1\.0"),
        ({"sign": "negative"}, ValueError, "`sign` must be one of 'absolute', 'positive', got 'negative'"),
    ],
)
def test_settings_are_checked(settings, error, message):
    with pytest.raises(error, match=message):
        heatmap(settings.pop("explainer", given(ATTRIBUTIONS)), **settings)


def test_attributions_without_channels_say_what_to_write():
    with pytest.raises(
        ValueError, match=r"`attributions` must be .*channels on axis 1, got shape \(4, 3\).*channel_axis=None"
    ):
        heatmap(given(ATTRIBUTIONS[:, :, 0, 0]))(None)
