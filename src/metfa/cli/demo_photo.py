"""The demo's photographs."""

from __future__ import annotations

from typing import Any

__all__ = ["demo_photo"]

DEMO_PHOTOS = {"coffee": "coffee", "cat": "chelsea"}


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
