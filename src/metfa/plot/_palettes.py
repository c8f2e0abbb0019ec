"""Colours of decisions and scores, and what all figures do with texts of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["LITERAL", "PALETTES", "SIGNED_SCORES", "Palette", "palette_named"]


@dataclass(frozen=True)
class Palette:
    """Colours of decisions about a threshold and about the sign, and the colour map of the scores."""

    important: str
    undecided: str
    unimportant: str
    scores: str
    positive: str
    no_sign: str
    negative: str


PALETTES = {
    "paper": Palette(
        important="#ffe11a",
        undecided="#46085c",
        unimportant="#12603a",
        scores="inferno",
        positive="#b2182b",
        no_sign="#b8b8b8",
        negative="#2166ac",
    ),
    "colourblind": Palette(
        important="#ffcf33",
        undecided="#767676",
        unimportant="#001f4d",
        scores="cividis",
        positive="#e69f00",
        no_sign="#c4c4c4",
        negative="#0b5394",
    ),
}
SIGNED_SCORES = "RdBu_r"
LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}  # text of others: no mathematics, no TeX


def palette_named(name: str) -> Palette:
    """The palette, or a ValueError that names those there are."""
    if name not in PALETTES:
        raise ValueError(f"`palette` must be one of {sorted(PALETTES)}, got {name!r}")
    return PALETTES[name]
