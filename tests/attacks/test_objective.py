"""The loss of an attack by hand and against its authors', and its gradient against finite differences."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from metfa import attacks
from metfa.attacks._batch import Batch, Streams, Victim
from metfa.attacks._descent import Ball
from metfa.attacks._objective import map_term
from metfa.attacks.settings import PRESETS
from metfa.explainers import CAM

from .conftest import EXPLAINERS, QUICK, defended, make_network


def objective_of(explainer, model, pictures, corner, *, knows="nothing", **settings):
    """Loss and gradient as an attack takes them, and the batch that they are of."""
    defence = None if knows == "nothing" else defended(explainer, batch_size=4)
    classes = torch.tensor([0, 1, 2])
    batch = Batch(
        Victim.of(model, explainer, defence), replace(PRESETS["dombrowski"], **settings), knows, pictures,
        model(pictures).detach(), corner.expand(3, -1, -1), classes, classes, Streams.of(pictures, 0),
    )  # fmt: skip
    return batch.objective


class TestGradient:
    @pytest.mark.slow
    @pytest.mark.parametrize("knows", ["nothing", "defence"])
    @pytest.mark.parametrize("name", [name for name in EXPLAINERS if name != "LRP"])
    def test_equals_finite_differences(self, name, knows, pictures, corner):
        """Of the whole loss, all four terms: no part of a map may be missing from the graph."""
        model = make_network(nn.SiLU).requires_grad_(False)
        settings = {"softening": None, "distance_weight": 5.0, "prediction_weight": 10.0}
        objective = objective_of(EXPLAINERS[name](model), model, pictures, corner, knows=knows, **settings)
        direction = torch.randn(pictures.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
        images = 0.99 * pictures  # away from the clean ones, where two terms are flat
        found = (objective(images, 7, 0.5).gradient * direction).flatten(1).sum(1)
        step = 1e-6
        there, back = (objective(images + way * direction, 7, 0.5).total for way in (step, -step))
        torch.testing.assert_close(found, (there - back) / (2 * step), rtol=1e-4, atol=1e-5)

    @pytest.mark.slow
    @pytest.mark.parametrize("knows", ["nothing", "defence"])
    @pytest.mark.parametrize("name", EXPLAINERS)
    def test_of_a_softened_network_equals_finite_differences(self, name, knows, pictures, corner):
        model = make_network(nn.ReLU6).requires_grad_(False)
        settings = {"softening": "softplus", "prediction_weight": 0.0, "beta": (5.0, 5.0)}
        objective = objective_of(EXPLAINERS[name](model), model, pictures, corner, knows=knows, **settings)
        direction = torch.randn(pictures.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
        found = (objective(pictures, 7, 0.5).gradient * direction).flatten(1).sum(1)
        step = 1e-6
        there, back = (objective(pictures + way * direction, 7, 0.5).total for way in (step, -step))
        torch.testing.assert_close(found, (there - back) / (2 * step), rtol=1e-4, atol=1e-5)


class TestTerms:
    def test_map_term_by_hand(self):
        maps, drawn = torch.tensor([[[0.0, 1.0], [0.5, 0.5]]]), torch.tensor([[[0.0, 0.0], [0.0, 1.0]]])
        assert float(map_term(maps, drawn, "given")) == pytest.approx((0 + 1 + 0.25 + 0.25) / 4)
        expected = ((0 - 0) ** 2 + (2 - 0) ** 2 + (1 - 0) ** 2 + (1 - 4) ** 2) / 4  # means .5 and .25
        assert float(map_term(maps, drawn, "mean")) == pytest.approx(expected)
        assert torch.isfinite(map_term(0 * maps, drawn, "mean")).all()

    def test_dombrowski_is_the_authors_loss(self):
        """1e11 MSE of maps that add up to 1 and 1e6 MSE of probabilities, on 224 x 224 pixels and 1000 classes."""
        generator = torch.Generator().manual_seed(0)
        maps, drawn = torch.rand(2, 1, 224, 224, dtype=torch.float64, generator=generator)
        preset = PRESETS["dombrowski"]
        theirs = 1e11 * ((maps / maps.sum() - drawn / drawn.sum()) ** 2).mean()
        assert float(preset.map_weight * map_term(maps, drawn, preset.map_scale)) == pytest.approx(float(theirs))
        before, after = torch.rand(2, 1000, dtype=torch.float64, generator=generator).softmax(1)
        assert preset.prediction_weight * float(((before - after) ** 2).sum()) == pytest.approx(
            1e6 * float(((before - after) ** 2).mean())
        )

    @pytest.mark.parametrize("loss", ["probabilities", "cross-entropy", "margin"])
    def test_losses_of_the_prediction(self, loss, network, pictures, corner):
        result = attacks.manipulate(
            network, CAM(network), pictures, target_map=corner, prediction_loss=loss, distance_weight=2.0, margin=1.5,
            **{**QUICK, "n_steps": 4},
        )  # fmt: skip
        curves = {name: values[0] for name, values in result.curves.items()}
        logits = network(pictures).detach()
        own = logits.max(1).values
        expected = {
            "probabilities": torch.zeros(3),
            "cross-entropy": logits.logsumexp(1) - own,
            "margin": (logits.sort(1).values[:, -2] - own + 1.5).clamp(min=0),
        }
        np.testing.assert_allclose(curves["prediction"][0], expected[loss], atol=1e-12)
        assert (curves["pixels"][0] == 0).all()
        assert (curves["pixels"][-1] > 0).all()
        total = 1000 * curves["prediction"] + 2 * curves["pixels"] + PRESETS["dombrowski"].map_weight * curves["map"]
        np.testing.assert_allclose(curves["loss"], total)

    def test_ball_holds_in_exact_arithmetic(self):
        images = torch.rand(1, 3, 40, 40, generator=torch.Generator().manual_seed(0))
        ball = Ball.around(images, 0.031)
        exact = images.double()
        assert (ball.high.double() - exact).max() <= 0.031
        assert (exact - ball.low.double()).max() <= 0.031
        assert ball.low.min() >= 0
        assert ball.high.max() <= 1
