"""Segments against scikit-image and the lime package, each image by itself, and what is refused."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from lime.lime_image import LimeImageExplainer
from skimage import data, segmentation
from skimage.color import gray2rgb

from metfa.explainers._segments import check_segmentation, segments_of

PHOTOGRAPH = np.moveaxis(data.chelsea()[50:194:2, 80:320:2] / 255, -1, 0)  # (3, 72, 120)
HALVES = np.repeat([[0, 1]], [4, 6], axis=1).repeat(7, axis=0)


def three_blocks(channels, height=48, width=80):
    """An image (channels, height, width) of three colours with a little noise, and the blocks."""
    rng = np.random.default_rng(channels)
    blocks = np.zeros((height, width), dtype=int)
    blocks[:, width // 2 :] = 1
    blocks[height // 2 :, width // 2 :] = 2
    image = np.linspace(0.1, 0.9, 3 * channels).reshape(channels, 3)[:, blocks]
    return np.clip(image + rng.normal(0, 0.01, image.shape), 0, 1), blocks


def purity(labels, blocks):
    """Share of pixels in their segment's most frequent block."""
    return sum(np.bincount(blocks[labels == label]).max() for label in np.unique(labels)) / blocks.size


class Draws:
    """Stands for a generator whose next number is known."""

    def __init__(self, number):
        self.number = number

    def integers(self, *_):
        return self.number


def segments(image, name, seed=0):
    return segments_of(image[None], name, [np.random.default_rng(seed)])[0]


def test_quickshift_has_the_settings_of_the_lime_package():
    """lime's seed has the name of an argument that scikit-image has no longer; scikit-image's own default is 42."""
    image = np.moveaxis(PHOTOGRAPH, 0, -1)
    explanation = LimeImageExplainer().explain_instance(image, lambda x: x[:, :2, 0, 0], num_samples=2)
    (labels,) = segments_of(PHOTOGRAPH[None], "quickshift", [Draws(42)])
    assert 2 < labels.max() < 40
    np.testing.assert_array_equal(labels, explanation.segments)


def test_quickshift_of_a_grey_image_is_that_of_the_lime_package():
    grey = PHOTOGRAPH[:1]
    (labels,) = segments_of(grey[None], "quickshift", [Draws(42)])
    expected = segmentation.quickshift(gray2rgb(grey[0]), kernel_size=4, max_dist=200, ratio=0.2, rng=42)
    np.testing.assert_array_equal(labels, expected)


def test_slic_has_the_settings_of_scikit_image_and_a_blur():
    expected = segmentation.slic(np.moveaxis(PHOTOGRAPH, 0, -1), start_label=0, sigma=1)
    np.testing.assert_array_equal(segments(PHOTOGRAPH, "slic"), expected)


@pytest.mark.parametrize("name", ["quickshift", "slic"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7])
def test_any_number_of_channels(channels, name):
    image, blocks = three_blocks(channels)
    labels = segments(image, name)
    assert labels.shape == blocks.shape
    np.testing.assert_array_equal(np.unique(labels), np.arange(labels.max() + 1))
    assert labels.max() >= 2
    assert purity(labels, blocks) > 0.97


@pytest.mark.parametrize("name", ["quickshift", "slic"])
@pytest.mark.parametrize("shape", [(3, 1, 1), (1, 1, 1), (3, 1, 9), (2, 9, 1), (4, 2, 2)])
def test_tiny_images(shape, name):
    labels = segments(np.random.default_rng(0).random(shape), name)
    assert labels.shape == shape[1:]
    np.testing.assert_array_equal(np.unique(labels), np.arange(labels.max() + 1))


@pytest.mark.parametrize("name", ["quickshift", "slic"])
def test_rows_alone_or_together(name):
    images = np.stack([PHOTOGRAPH, PHOTOGRAPH[:, ::-1], PHOTOGRAPH * 0.3, np.full_like(PHOTOGRAPH, 0.5)])
    together = segments_of(images, name, [np.random.default_rng(row) for row in range(4)])
    for row, labels in enumerate(together):
        np.testing.assert_array_equal(segments(images[row], name, seed=row), labels)


def test_the_generator_decides_ties():
    flat = np.full((3, 30, 30), 0.5)
    np.testing.assert_array_equal(segments(flat, "quickshift", 1), segments(flat, "quickshift", 1))
    generators = [np.random.default_rng(1), np.random.default_rng(1)]
    segments_of(flat[None], "quickshift", generators[:1])
    assert generators[0].random() != generators[1].random()


def test_global_generators_are_left_alone():
    before = np.random.get_state()[1].copy()
    segments(PHOTOGRAPH, "quickshift")
    segments(PHOTOGRAPH, "slic")
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_precision_of_the_input_changes_nothing_but_its_values(dtype):
    image = PHOTOGRAPH.astype(dtype)
    np.testing.assert_array_equal(segments(image, "quickshift"), segments(image.astype(np.float64), "quickshift"))


class TestOwn:
    @pytest.mark.parametrize("labels", [HALVES * 5 - 2, HALVES.astype(np.uint8), HALVES.tolist(), torch.tensor(HALVES)])
    def test_labels_serve_every_image_and_become_consecutive(self, labels):
        check_segmentation(labels)
        found = segments_of(np.zeros((3, 2, 7, 10)), labels, [None] * 3)
        assert len(found) == 3
        for each in found:
            np.testing.assert_array_equal(each, HALVES)

    def test_function_gets_each_image_with_channels_last(self):
        images = np.random.default_rng(0).normal(size=(2, 5, 7, 10)).astype(np.float32)  # no pixels in [0, 1]
        before, seen = images.copy(), []

        def bright(image):
            seen.append(image.copy())
            image[:] = 0  # its own copy
            return HALVES + len(seen)

        found = segments_of(images, bright, [None] * 2)
        np.testing.assert_array_equal(seen, np.moveaxis(before, 1, -1))
        assert seen[0].dtype == np.float64
        np.testing.assert_array_equal(images, before)
        np.testing.assert_array_equal(found, [HALVES, HALVES])

    @pytest.mark.parametrize(
        ("labels", "error", "message"),
        [
            ("felzenszwalb", ValueError, "one of 'auto', 'quickshift', 'slic', .*labels.*got 'felzenszwalb'"),
            (HALVES.astype(float), TypeError, r"integer labels \(height, width\), got float64"),
            (HALVES == 1, TypeError, "got bool"),
            (HALVES[None, None], ValueError, r"labels such as \(height, width\), .*got shape \(1, 1, 7, 10\)"),
            (HALVES[:0], ValueError, r"got shape \(0, 10\)"),
            (None, TypeError, "`segmentation` must be an array of real numbers, got NoneType"),
        ],
    )
    def test_unfit(self, labels, error, message):
        with pytest.raises(error, match=message):
            check_segmentation(labels)

    @pytest.mark.parametrize("own", [HALVES, lambda image: HALVES])
    def test_of_another_shape(self, own):
        with pytest.raises(ValueError, match=r"labels of shape \(7, 10\), but the inputs have \(10, 7\)"):
            segments_of(np.zeros((1, 3, 10, 7)), own, [None])

    def test_function_that_gives_no_labels(self):
        with pytest.raises(TypeError, match=r"\(or return\) integer labels.*got float64"):
            segments_of(np.zeros((1, 3, 7, 10)), lambda image: image[..., 0], [None])


class TestPixels:
    @pytest.mark.parametrize("name", ["quickshift", "slic"])
    def test_normalised_images_are_refused(self, name):
        """lime cuts a normalised image into other segments than its pixels: here that cannot happen unseen."""
        normalised = (PHOTOGRAPH - 0.45) / 0.22
        images = np.stack([PHOTOGRAPH, normalised])
        message = rf"{name}.*row 1 goes from -\d\.\d+ to \d\.\d+: explain `metfa\.models\.Normalised"
        with pytest.raises(ValueError, match=message):
            segments_of(images, name, [np.random.default_rng(0)] * 2)

    def test_noise_that_leaves_the_range_is_told_how_not_to(self):
        with pytest.raises(ValueError, match=r"row 0 goes from -0\.1 to 0\.5: .*`bounds=\(0, 1\)`"):
            segments(np.array([-0.1, 0.5]).reshape(1, 1, 2), "quickshift")

    def test_nan_is_refused(self):
        with pytest.raises(ValueError, match="row 0 goes from nan to nan"):
            segments(np.full((3, 4, 4), np.nan), "slic")

    def test_rounding_is_not(self):
        image = PHOTOGRAPH * (1 + 2e-4) - 1e-4
        image[:, 0, 0], image[:, 0, 1] = -1e-4, 1 + 1e-4
        np.testing.assert_array_equal(segments(image, "slic"), segments(np.clip(image, 0, 1), "slic"))


@pytest.mark.slow
def test_without_scikit_image_the_message_says_what_to_install():
    code = (
        "import sys\n"
        "class NoSkimage:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.partition('.')[0] == 'skimage': raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, NoSkimage())\n"
        "import numpy as np\n"
        "from metfa.explainers.lime import LIME\n"
        "model = lambda x: x.mean((2, 3))\n"
        "images = np.random.default_rng(0).random((1, 3, 4, 4))\n"
        "LIME(model, segmentation=np.arange(16).reshape(4, 4), hide=0, rng=0)(images, 0)\n"
        "try: LIME(model)(images, 0)\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "`segmentation` 'quickshift' needs skimage: pip install 'metfa[lime]'"
