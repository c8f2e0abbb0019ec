"""LIME against the lime package and scikit-learn, its samples against the exact level."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from lime.lime_image import ImageExplanation, LimeImageExplainer
from PIL import Image
from scipy.stats import binom
from skimage import data
from sklearn.linear_model import Ridge
from sklearn.metrics import pairwise_distances

import metfa
from metfa import DegenerateAttributionsWarning, ModelOutputWarning
from metfa.explainers import LIME
from metfa.explainers.linear_fits import weighted_ridge

IMAGES = np.random.default_rng(0).random((3, 3, 20, 16))
QUARTERS = np.kron(np.arange(20).reshape(5, 4), np.ones((4, 4), dtype=int))
WEIGHTS = np.random.default_rng(1).normal(size=(3 * 20 * 16, 3))


def logits(images):
    return images.reshape(len(images), -1) @ WEIGHTS / 8


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


class Net(torch.nn.Module):
    def __init__(self, dtype=torch.float64):
        super().__init__()
        self.linear = torch.nn.Linear(*WEIGHTS.shape, bias=False, dtype=dtype)
        self.linear.weight.data.copy_(torch.from_numpy(WEIGHTS.T / 8))
        self.eval()

    def forward(self, images):
        return self.linear(images.flatten(1))


def generators(seed=5):
    return [np.random.default_rng([seed, row]) for row in range(3)]


def by_loops(image, labels, target, rng, n, hide, kernel_width=0.25, penalty=1.0):
    """Straight from the definition: copies one by one, scikit-learn for distance and regression."""
    shown = rng.integers(0, 2, (n, labels.max() + 1), dtype=bool).astype(int)
    shown[0] = 1
    hidden = np.empty_like(image)
    for segment in range(labels.max() + 1):
        for channel in range(len(image)):
            pixels = labels == segment
            colour = image[channel][pixels].mean() if hide == "mean" else np.broadcast_to(hide, 3)[channel]
            hidden[channel][pixels] = colour
    scores = []
    for row in shown:
        copy = image.copy()
        for segment in np.flatnonzero(row == 0):
            copy[:, labels == segment] = hidden[:, labels == segment]
        scores.append(softmax(logits(copy[None]))[0, target])
    distances = pairwise_distances(shown, shown[:1], metric="cosine").ravel()
    closeness = np.sqrt(np.exp(-(distances**2) / kernel_width**2))
    return Ridge(alpha=penalty).fit(shown, scores, sample_weight=closeness)


@pytest.mark.parametrize("hide", ["mean", 0, 0.5, (0.1, 0.2, 0.9)])
def test_equals_the_definition(hide):
    settings = {"n_perturbations": 60, "segmentation": QUARTERS, "hide": hide}
    surrogates, scores = LIME(logits, **settings).fit(IMAGES, [0, 2, 1], rngs=generators())
    for row, (target, rng) in enumerate(zip([0, 2, 1], generators(), strict=True)):
        expected = by_loops(IMAGES[row], QUARTERS, target, rng, 60, hide)
        np.testing.assert_allclose(surrogates[row].coefficients, expected.coef_, atol=1e-10)
        assert surrogates[row].intercept == pytest.approx(expected.intercept_, abs=1e-10)
    np.testing.assert_allclose(scores, logits(IMAGES))


@pytest.mark.parametrize(("n", "n_features", "penalty"), [(50, 8, 1.0), (5, 30, 0.01), (200, 1, 3.0)])
def test_ridge_is_that_of_scikit_learn(n, n_features, penalty):
    rng = np.random.default_rng(n)
    features, scores, weights = rng.integers(0, 2, (n, n_features)), rng.normal(size=n), rng.random(n)
    expected = Ridge(alpha=penalty).fit(features, scores, sample_weight=weights)
    coefficients, intercept, r2, kept = weighted_ridge(features, scores, weights, penalty)
    np.testing.assert_allclose(coefficients, expected.coef_, atol=1e-9)
    assert intercept == pytest.approx(expected.intercept_, abs=1e-9)
    assert r2 == pytest.approx(expected.score(features, scores, sample_weight=weights), abs=1e-9)
    centred = np.sqrt(weights)[:, None] * (features - np.average(features, axis=0, weights=weights))
    hat = centred @ np.linalg.solve(centred.T @ centred + penalty * np.eye(n_features), centred.T)
    assert kept == pytest.approx(np.trace(hat) / n_features, abs=1e-9)


def test_segments_that_count_for_nothing_have_no_score():
    """The ridge alone would give them 1e-4, always above 0; that is found by a test of many runs, and shown."""

    def model(images):
        seen = images[:, 0, :4, :4].mean((1, 2))
        return np.stack([seen, 1 - seen], axis=1)

    settings = {"segmentation": QUARTERS, "hide": 0, "rng": 0}
    (fit,), _ = LIME(metfa.Called(model, softmax=False), **settings).fit(np.ones((1, 3, 20, 16)), 0)
    assert fit.coefficients[0] == pytest.approx(1, abs=0.01)
    assert not fit.coefficients[1:].any()
    maps, _ = LIME(metfa.Called(model, softmax=False), **settings)(np.ones((1, 3, 20, 16)), 0)
    np.testing.assert_array_equal(maps[0], QUARTERS == 0)  # and not on four more segments
    sample = metfa.explain(
        LIME(metfa.Called(model, softmax=False), segmentation=QUARTERS, hide=0, n_segments_shown=None, scale=False),
        np.ones((1, 3, 20, 16)), 0, noise=metfa.noise.Brightness(0.9, 1.1), n_samples=20, rng=0,
    )  # fmt: skip
    np.testing.assert_array_equal(sample.significance_map(0.0)[0], QUARTERS == 0)


def test_a_penalty_that_decides_is_told():
    with pytest.warns(DegenerateAttributionsWarning, match=r"penalty of 100 takes \d\d% of the coefficients of 3 of 3"):
        LIME(logits, segmentation=QUARTERS, n_perturbations=200, regularization=100.0, rng=0).fit(IMAGES, 0)


class TestAgainstTheLimePackage:
    """The same photograph, the same segments, the same perturbations."""

    image = np.asarray(Image.fromarray(data.chelsea()).resize((60, 40))) / 255.0

    @staticmethod
    def probabilities(images):
        """Scores that depend on all of an image (n, height, width, channels)."""
        blocks = (
            (np.asarray(images) ** 2)
            .reshape(len(images), 4, 10, 6, 10, 3)
            .mean(axis=(2, 4, 5))
            .reshape(len(images), -1)
        )
        return softmax(np.stack([blocks @ np.linspace(-2, 3, 24), np.zeros(len(images))], axis=1))

    def model(self, images):
        return self.probabilities(np.moveaxis(images, 1, -1))

    @pytest.mark.parametrize("hide", ["mean", 0])
    def test_coefficients_and_mask(self, hide):
        labels = np.kron(np.arange(24).reshape(4, 6), np.ones((10, 10), dtype=int))
        ours = LIME(metfa.Called(self.model, softmax=False), n_perturbations=200, segmentation=labels, hide=hide)
        rows = np.moveaxis(self.image, -1, 0)[None]
        maps, _ = ours(rows, 0, rngs=[np.random.default_rng(3)])
        (surrogate,), _ = ours.fit(rows, 0, rngs=[np.random.default_rng(3)])

        rng = np.random.default_rng(3)
        shown = rng.integers(0, 2, (200, surrogate.labels.max() + 1), dtype=bool).astype(int)

        class SameDraws(np.random.RandomState):
            def randint(self, *_, **__):
                return shown.copy().ravel()

        theirs = LimeImageExplainer(random_state=SameDraws(0)).explain_instance(
            self.image,
            self.probabilities,
            labels=(0,),
            top_labels=None,
            hide_color=None if hide == "mean" else hide,
            num_samples=200,
            segmentation_fn=lambda _: surrogate.labels,
        )
        assert isinstance(theirs, ImageExplanation)
        coefficients = np.zeros(len(surrogate.coefficients))
        for segment, weight in theirs.local_exp[0]:
            coefficients[segment] = weight
        np.testing.assert_allclose(surrogate.coefficients, coefficients, atol=1e-6)
        assert surrogate.intercept == pytest.approx(theirs.intercept[0], abs=1e-6)
        assert surrogate.r2 == pytest.approx(
            theirs.score[0] if isinstance(theirs.score, dict) else theirs.score, abs=1e-6
        )
        _, mask = theirs.get_image_and_mask(0, positive_only=True, num_features=5, hide_rest=False)
        np.testing.assert_array_equal(maps[0], mask)

    def test_differences_are_those_of_two_of_their_runs(self):
        labels = np.kron(np.arange(24).reshape(4, 6), np.ones((10, 10), dtype=int))

        def theirs(seed):
            explained = LimeImageExplainer(random_state=seed).explain_instance(
                self.image, self.probabilities, labels=(0,), top_labels=None, num_samples=300,
                segmentation_fn=lambda _: labels,
            )  # fmt: skip
            return np.array([weight for _, weight in sorted(explained.local_exp[0])])

        rows = np.moveaxis(self.image, -1, 0)[None]
        explainer = LIME(metfa.Called(self.model, softmax=False), n_perturbations=300, segmentation=labels)
        ours = [explainer.fit(rows, 0, rngs=[np.random.default_rng(k)])[0][0].coefficients for k in range(6)]
        them = [theirs(seed) for seed in range(6)]
        between = np.mean([np.abs(a - b).mean() for a in ours for b in them])
        within = np.mean([np.abs(them[i] - them[j]).mean() for i in range(6) for j in range(i)])
        assert within > 0
        assert 0.8 * within < between < 1.2 * within


class TestMaps:
    def test_binary_map_of_the_strongest(self):
        coefficients = LIME(logits, segmentation=QUARTERS, rng=0).fit(IMAGES, 0)[0][1].coefficients
        maps, _ = LIME(logits, segmentation=QUARTERS, rng=0)(IMAGES, 0)
        best = np.argsort(coefficients)[::-1][:5]
        assert coefficients[best].min() > 0
        np.testing.assert_array_equal(maps[1], np.isin(QUARTERS, best).astype(float))

    def test_only_positive_ones_are_shown(self):
        maps, _ = LIME(logits, segmentation=QUARTERS, n_segments_shown=20, rng=0)(IMAGES, 0)
        (surrogate, *_), _ = LIME(logits, segmentation=QUARTERS, rng=0).fit(IMAGES, 0)
        assert (surrogate.coefficients < 0).any()
        np.testing.assert_array_equal(maps[0], surrogate.weights > 0)

    def test_continuous(self):
        settings = {"segmentation": QUARTERS, "n_segments_shown": None, "rng": 0}
        raw, _ = LIME(logits, **settings, scale=False)(IMAGES, 0)
        maps, _ = LIME(logits, **settings)(IMAGES, 0)
        assert raw.min() < 0
        positive = np.clip(raw, 0, None)
        low, high = positive.min((1, 2), keepdims=True), positive.max((1, 2), keepdims=True)
        np.testing.assert_allclose(maps, (positive - low) / (high - low))

    def test_polarity(self):
        def model(images):
            seen = images[:, :, 8:12, 4:8].mean((1, 2, 3))
            return np.stack([seen, 1 - seen], axis=1)

        explainer = LIME(metfa.Called(model, softmax=False), segmentation=QUARTERS, hide=0, n_segments_shown=1, rng=0)
        maps, _ = explainer(np.ones((1, 3, 20, 16)), 0)
        assert maps[0].sum() == maps[0, 8:12, 4:8].sum() == 16


class TestRows:
    @pytest.mark.parametrize("segmentation", ["slic", QUARTERS])
    def test_alone_or_together(self, segmentation):
        explainer = LIME(logits, n_perturbations=400, segmentation=segmentation, n_segments_shown=None, scale=False)
        together, _ = explainer(IMAGES, [0, 1, 2], rngs=generators())
        for row, rng in enumerate(generators()):
            alone, _ = explainer(IMAGES[row : row + 1], row, rngs=[rng])
            np.testing.assert_allclose(alone[0], together[row], atol=1e-12)

    @pytest.mark.parametrize("batch_size", [1, 7, 1000])
    def test_batch_size_changes_nothing(self, batch_size):
        settings = {"n_perturbations": 200, "segmentation": "slic", "n_segments_shown": None, "scale": False}
        expected, _ = LIME(logits, **settings)(IMAGES, 0, rngs=generators())
        maps, _ = LIME(metfa.Called(logits, batch_size=batch_size), **settings)(IMAGES, 0, rngs=generators())
        np.testing.assert_allclose(maps, expected, atol=1e-12)

    def test_the_same_seed_gives_the_same_every_time(self):
        explainer = LIME(logits, segmentation="slic", n_segments_shown=None, rng=42)
        first, second, fresh = explainer(IMAGES, 0)[0], explainer(IMAGES, 0)[0], LIME(
            logits, segmentation="slic", n_segments_shown=None, rng=42
        )(IMAGES, 0)[0]  # fmt: skip
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(first, fresh)


class TestSegmentation:
    def test_a_function_sees_the_image_with_channels_last_and_cannot_change_it(self):
        def halves(image):
            assert image.shape == (20, 16, 3)
            image[:] = 0
            return np.where(np.arange(16) < 8, 7, -3) * np.ones((20, 1), dtype=int)

        inputs = IMAGES.copy()
        (surrogate, *_), _ = LIME(logits, segmentation=halves, rng=0).fit(inputs, 0)
        np.testing.assert_array_equal(np.unique(surrogate.labels), [0, 1])
        np.testing.assert_array_equal(inputs, IMAGES)

    @pytest.mark.parametrize("segmentation", [np.zeros((20, 16), dtype=int), "quickshift"])
    def test_one_segment_says_nothing_and_is_refused(self, segmentation):
        def asked(images):
            raise AssertionError("the model was asked")

        image = np.full((1, 3, 20, 16), 0.5)
        with pytest.raises(ValueError, match=r"at least two segments, .* write `segmentation='slic'`"):
            LIME(asked, segmentation=segmentation, rng=0)(image, 0)
        LIME(logits, segmentation="slic", rng=0)(IMAGES[:1], 0)  # the advice

    @pytest.mark.parametrize(
        ("segmentation", "error", "message"),
        [
            ("felzenszwalb", ValueError, "one of 'auto', 'quickshift', 'slic', .*labels .*got 'felzenszwalb'"),
            (QUARTERS.astype(float), TypeError, "integer labels .* got float64"),
            (QUARTERS[None, None], ValueError, r"labels such as \(height, width\), .*got shape \(1, 1, 20, 16\)"),
        ],
    )
    def test_unfit_is_refused_at_once(self, segmentation, error, message):
        with pytest.raises(error, match=message):
            LIME(logits, segmentation=segmentation)

    def test_labels_of_another_size(self):
        with pytest.raises(ValueError, match=r"labels of shape \(19, 16\), but the inputs have \(20, 16\)"):
            LIME(logits, segmentation=QUARTERS[1:])(IMAGES, 0)

    def test_normalised_images_are_refused_with_the_remedy(self):
        with pytest.raises(ValueError, match=r"row 1 goes from -1.* to .*metfa\.models\.Normalised"):
            LIME(logits)(IMAGES - [[[[0]]], [[[2]]], [[[0]]]], 0)


class TestLibraries:
    def test_torch_equals_numpy(self):
        expected, _ = LIME(logits, n_segments_shown=None, segmentation="slic")(IMAGES, None, rngs=generators())
        maps, scores = LIME(Net(), n_segments_shown=None, segmentation="slic")(
            torch.from_numpy(IMAGES), None, rngs=generators()
        )
        assert isinstance(maps, torch.Tensor)
        assert not scores.requires_grad
        np.testing.assert_allclose(maps, expected, atol=1e-10)

    @pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-3), (torch.bfloat16, 0.2)])
    def test_other_precisions(self, dtype, tolerance):
        settings = {"n_segments_shown": None, "segmentation": QUARTERS}
        expected, _ = LIME(Net(), **settings)(torch.from_numpy(IMAGES), 0, rngs=generators())
        maps, _ = LIME(Net(dtype), **settings)(torch.from_numpy(IMAGES).to(dtype), 0, rngs=generators())
        assert maps.dtype == torch.float32
        np.testing.assert_allclose(maps, expected, atol=tolerance)

    @pytest.mark.slow
    def test_without_torch(self):
        code = (
            "import sys\n"
            "class NoTorch:\n"
            "    def find_spec(self, name, *_):\n"
            "        if name.partition('.')[0] == 'torch': raise ModuleNotFoundError(name)\n"
            "sys.meta_path.insert(0, NoTorch())\n"
            "import numpy as np, metfa\n"
            "from metfa.explainers import LIME\n"
            "model = lambda x: 3 * np.stack([x.mean((1, 2, 3)), x[:, 0, 0, 0]], axis=1)\n"
            "images = np.random.default_rng(0).random((2, 3, 8, 8), dtype=np.float32)\n"
            "noise = metfa.noise.Uniform(0.1, bounds=(0, 1))\n"
            "labels = np.kron([[0, 1], [2, 3]], np.ones((4, 4), int))\n"
            "explainer = LIME(model, segmentation=labels, hide=0)\n"
            "s = metfa.explain(explainer, images, noise=noise, n_samples=6, rng=0)\n"
            "assert s.values.shape == (6, 2, 8, 8) and s.values.dtype == np.float32, s\n"
        )
        subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_scores_that_do_not_vary_are_told():
    with pytest.warns(
        DegenerateAttributionsWarning, match="coefficients are all 0 for 1 of 1 row of one call.* each of 20 copies"
    ):
        maps, _ = LIME(lambda x: np.zeros((len(x), 2)), n_perturbations=20, segmentation=QUARTERS, rng=0)(IMAGES[:1], 0)
    assert (maps == 0).all()


def test_segments_that_look_as_before_are_told():
    """A segment of one pixel is its own mean."""
    labels = np.arange(20 * 16).reshape(20, 16)
    with pytest.warns(DegenerateAttributionsWarning, match=r"with `hide`='mean' a hidden segment looks as before"):
        maps, _ = LIME(logits, n_perturbations=20, segmentation=labels, rng=0)(IMAGES[:1], 0)
    assert (maps == 0).all()


def test_probabilities():
    expected, _ = LIME(logits, segmentation=QUARTERS)(IMAGES, 0, rngs=generators())
    explainer = LIME(metfa.Called(lambda x: softmax(logits(x)), softmax=False), segmentation=QUARTERS)
    np.testing.assert_array_equal(explainer(IMAGES, 0, rngs=generators())[0], expected)
    with pytest.warns(ModelOutputWarning):
        LIME(lambda x: softmax(logits(x)), segmentation=QUARTERS)(IMAGES, 0)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_perturbations": 1}, ValueError, "`n_perturbations` must be at least 2, got 1"),
        ({"n_segments_shown": 0}, ValueError, "`n_segments_shown` must be at least 1, got 0"),
        ({"hide": "black"}, ValueError, "`hide` must be 'mean', a number or one number a channel, got 'black'"),
        ({"hide": None}, TypeError, "`hide` must be a number or a sequence with one for each channel, got None"),
        ({"kernel_width": 0}, ValueError, "`kernel_width` must be finite and above 0, got 0"),
        ({"regularization": "1"}, TypeError, "`regularization` must be a number, got str: '1'"),
    ],
)
def test_unfit_settings(settings, error, message):
    with pytest.raises(error, match=message):
        LIME(logits, **settings)


def test_hide_of_other_channels():
    with pytest.raises(ValueError, match="`hide` must be one number or one for each of the 3 channels, got 2"):
        LIME(logits, hide=(0.1, 0.2))(IMAGES, 0)


@pytest.mark.filterwarnings("ignore:the model's scores all lie between 0 and 1")  # small logits, not sigmoids
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:LIME's linear model:metfa.DegenerateAttributionsWarning")
def test_intervals_cover_the_median_at_their_exact_level():
    """300 intervals at N = 10 of samples that lie in one batch; the median of LIME's law from 2,000 other runs.

    The number of intervals that cover is Binomial(300, level) for each of 4 segments; an alarm with a right
    implementation has a probability below 4e-6.
    """
    labels = np.array([[0, 1], [2, 3]])

    def model(images):
        flat = images.reshape(len(images), -1)
        return np.stack([np.sin(7 * flat @ WEIGHTS[:4, 0]), flat @ WEIGHTS[:4, 1]], axis=1)

    image = np.random.default_rng(2).random((1, 1, 2, 2))
    explainer = LIME(model, n_perturbations=40, segmentation=labels, n_segments_shown=None, hide=0, scale=False)
    runs = metfa.explain(explainer, image, 0, noise=None, n_samples=2000, rng=1, batch_size=1000)
    median = np.median(runs.values[:, 0], axis=0)
    assert len(np.unique(runs.values[:, 0, 0, 0])) > 1700  # continuous enough for an exact level
    trials = metfa.explain(explainer, image, 0, noise=None, n_samples=3000, rng=10**6, batch_size=10)
    values = trials.values[:, 0].reshape(300, 10, 2, 2).swapaxes(0, 1)  # each ten of one batch
    interval = metfa.stats.median_interval(values, 0.95)
    covered = ((interval.low <= median) & (median <= interval.high)).sum(0)
    low, high = binom.ppf([5e-7, 1 - 5e-7], 300, interval.confidence_level)
    assert (low <= covered).all()
    assert (covered <= high).all()


@pytest.mark.weights
def test_finds_the_cat(cat_on_grass, cat_network):
    pixels, where = cat_on_grass
    explainer = LIME(cat_network, n_perturbations=150, segmentation="slic", hide=0.5)
    noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
    sample = metfa.explain(explainer, pixels, noise=noise, n_samples=5, rng=0)
    important = sample.significance_map(0.5)[0] == 1
    assert important.mean() > 0.002
    assert important[where].sum() > 0.8 * important.sum()
