"""`WordForWord`: a check that a noise of texts keeps the number of words."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._base.provenance import describe
from metfa.sampling.fitting import check_like_text
from metfa.text._articles import articles_that_change
from metfa.text._lines import cut
from metfa.text.only_close import OnlyClose
from metfa.text.sense_synonyms import SenseSynonyms
from metfa.text.synonyms import Synonyms
from metfa.text.words import words_of

__all__ = ["CHANGES", "WordForWord"]

CHANGES = "words that change"  # name of the note that says so
MOST_NAMED = 12


class WordForWord:
    """Calls a noise of texts; raises unless the result is a text with as many words, since words are the features."""

    def __init__(self, noise: Any) -> None:
        if isinstance(noise, type) or not callable(noise):
            got = f"the class {noise.__name__}" if isinstance(noise, type) else type(noise).__name__
            raise TypeError(
                f"`noise` must be a function f(text, rng) -> text, such as metfa.text.SenseSynonyms(0.5), or None, got "
                f"{got}: {noise!r:.80}"
            )
        self.noise: Any = noise

    def __call__(self, text: Any, rng: np.random.Generator) -> Any:
        """The noisy copy of a text."""
        noisy = self.noise(text, rng)
        check_like_text(noisy, text, "a text")
        given, made = len(words_of(text)), len(words_of(noisy))
        if made != given:
            raise ValueError(f"`noise` must keep the number of words, but made {made} of {given}: {noisy!r:.80}")
        return noisy

    @property
    def notes(self) -> Any:
        """What the noise says of results under it."""
        return getattr(self.noise, "notes", None)

    def changes_in(self, text: Any) -> list[list[str]]:
        """A note that says which words of a text the noise can change, where that is known and not all can."""
        noise, words = self.noise, words_of(text).words
        while isinstance(noise, OnlyClose):
            noise = noise.noise
        if not isinstance(noise, SenseSynonyms | Synonyms):
            return []
        candidates = noise.candidates(text)
        can = list(map(bool, candidates))
        if isinstance(noise, SenseSynonyms):
            can = [own or before for own, before in zip(can, articles_that_change(words, candidates), strict=True)]
        found = [word for word, changes in zip(words, can, strict=True) if changes]
        if len(found) == len(words):
            return []
        kinds = list(dict.fromkeys(found))
        named = ", ".join(cut(word) for word in kinds[:MOST_NAMED]) + ", …" * (len(kinds) > MOST_NAMED)
        others = f" ({named}); the others stay" if found else "; all stay"
        return [
            [CHANGES, f"{len(found):,} of {len(words):,} can be replaced by this noise{others} the same in every copy"]
        ]

    def afresh(self) -> WordForWord:
        """The same; a noise that counts its copies begins anew."""
        afresh = getattr(self.noise, "afresh", None)
        return self if afresh is None else WordForWord(afresh())

    def __repr__(self) -> str:
        return describe(self.noise)
