"""Colours of decisions and scores, and how all figures show texts of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metfa._base.validation import one_of

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

    def of_marks(self, kinds: dict[int, str]) -> list[tuple[str, int, str]]:
        """Name, mark and colour of each kind, with the colours of the sign or of the threshold."""
        by_sign = {1: self.positive, 0: self.no_sign, -1: self.negative}
        about_threshold = {1: self.important, 0: self.undecided, -1: self.unimportant}
        colours = by_sign if kinds[1] == "positive" else about_threshold
        return [(kinds[mark], mark, colours[mark]) for mark in (1, 0, -1)]


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
    """The palette of that name; a ValueError names the allowed ones."""
    return PALETTES[one_of(name, "palette", sorted(PALETTES))]
