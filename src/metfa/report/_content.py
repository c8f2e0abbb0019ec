"""What the page is told of one result: its numbers, and the words around them."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa import stats
from metfa._base.lazy import needs_extra
from metfa.plot.images import picture_of
from metfa.report._cells import Samples
from metfa.report._certificate import certificate_of
from metfa.report._layers import layers_of
from metfa.report._packing import packed
from metfa.report._words import about_of, kinds_of, lines_of, paragraph_of
from metfa.results.decisions import terms_of_until
from metfa.results.sample import AttributionSample
from metfa.results.sample_size import TooFewSamplesError, samples_needed
from metfa.results.significance import ANY_TIME, CORRECTIONS
from metfa.results.summary import Summary
from metfa.segmentation.explanation import ContextExplanation
from metfa.stats.sequential import reciprocal_table
from metfa.stats.sign_null import upper_tail_table
from metfa.text.reading import alpha_beside, harmless_text
from metfa.text.words import words_of

__all__ = ["Content", "Decisions"]

ALPHAS = (1e-6, 1e-5, 1e-4, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
COLOURS = 256  # steps of a colour map
LARGEST = 1e300  # sums and differences of larger scores overflow


@dataclass(frozen=True)
class Decisions:
    """Settings that the page starts with."""

    threshold: Any
    alpha: float
    correction: str | None
    confidence_level: float
    split: int | None = None

    @staticmethod
    def usual_alpha(results: Sequence[Any], correction: str | None, confidence_level: float) -> float:
        """0.05, as for maps; where there are words and features alone, that of their figures: as the intervals."""
        samples = [result.sample if isinstance(result, ContextExplanation) else result for result in results]
        maps = any(len(sample.feature_shape) != 1 for sample in samples)
        return 0.05 if maps else alpha_beside(confidence_level, correction)

    @property
    def alphas(self) -> list[float]:
        """Stops of the slider of alpha."""
        return sorted({*ALPHAS, self.alpha})

    def of(self, sample: AttributionSample) -> tuple[Any, int]:
        """The threshold that is meant for a sample, and how many of its first samples it leaves out of the tests.

        After `metfa.until` those that it fixed; else 0 for signed features along one axis, as figures choose it.
        """
        fixed = terms_of_until(sample)
        if self.threshold is not None:
            return self.threshold, self.split or 0
        if fixed is not None and self.split is None:
            return float(fixed[0][0]), fixed[1]
        return 0.0 if len(sample.feature_shape) == 1 and sample.signed else stats.jenks, self.split or 0


@dataclass(frozen=True)
class Content:
    """One result as the page shows it.

    Attributes
    ----------
    name, kind : str
        Its heading; "maps", "words" or "bars".
    told : dict
        What the page's script reads, JSON.
    about : list of (str, str)
        Where it comes from.
    paragraph : str
        For a reader who does not know the method.
    lines : list of (str, str)
        Summary with the settings that the page starts with.
    """

    name: str
    kind: str
    told: dict[str, Any]
    about: list[tuple[str, str]]
    paragraph: str
    lines: list[tuple[str, str]]

    @classmethod
    def of(cls, name: str, result: AttributionSample | ContextExplanation, decisions: Decisions) -> Content:
        """Content of a result with one input."""
        if isinstance(result, ContextExplanation):
            region, sample, tested = result.region, result.sample, result.of_context
        else:
            region, sample, tested = None, result, result
        if not tested.n_features:
            raise ValueError(f"`results`: {name!r} has no features to show")
        largest = max(
            float(abs(part(values))) for part in (np.min, np.max) for values in (tested.values, tested.vanilla)
        )
        if largest > LARGEST:
            raise ValueError(
                f"scores of {largest:.3g}, as of {name!r}, are too large to be drawn: divide them by a number"
            )
        threshold, held_out = decisions.of(sample)
        if held_out >= sample.n_samples:
            raise ValueError(
                f"`split` must leave samples to test, got {held_out} of the {sample.n_samples} of {name!r}"
            )
        height = _height(result, threshold, held_out)
        if math.isinf(height):
            raise ValueError(f"`threshold` must be finite, but the rule returned {height} for {name!r}")
        summary = _summary(result, threshold if math.isnan(height) else height, decisions, held_out)
        heights = [] if math.isnan(height) else [height, 0.0] if sample.signed else [height]
        n_tested = sample.n_samples - held_out
        samples = Samples.of(_placed(tested.values[held_out:, 0], region), heights)
        at = np.flatnonzero(samples.edges == height)
        kind = _kind(sample)
        told = {
            "kind": kind,
            "shape": list(sample.feature_shape),
            "edges": samples.edges.tolist(),
            "computed": int(at[0]) if len(at) else None,
            "rule": _rule(threshold, decisions, held_out, by_until=terms_of_until(sample) is not None),
            "heldOut": held_out,
            "samples": samples.told,
            "layers": layers_of(tested, decisions.confidence_level, lambda scores: _placed(scores, region)),
            "certificate": certificate_of(
                tested,
                height,
                decisions,
                held_out,
                lambda radii: _placed(radii, region),
                saw_tested=callable(threshold),
            ),
            "tails": upper_tail_table(n_tested).tolist(),
            "reciprocals": reciprocal_table(n_tested).tolist(),
            "anyTime": sample.any_time,
            "harmonic": float((1 / np.arange(1, tested.n_features + 1)).sum()),
            "needed": {
                str(correction or "none"): [
                    samples_needed(a, correction, tested.n_features, any_time=sample.any_time) for a in decisions.alphas
                ]
                for correction in (ANY_TIME if sample.any_time else CORRECTIONS)
            },
            "signed": bool(sample.signed),
        }
        if kind == "maps":
            told |= _pictured(sample, region)
        else:
            told |= _named(sample, kind)
        kinds = kinds_of(height, signed=sample.signed, of_context=region is not None)
        paragraph = paragraph_of(sample, summary, decisions, kind, kinds, held_out, of_context=region is not None)
        return cls(name, kind, told, about_of(sample), paragraph, lines_of(summary, kinds))


def _placed(values: np.ndarray, region: np.ndarray | None) -> np.ndarray:
    """Features (..., features) of an input; of a context as those of the whole map, 0 in the object."""
    if region is None:
        return values.reshape(len(values), -1) if values.ndim > 1 else values
    whole = np.zeros((*values.shape[:-1], region.size), values.dtype)
    whole[..., ~region.ravel()] = values
    return whole


def _rule(threshold: Any, decisions: Decisions, held_out: int, *, by_until: bool) -> str:
    of_first = f" of the first {held_out} samples" if held_out else ""
    if threshold is stats.jenks:
        return f"natural break{of_first}"
    if callable(threshold):
        return f"computed{of_first}"
    if decisions.threshold is not None:
        return "as given"
    if by_until and decisions.split is None:
        return f"fixed by the first {held_out} samples" if held_out else "as given to until"
    return "default"


def _height(result: AttributionSample | ContextExplanation, threshold: Any, held_out: int) -> float:
    if not callable(threshold):
        return float(threshold)
    return float(np.ravel(result.threshold(threshold, split=held_out))[0])


def _summary(
    result: AttributionSample | ContextExplanation, threshold: Any, decisions: Decisions, held_out: int
) -> Summary | str:
    """The summary, or why there is none."""
    settings = {"alpha": decisions.alpha, "correction": decisions.correction, "split": held_out}
    try:
        return result.summary(threshold, confidence_level=decisions.confidence_level, **settings)[0]
    except TooFewSamplesError as error:
        return str(error)


def _kind(sample: AttributionSample) -> str:
    if len(sample.feature_shape) == 2:
        return "maps"
    if len(sample.feature_shape) != 1:
        raise ValueError(
            f"a report shows maps (height, width) or features along one axis, got features {sample.feature_shape}; "
            "`metfa.explainers.heatmap(explainer)` reduces channels"
        )
    return "words" if isinstance(sample.inputs, list) else "bars"


def _pictured(sample: AttributionSample, region: np.ndarray | None) -> dict[str, Any]:
    picture, caption = picture_of(sample)
    told: dict[str, Any] = {"picture": _png(picture), "caption": caption, "region": None}
    if region is not None:
        told["region"] = packed(region.astype(np.uint8))
    with needs_extra("a report with maps"):
        from matplotlib import colormaps
    scale = colormaps["RdBu_r" if sample.signed else "inferno"](np.linspace(0, 1, COLOURS), bytes=True)[:, :3]
    return told | {"colours": base64.b64encode(scale.tobytes()).decode("ascii")}


def _png(picture: np.ndarray) -> str:
    with needs_extra("a report with maps"):
        from PIL import Image
    buffer = io.BytesIO()
    levels = np.rint(np.clip(np.nan_to_num(picture), 0, 1) * 255).astype(np.uint8)
    Image.fromarray(levels).save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def _named(sample: AttributionSample, kind: str) -> dict[str, Any]:
    names, gaps = sample.feature_names, None
    if kind == "words":
        words = words_of(sample.inputs[0])
        names, gaps = (names, None) if names not in (None, words.words) else (words.words, words.gaps)
    names = names or tuple(f"feature {place}" for place in range(sample.n_features))
    inputs = sample.inputs if isinstance(sample.inputs, np.ndarray) else None
    values = None
    if inputs is not None and inputs.shape == (1, sample.n_features) and inputs.dtype.kind in "biuf":
        values = [f"{value:.4g}" for value in inputs[0].tolist()]
    shown = [harmless_text(name) for name in names]
    return {"names": shown, "gaps": None if gaps is None else list(map(harmless_text, gaps)), "values": values}
