"""ADV²: another class is predicted, and its map looks like that of the clean image."""

import numpy as np
import pytest
import torch
from torch import nn

import metfa
from metfa import attacks
from metfa.attacks._maps import UnrolledMaps, UnrolledMASK
from metfa.attacks.settings import PRESETS
from metfa.explainers import CAM, LRP, MASK, Gradient
from metfa.noise import Uniform

from .conftest import make_network

QUICK = {"n_first_steps": 30, "n_steps": 40, "check_every": 10, "epsilon": 0.2, "rng": 0}
SMALL = {
    "grid": (4, 5),
    "n_iterations": 30,
    "jitter": 0,
    "mask_blur": None,
    "baseline": 0.4,
    "l1_weight": 0.02,
    "rng": 0,
}


def others(model, pictures):
    """A class that is not predicted, for each picture."""
    return ((model(pictures).argmax(1) + 1) % 3).tolist()


def mask(model, **settings):
    return MASK.adv2_v2(model, **{**SMALL, **settings})


class TestTargeted:
    @pytest.mark.slow
    @pytest.mark.parametrize("activation", [nn.ReLU, nn.ReLU6])
    @pytest.mark.parametrize("explain", [CAM, LRP, Gradient])
    def test_flips_the_class_and_then_moves_the_map(self, explain, activation, pictures):
        model = make_network(activation)
        wanted = others(model, pictures)
        result = attacks.targeted(model, explain(model), pictures, wanted, **QUICK)
        assert result.predicted.all()
        assert result.adversarial.predictions.tolist() == wanted
        assert result.asked == result.explained == tuple(wanted)
        first = attacks.targeted(model, explain(model), pictures, wanted, **{**QUICK, "n_steps": 0})
        assert first.predicted.all()
        assert (result.distances["adversarial"] < first.distances["adversarial"]).all()
        assert result.budget()["linf"].max() <= 0.2
        curves = result.curves
        assert np.isnan(curves["map"][0, :30]).all()
        assert np.isfinite(curves["map"][0, 30:]).all()
        assert (curves["prediction"][0, 29] < curves["prediction"][0, 0]).all()

    def test_draws_the_benign_map_by_default(self, network, pictures):
        predicted = network(pictures).argmax(1)
        benign = CAM(network)(pictures, predicted)[0].numpy()
        result = attacks.targeted(network, CAM(network), pictures, others(network, pictures), n_steps=0, rng=0)
        np.testing.assert_allclose(result.target_map, benign)
        wanted = CAM(network)(pictures, others(network, pictures))[0].numpy()
        np.testing.assert_allclose(result.clean.maps, wanted)

    def test_draws_another_map_if_asked(self, network, pictures, corner):
        wanted = others(network, pictures)
        result = attacks.targeted(network, CAM(network), pictures, wanted, target_map=corner, **QUICK)
        np.testing.assert_array_equal(result.target_map, corner.expand(3, -1, -1))
        assert result.predicted.all()

    def test_zero_steps_change_nothing_and_fail(self, network, pictures):
        result = attacks.targeted(
            network, CAM(network), pictures, others(network, pictures), n_first_steps=0, n_steps=0, rng=0
        )
        np.testing.assert_array_equal(result.adversarial.inputs, pictures)
        assert not result.success.any()

    def test_a_budget_too_small_is_a_failure(self, network, pictures):
        result = attacks.targeted(
            network, CAM(network), pictures, others(network, pictures), **{**QUICK, "epsilon": 1e-6}
        )
        assert not result.success.any()
        assert (result.adversarial.predictions == result.clean.predictions).all()

    def test_flipping_comes_before_the_map(self, network, pictures):
        """The clean image's map is nearest of all, if it is the one to draw; yet it is not returned."""
        wanted = others(network, pictures)
        drawn = CAM(network)(pictures, wanted)[0]
        result = attacks.targeted(network, CAM(network), pictures, wanted, target_map=drawn, **QUICK)
        assert result.predicted.all()
        assert (result.distances["clean"] == 0).all()
        assert (result.distances["adversarial"] > 0).all()

    @pytest.mark.parametrize("loss", ["cross-entropy", "margin"])
    def test_either_loss_flips(self, loss, network, pictures):
        result = attacks.targeted(
            network, CAM(network), pictures, others(network, pictures), prediction_loss=loss, **QUICK
        )
        assert result.predicted.all()

    def test_refuses_the_class_that_is_predicted_already(self, network, pictures):
        wanted = others(network, pictures)
        wanted[1] = int(network(pictures).argmax(1)[1])
        with pytest.raises(ValueError, match=f"another class than the one predicted, got {wanted[1]} for input 1"):
            attacks.targeted(network, CAM(network), pictures, wanted)
        with pytest.raises(ValueError, match=r"`target` must be the class to be predicted, .*got None"):
            attacks.targeted(network, CAM(network), pictures, None)

    def test_refuses_to_keep_a_map_that_is_not_finite(self, network, pictures):
        def explain(images, target):
            return images.mean(1) * torch.nan

        with pytest.raises(ValueError, match="the explainer's map of a clean image is not finite"):
            attacks.targeted(network, explain, pictures, others(network, pictures), **QUICK)

    def test_preset_of_cam_is_the_authors(self):
        preset = PRESETS["adv2-cam"]
        assert preset.weights(0.0)["map"] == 5
        assert preset.weights(0.5)["map"] == 7.5
        assert preset.weights(0.5)["defence"] == 7.5
        assert (preset.n_first_steps, preset.n_steps, preset.epsilon) == (400, 1200, 0.031)


def flat_network(activation=nn.ReLU):
    """A network that looks at places, so that masks have something to find."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = nn.Sequential(nn.Flatten(), nn.Linear(240, 12), activation(), nn.Linear(12, 3)).double().eval()
    with torch.no_grad():
        model[1].weight *= 3
        model[3].weight *= 3
    return model


class TestMASK:
    def test_unrolled_map_has_the_derivative_of_finite_differences(self, pictures):
        """Two free and two tracked steps; the free ones count as constants."""
        model = flat_network(nn.Tanh)
        explainer = mask(model, learning_rate=0.02)
        state = explainer.start(pictures[:1], 0)
        for _ in range(5):
            state = explainer.step(pictures[:1], 0, state)
        unrolled = UnrolledMASK(explainer, state, (0, 2))
        weights = torch.rand(1, 8, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        leaf = pictures[:1].clone().requires_grad_()
        (gradient,) = torch.autograd.grad((unrolled(leaf, 0) * weights).sum(), leaf)
        direction = torch.randn(leaf.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        step = 1e-5
        there, back = ((unrolled(pictures[:1] + way * direction, 0) * weights).sum() for way in (step, -step))
        assert float((gradient * direction).sum()) == pytest.approx(float((there - back) / (2 * step)), rel=1e-3)

    def test_unrolled_steps_are_those_of_the_explainer(self, pictures):
        network = flat_network()
        explainer = mask(network, n_iterations=11)
        maps = UnrolledMaps(explainer, (3, 4))
        target = torch.tensor([0, 1, 2])
        maps.refresh(pictures, target, [np.random.default_rng(row) for row in range(3)])
        state = explainer.start(pictures, target)
        for _ in range(11):
            state = explainer.step(pictures, target, state)
        torch.testing.assert_close(1 - maps._state.masks, 1 - state.masks)
        for _ in range(2):  # the state goes on
            found = maps(pictures, target, [])
            for _ in range(7):
                state = explainer.step(pictures, target, state)
            whole = explainer.maps(state.masks, pictures)
            torch.testing.assert_close(found, whole)

    @pytest.mark.slow
    @pytest.mark.parametrize("activation", [nn.ReLU, nn.ReLU6])
    def test_maps_are_moved(self, activation, pictures, corner):
        model = flat_network(activation)
        settings = {"n_first_steps": 0, "n_steps": 30, "check_every": 10, "epsilon": 0.1, "rng": 0}
        result = attacks.manipulate(model, mask(model), pictures, target_map=corner, settings="adv2-mask", **settings)
        assert (result.predicted & (result.nearer > 0)).all()
        assert result.adversarial.maps.shape == (3, 8, 10)

    @pytest.mark.slow
    def test_full_attack_flips_the_class(self, pictures):
        network = flat_network()
        settings = {"n_first_steps": 30, "n_steps": 20, "refresh_every": 10, "check_every": 10, "epsilon": 0.2}
        wanted = others(network, pictures)
        result = attacks.targeted(
            network, mask(network, jitter=2), pictures, wanted, settings="adv2-mask", rng=0, **settings
        )
        assert result.predicted.all()
        assert result.provenance["settings"]["prediction_loss"] == "margin"

    @pytest.mark.slow
    @pytest.mark.parametrize("knows", ["defence", "seed"])
    def test_defended_one_is_attacked_row_by_row(self, knows, pictures, corner):
        network = flat_network()
        explainer = mask(network, n_iterations=6)
        defence = metfa.Smoothed(explainer, noise=Uniform(0.05, bounds=(0, 1)), n_samples=6, batch_size=4)
        settings = {"n_first_steps": 0, "n_steps": 4, "check_every": 2, "unrolled": (1, 2), "epsilon": 0.1, "rng": 0}
        settings |= {"settings": "adv2-mask", "knows": knows, "defence": defence}
        together = attacks.manipulate(network, explainer, pictures, target_map=corner, target=[0, 1, 2], **settings)
        assert np.isfinite(together.curves["defence"]).all()
        for row in range(3):
            one = slice(row, row + 1)
            alone = attacks.manipulate(network, explainer, pictures[one], target_map=corner, target=row, **settings)
            np.testing.assert_allclose(alone.adversarial.inputs, together.adversarial.inputs[one], atol=1e-9)
            np.testing.assert_allclose(alone.adversarial.defended, together.adversarial.defended[one], atol=1e-6)

    def test_masks_follow_the_image_if_all_weight_is_on_the_smoothed_map(self, pictures, corner):
        network = flat_network()
        explainer = mask(network, n_iterations=6)
        defence = metfa.Smoothed(explainer, noise=Uniform(0.05, bounds=(0, 1)), n_samples=6)
        settings = {"n_first_steps": 0, "n_steps": 4, "check_every": 4, "unrolled": (1, 2), "step_size": 1e-9, "rng": 0}
        terms = [
            attacks.manipulate(
                network, explainer, pictures[:1], target_map=corner, settings="adv2-mask", knows="defence",
                defence=defence, map_weight=weight, defence_weight=1.0, epsilon=0.1, **settings,
            ).curves["defence"]
            for weight in (0.0, 1e-9)
        ]  # fmt: skip
        np.testing.assert_allclose(*terms, rtol=1e-5)
        assert np.ptp(terms[0]) > 0  # the image stays, its mask goes on

    def test_states_follow_each_restart(self, pictures, corner):
        network = flat_network()
        result = attacks.manipulate(
            network, mask(network), pictures[:1], target_map=corner, settings="adv2-mask", n_first_steps=0, n_steps=3,
            n_restarts=2, epsilon=0.1, rng=0,
        )  # fmt: skip
        assert result.curves["map"].shape == (2, 3, 1)
        assert (result.curves["map"][0] != result.curves["map"][1]).all()


def test_maps_that_do_not_depend_on_the_class_are_said_to_be_there_already():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64, 2)).eval()
    images = torch.rand(2, 3, 8, 8)
    other = (1 - model(images).argmax(1)).tolist()
    with pytest.warns(metfa.WeakAttackWarning, match="2 of 2 clean maps are the target map already"):
        result = attacks.targeted(
            model, lambda inputs, target: inputs.mean(1) ** 2, images, other, epsilon=0.3, n_steps=3, rng=0
        )
    assert np.isnan(result.nearer).all()
    assert not result.success.any()
    missed = {why: rows.tolist() for why, rows in result.missed().items() if rows.any()}
    assert missed["the clean map is the target map already, which no attack comes nearer to"] == [True, True]
    assert "less than half of the way" not in missed
