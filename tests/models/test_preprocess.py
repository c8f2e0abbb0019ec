"""`CentreCrop` on every kind of image, against resizing the whole and cutting, and torchvision; `WholePicture`."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data

from metfa.models import CentreCrop, WholePicture

RED, WHITE, BLACK = [1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]


def colour(image, size=8):
    """The one colour of a plain image, after preprocessing."""
    pixels = CentreCrop(size)(image)
    assert pixels.shape == (3, size, size)
    assert pixels.dtype == torch.float32
    assert (pixels == pixels[:, :1, :1]).all()
    return pixels[:, 0, 0].tolist()


def saved(image, **options):
    """The image as it comes back from a file."""
    file = io.BytesIO()
    image.save(file, **options)
    return Image.open(file)


def resized_then_cut(image, interpolation):
    """The slow way: short side to 256, rounded down; then the central 224 by 224."""
    width, height = image.size
    whole = (256, int(256 * height / width)) if width < height else (int(256 * width / height), 256)
    resized = image.resize(whole, interpolation)
    left, top = round((resized.width - 224) / 2), round((resized.height - 224) / 2)
    return torch.from_numpy(np.array(resized)[top : top + 224, left : left + 224]).permute(2, 0, 1) / 255


@pytest.mark.parametrize("interpolation", [Image.Resampling.BICUBIC, Image.Resampling.BILINEAR])
@pytest.mark.parametrize(
    ("size", "levels"), [((600, 400), 1), ((451, 300), 1), ((333, 400), 1), ((257, 3000), 1), ((101, 300), 16)]
)
def test_equals_resizing_the_whole_and_cutting_the_centre(size, levels, interpolation):
    image = Image.fromarray(data.coffee()).resize(size)
    difference = (CentreCrop(224, interpolation=interpolation)(image) - resized_then_cut(image, interpolation)).abs()
    assert difference.max() <= (levels + 0.01) / 255
    assert difference.mean() < 0.4 / 255


@pytest.mark.parametrize(("size", "levels"), [((640, 480), 1), ((481, 643), 1), ((256, 256), 0), ((100, 300), 16)])
def test_equals_torchvision(size, levels):
    transforms = pytest.importorskip("torchvision.transforms")
    image = Image.fromarray(data.coffee()).resize(size)
    resize = transforms.Resize(256, transforms.InterpolationMode.BICUBIC)
    reference = transforms.Compose([resize, transforms.CenterCrop(224), transforms.PILToTensor()])
    difference = (CentreCrop(224)(image) - reference(image) / 255).abs()
    assert difference.max() <= (levels + 0.01) / 255
    assert difference.mean() < 0.4 / 255


def test_resized_short_side_survives_rounding():
    ramp = Image.fromarray(np.tile(np.arange(232, dtype=np.uint8), (232, 1))).convert("RGB")
    assert (CentreCrop(224, 224 / 232)(ramp)[0, 0] * 255).tolist() == list(range(4, 228))


@pytest.mark.parametrize("size", [(1, 1), (1, 2), (3, 1), (1, 100_000), (100_000, 2), (8, 8), (7, 9)])
def test_tiny_and_extreme_shapes(size):
    assert colour(Image.new("RGB", size, "red")) == RED


def test_tall_image_shows_its_centre():
    image = Image.new("RGB", (10, 1000), "white")
    image.paste("red", (0, 490, 10, 510))
    assert colour(image) == RED


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.new("1", (9, 9), 1), WHITE),
        (Image.new("L", (9, 9), 51), [0.2, 0.2, 0.2]),
        (Image.new("P", (9, 9), "red"), RED),
        (Image.new("HSV", (9, 9), (0, 255, 255)), RED),
        (Image.new("CMYK", (9, 9), (0, 255, 255, 0)), RED),
        (Image.new("RGBA", (9, 9), (255, 0, 0, 255)), RED),
        (Image.new("RGBA", (9, 9), (255, 0, 0, 0)), WHITE),
        (Image.new("RGBA", (9, 9), (255, 0, 0, 51)), [1.0, 0.8, 0.8]),
        (Image.new("RGBA", (9, 9), (0, 0, 0, 0)).convert("RGBa"), WHITE),
        (Image.new("LA", (9, 9), (0, 0)), WHITE),
        (Image.new("LA", (9, 9), (0, 255)), BLACK),
        (Image.fromarray(np.full((9, 9), 26214, np.uint16)), [0.4, 0.4, 0.4]),
        (Image.fromarray(np.full((9, 9), 26214, ">u2")), [0.4, 0.4, 0.4]),
        (Image.fromarray(np.full((9, 9), 65535, np.int32)), WHITE),
    ],
    ids=lambda value: value.mode if isinstance(value, Image.Image) else "",
)
def test_modes_become_rgb(image, expected):
    assert colour(image) == pytest.approx(expected)


@pytest.mark.parametrize("mode", ["P", "L", "RGB"])
def test_transparent_colour_of_a_png_is_white(mode):
    image = Image.new(mode, (9, 9), 0)
    assert colour(saved(image, format="PNG", transparency=(0, 0, 0) if mode == "RGB" else 0)) == WHITE


def test_16_bit_png():
    image = saved(Image.fromarray(np.full((9, 9), 26214, np.uint16)), format="PNG")
    assert colour(image) == pytest.approx([0.4, 0.4, 0.4])


def test_cmyk_jpeg():
    image = saved(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), format="JPEG", quality=100)
    assert image.mode == "CMYK"
    assert colour(image) == pytest.approx(RED, abs=0.02)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(orientation):
    # Rows and columns of the stored picture as they should be seen, by the table of the EXIF standard.
    stored = data.chelsea()[:300, :300]
    upright = {
        1: stored, 2: stored[:, ::-1], 3: stored[::-1, ::-1], 4: stored[::-1],
        5: stored.transpose(1, 0, 2), 6: stored.transpose(1, 0, 2)[:, ::-1],
        7: stored[::-1, ::-1].transpose(1, 0, 2), 8: stored.transpose(1, 0, 2)[::-1],
    }[orientation]  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = saved(Image.fromarray(stored), format="PNG", exif=exif)
    assert torch.equal(CentreCrop(32)(image), CentreCrop(32)(Image.fromarray(np.ascontiguousarray(upright))))


def test_result_is_contiguous_and_the_image_is_left_as_it_was():
    image = Image.fromarray(data.coffee())
    before = image.tobytes()
    pixels = CentreCrop(32)(image)
    pixels.zero_()
    assert pixels.is_contiguous()
    assert image.tobytes() == before


@pytest.mark.parametrize(
    ("image", "error", "message"),
    [
        (np.zeros((4, 4, 3), np.uint8), TypeError, r"must be a PIL image, got ndarray; .*PIL\.Image\.fromarray"),
        ("cat.png", TypeError, r"must be a PIL image, got str; open a file with PIL\.Image\.open"),
        (Image.new("RGB", (0, 5)), ValueError, r"must have pixels, got a size of \(0, 5\)"),
        (Image.new("F", (4, 4)), ValueError, r"mode F has no known range"),
        (Image.fromarray(np.array([[70000, 3]], np.int32)), ValueError, r"mode I must hold 16-bit .*, got 3\.\.70000"),
        (Image.fromarray(np.array([[-1, 3]], np.int32)), ValueError, r"mode I must hold 16-bit .*, got -1\.\.3"),
    ],
)
def test_bad_images(image, error, message):
    with pytest.raises(error, match=message):
        CentreCrop(8)(image)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"size": 224.0}, TypeError, r"`size` must be an integer, got float"),
        ({"size": 0}, ValueError, r"`size` must be at least 1, got 0"),
        ({"size": 8, "fraction": 1.5}, ValueError, r"`fraction` must be finite and above 0 and at most 1, got 1\.5"),
        ({"size": 8, "fraction": 0}, ValueError, r"`fraction` must be finite and above 0 and at most 1, got 0"),
    ],
)
def test_bad_settings(settings, error, message):
    with pytest.raises(error, match=message):
        CentreCrop(**settings)


def test_the_whole_picture_is_what_pillow_reads():
    image = Image.fromarray(data.coffee())
    pixels = WholePicture()(image)
    assert pixels.dtype == torch.float32
    assert np.array_equal((pixels * 255).round().permute(1, 2, 0).numpy(), data.coffee())
    resized = image.resize((90, 60), Image.Resampling.BILINEAR)
    assert torch.equal(WholePicture((60, 90))(image), WholePicture()(resized))
    assert WholePicture((60, 90))(Image.new("LA", (5, 5), (0, 0))).min() == 1  # transparency lies on white


@pytest.mark.parametrize(
    ("size", "error", "message"),
    [
        (224, TypeError, r"a pair \(height, width\) or None, got 224"),
        ((1, 2, 3), TypeError, r"got \(1, 2, 3\)"),
        ((0, 4), ValueError, "at least 1, got 0"),
        ((4.0, 4), TypeError, "float: 4.0"),
    ],
)
def test_bad_sizes_of_the_whole_picture(size, error, message):
    with pytest.raises(error, match=message):
        WholePicture(size)
