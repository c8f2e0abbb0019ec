"""Sentences and phrases of a text, whose features are its words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from metfa._base.validation import as_list, check_function, shown
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample
from metfa.text.pieces import ABBREVIATIONS
from metfa.text.reading import words_explained
from metfa.text.words import Words, words_of

__all__ = ["phrases", "sentences"]

LONGEST = 40  # characters of a name
OPENING = "([{“‘«「『（《〈【"  # marks that belong to the word that follows
END = re.compile(r"[!?。！？｡؟।]|\n\s*\n")
POINT = re.compile(r"[.…]\S*\s")
ALONE = re.compile(r"\s\.\s")  # as in texts that were cut into tokens
QUOTED = re.compile(r"[!?][\"'”’»]+\s")
PAUSE = re.compile(r"[,;:、，；：؛،–—()\[\]]|(?<=\s)-+(?=\s)")


def sentences(of: Any, *, split: Callable[[str], Any] | None = None, how: str = "mean", against: Any = None) -> Regions:
    """Sentences of a text.

    Parameters
    ----------
    of : AttributionSample, str or sequence of str
        The result of one text, or the text itself, or its tokens.
    split : callable, optional
        A function from a text to the list of its sentences, in their order, such as ``nltk.sent_tokenize`` or ``lambda
        text: [sentence.text for sentence in nlp(text).sents]`` (spaCy). By default a sentence ends at "!", "?", "。"
        and an empty line. It ends at "." and "…" too, unless a small letter follows, or before it stands a single
        capital ("J. Smith") or a common abbreviation ("Dr.", "e.g.", "Fig."); and at each "." between two blanks or of
        tokens.
    how, against
        As for `metfa.Regions`.

    Returns
    -------
    Regions
        Each named by its number and how it begins.

    Raises
    ------
    ValueError
        For a text without words; if `split` gives what does not stand in the text, in this order.

    Examples
    --------
    >>> from metfa import regions
    >>> found = regions.sentences("Dr. Smith liked it. Did you? I did not.")
    >>> found.names
    ('0: Dr. Smith liked it.', '1: Did you?', '2: I did not.')
    >>> found.masks[0]
    array([0, 0, 0, 0, 1, 1, 2, 2, 2], dtype=int32)
    """
    words = _words(of)
    if split is None:
        return _regions(words, [_ends_sentence(words, after) for after in range(1, len(words))], how, against)
    return _regions(words, _as_split(words, split), how, against)


def phrases(of: Any, *, how: str = "mean", against: Any = None) -> Regions:
    """Phrases of a text: what stands between two marks, be they full stops, commas, colons, dashes or brackets.

    Parameters
    ----------
    of, how, against
        As for `sentences`.

    Returns
    -------
    Regions
        Each named by its number and how it begins.

    Examples
    --------
    >>> from metfa import regions
    >>> regions.phrases("The film is long, but never dull: go and see it.").names
    ('0: The film is long,', '1: but never dull:', '2: go and see it.')
    """
    words = _words(of)
    cuts = [
        _ends_sentence(words, after) or PAUSE.search(_between(words, after)) is not None
        for after in range(1, len(words))
    ]
    return _regions(words, cuts, how, against)


def _words(of: Any) -> Words:
    if not isinstance(of, AttributionSample | str | list | tuple):
        raise TypeError(f"`of` must be the result of a text, a text, or a list of its tokens, got {shown(of)}")
    try:
        return words_explained(of) if isinstance(of, AttributionSample) else words_of(of)
    except (TypeError, ValueError) as error:
        raise type(error)(re.sub("`(inputs|sample)`", "`of`", str(error))) from None


def _between(words: Words, after: int) -> str:
    """What stands before word number `after`: blanks and punctuation; of tokens the mark before them."""
    if words.gaps is not None:
        return words.gaps[after]
    mark = words.words[after - 1]
    return f" {mark} " if not any(map(str.isalnum, mark)) and any(map(str.isalnum, words.words[after])) else ""


def _ends_sentence(words: Words, after: int) -> bool:
    gap = _between(words, after)
    small = words.words[after][0].islower()
    if END.search(gap):
        return not (small and QUOTED.search(gap))
    if ALONE.search(gap):
        return True
    before = words.words[after - 1]
    initial = len(before) == 1 and before.isupper() and before != "I"
    return POINT.search(gap) is not None and not (small or initial or before.lower() in ABBREVIATIONS)


def _as_split(words: Words, split: Callable[[str], Any]) -> list[bool]:
    """Whether a sentence ends before each word but the first, as a function cuts the text."""
    if words.gaps is None:
        raise ValueError("`split` cuts a text, but `of` holds tokens: leave `split` out")
    check_function(split, "split", "split(text)", "")
    text = words.replaced(words.words)
    starts, place = [], 0
    for piece in as_list(split(text), "split", "a function that returns a list of texts"):
        if not isinstance(piece, str):
            raise TypeError(f"`split` must return a list of texts, but it holds {shown(piece)}")
        place = text.find(piece, place)
        if place < 0:
            raise ValueError(f"`split` must return pieces of the text in their order, but {piece!r:.80} is none")
        starts.append(place)
        place += len(piece)
    if not starts:
        raise ValueError("`split` must return at least one piece of the text, got none")
    lengths = [len(word) + len(gap) for word, gap in zip(words.words, words.gaps[1:], strict=True)]
    of_words = len(words.gaps[0]) + np.cumsum([0, *lengths[:-1]])
    return (np.diff(np.searchsorted(starts, of_words, side="right")) > 0).tolist()


def _regions(words: Words, cuts: list[bool], how: str, against: Any) -> Regions:
    labels = np.cumsum([False, *cuts])
    names = []
    for number in range(labels[-1] + 1):
        members = np.flatnonzero(labels == number)
        names.append(f"{number}: {_beginning(words, members[0], members[-1])}")
    return Regions(labels, names, how=how, against=against)


def _beginning(words: Words, first: int, last: int) -> str:
    """The text from one word to another, with the marks that end it, on one line; a long one only as it begins."""
    if words.gaps is None:
        pieces = list(words.words[first : last + 1])
    else:
        pieces = [words.words[i] + words.gaps[i + 1] for i in range(first, last + 1)]
        pieces[-1] = pieces[-1].split()[0].rstrip(OPENING)  # marks after a blank belong to what follows too
    text = " ".join(("" if words.gaps is not None else " ").join(pieces).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3].rstrip() + "..."
