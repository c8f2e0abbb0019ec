"""Every explainer on models that are not the textbook case: the right map, or an error that says what to write."""

import copy
import re

import numpy as np
import pytest
import torch
from torch import nn

import metfa
from metfa.models import Selected, TwoClasses

from .every_explainer import CASES, PATCHES, PICTURES, ROWS

pytestmark = [
    pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning"),  # SHAP's
    pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require gradients:UserWarning"),  # Captum's
    pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning"),  # networks and budgets are tiny
    pytest.mark.filterwarnings("ignore::metfa.ModelOutputWarning"),
]
NAMES = [name for name, case in CASES.items() if case.inputs in (PICTURES, PATCHES, ROWS)]
ONE_OF_EACH_WAY = [  # that our code asks a module: a wrapper around it is the same to all that ask in one way
    "Gradient", "RISE", "CAM", "LRP", "LRP by AttnLRP", "LeGrad", "ScoreCAM", "Captum's GuidedBackprop",
    "grad-cam's GradCAM", "SHAP's DeepExplainer", "lime's LimeImageExplainer",
]  # fmt: skip
WITHOUT_GRADIENT = {
    "RISE", "LIME", "ScoreCAM", "ScoreCAM on tokens", "CAM", "Captum's KernelShap", "grad-cam's AblationCAM",
    "lime's LimeImageExplainer", "lime's LimeTabularExplainer",
}  # fmt: skip


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture(autouse=True)
def no_progress_bars(capsys):
    """Some libraries draw them on the standard error."""
    yield
    capsys.readouterr()


class Answering(nn.Module):
    """A network with something done to its scores."""

    def __init__(self, network, after):
        super().__init__()
        self.network, self.after = network, after

    def forward(self, x):
        return self.after(self.network(x))


class NoGradient(Answering):
    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)


def same(x):
    return x


def explained(name, module, **given):
    case = CASES[name]
    explainer = case.make(module.eval())
    noise = metfa.noise.Uniform(0.05, bounds=(0, 1))
    return metfa.explain(explainer, case.inputs.rows()[:2], noise=noise, n_samples=2, rng=0, **given)


_plain = {}


def plain(name):
    if name not in _plain:
        _plain[name] = explained(name, CASES[name].inputs.module())
    return _plain[name]


def assert_same(sample, expected):
    np.testing.assert_allclose(sample.values, expected.values, atol=1e-6)
    assert sample.target == expected.target


ANSWERS = {
    "dict": (lambda scores: {"loss": None, "logits": scores}, "logits"),
    "two heads of two rows": (lambda scores: (scores, scores[:, :2]), 0),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_answers_that_are_no_array(name, answer):
    after, key = ANSWERS[answer]
    module = Answering(CASES[name].inputs.module(), after)
    if "SHAP" not in name:  # these ask the model when they are made
        given = "predict" if "lime" in name else "model"
        advice = re.escape(f"write `metfa.models.Selected({given}, {key!r})`")
        with pytest.raises(TypeError, match=rf"`{given}` must return an array of scores .*{advice}"):
            explained(name, module)
    assert_same(explained(name, Selected(module, key)), plain(name))


ONE_SCORE = {"(batch, 1)": lambda scores: scores[:, 1:2], "(batch,)": lambda scores: scores[:, 1]}
NO_PROBABILITY = {
    "RISE",
    "LIME",
    "MASK",
    "IGOS",
    "ScoreCAM",
    "ScoreCAM on tokens",
    "lime's LimeImageExplainer",
    "lime's LimeTabularExplainer",
}


@pytest.mark.parametrize("shape", ONE_SCORE)
def test_one_score_a_row(name, shape):
    """The one score is explained, or an error says how to go on; one logit of two classes is wrapped."""
    module = Answering(CASES[name].inputs.module(), ONE_SCORE[shape])
    if name == "CAM":
        with pytest.raises(ValueError, match=r"its last layer 'network\.7' gives 4 numbers, but its scores have shape"):
            explained(name, module)
        return
    if name == "SHAP's DeepExplainer" and shape == "(batch,)":
        pytest.skip("SHAP fails when it is made")
    if name in NO_PROBABILITY or (name.startswith("SHAP") and shape == "(batch,)"):
        with pytest.raises(ValueError, match=r"metfa\.models\.TwoClasses\(model\)|Unflatten\(0, \(-1, 1\)\)"):
            explained(name, module)
    else:
        sample = explained(name, module)
        assert np.isfinite(sample.values).all()
        assert sample.flip_rate is None  # one score never changes its class
    both = explained(name, TwoClasses(module))
    with torch.no_grad():
        scores = module(CASES[name].inputs.rows()[:2]).reshape(2).numpy()
    np.testing.assert_allclose(both.scores, np.stack([-scores / 2, scores / 2], axis=1), atol=1e-6)
    assert list(both.target) == (scores > 0).astype(int).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH_WAY)
def test_a_parallel_model_is_the_model(name):
    assert_same(explained(name, nn.DataParallel(CASES[name].inputs.module())), plain(name))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")  # the compiler's
@pytest.mark.parametrize("name", ONE_OF_EACH_WAY)
def test_a_compiled_model_that_has_run_is_the_model(name):
    inputs = CASES[name].inputs
    module = torch.compile(inputs.module(), backend="eager")
    with torch.no_grad():
        module(inputs.rows())
    assert_same(explained(name, module), plain(name))


def required(module):
    return [parameter.requires_grad for parameter in module.parameters()]


def test_a_model_that_runs_without_gradients(name):
    module = NoGradient(CASES[name].inputs.module(), same)
    before = required(module)
    if name in WITHOUT_GRADIENT:
        assert_same(explained(name, module), plain(name))
    else:
        with pytest.raises(ValueError, match=r"no gradient by its input: .* such as by metfa\.explainers\.RISE"):
            explained(name, module)
    assert required(module) == before


@pytest.mark.slow
def test_weights_made_in_inference_mode(name):
    if name == "SHAP's GradientExplainer":
        pytest.skip("SHAP fails when it is made")
    with torch.inference_mode():
        module = CASES[name].inputs.module()
    before = required(module)
    if name in WITHOUT_GRADIENT - {"grad-cam's AblationCAM"}:
        assert_same(explained(name, module), plain(name))
    else:
        with pytest.raises(ValueError, match=r"made in inference mode, .* write `model = copy\.deepcopy\(model\)`"):
            explained(name, module)
    assert required(module) == before
    assert_same(explained(name, copy.deepcopy(module)), plain(name))
