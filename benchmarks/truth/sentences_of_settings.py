"""Sentences of the page about corrections, numbers of samples, regions and noises, held to the tables."""

from __future__ import annotations

from typing import Any

from benchmarks.truth.reading import OF_IMAGES, Results, flips, marks, ranked, shown, stds_of
from benchmarks.truth.rules import AGAINST_REST, DEFAULT

__all__ = ["moves", "of_squares"]

Rows = dict[str, dict[str, Any]]  # by explainer


def _each(rows: Rows, figure: str) -> str:
    return ", ".join(f"{name} {shown(rows[name][figure])}" for name in OF_IMAGES)


def _arrows(before: Rows, after: Rows, figure: str) -> str:
    return ", ".join(f"{name} {shown(before[name][figure])} → {shown(after[name][figure])}" for name in OF_IMAGES)


def of_squares(found: Results) -> str:
    """What the table of squares says."""
    whole, rest = ({name: marks(found.regions, name, rule) for name in OF_IMAGES} for rule in (DEFAULT, AGAINST_REST))
    pixels = {name: marks(found.marks, name, DEFAULT) for name in OF_IMAGES}
    text = (
        "**Against the rest more is found, without a threshold.** Of the planted squares are found, from means above "
        f"the threshold to squares against the rest: {_arrows(whole, rest, 'task_power')}. RISE's masks are coarse, so "
        f"it is right about squares more often than about pixels: {shown(whole['RISE']['task_fdp'])} false for "
        f"{shown(pixels['RISE']['task_fdp'])}. A square has more chances to be right."
    )
    assert all(rest[name]["task_power"] > whole[name]["task_power"] - 0.01 for name in OF_IMAGES), text
    assert whole["RISE"]["task_fdp"] < pixels["RISE"]["task_fdp"] - 0.1, text
    return f"- {text}\n"


def moves(found: Results) -> str:
    """What corrections, numbers of samples and noises change."""
    lines: list[str] = []

    def say(text: str, *holds: bool) -> None:
        assert all(holds), f"no longer so: {text}"
        lines.append(f"- {text}")

    def all_of(**about: Any) -> Rows:
        return {name: marks(found.marks, name, DEFAULT, **about) for name in OF_IMAGES}

    none, by, e_bh = (all_of(correction=correction) for correction in ("none", "by", "e-bh"))
    say(
        "**A correction costs power, and cannot make marks right about the task.** From none to BY are found "
        f"{_arrows(none, by, 'task_power')}. False are {_arrows(none, by, 'task_fdp')}. e-BH, which holds whenever "
        "sampling stops, finds least.",
        *(by[name]["task_power"] < none[name]["task_power"] for name in OF_IMAGES),
        *(abs(by[name]["task_fdp"] - none[name]["task_fdp"]) < 0.08 for name in OF_IMAGES),
        *(e_bh[name]["task_power"] < by[name]["task_power"] for name in OF_IMAGES),
    )
    few, many = (all_of(n=n) for n in (10, 200))
    say(
        "**More samples find more, and make no fewer false marks about the task.** From N = 10 to 200 are found "
        f"{_arrows(few, many, 'task_power')}. False are {_arrows(few, many, 'task_fdp')}. The test is about the median "
        "of the explanation: a score that is steadily wrong is found too.",
        *(many[name]["task_power"] > few[name]["task_power"] + 0.15 for name in OF_IMAGES),
        *(many[name]["task_fdp"] > few[name]["task_fdp"] - 0.02 for name in OF_IMAGES),
    )
    small = all_of(n=10, correction="by")
    say(
        "**Ten samples, the paper's number, are few for a corrected test of 64 pixels.** With BY are found "
        f"{_each(small, 'task_power')}.",
        *(small[name]["task_power"] < 0.7 * by[name]["task_power"] for name in OF_IMAGES),
    )
    areas = [{name: ranked(found.ranking, name, "mean", n=n) for name in OF_IMAGES} for n in (10, 200)]
    say(
        "**For a ranking ten are enough**: the area of the mean map, from N = 10 to 200, is "
        f"{_arrows(areas[0], areas[1], 'task_auc')}.",
        *(abs(areas[1][name]["task_auc"] - areas[0][name]["task_auc"]) < 0.02 for name in OF_IMAGES),
    )
    stds = stds_of(found)
    pairs = [
        tuple({name: marks(found.noises["marks"], name, DEFAULT, kind=kind, std=std) for name in OF_IMAGES}
              for kind in ("Gaussian", "uniform"))
        for std in stds
    ]  # fmt: skip
    apart = {
        what: max(abs(one[name][what] - two[name][what]) for one, two in pairs for name in OF_IMAGES)
        for what in ("task_fdp", "task_power")
    }
    say(
        "**The law of the noise hardly matters, its width does.** Gaussian and uniform noise of the same standard "
        f"deviation differ by at most {shown(apart['task_fdp'])} in false marks and {shown(apart['task_power'])} in "
        f"power. From std {stds[0]:g} to {stds[-1]:g} are found {_arrows(pairs[0][0], pairs[-1][0], 'task_power')}. "
        f"At the end {100 * flips(found, 'Gaussian', stds[-1]):.0f} % of the noisy images get another class.",
        apart["task_fdp"] < 0.06, apart["task_power"] < 0.06,
    )  # fmt: skip
    return "\n".join(lines) + "\n"
