"""Facts that the scaled scores of a text do not show: their size before scaling, the fit, and the words not read."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np

from metfa.results.sample import AttributionSample
from metfa.sampling.streams import Purpose, stream
from metfa.text.lemna import LEMNA
from metfa.text.lime import LIME
from metfa.text.words import words_of

__all__ = ["facts_of"]


def facts_of(explainer: Any, model: Any, sample: AttributionSample) -> dict[str, Any]:
    """Facts about the explanation of the text itself; facts that explainer or model do not give are missing.

    ``unscaled`` holds the smallest and largest score before they were scaled to [0, 1]; ``r2`` is the fit of the linear
    model; ``unread`` counts the words that the model does not read. This costs one explanation more than the samples.
    """
    text, target = sample.inputs[0], sample.target[0]
    facts: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same warnings came when the sample was drawn
        unread = _unread(model, text)
        if unread:
            facts["unread"] = unread
        rng = stream(int(sample.provenance["rng"], 16), sample.input_names[0], 0, Purpose.CLEAN)
        scores, scaled = None, getattr(explainer, "scale", False) is True
        if isinstance(explainer, LEMNA | LIME):
            (fit,), _ = explainer.fit([text], target, rngs=[rng])
            facts["r2"], scores = float(fit.r2), fit.coefficients
        elif dataclasses.is_dataclass(explainer) and scaled:
            scores = _unscaled(explainer, text, target)
    if scores is not None and scaled:
        facts["unscaled"] = [float(np.min(scores)), float(np.max(scores))]
    return facts


def _unscaled(explainer: Any, text: Any, target: int | None) -> np.ndarray | None:
    """Unscaled scores of an explainer with the setting `scale`; None if the explainer has randomness of its own."""
    if any(entry.name == "rng" for entry in dataclasses.fields(explainer)):
        return None
    output = dataclasses.replace(explainer, scale=False)([text], target)
    return np.asarray(output[0] if isinstance(output, tuple) else output)


def _unread(model: Any, text: Any) -> int:
    tokenize = getattr(model, "tokenize", None)
    if tokenize is None:
        return 0
    _, word_index = tokenize(text)
    return len(set(range(len(words_of(text)))).difference(word_index))
