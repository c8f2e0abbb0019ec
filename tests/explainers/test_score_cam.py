"""Score-CAM against each definition by loops, against grad-cam itself, and on the real network."""

import copy

import numpy as np
import pytest
import torch
from PIL import Image
from pytorch_grad_cam import ScoreCAM as TheirScoreCAM
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from skimage import data
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

import metfa
from metfa import DegenerateAttributionsWarning, ModelOutputWarning, RowDependenceWarning
from metfa.explainers.score_cam import VARIANTS, ScoreCAM
from metfa.models import Normalised

PICTURES = torch.rand(3, 2, 12, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
TARGETS = [0, 2, 1]


def network(dtype=torch.float64, channels=7):
    """Its layer has a dead channel and a constant one, and its scores differ enough for the weights to do so."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(2, channels, 4, stride=3), nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
            nn.Flatten(), nn.Linear(channels * 3 * 2, 4),
        )  # fmt: skip
    with torch.no_grad():
        net[0].bias.fill_(0.5)  # else most channels would be dead
        net[0].weight[1:3].zero_()
        net[0].bias[1:3] = torch.tensor([-1.0, 0.7])
        net[-1].weight *= 5
    return net.to(dtype).eval()


NET = network()


def by_loops(model, features, image, target, variant="original", baseline=0.0):
    """One image of one channel at a time, as each library does, in words of ours."""
    size = image.shape[1:]
    hidden = torch.zeros_like(image) + torch.as_tensor(baseline, dtype=image.dtype).reshape(-1, 1, 1)

    def enlarge(channel, align_corners=False):
        return functional.interpolate(channel[None, None], size, mode="bilinear", align_corners=align_corners)[0, 0]

    def scaled(channel, epsilon=0.0):
        return (channel - channel.min()) / (channel.max() - channel.min() + epsilon)

    def score(mask):
        with torch.no_grad():
            return model((hidden + mask * (image - hidden))[None])[0]

    total, weights = torch.zeros(size, dtype=image.dtype), []
    for channel in features:
        flat = channel.max() == channel.min()
        if variant in ("original", "metfa"):
            if not flat:
                mask = scaled(enlarge(channel))
                weight = score(mask).softmax(0)[target]
                total += weight * (mask if variant == "metfa" else enlarge(channel))
        elif flat:
            weights.append(score(torch.zeros(size))[target])
        elif variant == "grad-cam":
            weights.append(score(scaled(enlarge(channel, align_corners=True), 1e-8))[target])
        else:
            weights.append(score(enlarge(scaled(channel, 1e-8)))[target])
    if weights:
        combined = sum(w * channel for w, channel in zip(torch.stack(weights).softmax(0), features, strict=True))
        total = enlarge(combined.relu())
    return total.relu()


def expected_maps(variant="original", baseline=0.0, net=NET, pictures=PICTURES, targets=TARGETS, layer=3):
    with torch.no_grad():
        features = net[:layer](pictures)
    rows = zip(features, pictures, targets, strict=True)
    return torch.stack([by_loops(net, row, image, target, variant, baseline) for row, image, target in rows])


class TestDefinitions:
    @pytest.mark.parametrize("variant", VARIANTS)
    @pytest.mark.parametrize("baseline", [0.0, 0.5, (0.2, 0.9)])
    def test_equal_the_loops(self, variant, baseline):
        maps, scores = ScoreCAM(NET, variant=variant, baseline=baseline, scale=False)(PICTURES, TARGETS)
        np.testing.assert_allclose(maps, expected_maps(variant, baseline), atol=1e-12)
        with torch.no_grad():
            assert torch.equal(scores, NET(PICTURES))

    def test_differ(self):
        maps = torch.stack([ScoreCAM(NET, variant=variant)(PICTURES, TARGETS)[0] for variant in VARIANTS])
        for first in range(4):
            for second in range(first):
                assert (maps[first] - maps[second]).abs().max() > 1e-3

    def test_negative_activations_are_summed_as_they_are(self):
        """Before the activation: the sum is rectified, its terms are not."""
        net = network()
        with torch.no_grad():
            net[0].bias.fill_(0.2)
        maps, _ = ScoreCAM(net, "1", scale=False)(PICTURES, TARGETS)
        np.testing.assert_allclose(maps, expected_maps(net=net, layer=2), atol=1e-12)
        assert (maps == 0).any()
        assert (maps > 0).any()

    def test_grad_cam_variant_equals_grad_cam(self):
        net, pictures = network(torch.float32), PICTURES.float()
        theirs = TheirScoreCAM(net, [net[2]])
        expected = theirs(pictures, [ClassifierOutputTarget(target) for target in TARGETS])
        theirs.activations_and_grads.release()
        maps, _ = ScoreCAM(net, variant="grad-cam")(pictures, TARGETS)
        np.testing.assert_allclose(maps, expected, atol=1e-5)

    def test_scaled_by_default(self):
        raw, _ = ScoreCAM(NET, scale=False)(PICTURES, 0)
        maps, _ = ScoreCAM(NET)(PICTURES, 0)
        low, high = raw.amin((1, 2), keepdim=True), raw.amax((1, 2), keepdim=True)
        np.testing.assert_allclose(maps, (raw - low) / (high - low), atol=1e-12)

    def test_masking_normalised_images_is_the_mean_as_baseline(self):
        """The authors multiply an image that is normalised already."""
        mean, std = torch.tensor([0.4, 0.6]).double(), torch.tensor([0.2, 0.3]).double()
        normalised = (PICTURES - mean[:, None, None]) / std[:, None, None]
        expected, _ = ScoreCAM(NET)(normalised, TARGETS)
        wrapped = Normalised(NET, mean=mean.tolist(), std=std.tolist()).eval()
        maps, _ = ScoreCAM(wrapped, baseline=mean.tolist())(PICTURES, TARGETS)
        np.testing.assert_allclose(maps, expected, atol=1e-12)

    def test_probabilities_are_used_as_they_are(self):
        net = nn.Sequential(*NET, nn.Softmax(1)).eval()
        maps, _ = ScoreCAM(metfa.Called(net, softmax=False), "2")(PICTURES, TARGETS)
        np.testing.assert_allclose(maps, ScoreCAM(NET)(PICTURES, TARGETS)[0], atol=1e-12)
        with pytest.warns(ModelOutputWarning, match=r"write `metfa.Called\(model, softmax=False\)`"):
            ScoreCAM(net)(PICTURES, 0)
        ScoreCAM(net, variant="grad-cam")(PICTURES, 0)  # takes scores as they are

    def test_one_score_a_row(self):
        net = nn.Sequential(*NET[:4], nn.Linear(42, 1).double(), nn.Sigmoid(), nn.Flatten(0)).eval()
        maps, scores = ScoreCAM(metfa.Called(net, softmax=False))(PICTURES)
        assert maps.shape == (3, 12, 9)
        assert scores.shape == (3,)

    def test_tuples_choose_among_scores_with_more_axes(self):
        net = nn.Sequential(*NET, nn.Softmax(1), nn.Unflatten(1, (2, 2))).eval()
        maps, _ = ScoreCAM(metfa.Called(net, softmax=False))(PICTURES, [(0, 0), (1, 0), (0, 1)])
        np.testing.assert_allclose(maps, ScoreCAM(NET)(PICTURES, TARGETS)[0], atol=1e-12)


class TestFlatChannels:
    def test_are_not_run(self):
        seen = []
        net = copy.deepcopy(NET)
        net.register_forward_pre_hook(lambda _, args: seen.append(len(args[0])))
        ScoreCAM(net)(PICTURES, 0)
        assert sum(seen) == 3 + 2 + 3 * 5 + 2  # two rows are asked about alone
        seen.clear()
        ScoreCAM(net, variant="grad-cam")(PICTURES, 0)
        assert sum(seen) == 3 + 2 + 3 * 5 + 2 + 1  # the hidden image, once

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_a_dead_layer_gives_zeros_and_one_warning(self, variant):
        net = network()
        with torch.no_grad():
            net[0].weight.zero_()
            net[0].bias.fill_(-1)
        with pytest.warns(DegenerateAttributionsWarning, match="3 of 3 maps are constant: .* layer '2'") as caught:
            maps, _ = ScoreCAM(net, variant=variant)(PICTURES, 0)
        assert len(caught) == 1
        assert (maps == 0).all()

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_so_does_a_constant_one(self, variant):
        """0.7 enlarged is not 0.7 everywhere in floating point, and a scaled map would show the rounding."""
        net = network()
        with torch.no_grad():
            net[0].weight.zero_()
            net[0].bias.fill_(0.7)
        with pytest.warns(DegenerateAttributionsWarning):
            maps, _ = ScoreCAM(net, variant=variant)(PICTURES, 0)
        assert (maps == 0).all()

    def test_only_the_flat_rows_are_counted(self):
        with pytest.warns(DegenerateAttributionsWarning, match="1 of 2 maps are constant"):
            maps, _ = ScoreCAM(NET)(torch.stack([PICTURES[0], torch.zeros_like(PICTURES[0])]), 0)
        assert maps[0].max() == 1
        assert (maps[1] == 0).all()


class TestChannelWeights:
    def test_are_probabilities_of_what_each_channel_keeps(self):
        weights = ScoreCAM(NET).channel_weights(PICTURES, TARGETS)
        with torch.no_grad():
            features = NET[:3](PICTURES)
            channel = functional.interpolate(features[1, 4][None, None], (12, 9), mode="bilinear")[0, 0]
            mask = (channel - channel.min()) / (channel.max() - channel.min())
            expected = NET((PICTURES[1] * mask)[None]).softmax(1)[0, 2]
        assert weights.shape == (3, 7)
        np.testing.assert_allclose(weights[1, 4], expected, atol=1e-12)
        assert (weights[:, 1:3] == 0).all()

    @pytest.mark.parametrize("variant", ["grad-cam", "torch-cam"])
    def test_of_a_softmax_add_up(self, variant):
        weights = ScoreCAM(NET, variant=variant).channel_weights(PICTURES, TARGETS)
        np.testing.assert_allclose(weights.sum(1), [1, 1, 1], atol=1e-12)
        np.testing.assert_array_equal(weights[:, 1], weights[:, 2])  # the two flat ones

    def test_of_a_softmax_depend_on_the_scale_of_the_scores(self):
        """A last layer times 1000: one channel takes all in grad-cam's definition."""
        net = network()
        before = ScoreCAM(net, variant="grad-cam").channel_weights(PICTURES, TARGETS)
        with torch.no_grad():
            net[-1].weight *= 1000
            net[-1].bias *= 1000
        after = ScoreCAM(net, variant="grad-cam").channel_weights(PICTURES, TARGETS)
        assert before.max() < 0.6
        assert (after.amax(1) > 0.3).all()
        assert after.max() > 0.99


class TestRows:
    @pytest.mark.parametrize("variant", VARIANTS)
    def test_alone_or_together(self, variant):
        explainer = ScoreCAM(NET, variant=variant, scale=False)
        together, _ = explainer(PICTURES, TARGETS)
        for row, target in enumerate(TARGETS):
            alone, _ = explainer(PICTURES[row : row + 1], target)
            np.testing.assert_allclose(alone[0], together[row], atol=1e-12)
        assert explainer.rows_independent

    @pytest.mark.parametrize("variant", VARIANTS)
    @pytest.mark.parametrize("batch_size", [1, 2, 4, 1000])
    def test_batch_size_changes_nothing(self, variant, batch_size):
        sizes = []
        net = copy.deepcopy(NET)
        net.register_forward_pre_hook(lambda _, args: sizes.append(len(args[0])))
        maps, _ = ScoreCAM(metfa.Called(net, batch_size=batch_size), variant=variant, scale=False)(PICTURES, TARGETS)
        np.testing.assert_allclose(maps, expected_maps(variant), atol=1e-12)
        assert max(sizes) == min(batch_size, 15)  # rows and channels fill a batch together

    def test_too_large_a_batch_is_halved(self):
        net = copy.deepcopy(NET)

        def refuse(_, args):
            if len(args[0]) > 2:
                raise RuntimeError("CUDA out of memory. Tried to allocate ...")

        net.register_forward_pre_hook(refuse)
        maps, _ = ScoreCAM(net, scale=False)(PICTURES, TARGETS)
        np.testing.assert_allclose(maps, expected_maps(), atol=1e-12)
        assert not any(module._forward_hooks for module in net.modules())

    def test_a_model_that_mixes_rows_promises_nothing(self):
        with pytest.warns(RowDependenceWarning, match="normalises each batch"):
            assert not ScoreCAM(nn.Sequential(NET, nn.BatchNorm1d(4, track_running_stats=False))).rows_independent


class LargestTensor(TorchDispatchMode):
    """Most numbers in one tensor that any operation gave."""

    most = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        output = func(*args, **(kwargs or {}))
        if isinstance(output, torch.Tensor):
            self.most = max(self.most, output.numel())
        return output


@pytest.mark.filterwarnings("ignore:the model's scores all lie between 0 and 1")  # small logits, not sigmoids
def test_memory_does_not_grow_with_the_number_of_channels():
    def most(channels):
        net = nn.Sequential(nn.Conv2d(3, channels, 16, stride=16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        with LargestTensor() as largest:
            ScoreCAM(metfa.Called(net.eval(), batch_size=8))(torch.rand(2, 3, 64, 64), 0)
        return largest.most

    assert most(64) == most(384) == 8 * 3 * 64 * 64  # one batch of masked images


class TestLayers:
    def test_by_name_by_module_or_the_last(self):
        expected = expected_maps()
        for layer in (None, "2", NET[2]):
            np.testing.assert_allclose(ScoreCAM(NET, layer, scale=False)(PICTURES, TARGETS)[0], expected, atol=1e-12)
        wrapped = Normalised(NET, mean=[0, 0], std=[1, 1]).eval()
        for layer in (None, "2", "model.2"):
            maps, _ = ScoreCAM(wrapped, layer, scale=False)(PICTURES, TARGETS)
            np.testing.assert_allclose(maps, expected, atol=1e-12)

    def test_of_a_function_the_layer_itself(self):
        maps, _ = ScoreCAM(lambda x: NET(x), NET[2], scale=False)(PICTURES, TARGETS)
        np.testing.assert_allclose(maps, expected_maps(), atol=1e-12)
        with pytest.raises(TypeError, match=r"got function; for a function .* `layer=module\.features`"):
            ScoreCAM(lambda x: NET(x))

    @pytest.mark.parametrize(
        ("layer", "message"),
        [
            ("head", "`model` has no layer 'head'; it has '0', '1', '2'"),
            ("4", r"'4' must give a feature map .*\(3, 4\)"),
        ],
    )
    def test_unfit(self, layer, message):
        with pytest.raises(ValueError, match=message):
            ScoreCAM(NET, layer)(PICTURES, 0)


class TestLeavesAsFound:
    def test_no_graph(self):
        maps, scores = ScoreCAM(NET)(PICTURES.clone().requires_grad_(), 0)
        assert not maps.requires_grad
        assert not scores.requires_grad


class TestPrecision:
    def test_float32_is_float64_to_rounding(self):
        maps, _ = ScoreCAM(network(torch.float32))(PICTURES.float(), TARGETS)
        assert maps.dtype == torch.float32
        np.testing.assert_allclose(maps, ScoreCAM(NET)(PICTURES, TARGETS)[0], atol=1e-5)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    @pytest.mark.parametrize("variant", VARIANTS)
    def test_halves_give_float32_maps(self, dtype, variant):
        maps, _ = ScoreCAM(network(dtype), variant=variant)(PICTURES.to(dtype), TARGETS)
        assert maps.dtype == torch.float32
        np.testing.assert_allclose(maps, ScoreCAM(NET, variant=variant)(PICTURES, TARGETS)[0], atol=0.1)

    def test_autocast_and_layout(self):
        net, pictures, seen = network(torch.float32), PICTURES.float(), []
        net[0].register_forward_pre_hook(lambda _, args: seen.append(args[0].stride(1)))
        net[0].register_forward_hook(lambda _, args, output: seen.append(output.dtype))
        exact, _ = ScoreCAM(net)(pictures, TARGETS)
        assert set(seen) == {12 * 9, torch.float32}
        seen.clear()
        explainer = ScoreCAM(metfa.Called(net, fast="bfloat16", memory_format=torch.channels_last))
        explainer(pictures, TARGETS)  # shows how to fold
        seen.clear()
        maps, _ = explainer(pictures, TARGETS)
        assert set(seen) == {1, torch.bfloat16}
        assert maps.dtype == torch.float32
        assert 0 < (maps - exact).abs().max() < 0.1


@pytest.mark.parametrize("shape", [(2, 2, 1, 7), (1, 1, 8, 1), (1, 4, 3, 40)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_any_size_and_number_of_channels(shape, variant):
    pool, classifier = nn.AdaptiveAvgPool2d(1), nn.Linear(5, 3)
    net = nn.Sequential(nn.Conv2d(shape[1], 5, 1), nn.Sigmoid(), pool, nn.Flatten(), classifier).eval()
    maps, _ = ScoreCAM(net, variant=variant)(torch.rand(shape), 0)
    assert maps.shape == (shape[0], *shape[2:])
    assert maps.isfinite().all()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ScoreCAM(NET, variant="paper"), ValueError, "'grad-cam', 'torch-cam', got 'paper'"),
        (lambda: ScoreCAM(NET, 2), TypeError, "`layer` must be a name, a module or None, got int: 2"),
        (lambda: ScoreCAM(NET, baseline="mean"), TypeError, "`baseline` must be a number or .* got 'mean'"),
        (lambda: ScoreCAM(metfa.Called(NET, batch_size=0)), ValueError, "`batch_size` must be at least 1, got 0"),
        (lambda: ScoreCAM(metfa.Called(NET, softmax=1)), TypeError, "`softmax` must be True or False, got int: 1"),
        (lambda: ScoreCAM(NET)(PICTURES.numpy()), TypeError, r"`inputs` must be a torch\.Tensor, got ndarray"),
        (lambda: ScoreCAM(NET)(PICTURES[0]), ValueError, r"inputs of shape \(2, 12, 9\).*write `inputs\[None\]`"),
        (lambda: ScoreCAM(NET, baseline=(1, 2, 3))(PICTURES), ValueError, "each of the 2 channels, got 3"),
        (lambda: ScoreCAM(NET)(PICTURES, [0, 1]), ValueError, "each of the 3 inputs, got 2 entries"),
        (lambda: ScoreCAM(NET)(PICTURES, torch.ones(3, 4).bool()), TypeError, "`target` must be class indices, or one"),
    ],
)
def test_unfit(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.weights
def test_finds_the_cat():
    """At a layer of 112 channels, which is enough to see a cat's head on grass and takes seconds."""
    scene = Image.fromarray(data.grass()).convert("RGB").resize((256, 256)).crop((0, 0, 224, 224))
    scene.paste(Image.fromarray(data.chelsea()).crop((75, 0, 375, 300)).resize((120, 120)), (96, 92))
    pixels = torch.from_numpy(np.array(scene)).permute(2, 0, 1)[None].float() / 255
    network = metfa.models.fold_batch_norm(metfa.models.load("efficientnet-lite0").module, pixels)
    explainer = ScoreCAM(metfa.Called(network, memory_format=torch.channels_last), "blocks.10")
    maps, scores = explainer(pixels)
    assert 281 <= scores.argmax() <= 285  # a domestic cat
    row, column = np.unravel_index(maps[0].numpy().argmax(), (224, 224))
    assert 92 <= row < 212
    assert 96 <= column < 216
    strongest = maps[0] >= maps[0].flatten().quantile(0.9)
    assert strongest[92:212, 96:216].sum() > 0.7 * strongest.sum()  # the head covers 0.29 of the picture
