"""grad-cam's methods as explainers: the same maps, row by row, and a model left as it was."""

import gc
import subprocess
import sys

import numpy as np
import pytest
import pytorch_grad_cam
import torch
from PIL import Image
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget, FinerWeightedTarget
from skimage import data
from torch import nn

import metfa
from metfa import ModelStateWarning, RowDependenceWarning
from metfa.explainers._gradcam_methods import ALONE, INDEPENDENT
from metfa.explainers.gradcam_adapter import from_gradcam
from metfa.explainers.heatmaps import scale_to_unit
from metfa.explainers.score_cam import ScoreCAM
from metfa.models import Normalised
from metfa.sampling.protocol import known_independent, takes_rngs

PICTURES = torch.rand(3, 3, 16, 20, generator=torch.Generator().manual_seed(1))
TARGETS = [0, 2, 1]
NEEDED = {"FinerCAM": {"target_of": lambda index: FinerWeightedTarget(index, [3], 1.0)}}


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 8, 3), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
        ).eval()  # fmt: skip


NET = network()


@pytest.fixture(autouse=True)
def no_progress_bars(capsys):
    """grad-cam draws them on the standard error."""
    yield
    capsys.readouterr()


def state_of(model):
    hooks = [len(m._forward_hooks) + len(m._backward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    training = [module.training for module in model.modules()]
    return list(model.modules()), hooks, training, [(p.requires_grad, p.grad) for p in model.parameters()]


def assert_left(model, before):
    after = state_of(model)
    assert all(a is b for a, b in zip(after[0], before[0], strict=True))
    assert after[1:3] == before[1:3]
    for (needs, gradient), (needed, kept) in zip(after[3], before[3], strict=True):
        assert needs == needed
        assert gradient is kept


def by_the_library(name, inputs, targets, **settings):
    net = network()
    cam = getattr(pytorch_grad_cam, name)(net, [] if name == "FullGrad" else [net[4]], **settings)
    return cam(inputs, [ClassifierOutputTarget(target) for target in targets])


class TestEveryMethod:
    @pytest.mark.parametrize("name", ["GradCAM", "XGradCAM", "LayerCAM", "FullGrad", "AblationCAM", "ScoreCAM"])
    def test_equals_the_library(self, name):
        maps, scores = from_gradcam(name, NET)(PICTURES, TARGETS)
        expected = scale_to_unit(torch.from_numpy(by_the_library(name, PICTURES, TARGETS)))
        np.testing.assert_allclose(maps, expected, atol=1e-5)
        assert isinstance(maps, torch.Tensor)
        with torch.no_grad():
            torch.testing.assert_close(scores, NET(PICTURES))

    @pytest.mark.parametrize("name", INDEPENDENT + ALONE)
    def test_rows_alone_or_together(self, name):
        """Also those known by a list: a method of a later version that mixes rows must not be on it."""
        explainer = from_gradcam(name, NET, **NEEDED.get(name, {}))
        assert known_independent(explainer)
        rngs = lambda: [np.random.default_rng(row) for row in range(3)]  # noqa: E731
        drawn = {"rngs": rngs()} if takes_rngs(explainer) else {}
        before = state_of(NET)
        together, _ = explainer(PICTURES, TARGETS, **drawn)
        assert together.shape == (3, 16, 20)
        assert together.amin() == 0
        assert together.amax() == 1
        for row, target in enumerate(TARGETS):
            drawn = {"rngs": [rngs()[row]]} if takes_rngs(explainer) else {}
            alone, _ = explainer(PICTURES[row : row + 1], target, **drawn)
            np.testing.assert_allclose(alone[0], together[row], atol=1e-4)
        assert_left(NET, before)

    def test_the_list_is_complete(self):
        kinds = {
            name
            for name, kind in vars(pytorch_grad_cam).items()
            if isinstance(kind, type) and ("CAM" in name or name in ("FEM", "FullGrad", "SESS"))
        }
        assert kinds == {*INDEPENDENT, *ALONE}


class TestTargets:
    def test_none_is_the_class_predicted(self):
        with torch.no_grad():
            predicted = NET(PICTURES).argmax(1)
        explainer = from_gradcam("GradCAM", NET)
        assert torch.equal(explainer(PICTURES)[0], explainer(PICTURES, predicted)[0])

    @pytest.mark.parametrize(
        ("target", "error", "message"),
        [
            ([1], ValueError, "each of the 3 inputs, got 1 entries"),  # grad-cam drops the other rows
            (4, ValueError, r"0\.\.3 .*got 4 for input 0"),
            (torch.ones(3, 4).bool(), TypeError, r"class indices, got ndarray; for other targets .* `target_of=`"),
        ],
    )
    def test_unfit(self, target, error, message):
        before = state_of(NET)
        with pytest.raises(error, match=message):
            from_gradcam("GradCAM", NET)(PICTURES, target)
        assert_left(NET, before)

    def test_of_ones_own(self):
        seen = []

        def target_of(index):
            seen.append(index)
            return ClassifierOutputTarget(index)

        maps, _ = from_gradcam("GradCAM", NET, target_of=target_of)(PICTURES, TARGETS)
        assert seen == TARGETS
        assert torch.equal(maps, from_gradcam("GradCAM", NET)(PICTURES, TARGETS)[0])
        raw, _ = from_gradcam("GradCAM", NET, target_of=lambda _: lambda scores: scores.sum())(PICTURES, 0)
        assert (raw - maps).abs().max() > 0.01


class TestLayers:
    def test_by_name_by_module_or_several(self):
        expected, _ = from_gradcam(pytorch_grad_cam.GradCAM, NET)(PICTURES, TARGETS)
        for layer in ("4", NET[4], ["4"]):
            assert torch.equal(from_gradcam("GradCAM", NET, layer)(PICTURES, TARGETS)[0], expected)
        wrapped = Normalised(NET, mean=[0] * 3, std=[1] * 3).eval()
        for layer in (None, "4"):
            maps, _ = from_gradcam("GradCAM", wrapped, layer)(PICTURES, TARGETS)
            np.testing.assert_allclose(maps, expected, atol=1e-5)
        both, _ = from_gradcam("GradCAM", NET, ["2", "4"])(PICTURES, TARGETS)
        assert (both - expected).abs().max() > 0.01

    def test_a_reused_one_is_named(self):
        net = nn.Sequential(
            nn.Conv2d(3, 4, 3), act := nn.ReLU(), nn.Conv2d(4, 4, 3), act, nn.Flatten(), nn.LazyLinear(4)
        )
        with torch.no_grad():
            net.eval()(PICTURES)
        for layer in (None, "1"):
            with pytest.raises(ValueError, match="`layer` '1' is used 2 times in a forward pass"):
                from_gradcam("GradCAM", net, layer)(PICTURES, 0)


class TestLeavesAsFound:
    def test_the_model_and_its_mode(self):
        """grad-cam switches it to evaluation mode and leaves hooks and gradients."""
        net = network().train()
        net[0].weight.grad = torch.ones_like(net[0].weight)
        net[3].requires_grad_(False)
        before = state_of(net)
        with pytest.warns(ModelStateWarning, match="training mode"):
            maps, _ = from_gradcam("GradCAM", net)(PICTURES, TARGETS)
        assert_left(net, before)
        assert (net[0].weight.grad == 1).all()
        np.testing.assert_allclose(maps, from_gradcam("GradCAM", NET)(PICTURES, TARGETS)[0], atol=1e-5)

    @pytest.mark.parametrize("name", ["GradCAM", "AblationCAM", "ScoreCAM"])
    def test_after_an_exception_inside(self, name):
        """At its third forward pass AblationCAM has a layer of its own in the model's place."""
        net, calls = network(), []

        def fail(*_):
            calls.append(1)
            if len(calls) == (2 if name == "GradCAM" else 4):
                raise RuntimeError("stopped")

        net[7].register_forward_hook(fail)
        before, modules = state_of(net), dict(net.named_modules())
        with pytest.raises(RuntimeError, match="stopped"):
            from_gradcam(name, net)(PICTURES, TARGETS)
        assert_left(net, before)
        assert dict(net.named_modules()) == modules

    def test_frozen_weights(self):
        net = network().requires_grad_(False)
        expected, _ = from_gradcam("GradCAM", NET)(PICTURES, TARGETS)
        np.testing.assert_allclose(from_gradcam("GradCAM", net)(PICTURES, TARGETS)[0], expected, atol=1e-5)

    @pytest.mark.slow
    def test_nothing_grows_over_200_calls(self):
        explainer = from_gradcam("GradCAM", NET)

        def tensors():
            gc.collect()
            return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())

        explainer(PICTURES[:1], 0)
        before, hooks = tensors(), state_of(NET)[1]
        for _ in range(200):
            explainer(PICTURES[:1], 0)
        assert tensors() <= before
        assert state_of(NET)[1] == hooks

    @pytest.mark.parametrize("name", ALONE)
    def test_global_generators(self, name):
        state = np.random.get_state()[1].copy()
        torch_state = torch.get_rng_state()
        maps = [from_gradcam(name, NET)(PICTURES, 0, rngs=[np.random.default_rng(0)] * 3)[0] for _ in range(2)]
        assert np.array_equal(np.random.get_state()[1], state)
        assert torch.equal(torch.get_rng_state(), torch_state)
        if name != "RandomCAM":
            assert torch.equal(*maps)

    def test_inputs(self):
        inputs = PICTURES.clone().requires_grad_()
        with torch.no_grad():
            maps, _ = from_gradcam("FullGrad", NET)(inputs, 0)
        assert inputs.grad is None
        assert torch.equal(inputs, PICTURES)
        assert not maps.requires_grad


class TestObjects:
    def test_are_used_as_they_are(self):
        cam = pytorch_grad_cam.GradCAM(NET, [NET[4]])
        before = state_of(NET)
        explainer = from_gradcam(cam)
        assert explainer.model is NET
        maps, _ = explainer(PICTURES, TARGETS)
        assert torch.equal(maps, from_gradcam("GradCAM", NET, "4")(PICTURES, TARGETS)[0])
        assert_left(NET, before)
        with pytest.raises(ValueError, match="belong to the GradCAM object"):
            from_gradcam(cam, NET)
        cam.activations_and_grads.release()

    def test_methods_on_methods(self):
        cam = pytorch_grad_cam.SESS(NET, [NET[4]], scales=[16, 24], base_method=pytorch_grad_cam.RandomCAM)
        explainer = from_gradcam(cam)
        assert explainer.model is NET
        assert takes_rngs(explainer)
        assert takes_rngs(from_gradcam("SESS", NET, base_method=pytorch_grad_cam.RandomCAM))
        assert not takes_rngs(from_gradcam("SESS", NET))
        cam.base_cam.activations_and_grads.release()


class TestSettings:
    def test_reach_the_class_and_its_call(self):
        np.testing.assert_allclose(
            from_gradcam("FEM", NET, k=1)(PICTURES, TARGETS)[0],
            scale_to_unit(torch.from_numpy(by_the_library("FEM", PICTURES, TARGETS, k=1))),
            atol=1e-5,
        )
        net = network()
        cam = pytorch_grad_cam.GradCAM(net, [net[4]])
        expected = cam(PICTURES[:1], [ClassifierOutputTarget(0)], eigen_smooth=True)
        smooth = from_gradcam("GradCAM", NET, eigen_smooth=True)
        np.testing.assert_allclose(smooth(PICTURES[:1], 0)[0], scale_to_unit(torch.from_numpy(expected)), atol=1e-5)
        assert takes_rngs(smooth)  # one row a call: the sign of a singular vector is rounding

    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (lambda: from_gradcam("GradCam", NET), ValueError, "has no 'GradCam', did you mean 'GradCAM'"),
            (lambda: from_gradcam("GradCAM", NET, smooth=1), ValueError, "GradCAM has no setting 'smooth'.*aug_smooth"),
            (lambda: from_gradcam("GradCAM", NET, targets=[]), ValueError, "GradCAM has no setting 'targets'"),
            (lambda: from_gradcam("GradCAM", len), TypeError, r"`model` must be a torch\.nn\.Module, got builtin"),
            (lambda: from_gradcam("GradCAM"), TypeError, r"`model` must be a torch\.nn\.Module, got NoneType"),
            (lambda: from_gradcam("GradCAM", NET, 4), TypeError, "`layer` must be a name, a module or None, got int"),
            (lambda: from_gradcam("GradCAM", NET, ["4", 4]), TypeError, "`layer` must be a name.*got int: 4"),
            (lambda: from_gradcam("FullGrad", NET, "4"), ValueError, "`layer` must be None: FullGrad"),
            (lambda: from_gradcam("FinerCAM", NET), ValueError, "FinerCAM compares the class with others"),
            (lambda: from_gradcam(nn.ReLU, NET), TypeError, "a method of grad-cam, got ReLU that takes no"),
            (lambda: from_gradcam("GradCAM", NET)(PICTURES.numpy()), TypeError, r"a torch\.Tensor, got ndarray"),
            (
                lambda: from_gradcam("GradCAM", NET)(PICTURES[0]),
                ValueError,
                r"inputs of shape \(3, 16, 20\).*write `inputs\[None\]`",
            ),
        ],
    )
    def test_unfit(self, make, error, message):
        with pytest.raises(error, match=message):
            make()


class Shared(pytorch_grad_cam.GradCAM):
    """A method of a user's that mixes the rows."""

    def get_cam_weights(self, *args):
        weights = super().get_cam_weights(*args)
        return np.broadcast_to(weights.mean(axis=0), weights.shape)


def test_unknown_methods_promise_nothing():
    assert not known_independent(from_gradcam(Shared, NET))
    assert not known_independent(from_gradcam("RefineCAM", NET, base_method=Shared))
    mixing = nn.Sequential(NET, nn.BatchNorm1d(4, track_running_stats=False))
    with pytest.warns(RowDependenceWarning, match="normalises each batch"):
        assert not known_independent(from_gradcam("GradCAM", mixing))


@pytest.mark.slow
def test_without_the_library():
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.partition('.')[0] == 'pytorch_grad_cam': raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import torch\n"
        "from metfa.explainers.gradcam_adapter import from_gradcam\n"
        "try: from_gradcam('GradCAM', torch.nn.Identity())\n"
        "except ModuleNotFoundError as error: assert 'metfa[gradcam]' in str(error), error\n"
        "else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_their_score_cam_and_ours():
    theirs, _ = from_gradcam("ScoreCAM", NET)(PICTURES, TARGETS)
    ours, _ = ScoreCAM(NET, variant="grad-cam")(PICTURES, TARGETS)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.weights
def test_grad_cam_finds_the_cup():
    loaded = metfa.models.load("efficientnet-lite0")
    pixels = loaded.preprocess(Image.fromarray(data.coffee()))[None]
    explainer = from_gradcam("GradCAM", loaded.module)
    sample = metfa.explain(explainer, pixels, noise=metfa.noise.Uniform(0.1, bounds=(0, 1)), n_samples=6, rng=0)
    important = sample.significance_map()[0] == 1
    cup = np.zeros((224, 224), dtype=bool)
    cup[:170, 30:190] = True
    assert important.sum() > 1000
    assert important[cup].sum() > 0.85 * important.sum()  # the cup's box covers 0.54 of the picture
