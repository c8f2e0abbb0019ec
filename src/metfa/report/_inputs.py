"""What the page shows of an input: its picture, its words, or the names and values of its columns."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa.plot.pictures import picture_of
from metfa.results.labels import value_texts
from metfa.results.sample import AttributionSample
from metfa.text.reading import harmless_text
from metfa.text.words import words_of

__all__ = ["named", "pictured"]


def pictured(sample: AttributionSample, plane: tuple[int, int] | None = None) -> dict[str, str]:
    """Picture below the maps of one input, or below the `plane` of its regions, and its caption; it may be larger."""
    picture, caption = picture_of(sample, plane, larger=True)
    return {"picture": _png(picture), "caption": caption}


def _png(picture: np.ndarray) -> str:
    with needs_extra("a report with maps"):
        from PIL import Image
    buffer = io.BytesIO()
    levels = np.rint(np.clip(np.nan_to_num(picture), 0, 1) * 255).astype(np.uint8)
    Image.fromarray(levels).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def named(sample: AttributionSample, kind: str) -> dict[str, Any]:
    """Names of features along one axis; of words what stands between them, of columns their values."""
    names, gaps = sample.feature_names, None
    if kind == "words":
        words = words_of(sample.inputs[0])
        names, gaps = (names, None) if names not in (None, words.words) else (words.words, words.gaps)
    names = names or tuple(f"feature {place}" for place in range(sample.n_features))
    shown = [harmless_text(name) for name in names]
    gaps = None if gaps is None else list(map(harmless_text, gaps))
    return {"names": shown, "gaps": gaps, "values": _values(sample)}


def _values(sample: AttributionSample) -> list[str] | None:
    """Values of columns; in a comparison of changed inputs both, where they differ."""
    if sample.pair is not None:
        before, after = map(_values, sample.pair)
        if before is None or after is None:
            return None
        return [a if a == b else f"{a} \N{RIGHTWARDS ARROW} {b}" for a, b in zip(before, after, strict=True)]
    inputs = sample.inputs if isinstance(sample.inputs, np.ndarray) and sample.noun == "feature" else None
    if inputs is None or inputs.shape != (1, sample.n_features) or inputs.dtype.kind not in "biuf":
        return None
    texts = value_texts(sample) or [None] * sample.n_features
    values = zip(inputs[0].tolist(), texts, strict=True)
    return [f"{value:.4g}" if text is None else harmless_text(text) for value, text in values]
