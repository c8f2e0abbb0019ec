"""Gradients through normalisations of one row in unusual layouts: against float64, and against the row in a batch.

On a CPU torch 2.14 hands back wrong ones, without an error.
"""

import copy
import itertools

import pytest
import torch
import torch.utils.checkpoint

import metfa
from metfa.calls.guard import left_as_found, model_in_evaluation

STRIDES = {
    "plain": lambda rows, c, side: torch.randn(rows, c, side, side),
    "channels last": lambda rows, c, side: torch.randn(rows, c, side, side).to(memory_format=torch.channels_last),
    "tokens": lambda rows, c, side: torch.randn(rows, side**2, c).transpose(1, 2).reshape(rows, c, side, side),
    "expanded": lambda rows, c, side: torch.randn(rows, c, 1, 1).expand(rows, c, side, side),
}


def normalisation(kind, c):
    norm = {"batch": torch.nn.BatchNorm2d, "instance": torch.nn.InstanceNorm2d}[kind](c, affine=True)
    torch.nn.init.uniform_(norm.weight)
    return norm.eval().requires_grad_(False)


def plain(tensor):
    return tensor.detach().double().clone(memory_format=torch.contiguous_format)


@pytest.mark.parametrize("kind", ["batch", "instance"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("c", "side"), [(16, 7), (3, 5)])
@pytest.mark.parametrize("given", STRIDES)
@pytest.mark.parametrize("handed", STRIDES)
def test_it_is_that_of_float64(kind, rows, c, side, given, handed):
    torch.manual_seed(0)
    norm = normalisation(kind, c)
    inputs = STRIDES[given](rows, c, side).detach().requires_grad_()
    gradient = STRIDES[handed](rows, c, side)
    with model_in_evaluation(norm):
        (found,) = torch.autograd.grad(norm(inputs), inputs, gradient)
    exact = plain(inputs).requires_grad_()
    (expected,) = torch.autograd.grad(copy.deepcopy(norm).double()(exact), exact, plain(gradient))
    torch.testing.assert_close(found, expected.float(), rtol=1e-4, atol=1e-4)


def in_memory(shape, order):
    """Random numbers of a shape, whose axes lie in memory in some order."""
    return torch.randn([shape[axis] for axis in order]).permute([order.index(axis) for axis in range(len(shape))])


@pytest.mark.parametrize(
    "shape", [(2, 3, 4), (2, 3, 2, 3), (3, 2, 1, 4), (2, 3, 4, 1), (1, 3, 2, 2), (2, 1, 3, 2), (1, 3, 1, 4), (1, 2, 3)]
)
def test_every_order_of_the_axes_is_right(shape):
    """Torch's own batch norm misreads axes of one alone, so that the others are handed to it as they are."""
    torch.manual_seed(0)
    norm = {3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d}[len(shape)](shape[1]).eval().requires_grad_(False)
    torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
    orders = list(itertools.permutations(range(len(shape))))
    for given, handed in itertools.product(orders, orders):
        inputs, gradient = in_memory(shape, given).requires_grad_(), in_memory(shape, handed)
        with model_in_evaluation(norm):
            (found,) = torch.autograd.grad(norm(inputs), inputs, gradient)
        scale = (norm.weight / (norm.running_var + norm.eps).sqrt()).reshape(1, -1, *[1] * (len(shape) - 2))
        torch.testing.assert_close(found, gradient * scale, rtol=1e-4, atol=1e-4)


class Checkpointed(torch.nn.Module):
    """A batch norm of tokens as a picture, which the backward pass asks again."""

    def __init__(self, *, again):
        super().__init__()
        self.mixed, self.norm, self.again = torch.nn.Linear(5, 6), normalisation("batch", 6), again
        self.norm.running_var.uniform_(0.5, 2)

    def block(self, tokens):
        return self.norm(self.mixed(tokens).transpose(1, 2).reshape(len(tokens), 6, 3, 4))

    def forward(self, tokens):
        checkpoint = torch.utils.checkpoint.checkpoint
        picture = checkpoint(self.block, tokens, use_reentrant=False) if self.again else self.block(tokens)
        return (picture**2).flatten(2).cumsum(2).sum(2)


def test_a_checkpoint_has_the_gradient_of_the_model():
    found = []
    for again in (False, True):
        torch.manual_seed(0)
        model, tokens = Checkpointed(again=again).eval(), torch.randn(1, 12, 5)
        found.append(metfa.Called(model).gradient(tokens, 0)[0])
    torch.manual_seed(0)
    exact = Checkpointed(again=False).eval().double()
    expected = metfa.Called(exact).gradient(torch.randn(1, 12, 5).double(), 0)[0]
    for one in found:
        torch.testing.assert_close(one, expected.float(), rtol=1e-4, atol=1e-5)


def test_a_backward_pass_that_asks_a_model_has_right_gradients():
    """Torch takes the mode away inside `torch.autograd.grad`."""
    torch.manual_seed(0)
    norm = normalisation("batch", 6)
    inputs = STRIDES["tokens"](1, 6, 4).detach().requires_grad_()
    gradient = torch.randn(1, 6, 4, 4)

    class Asking(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, _):
            with torch.enable_grad(), model_in_evaluation(norm):
                return torch.autograd.grad(norm(inputs), inputs, gradient)[0]

    with model_in_evaluation(norm):
        (found,) = torch.autograd.grad(Asking.apply(inputs).sum(), inputs)
        assert len(torch.overrides._get_current_function_mode_stack()) == 1
    scale = (norm.weight / (norm.running_var + norm.eps).sqrt()).reshape(1, -1, 1, 1)
    torch.testing.assert_close(found, gradient * scale, rtol=1e-4, atol=1e-4)


def test_the_mode_is_opened_once():
    norm = normalisation("batch", 3)
    for _ in range(2):
        with left_as_found(norm), model_in_evaluation(norm):
            assert len(torch.overrides._get_current_function_mode_stack()) == 1
        assert not torch.overrides._get_current_function_mode_stack()


class Hybrid(torch.nn.Module):
    """A convolution, tokens, and a batch norm of the tokens laid out as a picture, as in LeViT."""

    def __init__(self):
        super().__init__()
        self.patches, self.mixed = torch.nn.Conv2d(3, 16, 4, 4), torch.nn.Linear(16, 16)
        self.norm, self.head = normalisation("batch", 16), torch.nn.Linear(16, 5)

    def forward(self, images):
        tokens = self.mixed(self.patches(images).flatten(2).transpose(1, 2)).tanh()
        rows, n, c = tokens.shape
        picture = self.norm(tokens.transpose(1, 2).reshape(rows, c, round(n**0.5), -1))
        return self.head((picture.contiguous() ** 2).flatten(2).mean(2))


@pytest.mark.parametrize("made", [metfa.explainers.Gradient, metfa.explainers.SmoothGrad])
def test_a_row_alone_has_the_gradient_of_the_row_in_a_batch(made):
    torch.manual_seed(0)
    model, images = Hybrid().eval(), torch.rand(3, 3, 16, 16)
    settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 4, "rng": 0}
    whole = metfa.explain(made(model), images, 1, **settings)
    alone = metfa.explain(made(model), images, 1, **settings, batch_size=1)
    assert whole.vanilla == pytest.approx(alone.vanilla, rel=1e-3, abs=1e-6)
    assert whole.values == pytest.approx(alone.values, rel=1e-3, abs=1e-6)
    if made is metfa.explainers.Gradient:  # the other draws noise that depends on the precision
        exact = metfa.explain(made(copy.deepcopy(model).double()), images.double(), 1, **settings)
        assert whole.vanilla == pytest.approx(exact.vanilla, rel=1e-2, abs=1e-4)


def test_nothing_of_the_model_is_changed():
    model = Hybrid().eval()
    before = {name: set(vars(part)) for name, part in model.named_modules()}
    metfa.explainers.Gradient(model)(torch.rand(1, 3, 16, 16), target=0)
    assert {name: set(vars(part)) for name, part in model.named_modules()} == before
    assert not torch.overrides._get_current_function_mode_stack()
