"""Batch normalisation folded: the same scores, the original untouched, and no fold where it would be wrong."""

import copy

import pytest
import torch
import torchvision
from torch import nn

from metfa import models
from metfa.models import fold_batch_norm


def trained_looking(model):
    """Running statistics and weights as after training, so that a forgotten one shows."""
    generator = torch.Generator().manual_seed(0)
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)) and module.running_mean is not None:
            for tensor, low in ((module.running_mean, -0.1), (module.running_var, 0.5), (module.weight, 0.5)):
                tensor.data.copy_(low + torch.rand(tensor.shape, generator=generator))
            module.bias.data.copy_(torch.rand(module.bias.shape, generator=generator) - 0.5)
    return model.eval()


def norms(model):
    return sum(isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)) for module in model.modules())


@pytest.mark.parametrize(("name", "left"), [("resnet18", 0), ("vgg11_bn", 0), ("densenet121", 62)])
@pytest.mark.slow
def test_networks_in_any_style(name, left):
    """DenseNet normalises sums of features before a convolution as well: those stay."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = trained_looking(getattr(torchvision.models, name)())
    example = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    before = copy.deepcopy(model.state_dict())
    folded = fold_batch_norm(model, example)
    other = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        torch.testing.assert_close(folded(other), model(other), rtol=1e-3, atol=1e-3)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert norms(folded) == left < norms(model)
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in folded.modules())


@pytest.mark.weights
def test_the_pretrained_network_has_none_left():
    model = models.load("efficientnet-lite0").module
    example = torch.rand(1, 3, 224, 224, generator=torch.Generator().manual_seed(1))
    folded = fold_batch_norm(model, example)
    assert (norms(model), norms(folded)) == (49, 0)
    with torch.no_grad():
        torch.testing.assert_close(folded(example), model(example), rtol=1e-3, atol=1e-3)


def test_a_linear_layer_takes_one_too():
    model = trained_looking(nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2)))
    folded = fold_batch_norm(model, torch.rand(3, 4))
    assert norms(folded) == 0
    torch.testing.assert_close(folded(torch.ones(1, 4)), model(torch.ones(1, 4)))


class Shared(nn.Module):
    """The convolution's output is also used beside its normalisation."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)

    def forward(self, x):
        features = self.conv(x)
        return self.norm(features) + 10 * features


class Twice(Shared):
    """One convolution feeds two normalisations in two calls."""

    def forward(self, x):
        return self.norm(self.conv(x)) + self.conv(2 * x)


def test_an_output_used_elsewhere_is_refused():
    with pytest.raises(ValueError, match=r"another function \(scores differ by [0-9.]+\)"):
        fold_batch_norm(trained_looking(Shared()), torch.rand(1, 1, 3, 3))


def test_a_layer_called_twice_keeps_its_neighbour():
    assert norms(fold_batch_norm(trained_looking(Twice()), torch.rand(1, 1, 3, 3))) == 1


def test_without_running_statistics_nothing_is_folded():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2, track_running_stats=False)).eval()
    assert norms(fold_batch_norm(model, torch.rand(1, 1, 3, 3))) == 1


def test_a_model_in_training_is_left_in_training():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)).train()
    folded = fold_batch_norm(model, torch.rand(2, 1, 3, 3))
    assert model.training
    assert not folded.training
    assert int(model[1].num_batches_tracked) == 0


def test_no_module():
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.Module, got function"):
        fold_batch_norm(lambda x: x, torch.rand(1))
