"""Explainers of the lime package for tables, images and texts, one random generator a row."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from metfa._base.validation import check_flag, positive_int
from metfa.explainers._lime_kinds import LimeImage, LimeTable, LimeTexts

__all__ = ["from_lime"]

GOVERNED = {"data_row", "image", "text_instance", "predict_fn", "classifier_fn", "labels", "top_labels", "random_seed"}
KINDS: dict[str, type] = {
    "LimeTabularExplainer": LimeTable,
    "LimeImageExplainer": LimeImage,
    "LimeTextExplainer": LimeTexts,
}


def from_lime(
    explainer: Any,
    predict: Callable[..., Any],
    *,
    softmax: bool = False,
    n_segments_shown: int | None = None,
    rng: Any = None,
    **settings: Any,
) -> Any:
    """Explainer from one of the lime package's: signed weights of all features of a table, an image or a text.

    Every row draws from a generator of its own, not from the lime object's random state. So the seed of `metfa.explain`
    governs all of LIME's randomness. The lime object is left as it was.

    Parameters
    ----------
    explainer : LimeTabularExplainer, LimeImageExplainer or LimeTextExplainer
        Made as lime's documentation shows.
    predict : callable
        Inputs -> probabilities (batch, classes); for a table with ``mode="regression"`` values (batch,). It is called
        with what `metfa.explain` gets: rows of a table, images (batch, channels, height, width) with pixels in [0, 1],
        each in the library of the inputs, or a list of texts. For data frames it gets frames; where they hold labels,
        it is a `metfa.Coded`, and lime's explainer was made of its codes.
    softmax : bool
        Turn the scores of `predict` into probabilities by a softmax, for a network that returns logits.
    n_segments_shown : int, optional
        For images: a map of 1 on this many segments, those with the largest positive weights, and 0 elsewhere, which is
        lime's ``get_image_and_mask`` (5 there and in the MeTFA paper). None: the weight of each pixel's segment.
    rng : int, numpy.random.Generator or None
        Seed of direct calls; `metfa.explain` passes its own generators.
    **settings
        Arguments of ``explain_instance``, such as ``num_samples=1000`` or ``hide_color=0``.

    Returns
    -------
    callable
        Explainer that returns weights and scores: (batch, columns), (batch, height, width) or (batch, words). For
        texts it has ``.words(text)``, the names of the features. Texts of one call need equally many words.

    Raises
    ------
    TypeError, ValueError
        If `explainer` is none of the three, or has no such setting. When called: for an image of a single segment.

    Warns
    -----
    ModelOutputWarning, DegenerateAttributionsWarning
        If the scores are not probabilities, or a text has one or two words.

    Notes
    -----
    Weights of features that lime leaves out (``num_features=``) are 0. Features are aligned from sample to sample by
    position, so a noise on texts must keep the words: use ``noise=None``, for LIME's own randomness, or
    ``LimeTextExplainer(bow=False)`` with a noise that replaces words one by one. Under noise, an image is segmented
    anew for each sample.

    Examples
    --------
    .. code-block:: python

       explainer = from_lime(LimeTabularExplainer(training_rows), forest.predict_proba)
       explainer = from_lime(LimeImageExplainer(), network, softmax=True, n_segments_shown=5)
       explainer = from_lime(LimeTextExplainer(), pipeline.predict_proba)
    """
    names = [kind.__name__ for kind in type(explainer).__mro__]
    kind = next((KINDS[name] for name in names if name in KINDS), None)
    if kind is None:
        got = explainer.__name__ if isinstance(explainer, type) else type(explainer).__name__
        raise TypeError(f"`explainer` must be an object of {', '.join(KINDS)} of the lime package, got {got}")
    if not callable(predict):
        raise TypeError(f"`predict` must be a function inputs -> probabilities, got {type(predict).__name__}")
    softmax = check_flag(softmax, "softmax")
    known = [name for name in inspect.signature(explainer.explain_instance).parameters if name not in GOVERNED]
    for name in settings:
        if name in ("num_samples", "num_features"):
            positive_int(settings[name], name)
        if name not in known:
            raise ValueError(f"{names[0]}.explain_instance has no setting {name!r} here; it has {', '.join(known)}")
    if kind is not LimeImage:
        if n_segments_shown is not None:
            raise ValueError(f"`n_segments_shown` is for images, {names[0]} has no segments")
        return kind(explainer, predict, softmax, settings, rng)
    shown = None if n_segments_shown is None else positive_int(n_segments_shown, "n_segments_shown")
    return LimeImage(explainer, predict, softmax, settings, rng, shown)
