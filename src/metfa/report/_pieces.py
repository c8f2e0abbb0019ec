"""What a page shows of a result: a table as a whole, else each input, and each part of several inputs."""

from __future__ import annotations

from metfa._base.provenance import printable
from metfa.report._compared import heading_of
from metfa.report._populations import heading_of_population
from metfa.report._tables import heading_of_table, is_table
from metfa.results.attribution_parts import AttributionParts
from metfa.results.sample import AttributionSample
from metfa.segmentation.explanation import ContextExplanation
from metfa.text.reading import harmless_text

__all__ = ["Result", "Results", "heading_of_piece", "pieces_of"]

Result = AttributionSample | ContextExplanation
Results = Result | AttributionParts


def pieces_of(result: Results, batch: int, *, tables: bool) -> list[tuple[int | None, Result]]:
    """What is shown of a result: `tables` as a whole, else each input by its number, and each part of it."""
    several = list(result.values()) if isinstance(result, AttributionParts) else [result]
    whole = [place for place, one in enumerate(several) if tables and is_table(one)]
    found: list[tuple[int | None, Result]] = [(None, several[place]) for place in whole]
    for index in range(batch):
        for place, one in enumerate(several):
            if place not in whole:
                single = one.of_input(index) if isinstance(one, AttributionSample) else one
                found.append((index if batch > 1 else None, single))
    return found


def heading_of_piece(result: Result) -> str:
    """Heading of a result with one input or of a table: its explainer, and the class that was explained."""
    if isinstance(result, AttributionSample) and len(result.target) > 1:
        return heading_of_table(result)
    if isinstance(result, AttributionSample) and result.pair is not None:
        return heading_of(result)
    explainer = str(result.provenance.get("explainer") or "explanation").partition("(")[0]
    if isinstance(result, AttributionSample) and result.population is not None:
        explainer = heading_of_population(result, explainer)
    target = result.target if isinstance(result, ContextExplanation) else result.target[0]
    return harmless_text(printable(explainer if target is None else f"{explainer}, class {target}"))
