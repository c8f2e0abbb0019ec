"""The layout in which a model is asked: by the rule, as it was in a run that is resumed, as the model takes it."""

import copy
import dataclasses
import json

import numpy as np
import pytest
import torch
from torch import nn

import metfa
from metfa.calls.layouts import layout_kept
from metfa.explainers import CAM, LRP, RISE, Gradient, ScoreCAM, from_captum, from_gradcam
from metfa.results.manifests import read_json

NOISE = metfa.noise.Uniform(0.1, bounds=(0, 1))
IMAGES = torch.rand(2, 3, 12, 16, generator=torch.Generator().manual_seed(0))


class Viewing(nn.Module):
    """A network that works only on batches in the usual layout."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network[-1](self.network[:-1](x).view(len(x), -1))


class Merging(nn.Module):
    """A network that works on batches of one in any layout, and on others only in the usual one."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Conv2d(3, 4, 3), nn.Conv2d(1, 2, 3), nn.Linear(8, 5)

    def forward(self, x):
        features = self.first(x)
        features = self.second(features.view(4 * len(x), 1, *features.shape[2:]))
        return self.head(features.mean((2, 3)).reshape(len(x), 8))


class OneAlone(nn.Sequential):
    """A network that takes only batches of one."""

    def forward(self, x):
        assert len(x) == 1
        return super().forward(x)


def net(seed=0, n=2):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()]
        if n == 2:
            layers += [nn.Conv2d(8, 8, 3, padding=1, groups=4), nn.BatchNorm2d(8), nn.ReLU()]
        model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
        for norm in model.modules():
            if isinstance(norm, nn.BatchNorm2d):
                norm.running_mean.uniform_(-0.2, 0.2)
                norm.running_var.uniform_(0.5, 2)
    return model.eval()


def viewing():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Viewing(nn.Sequential(*list(net())[:-3], nn.Linear(8 * 12 * 16, 5))).eval()


def is_last(batch):
    return not batch.is_contiguous() and batch.is_contiguous(memory_format=torch.channels_last)


def watched(model):
    """The model, and whether the batches that it gets have their channels last."""
    seen = []
    model.register_forward_pre_hook(lambda _, args: seen.append(is_last(args[0])))
    return model, seen


@pytest.mark.parametrize(
    ("model", "images", "last"),
    [
        (net(), IMAGES, True),
        (net().double(), IMAGES.double(), True),
        (net(n=1), IMAGES, False),  # one convolution, as that which cuts the patches of a transformer
        (net().bfloat16(), IMAGES.bfloat16(), False),
        (nn.Sequential(nn.Flatten(), nn.Linear(576, 5)).eval(), IMAGES, False),
    ],
)
def test_the_rule(model, images, last):
    model, seen = watched(copy.deepcopy(model))
    called = metfa.Called(model)
    called.scores(images)
    called.gradient(images, 1)
    assert set(seen) == {last}
    assert called.facts == {"layout": "channels last" if last else "as given"}
    seen.clear()
    metfa.Called(model, memory_format=None).gradient(images, 1)
    assert set(seen) == {False}


def test_volumes_and_functions_of_arrays_go_as_they_are_given():
    volumes = nn.Sequential(nn.Conv3d(1, 2, 3), nn.Conv3d(2, 2, 3), nn.Flatten(), nn.Linear(128, 2)).eval()
    called = metfa.Called(volumes)
    called.scores(torch.rand(2, 1, 8, 8, 8))
    assert called.facts == {"layout": "as given"}
    assert metfa.Called(lambda x: x.mean((2, 3))).scores(IMAGES.numpy()).shape == (2, 3)


def with_rngs(explainer):
    """The explainer with generators that do not depend on the precision of its inputs."""
    return lambda inputs, target: explainer(inputs, target, rngs=list(map(np.random.default_rng, range(len(inputs)))))


@pytest.mark.parametrize(
    "made",
    [
        Gradient,
        ScoreCAM,
        CAM,
        LRP,
        lambda called: with_rngs(RISE(called, n_masks=12, grid=4)),
        lambda called: from_captum(called, "IntegratedGradients", n_steps=4),
        lambda called: from_gradcam("GradCAM", called),
    ],
    ids=["Gradient", "ScoreCAM", "CAM", "LRP", "RISE", "Captum", "grad-cam"],
)
@pytest.mark.parametrize("rows", [1, 2])
def test_maps_are_those_of_float64_in_the_usual_layout(made, rows):
    """On a CPU torch 2.14 has wrong gradients of batch norms in odd layouts."""
    found = made(metfa.Called(net()))(IMAGES[:rows], target=1)
    exact = made(metfa.Called(net().double(), memory_format=None))(IMAGES[:rows].double(), target=1)
    found, exact = (one[0] if isinstance(one, tuple) else one for one in (found, exact))
    assert found.double() == pytest.approx(exact.double(), abs=2e-4)


@pytest.mark.parametrize("made", [Gradient, ScoreCAM, lambda called: from_captum(called, "Saliency")])
def test_a_model_that_fails_on_it_is_asked_as_its_inputs_are(made):
    explainer = made(metfa.Called(viewing()))
    expected = made(metfa.Called(viewing(), memory_format=None))
    sample, other = (metfa.explain(one, IMAGES, 1, noise=NOISE, n_samples=3, rng=0) for one in (explainer, expected))
    assert np.array_equal(sample.values, other.values)
    assert sample.provenance.get("layout", "as given") == "as given"
    called = metfa.Called(viewing())
    called.scores(IMAGES)
    assert "view size is not compatible" in called.layouts.refused


@pytest.mark.parametrize("made", [Gradient, lambda called: RISE(called, n_masks=12, grid=4, rng=0)])
def test_one_row_does_not_speak_for_many(made):
    model = Merging().eval()
    called = metfa.Called(model)
    assert called.scores(IMAGES[:1]) == pytest.approx(model(IMAGES[:1]).detach(), abs=1e-6)
    found, expected = made(called), made(metfa.Called(model, memory_format=None))
    for rows in (1, 2):
        assert torch.equal(found(IMAGES[:rows], 1)[0], expected(IMAGES[:rows], 1)[0])
    assert called.facts == {"layout": "as given"}


def test_a_model_that_takes_one_row_has_its_layout_too():
    model, seen = watched(OneAlone(*net()).eval())
    called = metfa.Called(model, batch_size=1)
    called.scores(IMAGES)
    assert seen[-2:] == [True, True]
    assert called.facts == {"layout": "channels last"}


@pytest.mark.parametrize("ask", ["scores", "__call__"])
def test_an_error_of_another_reason_changes_no_layout(ask):
    """Of one moment, or of the numbers that come."""
    model = net()
    calls = []

    def fails(_, args):
        calls.append(args)
        if len(calls) == 1 or (args[0] > 1).any():
            raise RuntimeError("nothing of layouts")

    model.register_forward_pre_hook(fails)
    called = metfa.Called(model)
    getattr(called, ask)(IMAGES)
    assert called.facts == {"layout": "channels last"}
    other = metfa.Called(model)
    with pytest.raises(RuntimeError, match="nothing of layouts"):
        getattr(other, ask)(IMAGES + 1)
    other.scores(IMAGES)
    assert other.facts == {"layout": "channels last"}


@pytest.mark.parametrize("ask", ["scores", "gradient", "__call__"])
def test_a_layout_that_is_asked_for_and_fails_says_so(ask):
    called = metfa.Called(viewing(), memory_format=torch.channels_last)
    with pytest.raises(
        ValueError, match=r"fails on inputs in the layout torch\.channels_last .* leave `memory_format`"
    ):
        getattr(called, ask)(IMAGES)
    assert metfa.Called(viewing()).scores(IMAGES).shape == (2, 5)  # as it says


def test_an_error_of_the_model_is_its_own():
    def fails(x):
        raise RuntimeError("nothing of layouts")

    for ask in ("scores", "gradient", "__call__"):
        model = net()
        model.register_forward_pre_hook(lambda _, args: fails(args))
        with pytest.raises(RuntimeError, match="nothing of layouts"):
            getattr(metfa.Called(model), ask)(IMAGES)


def test_a_layout_for_other_axes_is_named():
    with pytest.raises(ValueError, match=r"torch\.channels_last_3d is for inputs of 5 axes, .* torch\.channels_last,"):
        metfa.Called(net(), memory_format=torch.channels_last_3d).scores(IMAGES)


def run(explainer, **settings):
    settings = {"noise": NOISE, "n_samples": 4, "batch_size": 2, "rng": 0, **settings}
    return metfa.explain(explainer, IMAGES, 1, **settings)


def test_the_same_seed_gives_the_same_bits():
    assert np.array_equal(run(Gradient(net())).values, run(Gradient(net())).values)


def interrupted(folder, layout, model=None):
    """A store of a run that stopped after two samples, as a version without a rule of layouts wrote it."""
    model = net() if model is None else model
    explainer = Gradient(metfa.Called(model, memory_format=layout))
    with pytest.raises(KeyboardInterrupt):
        run(Stopped(explainer), run=metfa.Run(store=folder))
    path = folder / "run.json"
    written = json.loads(path.read_text())
    before = "None" if layout is None else "torch.channels_last"
    written["explainer"] = (
        f"Gradient(called=Called(model=Sequential, batch_size=None, softmax=True, autocast=None, memory_format={before}"
        "), channel_axis=1, scale=True)"
    )
    del written["layout"]
    path.write_text(json.dumps(written))


@dataclasses.dataclass
class Stopped:
    """An explainer that is interrupted after some calls."""

    explainer: object
    calls: int = dataclasses.field(default=5, repr=False)

    @property
    def model(self):
        return self.explainer.model

    rows_independent = True

    def __call__(self, inputs, target=None):
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return self.explainer(inputs, target)


@pytest.mark.parametrize("layout", [None, torch.channels_last], ids=["as given", "channels last"])
def test_an_earlier_run_resumes_in_its_own_layout(layout, tmp_path):
    interrupted(tmp_path / "store", layout)
    sample = run(Gradient(net()), run=metfa.Run(store=tmp_path / "store"))
    expected = run(Gradient(metfa.Called(net(), memory_format=layout)))
    assert sample.provenance["maps_made"] < 8
    assert np.array_equal(sample.values, expected.values)
    assert sample.provenance["layout"] == ("as given" if layout is None else "channels last")
    again = run(Gradient(net()), run=metfa.Run(store=tmp_path / "store"))  # which is finished
    assert np.array_equal(again.values, expected.values)


def test_a_finished_result_of_before_is_joined_and_returned(tmp_path):
    sample = run(Gradient(metfa.Called(net(), memory_format=None)))
    words = (
        "Gradient(called=Called(model=Sequential, batch_size=None, softmax=True, autocast=None, memory_format=None), "
    )
    before = {**sample.provenance, "explainer": words + "channel_axis=1, scale=True)"}
    del before["layout"]
    sample = dataclasses.replace(sample, provenance=before)
    more = run(Gradient(net()), run=metfa.Run(first_sample=4))
    joined = sample.concat(more)
    assert joined.n_samples == 8
    assert joined.provenance["layout"] is None  # of the first it is not recorded
    assert more.concat(run(Gradient(net()), run=metfa.Run(first_sample=8))).provenance["layout"] == "channels last"
    both = run(Gradient(metfa.Called(net(), memory_format=None)))
    assert more.provenance["explainer"] != both.provenance["explainer"]  # that layout is asked for by name
    sample.save(tmp_path / "store")
    assert np.array_equal(run(Gradient(net()), run=metfa.Run(store=tmp_path / "store")).values, sample.values)


def test_a_comparison_and_its_store_record_the_layout(tmp_path):
    settings = {"noise": NOISE, "n_samples": 3, "rng": 0}
    pair = (Gradient(net()), Gradient(net(1)))
    found = metfa.compare(*pair, IMAGES, 1, **settings, run=metfa.Run(store=tmp_path / "store"))
    expected = metfa.compare(*pair, IMAGES, 1, **settings)
    assert np.array_equal(found.values, expected.values)
    assert [part.provenance["layout"] for part in found.pair] == ["channels last"] * 2
    assert read_json(tmp_path / "store" / "before" / "manifest.json")["provenance"]["layout"] == "channels last"


def test_what_is_kept_holds_within():
    called = metfa.Called(watched(net())[0])
    with layout_kept("as given"):
        called.scores(IMAGES)
        assert called.facts == {"layout": "as given"}
    called.scores(IMAGES)
    assert called.facts == {"layout": "channels last"}


def test_a_result_records_the_layout_of_its_own_run():
    called = metfa.Called(net())
    called.scores(IMAGES)
    called.model.bfloat16()
    called.scores(IMAGES.bfloat16())
    assert called.facts == {"layout": "as given and channels last"}
    called.model.float()
    assert run(Gradient(called)).provenance["layout"] == "channels last"
