"""What all explainers have in common, each of ours and each adapter: the trials that a new one must pass."""

import random
from contextlib import nullcontext

import numpy as np
import pytest
import torch

import metfa
from metfa import ModelStateWarning
from metfa.by_name.methods import METHODS, TEXT_METHODS
from metfa.sampling.protocol import explained_model, known_independent, takes_rngs

from .every_explainer import CASES

TARGETS = [0, 2, 1, 3]
MODULE_HOOKS = [name for name in vars(torch.nn.Module()) if "hooks" in name and "state_dict" not in name]
pytestmark = [
    pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning"),  # SHAP's
    pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require gradients:UserWarning"),  # Captum's
    pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning"),  # networks and budgets are tiny
]


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(params=[name for name, case in CASES.items() if case.guarded])
def guarded(request):
    return CASES[request.param]


@pytest.fixture(autouse=True)
def no_progress_bars(capsys):
    """Some libraries draw them on the standard error."""
    yield
    capsys.readouterr()


def made(case):
    module = case.inputs.module()
    return case.make(module), module, case.inputs.rows()


def generators(n=4, seed=5):
    return [np.random.default_rng([seed, row]) for row in range(n)]


def host(values):
    return values.detach().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


def explained(explainer, inputs, targets=TARGETS, rngs=None):
    """Maps, and scores where the explainer gives them, both as NumPy arrays."""
    given = {"rngs": rngs or generators(len(inputs))} if takes_rngs(explainer) else {}
    output = explainer(inputs, targets, **given)
    maps, scores = output if isinstance(output, tuple) else (output, None)
    return host(maps), None if scores is None else host(scores)


def test_whatever_has_a_name_is_tried():
    named = {
        *METHODS.values(),
        *(f"{name} of texts" if name in METHODS.values() else name for name in TEXT_METHODS.values()),
    }
    assert named <= CASES.keys()


def test_a_finite_map_for_each_row(case):
    explainer, _, rows = made(case)
    maps, scores = explained(explainer, rows)
    assert maps.shape == (4, *case.inputs.map_shape)
    assert np.isfinite(maps).all()
    assert np.ptp(maps)
    if scores is not None:
        np.testing.assert_allclose(scores, host(explained_model(explainer)(rows)), atol=1e-6)


def test_a_row_is_independent_of_its_neighbours(case):
    explainer, _, rows = made(case)
    together, _ = explained(explainer, rows)
    for row, target in enumerate(TARGETS):
        alone, _ = explained(explainer, rows[row : row + 1], [target], generators()[row : row + 1])
        np.testing.assert_allclose(alone[0], together[row], atol=1e-9)


def test_one_seed_gives_one_map(case):
    explainer, _, rows = made(case)
    first, again, other = (explained(explainer, rows, rngs=generators(seed=seed))[0] for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert (np.abs(other - first).max() > 1e-6) == case.random


def test_explain_runs_it_and_the_size_of_its_batches_changes_nothing(case):
    explainer, _, rows = made(case)
    noise = metfa.text.Synonyms(0.3) if isinstance(rows, list) else metfa.noise.Uniform(0.05, bounds=(0, 1))
    settings = {"noise": noise, "n_samples": 3, "rng": 0}
    alone, together = (metfa.explain(explainer, rows, batch_size=size, **settings) for size in (1, 5))
    assert alone.values.shape == (3, 4, *case.inputs.map_shape)
    np.testing.assert_allclose(alone.values, together.values, atol=1e-9)
    assert list(alone.target) == host(explained_model(explainer)(rows)).argmax(1).tolist()


def state_of(module):
    """All that an explainer could leave behind in a module, gradients and weights by value and by object."""
    parameters = list(module.parameters())
    return {
        "modules": [(id(part), part.training) for part in module.modules()],
        "hooks": [[list(getattr(part, name).items()) for name in MODULE_HOOKS] for part in module.modules()],
        "full hooks": [part._is_full_backward_hook for part in module.modules()],
        "tensor hooks": [dict(parameter._backward_hooks or {}) for parameter in parameters],
        "required": [parameter.requires_grad for parameter in parameters],
        "gradients": [(id(p.grad), None if p.grad is None else p.grad.tolist()) for p in parameters],
        "weights": [(id(tensor), tensor.tolist()) for tensor in (*parameters, *module.buffers())],
    }


def global_generators():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


@pytest.mark.parametrize("fails", ["never", "at once", "at the end"])
def test_the_model_the_rows_and_the_global_generators_are_left_as_found(guarded, fails):
    """Also after an exception in each forward pass, or the last; one module is in training mode, one is frozen."""
    explainer, module, rows = made(guarded)
    parameters = list(module.parameters())
    parameters[0].requires_grad_(False)
    parameters[-1].grad = torch.ones_like(parameters[-1])
    last = list(module.modules())[-1]
    last.train()
    calls, n_calls = [], {"never": None, "at once": 1, "at the end": passes(guarded)}[fails]

    def count(*_):
        calls.append(1)
        if n_calls is not None and len(calls) >= n_calls:
            raise KeyError("a fault of the model's")

    last.register_forward_hook(count)
    before, generators_before = state_of(module), global_generators()
    given = rows.clone() if isinstance(rows, torch.Tensor) else list(rows)
    refused = nullcontext() if fails == "never" else pytest.raises(KeyError, match="of the model's")
    with refused, pytest.warns(ModelStateWarning, match="training mode"):
        explained(explainer, given)
    assert calls
    assert state_of(module) == before
    assert global_generators() == generators_before
    assert torch.is_grad_enabled()
    if isinstance(rows, torch.Tensor):
        assert torch.equal(given, rows)
        assert not given.requires_grad
        assert given.grad is None
    else:
        assert given == rows


def passes(case):
    """Forward passes of the model in one call."""
    explainer, module, rows = made(case)
    calls = []
    list(module.modules())[-1].register_forward_hook(lambda *_: calls.append(1))
    explained(explainer, rows)
    return len(calls)


def test_rows_that_are_not_finite_are_refused(guarded):
    explainer, _, rows = made(guarded)
    if isinstance(rows, list) or guarded.takes_nan:
        pytest.skip("texts are finite, and NaN may stand for a missing value of a table")
    rows[1].view(-1)[7] = torch.nan
    with pytest.raises(ValueError, match=r"`inputs` must be finite, but input 1 holds|the model's scores are NaN for"):
        explained(explainer, rows)


@pytest.mark.parametrize("inputs", [None, "abc", object()])
def test_what_are_no_rows_is_refused(guarded, inputs):
    explainer, _, _ = made(guarded)
    with pytest.raises(TypeError, match=r"`(inputs|texts)` must"):
        explainer(inputs, 0)


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        (9, ValueError, r"`target` must lie in 0\.\.3 .*got 9 for input 0"),
        ([0, 1, 2, 4], ValueError, r"`target` must lie in 0\.\.3 .*got 4 for input [03]"),
        (-1, ValueError, "must not be negative, got -1"),
        ([0, 1], ValueError, r"each of the [14] inputs, got [02] entries"),
        (1.5, TypeError, r"got float: 1\.5"),
    ],
)
def test_targets_that_are_no_class_are_refused(guarded, target, error, message):
    explainer, _, rows = made(guarded)
    with pytest.raises(error, match=message):
        explainer(rows, target)


def test_who_promises_that_rows_are_independent():
    """`explain` then puts rows of several inputs into one call."""
    unsure = {name for name, case in CASES.items() if not known_independent(made(case)[0])}
    assert unsure == {"heatmap of a Captum object", "Captum's Saliency", "Captum's GuidedBackprop"}
