"""Attacks: distances of maps from the target map, and whether an attack can be noticed."""

from __future__ import annotations

from pathlib import Path

from paper.attack_table import detected
from paper.cells import Found, Part, cell, found, ratio, size, table
from paper.kept import read

__all__ = ["attacks", "signs"]

PLANNED = {"cam": 20, "lrp": 10, "mask": 5}
PAPER = {"cam": ".0934, .2785, .1705", "lrp": ".0340, .0657, .0635", "mask": ".1453, .1667, .1648"}
COLUMNS = {
    "clean": "clean", "clean, smoothed": "nothing: clean defended", "m2": "nothing: adversarial",
    "m3": "nothing: adversarial defended", "m4": "defence: adversarial defended", "m1's pixels mixed": None,
}  # fmt: skip
SIGNS = {"difference": "vanilla and smoothed map differ", "width": "width of the intervals",
         "outside": "vanilla outside of them"}  # fmt: skip


def _tables(folder: Path) -> dict[str, Found | None]:
    return {name: found(f"attack-lite0-{name}-200-3-1-8", folder) for name in PLANNED}


def _sizes(tables: dict[str, Found | None]) -> str:
    return f"{', '.join(f'{name.upper()} {size(one, PLANNED[name])}' for name, one in tables.items())} photographs"


def attacks(folder: Path) -> Part:
    """Distances, and how much of an attack the smoothing undoes."""
    tables, rows, lines, about = _tables(folder), [], [], ""
    for name, one in tables.items():
        if one is None:
            rows.append([name.upper(), size(one, PLANNED[name]), *("–" for _ in range(7)), PAPER[name]])
            continue
        strength = one.setting
        about = f"{strength['steps']} steps, {strength['restarts']} restarts, {strength['levels']:g} of 255 levels."
        won = " and ".join(f"{one[f'{knows}: succeeded'].sum():.0f}" for knows in ("nothing", "defence"))
        values = {label: one[column or label] for label, column in COLUMNS.items()}
        rows.append([name.upper(), size(one, PLANNED[name]), won, *map(cell, values.values()), PAPER[name]])
        undone = ratio(values["m3"] - values["m2"], values["clean, smoothed"] - values["m2"])
        left = ratio(values["m4"] - values["m2"], values["clean, smoothed"] - values["m2"])
        lines.append(
            f"- {name.upper()}, {size(one, PLANNED[name], 'photographs')}: smoothing takes an unaware attack back by "
            f"{undone} of the way to the smoothed map of the clean image. It takes an aware one back by {left}."
        )
    header = ["explainer", "images", "succeeded: unaware, aware", *COLUMNS, "paper: m2, m3, m4"]
    return Part(_sizes(tables), "\n\n".join([about, table(header, rows), "\n".join(lines)]).strip())


def signs(folder: Path) -> Part:
    """Areas under the ROC curve of what might show an attack, with their limits."""
    tables, rows = _tables(folder), []
    for name, one in tables.items():
        for knows in ("nothing", "defence"):
            cells = ["–"] * len(SIGNS)
            if one is not None:
                areas = detected(read(folder / f"attack-lite0-{name}-200-3-1-8.csv"), knows)
                cells = ["{:.3f} ({:.2f} to {:.2f})".format(*areas[sign]) for sign in SIGNS]
            rows.append([name.upper(), size(one, PLANNED[name]), knows, *cells])
    return Part(_sizes(tables), table(["explainer", "images", "the attacker knows", *SIGNS.values()], rows))
