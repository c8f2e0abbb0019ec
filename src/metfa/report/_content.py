"""What the page shows of one result: its numbers, and the words around them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from metfa.plot.kinds import Kind, Series, Volume
from metfa.plot.readings import place_noun
from metfa.report._cells import Edges, Samples, packed, placed
from metfa.report._certificate import certificate_of
from metfa.report._compared import classes_of, compared_of
from metfa.report._deciding import deciding
from metfa.report._inputs import named, pictured
from metfa.report._layers import colours_of, layers_of
from metfa.report._places import placed_kind, placed_of
from metfa.report._regions import log_e_values_of, outlines_of, plane_of
from metfa.report._words import about_of, kinds_of, lines_of, paragraph_of, warnings_of
from metfa.results.cautions import cautions, rounding_of
from metfa.results.decisions import Decision, TooFewSamplesError
from metfa.results.moments import ends_of
from metfa.results.one_map import is_noisy
from metfa.results.rules import AfterALook, break_in_words
from metfa.results.sample import AttributionSample
from metfa.results.scores import interval_and_smoothed
from metfa.results.summary import Summary, summarise
from metfa.results.terms import Terms
from metfa.results.thresholds import resolved, zone_of
from metfa.segmentation.explanation import ContextExplanation
from metfa.stats import ConfidenceInterval
from metfa.text.reading import harmless_text

__all__ = ["Content", "check_drawable", "rule_in_words"]

NOUNS = {"maps": "pixel", "words": "word"}  # of single features; else the sample's own
PARTS = {"regions": "pixels", "series": "steps", "volume": "voxels"}  # of a region
LARGEST = 1e300  # sums and differences of larger scores overflow


@dataclass(frozen=True)
class Content:
    """One result as the page shows it.

    Attributes
    ----------
    name, kind : str
        Its heading; "maps", "regions" (of a picture), "series", "volume", "words", "bars" or "table".
    data : dict
        JSON data for the script of the page.
    about : list of (str, str)
        Where the result comes from.
    paragraph : str
        A text for readers who do not know the method.
    lines : list of (str, str)
        Summary with the settings of the page at its start.
    explained : str or None
        The class that was explained, and the predicted one where it is another.
    cautions : list of str
        What must not be missed; where there is anything, marks are faint.
    rows : list of tuple of str
        Of a table: a line for each row, for browsers without scripts; the first holds the headings.
    """

    name: str
    kind: str
    data: dict[str, Any]
    about: list[tuple[str, str]]
    paragraph: str
    lines: list[tuple[str, str]]
    explained: str | None
    cautions: list[str]
    rows: list[tuple[str, ...]] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        name: str,
        result: AttributionSample | ContextExplanation,
        terms: Terms,
        confidence_level: float,
        *,
        given: bool,
        flips_from: float,
        beside: int | None = None,
        axes: Kind | None = None,
        stop: float | None = None,
    ) -> Content:
        """Content of a result with one input, on these terms at the start.

        `given`: the caller gave the threshold. `beside`: the place on the page of the regions of its pixels. `axes`:
        what its maps are of, where the caller said so. `stop`: a further stop of the threshold's slider.
        """
        if isinstance(result, ContextExplanation):
            if isinstance(axes, Series | Volume):
                raise ValueError(f"`kind`: the surroundings in {name!r} are those of an image, got {axes!r}")
            region, sample, tested = result.region, result.sample, result.of_context
        else:
            region, sample, tested = None, result, result
        if not tested.n_features:
            raise ValueError(f"`results`: {name!r} has no features to show")
        ends = check_drawable(name, tested)
        if terms.sides is not None:
            terms = replace(terms, sides=tuple(map(harmless_text, terms.sides)))
        threshold = _threshold(result, terms)
        known = terms
        if not math.isnan(threshold):
            known = replace(terms, threshold=threshold, correction=terms.in_effect, nothing=())
        stops = [] if math.isnan(threshold) else [threshold, 0.0] if sample.signed else [threshold]
        stops += [stop] if stops and stop is not None else []
        zone = float(zone_of(np.zeros(1), terms.unit, tested.values).flat[0]) if 0.0 in stops else 0.0
        zone = 0.0 if any(0 < abs(stop) <= zone for stop in stops) else zone
        values = tested.values[terms.split :, 0]
        edges = Edges.of(values, stops, region, zone, ends=None if terms.split else ends)
        heights = None if edges.one_by_one or terms.split else edges.heights(values.dtype)[0]
        interval, smoothed, below = interval_and_smoothed(tested, confidence_level, heights)
        samples = Samples.of(values, edges, region, None if below is None else below[:, 0])
        summary, certificate = _decided(result, tested, terms, known, confidence_level, flips_from, region, interval)
        flips = cautions(sample, 0, flips_from)
        at = np.flatnonzero(samples.edges == threshold)
        located = placed_kind(sample, axes)
        kind, plane = _kind(sample, located), plane_of(sample) if located is None else None
        noun = sample.noun if located is None else place_noun(sample, located)
        noun = NOUNS.get(kind, noun) if noun == "feature" else noun
        warned = flips
        if not isinstance(summary, str):
            warned = warnings_of(sample, summary, flips, noun)
            summary = replace(summary, cautions=tuple(warned), explained=classes_of(sample))
        data = {
            "kind": kind,
            "noun": noun,
            "sampleNoun": sample.sample_noun,
            "called": terms.sides,
            "calledAt": terms.sides_at,
            "beside": beside,
            "ofRegions": tested.regions is not None,
            "ofEffects": sample.of_effects,
            "noisy": is_noisy(sample.provenance),
            "compared": compared_of(sample, kind, confidence_level, plane),
            "shape": list(sample.feature_shape),
            "edges": samples.edges.tolist(),
            "computed": int(at[0]) if len(at) else None,
            "rule": rule_in_words(sample, terms, given=given),
            "split": terms.split,
            "samples": samples.data,
            "rounding": float(rounding_of(tested)[0]),
            "layers": layers_of(tested, confidence_level, lambda scores: placed(scores, region), (interval, smoothed)),
            "certificate": certificate,
            **deciding(tested, terms),
            "signed": bool(sample.signed),
            "faint": bool(flips),
        }
        if kind == "maps":
            data |= _mapped(sample, region) | {"logs": log_e_values_of(sample, terms)}
        elif located is not None:
            data |= placed_of(sample, located, name)
        else:
            data |= named(sample, kind)
        if plane is not None and sample.regions is not None:
            data |= {"drawn": outlines_of(sample.regions, plane), **pictured(sample, plane)}
        kinds, parts = kinds_of(threshold, terms, of_context=region is not None), PARTS.get(kind, "parts")
        paragraph = paragraph_of(sample, summary, terms, noun, kinds, of_context=region is not None, parts=parts)
        lines = lines_of(summary, kinds)
        return cls(name, kind, data, about_of(sample), paragraph, lines, classes_of(sample), warned)


def check_drawable(name: str, sample: AttributionSample) -> tuple[float, float]:
    """Lowest and highest of the samples; raises for scores whose sums and differences overflow."""
    own, parts = ends_of(sample.values), sample.pair or ()
    others = [
        *(part.values for part in parts),
        *(part.vanilla for part in (sample, *parts) if part.vanilla is not None),
    ]
    largest = max(abs(end) for ends in (own, *map(ends_of, others)) for end in ends)
    if largest > LARGEST:
        raise ValueError(f"scores of {largest:.3g}, as of {name!r}, are too large to be drawn: divide them by a number")
    return own


def rule_in_words(sample: AttributionSample, terms: Terms, *, given: bool) -> str:
    """Where the threshold comes from."""
    of_first = f" of the first {terms.split} samples" if terms.split else ""
    if isinstance(terms.threshold, AfterALook):
        return "chosen after a look"
    if callable(terms.threshold):
        return f"{break_in_words(terms.threshold) or 'computed'}{of_first}"
    if given:
        return "as given"
    if sample.of_effects:
        return "delta"
    if sample.stopping is not None and sample.stopping.tested:
        return f"fixed by the first {terms.split} samples" if terms.split else "as given to Until"
    return "default" if sample.pair is None else "no difference"


def _threshold(result: AttributionSample | ContextExplanation, terms: Terms) -> float:
    if isinstance(result, ContextExplanation):
        return result.threshold_on(terms)
    thresholds = resolved(result.values, terms, result.unmoved)[0]
    if thresholds.size != 1:
        raise ValueError(
            f"`threshold` must be one number for each input in a report, got one for each feature "
            f"{thresholds.shape[1:]}: its slider shows one number"
        )
    return float(thresholds.flat[0])


def _decided(
    result: AttributionSample | ContextExplanation,
    tested: AttributionSample,
    terms: Terms,
    known: Terms,
    confidence_level: float,
    flips_from: float,
    region: np.ndarray | None,
    interval: ConfidenceInterval | None,
) -> tuple[Summary | str, dict[str, Any] | None]:
    """The summary, or why there is none, and the certified radii; `known` are the terms with the threshold found."""
    try:
        decision: Decision = replace(result.decide(known), terms=terms)
    except TooFewSamplesError as error:
        return str(error), None
    certificate = certificate_of(tested, terms, decision, lambda radii: placed(radii, region))
    return summarise(tested, decision, confidence_level, flips_from, interval)[0], certificate


def _kind(sample: AttributionSample, located: Series | Volume | None) -> str:
    if located is not None:
        return "series" if isinstance(located, Series) else "volume"
    if plane_of(sample) is not None:
        return "regions"
    if len(sample.feature_shape) == 2:
        return "maps"
    return "words" if isinstance(sample.inputs, list) and sample.noun in ("feature", "source") else "bars"


def _mapped(sample: AttributionSample, region: np.ndarray | None) -> dict[str, Any]:
    data: dict[str, Any] = pictured(sample) | {"region": None}
    if region is not None:
        data["region"] = packed(region.astype(np.uint8))
    return data | {"colours": colours_of(signed=sample.signed)}
