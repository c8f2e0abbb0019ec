"""An attack on a map: what one sees, what was changed, and what the explainer and the defence make of both."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._lazy import needs_extra
from metfa._validation import positive_int
from metfa.attacks.result import AttackResult
from metfa.plot._images import Scale, draw_colour_bar, draw_picture, draw_scores, size_of
from metfa.plot._palettes import LITERAL, SIGNED_SCORES, palette_named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["attack"]


def attack(result: AttackResult, *, index: int = 0, title: str | None = None, palette: str = "paper") -> Figure:
    """The clean image above the attacked one, with the change, the map to draw, and the maps of both.

    Maps share one colour scale. Each title says how far a map is from the one to draw, as the mean absolute difference.
    The change is shown about grey, at the strength at which its largest value is black or white.

    Parameters
    ----------
    result : AttackResult
        What `metfa.attacks.manipulate` or `metfa.attacks.targeted` returned.
    index : int
        Which image of the batch.
    title : str, optional
        Heading; shown as plain text.
    palette : {"paper", "colourblind"}
        Colours: the paper's, or a colour-blind-safe set.

    Returns
    -------
    matplotlib.figure.Figure
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it.
    """
    with needs_extra("a figure"):
        from matplotlib.figure import Figure

    if not isinstance(result, AttackResult):
        raise TypeError(f"`result` must be an AttackResult, got {type(result).__name__}")
    if positive_int(index, "index", minimum=0) >= len(result):
        raise ValueError(f"`index` must be below the number of images, {len(result)}, got {index}")
    if result.target_map.ndim != 3:
        raise ValueError(f"maps must be (height, width) to be drawn, got {result.target_map.shape[1:]}")
    clean, adversarial = (_picture(one.inputs[index]) for one in (result.clean, result.adversarial))
    rows: list[list[tuple[str, Any, Any]]] = [
        [("map to draw", clean, result.target_map[index])],
        [(f"change\nat most {result.budget()['linf'][index]:.3g}", _change(clean, adversarial), None)],
    ]
    found = result.distances
    for row, (name, measured, picture) in enumerate(
        (("clean", result.clean, clean), ("adversarial", result.adversarial, adversarial))
    ):
        heading = f"{name} image\npredicted: class {measured.predictions[index]}"
        rows[row].insert(0, (heading, picture, None))
        rows[row].append((f"explanation\ndistance {found[name][index]:.4f}", picture, measured.maps[index]))
        if measured.defended is not None:
            distance = found[f"{name} defended"][index]
            rows[row].append((f"defended\ndistance {distance:.4f}", picture, measured.defended[index]))
    columns = len(rows[0])
    width, height = size_of(*result.target_map.shape[1:])
    fig = Figure(figsize=(width * (columns + 0.3) / 3.3, height), layout="compressed")
    axes = fig.subplots(2, columns)
    maps = [scores for row in rows for _, _, scores in row if scores is not None]
    scale = _scale(maps, palette_named(palette).scores)
    for row, panels in zip(axes, rows, strict=True):
        for ax, (name, picture, scores) in zip(row, panels, strict=True):
            if scores is None:
                draw_picture(ax, picture, name)
            else:
                below = picture if picture.shape[:2] == scores.shape else np.ones(scores.shape)
                draw_scores(ax, below, scores.astype(np.float64), name, scale)
    draw_colour_bar(fig, axes.ravel(), scale)
    verdict = "succeeded" if result.success[index] else "failed"
    by = {
        "nothing": "",
        "defence": " by an attacker who knows the defence",
        "seed": " by an attacker who knows the defence and its noise",
    }
    kind = "targeted attack" if result.kind == "targeted" else result.kind
    heading = f"{kind}{by[result.knows]}: {verdict}"
    fig.suptitle(textwrap.fill(title or heading, 90), fontsize="large", **LITERAL)
    return fig


def _picture(image: np.ndarray) -> np.ndarray:
    image = np.asarray(image, np.float64)
    if image.ndim != 3 or image.shape[0] not in (1, 3):
        raise ValueError(f"images must have 1 or 3 channels to be drawn, got {image.shape}")
    return np.moveaxis(image, 0, -1) if image.shape[0] == 3 else image[0]


def _change(clean: np.ndarray, adversarial: np.ndarray) -> np.ndarray:
    change = adversarial - clean
    return 0.5 + 0.5 * change / (np.abs(change).max() or 1.0)


def _scale(maps: list[np.ndarray], colour_map: str) -> Scale:
    low, high = min(float(one.min()) for one in maps), max(float(one.max()) for one in maps)
    if low >= 0:
        return Scale(0.0, high or 1.0, colour_map, cut=False)
    return Scale(-max(-low, high), max(-low, high), SIGNED_SCORES, cut=False)
