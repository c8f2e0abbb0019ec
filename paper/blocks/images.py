"""Photographs: stability and faithfulness."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from paper.cells import (
    FEWEST,
    HOLM,
    Found,
    Part,
    cell,
    found,
    how,
    ratio,
    share,
    size,
    stability,
    table,
    verdicts,
)

__all__ = [
    "FIGURES", "NOISES", "alpha", "faithfulness", "flips", "gradient", "of_gradient", "others", "score", "smoothgrad",
    "words_of",
]  # fmt: skip

NOISES = ("normal", "uniform", "brightness")
FIGURES = {"correlation": "correlation", "over_level": "over level", "score": "mstd", "rescaled": "rescaled mstd"}
LESS_OR_MORE = {"correlation": ("worse", "better")}  # of all other figures, less is better
PHOTOGRAPHS = "photographs"


def words_of(figure: str) -> tuple[str, str]:
    return LESS_OR_MORE.get(figure, ("better", "worse"))


def gradient(folder: Path) -> Part:
    """Stability of the gradient: each figure, P by O_n, and paired differences."""
    one = found("stability-gradient", folder)
    about = size(one, 100, PHOTOGRAPHS)
    if one is None:
        return Part(about, "")
    maps = ["vanilla", *(f"{kind}, {noise}, 10" for kind in ("smoothed", "mean") for noise in NOISES)]
    parts = [f"{how(one)} of each O_n."]
    for figure, label in FIGURES.items():
        rows = []
        for map_ in maps:
            values = [one[stability(map_, outer, figure)] for outer in NOISES]
            rows.append([_named(map_), *map(cell, values), cell(np.mean(values, axis=0))])
        parts.append(table([f"{label}, by O_n", *NOISES, "average"], rows))
    parts.append(f"Smoothed minus another map, photograph by photograph; what is shown, {HOLM}:")
    gaps = {other: of_gradient(one, other) for other in ("vanilla", "mean")}
    parts += [_table_of_gaps(found_, other) for other, found_ in gaps.items()]
    parts.append("\n".join(_said_of_gradient(one, gaps)))
    return Part(about, "\n\n".join(parts))


Gaps = dict[tuple[str, str, str], tuple[np.ndarray, str]]


def of_gradient(one: Found, other: str) -> Gaps:
    """Smoothed minus another map, by figure, P and O_n, and what it shows."""
    keys = [(figure, noise, outer) for figure in FIGURES for noise in NOISES for outer in NOISES]
    gaps = []
    for figure, noise, outer in keys:
        beside = other if other == "vanilla" else f"mean, {noise}, 10"
        gaps.append(one[stability(f"smoothed, {noise}, 10", outer, figure)] - one[stability(beside, outer, figure)])
    shown = verdicts(gaps, [words_of(figure) for figure, _, _ in keys])
    return dict(zip(keys, zip(gaps, shown, strict=True), strict=True))


def _table_of_gaps(gaps: Gaps, other: str) -> str:
    rows = []
    for figure, label in FIGURES.items():
        for noise in NOISES:
            cells = [gaps[figure, noise, outer] for outer in NOISES]
            rows.append([f"{label}, P = {noise}", *(f"{cell(gap, sign='+')}, {shown}" for gap, shown in cells)])
    return table([f"smoothed minus {other}, by O_n", *NOISES], rows)


def _said_of_gradient(one: Found, gaps: dict[str, Gaps]) -> list[str]:
    """What the tables say of the paper's claim, by each figure."""
    lines, of_vanilla, of_mean = [], gaps["vanilla"], gaps["mean"]
    for figure, label in FIGURES.items():
        shown = _by_word({outer: of_vanilla[figure, "normal", outer][1] for outer in NOISES})
        lines.append(f"- Smoothed (P = normal) beside vanilla, by {label}: {shown}.")
    for noise in NOISES:
        shown = _by_word({outer: of_mean["correlation", noise, outer][1] for outer in NOISES})
        lines.append(f"- Smoothed (P = {noise}) beside the mean of the same samples, by correlation: {shown}.")
    averages = [
        np.mean([one[stability(map_, outer, figure)] for outer in NOISES], axis=0)
        for figure in ("score", "level") for map_ in ("smoothed, normal, 10", "vanilla")
    ]  # fmt: skip
    lines.append(
        f"- Smoothed (P = normal) divided by vanilla, averages over O_n: mstd {ratio(*averages[:2])}, level (the mean "
        f"score) {ratio(*averages[2:])}. The paper's ResNet-50: mstd .44."
    )
    return lines


def _by_word(shown: dict[str, str]) -> str:
    """Words, and the outer noises under which each holds."""
    by_word: dict[str, list[str]] = {}
    for outer, word in shown.items():
        by_word.setdefault(word, []).append(outer)
    return "; ".join(f"{word} under {' and '.join(outers)}" for word, outers in by_word.items())


def _named(map_: str) -> str:
    return map_.removesuffix(", 10").replace(", ", ", P = ")


def others(folder: Path) -> Part:
    """RISE, LIME and I-GOS, P = O_n = normal, at full and at equal budgets."""
    planned, rows, sizes = 20, [], []
    for name, budget in (("RISE", "1000 masks"), ("LIME", "1000 copies"), ("I-GOS", "15 iterations")):
        full = found(f"stability-normal-{name.lower()}", folder)
        sizes.append(f"{name} {size(full, planned)}")
        rows += _of_maps(name, f"{budget} a map", full, full, planned)
        if name != "I-GOS":
            tenth = found(f"stability-normal-{name.lower()}-a-tenth", folder)
            rows += _of_maps(name, f"samples of a tenth: equal cost, {budget} in all", full, tenth, planned)
    header = ["explainer", "budget", PHOTOGRAPHS, "map", *FIGURES.values()]
    return Part(f"{', '.join(sizes)} {PHOTOGRAPHS}", table(header, rows))


def _of_maps(name: str, budget: str, single: Found | None, samples: Found | None, planned: int) -> Iterable[list[str]]:
    if single is None or samples is None:
        yield [name, budget, size(None, planned), "–", *("–" for _ in FIGURES)]
        return
    both = [unit for unit in single.units if unit in samples.units]
    single, samples = single.of(both), samples.of(both)
    for one, map_ in ((single, "vanilla"), (samples, "mean, normal, 10"), (samples, "smoothed, normal, 10")):
        cells = [cell(one[stability(map_, "normal", figure)]) for figure in FIGURES]
        yield [name, budget, size(one, planned), map_.partition(",")[0], *cells]


def smoothgrad(folder: Path) -> Part:
    """The smoothed map divided by the mean of the same samples, in each figure."""
    one = found("smoothgrad-gradient", folder)
    about = size(one, 50, PHOTOGRAPHS)
    if one is None:
        return Part(about, "")
    sizes = one.setting["n_samples"]
    rows = []
    for figure, label in ({"score": "mstd", "level": "level"} | FIGURES).items():
        for noise in NOISES[:2]:
            for outer in ("none", noise):
                cells = [
                    ratio(*(one[stability(f"{kind}, {noise}, {n}", outer, figure)] for kind in ("smoothed", "mean")))
                    for n in sizes
                ]
                rows.append([label, noise, outer, *cells])
    most = sizes[-1]
    mstd, level, over = (
        ratio(*(one[stability(f"{kind}, normal, {most}", "normal", figure)] for kind in ("smoothed", "mean")))
        for figure in ("score", "level", "over_level")
    )
    said = "- Too few photographs to say."
    if len(one) >= FEWEST:
        said = (
            f"- At N = {most} (P = O_n = normal) the smoothed map's mstd is {mstd} of the mean's, its level {level}. "
            f"Over the level it is {over}."
        )
    text = f"{one.setting['n_outer']} draws; ratios of means over photographs, ± 95 %."
    header = ["figure", "P", "O_n", *(f"N = {n}" for n in sizes)]
    return Part(about, "\n\n".join([text, table(header, rows), said]))


def alpha(folder: Path) -> Part:
    """The smoothed map divided by the vanilla one, at each level."""
    one = found("alpha-gradient", folder)
    about = size(one, 50, PHOTOGRAPHS)
    if one is None:
        return Part(about, "")
    (n,) = one.setting["n_samples"]
    figures, rows = ("score", "over_level", "correlation"), []
    for level in one.setting["confidence_level"]:
        cells = []
        for figure in figures:
            for noise in ("uniform", "normal"):
                above = f"mstd|{noise}|smoothed|{noise}|{n}|{level}|{figure}"
                cells.append(ratio(one[above], one[stability("vanilla", noise, figure)]))
        rows.append([f"{1 - level:.4f}".rstrip("0"), *cells])
    header = ["alpha", *(f"{FIGURES[figure]}: {noise}" for figure in figures for noise in ("uniform", "normal"))]
    return Part(about, f"{how(one)}, O_n = P.\n\n" + table(header, rows))


OF_CLEAN = ("insertion", "deletion", "overall")
FORMS = {"raw": "raw", "ratio of means": "score", "mean of ratios": "mean_of_ratios"}
ROBUST = {f"RO, {outer}, {form}": (outer, form) for outer in NOISES[:2] for form in FORMS}


def score(one: Found, map_: str, measure: str) -> np.ndarray:
    """Faithfulness of a map by one of `OF_CLEAN` or `ROBUST`."""
    if measure in OF_CLEAN:
        return one[stability(map_, "", metric=measure)]
    outer, form = ROBUST[measure]
    return one[stability(map_, outer, FORMS[form], "RO")]


def faithfulness(folder: Path) -> Part:
    """Clean and robust scores of vanilla, mean and smoothed maps, at full and equal budgets."""
    planned, sizes, compared = 50, [], []
    clean, noisy = [], []
    for name in ("RISE", "Score-CAM", "I-GOS"):
        full, tenth = (found(f"faithfulness-{name.lower()}{part}", folder) for part in ("", "-a-tenth"))
        sizes.append(f"{name} {size(full, planned)}")
        for label, samples in ((name, full), (f"{name}, samples of a tenth", tenth)):
            if label != name and name != "RISE":
                continue
            if full is None or samples is None:
                for rows, measures in ((clean, OF_CLEAN), (noisy, ROBUST)):
                    rows.append([label, size(None, planned), "–", *("–" for _ in measures)])
                continue
            both = [unit for unit in full.units if unit in samples.units]
            pair = full.of(both), samples.of(both)
            clean += _faithful(label, *pair, OF_CLEAN, planned)
            noisy += _faithful(label, *pair, ROBUST, planned)
            compared.append((label, *pair))
    header = ["explainer", PHOTOGRAPHS, "map"]
    about = [f"{how(compared[0][1])} of each O_n."] if compared else []
    tables = [table([*header, *OF_CLEAN], clean), table([*header, *ROBUST], noisy), *_compared(compared)]
    return Part(f"{', '.join(sizes)} {PHOTOGRAPHS}", "\n\n".join([*about, *tables]))


def _faithful(label: str, single: Found, samples: Found, measures: Iterable[str], planned: int) -> Iterable[list[str]]:
    for one, map_ in ((single, "vanilla"), (samples, "mean, uniform, 10"), (samples, "smoothed, uniform, 10")):
        cells = [cell(score(one, map_, measure)) for measure in measures]
        yield [label, size(one, planned), map_.partition(",")[0], *cells]


def _compared(pairs: list[tuple[str, Found, Found]]) -> list[str]:
    """Smoothed minus the two others, image by image."""
    if not pairs:
        return []
    measures = ("overall", *ROBUST)
    heads, gaps = [], []
    for label, single, samples in pairs:
        for other, one, map_ in (("vanilla", single, "vanilla"), ("the mean", samples, "mean, uniform, 10")):
            heads.append([label, other])
            gaps += [score(samples, "smoothed, uniform, 10", name) - score(one, map_, name) for name in measures]
    shown = verdicts(gaps, [("worse", "better")] * len(gaps))
    cells = [f"{cell(gap, sign='+')}, {said}" for gap, said in zip(gaps, shown, strict=True)]
    rows = [[*head, *cells[k * len(measures) : (k + 1) * len(measures)]] for k, head in enumerate(heads)]
    return [f"What is shown, {HOLM}:", table(["explainer", "smoothed minus", *measures], rows)]


def flips(folder: Path) -> Part:
    """How often each noise changes the class."""
    one = found("flips-gradient", folder)
    about = size(one, 100, PHOTOGRAPHS)
    if one is None:
        return Part(about, "")
    rows = []
    for noise in NOISES:
        changed = 1 - one[stability("vanilla", noise, metric="prediction_agreement")]
        rows.append([noise, cell(changed), share(changed >= 0.5), share(changed == 1)])
    header = ["noise", "share of draws with another class", "another in half of them or more", "in all of them"]
    return Part(about, f"{one.setting['n_outer']} draws of each noise.\n\n{table(header, rows)}")
