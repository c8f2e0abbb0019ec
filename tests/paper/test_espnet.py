"""ESPNet without its weights: layout, a second implementation that reads the weights by name, and the way in."""

import copy
import pickle
from functools import partial
from pathlib import Path

import pytest
import torch
from paper.espnet import ESPNet, Preprocessed, load
from torch.nn import functional as F


@pytest.fixture(scope="module")
def network():
    """Random weights, statistics as uneven as a trained network's."""
    torch.manual_seed(0)
    made = ESPNet()
    for module in made.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(std=0.1)
            module.running_var.uniform_(0.1, 0.5)
    made.encoder.level1.bn.running_var.zero_()  # normalised pixels are small: within 0.01 of zero
    return made.eval()


@pytest.fixture(scope="module")
def model(network):
    return Preprocessed(network).eval()


def pictures(*shape, seed=1):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def weights_of(network):
    """As in the authors' file, whose batch normalisations do not count batches."""
    return {k: v.clone() for k, v in network.state_dict().items() if not k.endswith("num_batches_tracked")}


def test_layout_of_the_weights(network):
    weights = weights_of(network)
    assert len(weights) == 189
    assert sum(value.numel() for value in weights.values()) == 358_193
    expected = {
        "encoder.level1.conv.weight": (16, 3, 3, 3),
        "encoder.b1.act.weight": (19,),
        "encoder.level2_0.c1.conv.weight": (12, 19, 3, 3),
        "encoder.level2_0.bn.running_var": (64,),
        "encoder.level2.1.d1.conv.weight": (16, 12, 3, 3),
        "encoder.level2.1.bn.bn.bias": (64,),
        "encoder.b2.bn.weight": (131,),
        "encoder.level3_0.c1.conv.weight": (25, 131, 3, 3),
        "encoder.level3.7.c1.conv.weight": (25, 128, 1, 1),
        "encoder.level3.7.d16.conv.weight": (25, 25, 3, 3),
        "encoder.classifier.conv.weight": (12, 256, 1, 1),
        "level3_C.conv.weight": (12, 131, 1, 1),
        "br.running_mean": (12,),
        "up_l3.0.weight": (12, 12, 2, 2),
        "combine_l2_l3.0.act.weight": (24,),
        "combine_l2_l3.1.d1.conv.weight": (4, 2, 3, 3),
        "combine_l2_l3.1.bn.act.weight": (12,),
        "up_l2.1.bn.weight": (12,),
        "conv.conv.weight": (12, 31, 3, 3),
        "classifier.weight": (12, 12, 2, 2),
    }
    assert {name: tuple(weights[name].shape) for name in expected} == expected


def test_second_implementation(network):
    double = copy.deepcopy(network).double()
    x = pictures(2, 3, 40, 56).double() - 0.5
    with torch.no_grad():
        torch.testing.assert_close(double(x), by_names(weights_of(double), x))


def by_names(w, x):
    """The whole network as one function of its weights."""

    def norm(x, name):
        statistics = (w[f"{name}.{part}"][:, None, None] for part in ("running_mean", "running_var", "weight", "bias"))
        mean, var, scale, shift = statistics
        return (x - mean) / (var + 1e-3).sqrt() * scale + shift

    def act(x, name):
        return torch.where(x > 0, x, x * w[f"{name}.weight"][:, None, None])

    def norm_act(x, name):
        return act(norm(x, f"{name}.bn"), f"{name}.act")

    def pyramid(x, name, **settings):
        reduced = F.conv2d(x, w[f"{name}.c1.conv.weight"], **settings)
        d1, d2, d4, d8, d16 = (
            F.conv2d(reduced, w[f"{name}.d{d}.conv.weight"], padding=d, dilation=d) for d in (1, 2, 4, 8, 16)
        )
        return torch.cat([d1, d2, d2 + d4, d2 + d4 + d8, d2 + d4 + d8 + d16], 1)

    halve = {"stride": 2, "padding": 1}
    small = F.avg_pool2d(x, 3, **halve)
    smaller = F.avg_pool2d(small, 3, **halve)
    half = norm_act(F.conv2d(x, w["encoder.level1.conv.weight"], **halve), "encoder.level1")
    half = norm_act(torch.cat([half, small], 1), "encoder.b1")
    first = y = norm_act(pyramid(half, "encoder.level2_0", **halve), "encoder.level2_0")
    for i in range(2):
        y = norm_act(pyramid(y, f"encoder.level2.{i}") + y, f"encoder.level2.{i}.bn")
    quarter = norm_act(torch.cat([y, first, smaller], 1), "encoder.b2")
    first = y = norm_act(pyramid(quarter, "encoder.level3_0", **halve), "encoder.level3_0")
    for i in range(8):
        y = norm_act(pyramid(y, f"encoder.level3.{i}") + y, f"encoder.level3.{i}.bn")
    eighth = norm_act(torch.cat([first, y], 1), "encoder.b3")
    y = norm(F.conv2d(eighth, w["encoder.classifier.conv.weight"]), "br")
    y = F.conv_transpose2d(y, w["up_l3.0.weight"], stride=2)
    y = norm_act(torch.cat([F.conv2d(quarter, w["level3_C.conv.weight"]), y], 1), "combine_l2_l3.0")
    y = norm_act(pyramid(y, "combine_l2_l3.1"), "combine_l2_l3.1.bn")
    y = norm_act(F.conv_transpose2d(y, w["up_l2.0.weight"], stride=2), "up_l2.1")
    y = norm_act(F.conv2d(torch.cat([y, half], 1), w["conv.conv.weight"], padding=1), "conv")
    return F.conv_transpose2d(y, w["classifier.weight"], stride=2)


@pytest.mark.parametrize("size", [(8, 8), (8, 40), (72, 96)])
def test_scores_have_the_pictures_size(model, size):
    with torch.no_grad():
        scores = model(pictures(2, 3, *size))
    assert scores.shape == (2, 12, *size)
    assert scores.isfinite().all()


@pytest.mark.parametrize(
    "shape", [(1, 3, 100, 96), (1, 3, 96, 100), (1, 3, 0, 96), (0, 3, 8, 8), (1, 4, 8, 8), (3, 8, 8), (1, 1, 3, 8, 8)]
)
def test_wrong_shape(model, shape):
    with pytest.raises(ValueError, match=rf"multiples of 8, got \({', '.join(map(str, shape))}\)"):
        model(torch.zeros(shape))


def test_levels_instead_of_pixels(model):
    with pytest.raises(TypeError, match=r"got torch\.uint8; divide 8-bit pixels by 255"):
        model(torch.zeros(1, 3, 8, 8, dtype=torch.uint8))


def test_normalises_as_the_authors():
    x = pictures(2, 3, 16, 24)
    red, green, blue = (255 * x).unbind(1)
    by_hand = torch.stack(
        [(blue - 110.33) / 72.13 / 255, (green - 108.41) / 72.69 / 255, (red - 105.03) / 69.90 / 255], 1
    )
    torch.testing.assert_close(Preprocessed(torch.nn.Identity())(x), by_hand)


def test_same_scores_again(model):
    x = pictures(2, 3, 24, 32)
    before = x.clone()
    with torch.no_grad():
        assert torch.equal(model(x), model(x))
    assert torch.equal(x, before)


def test_rows_are_independent(model):
    double = copy.deepcopy(model).double()
    x = pictures(3, 3, 24, 32).double()
    with torch.no_grad():
        alone = torch.cat([double(row[None]) for row in x])
        assert (alone[0] - alone[1]).abs().max() > 0.01
        torch.testing.assert_close(double(x), alone)


def test_gradient_against_differences(model):
    double = copy.deepcopy(model).double()
    x = pictures(1, 3, 16, 24).double().requires_grad_()
    direction = pictures(1, 3, 16, 24, seed=2).double() - 0.5
    share = pictures(1, 12, 16, 24, seed=3).double() - 0.5
    (gradient,) = torch.autograd.grad((double(x) * share).sum(), x)
    with torch.no_grad():
        step = 1e-5
        change = ((double(x + step * direction) - double(x - step * direction)) * share).sum() / (2 * step)
    assert (gradient != 0).all()
    torch.testing.assert_close((gradient * direction).sum(), change, rtol=1e-5, atol=0)


def test_hooks_see_all_layers(model):
    # Torch refuses to run full backward hooks where a layer works in place.
    watched = copy.deepcopy(model)
    seen = set()
    for name, module in watched.named_modules():
        module.register_full_backward_hook(lambda *_, name=name: seen.add(name))
    watched(pictures(1, 3, 16, 16).requires_grad_()).sum().backward()
    assert seen == {name for name, _ in watched.named_modules() if name != "network.model.encoder.act"}


def test_load(tmp_path, network, model):
    torch.save(weights_of(network), tmp_path / "weights.pth")
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    loaded = load(tmp_path / "weights.pth")
    assert torch.equal(torch.rand(3), expected)
    assert not any(module.training for module in loaded.modules())
    x = pictures(1, 3, 16, 16)
    with torch.no_grad():
        assert torch.equal(loaded(x), model(x))


@pytest.mark.parametrize("name", ["br.weight", "encoder.level3.7.d8.conv.weight"])
def test_load_without_a_weight(tmp_path, network, name):
    weights = weights_of(network)
    weights["other"] = weights.pop(name)
    torch.save(weights, tmp_path / "weights.pth")
    with pytest.raises(RuntimeError, match=rf'Missing key.*"{name}"(.|\n)*Unexpected key.*"other"'):
        load(tmp_path / "weights.pth")


def test_load_runs_no_code(tmp_path):
    class Code:
        def __reduce__(self):
            return partial(Path.touch, tmp_path / "ran"), ()

    torch.save(Code(), tmp_path / "weights.pth")
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        load(tmp_path / "weights.pth")
    assert not (tmp_path / "ran").exists()
