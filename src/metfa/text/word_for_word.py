"""`WordForWord`: a check that a noise of texts keeps the number of words."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._base.provenance import describe
from metfa.sampling.fitting import check_like_text
from metfa.text.words import words_of

__all__ = ["WordForWord"]


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

    def afresh(self) -> WordForWord:
        """The same; a noise that counts its copies begins anew."""
        afresh = getattr(self.noise, "afresh", None)
        return self if afresh is None else WordForWord(afresh())

    def __repr__(self) -> str:
        return describe(self.noise)
