"""A row as sub-words of a Hugging Face tokeniser, with the word of each; and a short row to learn its habits from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from metfa._base.warnings import UnreadWordsWarning, warn
from metfa.text.words import Words, words_of

__all__ = ["ShortRow", "end_token_expected", "short_row", "subwords_of"]

SHORT = "a b c"


def subwords_of(tokenizer: Any, row: Any, max_length: int, *, truncate: bool) -> tuple[list[int], list[int | None]]:
    """Ids of a row's sub-words, special ones among them, and the index of the word that each belongs to.

    Raises
    ------
    ValueError
        If it has more sub-words than `max_length`; with `truncate`, the rest is cut off with a warning.
    """
    if not isinstance(row, str) and not row:
        row = ""
    by_words = not isinstance(row, str)
    pieces = tokenizer(
        list(words_of(row).words) if by_words else row,
        is_split_into_words=by_words,
        truncation=True,
        max_length=max_length,
        return_overflowing_tokens=True,
    ).encodings
    word_index = [list(piece.word_ids) if by_words else _words_at(row, piece.offsets) for piece in pieces]
    if len(pieces) > 1:
        _check_all_read(row, word_index, max_length, truncate)
    if not pieces[0].ids:
        return [_id_of_nothing(tokenizer)], [None]
    return list(pieces[0].ids), word_index[0]


class ShortRow(NamedTuple):
    """A short row of a tokeniser: ids, words, and the kinds of its sub-words.

    Attributes
    ----------
    ids : list of int
    words : list of (int or None)
    kinds : list of int or None
        ``token_type_ids``; None if the tokeniser has none, or all are 0, which is every network's default.
    """

    ids: list[int]
    words: list[int | None]
    kinds: list[int] | None

    @property
    def places(self) -> list[int]:
        """Where the words' sub-words are."""
        return [place for place, word in enumerate(self.words) if word is not None]

    def token_types(self, mask: torch.Tensor) -> torch.Tensor | None:
        """Kinds of sub-words for rows (batch, length); special ones have kinds of their own in XLNet and Funnel."""
        if self.kinds is None:
            return None
        before, behind = self.kinds[: self.places[0]], self.kinds[self.places[-1] + 1 :]
        between = [self.kinds[self.places[0]]] * (mask.shape[1] - len(before) - len(behind))
        return torch.tensor([*before, *between, *behind], device=mask.device).expand(mask.shape)

    def two_rows(self, tokenizer: Any) -> torch.Tensor:
        """Two rows of equal length, (2, length): ordinary sub-words in the words' places, in two orders."""
        special = set(tokenizer.all_special_ids)
        ordinary = [index for index in range(len(tokenizer)) if index not in special][: len(self.places)]
        rows = torch.tensor([self.ids, self.ids])
        for turn, place in enumerate(self.places if ordinary else ()):
            rows[0, place] = ordinary[turn % len(ordinary)]
            rows[1, place] = ordinary[(turn + 1) % len(ordinary)]
        return rows


def short_row(tokenizer: Any, max_length: int) -> ShortRow:
    """The sub-words of a short text."""
    ids, words = subwords_of(tokenizer, SHORT, max_length, truncate=True)
    kinds = tokenizer(SHORT, truncation=True, max_length=max_length).get("token_type_ids")
    return ShortRow(ids, words, kinds if kinds and any(kinds) and len(kinds) == len(ids) else None)


@contextmanager
def end_token_expected(tokenizer: Any) -> Iterator[None]:
    """Say what to write where a network (BART, T5) reads the class at the end token, and the tokeniser adds none."""
    try:
        yield
    except Exception as error:
        if "<eos> token" not in str(error):
            raise
        end = tokenizer.eos_token or "</s>"
        raise ValueError(
            f"the network reads the class at the end token {end!r}, which `tokenizer` does not add: write "
            "`tokenizer.backend_tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single='$A "
            f"{end}', special_tokens=[({end!r}, tokenizer.convert_tokens_to_ids({end!r}))])`"
        ) from error


def _check_all_read(row: Any, word_index: Sequence[Sequence[int | None]], max_length: int, truncate: bool) -> None:
    """Refuse (with `truncate`: warn of) a row longer than one piece; only the first of `word_index` is read."""
    limit = f"{max_length:,} sub-words that the network reads, special ones counted"
    if truncate:  # the same words each time, so that a call warns once
        warn(
            f"a text has more than the {limit}: the rest is cut off (`truncate=True`), and words there cannot matter",
            UnreadWordsWarning,
        )
        return
    words = {index for piece in word_index for index in piece if index is not None}
    unread = len(words.difference(word_index[0]))
    raise ValueError(
        f"a text has more than the {limit}: {unread:,} of its {len(words):,} words would not be read. Shorten it, "
        "with some room for noise, whose words may have more sub-words, or write "
        f"`from_transformers(..., truncate=True)` to have the rest cut off. The text: {row!r:.80}"
    )


def _id_of_nothing(tokenizer: Any) -> int:
    """The sub-word that stands for a row without any, where a tokeniser adds no special ones (GPT-2)."""
    names = ("bos_token_id", "eos_token_id", "cls_token_id", "pad_token_id")
    found = [index for index in (getattr(tokenizer, name, None) for name in names) if index is not None]
    if not found:
        raise ValueError(
            "`tokenizer` gives no sub-words for a text without words, and has no token to stand for it: set "
            "`tokenizer.bos_token`"
        )
    return found[0]


def _words_at(text: str, offsets: Sequence[tuple[int, int]]) -> list[int | None]:
    """The word of each range of characters: the one with which it shares most characters."""
    try:
        cut = words_of(text)
    except ValueError:  # all words of the text are left out
        return [None] * len(offsets)
    owner = _owners(cut)
    found: list[int | None] = []
    for start, end in offsets:
        inside = [word for word in owner[start:end] if word is not None]
        found.append(max(inside, key=inside.count) if inside else None)
    return found


def _owners(cut: Words) -> list[int | None]:
    """The word that each character of a text belongs to."""
    gaps = cut.gaps or ("",)  # of a text: never None
    owner: list[int | None] = [None] * len(gaps[0])
    for index, (word, gap) in enumerate(zip(cut.words, gaps[1:], strict=True)):
        owner += [index] * len(word) + [None] * len(gap)
    return owner
