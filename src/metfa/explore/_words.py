"""Which statements stand now, and which if somebody samples more after this look."""

from __future__ import annotations

from metfa._base.percents import counted
from metfa.results.sample import AttributionSample

__all__ = ["AT_ANY_TIME", "NO_MORE", "standing"]

AT_ANY_TIME = {"holm": "bonferroni", "bh": "closed-e-bh", "by": "closed-e-bh"}  # bounds the same rate at any time
NO_MORE = (
    "to sample more here, give the call that made the samples: "
    "`sample.explore(more=functools.partial(metfa.explain, explainer, inputs, noise=noise))`"
)
KEPT = "no correction, Bonferroni, e-BH and closed e-BH"


def standing(sample: AttributionSample, *, more: bool) -> dict[str, str]:
    """What the page says: a title, what stands for these samples, and what stands if there are `more`."""
    noun = sample.sample_noun
    title = f"{counted(sample.n_samples, noun)}."
    if sample.population is not None:
        return {"title": title, "stands": "", "ifMore": ""}  # its number is that of its rows
    hint = f"{NO_MORE[0].upper()}{NO_MORE[1:]}.".replace("`", "")
    if sample.any_time:
        title = f"{title[:-1]}, {sample.grown or 'with looks by metfa.Until'}."
        intervals = "there are no intervals of means" if sample.of_effects else "intervals hold at any time"
        stands = f"So tests by e-values decide, and {intervals}: each statement here stands, whenever you stop."
        after = "You may look and sample more as often as you like: the same statements stand."
        return {"title": title, "stands": stands, "ifMore": after if more else hint}
    stands = (
        f"Their number was fixed before anybody looked, so the exact tests and intervals for {sample.n_samples:,} "
        f"{noun}s stand."
    )
    if sample.of_effects:
        intervals = "Intervals of means are gone then, as they are for a fixed number."
    else:
        intervals = "Intervals hold at any time then, and are wider."
    after = (
        "They stand if you stop here. If you sample more because of what you see, they do not hold for the longer run. "
        f"What stands then, whenever you stop, are tests by e-values with {KEPT}; Holm becomes Bonferroni, BH and BY "
        f"become closed e-BH. {intervals}"
    )
    return {"title": title, "stands": stands, "ifMore": after if more else hint}
