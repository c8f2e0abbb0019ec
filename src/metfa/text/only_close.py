"""`OnlyClose`, a noise made of a noise of texts: only copies that a sentence encoder finds close to the text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from metfa._arrays import to_host
from metfa._base.percents import percent
from metfa._base.provenance import describe
from metfa._base.validation import check_number, keep, positive_int, shown

__all__ = ["OnlyClose"]


class Tally:
    """Numbers of copies that were drawn, that were kept, and of texts left as they are; noises run in threads."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.drawn = self.kept = self.left = 0

    def add(self, drawn: int, *, kept: bool) -> None:
        """Count one noisy text, for which so many copies were drawn."""
        with self.lock:
            self.drawn += drawn
            self.kept += kept
            self.left += not kept

    def __reduce__(self) -> Any:
        return Tally, ()


@dataclass(frozen=True)
class OnlyClose:
    """Draw copies of a text by a noise until an encoder finds one close in meaning; else leave the text as it is.

    A copy is close if the cosine of its vector and the text's is at least `similarity`. Statements under this noise are
    about copies **that the encoder finds close**: its law is that of `noise`, given that the copy is close (and, with
    the probability that `tries` copies in turn are not, the text itself). How many copies were kept is in the result's
    summary.

    Parameters
    ----------
    noise : callable
        ``f(text, rng) -> text``, such as `SenseSynonyms`, `Synonyms` or your own.
    encoder : callable
        A list of texts (or of lists of tokens, where these are explained) -> vectors (batch, size), as an array of
        NumPy or torch: the ``encode`` of a model of sentence-transformers, or the ``pooled`` of
        `metfa.text.from_transformers`. It is called in worker threads, one call at a time. Nothing is downloaded.
    similarity : float
        Least cosine of a copy that is kept, from -1 to 1. Encoders differ in their scale: look at a few copies.
    tries : int
        Copies that are drawn before the text is left as it is.

    Raises
    ------
    TypeError, ValueError
        For bad arguments; when called, for vectors that are no finite numbers, or of another number than the texts.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa.text import OnlyClose, Synonyms
    >>> def encoder(texts):  # counts letters; yours knows meanings
    ...     return np.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])
    >>> noise = OnlyClose(Synonyms(0.5), encoder, similarity=0.8)
    >>> [noise("A terrible movie, sadly!", np.random.default_rng(seed)) for seed in range(3)]
    ['A terrible movie, sadly!', 'A terrible flick, deplorably!', 'A terrible movie, unhappily!']
    >>> noise.notes["copies that are close"]
    '60.0% of 5 drawn were kept, with a cosine of at least 0.8 by the encoder encoder; statements are about such copies'
    """

    noise: Callable[[Any, np.random.Generator], Any]
    encoder: Callable[[list[Any]], Any]
    similarity: float = field(default=0.9, kw_only=True)
    tries: int = field(default=10, kw_only=True)
    _tally: Tally = field(default_factory=Tally, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, such in (("noise", "metfa.text.SenseSynonyms(0.5)"), ("encoder", "the `encode` of an encoder")):
            given = getattr(self, name)
            if isinstance(given, type) or not callable(given):
                raise TypeError(f"`{name}` must be a function, such as {such}, got {shown(given)}")
        keep(self, similarity=check_number(self.similarity, "similarity", least=-1))
        if self.similarity > 1:
            raise ValueError(f"`similarity` must be a cosine, from -1 to 1, got {self.similarity}")
        keep(self, tries=positive_int(self.tries, "tries"))

    def __call__(self, text: Any, rng: np.random.Generator) -> Any:
        """A close copy of a text, or the text."""
        for drawn in range(1, self.tries + 1):
            copy = self.noise(text, rng)
            if copy == text or self._cosine(text, copy) >= self.similarity:
                self._tally.add(drawn, kept=True)
                return copy
        self._tally.add(self.tries, kept=False)
        return text

    @property
    def notes(self) -> dict[str, str]:
        """What a summary of results under this noise must say: those of the inner noise, and the share kept."""
        tally = self._tally
        of_drawn = f"{percent(tally.kept / max(tally.drawn, 1), 1)} of {tally.drawn:,} drawn"
        left = f"; {tally.left:,} noisy texts are the text itself, as {self.tries} copies in turn were not close"
        return {
            **getattr(self.noise, "notes", {}),
            "copies that are close": f"{of_drawn} were kept, with a cosine of at least {self.similarity:g} by the "
            f"encoder {describe(self.encoder)}{left if tally.left else ''}; statements are about such copies",
        }

    def afresh(self) -> OnlyClose:
        """The same noise, with nothing counted yet."""
        return OnlyClose(self.noise, self.encoder, similarity=self.similarity, tries=self.tries)

    def _cosine(self, text: Any, copy: Any) -> float:
        with self._tally.lock:  # networks are seldom made for several threads
            vectors = np.asarray(to_host(self.encoder([text, copy])), dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != 2:
            raise ValueError(
                f"`encoder` must return one vector a text, (batch, size), got shape {vectors.shape} for 2 texts"
            )
        lengths = np.linalg.norm(vectors, axis=1)
        if not np.isfinite(vectors).all() or not lengths.all():
            raise ValueError(f"`encoder` returned NaN, infinity or only zeros for {text!r:.60} or {copy!r:.60}")
        return float(vectors[0] @ vectors[1] / lengths.prod())
