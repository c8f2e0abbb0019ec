"""What is asked of a page: each result with one input or as a table, its heading, its regions, and its kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metfa._base.provenance import printable
from metfa._base.validation import shown
from metfa.plot.kinds import Kind
from metfa.report._compared import heading_of
from metfa.report._populations import heading_of_population
from metfa.report._regions import pooled_beside
from metfa.report._tables import heading_of_table, is_table
from metfa.results.attribution_parts import AttributionParts
from metfa.results.sample import AttributionSample
from metfa.segmentation.explanation import ContextExplanation
from metfa.text.reading import harmless_text

__all__ = ["Result", "Results", "Shown", "n_inputs", "numbered", "one_by_one"]

Result = AttributionSample | ContextExplanation
Results = Result | AttributionParts


@dataclass(frozen=True)
class Shown:
    """A result with one input, or a table; the regions beside it, and what its maps are of, where somebody said so."""

    result: Result
    pooled: AttributionSample | None
    kind: Kind | None


def one_by_one(results: Any, regions: Any, kind: Any) -> dict[str, Shown]:
    """Results with one input each, or tables, by their headings, and the regions beside them."""
    if isinstance(results, Results):
        results = [results]
    if not isinstance(results, Mapping | Sequence) or isinstance(results, str):
        raise TypeError(
            "`results` must be an AttributionSample, an AttributionParts, a ContextExplanation, or a sequence or "
            f"mapping of them, got {shown(results)}"
        )
    named = results.items() if isinstance(results, Mapping) else ((None, result) for result in results)
    found, kind_for = [], _kind_for(results, kind)
    for given, result in named:
        if not isinstance(result, Results):
            raise TypeError(
                "`results` must be AttributionSample, AttributionParts or ContextExplanation, got "
                f"{type(result).__name__}: what `metfa.explain`, `metfa.load` and "
                "`metfa.segmentation.explain_context` return"
            )
        asked = regions
        if isinstance(regions, Mapping):
            asked = (lambda _: None) if (found_by_name := regions.get(given)) is None else found_by_name
        own = kind_for(given)
        batch = 1 if isinstance(result, ContextExplanation) else len(result.target)
        for index, one in _pieces(result, batch, tables=regions is None and own is None):
            name = (_name(one) if given is None else harmless_text(printable(str(given)))) or "unnamed"
            part = one.part if isinstance(one, AttributionSample) else None
            where = [*([] if index is None else [f"input {index}"]), *([] if part is None else [part])]
            its_kind = own.get(one.provenance.get("part")) if isinstance(own, Mapping) else own
            here = Shown(one, pooled_beside(one, asked, index or 0, batch), its_kind)
            found.append((", ".join([name, *map(harmless_text, where)]), here))
    if not found:
        raise ValueError("`results` must hold at least one, got none")
    fixed = not (regions is None or callable(regions) or isinstance(regions, Mapping))
    if fixed and not any(here.pooled for _, here in found):
        raise ValueError(
            "`regions` are shown beside results of single features, and the features of all `results` are regions "
            "already: leave `regions` out"
        )
    return numbered(found)


def _kind_for(results: Any, kind: Any) -> Callable[[Any], Kind | None]:
    """What the maps of a result are of, by its key in a mapping of results."""
    alone = len(results) == 1 and not isinstance(results, Mapping) and isinstance(results[0], AttributionParts)
    if not isinstance(kind, Mapping) or alone:
        return lambda _: kind
    if not isinstance(results, Mapping):
        raise TypeError("`kind` may be a mapping where `results` is one, with some of its keys: give one kind for all")
    strange = [key for key in kind if key not in results]
    if strange:
        raise ValueError(f"`kind` must have keys of `results`, {', '.join(map(repr, results))}, got {strange[0]!r}")
    return kind.get


def _pieces(result: Results, batch: int, *, tables: bool) -> list[tuple[int | None, Result]]:
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


def n_inputs(result: Result) -> int:
    return len(result.target) if isinstance(result, AttributionSample) else 1


def numbered(named: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Results by their headings; equal headings get a number: "cat", "cat (2)"."""
    found: dict[str, Any] = {}
    for name, result in named:
        candidates = (name if k == 1 else f"{name} ({k})" for k in itertools.count(1))
        found[next(candidate for candidate in candidates if candidate not in found)] = result
    return found


def _name(result: Result) -> str:
    """Heading of a result with one input or of a table: its explainer, and the class that was explained."""
    if isinstance(result, AttributionSample) and n_inputs(result) > 1:
        return heading_of_table(result)
    if isinstance(result, AttributionSample) and result.pair is not None:
        return heading_of(result)
    explainer = str(result.provenance.get("explainer") or "explanation").partition("(")[0]
    if isinstance(result, AttributionSample) and result.population is not None:
        explainer = heading_of_population(result, explainer)
    target = result.target if isinstance(result, ContextExplanation) else result.target[0]
    return harmless_text(printable(explainer if target is None else f"{explainer}, class {target}"))
