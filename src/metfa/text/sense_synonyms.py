"""`SenseSynonyms`, a noise on words that keeps the meaning: synonyms in a word's most frequent sense alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from metfa._base.percents import percent
from metfa._base.validation import check_number, keep
from metfa.text._inflection import Reading, inflected, readings
from metfa.text._parts_of_speech import kept_parts, parts_by_nltk, parts_of, require_nltk
from metfa.text._replacing import replaced_words
from metfa.text._wordnet import COUNTS, FILES, IRREGULAR, wordnet_of
from metfa.text.synonyms import kept_folder
from metfa.text.words import Words, words_of

__all__ = ["SenseSynonyms"]

NEEDED = [*FILES, COUNTS, *(f"{part}.exc" for part in IRREGULAR)]
BY_COUNTS, BY_NLTK = "counts", "nltk"
DECIDED_BY = {BY_COUNTS: "WordNet's counts", BY_NLTK: "nltk's tagger"}
# Words of which WordNet knows only odd senses ("in" as an inch, or as "inwards"), and those of too many to replace.
LISTED = """
a about above across after again against ago all along also although am among an and another any are around as at back
be because been before behind being below beneath beside besides between beyond both but by can cannot could despite
did do does doing done down during each either else enough even ever every except few first for former from further go
goes going gone had has have having he her here hers him his how however i if in inside instead into is it its just
last least less like many may me might mine more most much must my near need neither never next no none nor not now of
off on once one ones only onto opposite or other our out outside over own past per plus quite rather round same second
several shall she should since so some still such than that the their them then there these they this those though
through throughout till to too toward towards under underneath unless unlike until up upon us very was we well went
were what when where whether which while who whom whose why will with within without would yet you your
"""
FUNCTION_WORDS = frozenset(LISTED.split())


@dataclass(frozen=True)
class SenseSynonyms:
    """Replace each word, independently with probability `p`, by a synonym in the sense that it most often has.

    A sense of a word counts if it is at least the `share` of all that the word was met with in the texts that the
    makers of WordNet tagged by hand (its *counts*). A synonym counts if it was met in this very sense, and if that is
    at least the `share` of its own. So ``film`` becomes ``movie``, and never ``shoot`` or ``celluloid``; words of
    several senses of which none prevails (``cast``, ``flat``, ``fall``) stay, as do function words. Inflected words
    get inflected synonyms (``films``, ``movies``; ``told``, ``narrated``), where the form is certain. Case and
    punctuation are kept, and one word replaces one word. An article fits what is put behind it (``an attempt``, ``a
    try``).

    **Far fewer words are replaced than** `p` **says**, see `coverage`: in 1,410 sentences of film reviews 9.8 % of
    the words have such a synonym, where `Synonyms` finds some for 46 %. The senses are those of most texts, not of this
    one: `OnlyClose` looks at the whole text besides.

    Parameters
    ----------
    p : float
        Probability of each word to be replaced, from 0 to 1.
    share : float
        Least share of a word's counts that a sense must have, above 0. Words without any counts must have one sense
        alone.
    part_of_speech : {"counts", "nltk"} or callable
        Which senses the share is of. "counts": those of all parts of speech, so that a word is replaced only where
        WordNet's counts decide on its part of speech too; the same on every machine. "nltk": those of the part of
        speech that nltk's tagger gives the word in this text; its data must be on this machine. Or a function of the
        list of words in a text, as for `Synonyms`.
    wordnet : path, optional
        Folder of another WordNet, with ``index.*``, ``data.*``, ``cntlist.rev``, ``noun.exc`` and ``verb.exc`` (of
        Debian's wordnet-base, or of nltk's corpus). The default is the table in this package, from WordNet 3.0.

    Raises
    ------
    TypeError, ValueError
        For bad arguments; when called, as `Synonyms`.
    FileNotFoundError
        If a file of WordNet is not in the folder `wordnet`.
    ImportError, LookupError
        If nltk, or the data of its tagger, is not on this machine. Nothing is downloaded.

    Notes
    -----
    The random numbers are drawn as by `Synonyms`. The rule is metfa's own: the most frequent sense is the usual guess
    where the context is not read, and WordNet's counts (Fellbaum 1998) are how it is found.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa.text import SenseSynonyms
    >>> noise = SenseSynonyms(0.9)
    >>> noise("Two terrible movies, sadly without a flat cast!", np.random.default_rng(0))
    'Two dreadful films, sadly without a flat cast!'
    >>> noise.candidates(["movies"])
    (('films',),)
    """

    p: float
    share: float = field(default=0.5, kw_only=True)
    part_of_speech: Any = field(default=BY_COUNTS, kw_only=True)
    wordnet: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        keep(self, p=check_number(self.p, "p"), share=check_number(self.share, "share", above=0))
        for name in ("p", "share"):
            if getattr(self, name) > 1:
                raise ValueError(f"`{name}` must be at most 1, got {getattr(self, name)}")
        if self.part_of_speech == BY_NLTK:
            require_nltk()
        elif self.part_of_speech != BY_COUNTS:
            if not callable(self.part_of_speech):
                raise ValueError(
                    f'`part_of_speech` must be "{BY_COUNTS}", "{BY_NLTK}" or a function of the words, got '
                    f"{self.part_of_speech!r:.80}: for synonyms of some parts of speech write `Synonyms`"
                )
            kept_parts(self.part_of_speech)
        if self.wordnet is not None:
            object.__setattr__(self, "wordnet", kept_folder(self.wordnet, NEEDED))

    def __call__(self, row: Any, rng: np.random.Generator) -> Any:
        """Copy of a text, or of a list of tokens, in which words are replaced, with numbers from `rng`."""
        return replaced_words(row, self.p, rng, self._synonyms_at, articles=True)

    @property
    def notes(self) -> dict[str, str]:
        """What a summary of results under this noise must say."""
        by = next((who for name, who in DECIDED_BY.items() if self.part_of_speech == name), "a function")
        return {
            "noise on words": f"synonyms in a word's most frequent sense (at least {percent(self.share, 0)} of its "
            f"counts in WordNet), parts of speech by {by}; the words of a text are not read together"
        }

    def candidates(self, row: Any) -> tuple[tuple[str, ...], ...]:
        """Synonyms that may replace each word of a text, in lower case."""
        words = words_of(row)
        return tuple(map(self._synonyms_at(words), range(len(words))))

    def coverage(self, row: Any) -> tuple[bool, ...]:
        """Whether each word of a text has a synonym; the share that has, times `p`, is the expected share replaced."""
        return tuple(map(bool, self.candidates(row)))

    def _synonyms_at(self, words: Words) -> Callable[[int], tuple[str, ...]]:
        """Function from the place of a word to its synonyms."""
        given = self.part_of_speech
        parts = parts_of(given if callable(given) else parts_by_nltk if given == BY_NLTK else None, words.words)
        return lambda place: _synonyms(words.words[place].lower(), parts[place], self.share, self.wordnet)


@lru_cache(2**16)
def _synonyms(form: str, parts: tuple[str, ...], share: float, folder: str | None) -> tuple[str, ...]:
    """Synonyms of a form in its most frequent sense, inflected as it is."""
    if form in FUNCTION_WORDS or not set(form) - set("0123456789"):
        return ()
    wordnet = wordnet_of(folder)
    found: dict[str, None] = {}
    for reading, members in _prevailing(form, parts, share, folder):
        for synonym in members - {reading.word} if reading.ending is not None else ():
            other = None if "_" in synonym else inflected(synonym, reading.part, reading.ending or "", wordnet)
            if other is None or other == form or other in FUNCTION_WORDS:
                continue
            wanted = Reading(synonym, reading.part, reading.ending)
            prevails = (wanted, members) in _prevailing(other, parts, share, folder)
            if prevails and _met(synonym, reading.part, members, wordnet):
                found[other] = None
    return tuple(sorted(found))


@lru_cache(2**16)
def _prevailing(form: str, parts: tuple[str, ...], share: float, folder: str | None) -> list[Any]:
    """Readings of a form with the members of the synset, where one sense has at least the share of all its counts."""
    wordnet = wordnet_of(folder)
    counts: dict[Any, int] = {}
    for reading in readings(form, wordnet):
        for sense in wordnet.of(reading.word, reading.part) if reading.part in parts else ():
            key = reading, frozenset((reading.word, *sense.synonyms))
            counts[key] = counts.get(key, 0) + sense.uses
    total = sum(counts.values())
    if not total:
        return list(counts) if len(counts) == 1 else []
    return [key for key, count in counts.items() if count >= share * total]


def _met(word: str, part: str, members: frozenset[str], wordnet: Any) -> bool:
    """Whether a word was met in this sense in a tagged text."""
    return any(sense.uses and {word, *sense.synonyms} == members for sense in wordnet.of(word, part))
