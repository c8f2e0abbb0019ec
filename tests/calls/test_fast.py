"""A faster copy of the model: the same function to rounding, or in bfloat16; never an old or a changed one."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
import torch
from torch import nn

import metfa
from metfa.explainers import CAM, LRP, RISE, Gradient, ScoreCAM, from_captum, from_gradcam

NOISE = metfa.noise.Uniform(0.1, bounds=(0, 1))
IMAGES = torch.rand(2, 3, 12, 16, generator=torch.Generator().manual_seed(0))


def net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(
            *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()),
            *(nn.Conv2d(8, 8, 3, padding=1, groups=4), nn.BatchNorm2d(8), nn.ReLU()),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)),
        )
        for norm in model.modules():
            if isinstance(norm, nn.BatchNorm2d):
                norm.running_mean.uniform_(-0.2, 0.2)
                norm.running_var.uniform_(0.5, 2)
    return model.eval()


class Viewing(nn.Module):
    """A network that works only on batches in the usual layout."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        features = self.network[:-3](x)
        return self.network[-1](features.view(len(x), 8, -1).mean(2) + features.view(len(x), -1)[:, :8])


class Shared(nn.Module):
    """A convolution whose output is used beside its normalisation, so that nothing can be folded."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 5)
        self.norm.running_mean += 1

    def forward(self, x):
        features = self.conv(x)
        return self.head((self.norm(features) + features).mean((2, 3)))


MADE = {
    "Gradient": Gradient,
    "ScoreCAM": ScoreCAM,
    "CAM": CAM,
    "LRP": LRP,
    "RISE": lambda called: RISE(called, n_masks=12, grid=4, rng=0),
    "Captum": lambda called: from_captum(called, "IntegratedGradients", n_steps=4),
    "grad-cam": lambda called: from_gradcam("GradCAM", called),
}


def maps_of(found):
    return found[0] if isinstance(found, tuple) else found


@pytest.mark.parametrize("name", MADE)
def test_exact_is_the_same_function(name):
    model = net()
    before = copy.deepcopy(model.state_dict())
    found = maps_of(MADE[name](metfa.Called(model, fast="exact"))(IMAGES, target=1))
    expected = maps_of(MADE[name](model)(IMAGES, target=1))
    assert found == pytest.approx(expected, abs=1e-4)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert sum(isinstance(part, nn.BatchNorm2d) for part in model) == 2


@pytest.mark.parametrize("name", ["Gradient", "RISE", "Captum"])
def test_bfloat16_is_close(name):
    found = maps_of(MADE[name](metfa.Called(net(), fast="bfloat16"))(IMAGES, target=1))
    expected = maps_of(MADE[name](net())(IMAGES, target=1))
    assert found.dtype == torch.float32
    assert 0 < (found - expected).abs().mean() < 0.1


def test_what_was_done_is_in_the_result(tmp_path):
    explainer = Gradient(metfa.Called(net(), fast="exact"))
    sample = metfa.explain(explainer, IMAGES, 1, noise=NOISE, n_samples=6, rng=0, run=metfa.Run(store=tmp_path / "a"))
    said = "exact: a copy of the model is asked, 2 batch normalisations folded; the same function up to rounding"
    assert sample.provenance["fast"].startswith(said)
    assert "fast='exact'" in sample.provenance["explainer"]
    assert "2 batch normalisations folded" in str(sample.summary())
    kept = list(explainer.model)
    assert not any(
        isinstance(part, nn.BatchNorm2d) or part.weight.requires_grad for part in kept if hasattr(part, "weight")
    )
    assert kept[0].weight.is_contiguous(memory_format=torch.channels_last)
    low = Gradient(metfa.Called(net(), fast="bfloat16"))
    low = metfa.explain(low, IMAGES, 1, noise=NOISE, n_samples=3, rng=0)
    assert "runs in bfloat16, so single maps differ by more than rounding" in low.provenance["fast"]
    with pytest.raises(FileExistsError, match=r"with explainer=.*fast='exact'"):
        metfa.explain(Gradient(net()), IMAGES, 1, noise=NOISE, n_samples=6, rng=0, run=metfa.Run(store=tmp_path / "a"))


def test_what_cannot_be_folded_stays():
    called = metfa.Called(Shared().eval(), fast="exact")
    assert called.scores(IMAGES) == pytest.approx(Shared.__call__(called.model, IMAGES).detach(), abs=1e-6)
    assert isinstance(called.model.norm, nn.BatchNorm2d)
    assert "folded" not in called.facts["fast"]


def test_a_model_that_changes_afterwards_is_not_explained_as_it_was():
    model = net()
    called = metfa.Called(model, fast="exact")
    called.scores(IMAGES)
    with torch.no_grad():
        model[0].weight.data[0, 0, 0, 0] += 1e-3
    for ask in (lambda: called.scores(IMAGES), lambda: called.gradient(IMAGES, 1), lambda: CAM(called)(IMAGES, 1)):
        with pytest.raises(ValueError, match="has changed since its copy for `fast='exact'` was made: make the"):
            ask()
    assert metfa.Called(model, fast="exact").scores(IMAGES) == pytest.approx(model(IMAGES).detach(), abs=1e-4)


@pytest.mark.parametrize(
    "change", [lambda weight: weight[[1, 0, 2, 3, 4]], lambda weight: weight[:, list(range(7, -1, -1))]]
)
def test_weights_that_change_places_are_noticed(change):
    model = net()
    called = metfa.Called(model, fast="exact")
    model[-1].weight.data.copy_(change(model[-1].weight.data).clone())
    with pytest.raises(ValueError, match="has changed since its copy"):
        called.scores(IMAGES)


@pytest.mark.parametrize("ask", ["scores", "__call__", "gradient"])
@pytest.mark.parametrize("fast", ["exact", "bfloat16"])
def test_a_model_that_fails_with_channels_last(fast, ask):
    model = Viewing(net()).eval()
    called = metfa.Called(model, fast=fast)
    found = getattr(called, ask)(IMAGES)
    expected = getattr(metfa.Called(model), ask)(IMAGES)
    np.testing.assert_allclose(
        maps_of(found).detach().double(), maps_of(expected).detach(), atol=1e-6 if fast == "exact" else 0.02
    )
    assert called.facts["layout"] == "as given"
    assert "2 batch normalisations folded" in called.facts["fast"]


def test_weights_that_are_computed_stay():
    model = net()
    nn.utils.parametrizations.weight_norm(model[0])
    called = metfa.Called(model, fast="exact")
    assert called.scores(IMAGES) == pytest.approx(model(IMAGES).detach(), abs=1e-5)
    assert "one batch normalisation folded" in called.facts["fast"]


def test_volumes_in_a_layout_that_is_asked_for():
    volumes = nn.Sequential(nn.Conv3d(1, 2, 3), nn.BatchNorm3d(2), nn.Flatten(), nn.Linear(432, 2)).eval()
    called = metfa.Called(volumes, fast="exact", memory_format=torch.channels_last_3d)
    batch = torch.rand(2, 1, 8, 8, 8)
    assert called.scores(batch) == pytest.approx(volumes(batch).detach(), abs=1e-5)
    assert called.model[0].weight.is_contiguous(memory_format=torch.channels_last_3d)


def test_layers_of_the_model_are_found_in_the_copy():
    model = net()
    for layer in (model[1], "1"):
        found, _ = ScoreCAM(metfa.Called(model, fast="exact"), layer)(IMAGES, target=1)
        assert found == pytest.approx(ScoreCAM(model, layer)(IMAGES, target=1)[0], abs=1e-4)
    found, _ = from_gradcam("GradCAM", metfa.Called(model, fast="exact"), model[3])(IMAGES, target=1)
    assert found == pytest.approx(from_gradcam("GradCAM", model, model[3])(IMAGES, target=1)[0], abs=1e-4)


def test_one_copy_for_explainers_that_share_it_and_for_other_settings():
    model = net()
    called = metfa.Called(model, fast="exact")
    assert Gradient(called).model is CAM(called).model is called.model
    assert metfa.Called(called.model, fast="exact", batch_size=3).model is called.model
    assert dataclasses.replace(called, fast=None).model is model
    low = dataclasses.replace(called, fast="bfloat16").model
    assert isinstance(low[1], nn.BatchNorm2d)  # made anew, so that folding the other copy is no change
    changed = copy.deepcopy(called.model)
    changed[-1].weight.data.zero_()
    assert metfa.Called(changed).model is changed  # a model of its own
    again = pickle.loads(pickle.dumps(called))
    assert again.scores(IMAGES) == pytest.approx(called.scores(IMAGES), abs=1e-6)


class Uncopied(nn.Linear):
    def __deepcopy__(self, memo):
        raise RuntimeError("no copies")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: metfa.Called(net(), fast=True),
            TypeError,
            "`fast` must be 'exact', 'bfloat16' or None, got bool: True",
        ),
        (lambda: metfa.Called(net(), fast="fp16"), ValueError, "'bfloat16' or None, got 'fp16'"),
        (
            lambda: metfa.Called(lambda x: x, fast="exact"),
            TypeError,
            "a copy of a torch.nn.Module, got function.*leave",
        ),
        (
            lambda: metfa.Called(Uncopied(2, 2), fast="exact"),
            ValueError,
            r"Uncopied cannot be copied \(no copies\): leave",
        ),
        (
            lambda: metfa.Called(torch.jit.script(nn.Sequential(nn.ReLU())), fast="exact"),
            ValueError,
            "folds the layers of a copy of the model, and the model is scripted.* or leave `fast` out",
        ),
        (
            lambda: from_gradcam("GradCAM", metfa.Called(net(), fast="bfloat16")),
            ValueError,
            "`fast` must not be 'bfloat16', in which grad-cam cannot explain: write `fast='exact'`",
        ),
        (lambda: Gradient(net(), fast="exact"), TypeError, r"write `Gradient\(metfa.Called\(model, fast='exact'\)\)`"),
    ],
)
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_what_is_wrong(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_the_same_seed_gives_the_same_bits():
    values = [
        metfa.explain(Gradient(metfa.Called(net(), fast="exact")), IMAGES, 1, noise=NOISE, n_samples=3, rng=0).values
        for _ in range(2)
    ]
    assert np.array_equal(*values)
