"""Soft rectifiers against networks that were written with them, and that nothing is left behind."""

import pytest
import torch
import torchvision
from torch import nn
from torch.nn import functional

from metfa.attacks._softened import soft_backward, softplus
from metfa.explainers import LRP, Gradient

X = torch.linspace(-9, 9, 61, dtype=torch.float64)
RELUS = {
    "module": nn.ReLU(),
    "module in place": nn.ReLU(inplace=True),
    "functional": functional.relu,
    "functional in place": lambda x: functional.relu(x, inplace=True),
    "functional.relu_": functional.relu_,
    "torch": torch.relu,
    "torch in place": torch.relu_,
    "method": lambda x: x.relu(),
    "method in place": lambda x: x.relu_(),
}
CUT = {
    "module": nn.ReLU6(),
    "module in place": nn.ReLU6(inplace=True),
    "functional": functional.relu6,
    "functional in place": lambda x: functional.relu6(x, inplace=True),
    "hardtanh": lambda x: functional.hardtanh(x, 0, 6),
    "hardtanh in place": lambda x: functional.hardtanh_(x, 0, 6),
}


def applied(function, context):
    """Value, derivative and second derivative by `X`."""
    leaf = X.clone().requires_grad_()
    with context:
        value = function(leaf * 1)
        (first,) = torch.autograd.grad(value.sum(), leaf, create_graph=True)
    second = torch.autograd.grad(first.sum(), leaf)[0] if first.requires_grad else torch.zeros_like(X)
    return value.detach(), first.detach(), second


class TestSoftplus:
    @pytest.mark.parametrize("form", RELUS)
    def test_stands_for_relu(self, form):
        value, first, second = applied(RELUS[form], softplus(3.0))
        torch.testing.assert_close(value, (1 + (3 * X).exp()).log() / 3)
        torch.testing.assert_close(first, (3 * X).sigmoid(), atol=1e-8, rtol=1e-6)
        expected = 3 * (3 * X).sigmoid() * (1 - (3 * X).sigmoid())
        torch.testing.assert_close(second, expected, atol=1e-7, rtol=1e-6)

    @pytest.mark.parametrize("form", CUT)
    def test_stands_for_relu6(self, form):
        value, first, _ = applied(CUT[form], softplus(3.0))
        torch.testing.assert_close(value, ((1 + (3 * X).exp()) / (1 + (3 * X - 18).exp())).log() / 3)
        torch.testing.assert_close(first, (3 * X).sigmoid() - (3 * X - 18).sigmoid(), atol=1e-8, rtol=1e-6)

    @pytest.mark.parametrize(
        "function", [functional.hardtanh, nn.Hardtanh(-2.0, 0.5), lambda x: functional.hardtanh(x, max_val=3)]
    )
    @pytest.mark.parametrize("context", [lambda: softplus(1e3), soft_backward])
    def test_hardtanh_has_its_own_limits(self, function, context):
        torch.testing.assert_close(applied(function, context())[0], function(X), atol=1e-3, rtol=0)

    def test_leaky_relu_keeps_its_slope(self):
        value, _, second = applied(nn.LeakyReLU(0.2), softplus(1e3))
        torch.testing.assert_close(value, functional.leaky_relu(X, 0.2), atol=1e-3, rtol=0)
        assert second.any()

    def test_writes_where_the_model_writes(self):
        x = X.clone()
        with softplus(3.0):
            functional.relu(x, inplace=True)  # the value is read from x, as DenseNet's is
        torch.testing.assert_close(x, (1 + (3 * X).exp()).log() / 3)

    def test_leaves_all_else_alone(self):
        with softplus(3.0):
            assert torch.equal(X.clamp(0, 1), torch.from_numpy(X.numpy().clip(0, 1)))
            assert torch.equal(torch.relu(torch.tensor([-1, 2])), torch.tensor([0, 2]))
            torch.testing.assert_close(functional.silu(X), X * X.sigmoid())


class TestSoftBackward:
    @pytest.mark.parametrize("form", RELUS)
    def test_keeps_the_value_and_has_the_derivative_of_adv2(self, form):
        value, first, second = applied(RELUS[form], soft_backward())
        assert torch.equal(value, X.clamp(min=0))
        root = (X**2 + 1e-4).sqrt()
        torch.testing.assert_close(first, X / root + (X < 0))
        torch.testing.assert_close(second, 1e-4 / root**3)

    def test_relu6_keeps_its_value_to_the_bit(self):
        single = torch.rand(10_000, generator=torch.Generator().manual_seed(0)) * 14 - 4
        leaf = single.clone().requires_grad_()
        with soft_backward():
            assert torch.equal(functional.relu6(leaf).detach(), functional.relu6(single))


class Plain(nn.Module):
    """Rectifiers as functions, in place and not, and a residual connection."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1), nn.Linear(4, 3)

    def forward(self, x):
        x = functional.relu(self.first(x), inplace=True)
        return self.last((x + functional.relu6(self.second(x))).mean((2, 3)))


class Smooth(Plain):
    """The same with softplus of beta 4 written out; values are far below 6."""

    def forward(self, x):
        x = functional.softplus(self.first(x), beta=4)
        return self.last((x + functional.softplus(self.second(x), beta=4)).mean((2, 3)))


@pytest.mark.parametrize("explain", [Gradient, LRP])
def test_maps_and_their_derivatives_are_those_of_the_smooth_network(explain):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        plain, smooth = Plain().double().eval(), Smooth().double().eval()
    smooth.load_state_dict(plain.state_dict())
    results = []
    for model, context in ((plain, softplus(4.0)), (smooth, torch.enable_grad())):
        leaf = torch.rand(2, 3, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
        with context:
            maps = explain(model, scale=False)(leaf, [0, 1])[0]
            (gradient,) = torch.autograd.grad((maps**2).sum(), leaf)
        results.append((maps.detach(), gradient))
    torch.testing.assert_close(results[0], results[1], rtol=1e-6, atol=1e-9)
    assert results[0][1].any()


@pytest.mark.slow
@pytest.mark.parametrize("explain", [Gradient, LRP])
@pytest.mark.parametrize("make", [torchvision.models.resnet18, torchvision.models.densenet121])
def test_networks_that_work_in_place(make, explain):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = make(num_classes=5).eval()
    leaf = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(0)).requires_grad_()
    before = model(leaf.detach())
    hooks = [dict(module._forward_hooks) for module in model.modules()]
    with softplus(20.0):
        maps = explain(model)(leaf, 2)[0]
        (gradient,) = torch.autograd.grad((maps**2).sum(), leaf)
        assert not torch.equal(model(leaf.detach()), before)
    assert gradient.any()
    assert torch.equal(model(leaf.detach()), before)
    assert [dict(module._forward_hooks) for module in model.modules()] == hooks


def test_is_closed_by_an_interrupt():
    with pytest.raises(KeyboardInterrupt), softplus(3.0):
        raise KeyboardInterrupt
    assert torch.equal(torch.relu(X), X.clamp(min=0))
