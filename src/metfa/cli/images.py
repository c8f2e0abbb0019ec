"""Pictures from files that nobody vouches for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["demo_photo", "open_image"]

MAX_PIXELS = 100_000_000
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")

DEMO_PHOTOS = {"coffee": "coffee", "cat": "chelsea"}


def open_image(path: Path) -> Any:
    """Read an image file whole, within limits.

    Raises
    ------
    ValueError
        If it is no image of a known format, damaged, or has more than 100 million pixels.
    FileNotFoundError, IsADirectoryError, PermissionError
        From the file system.
    """
    from PIL import Image, UnidentifiedImageError

    if not path.exists():
        raise FileNotFoundError(f"no such image: {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, an image file is needed")
    try:
        with Image.open(path, formats=FORMATS) as image:
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise ValueError(f"{path} has {width} x {height} pixels, more than the {MAX_PIXELS:,} allowed")
            image.load()
            return image
    except Image.DecompressionBombError as error:
        raise ValueError(f"{path} is too large: {error}") from error
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        reason = "unknown format" if isinstance(error, UnidentifiedImageError) else str(error)
        raise ValueError(f"{path} cannot be read as an image ({', '.join(FORMATS)}): {reason}") from error


def demo_photo(name: str) -> Any:
    """One of scikit-image's photographs (CC0): coffee, or the cat Chelsea."""
    from PIL import Image

    if name not in DEMO_PHOTOS:
        raise ValueError(f"`--photo` must be one of {sorted(DEMO_PHOTOS)}, got {name!r}")
    try:
        from skimage import data
    except ImportError as error:
        raise ModuleNotFoundError("the demo's photographs come with scikit-image: pip install 'metfa[demo]'") from error
    return Image.fromarray(getattr(data, DEMO_PHOTOS[name])())
