"""Regions over their picture: fills and outlines by what is decided, and letters to find them by."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.palettes import Palette
from metfa._base.percents import counted, percent
from metfa.plot._outlines import enlarged, inner_point, outline
from metfa.plot.images import FAINT, draw_picture, grey
from metfa.results.decisions import Decision
from metfa.results.regions import Regions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_letters", "draw_lines", "draw_regions"]

FILL = {1: 0.62, 0: 0.3, -1: 0.62}  # weight of the colour of a mark over the grey picture
WIDTH = {1: 2.2, 0: 0.8, -1: 0.8}  # of the outlines
PALE = 0.75  # weight of white where no region is
MANY = 60  # from so many regions on, thick outlines would hide small ones
GREY = "#b0b0b0"


def draw_regions(
    ax: Axes, picture: np.ndarray, regions: Regions, decision: Decision | None, colours: Palette, *, faint: bool
) -> list[Any]:
    """Draw the regions of one input over its picture; returns what the legend says about places."""
    from matplotlib.colors import to_rgb
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    masks = _masks_over(picture, regions)
    marks = np.zeros(len(masks), np.int8) if decision is None else decision.marks[0]
    colour_of = {} if decision is None else {mark: colour for _, mark, colour in colours.of_marks(decision.kinds)}
    covered = masks.sum(axis=0)
    nowhere, several = covered == 0, covered > 1
    painted = grey(picture)
    painted[nowhere] = PALE + (1 - PALE) * painted[nowhere]
    for mark, colour in colour_of.items():
        here = masks[marks == mark].any(axis=0) & (covered == 1)
        weight = min(FAINT, FILL[mark]) if faint else FILL[mark]
        painted[here] = weight * np.array(to_rgb(colour)) + (1 - weight) * painted[here]
    draw_picture(ax, painted, _said_of(masks, marks, decision))
    slim = min(1.0, (MANY / len(masks)) ** 0.5)
    for mark in (0, -1, 1):  # those that stand out lie on top
        lines = [line for one in masks[marks == mark] for line in outline(one)]
        colour = colour_of.get(mark, "white") if several.any() else "white"
        draw_lines(ax, lines, colour, slim * WIDTH[mark], faint=faint)
    handles: list[Any] = []
    if isinstance(regions.against, np.ndarray):
        draw_lines(ax, outline(enlarged(regions.against, picture.shape[:2])), "black", WIDTH[1], faint=False)
        handles.append(Line2D([], [], color="black", linewidth=WIDTH[1], label="the other region"))
    for where, colour, label in (
        (nowhere, "white", "in no region"),
        (several, GREY, "in several regions, not coloured"),
    ):
        if where.any():
            label = f"{label}: {percent(where.mean(), 0)}"
            handles.append(Patch(facecolor=colour, edgecolor="#999999", label=label))
    return handles


def draw_letters(ax: Axes, picture: np.ndarray, regions: Regions, letters: Mapping[str, int]) -> None:
    """Draw letters inside their regions of one input, outside of the others where that is possible."""
    from matplotlib.patheffects import withStroke

    masks = _masks_over(picture, regions)
    alone = masks.sum(axis=0) == 1
    look: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": 9, "weight": "bold"}
    for letter, region in letters.items():
        own = masks[region] & alone
        row, column = inner_point(own if own.any() else masks[region])
        ax.text(column, row, letter, path_effects=[withStroke(linewidth=2.4, foreground="white")], **look)


def _masks_over(picture: np.ndarray, regions: Regions) -> np.ndarray:
    """Masks of one input at the size of its picture, bool (regions, height, width)."""
    return np.stack([enlarged(mask, picture.shape[:2]) for mask in regions.as_masks()])


def _said_of(masks: np.ndarray, marks: np.ndarray, decision: Decision | None) -> str:
    """How many regions lie above the threshold, and how much of the picture they are."""
    of_all = counted(len(masks), "region")
    if decision is None:
        return f"{of_all}\n"
    above = masks[marks == 1]
    counts = textwrap.fill(f"{decision.kinds[1]}: {len(above)} of {of_all}", 64)
    return f"{counts}\n{percent(above.any(axis=0).mean(), 0)} of the picture"


def draw_lines(ax: Axes, lines: list[np.ndarray], colour: str, width: float, *, faint: bool) -> None:
    """Lines (points, x and y) with a dark and a light edge, so that they are seen over everything."""
    from matplotlib.collections import LineCollection

    light = [] if colour == "white" else [("white", width + 1.2, 1.0)]
    for painted, thickness, opacity in (("black", width + 2.2 * len(light) + 1.0, 0.5), *light, (colour, width, 1.0)):
        look: dict[str, Any] = {"colors": painted, "linewidths": thickness, "joinstyle": "round"}
        ax.add_collection(LineCollection(lines, alpha=opacity * (0.5 if faint else 1.0), **look), autolim=False)
