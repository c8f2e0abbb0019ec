"""Texts cut into paragraphs or sentences; joined again they are the text."""

from __future__ import annotations

import re
from itertools import pairwise

from metfa._base.validation import one_of

__all__ = ["ABBREVIATIONS", "KINDS", "cut_into", "ends_of"]

KINDS = ("paragraphs", "sentences")
PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
POINT = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]+[」』”’]*|\n[^\S\n]*\n")
OPENING = "([{\"'“‘«「『"
LONGEST = 24  # letters before a point in which an abbreviation is looked for
ABBREVIATIONS = frozenset(  # after which a name or a number is no beginning of a sentence
    [
        "approx",
        "cf",
        "dept",
        "dr",
        "e.g",
        "eq",
        "eqs",
        "fig",
        "figs",
        "i.e",
        "mr",
        "mrs",
        "ms",
        "pp",
        "prof",
        "vol",
        "vs",
    ]
)


def ends_of(text: str, kind: str) -> list[int]:
    """Where the pieces of a text end, the last at its end; blanks belong to the piece that follows them.

    A sentence ends at ".", "!", "?" and "…" before a blank, at their Chinese and Japanese forms, and at an empty line.
    It does not end at a point before a small letter, after a single capital ("J. Smith"), or after a common
    abbreviation ("Dr."), but at each between two blanks. `kind` is "paragraphs" or "sentences".
    """
    one_of(kind, "kind", KINDS)
    if kind == "paragraphs":
        ends = [found.start() for found in PARAGRAPH.finditer(text)]
    else:
        ends = [
            found.start() if found[0][0] == "\n" else found.end()
            for found in POINT.finditer(text)
            if _ends_sentence(text, found)
        ]
    pieces = [0]
    for end in [*ends, len(text)]:
        if not text[end:].strip():
            break
        if text[pieces[-1] : end].strip():
            pieces.append(end)
    return [*pieces[1:], len(text)]


def _ends_sentence(text: str, point: re.Match[str]) -> bool:
    alone = point.start() > 0 and text[point.start() - 1].isspace()  # as in texts that were cut into tokens
    if alone or point[0] not in (".", "…"):
        return True
    before = text[max(0, point.start() - LONGEST) : point.start()].split()
    word = before[-1].lstrip(OPENING) if before else ""
    if word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isupper()):
        return False
    return not text[point.end() :].lstrip()[:1].islower()


def cut_into(text: str, kind: str) -> list[str]:
    """The pieces of a text, which are the text when they are joined.

    Examples
    --------
    >>> from metfa.text.pieces import cut_into
    >>> cut_into("Dr. Smith liked it. Did you? I did not.", "sentences")
    ['Dr. Smith liked it.', ' Did you?', ' I did not.']
    """
    return [text[start:stop] for start, stop in pairwise([0, *ends_of(text, kind)])]
