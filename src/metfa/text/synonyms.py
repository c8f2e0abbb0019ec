"""Noise on words: each is replaced by a synonym with a given probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.validation import check_number, did_you_mean
from metfa.text._wordnet import FILES, PARTS, look_up_in
from metfa.text.words import Words, words_of

__all__ = ["Synonyms"]

NO_PART = "other"
SHORT = {"adjective": "adj", "adverb": "adv"}


@dataclass(frozen=True)
class Synonyms:
    """Replace each word, independently with probability `p`, by one of its synonyms.

    The synonyms of a word are the other members of its WordNet synsets, in all its senses; each is drawn with the same
    probability. Case is kept (``film``, ``Film``, ``FILM``; a word in any other case gets a synonym in lower case), and
    so are punctuation and the number of words: one word comes for one word.

    **The share of words replaced is below** `p`, as words without synonyms stay as they are: most function words,
    names, numbers, words of other languages, and most inflected forms (``films``, ``filmed``), since a word is looked
    up as it stands, in lower case, and its synonym would have to be inflected likewise. `coverage` tells which words
    of a text can be replaced.

    Parameters
    ----------
    p : float
        Probability of each word to be replaced, from 0 to 1. The paper uses 0.3, 0.5 and 0.7.
    part_of_speech : str, set of str or callable, optional
        Senses to take synonyms from: one or several of ``"noun"``, ``"verb"``, ``"adj"`` and ``"adv"``; or a function
        from the list of a text's words to one of these for each word, None for all senses, or ``"other"`` for a word to
        be left alone. By default all senses of all words: ``can`` may become ``tin``.
    multi_word : bool
        Allow synonyms of several words too. They stay one word: joined by hyphens in a text (``motion-picture``), by
        blanks in a list of tokens (``motion picture``).
    wordnet : path or nltk.corpus.wordnet, optional
        Where the synonyms come from: the folder of another WordNet (with ``index.*`` and ``data.*``, such as that of
        Debian's wordnet-base), or the corpus that nltk has loaded, with which a noise cannot be pickled. By default the
        table in this package, which is of WordNet 3.0. Nothing is downloaded.

    Raises
    ------
    TypeError, ValueError
        For bad arguments; when called, for a row that is no text or holds no words, or a `part_of_speech` that does not
        give a known part of speech for each word.
    FileNotFoundError
        If a file of WordNet is not in the folder `wordnet`.
    LookupError
        Of nltk, if it does not find its corpus.

    Notes
    -----
    For each word two numbers are drawn, whether to replace it and by which of its synonyms, also if it has none. So the
    same generator replaces at a larger `p` all words that it replaces at a smaller one, by the same synonyms, and what
    becomes of a word does not depend on the words before it.

    Only members of synsets in lower case count, so that no word becomes a name, and no single letters, which are
    symbols there (``I`` is the number one). But a name spelt like a word (``May``) is taken for that word. Some
    function words have odd senses (``so`` is a note too): a function for `part_of_speech` can leave them alone. Nothing
    else is adjusted, not even ``a`` to ``an``.

    WordNet 3.0 is copyright 2006 by Princeton University; its licence stands beside the table, in ``metfa/text/data``.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa.text import Synonyms
    >>> noise = Synonyms(0.7)
    >>> noise("A terrible movie, sadly!", np.random.default_rng(3))
    'A terrible picture, unhappily!'
    >>> noise.coverage("A terrible movie, sadly!")
    (False, True, True, True)
    >>> noise.candidates(["movie"])
    (('film', 'picture', 'pic', 'flick'),)
    """

    p: float
    part_of_speech: Any = field(default=None, kw_only=True)
    multi_word: bool = field(default=False, kw_only=True)
    wordnet: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_number(self.p, "p")
        if self.p > 1:
            raise ValueError(f"`p` must be a probability from 0 to 1, got {self.p}")
        if not isinstance(self.multi_word, bool):
            raise TypeError(
                f"`multi_word` must be True or False, got {type(self.multi_word).__name__}: {self.multi_word!r}"
            )
        object.__setattr__(self, "part_of_speech", _kept_parts(self.part_of_speech))
        object.__setattr__(self, "wordnet", _kept_wordnet(self.wordnet))

    def __call__(self, row: Any, rng: np.random.Generator) -> Any:
        """Copy of a text, or of a list of tokens, in which words are replaced, with numbers from `rng`."""
        if not isinstance(rng, np.random.Generator):
            raise TypeError(
                f"`rng` must be a numpy.random.Generator, got {type(rng).__name__}: write `np.random.default_rng(seed)`"
            )
        words = words_of(row)
        synonyms = self._synonyms_at(words)
        draws = rng.random((len(words), 2))
        changed = list(words.words)
        for place in map(int, np.flatnonzero(draws[:, 0] < self.p)):
            found = synonyms(place)
            if found:
                changed[place] = _cased(found[int(draws[place, 1] * len(found))], like=changed[place])
        noisy = words.replaced(changed)
        return tuple(noisy) if isinstance(row, tuple) else noisy

    def candidates(self, row: Any) -> tuple[tuple[str, ...], ...]:
        """Synonyms that each word of a text may be replaced by, in lower case, those of its first senses first."""
        words = words_of(row)
        return tuple(map(self._synonyms_at(words), range(len(words))))

    def coverage(self, row: Any) -> tuple[bool, ...]:
        """Which words of a text have a synonym; their share times `p` is the expected share of words replaced."""
        return tuple(map(bool, self.candidates(row)))

    def _synonyms_at(self, words: Words) -> Callable[[int], tuple[str, ...]]:
        """Function from the place of a word to its synonyms."""
        parts = self._parts_of(words.words)
        joint = " " if words.gaps is None else "-"
        look_up = look_up_in(self.wordnet)

        def synonyms(place: int) -> tuple[str, ...]:
            word = words.words[place].lower()
            found = [synonym for part in parts[place] for synonym in look_up(word, part)]
            if self.multi_word:
                found = [synonym.replace("_", joint) for synonym in found]
            else:
                found = [synonym for synonym in found if "_" not in synonym]
            return tuple(synonym for synonym in dict.fromkeys(found) if synonym != word)

        return synonyms

    def _parts_of(self, words: Sequence[str]) -> list[tuple[str, ...]]:
        """Parts of speech to look each word up in."""
        if not callable(self.part_of_speech):
            return [self.part_of_speech or tuple(PARTS)] * len(words)
        tags: Any = self.part_of_speech(list(words))
        if isinstance(tags, str) or not hasattr(tags, "__len__"):
            raise TypeError(f"`part_of_speech` must return a list with one entry a word, got {type(tags).__name__}")
        if len(tags) != len(words):
            raise ValueError(f"`part_of_speech` must return one entry a word, got {len(tags)} for {len(words)} words")
        return [tuple(PARTS) if tag is None else () if tag == NO_PART else (_part(tag, NO_PART),) for tag in tags]


def _cased(synonym: str, like: str) -> str:
    if len(like) > 1 and like.isupper():
        return synonym.upper()
    if like[0].isupper() and like[1:] == like[1:].lower():  # also a single letter, which opens a sentence
        return synonym[0].upper() + synonym[1:]
    return synonym


def _part(name: Any, *others: str) -> str:
    allowed = [*PARTS, *others]
    if not isinstance(name, str):
        raise TypeError(f"`part_of_speech` must name {', '.join(allowed)}, got {type(name).__name__}: {name!r}")
    if name not in allowed:
        hint = f", did you mean {SHORT[name]!r}?" if name in SHORT else did_you_mean(name, allowed)
        raise ValueError(f"`part_of_speech` must name {', '.join(allowed)}, got {name!r}{hint}")
    return name


def _kept_parts(given: Any) -> Any:
    """`part_of_speech` as it is kept: None, a function, or names in an order of their own."""
    if given is None or callable(given):
        return given
    if isinstance(given, str):
        return (_part(given),)
    if not isinstance(given, AbstractSet | list | tuple):
        raise TypeError(
            "`part_of_speech` must be None, a name, a set of names or a function of the words, got "
            f"{type(given).__name__}: {given!r}"
        )
    if not given:
        raise ValueError(f"`part_of_speech` is empty: it must name some of {', '.join(PARTS)}, or be None for all")
    names = {_part(name) for name in given}
    return tuple(part for part in PARTS if part in names)


def _kept_wordnet(given: Any) -> Any:
    """`wordnet` as it is kept: None, an absolute path, or an object of nltk's kind."""
    if isinstance(given, str | PathLike):
        folder = Path(given).absolute()
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            raise FileNotFoundError(f"`wordnet` must be a folder with WordNet's files, but {folder} lacks {missing[0]}")
        return str(folder)
    if given is not None and not hasattr(given, "synsets"):  # makes nltk load its corpus, or say that it has none
        raise TypeError(
            f"`wordnet` must be None, a folder or nltk.corpus.wordnet, got {type(given).__name__}: {given!r:.80}"
        )
    return given
