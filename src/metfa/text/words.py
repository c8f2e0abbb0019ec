"""A text cut into words, the features of an explanation; each word can be left out or replaced."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from metfa._base.validation import shown

__all__ = ["Words", "words_of"]

RUN = re.compile(r"[^\s。！？｡]+")  # no blank follows the full stops of Chinese and Japanese
EDGES = ("P", "Cf")  # punctuation and invisible marks at the edge of a word do not belong to it


@dataclass(frozen=True)
class Words:
    """Words of a text and the characters between them; or tokens, if a list of them was given.

    Attributes
    ----------
    words : tuple of str
    gaps : tuple of str or None
        Blanks and punctuation before, between and after the words, one entry more than words. None for tokens, since
        every token is a word.
    """

    words: tuple[str, ...]
    gaps: tuple[str, ...] | None

    def __len__(self) -> int:
        return len(self.words)

    def kept(self, mask: Sequence[Any]) -> Any:
        """The text without the words where `mask` is false; punctuation stays, double blanks do not."""
        if len(mask) != len(self):
            raise ValueError(f"`mask` must have one entry for each of the {len(self)} words, got {len(mask)}")
        if self.gaps is None:
            return list(compress(self.words, mask))
        pieces = [self.gaps[0]]
        for word, gap, keep in zip(self.words, self.gaps[1:], mask, strict=True):
            if keep:
                pieces += word, gap
            elif not pieces[-1] or pieces[-1][-1].isspace():
                pieces.append(gap.lstrip())
            else:
                pieces.append(gap)
        return "".join(pieces)

    def replaced(self, words: Sequence[str]) -> Any:
        """The text with other words in the same places."""
        if len(words) != len(self):
            raise ValueError(f"`words` must hold one for each of the {len(self)} words, got {len(words)}")
        if self.gaps is None:
            return list(words)
        return self.gaps[0] + "".join(word + gap for word, gap in zip(words, self.gaps[1:], strict=True))


def words_of(text: Any) -> Words:
    """Words of a text, or of a list of tokens.

    Blanks (of any script) separate words, and punctuation at the edges is not part of a word: "don't", "well-known",
    "state-of-the-art" and an emoji are one word each, "!" is none. Texts in scripts without blanks have to be given
    as tokens; only the ends of their sentences, such as "。", separate words.

    Raises
    ------
    TypeError
        If it is neither a text nor a list or tuple of texts.
    ValueError
        If it holds no words, or an empty token.
    """
    if isinstance(text, str):
        found = [run for run in map(_without_edges, RUN.finditer(text)) if run]
        starts, ends = [start for start, _ in found], [end for _, end in found]
        parsed = Words(
            tuple(text[start:end] for start, end in found),
            tuple(text[end:start] for end, start in zip([0, *ends], [*starts, len(text)], strict=True)),
        )
    elif isinstance(text, list | tuple):
        for token in text:
            if not isinstance(token, str):
                raise TypeError(f"`inputs`: a list of tokens must hold texts, got {shown(token)}")
            if not token:
                raise ValueError(f"`inputs`: a list of tokens must not hold empty ones: {list(text)!r:.80}")
        parsed = Words(tuple(text), None)
    else:
        raise TypeError(f"`inputs`: a text must be a string or the list of its tokens, got {shown(text)}")
    if not parsed.words:
        raise ValueError(f"`inputs`: the text {text!r:.80} holds no words: there is nothing to explain")
    return parsed


def _without_edges(run: re.Match[str]) -> tuple[int, int] | None:
    start, end = run.span()
    while start < end and _is_edge(run.string[start]):
        start += 1
    while start < end and _is_edge(run.string[end - 1]):
        end -= 1
    return (start, end) if start < end else None


def _is_edge(character: str) -> bool:
    return not character.isalnum() and unicodedata.category(character).startswith(EDGES)
