"""What noise does to the scores of the whole prompt: how far they move, and whether the answers' order changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from metfa._base.percents import percent
from metfa.results.sample import AttributionSample
from metfa.text.answers.source_effects import SourceEffects

__all__ = ["N_NOISY", "noisy_whole", "with_noise_said"]

N_NOISY = 20  # noisy whole prompts: a change in a fifth of all is missed with probability .8**20, about .01


def noisy_whole(
    effects: SourceEffects, row: list[str], known: list[Any], at_a_time: int, progress: Callable[[list[Any]], None]
) -> list[Any]:
    """Scores of the whole prompt under the scorer's noise, going on with those that are `known`; none without noise."""
    scores = list(known)
    while effects.noisy and len(scores) < N_NOISY:
        upto = min(len(scores) + at_a_time, N_NOISY)
        scores += effects.noisy_scores(row, len(scores), upto).tolist()
        progress(scores)
    return scores


def with_noise_said(sample: AttributionSample, scorer: Any, whole: Any, noisy: list[Any]) -> AttributionSample:
    """The sample, with what the noise did to the whole prompt in its provenance and its notes."""
    if not noisy:
        return sample
    clean, found = np.atleast_1d(np.asarray(whole, dtype=np.float64)), np.array(noisy, dtype=np.float64)
    own = getattr(scorer, "scorer", scorer)
    what, changed = None, None
    if getattr(own, "contrast", None) is not None:
        what, changed = "which is likelier, the answer or its contrast", (np.sign(found) != np.sign(clean)).any(axis=1)
    elif len(clean) > 1 and getattr(own, "spans", None) is None:
        what, changed = "the order of the answers", (found.argsort(axis=1) != clean.argsort()).any(axis=1)
    ranges = ", ".join(f"{low:.3g} to {high:.3g}" for low, high in zip(found.min(0), found.max(0), strict=True))
    said = f"score of the whole prompt {ranges} in {len(found)} noisy prompts"
    facts: dict[str, Any] = {"prompts": len(found), "law": str(getattr(scorer, "law", ""))}
    if what is not None and changed is not None:
        share = float(changed.mean())
        facts |= {"what": what, "changed": share}
        said += f"; the noise changed {what} in {percent(share, 0)} of them"
    notes = [*sample.provenance["notes"], ["under noise", said]]
    return replace(sample, provenance={**sample.provenance, "noisy_prompts": facts, "notes": notes})
