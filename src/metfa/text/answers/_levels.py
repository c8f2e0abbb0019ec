"""Documents cut finer and finer, only where it was asked for, and a scorer that still reads whole documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

from metfa._base.validation import check_function, one_of, shown
from metfa.text.pieces import KINDS, cut_into

__all__ = ["OfPieces", "Piece", "checked_levels", "cut_finer", "keys_of"]

Cut = str | Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class Piece:
    """A part of a document, from one letter to another, with a name; `parent` is that of the part it was cut from."""

    document: int
    start: int
    stop: int
    name: str
    parent: str | None = None


@dataclass(frozen=True)
class OfPieces:
    """A scorer of documents as one of pieces: a document is what is left of it, and is dropped with its last piece.

    Its rows hold keys (`keys_of`) of the pieces that are kept.
    """

    scorer: Any
    documents: tuple[str, ...] = field(repr=False)
    pieces: tuple[Piece, ...] = field(repr=False)

    def __getattr__(self, name: str) -> Any:
        """What views know of the scorer itself: its answers, spans and names, its delta, what its score is."""
        if name in ("answers", "spans", "names", "delta", "about", "deterministic", "rounding", "rows_apart"):
            return getattr(self.scorer, name)
        raise AttributeError(name)

    def __call__(self, rows: Sequence[Sequence[str]]) -> Any:
        """Scores of the documents that are left."""
        return self.scorer([self._left(int(key.partition(":")[0]) for key in row) for row in rows])

    def _left(self, kept: Iterable[int]) -> list[str]:
        found: dict[int, list[Piece]] = {}
        for place in sorted(kept):
            found.setdefault(self.pieces[place].document, []).append(self.pieces[place])
        texts = []
        for document, pieces in found.items():
            whole = self.documents[document]
            left = "".join(whole[piece.start : piece.stop] for piece in pieces)
            texts.append(whole if len(left) == len(whole) else left.strip())
        return texts


def keys_of(documents: Sequence[str], pieces: Sequence[Piece]) -> list[str]:
    """A text for each piece by which `OfPieces` knows it: its place and what it says."""
    return [f"{place}: {documents[one.document][one.start : one.stop]}" for place, one in enumerate(pieces)]


def checked_levels(levels: Any) -> tuple[Cut, ...]:
    """Ways to cut, from coarse to fine; raises for anything else."""
    given = (levels,) if isinstance(levels, str) or callable(levels) else levels
    if not isinstance(given, list | tuple) or not given:
        raise TypeError(f"`levels` must be {' or '.join(map(repr, KINDS))}, or several such, got {shown(levels)}")
    for one in given:
        if isinstance(one, str):
            one_of(one, "levels", KINDS)
        else:
            check_function(one, "levels", "parts = f(text)", None)
    named = [KINDS.index(one) for one in given if isinstance(one, str)]
    if named != sorted(set(named)):
        raise ValueError(f"`levels` must become finer, such as {KINDS}, got {given!r:.80}")
    return tuple(cast("Sequence[Cut]", given))


def cut_finer(
    documents: Sequence[str], pieces: Sequence[Piece], opened: set[int], cut: Cut
) -> tuple[list[Piece], list[int], set[int]]:
    """The pieces with those that are `opened` cut further.

    Returns them all, the places of those that are new, and of those that were opened and cannot be cut in this way.
    """
    found: list[Piece] = []
    new, uncut = [], set()
    noun = cut.removesuffix("s") if isinstance(cut, str) else "part"
    for place, piece in enumerate(pieces):
        ends = [piece.start, piece.stop]
        if place in opened:
            text = documents[piece.document][piece.start : piece.stop]
            ends = [piece.start + end for end in _ends(text, cut)]
        if len(ends) == 2:
            uncut |= {len(found)} if place in opened else set()
            found.append(piece)
            continue
        for number, (start, stop) in enumerate(pairwise(ends), 1):
            new.append(len(found))
            found.append(Piece(piece.document, start, stop, f"{piece.name}, {noun} {number}", piece.name))
    return found, new, uncut


def _ends(text: str, cut: Cut) -> list[int]:
    parts = cut_into(text, cut) if isinstance(cut, str) else cut(text)
    fits = isinstance(parts, list | tuple) and all(isinstance(part, str) and part.strip() for part in parts)
    if not fits or "".join(parts) != text:
        raise ValueError(
            "`levels`: a function must cut a text into parts that are the text when they are joined, none of them "
            f"empty, got {shown(parts)} for {text!r:.60}"
        )
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + len(part))
    return ends
