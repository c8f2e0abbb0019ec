"""Regions by name, as files that describe a study or a check write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from metfa import regions
from metfa.by_name.methods import Of
from metfa.results.regions import Regions

__all__ = ["REGION_FORMS", "NamedRegions", "check_region_name", "regions_named", "regions_of_picture"]

FORMS: dict[Of, str] = {"image": "superpixels[:NUMBER] or grid[:ROWS]", "text": "sentences or phrases"}
USUAL = {"superpixels": 50, "grid": 14}
REGION_FORMS = "'superpixels:NUMBER', 'grid:ROWS' or 'none'"


@dataclass(frozen=True)
class NamedRegions:
    """Regions by their name, made of one clean input; each against the rest, or with `against` None alone."""

    kind: str
    number: int | None = None
    against: str | None = "rest"

    def __call__(self, one: Any) -> Regions:
        """The regions of one input: a picture (channels, height, width), or a text."""
        if self.number is None:
            return (regions.sentences if self.kind == "sentences" else regions.phrases)(one, against=self.against)
        if len(one.shape) not in (2, 3):
            raise ValueError(f"`over` {self.kind!r} is for pictures, got an input of shape {tuple(one.shape)}")
        if self.kind == "grid":
            return regions.grid(tuple(one.shape[-2:]), self.number, against=self.against)
        return regions.superpixels(one, self.number, against=self.against)


def regions_named(text: str, of: Of) -> NamedRegions:
    """Regions from their text form, such as "superpixels:50"."""
    found = re.fullmatch(r"(superpixels|grid)(?::(\d+))?|(sentences|phrases)", text)
    if found is None or (found[3] is None) == (of == "text"):
        raise ValueError(f"`over` must be {FORMS.get(of, FORMS['image'])}, got {text!r}")
    if found[3] is not None:
        return NamedRegions(found[3])
    number = USUAL[found[1]] if found[2] is None else int(found[2])
    if number < 2:
        raise ValueError(f"`over` must be at least {found[1]}:2, so that a region has a rest, got {text!r}")
    return NamedRegions(found[1], number)


def check_region_name(text: Any) -> None:
    """Raise unless the text names regions of pictures, or none."""
    _of_check(text)


def regions_of_picture(text: str, pixels: Any) -> Regions | None:
    """The regions of one picture (channels, height, width), on maps of its height and width; None for 'none'."""
    named = _of_check(text)
    return None if named is None else named(pixels)


def _of_check(text: Any) -> NamedRegions | None:
    if text == "none":
        return None
    if not isinstance(text, str) or not re.fullmatch(r"(superpixels|grid):[1-9]\d*", text):
        raise ValueError(f"`regions` must be {REGION_FORMS}, such as 'superpixels:50', got {text!r}")
    kind, number = text.split(":")
    return NamedRegions(kind, int(number), against=None)
