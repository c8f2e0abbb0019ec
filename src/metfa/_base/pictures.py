"""Pictures from files that may be damaged or hostile."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.warnings import DarkPictureWarning, warn

__all__ = ["is_deep", "of_exact_levels", "open_image", "warn_if_dark"]

DARK = 4  # a 14-bit picture uses a quarter of 16 bits
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")


def open_image(path: Path) -> Any:
    """Read an image file whole, within Pillow's limit of 89 million pixels.

    Raises
    ------
    ValueError
        If the file is not an image of a known format, is damaged, or is too large.
    OSError
        If the file system raises it, such as FileNotFoundError.
    """
    from PIL import Image, UnidentifiedImageError

    if not path.exists():
        raise FileNotFoundError(f"no such image: {path}")
    if not path.is_file():
        raise OSError(f"{path} is not a file; give the path of an image file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of unusual metadata
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as image:
                deep = is_deep(image)
                image.load()
        if image.format == "WEBP":
            image.info["lossy"] = _is_lossy_webp(path)
    except PermissionError:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} is too large: {error}") from error
    except Exception as error:  # for a damaged file, Pillow's plugins raise exceptions of nearly any kind
        reason = "unknown format" if isinstance(error, UnidentifiedImageError) else str(error)
        raise ValueError(f"{path} cannot be read as an image ({', '.join(FORMATS)}): {reason}") from error
    if deep:
        warn_if_dark(np.asarray(image), 255, f"{path}")
    return image


def of_exact_levels(image: Any, name: str) -> Any:
    """A picture whose levels are labels or a mask, as it is; a WebP of grey levels, which Pillow opens in colours.

    Raises
    ------
    ValueError
        If its format changes levels beside each edge; `name` is what the message calls it.
    """
    kind = getattr(image, "format", None)
    lossy = {"JPEG": "a JPEG", "MPO": "a JPEG"}.get(kind or "")
    if kind == "WEBP" and image.info.get("lossy", True):
        lossy = "a lossy WebP" if "lossy" in image.info else "a WebP that may be lossy (give its path, which shows it)"
    if lossy is not None:
        raise ValueError(f"{name} is {lossy}, which changes the levels beside each edge: save it as PNG")
    if kind == "WEBP" and image.mode in ("RGB", "RGBA"):
        red, green, blue, *opacity = (np.asarray(band) for band in image.split())
        if np.array_equal(red, green) and np.array_equal(red, blue) and all((band == 255).all() for band in opacity):
            return image.getchannel(0)
    return image


def _is_lossy_webp(path: Path) -> bool:
    """Whether a WebP file holds pictures of the lossy kind; its chunks have a name, a size, and an even length."""
    with path.open("rb") as file:
        file.seek(12)
        while len(head := file.read(8)) == 8:
            if head[:4] in (b"VP8 ", b"VP8L"):
                return head[:4] == b"VP8 "
            size = int.from_bytes(head[4:], "little")
            file.seek(size + size % 2, 1)
    return True


def is_deep(image: Any) -> bool:
    """Whether Pillow will read colours of 16 bits as 8 bits: it drops the lower byte of each."""
    rawmodes = [str(part) for tile in getattr(image, "tile", ()) for part in np.atleast_1d(np.asarray(tile[3], object))]
    return not image.mode.startswith("I") and any(";16" in rawmode for rawmode in rawmodes)


def warn_if_dark(values: np.ndarray, largest: int, what: str) -> None:
    """Warn if a picture of 16 bits uses at most a quarter of its range: it may hold 10, 12 or 14 bits, and looks black.

    `largest` is the largest value that the array can hold: 65535, or 255 where Pillow has dropped the lower byte.
    """
    brightest = int(values.max())
    if brightest <= (largest + 1) // DARK:
        remedy = (
            "`Image.fromarray((numpy.asarray(image) * (255 / 4095)).astype('uint8'))` for 12 bits"
            if largest > 255
            else "by a library that reads all 16 bits of colour pictures (Pillow drops the lower 8), and save it with 8"
        )
        warn(
            f"{what} has 16 bits and uses little of their range: its brightest value is {brightest} of {largest}, so "
            f"that the model sees it nearly black. If it holds 10, 12 or 14 bits, scale it first: {remedy}",
            DarkPictureWarning,
        )
