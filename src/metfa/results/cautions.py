"""What a reader of one row must not miss: its class, a noise that changes the prediction, contradicted clean scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa import stats
from metfa._base.class_names import class_name
from metfa._base.content_ids import is_content_id
from metfa._base.percents import counted, percent
from metfa._base.provenance import printable
from metfa._base.validation import check_number
from metfa.results.thresholds import flat_in_words
from metfa.stats.prominences import smallest_difference

if TYPE_CHECKING:
    from typing import TypeVar

    from metfa.results.sample import AttributionSample
    from metfa.results.samples import Samples

    Thing = TypeVar("Thing")

__all__ = [
    "FLIPS_FROM",
    "about_near_zero",
    "about_outside",
    "cautions",
    "check_flips_from",
    "class_in_words",
    "explained",
    "heading_of",
    "left_out",
    "line_of_row",
    "named_parts",
    "named_so",
    "notes_of",
    "nothing_stands_out",
    "outside",
    "place",
    "predicted",
    "rounding_of",
    "trimming",
]

LONGEST_NAME = 40  # of an input, in a line about it
FLIPS_FROM = 0.2  # a choice: one copy in five explains another decision than the one that was asked about


def nothing_stands_out(nothing: Sequence[str | None], row: int, noun: str = "feature") -> list[str]:
    """The sentence for a row in which no feature stands out, from `Decision.nothing`; it belongs in titles too."""
    why = nothing[row] if nothing else None
    if why is None:
        return []
    said = flat_in_words(why, noun)
    return [f"{said[0].upper()}{said[1:]}"]


def predicted(scores: np.ndarray | None) -> np.ndarray | None:
    """Class that scores (batch, classes) of the clean inputs predict, (batch,); None without two classes."""
    return None if scores is None or scores.ndim != 2 or scores.shape[1] < 2 else scores.argmax(axis=1)


def check_flips_from(flips_from: Any) -> float:
    """`flips_from` as a float; raises unless it is a share."""
    share = check_number(flips_from, "flips_from", least=-math.inf)
    if not 0 < share <= 1:
        raise ValueError(
            f"`flips_from` must be a share above 0 and at most 1, got {flips_from}: for 20 % write 0.2, and 1 to be "
            "warned only where the noise changed every prediction"
        )
    return share


def cautions(sample: AttributionSample, row: int, flips_from: float = FLIPS_FROM) -> list[str]:
    """Sentences that belong in the title of every view of a row; where there are any, its marks are drawn faintly."""
    limit, rate = check_flips_from(flips_from), sample.flip_rate
    if sample.pair is not None:
        first, second = (cautions(part, row, flips_from) for part in sample.pair)
        return (
            first
            if first == second
            else [f"{name}: {text}" for name, texts in named_parts(sample, first, second) for text in texts]
        )
    if rate is None or rate[row] < limit:
        return _of_noisy_prompts(sample, limit)
    return [f"The noise changed the prediction in {percent(rate[row], 0)} of the noisy copies"]


def _of_noisy_prompts(sample: AttributionSample, limit: float) -> list[str]:
    """What noise on prompts did to the answers, as `metfa.text.explain_answer` wrote, or anybody into a file."""
    facts = sample.provenance.get("noisy_prompts")
    if not isinstance(facts, dict) or not isinstance(facts.get("changed"), float) or not facts["changed"] >= limit:
        return []
    what, n = printable(str(facts.get("what"))), facts.get("prompts")
    return [f"The noise changed {what} in {percent(min(facts['changed'], 1.0), 0)} of {n} noisy prompts"]


def named_parts(sample: AttributionSample, before: Thing, after: Thing) -> list[tuple[str, Thing]]:
    """Something of each part of a comparison, with the part's name."""
    names = sample.provenance["compared"]["names"] or ("before", "after")
    return [(printable(names[0]), before), (printable(names[1]), after)]


def _class_explained(sample: AttributionSample, row: int) -> str | None:
    """The class that was explained, with its name where it is known."""
    several = sample.population and sample.population.classes(partial(class_in_words, sample))
    return several or class_in_words(sample, sample.target[row])


def class_in_words(sample: AttributionSample, target: Any) -> str | None:
    """A class, with its name where the model has one; None for None."""
    if target is None:
        return None
    if sample.target_noun != "class":
        return f"{sample.target_noun} {target}"
    if not isinstance(target, int | np.integer):
        return printable(f"target {target}")
    names = sample.provenance.get("class_names") or ()
    named = f" ({printable(names[target])})" if 0 <= target < len(names) else ""
    return f"{class_name(int(target), None)}{named}"


def explained(sample: AttributionSample, row: int) -> str | None:
    """The class that was explained, and whether it is the predicted one; None where no class was asked for."""
    if sample.pair is not None:
        first, second = (explained(part, row) for part in sample.pair)
        said = [_inside(name, text) for name, text in named_parts(sample, first, second)]
        if sample.provenance["compared"].get("word") == "for":  # a contrast: the first is what is subtracted
            return f"{said[1]}, rather than {said[0]}"
        return first if first == second else "; ".join(said)
    named = _class_explained(sample, row)
    clean = predicted(sample.scores)
    if named is None or clean is None:
        return named
    if clean[row] == sample.target[row]:
        return f"{named}, as predicted"
    return f"{named}; predicted: {class_in_words(sample, clean[row])}"


def heading_of(named: str) -> str:
    """Name of the line that says what was explained: a class, or an answer or an output, which are none."""
    return "class explained" if "class" in named or "target" in named else "explained"


def _inside(name: str, text: str | None) -> str:
    """What is explained, inside a list of both parts of a comparison; once, where a part has the name of its class."""
    named, _, other = (text or "no class").partition("; ")
    said = f"{named} ({other})" if other else named
    return said if named.partition(",")[0].partition(" (")[0] == name else f"{name}: {said}"


def line_of_row(sample: AttributionSample, row: int) -> str | None:
    """The line below a title: which input of the batch it is, and the class that was explained."""
    named = explained(sample, row)
    parts = [place(sample, row), None if named is None else f"explained: {named}"]
    return "; ".join(part for part in parts if part) or None


def place(sample: AttributionSample, row: int) -> str | None:
    """Which input of the batch it is, with the name that it was given, and which part; None if it is the only one."""
    which = f"input {row} of {len(sample.target)}" if len(sample.target) > 1 else None
    if which is not None:
        which += named_so(sample.input_names[row], row)
    return " of ".join(named for named in (sample.part, which) if named is not None) or None


def named_so(name: str, row: int) -> str:
    """The name that an input was given, in brackets behind its place; nothing where nobody gave one."""
    first, _, rest = name.partition(", ")
    name = rest if is_content_id(first) else name  # such as "answer 1" of a prompt without a name
    if not name or name == str(row):
        return ""
    short = printable(name)
    return f" ({short if len(short) <= LONGEST_NAME else f'{short[: LONGEST_NAME - 2]} …'})"


def rounding_of(sample: Samples) -> np.ndarray:
    """How far two scores of each input differ by rounding alone, (batch,); see `Terms.unit`."""
    zones = smallest_difference(np.asarray(sample.unit, dtype=np.float64), sample.values.dtype)
    return np.broadcast_to(zones, len(sample.target))


def outside(sample: Samples, interval: stats.ConfidenceInterval) -> np.ndarray:
    """Whether the score of the clean input lies outside the interval of the median, by more than rounding.

    The clean map and the noisy ones may come from batches of other sizes, whose kernels round in another way.
    """
    zone = rounding_of(sample).reshape(-1, *[1] * len(sample.feature_shape))
    return (sample.vanilla < interval.low - zone) | (sample.vanilla > interval.high + zone)


def about_near_zero(count: int, zone: float | None, noun: str = "feature", quantity: str = "score") -> str:
    """How many features have no sign, because most of their scores (or differences) lie within a `zone` about 0."""
    near = f"within {zone or 0.0:.2g} of 0, which counts as rounding"
    if quantity != "score":
        return f"most {quantity}s of {counted(count, noun)} lie {near}"
    return f"1 {noun} lies {near}, and has no sign" if count == 1 else f"{count:,} {noun}s lie {near}, and have no sign"


def about_outside(count: int, n_features: int, noun: str = "feature", quantity: str = "score") -> str:
    """How many clean scores (or differences) contradict their own intervals."""
    share = percent(count / n_features if n_features else 0.0, 1)
    return (
        f"the {quantity} without noise lies outside the interval of {count:,} of {counted(n_features, noun)} ({share})"
    )


def left_out(sample: AttributionSample, confidence_level: float) -> int:
    """How many samples the smoothed map leaves out on each side; so many wild maps do not move it far."""
    return stats.median_ranks(sample.n_samples, confidence_level).first - 1


def trimming(count: int) -> str:
    """How many samples the smoothed map leaves out on each side, in words."""
    return f"{count} left out on each side" if count else "too few to leave any out"


def notes_of(sample: AttributionSample) -> tuple[tuple[str, str], ...]:
    """What the explainer said of its results, as anybody may have written it into a file."""
    notes = sample.provenance.get("notes")
    pairs = [note for note in notes if isinstance(note, list) and len(note) == 2] if isinstance(notes, list) else []
    return tuple((printable(str(name)), printable(str(text))) for name, text in pairs)
