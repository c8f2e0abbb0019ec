"""Headings of results: the explainer and the class that was explained, where nobody gave a name."""

from __future__ import annotations

from typing import Any

from metfa._base.provenance import method_of, printable
from metfa.report._compared import heading_of
from metfa.report._populations import heading_of_population
from metfa.report._tables import heading_of_table
from metfa.results.sample import AttributionSample
from metfa.segmentation.explanation import ContextExplanation
from metfa.text.answers.answered import is_answer
from metfa.text.reading import harmless_text

__all__ = ["heading_of_result"]


def heading_of_result(result: AttributionSample | ContextExplanation) -> str:
    """Heading of a result with one input or of a table: its explainer, and the class that was explained."""
    if is_answer(result):
        return "Sources of the answer"
    if isinstance(result, AttributionSample) and len(result.target) > 1:
        return heading_of_table(result)
    if isinstance(result, AttributionSample) and result.pair is not None:
        return heading_of(result)
    explainer = method_of(result.provenance.get("explainer"))
    if isinstance(result, AttributionSample) and result.population is not None:
        explainer = heading_of_population(result, explainer)
    target: Any = result.target if isinstance(result, ContextExplanation) else next(iter(result.target))
    what = result.target_noun if isinstance(result, AttributionSample) else "class"
    return harmless_text(printable(explainer if target is None else f"{explainer}, {what} {target}"))
