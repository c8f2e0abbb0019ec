"""What a page shows of a result: a table as a whole, else each input, and each part of several inputs."""

from __future__ import annotations

from metfa.report._tables import is_table
from metfa.results.attribution_parts import AttributionParts
from metfa.results.sample import AttributionSample
from metfa.segmentation.explanation import ContextExplanation
from metfa.text.answers.answered import is_answer

__all__ = ["Result", "Results", "pieces_of"]

Result = AttributionSample | ContextExplanation
Results = Result | AttributionParts


def pieces_of(result: Results, batch: int, *, tables: bool) -> list[tuple[int | None, Result]]:
    """What is shown: answers and `tables` as a whole, else each input by its number, and each part of it."""
    several = list(result.values()) if isinstance(result, AttributionParts) else [result]
    whole = [place for place, one in enumerate(several) if is_answer(one) or (tables and is_table(one))]
    found: list[tuple[int | None, Result]] = [(None, several[place]) for place in whole]
    for index in range(batch):
        for place, one in enumerate(several):
            if place not in whole:
                single = one.of_input(index) if isinstance(one, AttributionSample) else one
                found.append((index if batch > 1 else None, single))
    return found
