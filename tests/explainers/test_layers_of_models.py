"""Which layer is found in the networks people use, and that looking leaves no trace."""

import pytest
import torch
import torchvision
from torch import nn

from metfa.explainers._layers import layer_of, watched
from metfa.models import Normalised
from metfa.models.efficientnet_lite import EfficientNetLite

PIXELS = torch.rand(1, 3, 64, 96, generator=torch.Generator().manual_seed(0))


def network(name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = EfficientNetLite(name) if "lite" in name else getattr(torchvision.models, name)(weights=None)
    return made.eval()


def last_feature_map(model, inputs=PIXELS, layer=None):
    with torch.no_grad(), watched(model, layer) as watch:
        model(inputs)
    return watch.name, watch.feature_map(len(inputs))


def output_of(model, layer, inputs=PIXELS):
    seen = []
    hook = model.get_submodule(layer).register_forward_hook(lambda *a: seen.append(a[2]))
    with torch.no_grad():
        model(inputs)
    hook.remove()
    return seen[-1]


def hooks_in(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in model.modules())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected", "same_as"),
    [
        ("efficientnet-lite0", "head", "head.act"),
        ("resnet18", "layer4", "layer4.1"),  # the authors' layer for ResNet18
        ("vgg11", "features.19", "features.19"),
        ("vgg16", "features.29", "features.29"),  # the authors' for VGG16: the activation before the last pooling
        ("vgg11_bn", "features.27", "features.27"),
        ("squeezenet1_1", "classifier.2", "classifier.2"),
        ("densenet121", "features", "features.norm5"),  # with the ReLU that works on it in place
        ("mobilenet_v2", "features", "features.18.2"),
        ("mobilenet_v3_small", "features", "features.12.2"),  # convolutions of single pixels before and behind it
        ("alexnet", "features.11", "features.10"),
        ("convnext_tiny", "features", "features.7.2"),  # channels move to the last axis and back inside
    ],
)
def test_the_last_feature_map(name, expected, same_as):
    model = network(name)
    found, features = last_feature_map(model)
    assert found == repr(expected)
    assert features.shape[2:].numel() > 1
    assert torch.equal(features, output_of(model, same_as))
    assert hooks_in(model) == 0


def test_wrapped_models_are_looked_into():
    model = Normalised(network("resnet18"), mean=[0.5] * 3, std=[0.5] * 3)
    name, features = last_feature_map(model)
    assert name == "'model.layer4'"
    assert layer_of(model, "layer4") is layer_of(model, "model.layer4") is model.model.layer4
    with torch.no_grad(), watched(model, "layer4") as watch:
        model(PIXELS)
    assert torch.equal(watch.feature_map(1), features)


class Backwards(nn.Module):
    """Defined in another order than it runs, with a convolution that is not used."""

    def __init__(self):
        super().__init__()
        self.last = nn.Conv2d(4, 5, 1)
        self.first = nn.Conv2d(3, 4, 3)
        self.unused = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.last(self.first(x)).mean((2, 3))


def test_order_of_execution_counts():
    name, features = last_feature_map(Backwards())
    assert name == "'last'"
    assert features.shape[1] == 5


class Reused(nn.Module):
    """One activation behind both convolutions."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.act = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 3), nn.ReLU()

    def forward(self, x):
        return self.act(self.second(self.act(self.first(x)))).mean((2, 3))


class TestReuse:
    def test_a_name_for_two_outputs_is_refused(self):
        with torch.no_grad(), watched(Reused(), "act") as watch:
            watch.model(PIXELS)
        with pytest.raises(ValueError, match="`layer` 'act' is used 2 times in a forward pass"):
            watch.feature_map(1)

    def test_the_last_output_is_one(self):
        model = Reused()
        name, features = last_feature_map(model)
        assert name == "'act'"
        with torch.no_grad():
            assert torch.equal(features, model.act(model.second(model.act(model.first(PIXELS)))))

    def test_two_names_of_one_module(self):
        model = nn.Sequential(nn.Conv2d(3, 4, 3), shared := nn.ReLU(), nn.Conv2d(4, 4, 3), shared)
        assert layer_of(model, "1") is layer_of(model, "3") is shared
        assert layer_of(nn.ModuleDict({"a": SMALL, "b": SMALL[:2]}), "0") is SMALL[0]  # no choice to make


def test_a_named_layer_is_copied_before_others_work_on_it():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Flatten())
    with torch.no_grad():
        with watched(model, "0") as watch:
            model(PIXELS)
        left = model[0](PIXELS)
    assert torch.equal(watch.feature_map(1), left)
    assert watch.feature_map(1).min() < 0


def test_a_function_with_the_layer_itself():
    model = Backwards()
    with torch.no_grad(), watched(lambda x: model(x), model.first) as watch:
        watch.model(PIXELS)
    assert watch.feature_map(1).shape[1] == 4


def test_hooks_are_gone_after_an_exception():
    model = network("resnet18")
    with pytest.raises(RuntimeError, match="expected input"), watched(model):
        model(PIXELS[:, :1])
    assert hooks_in(model) == 0


SMALL = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 96, 4), nn.Softmax(1))


@pytest.mark.parametrize(
    ("model", "layer", "message"),
    [
        (SMALL, None, r"no convolution that gives a feature map .* by `layer=`, of '0', '1', '2'$"),
        (SMALL, "fc", r"`model` has no layer 'fc'; it has '0', '1', '2'"),
        (SMALL, "", r"`model` has no layer ''; it has '0', '1', '2'"),
        (SMALL, "1", r"`layer` '1' must give a feature map .* of 1 rows, got shape \(1, 4\)"),
        (Backwards(), "frist", r"`model` has no layer 'frist'; it has 'first'"),
        (Backwards(), "unused", r"`layer` 'unused' is not called by the model"),
        (Backwards(), nn.Conv2d(1, 1, 1), r"`layer` Conv2d is not called by the model"),
        (nn.ModuleDict({"a": Backwards(), "b": Backwards()}), "last", "the end of 2 names.*'a.last', 'b.last'"),
    ],
)
def test_what_is_no_feature_map(model, layer, message):
    with pytest.raises(ValueError, match=message):
        last_feature_map(model, layer=layer)


def test_a_long_list_of_layers_ends_near_the_output():
    with pytest.raises(ValueError, match=r"it has \.\.\., .*'avgpool', 'fc'$"):
        layer_of(network("resnet18"), "nothing like it")
