"""Runs from before the library chose the memory layout of a model's inputs: their descriptions, and which it was."""

from __future__ import annotations

from typing import Any

from metfa._base.provenance import describe

__all__ = ["AS_GIVEN", "CHANNELS_LAST", "layout_of", "same_explainer"]

AS_GIVEN, CHANNELS_LAST = "as given", "channels last"  # layouts as results record them
NOW, BEFORE = "fast=None, memory_format=", "autocast=None, memory_format="
EARLIER = (  # words now, those that stood in their place, and what they meant
    (f"{NOW}'auto')", f"{BEFORE}None)", AS_GIVEN),
    (f"{NOW}'auto')", f"{BEFORE}torch.channels_last)", CHANNELS_LAST),
    (NOW, BEFORE, AS_GIVEN),  # the caller names the layout
)


def layout_of(kept: dict[str, Any], explainer: Any) -> tuple[str | None, Any]:
    """The layout that a description of a run records, None for none; and its explainer, described as there or as now.

    A run that records no layout is one of before: batches were as given unless its words say more.
    """
    described = describe(explainer)
    if "layout" in kept:
        return kept["layout"] if isinstance(kept["layout"], str) else None, described
    for now, before, layout in EARLIER:
        if describe(explainer, instead=(now, before)) == kept.get("explainer"):
            return layout, kept["explainer"]
    return AS_GIVEN, described


def same_explainer(one: Any, other: Any) -> bool:
    """Whether two descriptions mean the same explainer, in whatever layout its model was asked."""
    return one == other or _now(one) == _now(other)


def _now(described: Any) -> str:
    text = str(described)
    for now, before, _ in EARLIER[:2]:
        text = text.replace(before, now)
    return text
