"""Spans of an answer: its sentences, or ranges of characters, and the tokens of each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from metfa._base.validation import one_of, positive_int, shown
from metfa.text.pieces import ends_of

__all__ = ["checked_spans", "tokens_of_spans"]


def checked_spans(spans: Any, answer: str) -> tuple[tuple[int, int], ...]:
    """Ranges of characters of an answer; raises for anything else."""
    if isinstance(spans, str):
        one_of(spans, "spans", ("sentences",))
        return tuple(pairwise([0, *ends_of(answer, "sentences")]))
    checked = []
    for one in spans:
        if not isinstance(one, tuple | list) or len(one) != 2:
            raise TypeError(f"`spans` must be 'sentences' or ranges of characters (start, stop), got {shown(one)}")
        start, stop = (positive_int(end, "spans", 0, len(answer)) for end in one)
        if start >= stop:
            raise ValueError(f"`spans` must not be empty, got ({start}, {stop})")
        checked.append((start, stop))
    if not checked:
        raise ValueError("`spans` is empty: there is nothing to score")
    return tuple(checked)


def tokens_of_spans(tokenizer: Any, answer: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of tokens of each span: those whose last character lies in it."""
    if not getattr(tokenizer, "is_fast", False):
        raise TypeError("`spans` need a fast tokeniser, which knows where its tokens come from")
    offsets = tokenizer(answer, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    found = []
    for start, stop in spans:
        inside = [place for place, (_, end) in enumerate(offsets) if start < end <= stop]
        if not inside:
            raise ValueError(f"`spans`: {answer[start:stop]!r:.60} has no tokens of its own")
        found.append((inside[0], inside[-1] + 1))
    return found
