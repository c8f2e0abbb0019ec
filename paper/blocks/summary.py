"""What the paper claims, what is found here, and whether it holds: a table for the documentation."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from paper.blocks.attacks import kept_away
from paper.blocks.images import NOISES, of_gradient
from paper.blocks.scenes import PLANNED, of_grass
from paper.blocks.texts import MAPS, SETS, SYNONYMS, of_stability, of_words, said_of_words, spans
from paper.cells import FEWEST, Found, cell, found, ratio, size, stability

__all__ = ["summary"]

HEADER = ("the paper says", "measured here on", "found", "so it")
FEW = "is too early to say"
UNITS = {"toxicity": "toxic posts", "sentiment": "sentences of reviews"}

Row = tuple[str, str, str, str]


def summary(folder: Path) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows([*_gradient(folder), *_other_images(folder), *_words(folder), *_rest(folder)])
    return out.getvalue()


def _held(verdicts: Iterable[str]) -> str:
    """Whether all, some or none of the verdicts are the paper's."""
    shown = set(verdicts)
    if "better" in shown:
        return "holds" if shown == {"better"} else "holds in part"
    return "does not hold" if "worse" in shown else "is not shown"


def _gradient(folder: Path) -> Iterator[Row]:
    one = found("stability-gradient", folder)
    if one is None:
        return
    about, beside, of_mean = size(one, 100, "photographs"), of_gradient(one, "vanilla"), of_gradient(one, "mean")
    for figure, label in (("score", "mstd"), ("correlation", "correlation"), ("rescaled", "mstd, rescaled to [0, 1]")):
        parts = []
        for outer in NOISES:
            before, after = (one[stability(map_, outer, figure)].mean() for map_ in ("vanilla", "smoothed, normal, 10"))
            parts.append(f"{outer} {before:.3f} → {after:.3f} ({beside[figure, 'normal', outer][1]})")
        claim = "Smoothed maps are more stable." if figure == "score" else "The same, without the scale."
        verdict = _held(beside[figure, "normal", outer][1] for outer in NOISES)
        yield claim, f"Gradient, {about}, P normal: {label} under each outer noise", "; ".join(parts), verdict
    parts = [
        f"P {noise}: {', '.join(f'{outer} {of_mean[key(noise, outer)][1]}' for outer in NOISES)}" for noise in NOISES
    ]
    yield (
        "They are more stable than the mean of the same samples (SmoothGrad).", f"Gradient, {about}: correlation",
        "; ".join(parts), _held(of_mean[key(noise, outer)][1] for noise in NOISES for outer in NOISES),
    )  # fmt: skip


def key(noise: str, outer: str) -> tuple[str, str, str]:
    return "correlation", noise, outer


def _other_images(folder: Path) -> Iterator[Row]:
    one = found("alpha-gradient", folder)
    if one is not None:
        (n,) = one.setting["n_samples"]
        levels = one.setting["confidence_level"]
        scores = [one[f"mstd|normal|smoothed|normal|{n}|{level}|score"] for level in levels]
        ratios = [ratio(score, one[stability("vanilla", "normal")]) for score in (scores[0], scores[-1])]
        little = np.ptp([score.mean() for score in scores]) < 0.05 * scores[0].mean()
        yield (
            "The level alpha hardly matters.", f"Gradient, {size(one, 50, 'photographs')}: mstd divided by vanilla's",
            f"alpha {1 - levels[0]:.2g}: {ratios[0]}; alpha {1 - levels[-1]:.1g}: {ratios[1]}",
            FEW if len(one) < FEWEST else "holds" if little else "does not hold",
        )  # fmt: skip
    for claim, file, planned, names in (
        ("Smoothed maps of other explainers are more stable.", "stability-normal", 20, ("RISE", "LIME", "I-GOS")),
        ("Under noise smoothed maps are more faithful, on the clean image about as faithful.", "faithfulness", 50,
         ("RISE", "Score-CAM", "I-GOS")),
    ):  # fmt: skip
        tables = {name: found(f"{file}-{name.lower()}", folder) for name in names}
        enough = [name for name, one in tables.items() if one is not None and len(one) >= FEWEST]
        sizes = ", ".join(f"{name} {size(one, planned)}" for name, one in tables.items())
        yield claim, f"{sizes} photographs", f"{', '.join(enough)}: see the page" if enough else "–", FEW


def _words(folder: Path) -> Iterator[Row]:
    for data, planned in SETS.items():
        one = found(f"text-stability-lemna-500-copies-{data}", folder)
        if one is None:
            continue
        about = f"LEMNA, {size(one, planned, UNITS[data])}: mstd divided by vanilla's"
        vanilla, mean, smoothed = (one[stability(map_, SYNONYMS)] for map_ in MAPS)
        shown = of_stability(folder)
        label = f"{data}, 500 copies"
        yield (
            "Smoothed scores of words are more stable.", about, ratio(smoothed, vanilla),
            _held([shown[label, "vanilla", "mstd"]]),
        )  # fmt: skip
        yield (
            "They are more stable than the mean of the same samples.", about,
            f"smoothed {ratio(smoothed, vanilla)}; mean {ratio(mean, vanilla)}", _held([shown[label, "mean", "mstd"]]),
        )  # fmt: skip
    for data, planned in SETS.items():
        it = of_words(folder, data, 500)
        if it is None:
            continue
        said = said_of_words(it[1])
        for p, where in ((0.0, "clean text"), (0.3, "under P(0.3)"), (0.5, "under P(0.5)"), (0.7, "under P(0.7)")):
            words = {metric: said[metric, p] for metric in ("FDT", "ST", "FAT")}
            yield (
                "Smoothed words are more faithful, on the clean text and under noise.",
                f"LEMNA, {size(it[0], planned, UNITS[data])}, {where}",
                "; ".join(f"{metric} {word}" for metric, word in words.items()), _held(words.values()),
            )  # fmt: skip


def _rest(folder: Path) -> Iterator[Row]:
    for name, planned in PLANNED.items():
        one = found(f"context-{name}-0.05-blur-6x8", folder)
        if one is None:
            continue
        parts = [
            ratio(one[f"break, significant, {what}"], one[f"break, vanilla, {what}"]) for what in ("area", "robust m_f")
        ]
        yield (
            "Of the context of an object less is significant, and it is as good.",
            f"GridSaliency, {size(one, planned, name + 's')}, beside one explanation",
            f"area {parts[0]}; score {parts[1]}", FEW if len(one) < 4 * FEWEST else "see the page",
        )  # fmt: skip
    one = found("attack-lite0-cam-200-3-1-8", folder)
    if one is not None:
        away = kept_away(one) if len(one) >= FEWEST else {}
        yield (
            "The defence holds, also against an attacker who knows it.",
            f"CAM, {size(one, 20, 'photographs')}: 0 is the attacker's map, 1 the clean image's",
            "; ".join(f"{who} {share}" for who, share in away.items()) or "–",
            FEW if not away else "see the page",
        )  # fmt: skip
    grass = of_grass(folder)
    if grass:
        parts = [
            f"{name} {cell(gap, sign='+')} ({said})" for (where, name), (gap, said) in grass.items() if where == "blur"
        ]
        gap, said = grass["blur", "smoothed"]
        yield (
            "(not in the paper) Smoothed maps find a context that is planted better than one map.",
            f"GridSaliency, {len(gap)} scenes: AUC of pixels minus one map's", "; ".join(parts), _held([said]),
        )  # fmt: skip
    one = found("toxic-spans-500-copies-p-0.5-n-10", folder)
    if one is not None:
        yield from _spans(one)


def _spans(one: Found) -> Iterator[Row]:
    some, shares, shown = spans(one)
    precision = {name: cell(values[0]) for name, values in shares.items()}
    chance = (one["marked"] / one["words"])[some].mean()
    yield (
        "(not in the paper) Significant words are those that people mark.",
        f"LEMNA, {size(one, 512, 'toxic posts')}; {int(some.sum())} have a significant word: precision",
        f"significant {precision['significant']}; as many by vanilla {precision['vanilla']}; chance {chance:.4f}",
        {"worse": "is worse than one map", "better": "is better than one map"}.get(shown[0], "is as good as one map"),
    )
    recall = [
        np.nanmean((one[f"{name} hits"] / one["marked"])[one["marked"] > 0])
        for name in ("significant", "vanilla above its break")
    ]
    yield (
        "(not in the paper) They are found.", f"the same, all {len(one)} posts: recall",
        f"significant {recall[0]:.3f}; one map above its break {recall[1]:.3f}",
        "is less than one map's" if recall[0] < recall[1] else "is more than one map's",
    )  # fmt: skip
