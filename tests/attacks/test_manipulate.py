"""Manipulated maps: what is found, what is always kept, and that a failure is told."""

from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torchvision.models import VisionTransformer

import metfa
from metfa import ModelStateWarning, attacks
from metfa.attacks._objective import map_term
from metfa.attacks.result import distance
from metfa.attacks.settings import PRESETS
from metfa.explainers import (
    CAM,
    LIME,
    LRP,
    RISE,
    AttentionRollout,
    Gradient,
    GradientRollout,
    LeGrad,
    from_captum,
    from_gradcam,
    heatmap,
)
from metfa.noise import Uniform

from .conftest import EXPLAINERS, QUICK, defended, make_network


class TestManipulate:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "activation"),
        [*((name, nn.ReLU) for name in EXPLAINERS), ("Gradient", nn.ReLU6), ("LRP", nn.ReLU6), ("Gradient", nn.SiLU)],
    )
    def test_moves_the_map_and_keeps_the_prediction(self, name, activation, pictures, corner):
        model = make_network(activation)
        result = attacks.manipulate(
            model, EXPLAINERS[name](model), pictures, target_map=corner, beta=(30.0, 30.0), **QUICK
        )
        assert (result.predicted & (result.nearer > 0)).sum() >= 2
        assert result.distances["adversarial"].mean() < 0.95 * result.distances["clean"].mean()
        assert (result.adversarial.predictions == result.clean.predictions).all()
        loss = result.curves["map"][0].mean(1)  # one loss, as beta does not grow
        assert loss[-1] < loss[0]

    @pytest.mark.slow
    @pytest.mark.parametrize("make", [AttentionRollout, GradientRollout, LeGrad])
    def test_moves_maps_by_attention(self, make):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = VisionTransformer(16, 4, 1, 2, 8, 16, num_classes=3).eval()
            nn.init.normal_(model.heads.head.weight)
            image = torch.rand(1, 3, 16, 16)
        corner = attacks.drawn("corner", 16, 16)
        result = attacks.manipulate(
            model, make(model), image, target_map=corner, settings="strong", n_steps=3, step_size=0.05, rng=0
        )
        assert result.predicted.all()
        assert (result.nearer > 0).all()

    def test_says_what_the_model_as_it_is_says(self, network, pictures, corner):
        """Nothing softened is left in what the result holds."""
        explainer = Gradient(network)
        result = attacks.manipulate(
            network, explainer, pictures, target_map=corner, target=1, softening="softplus", **QUICK
        )
        found = torch.from_numpy(result.adversarial.inputs)
        maps, scores = (values.numpy() for values in explainer(found, 1))
        np.testing.assert_array_equal(result.adversarial.maps, maps)
        np.testing.assert_array_equal(result.adversarial.scores, scores)
        np.testing.assert_allclose(result.distances["adversarial"], np.abs(maps - corner.numpy()).mean((1, 2)))
        assert result.explained == (1, 1, 1)
        assert result.asked == tuple(network(pictures).argmax(1).tolist())

    @pytest.mark.parametrize("softening", ["softplus", "backward"])
    def test_either_softening_leads_somewhere(self, softening, network, pictures, corner):
        result = attacks.manipulate(
            network, Gradient(network), pictures, target_map=corner, softening=softening, **QUICK
        )
        assert (result.predicted & (result.nearer > 0)).all()

    @pytest.mark.parametrize("step", ["sign", "adam"])
    @pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_budget_and_range_always_hold(self, step, schedule, dtype, pictures, corner):
        model = make_network(dtype=dtype)
        levels = (pictures * 255).round() / 255
        inputs = torch.cat([levels[:2], levels[2:].round()]).to(dtype)  # the last of zeros and ones
        result = attacks.manipulate(
            model, CAM(model), inputs, target_map=corner, epsilon=8 / 255, step=step, schedule=schedule, n_restarts=2,
            **{**QUICK, "n_steps": 20, "step_size": 0.02},
        )  # fmt: skip
        clean = inputs.double().numpy()
        for images in (result.adversarial.inputs, result.rounded.inputs):
            assert images.dtype == inputs.numpy().dtype
            assert images.min() >= 0
            assert images.max() <= 1
        assert np.abs(result.adversarial.inputs.astype(np.float64) - clean).max() <= 8 / 255
        assert result.budget()["linf"].max() > 7 / 255
        assert np.abs(result.rounded.inputs - clean).max() <= 8 / 255 + 1e-7
        eight_bits = result.rounded.inputs.astype(np.float64) * 255
        np.testing.assert_allclose(eight_bits, eight_bits.round(), atol=1e-4)
        assert np.abs(result.rounded.inputs - result.adversarial.inputs).max() <= 1 / 255

    def test_budget_in_figures(self, network, pictures, corner):
        result = attacks.manipulate(network, CAM(network), pictures, target_map=corner, **QUICK)
        change = np.abs(result.rounded.inputs - pictures.numpy())
        budget = result.budget(rounded=True)
        np.testing.assert_allclose(budget["linf"], [row.max() for row in change])
        np.testing.assert_allclose(budget["l2"], [np.linalg.norm(row) for row in change])
        np.testing.assert_allclose(budget["mean"], [row.mean() for row in change])

    def test_zero_steps_change_nothing_and_are_no_success(self, network, pictures, corner):
        defence = defended(CAM(network))
        result = attacks.manipulate(
            network, CAM(network), pictures, target_map=corner, defence=defence, n_steps=0, rng=0
        )
        np.testing.assert_array_equal(result.adversarial.inputs, pictures)
        np.testing.assert_array_equal(result.adversarial.maps, result.clean.maps)
        np.testing.assert_array_equal(result.adversarial.defended, result.clean.defended)
        assert not result.success.any()
        assert result.curves == {}

    def test_a_failure_is_no_success(self, network, pictures):
        """A map that is there already cannot come nearer."""
        drawn = CAM(network)(pictures)[0]
        with pytest.warns(metfa.WeakAttackWarning, match="clean maps are the target map already"):
            result = attacks.manipulate(network, CAM(network), pictures, target_map=drawn, **{**QUICK, "n_steps": 3})
        assert np.isnan(result.nearer).all()
        assert not result.success.any()
        np.testing.assert_array_equal(result.adversarial.inputs, pictures)

    @pytest.mark.slow
    def test_the_prediction_comes_first(self, pictures, corner):
        """A weight of 0 on it lets the steps lose it; what is returned has it, and is no worse than the start."""
        model = make_network()
        result = attacks.manipulate(
            model, LRP(model), pictures, target_map=corner, prediction_weight=0.0, **{**QUICK, "step_size": 0.05}
        )
        assert (result.adversarial.predictions == result.clean.predictions).all()
        assert (result.distances["adversarial"] <= result.distances["clean"]).all()

    def test_best_image_is_returned_not_the_last(self, network, pictures, corner):
        result = attacks.manipulate(network, CAM(network), pictures, target_map=corner, **{**QUICK, "step_size": 0.2})
        looked = result.curves["distance"][0]
        best = np.fmin(np.nanmin(looked, axis=0), result.distances["clean"])
        assert (result.distances["adversarial"] >= best - 1e-12).all()
        assert (result.distances["adversarial"] <= result.distances["clean"]).all()

    def test_restarts_help_or_change_nothing(self, network, pictures, corner):
        settings = {**QUICK, "n_steps": 15, "epsilon": 0.06}
        once, thrice = (
            attacks.manipulate(network, Gradient(network), pictures, target_map=corner, n_restarts=n, **settings)
            for n in (1, 3)
        )
        assert thrice.curves["map"].shape == (3, 15, 3)
        np.testing.assert_allclose(thrice.curves["map"][0], once.curves["map"][0])
        assert (thrice.distances["adversarial"] <= once.distances["adversarial"] + 1e-12).all()
        assert (thrice.curves["map"][1, 0] != thrice.curves["map"][2, 0]).all()

    @pytest.mark.slow
    def test_grows_with_the_budget(self, network, pictures, corner):
        distances = [
            attacks.manipulate(network, CAM(network), pictures, target_map=corner, epsilon=epsilon, **QUICK).distances
            for epsilon in (0.0, 0.02, 0.1, None)
        ]
        means = [found["adversarial"].mean() for found in distances]
        assert means[0] == distances[0]["clean"].mean()
        assert means == sorted(means, reverse=True)


class TestRows:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "knows"),
        [("Gradient", "nothing"), ("LRP", "defence"), ("integrated gradients of Captum", "seed"), ("LRP", "seed")],
    )
    def test_are_attacked_as_if_alone(self, name, knows, network, pictures, corner):
        explainer = EXPLAINERS[name](network)
        maps = torch.stack([corner, corner.flip(0), corner.flip(1)])
        settings = {**QUICK, "n_steps": 3, "epsilon": 0.05, "n_restarts": 2, "knows": knows}
        settings["defence"] = defended(explainer, n_samples=2, confidence_level=0.5)
        together = attacks.manipulate(network, explainer, pictures, target_map=maps, target=[0, 1, 2], **settings)
        in_twos = attacks.manipulate(
            network, explainer, pictures, target_map=maps, target=[0, 1, 2], batch_size=2, **settings
        )
        np.testing.assert_allclose(in_twos.adversarial.inputs, together.adversarial.inputs, atol=1e-9)
        for row in range(3):
            one = slice(row, row + 1)
            alone = attacks.manipulate(network, explainer, pictures[one], target_map=maps[row], target=row, **settings)
            np.testing.assert_allclose(alone.adversarial.inputs, together.adversarial.inputs[one], atol=1e-9)
            np.testing.assert_allclose(alone.adversarial.defended, together.adversarial.defended[one], atol=1e-6)
            np.testing.assert_allclose(alone.curves["loss"][:, :, 0], together.curves["loss"][:, :, row], rtol=1e-6)

    @pytest.mark.slow
    def test_seed_governs_all(self, network, pictures, corner):
        settings = {**QUICK, "n_steps": 6, "epsilon": 0.05, "n_restarts": 2, "defence": defended(Gradient(network))}
        first, again, other = (
            attacks.manipulate(network, Gradient(network), pictures, target_map=corner, **{**settings, "rng": rng})
            for rng in (5, 5, 6)
        )
        np.testing.assert_array_equal(first.adversarial.inputs, again.adversarial.inputs)
        np.testing.assert_array_equal(first.adversarial.defended, again.adversarial.defended)
        assert (first.clean.defended != other.clean.defended).any()


class TestDefence:
    @pytest.mark.slow
    def test_is_measured_in_any_case(self, network, pictures, corner):
        explainer = CAM(network)
        result = attacks.manipulate(
            network, explainer, pictures, target_map=corner, defence=defended(explainer), knows="nothing", **QUICK
        )
        alone = attacks.manipulate(network, explainer, pictures, target_map=corner, **QUICK)
        np.testing.assert_array_equal(result.adversarial.inputs, alone.adversarial.inputs)
        assert alone.adversarial.defended is None
        assert result.adversarial.defended.shape == (3, 8, 10)
        assert {"clean defended", "adversarial defended", "rounded defended"} <= result.distances.keys()

    @pytest.mark.slow
    def test_who_knows_it_does_better_against_it(self, network, pictures, corner):
        defence = defended(Gradient(network), noise=Uniform(0.2, bounds=(0, 1)), n_samples=10)
        found = {
            knows: attacks.manipulate(
                network, Gradient(network), pictures, target_map=corner, defence=defence, knows=knows, epsilon=0.15,
                **{**QUICK, "n_steps": 30, "step_size": 0.01},
            ).distances["adversarial defended"].mean()
            for knows in ("nothing", "defence", "seed")
        }  # fmt: skip
        assert found["defence"] < found["nothing"]
        assert found["seed"] < found["nothing"]

    @pytest.mark.slow
    def test_draws_are_averaged(self, network, pictures, corner):
        one, three = (
            attacks.manipulate(
                network, Gradient(network), pictures, target_map=corner, defence=defended(Gradient(network)), n_draws=n,
                **{**QUICK, "n_steps": 5},
            )
            for n in (1, 3)
        )  # fmt: skip
        assert (one.curves["defence"] != three.curves["defence"]).all()
        assert (three.curves["map"][0, 0] == one.curves["map"][0, 0]).all()

    def test_noise_is_fresh_at_each_step_unless_it_is_known(self, network, pictures, corner):
        """With a step size of nearly nothing the map stays, and only the noise moves its smoothed form."""
        settings = {**QUICK, "n_steps": 4, "step_size": 1e-12}
        for knows, fresh in (("defence", True), ("seed", False)):
            result = attacks.manipulate(
                network, CAM(network), pictures, target_map=corner, defence=defended(CAM(network)), knows=knows,
                **settings,
            )  # fmt: skip
            values = result.curves["defence"][0]
            assert (np.ptp(values, axis=0) > 1e-6).all() == fresh
            if not fresh:  # and it is what the defender's map is measured with
                drawn = torch.from_numpy(result.target_map)
                measured = map_term(torch.from_numpy(result.clean.defended), drawn, "mean")
                np.testing.assert_allclose(values[0], measured, rtol=1e-6)


class TestLeavesAsFound:
    @pytest.mark.slow
    @pytest.mark.parametrize("interrupted", [False, True])
    def test_the_model(self, interrupted, pictures, corner):
        model = make_network().train()
        model[0].requires_grad_(False)
        model[2].weight.grad = torch.ones_like(model[2].weight)
        state, images = torch.get_rng_state(), pictures.clone()
        calls = 0

        def explainer(inputs, target):
            nonlocal calls
            calls += 1
            if interrupted and calls == 30:
                raise KeyboardInterrupt
            return Gradient(model)(inputs, target)

        ends = pytest.raises(KeyboardInterrupt) if interrupted else nullcontext()
        with ends, pytest.warns(ModelStateWarning):
            attacks.manipulate(model, explainer, images, target_map=corner, **QUICK)
        assert all(module.training for module in model.modules())
        assert not any(parameter.requires_grad for parameter in model[0].parameters())
        assert all(parameter.requires_grad for parameter in model[2].parameters())
        assert (model[2].weight.grad == 1).all()
        assert model[0].weight.grad is None
        assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.equal(images, pictures)
        assert not images.requires_grad
        assert torch.equal(torch.relu(pictures - 0.5), (pictures - 0.5).clamp(min=0))

    @pytest.mark.parametrize("without", [torch.no_grad, torch.inference_mode])
    def test_works_without_gradients_around_it(self, without, network, pictures, corner):
        settings = {**QUICK, "n_steps": 5, "defence": defended(Gradient(network))}
        expected = attacks.manipulate(network, Gradient(network), pictures, target_map=corner, **settings)
        with without():
            result = attacks.manipulate(network, Gradient(network), pictures * 1, target_map=corner * 1, **settings)
        np.testing.assert_array_equal(result.adversarial.inputs, expected.adversarial.inputs)


class TestRefusals:
    @pytest.mark.parametrize(
        "make",
        [
            lambda model: RISE(model, n_masks=4, rng=0),
            lambda model: LIME(model, n_perturbations=20, segmentation="slic", rng=0),
            lambda model: from_gradcam("GradCAM", model),
            lambda model: from_captum(model, "Occlusion", sliding_window_shapes=(3, 2, 2)),
            lambda model: lambda inputs, target: Gradient(model)(inputs.detach(), target),
            lambda model: lambda inputs, target: model[0].weight.sum() * torch.ones(len(inputs), 8, 10),
        ],
    )
    def test_maps_without_derivatives(self, make, network, pictures, corner):
        with pytest.raises(
            ValueError, match=r"must return maps that are differentiable.*CAM, LRP, MASK, AttentionRollout"
        ):
            attacks.manipulate(network, make(network), pictures, target_map=corner, n_steps=5)

    def test_maps_that_do_not_move(self, network, pictures, corner):
        with pytest.raises(ValueError, match=r"Gradient\(.* do not move .*write `softening='softplus'`"):
            attacks.manipulate(network, Gradient(network), pictures, target_map=corner, n_steps=5, softening=None)

    @pytest.mark.parametrize("batch_size", [1, 3])
    def test_one_image_whose_map_does_not_move_is_no_reason_to_leave_the_others(
        self, batch_size, network, pictures, corner
    ):
        still = torch.tensor([False, True, True])[:, None, None]

        def explainer(inputs, target):
            moving = (inputs.mean((1, 2, 3)) > pictures[0].mean() + 1e-3)[:, None, None]
            return torch.where(moving, inputs.mean(1), inputs[:, 0] * 0 + torch.linspace(0, 1, 10))

        pictures[1:] = (1.2 * pictures[1:]).clamp(0, 1)
        quick = {**QUICK, "n_steps": 20, "batch_size": batch_size}
        with pytest.warns(metfa.WeakAttackWarning, match="the explainer is exactly 0 for 1 of"):
            result = attacks.manipulate(network, explainer, pictures, target_map=corner, softening=None, **quick)
        np.testing.assert_array_equal(result.nearer > 0, still.numpy().ravel())

    def test_asks_nothing_of_the_model_before_the_map_is_a_map(self, network, pictures):
        def untouched(images):
            raise AssertionError("the model was asked")

        for wanted in ("circle", None):
            with pytest.raises((TypeError, ValueError), match="`target_map` must be"):
                attacks.manipulate(untouched, CAM(network), pictures, target_map=wanted)
        with pytest.raises(ValueError, match=r"`target` must be the class to be predicted, .*got None"):
            attacks.targeted(untouched, CAM(network), pictures, None)

    def test_the_explainer_of_another_network(self, network, pictures, corner):
        with pytest.raises(ValueError, match=r"`explainer` must explain `model`, got CAM\(.*another network"):
            attacks.manipulate(network, CAM(make_network()), pictures, target_map=corner)
        around = nn.Sequential(network).eval()  # another object, the same parameters
        assert (
            attacks.manipulate(around, CAM(network), pictures, target_map=corner, **{**QUICK, "n_steps": 1}) is not None
        )

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"inputs": "picture"}, TypeError, "`inputs` must be a torch.Tensor, got str"),
            ({"inputs": torch.ones(3, 8, 10)}, ValueError, r"must be images .* got shape \(3, 8, 10\)"),
            ({"inputs": torch.full((1, 3, 8, 10), 1.5)}, ValueError, r"pixels in \[0, 1\], got 1.5 to 1.5"),
            ({"inputs": torch.ones(1, 3, 8, 10).half()}, TypeError, "must be float32 or float64, .*torch.float16"),
            ({"target_map": torch.ones(8, 8)}, ValueError, r"\(8, 10\), or one for each .*\(3, 8, 10\), got \(8, 8\)"),
            ({"target_map": torch.full((8, 10), torch.nan)}, ValueError, "must be finite"),
            ({"target_map": None}, ValueError, "`target_map` must be the map to draw, got None"),
            ({"target": 7}, ValueError, r"`target` must lie in 0\.\.2 .*got 7"),
            ({"model": 3}, TypeError, "`model` must be callable, got int"),
            ({"model": lambda x: x.sum((1, 2, 3))}, ValueError, r"scores \(batch, classes\), got shape \(3,\)"),
            ({"explainer": 3}, TypeError, "`explainer` must be callable, got int"),
            ({"defence": 3}, TypeError, "`defence` must be a metfa.Smoothed, got int"),
            ({"knows": "defence"}, ValueError, "`knows='defence'` needs a `defence`"),
            ({"knows": "all"}, ValueError, "got 'all'"),
            ({"settings": "adv2"}, ValueError, "`settings` must be 'strong', 'dombrowski', .*got 'adv2'"),
            ({"settings": 3}, TypeError, "an AttackSettings, got int: 3"),
            ({"n_step": 3}, TypeError, "no setting 'n_step', did you mean 'n_steps'"),
            ({"n_steps": -1}, ValueError, "`n_steps` must be at least 0, got -1"),
            ({"step": "newton"}, ValueError, "`step` must be one of 'adam', 'sign', got 'newton'"),
            ({"step_size": 0}, ValueError, "`step_size` must be finite and above 0, got 0"),
            ({"epsilon": -0.1}, ValueError, "`epsilon` must be finite and not negative, got -0.1"),
            ({"n_restarts": 2, "epsilon": None}, ValueError, "`epsilon` must be a number for restarts.*`n_restarts=2`"),
            ({"map_weight": (1, 2, 3)}, TypeError, r"`map_weight` must be a pair, got \(1, 2, 3\)"),
            ({"beta": 3}, TypeError, "`beta` must be a pair, got 3"),
            (
                {"noise_derivative": "none"},
                ValueError,
                "`noise_derivative` must be one of 'own', 'identity', got 'none'",
            ),
            ({"unrolled": (4, 0)}, ValueError, "`unrolled` must be at least 1, got 0"),
            ({"batch_size": 0}, ValueError, "`batch_size` must be at least 1, got 0"),
        ],
    )
    def test_arguments(self, change, error, message, network, pictures, corner):
        given = {"model": network, "explainer": CAM(network), "inputs": pictures, "target_map": corner, **change}
        with pytest.raises(error, match=message):
            attacks.manipulate(**given)

    def test_a_defence_of_another_explainer_cannot_be_known(self, network, pictures, corner):
        other = defended(Gradient(network))
        with pytest.raises(ValueError, match="must smooth the explainer that is attacked"):
            attacks.manipulate(network, CAM(network), pictures, target_map=corner, defence=other)
        result = attacks.manipulate(
            network,
            CAM(network),
            pictures,
            target_map=corner,
            defence=other,
            knows="nothing",
            **{**QUICK, "n_steps": 2},
        )
        assert result.adversarial.defended.shape == (3, 8, 10)


def test_settings_as_an_object(network, pictures, corner):
    settings = replace(PRESETS["dombrowski"], n_steps=3)
    result = attacks.manipulate(
        network, CAM(network), pictures, target_map=corner, settings=settings, step="sign", rng=0
    )
    assert result.provenance["settings"]["n_steps"] == 3
    assert result.provenance["settings"]["step"] == "sign"
    assert result.provenance["settings"]["softening"] is None  # CAM needs none
    assert repr(result).startswith("AttackResult(manipulation of 3 images")


def test_distance_by_hand():
    assert distance(np.array([[[0.0, 1.0]], [[0.5, 0.5]]]), np.array([[[1.0, 1.0]], [[0.0, 0.25]]])).tolist() == [
        0.5,
        0.375,
    ]


class TestHonesty:
    @pytest.mark.slow
    def test_success_is_half_of_the_way(self, network, pictures, corner):
        result = attacks.manipulate(network, CAM(network), pictures, target_map=corner, **QUICK)
        nearer = 1 - result.distances["adversarial"] / result.distances["clean"]
        np.testing.assert_allclose(result.nearer, nearer)
        np.testing.assert_array_equal(result.success, result.predicted & (nearer >= 0.5))
        defence = defended(CAM(network))
        aware = attacks.manipulate(network, CAM(network), pictures, target_map=corner, defence=defence, **QUICK)
        shown = 1 - aware.distances["adversarial defended"] / aware.distances["clean defended"]
        np.testing.assert_allclose(aware.nearer, shown)
        assert {"distance", "distance defended"} <= aware.curves.keys()
        single = aware.distances["adversarial"]
        looked = aware.curves["distance"][0]
        assert np.isclose(looked, single, rtol=1e-9).any(axis=0).all()

    def test_a_drift_by_chance_is_none(self, network, pictures, corner):
        weak = {"map_weight": 0.0, "epsilon": 1 / 255, "n_steps": 1, "step_size": 1e-6, "n_restarts": 5}
        result = attacks.manipulate(network, CAM(network), pictures, target_map=corner, rng=0, **weak)
        assert not result.success.any()
        missed = {what: of.all() for what, of in result.missed().items()}
        assert missed.pop("less than half of the way")
        assert not any(missed.values())

    def test_eight_bits_beyond_the_budget_are_no_success(self, network, pictures):
        drawn = CAM(network)(pictures)[0].roll(3, 2)
        result = attacks.manipulate(
            network, CAM(network), pictures, target_map=drawn, **{**QUICK, "epsilon": 0.3 / 255}
        )
        beyond = result.budget(rounded=True)["linf"] > 0.3 / 255 + 1e-6
        assert beyond.any()
        assert not result.rounded_success[beyond].any()
        missed = result.missed(rounded=True)
        np.testing.assert_array_equal(missed["change over the limit"], beyond)
        np.testing.assert_array_equal(result.rounded_success, ~np.any(list(missed.values()), axis=0))

    def test_steps_too_short_for_the_budget_are_told(self, network, pictures, corner):
        with pytest.warns(metfa.WeakAttackWarning, match=r"reach 0\.01, less than the budget `epsilon`=0\.1"):
            attacks.manipulate(
                network,
                CAM(network),
                pictures,
                target_map=corner,
                settings="dombrowski",
                n_steps=10,
                step_size=0.001,
                epsilon=0.1,
            )

    @pytest.mark.slow
    def test_noise_without_a_derivative_is_told(self, network, pictures, corner):
        """It hides the map from the attacker's derivatives, not from the attacker."""

        def rounded(x, rng):
            return (metfa.noise.Uniform(0.1)(x, rng) * 16).round() / 16

        explainer = CAM(network)
        defence = metfa.Smoothed(explainer, noise=rounded, n_samples=6)
        settings = {**QUICK, "defence": defence, "map_weight": 0.0, "defence_weight": 100.0, "n_steps": 30}
        with pytest.warns(metfa.WeakAttackWarning, match="through the defence is exactly 0 for 3 of 3 images"):
            without = attacks.manipulate(network, explainer, pictures, target_map=corner, **settings)
        around = attacks.manipulate(
            network, explainer, pictures, target_map=corner, noise_derivative="identity", **settings
        )
        still, moved = (found.distances["adversarial defended"] for found in (without, around))
        assert (moved < 0.9 * still).all()

    def test_budgets_are_of_pixel_values(self, network, pictures, corner):
        with pytest.raises(ValueError, match=r"got 8.0: for levels of 255 write `8 / 255`"):
            attacks.manipulate(network, CAM(network), pictures, target_map=corner, epsilon=8)
        with pytest.raises(TypeError, match=r"write `metfa\.attacks\.drawn\('circle', height, width\)`"):
            attacks.manipulate(network, CAM(network), pictures, target_map="circle", **QUICK)


def test_a_target_map_in_levels_of_255_is_refused(network, pictures, corner):
    """An attack on it would fail, and the explainer would look robust."""
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\] .* got 0 to 255: write `target_map / 255`"):
        attacks.manipulate(network, CAM(network), pictures, target_map=255 * corner, n_steps=1)
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\] .* got -1 to 0$"):
        attacks.manipulate(network, CAM(network), pictures, target_map=-corner, n_steps=1)
    unscaled = CAM(network, scale=False)  # whose maps have no such range
    assert len(attacks.manipulate(network, unscaled, pictures, target_map=2 * corner, n_steps=1)) == 3


def test_a_defence_must_be_of_the_same_model(network, pictures, corner):
    cam, noise = CAM(network), Uniform(0.1)
    settings = {"target_map": corner, "n_steps": 1}
    other = metfa.Smoothed(CAM(deepcopy(network)), noise=noise, n_samples=6)
    with pytest.raises(ValueError, match=r"`defence` must explain `model`, got .* explains another network"):
        attacks.manipulate(network, cam, pictures, defence=other, knows="nothing", **settings)
    one, same = (heatmap(lambda inputs, target: cam(inputs, target)[0]) for _ in range(2))
    with pytest.raises(ValueError, match="must smooth the explainer that is attacked"):
        attacks.manipulate(network, one, pictures, defence=metfa.Smoothed(same, noise=noise, n_samples=6), **settings)
