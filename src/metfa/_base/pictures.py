"""Pictures from files that may be damaged or hostile."""

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
                image.load()
                return image
    except PermissionError:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} is too large: {error}") from error
    except Exception as error:  # for a damaged file, Pillow's plugins raise exceptions of nearly any kind
        reason = "unknown format" if isinstance(error, UnidentifiedImageError) else str(error)
        raise ValueError(f"{path} cannot be read as an image ({', '.join(FORMATS)}): {reason}") from error
