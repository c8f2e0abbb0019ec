"""Regions by name: the one parser of what the command line, studies and regression checks write."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metfa import regions
from metfa._base.validation import shown
from metfa.by_name.methods import Of
from metfa.results.regions import Regions

__all__ = ["KINDS", "NamedRegions", "region_forms", "region_named"]

FORMS = {
    "superpixels": "superpixels[:NUMBER]",
    "grid": "grid[:ROWS]",
    "objects": "objects",
    "sentences": "sentences",
    "phrases": "phrases",
    "none": "none",
    "picture": "a picture of labels (0: no region) such as mask.png",
}
PICTURES, TEXTS = ("superpixels", "grid"), ("sentences", "phrases")
KINDS: dict[Of, tuple[str, ...]] = {"image": PICTURES, "scene": PICTURES, "text": TEXTS}
USUAL = {"superpixels": 50, "grid": 14}


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


def region_forms(kinds: Collection[str]) -> str:
    """The allowed texts for regions of these kinds."""
    *others, last = (form for kind, form in FORMS.items() if kind in kinds)
    return f"{', '.join(others)}{',' * (len(others) > 1)} or {last}" if others else last


def region_named(
    text: Any, name: str, kinds: Collection[str], *, least: int = 2, against: str | None = "rest"
) -> NamedRegions | None:
    """Regions from their text form, such as "superpixels:50"; None for "none".

    Parameters
    ----------
    text : str
        The text; TypeError for anything else.
    name : str
        What messages call it.
    kinds : collection of str
        The kinds of regions that are allowed, keys of `FORMS`; ValueError for any other text. Regions of the kinds
        "objects" and "picture" (the text is the path of a file) are made by the caller.
    least : int
        Smallest number of superpixels, and of rows of a grid. One region alone has no rest.
    against
        As for `NamedRegions`.
    """
    if not isinstance(text, str):
        raise TypeError(f"`{name}` must be {region_forms(kinds)}, got {shown(text)}")
    kind, colon, written = text.partition(":")
    if kind in kinds and kind in USUAL and (not colon or re.fullmatch(r"\d+", written)):
        number = int(written) if colon else USUAL[kind]
        if number < least:
            rest = ", so that a region has a rest" if against == "rest" else ""
            raise ValueError(f"`{name}` must be at least {kind}:{least}{rest}, got {text}")
        return NamedRegions(kind, number, against)
    if kind in kinds and kind not in (*USUAL, "picture") and not colon:
        return None if kind == "none" else NamedRegions(kind, against=against)
    if "picture" in kinds and Path(text).is_file():
        return NamedRegions("picture", against=against)
    missing = ", and there is no such file" if "picture" in kinds else ""
    raise ValueError(f"`{name}` must be {region_forms(kinds)}, got {text!r}{missing}")
