"""What a report says in words: where a result comes from, and what it means to who does not know the method."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from metfa._provenance import printable
from metfa.result import AttributionSample
from metfa.summary import Summary

if TYPE_CHECKING:
    from metfa.report._content import Decisions

__all__ = ["about_of", "paragraph_of"]

NOUNS = {"maps": "pixel", "words": "word", "bars": "feature"}


def about_of(sample: AttributionSample) -> list[tuple[str, str]]:
    """Where a sample comes from and how to make it again, name by name."""
    made = sample.provenance
    facts: list[tuple[str, Any]] = [
        ("explainer", made.get("explainer")),
        ("class explained", sample.target[0]),
        ("noise", made.get("noise")),
        ("samples N", sample.n_samples),
        ("sample ids", _span(sample.sample_ids)),
        ("seed", _seed(made)),
        ("random streams", made.get("streams")),
        ("batch size", made.get("batch_size")),
        ("device", made.get("device")),
        ("started", made.get("started")),
        ("seconds", made.get("seconds")),
        ("versions", _pairs(made.get("versions"))),
    ]
    facts += [(name, value) for name, value in _again(sample)]
    return [(name, printable(str(value))) for name, value in facts if value not in (None, "")]


def _span(ids: tuple[int, ...]) -> str:
    return f"{ids[0]}" if len(ids) == 1 else f"{min(ids)} to {max(ids)}"


def _seed(made: dict[str, Any]) -> str:
    try:
        return f"{int(made['rng'], 16)} (rng={made['rng']})"
    except (KeyError, TypeError, ValueError):
        return ""


def _pairs(versions: Any) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items()) if isinstance(versions, dict) else ""


def _again(sample: AttributionSample) -> list[tuple[str, str]]:
    made = sample.provenance
    if not made.get("rng"):
        return []
    first = f", first_sample={min(sample.sample_ids)}" if min(sample.sample_ids) else ""
    return [
        (
            "to repeat it",
            f"metfa.explain(explainer, inputs, {sample.target[0]}, noise=metfa.noise.{made.get('noise')}, "
            f"n_samples={sample.n_samples}, rng={made['rng']}{first}) with this explainer of the same model",
        )
    ]


def paragraph_of(
    sample: AttributionSample, summary: Summary | str, decisions: Decisions, kind: str, *, of_context: bool
) -> str:
    """What was done and found, without terms of statistics, with the settings that the page starts with."""
    noun, made = NOUNS[kind], sample.provenance
    method = str(made.get("explainer") or "").partition("(")[0]
    method = f"the method {printable(method)}" if method.isidentifier() else "the method"
    noisy = made.get("noise") not in (None, "None")
    how = (
        "each time with a little random change of it" if noisy else "each time with other random choices of the method"
    )
    told = (
        f"The model was asked {sample.n_samples:,} times about the same input, {how}, and {method} told each time how "
        f"much every {noun} mattered for the class that is explained."
    )
    if isinstance(summary, str):
        return f"{told} That is too seldom to tell anything from chance at the level asked for."
    if summary.threshold is None or math.isnan(summary.threshold):
        return f"{told} All scores are equal: there is nothing that sets one {noun} apart from another."
    if summary.threshold == 0 and sample.signed:
        means = (
            f"A {noun} speaks for the class where its scores lie above 0 too often for chance, against it where below"
        )
    else:
        important, unimportant = ("needed", "not needed") if of_context else ("important", "unimportant")
        means = (
            f"A {noun} is called {important} where its scores lie above {summary.threshold:.3g} too often for chance, "
            f"and {unimportant} where they lie below too often"
        )
    level = f"{100 * decisions.alpha:g}%"
    sure = (
        f"(where its scores are as likely above as below, that happens by chance in at most {level} of cases a side)"
        if decisions.correction is None
        else f"(corrected for looking at {summary.n_features:,} {noun}s at once: {decisions.correction} at {level})"
    )
    found = (
        f"That holds for {summary.important:.1%} and {summary.unimportant:.1%} of the {noun}s; for the other "
        f"{summary.undecided:.1%} the scores do not agree enough to say."
    )
    if of_context:
        told += " The object itself was always shown; only what surrounds it is looked at."
    return (
        f"{told} {means} {sure}. {found} This is what the method finds in this model under this noise; it does not say "
        "that the model is right."
    )
