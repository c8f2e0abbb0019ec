"""LRP against relevance by explicit matrices, against zennit and Captum, and what it does where those go wrong."""

import copy
import gc
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from zennit import canonizers, composites, rules
from zennit.attribution import Gradient as ZennitGradient
from zennit.layer import Sum
from zennit.types import AvgPool, BatchNorm, Linear

import metfa
from metfa._base.warnings import MetfaWarning, ModelStateWarning
from metfa.explainers.lrp import LRP
from metfa.models import Normalised

MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]
PIXELS = torch.rand(3, 3, 8, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.fixture(autouse=True)
def same_weights_each_time():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        yield


class Residual(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return x + self.body(x)


def batch_norm(channels):
    norm = nn.BatchNorm2d(channels)
    for values, low, high in ((norm.running_mean, -0.5, 0.5), (norm.running_var, 0.2, 3), (norm.weight.data, -2, 2)):
        values.uniform_(low, high)
    norm.bias.data.uniform_(-0.5, 0.5)
    return norm


def residual_net(norm=False, bias=True, activation=nn.ReLU, pool=nn.MaxPool2d):
    """Conv, pool, residual block with a layer in front of the sum, average, linear."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        norms = [[batch_norm(5)], [batch_norm(5)]] if norm else [[], []]
        return nn.Sequential(
            nn.Conv2d(3, 5, 3, padding=1, bias=bias), *norms[0], activation(), pool(2),
            Residual(nn.Sequential(nn.Conv2d(5, 5, 3, padding=1, bias=bias), *norms[1])), activation(),
            nn.AvgPool2d(2), nn.Flatten(), nn.Linear(10, 4, bias=bias),
        ).double().eval()  # fmt: skip


def matrix(function, x):
    """Dense matrix of a linear function of one image, and its value at zero."""
    zero = function(torch.zeros_like(x)[None]).flatten()
    unit = torch.eye(x.numel(), dtype=x.dtype).reshape(-1, *x.shape)
    return (function(unit).flatten(1) - zero).T


def shared_out(contributions, relevance):
    """Each output's relevance by the inputs' contributions (outputs, inputs)."""
    shares = contributions / (contributions.sum(1, keepdim=True) + 1e-9)
    return (shares * relevance[:, None]).sum(0)


class ByHand:
    """LRP "zbox-alpha1beta0" of a sequence, for one image, with every contribution written out."""

    def __init__(self, net, low, high):
        self.net, self.low, self.high = net, low, high

    def __call__(self, image, target):
        with torch.no_grad():
            x, steps = image, []
            layers = list(self.net)
            for layer, after in zip(layers, [*layers[1:], None], strict=True):
                x, step = self.step(
                    layer, x, first=not steps, norm=after if isinstance(after, nn.BatchNorm2d) else None
                )
                steps.append(step)
            relevance = torch.zeros_like(x)
            relevance[target] = x[target]
            for step in reversed(steps):
                relevance = step(relevance.flatten())
            return relevance.reshape(image.shape)

    def step(self, layer, x, *, first, norm):
        out = layer(x[None])[0]
        if isinstance(layer, nn.Conv2d | nn.Linear):
            weights = matrix(layer, x)
            if norm is not None:
                scale = norm.weight / (norm.running_var + norm.eps).sqrt()
                weights = weights * scale.repeat_interleave(out[0].numel())[:, None]
            contributions = (weights * x.flatten()).clamp(min=0)
            if first:
                low, high = (bound.expand(x.shape).flatten() for bound in (self.low, self.high))
                contributions = weights * x.flatten() - weights.clamp(min=0) * low - weights.clamp(max=0) * high
            return out, lambda relevance: shared_out(contributions, relevance)
        if isinstance(layer, nn.AvgPool2d):
            contributions = matrix(layer, x) * x.flatten()
            return out, lambda relevance: shared_out(contributions, relevance)
        if isinstance(layer, nn.MaxPool2d):
            return out, lambda relevance: self.to_winner(x, out, relevance)
        if isinstance(layer, Residual):
            inner, *more = list(layer.body)
            _, step = self.step(inner, x, first=False, norm=more[0] if more else None)
            branch = layer.body(x[None])[0].flatten()

            def both(relevance):
                share = relevance / (out.flatten() + 1e-9 * out.flatten().sign())
                return x.flatten() * share + step(branch * share)

            return out, both
        return out, lambda relevance: relevance

    @staticmethod
    def to_winner(x, out, relevance):
        back, relevance = torch.zeros_like(x), relevance.reshape(out.shape)
        for channel, row, column in np.ndindex(*out.shape):
            window = x[channel, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            winner = int(window.argmax())
            back[channel, 2 * row + winner // 2, 2 * column + winner % 2] += relevance[channel, row, column]
        return back.flatten()


def box(mean=MEAN, std=STD):
    mean, std = (torch.tensor(values, dtype=torch.float64) for values in (mean, std))
    return (0 - mean) / std, (1 - mean) / std


def column(values):
    return values[:, None, None]


def normalised(pixels):
    return (pixels - column(torch.tensor(MEAN, dtype=torch.float64))) / column(torch.tensor(STD, dtype=torch.float64))


def pixel_model(net):
    return Normalised(net, MEAN, STD).eval()


def summed(relevance):
    return relevance.sum(dim=1)


def zennit_relevance(model, composite, inputs, target):
    """Zennit's own way, started with the class's score."""
    with ZennitGradient(model, composite) as attributor:
        return attributor(inputs, lambda scores: scores * torch.eye(scores.shape[1])[target].to(scores))[1]


class TestPapersRules:
    @pytest.mark.parametrize("norm", [False, True])
    @pytest.mark.parametrize("pool", [nn.MaxPool2d, nn.AvgPool2d])
    def test_equals_explicit_matrices(self, norm, pool):
        net, (low, high) = residual_net(norm, pool=pool), box()
        by_hand = ByHand(net, column(low), column(high))
        expected = torch.stack([by_hand(image, t) for image, t in zip(normalised(PIXELS), [3, 0, 2], strict=True)])
        relevance, scores = LRP(pixel_model(net), scale=False)(PIXELS, [3, 0, 2])
        np.testing.assert_allclose(relevance, summed(expected), atol=1e-10 * expected.abs().max())
        torch.testing.assert_close(scores, net(normalised(PIXELS)))
        maps, _ = LRP(pixel_model(net))(PIXELS, [3, 0, 2])
        for one, row in zip(maps, summed(expected.abs()), strict=True):
            spread = row.max() - row.min()  # zero where only biases make the units active that lead to the class
            np.testing.assert_allclose(one, (row - row.min()) / (spread or 1), atol=1e-8)

    def test_normalisation_inside_or_outside_is_the_same(self):
        net = residual_net(norm=True)
        inside, _ = LRP(pixel_model(net), scale=False)(PIXELS, 1)
        outside, _ = LRP(net, scale=False, bounds=tuple(bound.tolist() for bound in box()))(normalised(PIXELS), 1)
        np.testing.assert_allclose(inside, outside, atol=1e-12)

        class Reordered(nn.Module):
            def forward(self, x):
                return self.net(((x.flip(1) - self.mean) / self.std).permute(0, 3, 1, 2))

        model = Reordered()
        model.net = net
        model.eval()
        model.mean, model.std = torch.tensor(MEAN, dtype=torch.float64), torch.tensor(STD, dtype=torch.float64)
        rows_last = PIXELS.permute(0, 2, 3, 1).flip(1)
        other, _ = LRP(model, scale=False, channel_axis=3)(rows_last, 1)
        np.testing.assert_allclose(other.flip(1), inside, atol=1e-12)

    def test_division_by_std_would_rescale_the_relevance_in_zennit(self):
        net, composite = residual_net(bias=False), composites.EpsilonPlus()
        model = pixel_model(net)
        ours, _ = LRP(model, composite=composite, scale=False, channel_axis=None)(PIXELS, 1)
        theirs = zennit_relevance(model, composites.EpsilonPlus(), PIXELS, 1)
        assert (theirs - ours).abs().max() > ours.abs().max()

    @pytest.mark.parametrize("norm", [False, True])
    def test_relevance_is_conserved_without_biases(self, norm):
        net = residual_net(norm, bias=False)
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.zero_()
                module.bias.data.zero_()
        relevance, scores = LRP(net, scale=False)(PIXELS, [3, 0, 2])
        kept = relevance.sum((1, 2)) / scores[range(3), [3, 0, 2]]
        np.testing.assert_allclose(kept, 1, atol=1e-6)

    def test_a_unit_active_by_its_bias_alone_keeps_its_relevance(self):
        net = nn.Sequential(nn.Linear(2, 1), nn.ReLU(), nn.Linear(1, 2)).double()
        net[0].weight.data, net[0].bias.data = torch.tensor([[-1.0, -2.0]]).double(), torch.tensor([5.0]).double()
        net[2].weight.data = torch.tensor([[1.0], [2.0]]).double()
        net.insert(0, nn.Linear(2, 2, bias=False).double())
        net[0].weight.data = torch.eye(2).double()
        relevance, _ = LRP(net.eval(), scale=False, channel_axis=None)(torch.tensor([[0.5, 0.5]]).double(), 1)
        assert (relevance == 0).all()

    def test_relevance_of_a_negative_score_is_negative_and_its_map_is_not_inverted(self):
        parts = residual_net(bias=False)
        net = nn.Sequential(*parts[:3], *parts[5:]).eval()  # no residual sum, whose parts differ in sign
        target = net(PIXELS).argmin(1)
        relevance, scores = LRP(net, scale=False)(PIXELS, target)
        assert (scores[range(3), target] < 0).all()
        assert (relevance <= 0).all()
        maps, _ = LRP(net)(PIXELS, target)
        assert torch.equal(maps.flatten(1).argmax(1), relevance.flatten(1).argmin(1))

    def test_tables(self):
        net = nn.Sequential(nn.Linear(4, 6, bias=False), nn.ReLU(), nn.Linear(6, 3, bias=False)).double().eval()
        rows = torch.rand(5, 4).double()
        relevance, scores = LRP(net, scale=False, channel_axis=None)(rows, 2)
        by_hand = ByHand(net, torch.zeros(1), torch.ones(1))
        np.testing.assert_allclose(relevance, torch.stack([by_hand(row, 2) for row in rows]), atol=1e-12)
        np.testing.assert_allclose(relevance.sum(1), scores[:, 2], atol=1e-7)

    @pytest.mark.parametrize("shape", [(1, 3, 1, 5), (2, 3, 7, 1), (1, 1, 4, 3), (1, 2, 1, 1)])
    def test_axes_of_size_one(self, shape):
        net = nn.Sequential(nn.Conv2d(shape[1], 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        maps, scores = LRP(net.eval())(torch.rand(shape))
        assert maps.shape == (shape[0], *shape[2:])
        assert maps.isfinite().all()
        assert scores.shape == (shape[0], 4)


class TestOtherLibraries:
    @pytest.mark.parametrize("name", sorted(composites.COMPOSITES))
    def test_composites_by_name_are_zennits(self, name):
        net = nn.Sequential(
            nn.Conv2d(3, 5, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(5, 5, 2), nn.ReLU(), nn.AvgPool2d((1, 1)),
            nn.Flatten(), nn.Linear(10, 4),
        ).double().eval()  # fmt: skip
        settings = {"low": torch.zeros(1, 3, 8, 6), "high": torch.ones(1, 3, 8, 6)} if "box" in name else {}
        theirs = zennit_relevance(net, composites.COMPOSITES[name](**settings), PIXELS, 2)
        ours, _ = LRP(net, composite=name, scale=False, channel_axis=None)(PIXELS, 2)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12 * theirs.abs().max())

    @pytest.mark.parametrize("name", ["resnet18", "resnet50", "vgg11_bn"])
    @pytest.mark.slow
    def test_torchvision_networks_are_as_by_zennits_own_canonizers(self, name):
        from torchvision import models
        from zennit.torchvision import ResNetCanonizer, VGGCanonizer

        net = getattr(models, name)(num_classes=5)
        if name.startswith("vgg"):
            net.avgpool, net.classifier = nn.AdaptiveAvgPool2d(1), nn.Linear(512, 5)  # a hundred million weights less
        net = net.double().eval()
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.uniform_(-0.1, 0.1)
                module.running_var.uniform_(0.5, 2)
        images = torch.rand(2, 3, 32, 32).double()
        canonizer = ResNetCanonizer() if name.startswith("resnet") else VGGCanonizer()
        canonised = composites.EpsilonPlusFlat(canonizers=[canonizer])
        expected = summed(zennit_relevance(copy.deepcopy(net), canonised, images, 3))
        tolerance = 1e-3 * expected.abs().max()  # zennit's merged norms still divide by sqrt(1 + eps)
        plain, _ = LRP(net, composite="epsilon_plus_flat", scale=False)(images, 3)
        np.testing.assert_allclose(plain, expected, atol=tolerance)
        before = copy.deepcopy(net.state_dict())
        given, _ = LRP(net, composite=composites.EpsilonPlusFlat(canonizers=[canonizer]), scale=False)(images, 3)
        np.testing.assert_allclose(given, expected, atol=tolerance)
        assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())
        unmerged = summed(zennit_relevance(net, composites.EpsilonPlusFlat(), images, 3))
        assert (unmerged - expected).abs().max() > 0.1 * expected.abs().max()

    def test_captums_epsilon_rule(self):
        from captum.attr import LRP as CaptumLRP

        net = nn.Sequential(
            nn.Conv2d(3, 5, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(5, 5, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )  # fmt: skip
        whole = nn.Sequential(net, Last(nn.Linear(5, 4))).double().eval()
        composite = composites.LayerMapComposite([(Linear, rules.Epsilon(1e-9)), (AvgPool, rules.Norm(1e-9))])
        activations = composites.LayerMapComposite([(nn.ReLU, rules.Pass())])
        ours, _ = LRP(
            whole, composite=composites.MixedComposite([composite, activations]), channel_axis=None, scale=False
        )(PIXELS, 1)
        theirs = CaptumLRP(copy.deepcopy(whole)).attribute(PIXELS.clone().requires_grad_(), target=1)
        np.testing.assert_allclose(ours, theirs.detach(), rtol=1e-5, atol=1e-9)

    def test_alpha1_beta0_is_zennits_rule_of_that_name(self):
        bare = {"stabilizer": 1e-9, "zero_params": ["bias"]}
        first = [(Linear, rules.ZBox(0.0, 1.0, **bare))]
        others = [((nn.ReLU, BatchNorm), rules.Pass()), ((Sum, AvgPool), rules.Norm(1e-9))]
        alpha_beta = [*others, (Linear, rules.AlphaBeta(1, 0, **bare))]
        composite = composites.SpecialFirstLayerMapComposite(alpha_beta, first)
        net = residual_net(norm=True)
        np.testing.assert_allclose(
            LRP(net, scale=False)(PIXELS, 1)[0], LRP(net, composite=composite, scale=False)(PIXELS, 1)[0], atol=1e-12
        )


class Last(nn.Module):
    """A linear layer behind a functional flatten."""

    def __init__(self, linear):
        super().__init__()
        self.linear = linear

    def forward(self, x):
        return self.linear(torch.flatten(x, 1))


class Functional(nn.Module):
    """`residual_net()` with every step but the layers written as a function."""

    def __init__(self, net, style):
        super().__init__()
        self.first, self.inner, self.linear, self.style = net[0], net[3].body[0], net[-1], style

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.first(x)), 2)
        branch = self.inner(x)
        if self.style == "in place":
            branch += x
            x = functional.relu(branch, inplace=True)
        else:
            x = torch.add(x, branch).clamp(min=0)
        x = functional.avg_pool2d(x, 2).view(len(x), -1)
        if self.style == "in place":
            return functional.linear(x, self.linear.weight, self.linear.bias)
        return x @ self.linear.weight.T + self.linear.bias


class TestHowAModelIsWritten:
    @pytest.mark.parametrize("style", ["in place", "operators"])
    def test_functions_have_the_rules_of_modules(self, style):
        net = residual_net()
        relevance, scores = LRP(Functional(net, style).eval(), scale=False)(PIXELS, 2)
        np.testing.assert_allclose(relevance, LRP(net, scale=False)(PIXELS, 2)[0], atol=1e-12)
        np.testing.assert_allclose(scores, net(PIXELS).detach(), atol=1e-12)

    def test_means_and_sums_share_in_proportion(self):
        class Mean(nn.Module):
            def __init__(self, reduce):
                super().__init__()
                self.conv, self.linear, self.reduce = nn.Conv2d(3, 5, 3), nn.Linear(5, 2, bias=False), reduce

            def forward(self, x):
                return self.linear(self.reduce(torch.relu(self.conv(x))))

        pooled = Mean(lambda x: nn.AdaptiveAvgPool2d(1)(x).flatten(1)).double().eval()
        expected, _ = LRP(pooled, scale=False)(PIXELS, 1)
        for reduce, factor in ((lambda x: x.mean((2, 3)), 1), (lambda x: torch.sum(x, (-1, -2)), 24)):
            other = copy.deepcopy(pooled)
            other.reduce = reduce
            np.testing.assert_allclose(LRP(other, scale=False)(PIXELS, 1)[0], factor * expected, atol=1e-6)

    def test_module_called_twice(self):
        """Conv-ReLU-MaxPool-Conv-ReLU and the same pool again, a functional flatten, linear: captum#857."""

        class Reused(nn.Module):
            def __init__(self, again):
                super().__init__()
                self.conv1, self.conv2, self.linear = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 1), nn.Linear(6, 2)
                self.pool, self.relu, self.again = nn.MaxPool2d(2), nn.ReLU(), again

            def forward(self, x):
                x = self.pool(self.relu(self.conv1(x)))
                x = self.pool(self.relu(self.conv2(x)))
                if self.again:  # convolution and averages that have rules with a memory
                    x = self.relu(self.conv2(x))
                return self.linear(torch.flatten(x, 1))

        reused = Reused(again=True).double().eval()
        parts = [reused.conv1, nn.ReLU(), nn.MaxPool2d(2), reused.conv2, nn.ReLU(), nn.MaxPool2d(2)]
        written_out = nn.Sequential(*parts, copy.deepcopy(reused.conv2), nn.ReLU(), nn.Flatten(), reused.linear)
        expected, _ = LRP(written_out.eval(), scale=False)(PIXELS, 1)
        np.testing.assert_allclose(LRP(reused, scale=False)(PIXELS, 1)[0], expected, atol=1e-12)
        assert expected.abs().max() > 0

    def test_batch_norm_is_merged_whatever_the_order_of_registration(self):
        class Shuffled(nn.Module):
            def __init__(self, net):
                super().__init__()
                self.tail, self.norm, self.conv = net[2:], net[1], net[0]

            def forward(self, x):
                return self.tail(self.norm(self.conv(x)))

        net = residual_net(norm=True)
        net[0].bias = None
        expected, _ = LRP(net, scale=False)(PIXELS, 2)
        np.testing.assert_allclose(LRP(Shuffled(net).eval(), scale=False)(PIXELS, 2)[0], expected, atol=1e-12)
        folded = metfa.models.fold_batch_norm(net, PIXELS)
        np.testing.assert_allclose(LRP(folded, scale=False)(PIXELS, 2)[0], expected, atol=1e-12)
        bent = copy.deepcopy(net)
        bent[1].weight.data *= torch.tensor([1, -1, 2, 0.1, 3])
        bent[1].eval()
        assert (LRP(bent, scale=False)(PIXELS, 2)[0] - expected).abs().max() > 0.1 * expected.abs().max()

    def test_batch_norm_is_not_merged_where_the_layer_is_used_elsewhere_too(self):
        class Forked(nn.Module):
            def __init__(self, between):
                super().__init__()
                self.conv, self.norm, self.linear = nn.Conv2d(3, 5, 3, bias=False), batch_norm(5), nn.Linear(120, 2)
                self.between = between

            def forward(self, x):
                x = self.conv(x)
                return self.linear(functional.relu(x + self.norm(self.between(x))).flatten(1))

        net = Forked(lambda x: x).double().eval()
        apart = copy.deepcopy(net)
        apart.between = torch.clone  # so that the norm does not take the layer's output itself
        relevance, scores = LRP(net, scale=False)(PIXELS, 1)
        assert torch.equal(scores, net(PIXELS))
        np.testing.assert_array_equal(relevance, LRP(apart, scale=False)(PIXELS, 1)[0])

    def test_batch_norm_before_the_convolution_passes_relevance(self):
        net = nn.Sequential(batch_norm(3), nn.Conv2d(3, 2, 3, bias=False), nn.ReLU(), nn.Flatten()).double().eval()
        assert LRP(net, scale=False)(PIXELS, 1)[0].isfinite().all()

    def test_first_layer_called_twice_has_the_box_rule_at_the_image_only(self):
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.linear = nn.Conv2d(3, 3, 3, bias=False), nn.Linear(24, 2, bias=False)

            def forward(self, x):
                return self.linear(torch.relu(self.conv(torch.relu(self.conv(x)))).flatten(1))

        net = Twice().double().eval()
        written_out = nn.Sequential(
            net.conv, nn.ReLU(), copy.deepcopy(net.conv), nn.ReLU(), nn.Flatten(), net.linear
        ).eval()  # fmt: skip
        relevance, _ = LRP(net, scale=False)(PIXELS, 1)
        np.testing.assert_allclose(relevance, LRP(written_out, scale=False)(PIXELS, 1)[0], atol=1e-12)

    def test_normalisation_needs_no_rule_of_the_composite(self):
        net = residual_net(norm=True, bias=False)
        bare = composites.LayerMapComposite([((nn.ReLU,), rules.Pass()), ((Sum, AvgPool), rules.Norm(1e-9))])
        given = composites.LayerMapComposite([(Linear, rules.ZPlus(1e-9, zero_params=["bias"]))])
        composite = composites.MixedComposite([bare, given])
        relevance, _ = LRP(pixel_model(net), composite=composite, scale=False)(PIXELS, 1)
        named = composites.MixedComposite([composite, composites.LayerMapComposite([(BatchNorm, rules.Pass())])])
        np.testing.assert_allclose(relevance, LRP(pixel_model(net), composite=named, scale=False)(PIXELS, 1)[0])

    @pytest.mark.parametrize("name", ["densenet121", "squeezenet1_1", "mobilenet_v2"])
    def test_relevance_finds_its_way_through_networks_of_other_styles(self, name):
        from torchvision import models

        with torch.random.fork_rng():
            torch.manual_seed(0)
            net = getattr(models, name)(num_classes=5).eval()
        images = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
        relevance, scores = LRP(net.double(), scale=False)(images.double(), 1)
        assert torch.equal(scores, net(images.double()).detach())
        assert 0.1 < relevance.sum() / scores[0, 1] < 1 + 1e-6

    def test_overwritten_values_that_are_used_again_are_refused(self):
        class Aliased(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.act = nn.Conv2d(3, 3, 1), nn.ReLU(inplace=True)

            def forward(self, x):
                x = self.conv(x)
                return (x + self.act(x)).flatten(1)

        with pytest.raises(ValueError, match="'act' works in place on a tensor that is used again"):
            LRP(Aliased().eval())(torch.rand(1, 3, 4, 4))

        class Ignored(Aliased):
            def forward(self, x):
                x = self.conv(x)
                x.relu_()
                return x.flatten(1)

        with pytest.raises(ValueError, match="'relu' works in place on a tensor that is used again"):
            LRP(Ignored().eval())(torch.rand(1, 3, 4, 4))

    @pytest.mark.parametrize("inplace", [True, False])
    def test_in_place_activations(self, inplace):
        net = residual_net(activation=lambda: nn.ReLU(inplace=inplace))
        np.testing.assert_allclose(
            LRP(net, scale=False)(PIXELS, 2)[0], LRP(residual_net(), scale=False)(PIXELS, 2)[0], atol=1e-12
        )

    def test_flatten_identity_and_dropout_pass_relevance(self):
        net = residual_net()
        padded = nn.Sequential(*net[:2], nn.Identity(), nn.Dropout2d(0.5), *net[2:-1], nn.Dropout(0.5), net[-1]).eval()
        np.testing.assert_array_equal(LRP(padded, scale=False)(PIXELS, 2)[0], LRP(net, scale=False)(PIXELS, 2)[0])


class Gated(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.inner, self.function = nn.Conv2d(3, 3, 1), function

    def forward(self, x):
        return self.function(self.inner(x)).flatten(1)


class TestUnsupported:
    def test_all_layers_are_named_at_once_before_anything_runs(self):
        ran = []
        net = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.GELU(), nn.Identity(), nn.Sequential(nn.SiLU(), nn.Upsample(scale_factor=2)),
            nn.GELU(), nn.GroupNorm(2, 4), nn.Flatten(), nn.Dropout(), nn.ReLU(),
        ).eval()  # fmt: skip
        net[1].register_forward_pre_hook(lambda *_: ran.append(1))
        named = r"GELU in '1', '4'; SiLU in '3\.0'; Upsample in '3\.1'; GroupNorm in '5'\. Convolutions"
        with pytest.raises(ValueError, match=named):
            LRP(net)(torch.rand(1, 3, 8, 8))
        assert ran == []

    @pytest.mark.parametrize(
        ("function", "named"),
        [
            (functional.gelu, "function gelu in 'gate'"),
            (lambda x: x * torch.sigmoid(x), "function mul in 'gate'"),
            (lambda x: functional.layer_norm(x, x.shape[1:]), "function layer_norm in 'gate'"),
            (lambda x: functional.interpolate(x, scale_factor=2), "function interpolate in 'gate'"),
            (
                lambda x: 1 / (1 + x.abs()),
                "function abs in 'gate'; function (reciprocal|rtruediv|rdiv|div|mul) in 'gate'",
            ),
            (lambda x: x @ x.transpose(2, 3), "function matmul in 'gate'"),
        ],
    )
    def test_functions_are_named_with_their_module(self, function, named):
        net = nn.Sequential()
        net.add_module("gate", Gated(function))
        with pytest.raises(ValueError, match=named):
            LRP(net.eval())(torch.rand(1, 3, 4, 4), 0)

    def test_softmax_gets_a_hint(self):
        with pytest.raises(
            ValueError, match=r"Softmax in '9' \(LRP starts at logits: give the model without its softmax"
        ):
            LRP(nn.Sequential(*residual_net(), nn.ReLU(), nn.Softmax(1)).eval())(PIXELS)
        net = nn.Sequential(Gated(lambda x: x.softmax(1)))
        with pytest.raises(ValueError, match=r"function softmax in '0' \(LRP starts at logits"):
            LRP(net.eval())(torch.rand(1, 3, 4, 4), 0)

    def test_many_layers_are_counted(self):
        net = nn.Sequential(nn.Conv2d(3, 3, 1), *(nn.SiLU() for _ in range(11)), nn.Flatten())
        with pytest.raises(ValueError, match=r"'1', .*'8' and 3 more\."):
            LRP(net.eval())(torch.rand(1, 3, 4, 4))

    def test_zennits_composites_have_rules_of_their_own(self):
        net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU(), nn.Flatten(), nn.Linear(4 * 24, 3)).double().eval()
        theirs = zennit_relevance(net, composites.EpsilonPlus(), PIXELS, 1)
        ours, _ = LRP(net, composite="epsilon_plus", scale=False)(PIXELS, 1)
        np.testing.assert_allclose(ours, summed(theirs), atol=1e-12)

    def test_scripted_and_parametrised_layers(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated in new versions of torch
            scripted = torch.jit.script(residual_net()[0])
        with pytest.raises(ValueError, match="its part '0' is scripted or traced"):
            LRP(nn.Sequential(scripted, nn.Conv2d(5, 2, 1), nn.Flatten()).double().eval())(PIXELS)
        net = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 2, 3)), nn.ReLU(), nn.Flatten())
        with pytest.raises(ValueError, match=r"with a computed weight \(remove the parametrisation\) in '0'"):
            LRP(net.eval(), composite="epsilon_plus")(torch.rand(1, 3, 4, 4))

    def test_a_model_without_layers(self):
        with pytest.raises(ValueError, match="no convolution or linear layer"):
            LRP(nn.Flatten().eval())(torch.rand(1, 3, 4, 4))
        with pytest.raises(ValueError, match="no layer of `model` was called as a module"):
            LRP(nn.Flatten().eval(), composite="epsilon_plus")(torch.rand(1, 3, 4, 4))

    def test_relevance_that_is_not_finite_names_its_layer(self):
        net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 1, bias=False), nn.ReLU(), nn.Flatten())
        net[2].weight.data[1] = 0
        no_stabiliser = [(nn.ReLU, rules.Pass()), (Linear, rules.Epsilon(0.0))]
        with pytest.raises(ValueError, match="relevance is not finite from layer '2' on"):
            LRP(net.eval(), composite=composites.LayerMapComposite(no_stabiliser))(torch.rand(1, 3, 4, 4), 0)

    def test_scores_that_are_not_finite(self):
        with pytest.raises(ValueError, match="`inputs` must be finite"):
            LRP(residual_net(), composite="epsilon_plus")(PIXELS * torch.nan, 0)
        net = residual_net()
        net[-1].bias.data[0] = torch.inf
        with pytest.raises(ValueError, match="scores are not finite"):
            LRP(net, composite="epsilon_plus")(PIXELS, 0)


class TestGraph:
    @pytest.mark.parametrize("scale", [True, False])
    def test_maps_are_differentiable_where_the_inputs_require_it(self, scale):
        net = residual_net(norm=True, activation=nn.Softplus, pool=nn.AvgPool2d)
        net[-1] = nn.Linear(5, 4).double()
        explainer = LRP(pixel_model(net), scale=scale)
        inputs = (0.1 + 0.8 * PIXELS[:1, :, :4, :4]).requires_grad_()
        assert torch.autograd.gradcheck(lambda x: explainer(x, 1)[0], (inputs,), atol=1e-4, rtol=1e-3)
        assert all(parameter.grad is None for parameter in net.parameters())

    def test_no_graph_where_nobody_asks(self):
        with torch.no_grad():
            maps, scores = LRP(residual_net())(PIXELS.clone().requires_grad_(), 0)
        assert not maps.requires_grad
        assert not LRP(residual_net())(PIXELS, 0)[0].requires_grad
        assert not scores.requires_grad


def state_of(net):
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in net.modules()]
    tensors = [*net.parameters(), *net.buffers()]
    return hooks, [id(tensor) for tensor in tensors], [tensor.data_ptr() for tensor in tensors]


class TestModel:
    @pytest.mark.parametrize(
        ("model", "settings", "target", "message"),
        [
            (residual_net, {}, 0, None),
            (residual_net, {}, 9, "got 9"),
            (
                residual_net,
                {"composite": composites.EpsilonPlus(canonizers=[canonizers.SequentialMergeBatchNorm()])},
                9,
                "9",
            ),
            (lambda norm: nn.Sequential(*residual_net(norm)[:2], nn.GELU(), nn.Flatten()), {}, 0, "GELU"),
            (lambda norm: nn.Sequential(*residual_net(norm)[:2], Gated(functional.gelu)), {}, 0, "expected input"),
        ],
    )
    def test_is_left_as_found(self, model, settings, target, message):
        net = model(norm=True).double().eval()
        net[0].requires_grad_(False)
        net[1].weight.grad = torch.ones_like(net[1].weight)
        net.register_forward_hook(lambda *_: None)
        state, weights = state_of(net), copy.deepcopy(net.state_dict())
        required = [p.requires_grad for p in net.parameters()]
        explainer = LRP(net, **settings)
        if message is None:
            explainer(PIXELS, target)
        else:
            with pytest.raises((ValueError, RuntimeError), match=message):
                explainer(PIXELS, target)
        assert state_of(net) == state
        assert all(torch.equal(weights[key], value) for key, value in net.state_dict().items())
        assert [p.requires_grad for p in net.parameters()] == required
        assert (net[1].weight.grad == 1).all()

    def test_training_mode_is_left_and_warned_of(self):
        net = nn.Sequential(residual_net(norm=True), nn.Dropout(0.9)).train()
        with pytest.warns(ModelStateWarning, match="training mode"):
            maps, _ = LRP(net)(PIXELS, 0)
        assert all(module.training for module in net.modules())
        np.testing.assert_array_equal(maps, LRP(residual_net(norm=True))(PIXELS, 0)[0])

    @pytest.mark.slow
    def test_nothing_is_left_behind_by_many_calls(self):
        explainer = LRP(residual_net(norm=True))
        images = PIXELS[:1]

        def tensors():
            gc.collect()
            return sum(issubclass(type(found), torch.Tensor) for found in gc.get_objects())

        explainer(images, 0)
        state, before = state_of(explainer.model), tensors()
        for _ in range(50):
            explainer(images, 0)
        assert tensors() <= before
        assert state_of(explainer.model) == state

    def test_target_defaults_to_the_predicted_class(self):
        net = residual_net()
        np.testing.assert_array_equal(LRP(net)(PIXELS)[0], LRP(net)(PIXELS, net(PIXELS).argmax(1))[0])


class TestPrecision:
    def test_float32_is_close_to_float64(self):
        exact, _ = LRP(residual_net(norm=True))(PIXELS, 0)
        maps, _ = LRP(residual_net(norm=True).float())(PIXELS.float(), 0)
        assert maps.dtype == torch.float32
        np.testing.assert_allclose(maps, exact, atol=1e-4)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_halves_are_explained_in_float32(self, dtype):
        net = residual_net(norm=True).to(dtype)
        maps, _ = LRP(net, scale=False)(PIXELS.to(dtype), 0)
        assert maps.dtype == torch.float32
        assert {parameter.dtype for parameter in net.parameters()} == {dtype}
        expected, _ = LRP(copy.deepcopy(net).float(), scale=False)(PIXELS.to(dtype).float(), 0)
        np.testing.assert_allclose(maps, expected, atol=1e-4 * expected.abs().max())

    def test_autocast_is_close(self):
        net = residual_net().float()
        exact, _ = LRP(net, scale=False)(PIXELS.float(), 0)
        maps, _ = LRP(metfa.Called(net, fast="bfloat16"), scale=False)(PIXELS.float(), 0)
        assert 0 < (maps - exact).abs().max() < 0.1 * exact.abs().max()

    def test_memory_format_changes_nothing(self):
        net = residual_net()
        maps, _ = LRP(metfa.Called(net, memory_format=torch.channels_last))(PIXELS, 0)
        np.testing.assert_allclose(maps, LRP(net)(PIXELS, 0)[0], atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"model": lambda x: x}, TypeError, r"must be a torch\.nn\.Module, got function"),
        ({"composite": "epsilon"}, ValueError, "one of 'zbox-alpha1beta0', .*'epsilon_plus_flat'.*got 'epsilon'"),
        ({"composite": composites.EpsilonPlus}, TypeError, r"a name or a zennit\.core\.Composite, got type"),
        ({"bounds": 1}, TypeError, r"a pair \(lowest, highest\), got 1"),
        ({"bounds": (1, 0)}, ValueError, r"\(lowest, highest\), got \(1, 0\)"),
        ({"bounds": ("a", "b")}, TypeError, "must be numbers, or one for each channel, got"),
        ({"channel_axis": 0}, ValueError, "`channel_axis` must be at least 1, got 0"),
    ],
)
def test_settings_are_checked(settings, error, message):
    model = settings.pop("model", residual_net())
    with pytest.raises(error, match=message):
        LRP(model, **settings)


@pytest.mark.parametrize(
    ("inputs", "settings", "error", "message"),
    [
        (PIXELS.numpy(), {}, TypeError, r"`inputs` must be a torch\.Tensor, got ndarray"),
        ((PIXELS * 255).to(torch.uint8), {}, TypeError, r"floating point to have relevance, got torch\.uint8"),
        (PIXELS[0, 0], {}, ValueError, r"channels on axis 1, got shape \(8, 6\)"),
        (PIXELS, {"bounds": ([0, 0], [1, 1])}, ValueError, r"each channel of inputs \(3, 3, 8, 6\), got \[0, 0\]"),
    ],
)
def test_unfit_inputs(inputs, settings, error, message):
    with pytest.raises(error, match=message):
        LRP(residual_net(), **settings)(inputs, 0)


def test_inputs_beyond_the_bounds_are_warned_of():
    with pytest.warns(MetfaWarning, match=r"beyond `bounds` \(0\.0, 1\.0\) of the box rule"):
        LRP(residual_net())(normalised(PIXELS), 0)


@pytest.mark.weights
class TestRealNetworks:
    def test_efficientnet_looks_at_the_cats_eyes_and_nose(self):
        from PIL import Image
        from skimage import data

        loaded = metfa.models.load("efficientnet-lite0")
        cat = loaded.preprocess(Image.fromarray(data.chelsea()))[None]
        relevance, scores = LRP(loaded.module, scale=False)(cat)
        assert "cat" in loaded.class_names[int(scores.argmax())]
        assert torch.equal(scores, loaded.module(cat).detach())
        features = torch.zeros(224, 224, dtype=torch.bool)
        for rows, columns in (
            (slice(50, 115), slice(35, 105)),
            (slice(70, 130), slice(170, 215)),
            (slice(165, 215), slice(105, 165)),
        ):
            features[rows, columns] = True
        strongest = relevance[0] >= relevance[0].flatten().kthvalue(int(0.99 * 224 * 224)).values
        assert (strongest & features).sum() > 0.8 * strongest.sum()
        assert features.float().mean() < 0.25

    def test_relu_resnet_from_onnx(self, relu_resnet):
        from PIL import Image
        from skimage import data

        picture = np.asarray(Image.fromarray(data.coffee()).resize((224, 224)), dtype=np.float32) / 255
        images = torch.as_tensor(picture.transpose(2, 0, 1).copy())[None]
        relevance, scores = LRP(relu_resnet, scale=False)(images, 0)
        np.testing.assert_allclose(scores, relu_resnet(images).detach(), atol=1e-5)
        assert relevance.isfinite().all()
        assert 0 < relevance.sum() / scores[0, 0] <= 1 + 1e-3
        double, _ = LRP(copy.deepcopy(relu_resnet).double(), scale=False)(images.double(), 0)
        np.testing.assert_allclose(relevance, double, atol=1e-3 * float(double.abs().max()))
