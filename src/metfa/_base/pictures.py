"""Pictures from files that nobody vouches for."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

__all__ = ["open_image"]

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")


def open_image(path: Path) -> Any:
    """Read an image file whole, within Pillow's limit of 89 million pixels.

    Raises
    ------
    ValueError
        If it is no image of a known format, damaged, or too large.
    OSError
        From the file system, such as FileNotFoundError.
    """
    from PIL import Image, UnidentifiedImageError

    if not path.exists():
        raise FileNotFoundError(f"no such image: {path}")
    if not path.is_file():
        raise OSError(f"{path} is no file, an image file is needed")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata and the like
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as image:
                image.load()
                return image
    except PermissionError:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} is too large: {error}") from error
    except Exception as error:  # Pillow's plugins raise nearly anything for a damaged file
        reason = "unknown format" if isinstance(error, UnidentifiedImageError) else str(error)
        raise ValueError(f"{path} cannot be read as an image ({', '.join(FORMATS)}): {reason}") from error
