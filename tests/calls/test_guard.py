"""The caller's model and the process's generators are as found, whatever happens inside."""

import contextvars
import functools
import random
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from captum import attr
from torch import nn

import metfa
from metfa._base.warnings import ModelStateWarning, ReproducibilityWarning
from metfa.calls import ownership
from metfa.calls.behind import modules_behind, owner_of
from metfa.calls.generators import random_state_as_found, seeded_generators
from metfa.calls.guard import left_as_found, model_as_found, model_in_evaluation


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
        before = global_draws()
        with random_state_as_found() as drawn:
            with seeded_generators(np.random.default_rng(5)):
                first = global_draws()
            with seeded_generators(np.random.default_rng(5)):
                assert global_draws() == first
            with seeded_generators(np.random.default_rng(6)):
                assert not set(global_draws()) & {*first, *before}
            assert not drawn()

    def test_seeding_leaves_no_seed_for_devices_that_start_later(self, monkeypatch):
        """torch.manual_seed queues one (by this function), with which the caller's CUDA generator would begin."""
        queued = []
        monkeypatch.setattr(torch.cuda, "manual_seed_all", queued.append)
        torch.manual_seed(5)
        assert queued == [5]
        with seeded_generators(np.random.default_rng(5)):
            pass
        assert queued == [5]

    def test_inside_another_context_the_numbers_go_on(self):
        """Otherwise an explainer inside an explainer would draw the same numbers for every sample."""
        seed_all()
        with random_state_as_found():
            with random_state_as_found() as drawn:
                first = global_draws()
                assert drawn()
            assert not set(global_draws()) & set(first)
        assert global_draws() == first


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

    def test_autocast_around_changes_nothing(self):
        net, inputs = nn.Linear(8, 8).eval(), torch.rand(1, 8)
        expected = net(inputs)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert net(inputs).dtype == torch.bfloat16
            with pytest.warns(ModelStateWarning, match="fast='bfloat16'"), left_as_found(net):
                assert torch.equal(net(inputs), expected)
            assert net(inputs).dtype == torch.bfloat16


NET = network()


def by_a_global_name(inputs):
    return [NET(row) for row in inputs]


def by_a_function_that_it_calls(inputs):
    return by_a_global_name(inputs)


def by_a_name_in_a_function_inside(inputs):
    return (lambda row: NET(row))(inputs)


def by_a_default(inputs, net=NET):
    return net(inputs)


def in_a_closure(net):
    def inside(inputs):
        return net(inputs)

    return lambda inputs: inside(inputs)


class Holder:
    def __init__(self, net):
        self.inner = {"parts": [net]}

    def predict(self, inputs):
        return self.inner["parts"][0](inputs)

    def __call__(self, inputs):
        return self.predict(inputs)


class Slotted:
    __slots__ = ("net",)

    def __init__(self, net):
        self.net = net

    def __call__(self, inputs):
        return self.net(inputs)


class WithAGlobal:
    def __call__(self, inputs):
        return self.helper(inputs)

    def helper(self, inputs):
        return NET(inputs)


@dataclass
class Explaining:
    model: metfa.Called

    def __call__(self, inputs, target):
        return self.model(inputs)


HIDDEN = {
    "global": by_a_global_name,
    "global of a function it calls": by_a_function_that_it_calls,
    "global of a function inside": by_a_name_in_a_function_inside,
    "default": by_a_default,
    "closure": in_a_closure(NET),
    "partial": functools.partial(lambda net, inputs: net(inputs), NET),
    "named argument of a partial": functools.partial(lambda inputs, net: net(inputs), net=NET),
    "attribute": Holder(NET),
    "method": Holder(NET).predict,
    "slot": Slotted(NET),
    "global of a method": WithAGlobal(),
    "wrapped": functools.wraps(by_a_default)(lambda inputs: inputs),
    "Called": metfa.Called(NET),
    "explainer with a Called": Explaining(metfa.Called(NET)),
    "explainer with a Called of a function": Explaining(metfa.Called(in_a_closure(NET))),
    "explainer of metfa's": metfa.explainers.Gradient(NET),
    "wrapped explainer": metfa.explainers.heatmap(metfa.Smoothed(Explaining(NET), noise=metfa.noise.Uniform(0.1))),
    "Captum": attr.Saliency(in_a_closure(NET)).attribute,
}


class TestModelsBehindFunctions:
    @pytest.mark.parametrize("where", HIDDEN)
    def test_are_in_evaluation_mode_and_put_back(self, where):
        found = snapshot(NET)

        def look():
            with left_as_found(HIDDEN[where]):
                NET[0].register_forward_hook(lambda *_: None)
                return [module.training for module in NET.modules()]

        with pytest.warns(ModelStateWarning, match="training mode"):
            assert not any(look())
        assert snapshot(NET) == found

    @pytest.mark.parametrize("make", [lambda net: lambda x: net(x), Holder, lambda net: functools.partial(net)])
    def test_batch_statistics_stay_and_samples_are_those_of_evaluation(self, make):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Dropout(), nn.Flatten(), nn.Linear(16, 3))
        net(torch.rand(8, 3, 2, 2))
        statistics, inputs = net[1].running_mean.clone(), torch.rand(2, 3, 2, 2)
        settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 3, "rng": 0}
        with pytest.warns(ModelStateWarning, match="training mode"):
            sample = metfa.explain(metfa.explainers.Gradient(make(net)), inputs, **settings)
        assert torch.equal(net[1].running_mean, statistics)
        assert all(module.training for module in net.modules())
        expected = metfa.explain(metfa.explainers.Gradient(net.eval()), inputs, **settings)
        np.testing.assert_array_equal(sample.values, expected.values)
        np.testing.assert_array_equal(sample.scores, expected.scores)

    def test_one_that_nobody_can_find_is_noticed(self):
        net = nn.Sequential(nn.BatchNorm1d(4)).train()
        places = {"a": {"b": {"c": {"d": {"e": {"f": {"g": net}}}}}}}

        def explainer(inputs, target):
            return places["a"]["b"]["c"]["d"]["e"]["f"]["g"](inputs).detach()

        with pytest.warns(ModelStateWarning, match=r"training mode \(Sequential\) is asked.*`\.eval\(\)` on it first"):
            metfa.explain(explainer, torch.rand(3, 4), 0, noise=metfa.noise.Uniform(0.1), n_samples=2)
        assert all(module.training for module in net.modules())
        net.eval()
        metfa.explain(explainer, torch.rand(3, 4), 0, noise=metfa.noise.Uniform(0.1), n_samples=2)

    def test_large_and_strange_objects_are_searched_quickly(self):
        ring = []
        ring.append(ring)
        far = functools.reduce(lambda inner, _: [inner], range(30), NET)
        if not ring:
            later = None

        def names_what_has_no_value_yet(inputs):
            return later(inputs)

        for thing in (
            ring,
            far,
            names_what_has_no_value_yet,
            list(range(10**6)),
            np.zeros(10),
            torch,
            nn.Module,
            sys.modules,
            type,
        ):
            start = time.perf_counter()
            modules_behind(thing)
            assert time.perf_counter() - start < 0.5


class TestThreads:
    def test_threads_take_turns_on_one_model(self):
        net, inside = nn.Linear(2, 2), []

        def work():
            with model_as_found(net), warnings.catch_warnings():
                inside.append(1)
                assert len(inside) == 1
                time.sleep(0.002)
                inside.pop()

        in_threads([work] * 8)

    def test_threads_on_two_models_run_side_by_side(self):
        both = threading.Barrier(2, timeout=20)  # passes only while both are inside

        def work(net):
            with left_as_found(net):
                both.wait()

        in_threads([functools.partial(work, nn.Linear(2, 2).eval()) for _ in range(2)])

    def test_two_models_in_either_order(self):
        a, b = nn.Linear(2, 2).eval(), nn.Linear(2, 2).eval()

        def work(*models):
            for _ in range(50):
                with left_as_found(*models):
                    pass

        in_threads([functools.partial(work, a, b), functools.partial(work, b, a)])

    def test_a_circle_is_refused_and_nobody_hangs(self):
        a, b = nn.Linear(2, 2).eval(), nn.Linear(2, 2).eval()
        both, refused = threading.Barrier(2, timeout=20), []

        def work(first, second):
            try:
                with model_as_found(first):
                    both.wait()
                    with model_as_found(second):
                        pass
            except RuntimeError as error:
                refused.append(str(error))

        in_threads([functools.partial(work, a, b), functools.partial(work, b, a)])
        assert len(refused) == 1
        assert "two threads wait for each other's model" in refused[0]

    def test_shared_parts_are_shared(self):
        part = nn.Linear(2, 2).eval()
        inside, seen = threading.Event(), []

        def second():
            inside.wait(20)
            with model_as_found(part):
                seen.append("second")

        thread = threading.Thread(target=second)
        thread.start()
        with model_as_found(nn.Sequential(part)), model_in_evaluation(part):  # and again in this thread
            inside.set()
            thread.join(0.1)
            seen.append("first")
        thread.join(20)
        assert seen == ["first", "second"]

    @pytest.mark.parametrize("in_context", [False, True])
    def test_threads_of_an_explainer_that_ask_its_model(self, in_context, monkeypatch):
        """A plain pool would wait for ever; the advice in the error works."""
        monkeypatch.setattr(ownership, "STUCK", 0.1)
        monkeypatch.setattr(ownership, "CHECK", 0.06)
        net = nn.Linear(2, 2).eval()
        inner = metfa.explainers.Gradient(net, channel_axis=None)

        def pooled(inputs, target):
            with ThreadPoolExecutor(2) as pool:
                asked = [
                    pool.submit(contextvars.copy_context().run, inner, row, 1)
                    if in_context
                    else pool.submit(inner, row, 1)
                    for row in inputs.split(1)
                ]
                return torch.cat([one.result()[0] for one in asked])

        def call():
            return metfa.explain(pooled, torch.rand(2, 2), 1, noise=metfa.noise.Uniform(0.1), n_samples=2, rng=0)

        if in_context:
            assert np.isfinite(call().values).all()
        else:
            with pytest.raises(RuntimeError, match=r"write `pool\.submit\(contextvars\.copy_context\(\)\.run"):
                call()

    def test_a_thread_that_draws_on_never_meets_its_numbers_again(self):
        """A context that ended in another thread used to put the generators back under its feet."""
        numbers, other_is_inside, drawn = [], threading.Event(), threading.Event()

        def short():
            other_is_inside.wait(20)
            with random_state_as_found():
                drawn.wait(20)

        thread = threading.Thread(target=short)
        thread.start()
        with random_state_as_found():
            other_is_inside.set()
            time.sleep(0.05)
            numbers.append(global_draws())
            drawn.set()
            thread.join(20)
            numbers.append(global_draws())
        assert not set(numbers[0]) & set(numbers[1])

    @pytest.mark.slow
    def test_many_rounds_of_threads_on_one_model(self):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(), nn.Flatten())
        net.append(nn.Linear(16, 3))
        net(torch.rand(8, 3, 2, 2))
        inputs, found, statistics = torch.rand(1, 3, 2, 2), snapshot(net), net[1].running_mean.clone()
        settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 2, "rng": 0, "batch_size": 1}
        explainers = [metfa.explainers.Gradient(net), metfa.explainers.RISE(lambda x: net(x).detach(), n_masks=2)]
        explainers.append(metfa.seeded(lambda x, target: x * torch.rand(x.shape) * net(x).detach()[0, 0]))
        calls = [functools.partial(metfa.explain, explainer, inputs, 1, **settings) for explainer in explainers]
        calls.append(
            lambda: metfa.Smoothed(explainers[0], noise=settings["noise"], n_samples=2, confidence_level=0.5, rng=0)(
                inputs, 1
            )
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", metfa.MetfaWarning)
            expected = [values_of(call()) for call in calls]
            wrong = []

            def work(number):
                if not np.array_equal(values_of(calls[number]()), expected[number]):
                    wrong.append(number)

            for _ in range(50):
                in_threads([functools.partial(work, number) for number in range(len(calls))])
                assert not wrong
                assert snapshot(net) == found
        assert torch.equal(net[1].running_mean, statistics)


def values_of(explained):
    return explained.numpy() if isinstance(explained, torch.Tensor) else explained.values


def in_threads(works):
    """Run all, each in a thread of its own; raise what one of them raised."""
    with ThreadPoolExecutor(len(works)) as pool:
        for future in [pool.submit(work) for work in works]:
            future.result(timeout=600)


class Holder:
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 3))

    @staticmethod
    def static(x):
        return Holder.net(x)

    @classmethod
    def of_class(cls, x):
        return cls.net(x)

    def __call__(self, x):
        return self.net(x)


class Heir(Holder):
    pass


@pytest.mark.parametrize(
    "model", [lambda x: Holder.net(x), lambda x: Heir.of_class(x), Holder.static, Heir.of_class, Heir()]
)
def test_a_network_that_a_class_holds_is_guarded(model):
    norm = Holder.net.train()[1]
    before, images = norm.running_mean.clone(), torch.rand(4, 1, 4, 4)
    with pytest.warns(ModelStateWarning):
        metfa.explain(metfa.explainers.Gradient(model), images, 0, noise=metfa.noise.Uniform(0.1), n_samples=6, rng=0)
    assert norm.training
    torch.testing.assert_close(norm.running_mean, before, rtol=0, atol=0)
