"""What is asked of a page: each result with one input or as a table, its heading, its regions, and its kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metfa._base.provenance import printable
from metfa._base.validation import shown
from metfa.plot.kinds import Kind
from metfa.report._headings import heading_of_result
from metfa.report._pieces import Result, Results, pieces_of
from metfa.report._regions import pooled_beside
from metfa.results.attribution_parts import AttributionParts
from metfa.results.cautions import named_so
from metfa.results.sample import AttributionSample
from metfa.segmentation.explanation import ContextExplanation
from metfa.text.reading import harmless_text

__all__ = ["Shown", "n_inputs", "numbered", "one_by_one"]


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
        if isinstance(own, Mapping):
            _check_parts(own, result)
        batch = n_inputs(result)
        for index, one in pieces_of(result, batch, tables=regions is None and own is None):
            name = (heading_of_result(one) if given is None else harmless_text(printable(str(given)))) or "unnamed"
            where = []
            if index is not None and isinstance(one, AttributionSample):
                where = [f"input {index}{named_so(one.input_names[0], index)}"]
            where += [one.part] if isinstance(one, AttributionSample) and one.part is not None else []
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


def _kind_for(results: Any, kind: Any) -> Callable[[Any], Any]:
    """What the maps of a result are of, by its key in a mapping of results."""
    of_parts = len(results) == 1 and not isinstance(results, Mapping) and isinstance(results[0], AttributionParts)
    if not isinstance(kind, Mapping) or of_parts:
        return lambda _: kind
    if not isinstance(results, Mapping):
        raise TypeError("`kind` may be a mapping where `results` is one, with some of its keys: give one kind for all")
    strange = [key for key in kind if key not in results]
    if strange:
        raise ValueError(f"`kind` must have keys of `results`, {', '.join(map(repr, results))}, got {strange[0]!r}")
    return kind.get


def _check_parts(kinds: Mapping[Any, Any], result: Results) -> None:
    """Raise unless these are the kinds of parts that there are."""
    if not isinstance(result, AttributionParts):
        raise TypeError(f"`kind` of one map must be a metfa.plot.Series, Volume or Image, got {shown(kinds)}")
    strange = [name for name in kinds if name not in result]
    if strange:
        raise ValueError(f"`kind` has {strange[0]!r:.40}, which is no part: there are {', '.join(map(repr, result))}")


def n_inputs(result: Results) -> int:
    return 1 if isinstance(result, ContextExplanation) else len(result.target)


def numbered(named: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Results by their headings; equal headings get a number: "cat", "cat (2)"."""
    found: dict[str, Any] = {}
    for name, result in named:
        candidates = (name if k == 1 else f"{name} ({k})" for k in itertools.count(1))
        found[next(candidate for candidate in candidates if candidate not in found)] = result
    return found
