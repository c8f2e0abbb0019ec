"""A table of context explanations for each class: how much context is needed, and is it enough?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from metfa import noise as noises
from metfa._base.class_names import class_name
from metfa._base.lazy import needs_extra
from metfa._base.percents import percent
from metfa._base.tables import aligned, escaped
from metfa._base.validation import as_list, as_names
from metfa.calls.called import Called
from metfa.calls.hidden import Baseline
from metfa.metrics.robustness import robust
from metfa.segmentation.context_metrics import context_faithfulness
from metfa.segmentation.explanation import ContextExplanation, check_threshold
from metfa.stats.student import half_width, ratio_of_means

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ClassContext", "ContextTable", "context_table"]


@dataclass(frozen=True)
class ClassContext:
    """The row of one class: means over its objects, and ratios of means with their standard errors over objects.

    Attributes
    ----------
    name : str
        Name of the class.
    n : int
        Number of objects.
    object_pixels : float
        Mean size of an object.
    vanilla_share, significant_share : float
        Mean share of the context that is marked, by the explanation of the clean image and by MeTFA's significance map.
    area_ratio, area_ratio_error : float
        Significant over vanilla context, in pixels. NaN if no vanilla explanation marks any.
    vanilla_faithfulness, faithfulness : float
        Mean m_f of both, under the table's noise.
    faithfulness_ratio, faithfulness_ratio_error : float
        Significant over vanilla; the error is NaN for a single object.
    """

    name: str
    n: int
    object_pixels: float
    vanilla_share: float
    significant_share: float
    area_ratio: float
    area_ratio_error: float
    vanilla_faithfulness: float
    faithfulness: float
    faithfulness_ratio: float
    faithfulness_ratio_error: float


@dataclass(frozen=True)
class ContextTable:
    """Rows of a table, one for each class; ``print`` shows it in Markdown, ratios ± their 95 % interval (Student's t).

    Attributes
    ----------
    rows : tuple of ClassContext
        In the order of the classes' indices.
    """

    rows: tuple[ClassContext, ...]

    def to_dataframe(self) -> pd.DataFrame:
        """The rows as a data frame; needs pandas."""
        with needs_extra("a data frame", "study"):
            import pandas as pd
        return pd.DataFrame([asdict(row) for row in self.rows], columns=[field.name for field in fields(ClassContext)])

    def __str__(self) -> str:
        heads = (
            "class",
            "objects",
            "pixels of an object",
            "context marked: vanilla",
            "significant",
            "area ratio",
            "m_f: vanilla",
            "significant",
            "m_f ratio",
        )
        lines = [
            (
                escaped(row.name),
                str(row.n),
                f"{row.object_pixels:,.0f}",
                percent(row.vanilla_share, 2),
                percent(row.significant_share, 2),
                _with_interval(row.area_ratio, row.area_ratio_error, row.n),
                f"{row.vanilla_faithfulness:.4f}",
                f"{row.faithfulness:.4f}",
                _with_interval(row.faithfulness_ratio, row.faithfulness_ratio_error, row.n),
            )
            for row in self.rows
        ]
        return "\n".join(aligned([heads, *lines]))


def _with_interval(ratio: float, error: float, n: int) -> str:
    """A ratio ± half the width of its 95 % interval, which a single object does not have."""
    return f"{ratio:.4f}" if n == 1 else f"{ratio:.4f} ± {half_width(error, n):.4f}"


def context_table(
    model: Any,
    explanations: Sequence[ContextExplanation],
    *,
    class_names: Sequence[str] | None = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    noise: Any = noises.Uniform(0.1, bounds=(0, 1)),  # noqa: B008 - settings alone
    n_outer: int = 10,
    rng: Any = 0,
    baseline: Baseline = "black",
) -> ContextTable:
    """Summary of explanations by class, as in the paper's table on context bias.

    Parameters
    ----------
    model : torch.nn.Module, callable or Called
        The explained segmentation network; a `metfa.Called` says how it is asked.
    explanations : sequence of ContextExplanation
        Explanations of any images and classes.
    class_names : sequence of str, optional
        Names of all classes of the model.
    threshold, alpha, correction
        As for `ContextExplanation.terms`; the same threshold cuts the vanilla explanation.
    noise, n_outer, rng
        Outer noise of the faithfulness (the paper's U(-0.1, 0.1)), its draws, and their seed. ``noise=None``: m_f of
        the clean image.
    baseline
        As for `context_faithfulness`.

    Returns
    -------
    ContextTable
    """
    if isinstance(explanations, ContextExplanation):
        raise TypeError(
            "`explanations` must be a sequence of ContextExplanation, got a single one: write `[explanation]`"
        )
    found = as_list(explanations, "explanations", "a list of ContextExplanation")
    for one in found:
        if not isinstance(one, ContextExplanation):
            raise TypeError(f"`explanations` must hold ContextExplanation, got {type(one).__name__}")
    if not found:
        raise ValueError("`explanations` must hold at least one, got none")
    if threshold is not None:
        check_threshold(threshold)
    _check_names(class_names, max(one.target for one in found))
    called = Called.of(model)
    metric: Any = context_faithfulness
    if noise is not None:
        metric = robust(context_faithfulness, noise=noise, n_outer=n_outer, rng=rng)
    device = next((parameter.device for parameter in getattr(called.model, "parameters", lambda: ())()), None)
    figures: dict[int, list[tuple[float, ...]]] = {}
    for one in found:
        image = torch.as_tensor(np.array(one.sample.inputs), device=device)
        marked = [one.above(threshold), one.significant(threshold, alpha=alpha, correction=correction)]
        faithful = [
            float(metric(called, image, pixels, one.target, region=one.region, baseline=baseline).score[0])
            for pixels in marked
        ]
        areas = [float(pixels.sum()) for pixels in marked]
        figures.setdefault(one.target, []).append((one.region.sum(), (~one.region).sum(), *areas, *faithful))
    return ContextTable(
        tuple(_row(class_name(target, class_names), np.array(rows)) for target, rows in sorted(figures.items()))
    )


def _check_names(class_names: Sequence[str] | None, highest: int) -> None:
    if class_names is None:
        return
    names = as_names(class_names, "class_names")
    if len(names) <= highest:
        raise ValueError(
            f"`class_names` must name all classes of the model, got {len(names)} names, and an explanation of "
            f"class {highest}"
        )


def _row(name: str, figures: np.ndarray) -> ClassContext:
    pixels, outside, vanilla, significant, m_vanilla, m_significant = figures.T
    area, area_error = ratio_of_means(significant, vanilla)
    ratio, ratio_error = ratio_of_means(m_significant, m_vanilla)
    return ClassContext(
        name=name,
        n=len(figures),
        object_pixels=float(pixels.mean()),
        vanilla_share=float((vanilla / outside).mean()),
        significant_share=float((significant / outside).mean()),
        area_ratio=area,
        area_ratio_error=area_error,
        vanilla_faithfulness=float(m_vanilla.mean()),
        faithfulness=float(m_significant.mean()),
        faithfulness_ratio=ratio,
        faithfulness_ratio_error=ratio_error,
    )
