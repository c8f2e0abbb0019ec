"""Attacks: distances of maps from the target map, and whether an attack can be noticed."""

from __future__ import annotations

from pathlib import Path

from paper.attack_table import detected, named
from paper.cells import FEWEST, Found, Part, beside, cell, found, ratio, size, table

__all__ = ["KNOWS", "PLANNED", "attacks", "kept_of", "signs"]

PLANNED = {"cam": 20, "lrp": 10, "mask": 5}
RESTARTS = {"cam": 3, "lrp": 3, "mask": 1}
KNOWS = {"nothing": "unaware", "defence": "aware, both maps", "defence alone": "aware, smoothed map alone"}
PAPER = {"cam": ".0934, .2785, .1705", "lrp": ".0340, .0657, .0635", "mask": ".1453, .1667, .1648"}
COLUMNS = {
    "clean": "nothing: clean", "clean, smoothed": "nothing: clean defended", "m2": "nothing: adversarial",
    "m3": "nothing: adversarial defended", "m2 of the aware": "defence: adversarial",
    "m4": "defence: adversarial defended", "m4, smoothed map alone": "defence alone: adversarial defended",
    "m1's pixels mixed": "nothing: m1's pixels mixed",
}  # fmt: skip
SIGNS = {"difference": "vanilla and smoothed map differ", "width": "width of the intervals",
         "outside": "vanilla outside of them"}  # fmt: skip


def _of(name: str, knows: str, folder: Path) -> Found | None:
    """Figures of one attacker on an explainer, with the settings of the strong ones."""
    return found(named("lite0", name, knows, (200, RESTARTS[name], 1, 8)), folder)


def kept_of(name: str, folder: Path) -> Found | None:
    """Figures of the photographs that all attackers on an explainer have met."""
    return beside({knows: _of(name, knows, folder) for knows in KNOWS})


def _tables(folder: Path) -> dict[str, Found | None]:
    return {name: kept_of(name, folder) for name in PLANNED}


def _sizes(tables: dict[str, Found | None]) -> str:
    return f"{', '.join(f'{name.upper()} {size(one, PLANNED[name])}' for name, one in tables.items())} photographs"


def attacks(folder: Path) -> Part:
    """Distances, and how much of an attack the smoothing undoes."""
    tables, rows, lines = _tables(folder), [], []
    for name, one in tables.items():
        if one is None:
            rows.append([name.upper(), size(one, PLANNED[name]), *("–" for _ in range(1 + len(COLUMNS))), PAPER[name]])
            continue
        won = ", ".join(f"{one[f'{knows}: succeeded'].sum():.0f}" for knows in KNOWS)
        values = {label: one[column] for label, column in COLUMNS.items()}
        rows.append([name.upper(), size(one, PLANNED[name]), won, *map(cell, values.values()), PAPER[name]])
        lines.append(f"- {name.upper()}, {size(one, PLANNED[name], 'photographs')}: {_said(one)}.")
    header = ["explainer", "images", "succeeded", *COLUMNS, "paper: m2, m3, m4"]
    return Part(_sizes(tables), "\n\n".join([table(header, rows), "\n".join(lines)]).strip())


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
    shares = "; ".join(f"{label} {share}" for label, share in _kept_away(one).items())
    return f"what is left of the way from m2 to the smoothed map of the clean image: {shares}"


def signs(folder: Path) -> Part:
    """Areas under the ROC curve of what might show an attack, with their limits."""
    rows = []
    for name in PLANNED:
        for knows, label in KNOWS.items():
            one, cells = _of(name, knows, folder), ["–"] * len(SIGNS)
            if one is not None:
                areas = detected(one)
                text = "{:.3f} ({:.2f} to {:.2f})" if len(one) >= FEWEST else "{:.3f}"
                cells = [text.format(*areas[sign]) for sign in SIGNS]
            rows.append([name.upper(), size(one, PLANNED[name]), label, *cells])
    return Part(_sizes(_tables(folder)), table(["explainer", "images", "attacker", *SIGNS.values()], rows))
