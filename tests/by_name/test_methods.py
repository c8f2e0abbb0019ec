"""Explainers by name."""

import sys

import pytest
import torch

from metfa import explainers, segmentation, text
from metfa.by_name.methods import METHODS, TEXT_METHODS, check_method, check_settings, explainer_of


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """A module `own` with a method of a user's own in it."""
    (tmp_path / "own.py").write_text("from metfa.explainers import Gradient\n\n\nclass slow(Gradient):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("own", None)


@pytest.fixture
def model():
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 4, 5), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(576, 3)
    return torch.nn.Sequential(*layers).eval()


@pytest.mark.parametrize("name", METHODS)
def test_every_name_makes_its_explainer(name):
    module = torch.nn.Identity()
    module.inner = torch.nn.Identity()
    explainer = explainer_of(name, module, {}, fast="bfloat16")
    assert type(explainer) is getattr(explainers, METHODS[name])
    assert explainer.model.fast_copy.name_of(module.inner) == "inner"  # a copy of it
    assert explainer.called.fast == "bfloat16"
    check_method(name)
    check_settings(name, {})


def test_settings_reach_the_explainer(model):
    explainer = explainer_of("rise", model, {"n_masks": 7, "grid": (2, 3)})
    assert (explainer.n_masks, explainer.grid) == (7, (2, 3))


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("rise", {"masks": 5}, "rise has no setting 'masks', did you mean 'n_masks'.; it has .*n_masks"),
        ("gradient", {"model": 5}, "gradient has no setting 'model'"),
        ("rise", {"keep": 2}, "`keep` must lie strictly between 0 and 1, got 2"),
        ("own:slow", {"pace": 5}, "own:slow has no setting 'pace'"),
    ],
)
def test_unfit_settings(model, method, settings, message):
    with pytest.raises(ValueError, match=message):
        explainer_of(method, model, settings)


def test_unknown_methods(model):
    with pytest.raises(ValueError, match=r"one of gradient, smoothgrad.*got 'gradiant', did you mean 'gradient'"):
        check_method("gradiant")
    for method in ("own:nothing", "no.such.module:name", ":name", "own:"):
        with pytest.raises(ValueError, match=f"the method '{method}' cannot be imported as package.module:callable: "):
            explainer_of(method, model, {})
    with pytest.raises(TypeError, match="the method 'builtins:id' must return an explainer, got int"):
        explainer_of("builtins:id", model, {})


def test_a_method_of_the_users_own(model):
    assert type(explainer_of("own:slow", model, {})).__name__ == "slow"


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


class TestOfTexts:
    @pytest.mark.parametrize("name", TEXT_METHODS)
    def test_every_name_makes_its_explainer(self, name):
        check_method(name, "text")
        check_settings(name, {}, "text")
        model = text.load_model("sentiment")
        explainer = explainer_of(name, model, {}, "text")
        assert type(explainer) is getattr(text, TEXT_METHODS[name])
        assert explainer.model is model

    def test_settings(self):
        check_settings("lemna", {"n_perturbations": 50}, "text")
        assert explainer_of("lemna", len, {"n_perturbations": 50}, "text").n_perturbations == 50
        with pytest.raises(ValueError, match="no setting 'n_perturbation', did you mean 'n_perturbations'"):
            check_settings("lemna", {"n_perturbation": 50}, "text")
        with pytest.raises(ValueError, match="`n_perturbations` must"):
            check_settings("lemna", {"n_perturbations": 0}, "text")

    def test_methods_of_images_are_none(self):
        with pytest.raises(ValueError, match=r"must be one of lemna, .*, got 'rise'"):
            check_method("rise", "text")
        with pytest.raises(ValueError, match=r"must be one of gradient, .*, got 'lemna'"):
            check_method("lemna")

    def test_one_of_the_users_own(self):
        assert type(explainer_of("own:slow", torch.nn.Identity(), {}, "text")).__name__ == "slow"


class TestScenes:
    """Explainers of a region in a scene: those of images, and GridSaliency."""

    @pytest.mark.parametrize("name", ["grid-saliency", *METHODS])
    def test_every_name_makes_its_explainer(self, name):
        regional = segmentation.RegionModel(torch.nn.Conv2d(3, 2, 1), torch.eye(4, dtype=torch.bool))
        explainer = explainer_of(name, regional, {}, "scene")
        expected = segmentation.GridSaliency if name == "grid-saliency" else getattr(explainers, METHODS[name])
        assert type(explainer) is expected
        assert explainer.model is regional
        check_method(name, "scene")
        check_settings(name, {}, "scene")

    def test_settings_are_checked_before_a_network_is_there(self):
        check_settings("grid-saliency", {"grid": (3, 4), "baseline": 0.0}, "scene")
        with pytest.raises(ValueError, match="grid-saliency has no setting 'regions'"):
            check_settings("grid-saliency", {"regions": 3}, "scene")
        with pytest.raises(ValueError, match="at least 1, got 0"):
            check_settings("grid-saliency", {"grid": 0}, "scene")

    def test_pictures_have_no_grid_saliency(self):
        with pytest.raises(ValueError, match="got 'grid-saliency'"):
            check_method("grid-saliency")
