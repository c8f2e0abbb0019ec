"""Explainers by name on the command line, and their settings in text form."""

import re

import pytest
import torch

from metfa import explainers
from metfa.cli.methods import METHODS, check_method, check_settings, explainer_of, settings_of


@pytest.fixture
def model(tiny):
    return __import__("tiny").model()


@pytest.mark.parametrize(
    ("texts", "settings"),
    [
        ([], {}),
        (["n_masks=500", "keep = 0.1"], {"n_masks": 500, "keep": 0.1}),
        (["grid=(7, 5)", "softmax=False", "batch_size=None"], {"grid": (7, 5), "softmax": False, "batch_size": None}),
        (["segmentation=slic", "layer='head.act'", "a=b=c"], {"segmentation": "slic", "layer": "head.act", "a": "b=c"}),
    ],
)
def test_settings(texts, settings):
    assert settings_of(texts) == settings


@pytest.mark.parametrize("text", ["", "n_masks", "=5", "n_masks=", "n masks=5", "__import__('os')=1"])
def test_what_is_no_setting(text):
    with pytest.raises(ValueError, match=f"`--set` must be key=value.*got {re.escape(repr(text))}"):
        settings_of([text])


def test_a_setting_given_twice():
    with pytest.raises(ValueError, match="names keep twice"):
        settings_of(["keep=0.1", "keep=0.2"])


def test_a_setting_is_data_never_code():
    assert settings_of(["a=__import__('os').getcwd()"]) == {"a": "__import__('os').getcwd()"}


@pytest.mark.parametrize("name", METHODS)
def test_every_name_makes_its_explainer(name):
    module = torch.nn.Identity()
    explainer = explainer_of(name, module, {}, bfloat16=True)
    assert type(explainer) is getattr(explainers, METHODS[name])
    assert explainer.model is module
    assert explainer.memory_format is torch.channels_last
    assert explainer.autocast is torch.bfloat16
    check_method(name, bfloat16=True)
    check_settings(name, {})


def test_settings_reach_the_explainer(model):
    explainer = explainer_of("rise", model, {"n_masks": 7, "grid": (2, 3)})
    assert (explainer.n_masks, explainer.grid) == (7, (2, 3))


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("rise", {"masks": 5}, "rise has no setting 'masks', did you mean 'n_masks'.; it has .*n_masks"),
        ("gradient", {"model": 5}, "gradient has no setting 'model'"),
        ("rise", {"keep": 2}, "`--set`/`--method`: `keep` must lie between 0 and 1, got 2"),
        ("tiny:slow", {"pace": 5}, "tiny:slow has no setting 'pace'"),
    ],
)
def test_unfit_settings(model, method, settings, message):
    with pytest.raises(ValueError, match=message):
        explainer_of(method, model, settings)


def test_unknown_methods(model):
    with pytest.raises(ValueError, match=r"one of gradient, smoothgrad.*got 'gradiant', did you mean 'gradient'"):
        check_method("gradiant", bfloat16=False)
    for method in ("tiny:nothing", "no.such.module:name", ":name", "tiny:"):
        with pytest.raises(ValueError, match=f"`--method` '{method}' cannot be imported: "):
            explainer_of(method, model, {})
    with pytest.raises(TypeError, match="`--method` 'builtins:id' must return an explainer, got int"):
        explainer_of("builtins:id", model, {})


def test_a_method_of_the_users_own(model):
    assert type(explainer_of("tiny:slow", model, {})).__name__ == "slow"
    with pytest.raises(
        ValueError, match=r"`--bfloat16` is for gradient.*; tiny:slow runs in the model's own precision"
    ):
        check_method("tiny:slow", bfloat16=True)


class TestCaptum:
    def test_by_name(self, model):
        maps = explainer_of("captum:InputXGradient", model, {})(torch.rand(2, 3, 16, 16), target=torch.tensor([0, 1]))
        assert maps.shape == (2, 16, 16)

    def test_settings(self, model):
        explainer = explainer_of("captum:IntegratedGradients", model, {"n_steps": 4})
        explainer(torch.rand(1, 3, 16, 16), target=torch.tensor([0]))
        with pytest.raises(ValueError, match="no setting 'steps', did you mean 'n_steps'"):
            explainer_of("captum:IntegratedGradients", model, {"steps": 4})

    def test_unknown(self):
        with pytest.raises(ValueError, match="no method 'Salience', did you mean 'Saliency'"):
            check_settings("captum:Salience", {})
