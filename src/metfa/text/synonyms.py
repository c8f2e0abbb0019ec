"""`Synonyms`, the paper's noise on words: each word is replaced by a synonym in any sense, with a given probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from metfa._base.validation import as_path, check_flag, check_number, keep
from metfa.text._parts_of_speech import kept_parts, parts_of
from metfa.text._replacing import replaced_words
from metfa.text._wordnet import FILES, look_up_in
from metfa.text.words import Words, words_of

__all__ = ["Synonyms", "kept_folder"]


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
        object.__setattr__(self, "part_of_speech", kept_parts(self.part_of_speech))
        object.__setattr__(self, "wordnet", _kept_wordnet(self.wordnet))

    def __call__(self, row: Any, rng: np.random.Generator) -> Any:
        """Copy of a text, or of a list of tokens, in which words are replaced, with numbers from `rng`."""
        return replaced_words(row, self.p, rng, self._synonyms_at)

    def candidates(self, row: Any) -> tuple[tuple[str, ...], ...]:
        """Synonyms that may replace each word of a text, in lower case and in the order of the senses."""
        words = words_of(row)
        return tuple(map(self._synonyms_at(words), range(len(words))))

    def coverage(self, row: Any) -> tuple[bool, ...]:
        """Whether each word of a text has a synonym; the share that has, times `p`, is the expected share replaced."""
        return tuple(map(bool, self.candidates(row)))

    def _synonyms_at(self, words: Words) -> Callable[[int], tuple[str, ...]]:
        """Function from the place of a word to its synonyms."""
        parts = parts_of(self.part_of_speech, words.words)
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


def kept_folder(given: Any, needed: list[str]) -> str:
    """A folder of WordNet as an absolute path; raises unless it has the `needed` files."""
    folder = as_path(given, "wordnet").absolute()
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(f"`wordnet` must be a folder with WordNet's files, but {folder} lacks {missing[0]}")
    return str(folder)


def _kept_wordnet(given: Any) -> Any:
    """`wordnet` in the form that is kept: None, an absolute path, or an object such as nltk's corpus."""
    if isinstance(given, str | PathLike):
        return kept_folder(given, FILES)
    if given is not None and not hasattr(given, "synsets"):  # this makes nltk load its corpus or raise LookupError
        raise TypeError(
            f"`wordnet` must be None, a folder or nltk.corpus.wordnet, got {type(given).__name__}: {given!r:.80}"
        )
    return given
