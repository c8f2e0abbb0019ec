"""Regions by name, as study files write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from metfa import regions
from metfa.by_name.methods import Of
from metfa.results.regions import Regions

__all__ = ["NamedRegions", "regions_named"]

FORMS: dict[Of, str] = {"image": "superpixels[:NUMBER] or grid[:ROWS]", "text": "sentences or phrases"}
USUAL = {"superpixels": 50, "grid": 14}


@dataclass(frozen=True)
class NamedRegions:
    """Regions by their name, made of one clean input, each against the rest."""

    kind: str
    number: int | None = None

    def __call__(self, one: Any) -> Regions:
        """The regions of one input: a picture (channels, height, width), or a text."""
        if self.number is None:
            return (regions.sentences if self.kind == "sentences" else regions.phrases)(one, against="rest")
        if len(one.shape) not in (2, 3):
            raise ValueError(f"`over` {self.kind!r} is for pictures, got an input of shape {tuple(one.shape)}")
        if self.kind == "grid":
            return regions.grid(tuple(one.shape[-2:]), self.number, against="rest")
        return regions.superpixels(one, self.number, against="rest")


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
