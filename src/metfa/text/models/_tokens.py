"""A row cut into the lower-case tokens that metfa's models read, each with the word that it belongs to."""

from __future__ import annotations

from typing import Any

from metfa.text.words import words_of

__all__ = ["tokens_of"]


def tokens_of(row: Any) -> tuple[list[str], list[int | None]]:
    """Lower-case tokens of a text or a list of tokens, and the index in ``words_of(row).words`` of each.

    A word is one token. Each punctuation mark at its edges is a token that belongs to no word: "Great film!" and "great
    film ! " are read alike. In a list, every entry is a word. A row without words, as when all words are left out, is
    not an error.
    """
    if isinstance(row, list | tuple) and not row:
        return [], []
    try:
        cut = words_of(row)
    except ValueError:
        if not isinstance(row, str):
            raise
        return _marks(row), [None] * len(_marks(row))
    if cut.gaps is None:
        pairs = [(token, index) for index, entry in enumerate(cut.words) for token in tokens_of(entry)[0]]
    else:
        pairs: list[tuple[str, int | None]] = [(mark, None) for mark in _marks(cut.gaps[0])]
        for index, (word, gap) in enumerate(zip(cut.words, cut.gaps[1:], strict=True)):
            pairs.append((_folded(word), index))
            pairs += [(mark, None) for mark in _marks(gap)]
    return [token for token, _ in pairs], [index for _, index in pairs]


def _marks(gap: str) -> list[str]:
    return [_folded(mark) for mark in gap if not mark.isspace()]


def _folded(token: str) -> str:
    return token.lower().replace("\u2019", "'")  # the curly apostrophe of printed texts
