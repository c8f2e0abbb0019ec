"""What an explainer says of its own results.

An explainer may have the attributes

- ``signed``, True if scores above 0 speak for the target and scores below 0 against it, False if 0 has no such meaning;
  without it, the scores of the samples decide;
- ``unit``, a whole score, see `metfa.Terms`;
- ``default_terms``, the `metfa.Terms` of its results where nothing else is given: with names for the marks, if these
  have a meaning of their own;
- ``notes``, a dict of short texts, which summaries of its results show (a noise may have it, too);
- ``n_forwards`` and ``forwards``, about how many rows it asks its model about for one map, and what it calls them, such
  as 1000 and "masks", for the progress that is shown;
- ``if_it_varies``, the warning where it gives another map for the same input and the same generators.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from metfa._base.validation import check_number
from metfa.calls.behind import owner_of
from metfa.calls.called import Called
from metfa.results.terms import Terms
from metfa.results.until import Until

__all__ = [
    "known_facts",
    "known_forwards",
    "known_inputs_within",
    "known_notes",
    "known_signed",
    "known_terms",
    "known_unit",
    "maps_are_draws",
    "with_own_threshold",
]


def known_signed(explainer: Any) -> bool | None:
    """Whether the explainer, or the one that it wraps, says that its scores are signed; None: it does not say."""
    signed = _said(explainer, "signed")
    return signed if isinstance(signed, bool) else None


def known_inputs_within(explainer: Any) -> int | None:
    """How many inputs lie within the maps of one row, along their first axis, such as the answers of one prompt.

    Rules look at each by itself. None for other explainers.
    """
    return getattr(explainer, "inputs_within", None)


def known_unit(explainer: Any) -> float | None:
    """What the explainer, or the one that it wraps, calls a whole score (see `metfa.Terms`); None: it does not say."""
    unit = _said(explainer, "unit")
    if unit is not None:
        check_number(unit, "explainer.unit", above=0)
    return None if unit is None else float(unit)


def known_terms(explainer: Any) -> Terms | None:
    """Default terms of the explainer's results, as it says itself; None for the usual ones."""
    terms = getattr(owner_of(explainer), "default_terms", None)
    return terms if isinstance(terms, Terms) else None


def known_notes(explainer: Any) -> list[list[str]]:
    """What summaries must say of the explainer's results, as it says itself: short names and texts, in order."""
    notes = getattr(owner_of(explainer), "notes", None)
    notes = [[str(name), str(text)] for name, text in notes.items()] if isinstance(notes, dict) else []
    fast = known_facts(explainer).get("fast")
    return notes if fast is None else [*notes, ["fast", fast]]


def known_facts(explainer: Any) -> dict[str, str]:
    """How the explainer has asked its model, as far as its `Called` knows: layout and copy."""
    called = _said(explainer, "called")
    return called.facts if isinstance(called, Called) else {}


def known_forwards(explainer: Any) -> tuple[int, str]:
    """About how many rows the explainer asks its model about for one map, and what it calls them; 1 if unknown."""
    n, noun = _said(explainer, "n_forwards"), _said(explainer, "forwards")
    return (n, noun) if type(n) is int and isinstance(noun, str) else (1, "maps")


def maps_are_draws(explainer: Any) -> bool:
    """Whether one map is a draw of effects: then a constant map says as much as any other (`Terms.of_effects`)."""
    terms = known_terms(explainer)
    return terms is not None and terms.of_effects


def with_own_threshold(rule: Any, explainer: Any) -> Any:
    """A rule of `Until` with the explainer's own threshold, where neither a threshold nor regions are given.

    Raises for intervals and smoothed maps of draws of effects, whose medians say nothing.
    """
    terms = known_terms(explainer)
    meaningless = [name for name in ("width", "change") if getattr(rule, name, None) is not None]
    if isinstance(rule, Until) and meaningless and maps_are_draws(explainer):
        raise ValueError(
            f"`{meaningless[0]}` of Until is about medians, and the median of draws of an effect says nothing: write "
            "metfa.Until(undecided=0.2) alone"
        )
    asks = isinstance(rule, Until) and rule.undecided is not None and rule.threshold is None and rule.over is None
    if not asks or terms is None or callable(terms.threshold):
        return rule
    return replace(rule, threshold=terms.threshold)


def _said(explainer: Any, name: str) -> Any:
    owner = owner_of(explainer)
    while not hasattr(owner, name) and hasattr(owner, "explainer"):
        owner = owner_of(owner.explainer)
    return getattr(owner, name, None)
