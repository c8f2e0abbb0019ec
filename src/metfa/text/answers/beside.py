"""Other numbers beside those of an answer's sources: left out one by one, LRP, or somebody's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metfa._base.validation import shown
from metfa.results.sample import AttributionSample
from metfa.text.answers._asked_scorer import AskedScorer, check_scorer
from metfa.text.answers._sources import by_places, checked_sources, grouped, kept_sources
from metfa.text.answers.answered import is_answer

__all__ = ["leave_one_out", "put_beside"]


def leave_one_out(
    scorer: Callable[[list[list[str]]], Any],
    sources: Any,
    *,
    groups: Mapping[str, Sequence[Any]] | None = None,
) -> np.ndarray:
    """How far the score of an answer falls when one source alone is left out: n + 1 prompts, and no error bars.

    It says nothing about facts that are given twice.

    Parameters
    ----------
    scorer, sources, groups
        As for `metfa.text.explain_answer`.

    Returns
    -------
    ndarray, (answers, sources)
        float64, in the order of the features of `metfa.text.explain_answer`.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa.text import leave_one_out
    >>> def scorer(rows):
    ...     return np.array([2.0 * ("Paris" in " ".join(kept)) for kept in rows])
    >>> leave_one_out(scorer, ["Paris is large.", "It rained."])
    array([[2., 0.]])
    """
    row, names = checked_sources(sources)
    _, parts = grouped(None if groups is None else by_places(groups, names), len(row))
    masks = np.concatenate([np.ones((1, len(parts)), bool), ~np.eye(len(parts), dtype=bool)])
    check_scorer(scorer)
    kept = [kept_sources(row, parts, mask) for mask in masks]
    scores = AskedScorer(scorer, deterministic=False).scores(kept).reshape(len(masks), -1)
    return (scores[:1] - scores[1:]).T


def put_beside(found: AttributionSample, numbers: Mapping[str, Any]) -> AttributionSample:
    """The result of an answer with other numbers of its sources, which its views show beside its own.

    Parameters
    ----------
    found : AttributionSample
        Of `metfa.text.explain_answer`, with all its answers.
    numbers : dict of str -> array, (answers, sources)
        By their names, such as ``{"AttnLRP": metfa.text.source_relevance(scorer, sources)}``. They have no error bars,
        and scales of their own; no mark looks at them.

    Returns
    -------
    AttributionSample
        It is saved with them.
    """
    if not is_answer(found):
        raise TypeError(f"`found` must be a result of metfa.text.explain_answer, got {shown(found)}")
    places = [0 if target is None else target for target in found.target]
    if places != list(range(len(places))):
        raise ValueError(
            f"`found` must have all answers of its scorer, got those at {places}: put the numbers beside them before "
            "some are chosen"
        )
    if not isinstance(numbers, Mapping) or not all(isinstance(name, str) and name.strip() for name in numbers):
        raise TypeError(f"`numbers` must be a dict of names and arrays, got {shown(numbers)}")
    shape, kept = found.values.shape[1:], dict(found.provenance["answer"].get("beside") or {})
    for name, values in numbers.items():
        array = np.asarray(values, dtype=np.float64)
        if array.shape != shape or not np.isfinite(array).all():
            raise ValueError(
                f"`numbers`: {name!r} must be finite, a number for each answer and source {shape}, got {array.shape}"
            )
        kept[name] = array.tolist()
    facts = {**found.provenance["answer"], "beside": kept}
    return replace(found, provenance={**found.provenance, "answer": facts})
