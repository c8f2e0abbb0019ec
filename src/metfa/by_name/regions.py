"""Regions of pictures by name, as files that describe a check write them."""

from __future__ import annotations

import re
from typing import Any

from metfa import regions
from metfa.results.regions import Regions

__all__ = ["REGION_FORMS", "check_region_name", "regions_of_picture"]

REGION_FORMS = "'superpixels:NUMBER', 'grid:ROWS' or 'none'"


def check_region_name(text: Any) -> None:
    """Raise unless the text names regions."""
    _parsed(text)


def regions_of_picture(text: str, pixels: Any) -> Regions | None:
    """The regions of one picture (channels, height, width), on maps of its height and width; None for 'none'."""
    kind, number = _parsed(text)
    if kind == "none":
        return None
    plane = tuple(pixels.shape[-2:])
    return regions.grid(plane, number) if kind == "grid" else regions.superpixels(pixels, number)


def _parsed(text: Any) -> tuple[str, int]:
    found = re.fullmatch(r"(superpixels|grid):([1-9]\d*)|none", text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"`regions` must be {REGION_FORMS}, such as 'superpixels:50', got {text!r}")
    return found[1] or "none", int(found[2] or 0)
