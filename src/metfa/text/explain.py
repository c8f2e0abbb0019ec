"""`explain_text`: one text explained, word by word, under noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from metfa._protocol import explained_model
from metfa._provenance import describe
from metfa.result import AttributionSample
from metfa.sampling import explain
from metfa.text._words import words_of
from metfa.text.lemna import LEMNA
from metfa.text.synonyms import Synonyms

__all__ = ["explain_text"]


def explain_text(
    model: Callable[[list[Any]], Any],
    text: Any,
    target: Any = None,
    *,
    explainer: Callable[[Any], Any] = LEMNA,
    noise: Any = Synonyms(0.3),  # noqa: B008 - settings alone; the table is read when a word is replaced
    n_samples: int = 10,
    batch_size: int | None = None,
    rng: Any = None,
    first_sample: int = 0,
    store: str | Path | None = None,
    progress: bool = False,
) -> AttributionSample:
    """Explain N copies of a text in which words are replaced by synonyms.

    Parameters
    ----------
    model : callable
        A list of texts -> class probabilities (batch, classes). If the text comes as tokens, a list of lists of tokens.
    text : str or list of str
        One text, of which `metfa.text` cuts the words itself, or its tokens, each of which is a word.
    target : int, optional
        Class explained. None: the class predicted for the text, held fixed for all copies.
    explainer : callable
        Model -> explainer of texts: `metfa.text.LEMNA` (the paper's, the default), `metfa.text.LIME`,
        `metfa.text.Occlusion`, `metfa.text.GradientXInput`, one of them with settings by `functools.partial`, or a
        function of yours that returns ``explainer(texts, target=target)`` -> attributions (batch, words).
    noise : callable or None
        ``f(text, rng) -> text`` with as many words; the paper's `Synonyms`, by default each word with probability 0.3.
        None samples the explainer's own randomness alone.
    n_samples, batch_size, rng, first_sample, store, progress
        As in `metfa.explain`.

    Returns
    -------
    AttributionSample
        Of a batch of one; its features are the words, and ``sample.words`` tells which.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, a text without words, a model that does not return one row of probabilities a text, or a
        noise that changes the number of words.

    Examples
    --------
    >>> from metfa import text
    >>> model = text.load_model("sentiment")
    >>> sample = text.explain_text(model, "a dull, lifeless film with one good joke", explainer=text.Occlusion, rng=0)
    >>> sample.words[1], sample.vanilla.shape, model.class_names[sample.target[0]]
    ('dull', (1, 8), 'negative')
    """
    if not callable(model):
        raise TypeError(f"`model` must be a function list of texts -> probabilities, got {type(model).__name__}")
    words = words_of(text)
    if not callable(explainer) or explained_model(explainer) is not None:
        raise TypeError(
            f"`explainer` must be a function of the model, such as metfa.text.LEMNA, got {type(explainer).__name__}: "
            "for an explainer at hand write `lambda model: explainer`"
        )

    return explain(
        explainer(model),
        [text],
        target,
        noise=None if noise is None else _WordForWord(noise, len(words)),
        n_samples=n_samples,
        predict=model,
        batch_size=batch_size,
        rng=rng,
        feature_names=words.words,
        first_sample=first_sample,
        store=store,
        progress=progress,
    )


class _WordForWord:
    """A noise of texts, held to keep the number of words: they are the features."""

    def __init__(self, noise: Callable[..., Any], n_words: int) -> None:
        if not callable(noise):
            raise TypeError(
                f"`noise` must be a function f(text, rng) -> text, such as metfa.text.Synonyms(0.3), or None, got "
                f"{type(noise).__name__}: {noise!r:.80}"
            )
        self.noise, self.n_words = noise, n_words

    def __call__(self, text: Any, rng: np.random.Generator) -> Any:
        noisy = self.noise(text, rng)
        found = len(words_of(noisy))
        if found != self.n_words:
            raise ValueError(
                f"`noise` must keep the number of words, but made {found} of {self.n_words}: {noisy!r:.80}"
            )
        return noisy

    def __repr__(self) -> str:
        return describe(self.noise)
