"""`CentreCrop` and `WholePicture`: from a PIL image of any kind to the pixels that a network takes."""

from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps

from metfa._base.pictures import is_deep, warn_if_dark
from metfa._base.validation import brief, check_number, keep, positive_int, shown

__all__ = ["CentreCrop", "WholePicture"]

MOST_SIDE = 2**14  # pixels; a picture of more would be gigabytes


@dataclass(frozen=True)
class CentreCrop:
    """Resize the short side to ``size / fraction`` pixels and keep the central square of `size` pixels.

    Parameters
    ----------
    size : int
        Side of the square, in pixels.
    fraction : float, default: 0.875
        Part of the short side that the square covers, in (0, 1]. The resized short side is rounded down.
    interpolation : PIL.Image.Resampling, default: bicubic
        Pillow's filter, which always smooths when the picture shrinks.

    Notes
    -----
    Only the part of the image that becomes the square is resampled, so a picture of 1 by 100,000 pixels costs no more
    than another. The result equals resizing the whole picture and cutting afterwards, except for the order of Pillow's
    two passes: it differs by one 8-bit level where the picture shrinks, and by a few at sharp edges where it grows.

    Colours become 8-bit RGB first. The EXIF orientation is applied. Transparency (RGBA, palettes, the transparent
    colour of a PNG) is laid over white. Grey is repeated in three channels; 16-bit grey is scaled by 1/257. If a
    picture of 16 bits uses at most a quarter of their range, as 12 bits kept in 16 do, a `metfa.DarkPictureWarning`
    says so. CMYK is converted by Pillow's formula. Colour profiles are not applied. Floating-point images (mode F) have
    no known range and are refused.

    Examples
    --------
    >>> from PIL import Image
    >>> from metfa.models import CentreCrop
    >>> pixels = CentreCrop(224)(Image.new("RGB", (640, 480), "red"))
    >>> tuple(pixels.shape), pixels[:, 0, 0]
    ((3, 224, 224), tensor([1., 0., 0.]))
    """

    size: int
    fraction: float = 0.875
    interpolation: Image.Resampling = Image.Resampling.BICUBIC

    def __post_init__(self) -> None:
        keep(self, size=positive_int(self.size, "size", maximum=MOST_SIDE))
        keep(self, fraction=check_number(self.fraction, "fraction", above=0, most=1))
        _check_filter(self.interpolation)

    def __call__(self, image: Image.Image) -> torch.Tensor:
        """Float32 tensor of shape (3, size, size) in [0, 1] of a PIL image."""
        rgb = _to_rgb(image)
        short = floor(self.size / self.fraction + 1e-6)  # 224 / (224 / 232) must be 232, not 231
        starts, ends = [], []
        for side in rgb.size:
            resized = short * side // min(rgb.size)
            start = round((resized - self.size) / 2)
            starts.append(start * side / resized)
            ends.append((start + self.size) * side / resized)
        square = rgb.resize((self.size, self.size), self.interpolation, box=(*starts, *ends))
        return _pixels(square)


@dataclass(frozen=True)
class WholePicture:
    """The whole picture, as segmentation networks take it.

    Parameters
    ----------
    size : (int, int), optional
        Height and width to which the picture is resized, whatever its proportions. None keeps its size.
    interpolation : PIL.Image.Resampling, default: bilinear
        Pillow's filter.

    Notes
    -----
    Colours become 8-bit RGB as in `CentreCrop`.

    Examples
    --------
    >>> from PIL import Image
    >>> from metfa.models import WholePicture
    >>> picture = Image.new("RGB", (640, 480), "red")
    >>> tuple(WholePicture()(picture).shape), tuple(WholePicture((240, 320))(picture).shape)
    ((3, 480, 640), (3, 240, 320))
    """

    size: tuple[int, int] | None = None
    interpolation: Image.Resampling = Image.Resampling.BILINEAR

    def __post_init__(self) -> None:
        _check_filter(self.interpolation)
        if self.size is None:
            return
        if not isinstance(self.size, tuple) or len(self.size) != 2:
            raise TypeError(f"`size` must be a pair (height, width) or None, got {brief(self.size)}")
        for side in self.size:
            positive_int(side, "size", maximum=MOST_SIDE)

    def __call__(self, image: Image.Image) -> torch.Tensor:
        """Float32 tensor of shape (3, height, width) in [0, 1] of a PIL image."""
        rgb = _to_rgb(image)
        if self.size is not None and self.size != (rgb.height, rgb.width):
            rgb = rgb.resize((self.size[1], self.size[0]), self.interpolation)
        return _pixels(rgb)


def _check_filter(interpolation: Any) -> None:
    if not isinstance(interpolation, Image.Resampling):
        raise TypeError(f"`interpolation` must be a PIL.Image.Resampling, such as BICUBIC, got {shown(interpolation)}")


def _pixels(rgb: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(rgb)).permute(2, 0, 1).contiguous().float() / 255


def _to_rgb(image: Image.Image) -> Image.Image:
    """8-bit RGB image, upright and without transparency."""
    if not isinstance(image, Image.Image):
        raise TypeError(
            f"`image` must be a PIL image, got {type(image).__name__}; "
            "open a file with PIL.Image.open, convert an array with PIL.Image.fromarray"
        )
    if 0 in image.size:
        raise ValueError(f"`image` must have pixels, got a size of {image.size}")
    if image.mode == "F":
        raise ValueError("`image` of mode F has no known range; scale it to 8 bits and convert it to mode L")
    deep = is_deep(image)  # before it is loaded
    image = ImageOps.exif_transpose(image)
    if deep:
        warn_if_dark(np.asarray(image.convert("RGB")), 255, "`image`")
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if values.min() < 0 or values.max() > 65535:
            raise ValueError(
                f"`image` of mode {image.mode} must hold 16-bit values in 0..65535, "
                f"got {values.min()}..{values.max()}; scale it to 8 bits and convert it to mode L"
            )
        warn_if_dark(values, 65535, "`image`")
        image = Image.fromarray(np.rint(values / 257).astype(np.uint8))
    if image.mode in {"LA", "PA", "RGBA", "RGBa"} or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")
