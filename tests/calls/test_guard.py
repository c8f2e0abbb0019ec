"""The caller's model and the process's generators are as found, whatever happens inside."""

import functools
import random
import warnings
from contextlib import suppress

import numpy as np
import pytest
import torch
from torch import nn

from metfa._base.warnings import ModelStateWarning, ReproducibilityWarning
from metfa.calls.guard import (
    left_as_found,
    model_as_found,
    model_in_evaluation,
    owner_of,
    random_state_as_found,
    seed_global_generators,
)


def network():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(), nn.Flatten(), nn.Linear(16, 3))
    net[1].requires_grad_(False)
    net[3].eval()  # a mixture of modes
    net[2].register_forward_hook(lambda *_: None)
    net[5].register_full_backward_pre_hook(lambda *_: None)
    net[0].weight.register_hook(lambda gradient: gradient)
    net[5].weight.grad = torch.full_like(net[5].weight, 7.0)
    return net


MODULE_TABLES = [name for name in vars(nn.Module()) if "hooks" in name and "state_dict" not in name]


def snapshot(net):
    return {
        "modes": [module.training for module in net.modules()],
        "hooks": [
            {name: dict(getattr(module, name)) for name in MODULE_TABLES} | {"full": module._is_full_backward_hook}
            for module in net.modules()
        ],
        "tensor hooks": [
            (dict(p._backward_hooks or {}), dict(p._post_accumulate_grad_hooks or {})) for p in net.parameters()
        ],
        "requires_grad": [p.requires_grad for p in net.parameters()],
        "gradients": [id(p.grad) for p in net.parameters()],
        "gradient values": [None if p.grad is None else p.grad.tolist() for p in net.parameters()],
    }


def test_every_table_of_hooks_is_looked_at():
    """torch may add a kind of hook: then this fails, and `_guard` must learn of it."""
    assert set(MODULE_TABLES) == {
        "_forward_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_hooks_always_called",
        "_forward_pre_hooks",
        "_forward_pre_hooks_with_kwargs",
        "_backward_hooks",
        "_backward_pre_hooks",
    }


def change_modes(net):
    net.train()
    net[1].eval()


def backward(net):
    net(torch.ones(2, 3, 2, 2)).sum().backward()
    assert net[0].weight.grad is not None


def zero_gradients(net):
    net.zero_grad()
    net.zero_grad(set_to_none=False)


def set_gradients(net):
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)


def freeze(net):
    net.requires_grad_(False)


def thaw(net):
    net.requires_grad_(True)


def add_hooks(net):
    net[0].register_forward_hook(lambda *_: None, with_kwargs=True, always_call=True)
    net[0].register_forward_pre_hook(lambda *_: None, with_kwargs=True)
    net[0].register_full_backward_hook(lambda *_: None)
    net[2].register_full_backward_pre_hook(lambda *_: None)
    net[0].weight.register_hook(lambda gradient: None)
    net[0].bias.register_hook(lambda gradient: None)
    net[0].bias.register_post_accumulate_grad_hook(lambda parameter: None)


def remove_hooks(net):
    net[2]._forward_hooks.clear()
    net[5]._backward_pre_hooks.clear()
    net[0].weight._backward_hooks.clear()


def add_and_remove_a_hook(net):
    net[0].register_full_backward_hook(lambda *_: None).remove()


MEDDLING = [
    change_modes,
    backward,
    zero_gradients,
    set_gradients,
    freeze,
    thaw,
    add_hooks,
    remove_hooks,
    add_and_remove_a_hook,
]


ERRORS = (ZeroDivisionError, KeyboardInterrupt, SystemExit, GeneratorExit)


@pytest.mark.parametrize("error", [None, *ERRORS])
@pytest.mark.parametrize("meddle", MEDDLING)
def test_model_is_as_found(meddle, error):
    net = network()
    found = snapshot(net)
    with suppress(*ERRORS), model_as_found(net):
        meddle(net)
        assert snapshot(net) != found
        if error is not None:
            raise error
    assert snapshot(net) == found


def test_hooks_that_were_there_still_run_and_new_ones_do_not():
    net, calls = nn.Linear(2, 2), []
    net.register_forward_hook(lambda *_: calls.append("old"))
    with model_as_found(net):
        handle = net.register_forward_hook(lambda *_: calls.append("new"))
    net(torch.ones(1, 2))
    assert calls == ["old"]
    handle.remove()  # harmless
    net.register_backward_hook(lambda *_: None).remove()  # refused by torch where a full one ever was


def test_gradients_inside_are_apart_from_those_outside():
    net = network()
    gradient = net[5].weight.grad
    with model_as_found(net):
        assert net[5].weight.grad is None
        net(torch.ones(2, 3, 2, 2)).sum().backward()
    assert net[5].weight.grad is gradient
    assert (gradient == 7).all()
    assert net[0].weight.grad is None


def test_shared_modules_and_parameters_are_restored_once():
    layer = nn.Linear(2, 2)
    net = nn.Sequential(layer, layer)
    with model_as_found(net):
        net.eval()
    assert layer.training


@pytest.mark.parametrize("thing", [None, lambda x: x, 3, "model"])
def test_other_things_pass_through(thing):
    with model_as_found(thing), model_in_evaluation(thing):
        pass


class TestEvaluationMode:
    def test_all_modules_are_in_evaluation_mode_and_the_warning_comes_once(self):
        net = network()
        found = snapshot(net)
        modes = []

        def look():
            with model_in_evaluation(net), model_in_evaluation(net):  # the second guard finds nothing to say
                modes.extend(module.training for module in net.modules())

        with pytest.warns(ModelStateWarning, match="the model is in training mode") as record:
            look()
        assert not any(modes)
        assert len(record) == 1
        assert record[0].filename == __file__
        assert snapshot(net) == found

    def test_one_dropout_left_in_training_mode_is_seen(self):
        net = network().eval()
        net[3].train()
        with pytest.warns(ModelStateWarning), model_in_evaluation(net):
            assert not net[3].training
        assert [module.training for module in net] == [False] * 3 + [True] + [False] * 2

    def test_warning_made_an_error_leaves_all_as_found(self):
        net = network()
        found = snapshot(net)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ModelStateWarning), model_in_evaluation(net):
                pytest.fail("not reached")
        assert snapshot(net) == found

    def test_a_quiet_model_stays_quiet(self):
        with model_in_evaluation(network().eval()):
            pass


def test_models_behind_methods_and_partial_functions_are_guarded():
    net = network().eval()
    for function in (net.forward, functools.partial(net), functools.partial(net.forward, 1)):
        assert owner_of(function) is net
        with left_as_found(function):
            net.train()
        assert not net.training
    assert owner_of(len) is len


def global_draws():
    return random.random(), np.random.random(), torch.rand(1).item()


def draw_python():
    random.random()


def draw_numpy():
    np.random.random()


def draw_numpy_normal():  # leaves a second normal number in store
    np.random.normal()


def draw_torch():
    torch.rand(1)


def seed_all():
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)


class TestRandomState:
    @pytest.mark.parametrize("error", [None, ZeroDivisionError, KeyboardInterrupt])
    @pytest.mark.parametrize("draw", [draw_python, draw_numpy, draw_numpy_normal, draw_torch, seed_all])
    def test_generators_are_as_found_and_draws_are_seen(self, draw, error):
        seed_all()
        np.random.normal()
        expected = global_draws()
        seed_all()
        np.random.normal()
        with suppress(*ERRORS), random_state_as_found() as drawn:
            assert not drawn()
            draw()
            assert drawn()
            if error is not None:
                raise error
        assert global_draws() == expected

    def test_another_bit_generator_of_numpy(self):
        before = np.random.get_bit_generator()
        try:
            np.random.set_bit_generator(np.random.PCG64(3))
            with random_state_as_found() as drawn:
                assert not drawn()
                np.random.random()
                assert drawn()
            assert np.random.random() == np.random.Generator(np.random.PCG64(3)).random()
        finally:
            np.random.set_bit_generator(before)

    def test_seeds_govern_all_three_generators(self):
        with random_state_as_found():
            seed_global_generators(np.random.default_rng(5))
            first = global_draws()
            seed_global_generators(np.random.default_rng(5))
            assert global_draws() == first
            seed_global_generators(np.random.default_rng(6))
            assert not set(global_draws()) & set(first)

    def test_seeding_leaves_no_seed_for_devices_that_start_later(self, monkeypatch):
        """torch.manual_seed queues one (by this function), with which the caller's CUDA generator would begin."""
        queued = []
        monkeypatch.setattr(torch.cuda, "manual_seed_all", queued.append)
        torch.manual_seed(5)
        assert queued == [5]
        with random_state_as_found():
            seed_global_generators(np.random.default_rng(5))
        assert queued == [5]


class TestLeftAsFound:
    def test_draws_are_reported_at_the_callers_line(self):
        def draw_inside():
            with left_as_found():
                draw_numpy()

        with pytest.warns(ReproducibilityWarning, match=r"metfa\.seeded\(explainer\)") as record:
            draw_inside()
        assert (record[0].filename, len(record)) == (__file__, 1)
        assert 0 < record[0].lineno - draw_inside.__code__.co_firstlineno <= 2

    def test_nothing_is_reported_without_draws_or_after_an_exception(self):
        with left_as_found(network().eval(), None):
            pass
        with suppress(ZeroDivisionError), left_as_found():
            draw_numpy()
            raise ZeroDivisionError

    def test_one_model_given_twice_warns_once(self):
        net = network()
        with pytest.warns(ModelStateWarning) as record, left_as_found(net, net):
            pass
        assert len(record) == 1
        assert net.training

    def test_gradients_are_possible_under_inference_mode(self):
        with torch.inference_mode():
            with left_as_found():
                x = torch.ones(2, requires_grad=True)
                (x**2).sum().backward()
            assert torch.is_inference_mode_enabled()
        assert (x.grad == 2).all()
