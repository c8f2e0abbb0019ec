"""Both parts of a comparison: their maps on one scale, and the words about the two and their difference."""

from __future__ import annotations

from typing import Any

from metfa._base.provenance import method_of, printable
from metfa.report._inputs import named, pictured
from metfa.report._layers import colours_of, written
from metfa.results.cautions import explained, named_parts
from metfa.results.one_map import is_noisy
from metfa.results.sample import AttributionSample
from metfa.results.scaled import WORDS
from metfa.text.reading import harmless_text

__all__ = ["classes_of", "compared_of", "heading_of", "is_changed", "is_contrast", "names_of", "opening_of"]

SCALED = {
    "raw": "The scores are subtracted as the explainers gave them.",
    "mean": "Before the subtraction, each map was divided by the mean of its absolute scores.",
    "share": "Before the subtraction, each map was divided by the sum of its absolute scores, which makes shares.",
    "rank": "Before the subtraction, each score was replaced by its rank in its map, from 0 to 1 for the highest.",
}


def names_of(sample: AttributionSample) -> tuple[str, str]:
    """What the two parts of a comparison are called."""
    (before, _), (after, _) = named_parts(sample, None, None)
    return harmless_text(before), harmless_text(after)


def _scale_of(sample: AttributionSample) -> str:
    """How the maps of a comparison were scaled before they were subtracted, in a sentence."""
    return SCALED[sample.provenance["compared"]["scale"]]


def is_changed(sample: AttributionSample) -> bool:
    """Whether the two parts of a comparison explain different inputs."""
    return sample.provenance["compared"]["inputs"] == "changed"


def is_contrast(sample: AttributionSample) -> bool:
    """Whether the two parts explain two classes of one model (`metfa.contrast`)."""
    return sample.provenance["compared"].get("word") == "for"


def classes_of(sample: AttributionSample) -> str | None:
    """What was explained, in one line."""
    if sample.pair is None or not is_contrast(sample):
        return explained(sample, 0)
    before, after = names_of(sample)
    return f"{after}, against {before}"


def heading_of(sample: AttributionSample) -> str:
    """Heading of a comparison: its explainers and classes, and what is subtracted from what."""
    explainers = _methods(sample)
    targets = [part.target[0] for part in sample.pair or ()]
    named_classes = [f"class {target}" for target in targets if target is not None]
    same_explainer, same_class = explainers[0] == explainers[1], targets[0] == targets[1]
    before, after = names_of(sample)
    if sample.provenance["compared"]["names"] is None:
        if not same_explainer:
            before, after = explainers
        elif not same_class and len(named_classes) == 2:
            before, after = named_classes
    of = [explainers[0]] * same_explainer + named_classes[:1] * same_class
    return ": ".join(part for part in (", ".join(of), f"{after} minus {before}") if part)


def compared_of(
    sample: AttributionSample, kind: str, confidence_level: float, plane: tuple[int, int] | None
) -> dict[str, Any] | None:
    """Both parts of a comparison as the page reads them, all inputs one after the other; None for no comparison.

    Their maps are smoothed, or plain means where there are too few samples for that.
    """
    if sample.pair is None:
        return None
    signed = any(part.signed for part in sample.pair)
    stable = "mean" if sample.too_few_for(confidence_level) is not None else "smoothed"
    both = [part.mean() if stable == "mean" else part.smoothed(confidence_level) for part in sample.pair]
    data: dict[str, Any] = {
        "names": names_of(sample),
        "scale": _scale_of(sample),
        "changed": is_changed(sample),
        "stable": stable,
        "signed": signed,
        **written({"before": both[0], "after": both[1]}),
    }
    if kind in ("maps", "regions"):
        data["colours"] = colours_of(signed=signed)
        if is_changed(sample):
            data |= pictured(sample.pair[1], plane)
    if kind == "words" and is_changed(sample):
        data["texts"] = [named(part, kind) for part in sample.pair]
    return data


def opening_of(sample: AttributionSample, noun: str, about_a_score: str) -> str:
    """What was subtracted from what; `about_a_score` says what one score is."""
    before, after = (f'"{name}"' for name in names_of(sample))
    methods = _methods(sample)
    if is_contrast(sample):
        before_by, after_by = f"for {before}", f"for {after}"
    elif all(method.isidentifier() for method in methods):
        before_by, after_by = (f"{name} (by {by})" for name, by in zip((before, after), methods, strict=True))
    else:
        before_by, after_by = before, after
    n = f"{sample.n_samples:,}"
    noisy = is_noisy(sample.provenance)
    if is_changed(sample):
        under = ", under the same noise" if noisy else ""
        how = f"Two inputs that belong together were explained {n} times each{under}: {before_by} and {after_by}."
        copy = "pair of explanations"
    elif noisy:
        how = f"The same {n} noisy copies of the input were explained twice: {before_by} and {after_by}."
        copy = "copy"
    else:
        how = f"The same input was explained {n} times in each of two ways: {before_by} and {after_by}."
        copy = "pair of explanations"
    return (
        f"{how} Each explanation gives every {noun} a score: {about_a_score} In each {copy} the score of {before} is "
        f"subtracted from that of {after}. {_scale_of(sample)}"
    )


def _methods(sample: AttributionSample) -> list[str]:
    """Names of both explainers, without their settings and how their maps were scaled."""
    scaled_by = WORDS.get(sample.provenance["compared"]["scale"], "")
    return [_method(part, scaled_by) for part in sample.pair or ()]


def _method(part: AttributionSample, scaled_by: str) -> str:
    explainer = str(part.provenance.get("explainer") or "explanation")
    return harmless_text(printable(method_of(explainer.removeprefix(scaled_by))))
