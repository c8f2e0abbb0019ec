"""The parts of a result of several inputs, each drawn as what it is, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from metfa._base.lazy import needs_extra
from metfa._base.palettes import DEFAULT_PALETTE
from metfa._base.percents import counted
from metfa._base.provenance import printable
from metfa._base.validation import check_kind, shown
from metfa.plot._canvas import new_figure, one_of_several
from metfa.plot._choice import drawing_of
from metfa.plot._headings import draw_heading
from metfa.plot.kinds import Kind
from metfa.results.attribution_parts import AttributionParts
from metfa.results.cautions import FLIPS_FROM

if TYPE_CHECKING:
    from metfa.plot.settings import InFigure

__all__ = ["side_by_side"]

GAP = 0.03  # between parts, of the mean width of a part


def side_by_side(
    parts: AttributionParts,
    *,
    index: int = 0,
    title: str | None = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
    confidence_level: float = 0.95,
    palette: str = DEFAULT_PALETTE,
    flips_from: float = FLIPS_FROM,
    kind: Mapping[str | int, Kind] | None = None,
    fig: InFigure | None = None,
) -> InFigure:
    """Draw the parts of one input side by side: maps of an image, a series or a volume, bars of a table.

    Each part has a threshold, a scale and a legend of its own, and its shares are over its own features. What a single
    part can be drawn with besides, such as ``result["table"].plot(max_features=40)``, is for a figure of that part.

    Parameters
    ----------
    parts : AttributionParts
        What `metfa.explain` returns for an explainer of several inputs.
    index : int
        Which input of the batch.
    title : str, optional
        Heading of the whole figure; shown as plain text. Each part has its name as heading.
    threshold, alpha, correction, split
        As for `AttributionParts.terms`: the threshold may be a dict with one for some of the parts.
    confidence_level, palette, flips_from
        As for `metfa.plot.figure`.
    kind : dict, optional
        What the maps of some parts are of, by their names, such as ``{"ecg": metfa.plot.Series(sampling_rate=500)}``.
    fig : matplotlib.figure.Figure or SubFigure, optional
        An empty figure with ``layout="constrained"``, or a subfigure of one, to draw into: it is returned.

    Returns
    -------
    matplotlib.figure.Figure, or `fig`
        Not registered with pyplot: ``figure.savefig("figure.png")`` writes it. Its parts are its ``subfigs``.

    Raises
    ------
    ValueError
        If a part cannot be drawn, such as a map of channels, naming the part; or an argument is out of range. Too few
        samples are no error: the panels say so.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> explainer = lambda inputs, target: {"image": inputs["image"], "table": inputs["table"] - 1}
    >>> inputs = {"image": 10 * np.eye(8)[None], "table": np.ones((1, 3))}
    >>> noise = {"image": metfa.noise.Uniform(0.1), "table": metfa.noise.Gaussian(0.1)}
    >>> result = metfa.explain(explainer, inputs, 0, noise=noise, n_samples=20, rng=0)
    >>> len(metfa.plot.side_by_side(result).subfigs)
    2
    """
    with needs_extra("a figure"):
        import matplotlib.figure  # noqa: F401

    check_kind(parts, "parts", AttributionParts, "`metfa.explain` with an explainer of several inputs")
    thresholds, kinds = parts.threshold_of_each(threshold), _kinds(kind, parts)
    canvas = new_figure((1, 1), "constrained", fig)
    grid = canvas.add_gridspec(1, len(parts), wspace=GAP)
    sizes: list[tuple[float, float]] = []
    for place, (name, part) in enumerate(parts.items()):
        with one_of_several(canvas.add_subfigure(grid[0, place]), sizes):
            try:
                drawing_of(part, kinds.get(name))(
                    part,
                    index=index,
                    title=f"{printable(str(name))}: {counted(part.n_features, 'feature')}",
                    threshold=thresholds.get(name),
                    alpha=alpha,
                    correction=correction,
                    split=split,
                    confidence_level=confidence_level,
                    palette=palette,
                    flips_from=flips_from,
                )
            except ValueError as error:
                raise ValueError(f"part {name!r}: {error}") from error
    widths, heights = zip(*sizes, strict=True)
    grid.set_width_ratios(widths)
    if fig is None:
        canvas.set_size_inches(sum(widths), max(heights))
    draw_heading(canvas, title, 160)
    return canvas


def _kinds(kind: Any, parts: AttributionParts) -> dict[str | int, Kind]:
    """What the maps of some parts are of, with names that there are."""
    if kind is not None and not isinstance(kind, Mapping):
        raise TypeError(
            f"`kind` must be a dict with one for some of the parts, got {shown(kind)}: write "
            f"`kind={{{next(iter(parts))!r}: ...}}`"
        )
    unknown = [name for name in kind or () if name not in parts]
    if unknown:
        raise ValueError(f"`kind` has {unknown[0]!r:.40}, which is no part: there are {', '.join(map(repr, parts))}")
    return dict(kind or {})
