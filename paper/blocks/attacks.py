"""Attacks: distances of maps from the target map, and whether an attack can be noticed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from paper import attack_table
from paper.attack_table import detected, named
from paper.cells import FEWEST, Found, Part, beside, cell, found, ratio, size, table

__all__ = ["DIGITS", "KNOWS", "STRONG", "Attack", "attacks", "budgets", "digits", "signs", "won"]

KNOWS = {"nothing": "unaware", "defence": "aware, both maps", "defence alone": "aware, smoothed map alone"}
PAPER = {name: ", ".join(f"{far:.4f}"[1:] for far in distances) for name, distances in attack_table.PAPER.items()}
COLUMNS = {
    "clean": "nothing: clean", "clean, smoothed": "nothing: clean defended", "m2": "nothing: adversarial",
    "m3": "nothing: adversarial defended", "m2 of the aware": "defence: adversarial",
    "m4": "defence: adversarial defended", "m4, smoothed map alone": "defence alone: adversarial defended",
    "m1's pixels mixed": "nothing: m1's pixels mixed",
}  # fmt: skip
SIGNS = {"difference": "vanilla and smoothed map differ", "width": "width of the intervals",
         "outside": "vanilla outside of them"}  # fmt: skip


class Attack(NamedTuple):
    """The attackers of one explainer: their network and strength, and how many images are planned."""

    network: str
    explainer: str
    planned: int
    restarts: int = 1
    levels: int = 8

    @property
    def images(self) -> str:
        return "digits" if self.network == "digits" else "photographs"

    def by(self, knows: str, folder: Path) -> Found | None:
        """Figures of one attacker."""
        return found(named(self.network, self.explainer, knows, (200, self.restarts, 1, self.levels)), folder)

    def kept(self, folder: Path, attackers: tuple[str, ...] = tuple(KNOWS)) -> Found | None:
        """Figures of the images that all of these attackers have met."""
        return beside({knows: self.by(knows, folder) for knows in attackers})


STRONG = (Attack("lite0", "cam", 20, 3), Attack("lite0", "lrp", 10, 3), Attack("lite0", "mask", 5))
DIGITS = (Attack("digits", "cam", 40), Attack("digits", "lrp", 40), Attack("digits", "mask", 20))
WEAKER = tuple(Attack("lite0", "cam", 4, levels=levels) for levels in (2, 4, 8))


def won(one: Found) -> str:
    """How many attacks of each attacker have succeeded."""
    return ", ".join(f"{one[f'{knows}: succeeded'].sum():.0f}" for knows in KNOWS)


def _sizes(tables: Mapping[Attack, Found | None]) -> str:
    (images,) = {attack.images for attack in tables}
    return f"{', '.join(f'{a.explainer.upper()} {size(one, a.planned)}' for a, one in tables.items())} {images}"


def _distances(attacks: tuple[Attack, ...], folder: Path) -> Part:
    """Distances, and how much of an attack the smoothing undoes."""
    tables, rows, lines = {attack: attack.kept(folder) for attack in attacks}, [], []
    for attack, one in tables.items():
        name, n, paper = attack.explainer.upper(), size(one, attack.planned), PAPER[attack.explainer]
        if one is None:
            rows.append([name, n, *("–" for _ in range(1 + len(COLUMNS))), paper])
            continue
        rows.append([name, n, won(one), *(cell(one[column]) for column in COLUMNS.values()), paper])
        lines.append(f"- {name}, {n} {attack.images}: {_said(one)}.")
    header = ["explainer", "images", "succeeded", *COLUMNS, "paper: m2, m3, m4"]
    if lines:
        lines = ["What is left of the way from m2 to the smoothed map of the clean image:", "\n".join(lines)]
    return Part(_sizes(tables), "\n\n".join([table(header, rows), *lines]))


def attacks(folder: Path) -> Part:
    """Strong attacks on photographs."""
    return _distances(STRONG, folder)


def digits(folder: Path) -> Part:
    """Attacks on a small network of ReLUs."""
    return _distances(DIGITS, folder)


def _kept_away(one: Found) -> dict[str, str]:
    """Of each attacker: where the distance of the defence's map from m1 lies.

    0 is m2, the single map after an attack that does not know the defence, and 1 the defence's map of the clean image.
    """
    clean = one[COLUMNS["clean, smoothed"]]
    return {
        label: ratio(one[f"{knows}: adversarial defended"] - one[COLUMNS["m2"]], clean - one[COLUMNS["m2"]])
        for knows, label in KNOWS.items()
    }


def _said(one: Found) -> str:
    if len(one) < FEWEST:
        return "too few to say"
    return "; ".join(f"{label} {share}" for label, share in _kept_away(one).items())


def budgets(folder: Path) -> Part:
    """How little an attacker of CAM may change, until the defence holds."""
    knows, rows, n = ("nothing", "defence", "seed"), [], []
    for attack in WEAKER:
        one = attack.kept(folder, knows)
        n.append(f"{attack.levels} levels {size(one, attack.planned)}")
        values = [] if one is None else [
            one["nothing: clean defended"], one["nothing: adversarial"],
            *(one[f"{who}: adversarial defended"] for who in knows),
        ]  # fmt: skip
        left = [ratio(far, values[2]) for far in values[3:]]
        cells = [*map(cell, values), *left] if values else ["–"] * 7
        rows.append([str(attack.levels), size(one, attack.planned), *cells])
    header = ["levels of 255", "photographs", "clean, smoothed", "m2", "m3", "m4", "m4, the noise is known too"]
    header += ["m4 / m3", "m4 / m3, the noise is known too"]
    return Part(f"{', '.join(n)} photographs", table(header, rows))


def signs(folder: Path) -> Part:
    """Areas under the ROC curve of what might show an attack, with their limits."""
    rows, everywhere = [], (STRONG, DIGITS)
    for attack in (one for some in everywhere for one in some):
        for knows, label in KNOWS.items():
            one, cells = attack.by(knows, folder), ["–"] * len(SIGNS)
            if one is not None:
                areas = detected(one)
                text = "{:.3f} ({:.2f} to {:.2f})" if len(one) >= FEWEST else "{:.3f}"
                cells = [text.format(*areas[sign]) for sign in SIGNS]
            rows.append([attack.explainer.upper(), f"{size(one, attack.planned)} {attack.images}", label, *cells])
    sizes = "; ".join(_sizes({attack: attack.kept(folder) for attack in some}) for some in everywhere)
    return Part(sizes, table(["explainer", "images", "attacker", *SIGNS.values()], rows))
