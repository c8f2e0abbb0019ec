"""The figure of an attack on an explanation: image and maps before and after, and the course of the attack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.provenance import method_of
from metfa._base.validation import positive_int
from metfa.attacks.result import AttackResult, Measured, distance
from metfa.plot._canvas import new_figure
from metfa.plot._headings import draw_heading
from metfa.plot.images import Scale, common_scale, draw_colour_bar, draw_picture, draw_scores, size_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from metfa.plot.settings import InFigure

__all__ = ["attack"]

KNOWS = {
    "nothing": "the attacker knows no defence",
    "defence": "the attacker knows the defence",
    "seed": "the attacker knows the defence and the noise that it is measured under",
}


def attack(result: AttackResult, *, index: int = 0, title: str | None = None, fig: InFigure | None = None) -> InFigure:
    """Draw one image of an attack: clean above, attacked below, the maps of both, and the course of the attack.

    All maps share one colour scale. Distances are mean absolute differences from the target map.

    Parameters
    ----------
    result : AttackResult
        Result of `metfa.attacks.manipulate` or `metfa.attacks.targeted`, with maps (height, width).
    index : int
        Which image of the batch.
    title : str, optional
        Heading; shown as plain text. None: what was attacked, and the outcome.
    fig : matplotlib.figure.Figure or SubFigure, optional
        An empty figure with ``layout="constrained"``, or a subfigure of one, to draw into: it is returned.

    Returns
    -------
    matplotlib.figure.Figure, or `fig`
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it.
    """
    with needs_extra("a figure"):
        import matplotlib.figure  # noqa: F401

    if not isinstance(result, AttackResult):
        raise TypeError(f"`result` must be an AttackResult, got {type(result).__name__}")
    index = positive_int(index, "index", minimum=0)
    if index >= len(result):
        raise ValueError(f"`index` must lie in 0..{len(result) - 1}, got {index}")
    if result.target_map.ndim != 3:
        raise ValueError(f"`result` must be of maps (height, width) to be drawn, got {result.target_map.shape[1:]}")
    defended = result.clean.defended is not None
    columns = 5 if defended else 4
    shape = result.clean.inputs.shape[2:]
    _, tall = size_of(*shape)
    canvas = new_figure((2.6 * columns, 0.75 * tall), "compressed", fig)
    axes = canvas.subplots(2, columns)
    maps = [result.target_map[index]]
    maps += [part.maps[index] for part in (result.clean, result.adversarial)]
    maps += [part.defended[index] for part in (result.clean, result.adversarial) if part.defended is not None]
    scale = common_scale([np.asarray(scores, np.float64) for scores in maps])
    for row, (name, part) in enumerate((("clean", result.clean), ("attacked", result.adversarial))):
        _draw_row(axes[row], result, part, name, index, scale)
    wanted = result.target_map[index]
    draw_scores(axes[0, 1], _below(_picture(result.clean, index), wanted), wanted, "target map m1\nto be drawn", scale)
    _draw_change(axes[1, 1], result, index)
    _draw_course(axes[:, -1], result, index)
    draw_colour_bar(canvas, axes[:, : columns - 1].ravel(), scale)
    draw_heading(canvas, _heading(result, index) if title is None else title, 110)
    return canvas


def _draw_row(axes: np.ndarray, result: AttackResult, part: Measured, name: str, index: int, scale: Scale) -> None:
    picture = _picture(part, index)
    draw_picture(axes[0], picture, f"{name}\npredicted: class {part.predictions[index]}")
    far = distance(part.maps, result.target_map)[index]
    label = "m2" if name == "attacked" and result.knows == "nothing" else f"map for class {result.explained[index]}"
    draw_scores(axes[2], _below(picture, part.maps[index]), part.maps[index], f"{label}\n{far:.4f} from m1", scale)
    if part.defended is not None:
        far = distance(part.defended, result.target_map)[index]
        label = {"nothing": "m3, smoothed"}.get(result.knows, "m4, smoothed") if name == "attacked" else "smoothed"
        draw_scores(
            axes[3], _below(picture, part.defended[index]), part.defended[index], f"{label}\n{far:.4f} from m1", scale
        )


def _picture(part: Measured, index: int) -> np.ndarray:
    image = np.asarray(part.inputs[index], np.float64)
    return np.moveaxis(image, 0, -1) if len(image) == 3 else image.mean(axis=0)


def _below(picture: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Background of a map: the picture, or white if the map has another size."""
    return picture if picture.shape[:2] == scores.shape else np.ones(scores.shape)


def _draw_change(ax: Axes, result: AttackResult, index: int) -> None:
    change = result.adversarial.inputs[index].astype(np.float64) - result.clean.inputs[index]
    largest = float(np.abs(change).max())
    shown = 0.5 + change / (2 * largest) if largest else np.full_like(change, 0.5)
    shown = np.moveaxis(shown, 0, -1) if len(shown) == 3 else shown.mean(axis=0)
    allowed = "" if result.epsilon is None else f", {255 * result.epsilon:.1f} allowed"
    draw_picture(ax, shown, f"change (grey: none), at most\n{255 * largest:.1f} levels of 255{allowed}")


def _draw_course(axes: np.ndarray, result: AttackResult, index: int) -> None:
    above, below = axes
    terms = (
        ("prediction", "#b2182b", "--"),
        ("map", "#2166ac", "-"),
        ("defence", "#1b7837", "-"),
        ("loss", "#444444", ":"),
    )
    for name, colour, style in terms:
        for start, values in _restarts(result, name, index):
            values = np.where(values > 0, values, np.nan)
            label = f"{name}, weighted sum" if name == "loss" else name
            above.plot(start + np.arange(len(values)), values, style, color=colour, linewidth=1, label=label)
    above.set_yscale("log")
    above.set_ylim(bottom=max(above.get_ylim()[0], 1e-4 * above.get_ylim()[1]))
    above.set_title("terms of the loss", fontsize="medium")
    for name, clean, colour in (("distance", "clean", "#2166ac"), ("distance defended", "clean defended", "#1b7837")):
        label = "smoothed map" if "defended" in name else "single map"
        for start, values in _restarts(result, name, index):
            steps = np.flatnonzero(np.isfinite(values))
            marker = "." if len(steps) < 30 else None
            below.plot(start + steps, values[steps], color=colour, linewidth=1, marker=marker, label=label)
        if name in result.curves:
            before = result.distances[clean][index]
            below.axhline(before, color=colour, linestyle=":", linewidth=1, label=f"{label}, clean image")
    below.set_title("distance to the target map", fontsize="medium")
    below.set_ylim(bottom=0)
    for ax in axes:
        ax.set_xlabel("step", fontsize="small")
        ax.tick_params(labelsize="small")
        ax.spines[["top", "right"]].set_visible(False)
        handles = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))  # one of each name
        if handles:
            ax.legend(handles.values(), handles.keys(), frameon=True, framealpha=0.7, fontsize="x-small")


def _restarts(result: AttackResult, name: str, index: int) -> list[tuple[int, np.ndarray]]:
    """First step and values of each restart, for one term and one image."""
    curve = result.curves.get(name)
    if curve is None:
        return []
    return [(restart * curve.shape[1], curve[restart, :, index]) for restart in range(len(curve))]


def _heading(result: AttackResult, index: int) -> str:
    explainer = method_of(result.provenance.get("explainer", "explainer"))
    outcome = "succeeded" if result.success[index] else "failed"
    knows = "" if result.clean.defended is None else f"; {KNOWS[result.knows]}"
    return f"{result.kind} of {explainer}: {outcome}{knows}"
