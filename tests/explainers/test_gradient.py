"""The gradient explainer against torch.autograd by hand, and what it leaves behind: nothing."""

import functools

import numpy as np
import pytest
import torch
from captum import attr

import metfa
from metfa._base.warnings import ModelStateWarning
from metfa.explainers import Gradient, heatmap


def seeded_network(*layers):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Sequential(*(layer() for layer in layers)).eval()


def convolutional(dims=2, dtype=torch.float64):
    convolution = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)[dims - 1]
    pool = (torch.nn.AdaptiveAvgPool1d, torch.nn.AdaptiveAvgPool2d, torch.nn.AdaptiveAvgPool3d)[dims - 1]
    return seeded_network(
        lambda: convolution(3, 4, 3, padding=1),
        torch.nn.Tanh,
        lambda: convolution(4, 5, 3, padding=1),
        torch.nn.Tanh,
        lambda: pool(1),
        torch.nn.Flatten,
        lambda: torch.nn.Linear(5, 3),
    ).to(dtype)


NET = convolutional()
PICTURES = torch.rand(4, 3, 6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def by_hand(model, inputs, targets, channel_axis=1, scale=True):
    """One row at a time, one backward pass each, NumPy behind it."""
    maps = []
    for row, target in zip(inputs, targets, strict=True):
        leaf = row[None].detach().clone().requires_grad_()
        scores = model(leaf)[0]
        (scores if target is None else scores[target]).backward()
        strength = leaf.grad.abs().numpy()
        strength = strength[0] if channel_axis is None else strength.max(axis=channel_axis)[0]
        if scale:
            strength = (strength - strength.min()) / (strength.max() - strength.min())
        maps.append(strength)
    model.zero_grad() if isinstance(model, torch.nn.Module) else None
    return np.array(maps)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("channel_axis", [1, 2, 3, None])
def test_equals_autograd_by_hand(channel_axis, scale):
    maps, scores = Gradient(NET, channel_axis=channel_axis, scale=scale)(PICTURES, [0, 1, 2, 1])
    np.testing.assert_allclose(maps, by_hand(NET, PICTURES, [0, 1, 2, 1], channel_axis, scale), atol=1e-12)
    torch.testing.assert_close(scores, NET(PICTURES))
    assert not scores.requires_grad
    assert not maps.requires_grad


@pytest.mark.parametrize("dims", [1, 3])
def test_signals_and_volumes(dims):
    net, inputs = convolutional(dims), torch.rand(2, 3, *(4, 5, 6)[:dims], dtype=torch.float64)
    maps, _ = Gradient(net)(inputs, 1)
    assert maps.shape == (2, *(4, 5, 6)[:dims])
    np.testing.assert_allclose(maps, by_hand(net, inputs, [1, 1]), atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 3, 1, 5), (1, 3, 5, 1), (2, 3, 1, 1), (2, 1, 4, 4), (1, 1, 1, 1)])
@pytest.mark.parametrize("scale", [True, False])
def test_axes_of_size_one(shape, scale):
    def model(x):
        return torch.stack([(x**2).flatten(1).sum(1), x.flatten(1).sum(1)], dim=1)

    inputs = torch.rand(shape, dtype=torch.float64) + 0.1
    maps, _ = Gradient(model, scale=scale)(inputs, 0)
    assert maps.shape == (shape[0], *shape[2:])
    if scale and maps[0].numel() == 1:
        assert (maps == 0).all()  # a constant map
    elif not scale:
        np.testing.assert_allclose(maps, 2 * inputs.amax(1))


def test_constant_maps_become_zero():
    maps, _ = Gradient(lambda x: x.flatten(1)[:, :3] * 0 + x.sum((1, 2, 3))[:, None])(PICTURES, 0)
    assert (maps == 0).all()


def test_tables():
    net = seeded_network(lambda: torch.nn.Linear(4, 3), torch.nn.Tanh, lambda: torch.nn.Linear(3, 2))
    table = torch.rand(3, 4)
    maps, _ = Gradient(net, channel_axis=None)(table, [0, 1, 0])
    np.testing.assert_allclose(maps, by_hand(net, table, [0, 1, 0], None), atol=1e-6)


class TestTarget:
    @pytest.mark.parametrize(
        ("target", "each"),
        [
            (2, [2, 2, 2, 2]),
            (np.int64(2), [2, 2, 2, 2]),
            (torch.tensor(2), [2, 2, 2, 2]),
            ((2, 1, 0, 1), [2, 1, 0, 1]),
            (np.array([2, 1, 0, 1]), [2, 1, 0, 1]),
            (torch.tensor([2, 1, 0, 1], dtype=torch.int32), [2, 1, 0, 1]),
            ([(2,), (1,), (0,), (1,)], [2, 1, 0, 1]),
            (None, None),
        ],
    )
    def test_forms(self, target, each):
        each = NET(PICTURES).argmax(1).tolist() if each is None else each
        maps, _ = Gradient(NET)(PICTURES, target=target)
        np.testing.assert_allclose(maps, by_hand(NET, PICTURES, each), atol=1e-12)

    def test_tuples_choose_among_scores_with_more_axes(self):
        def model(x):
            return x**2  # (batch, 3, 6, 5)

        targets = [(0, 1, 2), (1, 5, 4), (2, 0, 0), (0, 0, 0)]
        maps, _ = Gradient(model, scale=False)(PICTURES, targets)
        np.testing.assert_allclose(maps, by_hand(model, PICTURES, targets, scale=False))

    def test_none_for_one_score_a_row(self):
        def model(x):
            return (x**3).sum((1, 2, 3))

        maps, scores = Gradient(model, scale=False)(PICTURES)
        np.testing.assert_allclose(maps, by_hand(model, PICTURES, [None] * 4, scale=False))
        assert scores.shape == (4,)

    @pytest.mark.parametrize(
        ("target", "error", "message"),
        [
            (3, ValueError, r"0\.\.2 .*got 3 for input 0"),
            (-1, ValueError, "must not be negative, got -1"),
            ([0, 1], ValueError, "each of the 4 inputs, got 2 entries"),
            ([(0, 1)] * 4, ValueError, r"one score of each row by 1 indices .*got \(0, 1\) for input 0"),
            (1.0, TypeError, r"got float: 1\.0"),
            (torch.ones(4, 3, dtype=torch.bool), TypeError, "class indices, or one tuple of indices for each row"),
        ],
    )
    def test_unfit(self, target, error, message):
        with pytest.raises(error, match=message):
            Gradient(NET)(PICTURES, target)

    def test_one_index_does_not_choose_among_scores_with_more_axes(self):
        with pytest.raises(ValueError, match=r"by 3 indices \(the model's scores have shape \(3, 6, 5\)\), got 0"):
            Gradient(lambda x: x**2)(PICTURES, 0)


class TestGraph:
    def test_maps_are_differentiable_where_the_inputs_require_it(self):
        inputs = PICTURES[:2, :, :3, :3].clone().requires_grad_()
        for scale in (True, False):
            explainer = Gradient(NET, scale=scale)
            assert torch.autograd.gradcheck(lambda x, explainer=explainer: explainer(x, [0, 1])[0], (inputs,))
        assert all(parameter.grad is None for parameter in NET.parameters())

    @pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
    def test_no_graph_where_nobody_asks(self, mode):
        with mode():
            assert not Gradient(NET)(PICTURES, 0)[0].requires_grad
        with torch.no_grad():
            assert not Gradient(NET)(PICTURES.clone().requires_grad_(), 0)[0].requires_grad

    def test_inputs_are_left_alone(self):
        inputs = PICTURES.clone()
        Gradient(NET)(inputs, 0)
        assert not inputs.requires_grad
        assert inputs.grad is None
        inputs.requires_grad_()
        Gradient(NET)(inputs, 0)[0].sum().backward()
        assert inputs.grad is not None


class TestModel:
    def test_weights_do_not_take_part_in_the_backward_pass(self):
        net, seen = convolutional(), []
        net.register_forward_hook(lambda *_: seen.append([p.requires_grad for p in net.parameters()]))
        Gradient(net)(PICTURES, 0)
        assert seen
        assert all(required == [False] * 6 for required in seen)
        assert all(p.requires_grad for p in net.parameters())

    def test_training_mode_is_left_and_warned_of(self):
        net = torch.nn.Sequential(convolutional(), torch.nn.Dropout(0.9)).train()
        with pytest.warns(ModelStateWarning, match="training mode"):
            maps, _ = Gradient(net)(PICTURES, 0)
        assert all(module.training for module in net.modules())
        np.testing.assert_array_equal(maps, Gradient(NET)(PICTURES, 0)[0])

    @pytest.mark.parametrize("wrap", [lambda net: net.forward, functools.partial, lambda net: lambda x: net(x)])
    def test_functions_are_models_too(self, wrap):
        net = convolutional()
        maps, _ = Gradient(wrap(net))(PICTURES, 0)
        np.testing.assert_array_equal(maps, Gradient(NET)(PICTURES, 0)[0])
        assert all(parameter.grad is None for parameter in net.parameters())

    def test_a_function_that_mixes_rows_is_found_out_by_explain(self):
        def model(x):
            return NET(x * x.mean())

        with pytest.warns(metfa._base.warnings.RowDependenceWarning):
            metfa.explain(
                Gradient(model, scale=False), PICTURES * torch.arange(1, 5)[:, None, None, None], 0,
                noise=metfa.noise.Uniform(0.1), rng=0,
            )  # fmt: skip


class TestPrecision:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_halves_give_float32_maps(self, dtype):
        net = convolutional(dtype=dtype)
        maps, scores = Gradient(net, scale=False)(PICTURES.to(dtype), 0)
        assert maps.dtype == torch.float32
        assert scores.dtype == dtype
        np.testing.assert_allclose(maps, by_hand(NET, PICTURES, [0] * 4, scale=False), atol=2e-3)

    def test_autocast_is_close_and_leaves_the_model_in_its_precision(self):
        net, inputs = convolutional(dtype=torch.float32), PICTURES.float()
        exact, _ = Gradient(net, scale=False)(inputs, 0)
        maps, scores = Gradient(metfa.Called(net, fast="bfloat16"), scale=False)(inputs, 0)
        assert scores.dtype == torch.bfloat16
        assert maps.dtype == torch.float32
        assert 0 < (maps - exact).abs().max() < 0.05 * exact.max()
        assert {parameter.dtype for parameter in net.parameters()} == {torch.float32}
        assert not torch.is_autocast_enabled("cpu")

    @pytest.mark.parametrize(("dims", "layout"), [(2, torch.channels_last), (3, torch.channels_last_3d)])
    def test_memory_format_changes_the_inputs_layout_only(self, dims, layout):
        net = convolutional(dims, torch.float32)
        inputs = torch.rand(2, 3, *[4] * dims)
        strides = [parameter.stride() for parameter in net.parameters()]
        seen = []
        net.register_forward_pre_hook(lambda module, args: seen.append(args[0].is_contiguous(memory_format=layout)))
        maps, _ = Gradient(metfa.Called(net, memory_format=layout))(inputs, 0)
        assert set(seen) == {True}
        np.testing.assert_allclose(maps, Gradient(net)(inputs, 0)[0], atol=1e-5)
        assert [parameter.stride() for parameter in net.parameters()] == strides
        assert inputs.is_contiguous()

    def test_memory_format_keeps_the_graph(self):
        inputs = PICTURES[:1, :, :3, :3].clone().requires_grad_()
        explainer = Gradient(metfa.Called(NET, memory_format=torch.channels_last))
        assert torch.autograd.gradcheck(lambda x: explainer(x, 1)[0], (inputs,))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Gradient(None), TypeError, "`model` must be a module or a function inputs -> scores, got NoneType"),
        (lambda: Gradient(NET, channel_axis=0), ValueError, "`channel_axis` must be at least 1, got 0"),
        (lambda: Gradient(NET, channel_axis=-1), ValueError, "`channel_axis` must be at least 1, got -1"),
        (lambda: Gradient(NET, channel_axis=True), TypeError, "`channel_axis` must be an integer, got bool: True"),
        (lambda: Gradient(NET, channel_axis="1"), TypeError, "`channel_axis` must be an integer, got str: '1'"),
        (
            lambda: Gradient(metfa.Called(NET, fast="float16")),
            ValueError,
            "`fast` must be 'exact', 'bfloat16' or None, got 'float16'",
        ),
        (
            lambda: Gradient(metfa.Called(NET, memory_format="nhwc")),
            TypeError,
            "`memory_format` must be 'auto', a torch.memory_format such as torch.channels_last, or None",
        ),
    ],
)
def test_settings_are_checked(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (PICTURES.numpy(), TypeError, r"`inputs` must be a torch\.Tensor, got ndarray"),
        ([PICTURES], TypeError, r"is a list of 1 array .*, `inputs\[0\]` for one of a batch"),
        ((PICTURES * 255).to(torch.uint8), TypeError, r"floating point to have a gradient, got torch\.uint8"),
        (PICTURES[0, 0], ValueError, r"channels on axis 1, got shape \(6, 5\); where there are no channels write"),
        (PICTURES[0, 0, 0], ValueError, r"channels on axis 1, got shape \(5,\)"),
    ],
)
def test_unfit_inputs(inputs, error, message):
    with pytest.raises(error, match=message):
        Gradient(NET)(inputs, 0)


@pytest.mark.filterwarnings("ignore:Input Tensor:UserWarning")
def test_heatmap_of_captums_saliency_is_the_same():
    maps, _ = Gradient(NET)(PICTURES, [0, 1, 2, 1])
    saliency = heatmap(attr.Saliency(NET).attribute)
    np.testing.assert_allclose(saliency(PICTURES, target=torch.tensor([0, 1, 2, 1])), maps, atol=1e-12)
    settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 4, "rng": 0}
    ours, theirs = (metfa.explain(explainer, PICTURES, **settings) for explainer in (Gradient(NET), saliency))
    np.testing.assert_allclose(ours.values, theirs.values, atol=1e-12)
    assert ours.target == theirs.target
