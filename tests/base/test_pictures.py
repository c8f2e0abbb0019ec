"""Pictures from files that nobody vouches for."""

import contextlib
import os
import random
import re
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from metfa import DarkPictureWarning
from metfa._base.pictures import FORMATS, open_image
from metfa.models import CentreCrop

PIXELS = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_read_whole(kind, tmp_path):
    path = tmp_path / "picture.bin"  # the content tells, not the name
    Image.fromarray(PIXELS).save(path, format=kind)
    image = open_image(path)
    path.unlink()
    assert image.size == (50, 40)
    pixels = CentreCrop(16)(image)
    assert pixels.shape == (3, 16, 16)
    if kind in ("PNG", "BMP", "TIFF", "PPM"):
        np.testing.assert_array_equal(np.asarray(image), PIXELS)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_the_orientation_that_a_camera_wrote_is_kept(kind, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    ramp = np.repeat(np.linspace(0, 255, 50).astype(np.uint8)[None, :, None], 40, axis=0).repeat(3, axis=2)
    Image.fromarray(ramp).save(tmp_path / "p", format=kind, exif=exif)
    turned = CentreCrop(16, 1.0)(Image.fromarray(np.rot90(ramp, 3)))
    assert turned[0, 0, 0] < 0.2 < 0.8 < turned[0, 15, 0]
    assert abs(CentreCrop(16, 1.0)(open_image(tmp_path / "p")) - turned).max() < 0.05


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_truncated_files_are_named(kind, part, tmp_path):
    path = tmp_path / "picture.png"
    Image.fromarray(PIXELS).save(path, format=kind)
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    with pytest.raises(ValueError, match=r"picture\.png cannot be read as an image \(PNG, .*\): \w"):
        open_image(path)


@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_files_are_read_or_refused(kind, tmp_path):
    path = tmp_path / "p"
    Image.fromarray(PIXELS).save(path, format=kind)
    content = path.read_bytes()
    generator = random.Random(0)
    for _ in range(100):
        damaged = bytearray(content)
        for _ in range(generator.randint(1, 8)):
            damaged[generator.randrange(min(200, len(damaged)))] = generator.randrange(256)
        path.write_bytes(damaged)
        with contextlib.suppress(ValueError):  # anything else fails the test
            open_image(path)


def png_with_header(width, height, colour=2):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(("width", "height"), [(50_000, 50_000), (2**31 - 1, 2**31 - 1), (10_000, 10_000)])
def test_decompression_bombs_are_refused_by_their_header(width, height, tmp_path):
    (tmp_path / "bomb.png").write_bytes(png_with_header(width, height))
    with pytest.raises(ValueError, match=rf"bomb\.png is too large: Image size \({width * height} pixels\) exceeds"):
        open_image(tmp_path / "bomb.png")


@pytest.mark.parametrize(
    "text",
    ["", "hello", "<svg xmlns='http://www.w3.org/2000/svg'/>", "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"],
)
@pytest.mark.parametrize("suffix", ["png", "svg", "eps"])
def test_texts_are_no_pictures(suffix, text, tmp_path):
    path = tmp_path / f"text.{suffix}"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"text.{suffix} cannot be read as an image .*: unknown format"):
        open_image(path)


def test_what_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"no such image: {re.escape(str(tmp_path / 'nowhere.png'))}"):
        open_image(tmp_path / "nowhere.png")
    with pytest.raises(OSError, match=f"{re.escape(str(tmp_path))} is not a file; give the path of an image file"):
        open_image(tmp_path)
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(OSError, match=r"pipe\.png is not a file"):
        open_image(tmp_path / "pipe.png")


def colour_png(path, values):
    """A PNG of 16 bits a colour, which Pillow cannot write."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = values.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + parts)


class TestSixteenBits:
    GREY = np.random.default_rng(1).integers(0, 2**16, (20, 20)).astype(np.uint16)

    def grey(self, bits):
        return self.GREY >> (16 - bits)

    @pytest.mark.parametrize("kind", ["PNG", "TIFF"])
    @pytest.mark.parametrize("bits", [8, 10, 12, 14])
    def test_little_of_them_used_is_said(self, bits, kind, tmp_path):
        Image.fromarray(self.grey(bits)).save(tmp_path / "p", format=kind)
        image = open_image(tmp_path / "p")
        brightest = self.grey(bits).max()
        with pytest.warns(DarkPictureWarning, match=rf"`image` has 16 bits .* brightest value is {brightest} of 65535"):
            assert CentreCrop(16)(image).max() < 0.26

    @pytest.mark.parametrize("kind", ["PNG", "TIFF"])
    def test_all_of_them_used_is_silent(self, kind, tmp_path):
        Image.fromarray(self.GREY).save(tmp_path / "p", format=kind)
        assert CentreCrop(16)(open_image(tmp_path / "p")).max() > 0.9

    def test_what_is_said_to_do_is_right(self):
        image = Image.fromarray(self.grey(12))
        scaled = Image.fromarray((np.asarray(image) * (255 / 4095)).astype("uint8"))
        right = CentreCrop(16, 1.0)(Image.fromarray(self.GREY))
        assert abs(CentreCrop(16, 1.0)(scaled) - right).max() < 2 / 255

    @pytest.mark.parametrize("bits", [8, 12, 14])
    def test_colours_of_which_pillow_drops_the_lower_byte(self, bits, tmp_path):
        colour_png(tmp_path / "p.png", np.repeat(self.grey(bits)[..., None], 3, axis=2))
        with pytest.warns(DarkPictureWarning, match=r"p\.png has 16 bits .* of 255, .* by a library that reads all 16"):
            open_image(tmp_path / "p.png")
        with pytest.warns(DarkPictureWarning, match=r"`image` has 16 bits .* of 255, .* that reads all 16"):
            CentreCrop(16)(Image.open(tmp_path / "p.png"))
        colour_png(tmp_path / "p.png", np.repeat(self.GREY[..., None], 3, axis=2))
        assert CentreCrop(16)(open_image(tmp_path / "p.png")).max() > 0.9
