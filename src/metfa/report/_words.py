"""The words of a report: where a result comes from, and what it means for readers who do not know the method."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from metfa import noise as noises
from metfa._base.percents import counted, percent
from metfa._base.provenance import method_of, printable
from metfa.report._compared import is_changed, is_contrast, names_of, opening_of
from metfa.report._populations import closing_of_population, opening_of_population
from metfa.results.cautions import about_near_zero, about_outside, explained, heading_of
from metfa.results.decisions import kinds_at
from metfa.results.one_map import is_noisy
from metfa.results.promises import promise
from metfa.results.rules import use_of_split
from metfa.results.sample import AttributionSample
from metfa.results.summary import Summary, false_marks_of
from metfa.results.terms import Terms
from metfa.results.thresholds import UNMOVED

__all__ = ["about_of", "closing", "kinds_of", "lines_of", "opening", "paragraph_of", "warnings_of"]

POOLED = {"mean": "the mean", "sum": "the sum", "max": "the largest"}
MORE = "more "
CLOSING = "This is what the method finds in this model{}. It does not say that the model is right."
CLOSING_OF_ANSWER = "This is about the model's score of this answer. It does not say that the answer is right."
UNDER_NOISE = " under this noise"
CLOSING_OF_PAIR = "This is where two explanations differ{}. It does not say which of them is right."
CLOSING_OF_CONTRAST = "This is where explanations of two classes differ{}. It does not say that the model is right."
ABOUT_MEDIANS = " This is about the median of these differences, which is not the difference of the two medians."
NO_MORE = " The second does not say that it does not matter: another may say the same."
NOT_THE_SAME = " That no difference is shown does not mean that there is none."


def kinds_of(threshold: float, terms: Terms, *, of_context: bool) -> dict[int, str]:
    """Names of the features with each mark on this page."""
    if of_context:
        return {1: "needed", 0: "undecided", -1: "not needed"}
    return kinds_at(threshold, terms.sides, terms.sides_at)


def lines_of(summary: Summary | str, kinds: dict[int, str]) -> list[tuple[str, str]]:
    """A summary line by line, or why there is none, with the names of this page."""
    if isinstance(summary, str):
        return [("significance", summary)]
    names = {name: kinds[mark] for mark, name in summary.kinds.items()}
    promised = {"false marks": false_marks_of(summary, summary.terms, kinds)}
    return [(names.get(name, name), promised.get(name, text)) for name, text in summary.lines()]


def warnings_of(sample: AttributionSample, summary: Summary, flips: list[str], noun: str) -> list[str]:
    """What must not be missed, above a result; a comparison shows no feature to differ, where none stands out."""
    if sample.pair is None or summary.nothing is None:
        return list(summary.cautions)
    return [*flips, f"No {noun} is shown to differ: {summary.nothing}"]


def about_of(sample: AttributionSample) -> list[tuple[str, str]]:
    """Where a sample comes from and how to make it again, name by name; what two parts of a comparison share once."""
    facts = _facts(sample) if sample.pair is None else _facts_of_pair(sample)
    return [(name, printable(str(value))) for name, value in facts if value not in (None, "")]


def _facts_of_pair(sample: AttributionSample) -> list[tuple[str, Any]]:
    before, after = names_of(sample)
    scale = sample.provenance["compared"]["scale"]
    changed = "another in each of the two, so there is no certificate" if is_changed(sample) else "the same in both"
    facts: list[tuple[str, Any]] = [("compared", f"{after} minus {before}"), ("scale", scale), ("input", changed)]
    for (name, first), (_, second) in zip(*map(_facts, sample.pair or ()), strict=True):
        both = [(name, first)] if first == second else [(f"{before}: {name}", first), (f"{after}: {name}", second)]
        facts += both
    return facts


def _facts(sample: AttributionSample) -> list[tuple[str, Any]]:
    made, named = sample.provenance, explained(sample, 0)
    return [
        ("chosen", made.get("picked")),
        ("explainer", made.get("explainer")),
        ("part of several inputs", _part(sample)),
        (heading_of(named or ""), named),
        ("noise", made.get("noise")),
        *_facts_of_samples(sample),
        ("seed", _seed(made)),
        ("random draws of the explainer", made.get("draws")),
        ("random streams", made.get("streams")),
        ("batch size", made.get("batch_size")),
        ("device", made.get("device")),
        ("started", made.get("started")),
        ("seconds", made.get("seconds")),
        ("versions", _pairs(made.get("versions"))),
        ("to repeat it", _again(sample)),
    ]


def _facts_of_samples(sample: AttributionSample) -> list[tuple[str, Any]]:
    population = sample.population
    if population is None:
        ids, name = _span(sample.sample_ids), sample.input_names[0]
        return [("samples N", sample.n_samples), ("sample ids", ids), ("input name", name)]
    return [(f"{population.noun}s", sample.n_samples), (f"number of each {population.noun}", population.number)]


def _span(ids: tuple[int, ...]) -> str:
    return f"{ids[0]}" if len(ids) == 1 else f"{min(ids)} to {max(ids)}"


def _seed(made: dict[str, Any]) -> str:
    try:
        return f"{int(made['rng'], 16)} (rng={made['rng']})"
    except (KeyError, TypeError, ValueError):
        return ""


def _pairs(versions: Any) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items()) if isinstance(versions, dict) else ""


def _part(sample: AttributionSample) -> str:
    """Which part of several inputs it is, and that every rate is over this part alone."""
    if sample.part is None:
        return ""
    features = counted(sample.n_features, sample.noun)
    return f"{sample.part}: threshold, shares and corrections are over its {features} alone"


def _again(sample: AttributionSample) -> str:
    """The call that gives the same samples, with names for what this page cannot show."""
    made = sample.provenance
    if (
        sample.population is not None or not _seed(made) or made.get("draws") == "own"
    ):  # those of the explainer are not what `explain` would draw
        return ""
    if "prompts" in made:
        tree = "_tree" * (made.get("answer", {}).get("level") is not None)
        return (
            f"metfa.text.explain_answer{tree}(scorer, sources, ..., n_samples={sample.n_samples}, rng={made['rng']}), "
            "with the settings of the explainer above"
        )
    noise = str(made.get("noise"))
    noise = f"metfa.noise.{noise}" if noise.partition("(")[0] in noises.__all__ else noise
    first = f", first_sample={min(sample.sample_ids)}" if min(sample.sample_ids) else ""
    return (
        f"metfa.explain(explainer, inputs, {sample.target[0]!r}, noise={noise}, n_samples={sample.n_samples}, "
        f"rng={made['rng']}, run=metfa.Run(input_names=[{sample.input_names[0]!r}]{first})), with the explainer and "
        f"the noise above, and this input alone{'' if sample.part is None else f'; then its {sample.part}'}"
    )


def _score(sample: AttributionSample, parts: str) -> str:
    if sample.of_effects:
        return "one draw of how far the score of the answer rises by it."
    named = explained(sample, 0)
    what = "what is explained" if named is None else f"the class that is explained ({named})"
    if named is not None and len(sample.target) > 1:
        what = "the class that is explained in the row"
    if sample.pair is not None and is_contrast(sample):
        what = "that class"
    signed = any(part.signed for part in sample.pair or (sample,)) and sample.pairs_of is None
    against = " A score below 0 speaks against it." if signed else ""
    regions = sample.regions
    if regions is None:
        return f"how much it matters for {what}.{against}"
    of = f"{POOLED[regions.how]} of the scores of its {parts}, which say how much these matter for {what}"
    if regions.against is None:
        return f"{of}.{against}"
    other = "everything else" if isinstance(regions.against, str) else "another region"
    return f"{of}, less the mean of {other} in the same explanation. So a score above 0 means more than {other}."


def paragraph_of(
    sample: AttributionSample,
    summary: Summary | str,
    terms: Terms,
    noun: str,
    kinds: dict[int, str],
    *,
    of_context: bool,
    parts: str,
) -> str:
    """What was done and found, in words without statistics, with the settings of the page at its start.

    `noun` is the word for a feature, and `parts` is that for what a region is made of.
    """
    pair, scores = sample.pair is not None, "scores"
    if pair or sample.pairs_of is not None:
        scores = "differences"
    text = opening(sample, noun, parts)
    explanations = "explanations" if sample.population is None else f"{sample.sample_noun}s"
    if terms.split:
        text += f" The first {terms.split:,} of these {explanations} were {use_of_split(terms.threshold, 'used ')}."
    if of_context:
        text += " The object itself was always shown; only its surroundings are judged."
    if isinstance(summary, str):
        return f"{text} These are too few {explanations} to decide anything at the level that was asked for."
    threshold = summary.threshold
    if threshold is None or math.isnan(threshold):
        none = "Nothing" if summary.nothing == UNMOVED else f"No {noun} stands out, so none"
        return f"{text} {none} is decided: {summary.nothing}."
    above, below = kinds[1], kinds[-1]
    called = "said to get" if threshold == 0 and above.startswith(MORE) else "called"
    if terms.of_effects:
        above, below, called = f"“{above}”", f"“{below}”", "marked"
        scores = "contributions"
    if terms.correction is None and terms.of_effects:
        sure = f"each {noun} so falsely in at most {percent(terms.alpha)} of the cases, for either mark"
    elif terms.correction is None:
        chance = f"chance alone marks it in at most {percent(terms.alpha)} of the cases on each side"
        sure = f"if a {noun}'s {scores} are as likely above as below, {chance}"
    else:
        decided = replace(terms, correction=terms.in_effect)  # which of two was asked for, the figures say
        said = promise(decided, summary.n_features, expected=None, kinds=kinds, noun=noun)
        sure = f"corrected for looking at {summary.n_features:,} {noun}s at once: {said}"
    shares = {
        mark: percent(share, 1) for mark, share in ((1, summary.above), (0, summary.undecided), (-1, summary.below))
    }
    contradicted = ""
    if summary.outside:
        sentence = about_outside(summary.outside, summary.n_features, noun, quantity=scores[:-1])
        contradicted = f" {sentence[0].upper()}{sentence[1:]}."
    rest = _undecided(summary, shares[0], noun, scores) + NOT_THE_SAME * (pair and summary.undecided > 0)
    rest += NO_MORE * terms.of_effects
    return (
        f"{text} A {noun} is {called} {above} if its {scores} lie above {threshold:.3g} more often than chance "
        f"explains, and {below} if they lie below it more often than chance explains ({sure}).{ABOUT_MEDIANS * pair} "
        f"So {shares[1]} of the {noun}s are {called} {above} and {shares[-1]} {below}.{rest}{contradicted} "
        f"{closing(sample)}"
    )


def closing(sample: AttributionSample) -> str:
    """What the findings are, and what they are not."""
    if sample.of_effects:
        return CLOSING_OF_ANSWER
    noise = UNDER_NOISE * any(is_noisy(one.provenance) for one in sample.pair or (sample,))
    if sample.pair is not None:
        return (CLOSING_OF_CONTRAST if is_contrast(sample) else CLOSING_OF_PAIR).format(noise)
    return CLOSING.format(noise) if sample.population is None else closing_of_population(sample)


def opening(sample: AttributionSample, noun: str, parts: str = "parts") -> str:
    """What was done with an input, and what a score is; `parts` are what a region is made of."""
    if sample.pair is not None:
        return opening_of(sample, noun, _score(sample, parts))
    made = sample.provenance
    method = method_of(made.get("explainer")) if made.get("explainer") else ""
    method = f"The method {method}" if method.isidentifier() else "The method"
    if sample.population is not None:
        return opening_of_population(sample, method, noun, _score(sample, parts))
    how = "after a random change of it" if is_noisy(sample.provenance) else "with random choices of its own"
    if sample.of_effects:
        return (
            f"{method} asked {sample.n_samples:,} times for the score of the answer, each time with a random half of "
            f"the {noun}s{_law(sample)}. Each time gives every {noun} a contribution: {_score(sample, parts)}"
        )
    return (
        f"{method} explained the same input {sample.n_samples:,} times, each time {how}. Each explanation gives every "
        f"{noun} a score: {_score(sample, parts)}"
    )


def _law(sample: AttributionSample) -> str:
    """The noise on the prompts of an answer, as `metfa.text.explain_answer` wrote, or anybody into a file."""
    facts = sample.provenance.get("noisy_prompts")
    law = facts.get("law") if isinstance(facts, dict) else None
    return f" and under noise ({printable(law)})" if isinstance(law, str) and law else ""


def _undecided(summary: Summary, share: str, noun: str, scores: str) -> str:
    """Why the rest is undecided; an empty text where nothing is."""
    disagree = f"the {scores} do not agree enough to decide"
    if not summary.undecided:
        return ""
    if summary.nothing is not None:
        return f" The other {share} are undecided: {summary.nothing}."
    if not summary.near_zero:
        return f" For the other {share} {disagree}."
    rest = "" if round(summary.undecided * summary.n_features) == summary.near_zero else f"; of the rest {disagree}"
    near_zero = about_near_zero(summary.near_zero, summary.zone, noun, scores[:-1])
    return f" The other {share} are undecided: {near_zero}{rest}."
