"""Attacks: distances of maps from the target map, and whether an attack can be noticed."""

from __future__ import annotations

from pathlib import Path

from paper.attack_table import detected
from paper.cells import FEWEST, Found, Part, cell, found, ratio, size, table
from paper.kept import read

__all__ = ["attacks", "signs"]

PLANNED = {"cam": 20, "lrp": 10, "mask": 5}
PAPER = {"cam": ".0934, .2785, .1705", "lrp": ".0340, .0657, .0635", "mask": ".1453, .1667, .1648"}
COLUMNS = {
    "clean": "clean", "clean, smoothed": "nothing: clean defended", "m2": "nothing: adversarial",
    "m3": "nothing: adversarial defended", "m2 of the aware": "defence: adversarial",
    "m4": "defence: adversarial defended", "m1's pixels mixed": "m1's pixels mixed",
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
            rows.append([name.upper(), size(one, PLANNED[name]), *("–" for _ in range(1 + len(COLUMNS))), PAPER[name]])
            continue
        strength = one.setting
        about = f"{strength['steps']} steps, {strength['restarts']} restarts, {strength['levels']:g} of 255 levels."
        won = " and ".join(f"{one[f'{knows}: succeeded'].sum():.0f}" for knows in ("nothing", "defence"))
        values = {label: one[column] for label, column in COLUMNS.items()}
        rows.append([name.upper(), size(one, PLANNED[name]), won, *map(cell, values.values()), PAPER[name]])
        lines.append(f"- {name.upper()}, {size(one, PLANNED[name], 'photographs')}: {_said(one)}.")
    header = ["explainer", "images", "succeeded: unaware, aware", *COLUMNS, "paper: m2, m3, m4"]
    return Part(_sizes(tables), "\n\n".join([about, table(header, rows), "\n".join(lines)]).strip())


def _kept_away(one: Found) -> dict[str, str]:
    """Of both attackers: where the distance of the defence's map from m1 lies.

    0 is the distance of the attacker's own single map, and 1 that of the defence's map of the clean image.
    """
    clean = one[COLUMNS["clean, smoothed"]]
    return {
        label: ratio(one[f"{knows}: adversarial defended"] - one[f"{knows}: adversarial"],
                     clean - one[f"{knows}: adversarial"])
        for label, knows in (("unaware", "nothing"), ("aware", "defence"))
    }  # fmt: skip


def _said(one: Found) -> str:
    if len(one) < FEWEST:
        return "too few to say"
    shares = _kept_away(one)
    return (
        f"against an unaware attacker the smoothed map's distance lies {shares['unaware']} of the way from the single "
        f"map's to that of the clean image, and against an aware one {shares['aware']}"
    )


def signs(folder: Path) -> Part:
    """Areas under the ROC curve of what might show an attack, with their limits."""
    tables, rows = _tables(folder), []
    for name, one in tables.items():
        for knows in ("nothing", "defence"):
            cells = ["–"] * len(SIGNS)
            if one is not None:
                areas = detected(read(folder / f"attack-lite0-{name}-200-3-1-8.csv"), knows)
                text = "{:.3f} ({:.2f} to {:.2f})" if len(one) >= FEWEST else "{:.3f}"
                cells = [text.format(*areas[sign]) for sign in SIGNS]
            rows.append([name.upper(), size(one, PLANNED[name]), knows, *cells])
    return Part(_sizes(tables), table(["explainer", "images", "the attacker knows", *SIGNS.values()], rows))
