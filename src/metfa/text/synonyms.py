"""`Synonyms`, a noise on words: each word is replaced by a synonym with a given probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from metfa._base.validation import as_path, check_flag, check_function, check_number, did_you_mean, keep, shown
from metfa.text._wordnet import FILES, PARTS, look_up_in
from metfa.text.words import Words, words_of

__all__ = ["Synonyms"]

NO_PART = "other"
SHORT = {"adjective": "adj", "adverb": "adv"}


@dataclass(frozen=True)
class Synonyms:
    """Replace each word, independently with probability `p`, by one of its synonyms.

    The synonyms of a word are the other members of its WordNet synsets, in all its senses; each is drawn with the same
    probability. Case is kept (``film``, ``Film``, ``FILM``; a word in any other case gets a synonym in lower case).
    Punctuation and the number of words are kept too: one word replaces one word.

    **The share of words replaced is below** `p`, because words without synonyms stay as they are: most function words,
    names, numbers, words of other languages, and most inflected forms (``films``, ``filmed``). A word is looked up as
    it is written, in lower case; the synonym of an inflected word would have to be inflected too. `coverage` says
    which words of a text can be replaced.

    Parameters
    ----------
    p : float
        Probability of each word to be replaced, from 0 to 1. The paper uses 0.3, 0.5 and 0.7.
    part_of_speech : str, set of str or callable, optional
        Senses to take synonyms from: one or several of ``"noun"``, ``"verb"``, ``"adj"`` and ``"adv"``. It can also be
        a function of the list of words in a text. It returns one of these for each word, None for all senses, or
        ``"other"`` for a word that is never replaced. By default all senses of all words: ``can`` may become ``tin``.
    multi_word : bool
        Allow synonyms of several words too. They count as one word: their parts are joined by hyphens in a text
        (``motion-picture``), by blanks in a list of tokens (``motion picture``).
    wordnet : path or nltk.corpus.wordnet, optional
        Source of the synonyms: the folder of another WordNet (with ``index.*`` and ``data.*``, such as the one of
        Debian's wordnet-base), or the corpus that nltk has loaded; a noise with nltk's corpus cannot be pickled. The
        default is the table in this package, from WordNet 3.0. Nothing is downloaded.

    Raises
    ------
    TypeError, ValueError
        For bad arguments. When called: if a row is not a text or holds no words, or if `part_of_speech` does not give
        a known part of speech for each word.
    FileNotFoundError
        If a file of WordNet is not in the folder `wordnet`.
    LookupError
        If nltk does not find its corpus.

    Notes
    -----
    Two numbers are drawn for each word, even if it has no synonyms: whether to replace it, and by which synonym. So
    the replacement of a word does not depend on the words before it. At a larger `p`, the same generator replaces all
    words that it replaces at a smaller `p`, by the same synonyms.

    Members of synsets count only in lower case, so that no word becomes a name. Single letters do not count, because
    they are symbols in WordNet (``I`` is the number one). But a name that is spelt like a word (``May``) counts as
    that word. Some function words have unusual senses (``so`` is also a note); a function for `part_of_speech` can
    exclude such words. Nothing else is adjusted, not even ``a`` to ``an``.

    WordNet 3.0 is copyright 2006 by Princeton University; its licence is beside the table, in ``metfa/text/data``.

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
        keep(self, p=check_number(self.p, "p"))
        if self.p > 1:
            raise ValueError(f"`p` must be a probability from 0 to 1, got {self.p}")
        keep(self, multi_word=check_flag(self.multi_word, "multi_word"))
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
        """Synonyms that may replace each word of a text, in lower case and in the order of the senses."""
        words = words_of(row)
        return tuple(map(self._synonyms_at(words), range(len(words))))

    def coverage(self, row: Any) -> tuple[bool, ...]:
        """Whether each word of a text has a synonym; the share that has, times `p`, is the expected share replaced."""
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
    if like[0].isupper() and like[1:] == like[1:].lower():  # also a single letter at the start of a sentence
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
    """`part_of_speech` in the form that is kept: None, a function, or names in a fixed order."""
    if given is None:
        return None
    if callable(given):
        check_function(given, "part_of_speech", "part_of_speech(words)", [])
        return given
    if isinstance(given, str):
        return (_part(given),)
    if not isinstance(given, AbstractSet | list | tuple):
        raise TypeError(
            f"`part_of_speech` must be None, a name, a set of names or a function of the words, got {shown(given)}"
        )
    if not given:
        raise ValueError(f"`part_of_speech` is empty: it must name some of {', '.join(PARTS)}, or be None for all")
    names = {_part(name) for name in given}
    return tuple(part for part in PARTS if part in names)


def _kept_wordnet(given: Any) -> Any:
    """`wordnet` in the form that is kept: None, an absolute path, or an object such as nltk's corpus."""
    if isinstance(given, str | PathLike):
        folder = as_path(given, "wordnet").absolute()
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            raise FileNotFoundError(f"`wordnet` must be a folder with WordNet's files, but {folder} lacks {missing[0]}")
        return str(folder)
    if given is not None and not hasattr(given, "synsets"):  # this makes nltk load its corpus or raise LookupError
        raise TypeError(
            f"`wordnet` must be None, a folder or nltk.corpus.wordnet, got {type(given).__name__}: {given!r:.80}"
        )
    return given
