"""The colours of marks, in one place for figures, reports and texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from metfa._base.validation import one_of

__all__ = ["DEFAULT_PALETTE", "HUES", "PALETTES", "SCORES", "SIGNED_SCORES", "Palette", "palette_named"]


@dataclass(frozen=True)
class Palette:
    """Colours of decisions about a threshold, and about the sign."""

    important: str
    undecided: str
    unimportant: str
    positive: str
    no_sign: str
    negative: str

    def of_marks(self, kinds: Mapping[int, str]) -> list[tuple[str, int, str]]:
        """Name, mark and colour of each kind, with the colours of the sign or of the threshold."""
        by_sign = {1: self.positive, 0: self.no_sign, -1: self.negative}
        about_threshold = {1: self.important, 0: self.undecided, -1: self.unimportant}
        colours = by_sign if kinds[1] == "positive" else about_threshold
        return [(kinds[mark], mark, colours[mark]) for mark in (1, 0, -1)]


# "colourblind": light amber, mid grey and dark blue, of lightness 83, 51 and 20 (CIE 1976 L*). So they stay apart in a
# grey print, and for people without one kind of cone. tests/plot/test_palettes.py checks it over any picture by the
# matrices of Machado, Oliveira and Fernandes 2009.
ABOVE, UNDECIDED, BELOW = "#ffc61a", "#7a7a7a", "#0a2f66"
DEFAULT_PALETTE = "colourblind"
PALETTES = {
    DEFAULT_PALETTE: Palette(
        important=ABOVE,
        undecided=UNDECIDED,
        unimportant=BELOW,
        positive=ABOVE,
        no_sign=UNDECIDED,
        negative=BELOW,
    ),
    "paper": Palette(
        important="#ffe11a",
        undecided="#46085c",
        unimportant="#12603a",
        positive="#b2182b",
        no_sign="#b8b8b8",
        negative="#2166ac",
    ),
}
SCORES, SIGNED_SCORES = "inferno", "RdBu_r"  # colour maps; their lightness tells strong from weak without colours
HUES = {1: (230, 159, 0), -1: (0, 114, 178)}  # of words by score: those hues, light enough for letters on any page


def palette_named(name: str) -> Palette:
    """The palette of that name; a ValueError names the allowed ones."""
    return PALETTES[one_of(name, "palette", sorted(PALETTES))]
