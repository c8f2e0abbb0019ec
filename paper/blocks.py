"""Parts of the pages that are made from the tables in paper/results: tables, and sentences in figures.

Each says how many of the planned units it is made from. Means are over units, ± 95 % by Student's t.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from paper.cells import Found, cell, direction, found, nothing, ratio, size, stability, table

__all__ = ["BLOCKS"]

NOISES = ("normal", "uniform", "brightness")
SYNONYMS = "synonyms, p = 0.5"


# -- images


def gradient(folder: Path) -> str:
    """Stability of the gradient: mstd, P by O_n, and what has no units."""
    planned, what = 100, "photographs"
    one = found("stability-gradient", folder)
    if one is None:
        return nothing(planned, what)
    maps = ["vanilla", *(f"{kind}, {noise}, 10" for kind in ("smoothed", "mean") for noise in NOISES)]
    average = {
        (map_, figure): np.mean([one[stability(map_, outer, figure)] for outer in NOISES], axis=0)
        for map_ in maps
        for figure in ("score", "rescaled", "over_level", "correlation")
    }
    named = {map_: map_.removesuffix(", 10").replace(", ", ", P = ") for map_ in maps}
    by_noise = [
        [named[map_], *(cell(one[stability(map_, outer)]) for outer in NOISES), cell(average[map_, "score"])]
        for map_ in maps
    ]
    beside = [[named[map_], *(cell(average[map_, figure]) for figure in
               ("score", "rescaled", "over_level", "correlation"))] for map_ in maps]  # fmt: skip
    smooth, vanilla, mean = "smoothed, normal, 10", "vanilla", "mean, normal, 10"
    parts = [f"{outer} {ratio(one[stability(smooth, outer)], one[stability(vanilla, outer)])}" for outer in NOISES]
    whole = ratio(average[smooth, "score"], average[vanilla, "score"])
    lines = [
        f"- Smoothed (P = normal) divided by vanilla, mstd: {whole} on average, {', '.join(parts)}. "
        "The paper's ResNet-50: .44 on average.",
    ]
    lines += [
        f"- Smoothed (P = normal) minus {other}, photograph by photograph: {label} "
        f"{cell(average[smooth, figure] - average[which, figure], sign='+')}, "
        f"{direction(average[smooth, figure] - average[which, figure])}."
        for figure, label in (("score", "mstd"), ("rescaled", "rescaled mstd"), ("correlation", "correlation"))
        for which, other in ((vanilla, "vanilla"), (mean, "mean"))
    ]
    return "\n\n".join([
        f"{size(len(one), planned, what)}; N = 10, 10 draws of each O_n.",
        table(["mstd", *NOISES, "average"], by_noise),
        table(["average over O_n", "mstd", "rescaled", "over level", "correlation"], beside),
        "\n".join(lines),
    ])  # fmt: skip


def others(folder: Path) -> str:
    """RISE, LIME and I-GOS, P = O_n = normal, at full and at equal budgets."""
    planned, what = 20, "photographs"
    rows = []
    for name, budget in (("RISE", "1000 masks"), ("LIME", "1000 copies"), ("I-GOS", "15 iterations")):
        full = found(f"stability-normal-{name.lower()}", folder)
        if full is not None:
            rows.append([name, f"{budget} a map", size(len(full), planned, ""), *_of_maps(full, full)])
        tenth = found(f"stability-normal-{name.lower()}-a-tenth", folder)
        if full is not None and tenth is not None:
            both = [unit for unit in full.units if unit in tenth.units]
            about = [name, f"one map of {budget}, samples of a tenth", size(len(both), planned, "")]
            rows.append([*about, *_of_maps(full.of(both), tenth.of(both))])
    if not rows:
        return nothing(planned, what)
    header = [
        "explainer",
        "budget",
        what,
        "mstd: vanilla",
        "mean",
        "smoothed",
        "correlation: vanilla",
        "mean",
        "smoothed",
    ]
    return "P = O_n = normal, N = 10, 10 draws.\n\n" + table(header, rows)


def _of_maps(single: Found, samples: Found) -> list[str]:
    maps = ((single, "vanilla"), (samples, "mean, normal, 10"), (samples, "smoothed, normal, 10"))
    return [cell(one[stability(map_, "normal", figure)]) for figure in ("score", "correlation") for one, map_ in maps]


def smoothgrad(folder: Path) -> str:
    """mstd of the smoothed map divided by that of the mean, of the same samples."""
    planned, what, sizes = 50, "photographs", (10, 30, 50, 70)
    one = found("smoothgrad-gradient", folder)
    if one is None:
        return nothing(planned, what)
    rows = [
        [noise, outer, *(ratio(one[stability(f"smoothed, {noise}, {n}", outer)],
                                one[stability(f"mean, {noise}, {n}", outer)]) for n in sizes)]
        for noise in NOISES[:2] for outer in ("none", noise)
    ]  # fmt: skip
    about = f"{size(len(one), planned, what)}; ratios of means over photographs, ± 95 %."
    return f"{about}\n\n" + table(["P", "O_n", *(f"N = {n}" for n in sizes)], rows)


def alpha(folder: Path) -> str:
    planned, what = 50, "photographs"
    one = found("alpha-gradient", folder)
    if one is None:
        return nothing(planned, what)
    rows = []
    for level in (0.05, 0.01, 0.005, 0.001, 0.0005, 0.0001):
        names = [(f"mstd|{noise}|smoothed|{noise}|50|{1 - level}|score", stability("vanilla", noise)) for noise in
                 ("uniform", "normal")]  # fmt: skip
        rows.append([f"{level:g}", *(ratio(one[above], one[below]) for above, below in names)])
    return f"{size(len(one), planned, what)}; N = 50, O_n = P.\n\n" + table(["alpha", "uniform", "normal"], rows)


def faithfulness(folder: Path) -> str:
    """Clean and robust scores of vanilla, mean and smoothed maps, at full and equal budgets."""
    planned, what = 50, "photographs"
    rows = []
    for name in ("RISE", "Score-CAM", "I-GOS"):
        full, tenth = (found(f"faithfulness-{name.lower()}{part}", folder) for part in ("", "-a-tenth"))
        if full is not None:
            rows += _faithful(name, full, full, planned)
        if full is not None and tenth is not None:
            both = [unit for unit in full.units if unit in tenth.units]
            rows += _faithful(f"{name}, samples of a tenth", full.of(both), tenth.of(both), planned)
    if not rows:
        return nothing(planned, what)
    header = ["explainer", what, "map", "insertion", "deletion", "overall", "RO, normal", "RO, uniform"]
    return "P = U(-0.1, 0.1), N = 10, 10 draws of each O_n.\n\n" + table(header, rows)


def _faithful(label: str, single: Found, samples: Found, planned: int) -> Iterable[list[str]]:
    for one, map_ in ((single, "vanilla"), (samples, "mean, uniform, 10"), (samples, "smoothed, uniform, 10")):
        clean = [cell(one[stability(map_, "", metric=metric)]) for metric in ("insertion", "deletion", "overall")]
        robust = [cell(one[stability(map_, outer, metric="RO")]) for outer in NOISES[:2]]
        yield [label, size(len(one), planned, ""), map_.partition(",")[0], *clean, *robust]


# -- texts


LEMNAS = {  # in words, and in the names of their tables; K: components of the mixture
    "500 copies": "500-copies", "2000 copies": "2000-copies",
    "500 copies, K = 3": "500-copies-k-3", "500 copies, K = 6": "500-copies-k-6",
}  # fmt: skip


def text_stability(folder: Path) -> str:
    rows, lines = [], []
    for data, planned in (("toxicity", 92), ("sentiment", 100)):
        for copies, file in LEMNAS.items():
            one = found(f"text-stability-lemna-{file}-{data}", folder)
            if one is None:
                continue
            maps = ["vanilla", *(f"{kind}, {SYNONYMS}, 10" for kind in ("mean", "smoothed"))]
            scores = [one[stability(map_, SYNONYMS)] for map_ in maps]
            best = [one[stability(map_, SYNONYMS, metric="top_k_overlap")] for map_ in maps]
            cells = [*map(cell, scores), ratio(scores[2], scores[0]), ratio(scores[1], scores[0]), *map(cell, best)]
            rows.append([f"{data}, {copies}", size(len(one), planned, ""), *cells])
            lines.append(
                f"- {data}, {copies}: smoothed minus vanilla {cell(scores[2] - scores[0], sign='+')} in mstd "
                f"({direction(scores[2] - scores[0])}), minus mean {cell(scores[2] - scores[1], sign='+')} "
                f"({direction(scores[2] - scores[1])})."
            )
    if not rows:
        return nothing(192, "texts")
    header = ["data, LEMNA", "texts", "mstd: vanilla", "mean", "smoothed", "smoothed / vanilla", "mean / vanilla"]
    header += ["best 5 in common: vanilla", "mean", "smoothed"]
    return "N = 10, 10 draws.\n\n" + table(header, rows) + "\n\n" + "\n".join(lines)


def text_faithfulness(folder: Path) -> str:
    rows, lines = [], []
    for data, planned in (("sentiment", 100), ("toxicity", 92)):
        for copies in (500, 2000):
            one = found(f"text-faithfulness-lemna-{copies}-copies-{data}", folder)
            if one is None:
                continue
            shows: dict[float, dict[str, list[str]]] = {}
            for what in ("FDT", "ST", "FAT"):
                for p in (0.0, 0.3, 0.5, 0.7):
                    names = ["vanilla", *(f"{kind}, {SYNONYMS}, 10" for kind in ("mean", "smoothed"))]
                    maps = [one[stability(map_, "", metric=f"{what}, p = {p}")] for map_ in names]
                    gain = maps[2] - maps[0]
                    words = ("better", "worse") if what == "FDT" else ("worse", "better")
                    name, so = f"{'R' * (p > 0)}{what}", direction(gain, *words)
                    about = [f"{data}, {copies}", size(len(one), planned, ""), name, f"{p:g}"]
                    rows.append([*about, *map(cell, maps), cell(gain, sign="+"), so])
                    shows.setdefault(p, {}).setdefault(so, []).append(name)
            by_noise = [f"p = {p:g} {_in_words(shown)}" for p, shown in shows.items()]
            lines.append(f"- {data}, {copies} copies, smoothed beside vanilla: {'; '.join(by_noise)}.")
    if not rows:
        return nothing(192, "texts")
    header = ["data, copies", "texts", "metric", "p", "vanilla", "mean", "smoothed", "smoothed - vanilla", "so it is"]
    about = "Means over 1 to 10 words; N = 10, 10 draws. FDT: lower is better."
    return "\n\n".join([about, table(header, rows), "\n".join(lines)])


def _in_words(shown: dict[str, list[str]]) -> str:
    """What holds of which metrics."""
    return ", ".join(f"{what} in {' and '.join(names)}" for what, names in shown.items())


def toxic_spans(folder: Path) -> str:
    planned, what = 512, "posts"
    one = found("toxic-spans-500-copies-p-0.5-n-10", folder)
    if one is None:
        return nothing(planned, what)
    some = (one["marked"] > 0) & (one["significant"] > 0)
    rows, ways = [], ("significant", "vanilla", "mean", "smoothed")
    for name in ways:
        hits = one[f"{name} hits"][some]
        gains = [(one["significant hits"][some] - hits) / one[below][some] for below in ("significant", "marked")]
        shares = [hits / one[below][some] for below in ("significant", "marked")]
        shown = [f"{cell(gain, sign='+')}, {direction(gain, 'worse', 'better')}" for gain in gains]
        rows.append([name, *map(cell, shares), *(shown if name != "significant" else ["", ""])])
    about = (
        f"{size(len(one), planned, what)}, {int(some.sum())} of them with a significant and a marked word; P(0.5), 500 "
    )
    header = ["as many words by", "precision", "recall", "significant minus it: precision", "recall"]
    return f"{about}copies, N = 10.\n\n" + table(header, rows)


# -- scenes


def context(folder: Path) -> str:
    planned = {"tree": 58, "bicyclist": 4, "car": 47}
    rows = []
    for name, most in planned.items():
        one = found(f"context-{name}-0.05-blur-6x8", folder)
        if one is None:
            continue
        area = [one[f"break, {kind}, area"] for kind in ("vanilla", "significant")]
        score = [one[f"break, {kind}, robust m_f"] for kind in ("vanilla", "significant")]
        rows.append([name, size(len(one), most, ""), *map(cell, area), ratio(*area[::-1]),
                     cell(one["robust m_f, nothing"]), cell(one["break, significant, robust m_f of as many at random"]),
                     *map(cell, score), ratio(*score[::-1])])  # fmt: skip
    if not rows:
        return nothing(sum(planned.values()), "objects")
    header = ["class", "objects", "context marked: vanilla", "significant", "area ratio", "robust m_f: nothing"]
    header += ["as many pixels at random", "vanilla", "significant", "m ratio"]
    return "P = O_n = U(-0.05, 0.05), 6 x 8 cells, natural break, N = 10, 10 draws.\n\n" + table(header, rows)


def attacks(folder: Path) -> str:
    rows = []
    for name, planned, paper in (("cam", 20, ".0934, .2785, .1705"), ("lrp", 10, ".0340, .0657, .0635"),
                                 ("mask", 5, ".1453, .1667, .1648")):  # fmt: skip
        one = found(f"attack-lite0-{name}-200-3-1-8", folder)
        if one is None:
            continue
        shown = ("clean", "nothing: adversarial", "nothing: adversarial defended", "defence: adversarial defended",
                 "m1's pixels mixed")  # fmt: skip
        won = " and ".join(f"{one[f'{knows}: succeeded'].sum():.0f}" for knows in ("nothing", "defence"))
        rows.append([name.upper(), size(len(one), planned, ""), won, *(cell(one[what]) for what in shown), paper])
    if not rows:
        return nothing(35, "images")
    header = [
        "explainer",
        "images",
        "succeeded: unaware, aware",
        "clean",
        "m2",
        "m3",
        "m4",
        "m1's pixels mixed",
        "paper",
    ]
    return "200 steps, 3 restarts, 8 of 255 levels.\n\n" + table(header, rows)


BLOCKS: dict[str, dict[str, Callable[[Path], str]]] = {  # by page
    "RESULTS.md": {
        "gradient": gradient, "others": others, "smoothgrad": smoothgrad, "alpha": alpha, "faithfulness": faithfulness,
    },
    "TEXT_RESULTS.md": {
        "text_stability": text_stability, "text_faithfulness": text_faithfulness, "toxic_spans": toxic_spans,
    },
    "SEGMENTATION_RESULTS.md": {"context": context},
    "ATTACK_RESULTS.md": {"attacks": attacks},
}  # fmt: skip
