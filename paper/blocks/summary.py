"""What the paper claims, what is found here, and whether it holds: a table for the documentation."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from paper.blocks.attacks import DIGITS, KNOWS, STRONG, won
from paper.blocks.images import NOISES, ROBUST, of_gradient, score, words_of
from paper.blocks.scenes import PLANNED, of_grass, of_scenes
from paper.blocks.texts import MAPS, SETS, SYNONYMS, of_stability, of_words, said_of_words, spans
from paper.cells import FEWEST, Found, at_least, cell, found, ratio, size, stability, verdicts

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


def _held(said: Iterable[str]) -> str:
    """Whether all, some or none of the verdicts are the paper's."""
    shown = set(said)
    if shown == {"too few to say"}:
        return FEW
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
    same = {noise: of_mean["score", noise, noise] for noise in NOISES[:2]}
    yield (
        "They are more stable than the mean of the same samples (SmoothGrad).",
        f"Gradient, {about}, O_n = P, as in the paper: mstd, smoothed minus mean",
        "; ".join(f"{noise} {cell(gap, sign='+')} ({said})" for noise, (gap, said) in same.items()),
        _held(said for _, said in same.values()),
    )
    shown = {key[1:]: said for key, (_, said) in of_mean.items() if key[0] == "correlation"}
    parts = [f"P {noise}: {', '.join(f'{outer} {shown[noise, outer]}' for outer in NOISES)}" for noise in NOISES]
    yield "The same, without the scale.", f"Gradient, {about}: correlation", "; ".join(parts), _held(shown.values())


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
    for name in ("RISE", "LIME", "I-GOS"):
        one = found(f"stability-normal-{name.lower()}", folder)
        gaps = [] if one is None else [
            one[stability("smoothed, normal, 10", "normal", figure)] - one[stability("vanilla", "normal", figure)]
            for figure in ("correlation", "score")
        ]  # fmt: skip
        yield _judged(
            "Smoothed maps of other explainers are more stable.", f"{name}, {size(one, 20, 'photographs')}, P normal",
            dict(zip(("correlation", "mstd"), gaps, strict=False)), [words_of("correlation"), words_of("score")],
        )  # fmt: skip
    for name in ("RISE", "Score-CAM", "I-GOS"):
        one = found(f"faithfulness-{name.lower()}", folder)
        gaps = {} if one is None else {
            measure.removeprefix("RO, "): score(one, "smoothed, uniform, 10", measure) - score(one, "vanilla", measure)
            for measure in ROBUST if not measure.endswith("ratio of means")
        }  # fmt: skip
        yield _judged(
            "Under noise smoothed maps are more faithful.",
            f"{name}, {size(one, 50, 'photographs')}, P uniform: RO minus vanilla's", gaps,
            [("worse", "better")] * len(gaps),
        )  # fmt: skip


def _judged(claim: str, about: str, gaps: dict[str, np.ndarray], words: list[tuple[str, str]]) -> Row:
    """A row of differences, smoothed minus vanilla, judged together."""
    said = verdicts(list(gaps.values()), words[: len(gaps)])
    if set(said) <= {"too few to say"}:
        return claim, about, "–", FEW
    cells = [f"{name} {cell(gap, sign='+')} ({word})" for (name, gap), word in zip(gaps.items(), said, strict=True)]
    return claim, about, "; ".join(cells), _held(said)


def _copies(table: str, data: str, folder: Path) -> int:
    """The paper's 2000 copies where all texts are measured with them, else 500."""
    one = found(f"text-{table}-lemna-2000-copies-{data}", folder)
    return 2000 if one is not None and len(one) >= SETS[data] else 500


def _words(folder: Path) -> Iterator[Row]:
    shown = of_stability(folder)
    for data, planned in SETS.items():
        one = found(f"text-stability-lemna-{(copies := _copies('stability', data, folder))}-copies-{data}", folder)
        if one is None:
            continue
        about = f"LEMNA, {copies} copies, {size(one, planned, UNITS[data])}: mstd divided by vanilla's"
        vanilla, mean, smoothed = (one[stability(map_, SYNONYMS)] for map_ in MAPS)
        label = f"{data}, {copies} copies"
        yield (
            "Smoothed scores of words are more stable.", about, ratio(smoothed, vanilla),
            _held([shown[label, "vanilla", "mstd"]]),
        )  # fmt: skip
        yield (
            "They are more stable than the mean of the same samples.", about,
            f"smoothed {ratio(smoothed, vanilla)}; mean {ratio(mean, vanilla)}", _held([shown[label, "mean", "mstd"]]),
        )  # fmt: skip
    for data, planned in SETS.items():
        it = of_words(folder, data, copies := _copies("faithfulness", data, folder))
        if it is None:
            continue
        said = said_of_words(it[1])
        for p, where in ((0.0, "clean text"), (0.3, "under P(0.3)"), (0.5, "under P(0.5)"), (0.7, "under P(0.7)")):
            words = {metric: said[metric, p] for metric in ("FDT", "ST", "FAT")}
            yield (
                "Smoothed words are more faithful, on the clean text and under noise.",
                f"LEMNA, {copies} copies, {size(it[0], planned, UNITS[data])}, {where}",
                "; ".join(f"{metric} {word}" for metric, word in words.items()), _held(words.values()),
            )  # fmt: skip


def _rest(folder: Path) -> Iterator[Row]:
    for name, planned in PLANNED.items():
        one = of_scenes(name, folder)
        if one is not None:
            yield from _context(
                one, f"GridSaliency, {size(one, planned, name + 's')}, U(-0.05, 0.05), not the paper's 0.1"
            )
    for attack in (*STRONG, *DIGITS):
        one = attack.kept(folder)
        if one is not None:
            n = size(one, attack.planned, attack.images)
            yield from _defence(one, f"{attack.explainer.upper()}, {n} (attacks that succeed: {won(one)})")
    grass = of_grass(folder)
    if grass:
        parts = [
            f"{name} {cell(gap, sign='+')} ({said})" for (where, name), (gap, said) in grass.items() if where == "blur"
        ]
        gap, said = grass["blur", "smoothed"]
        yield (
            "(not in the paper) Smoothed maps find a context that is planted better than one map.",
            f"GridSaliency, {len(gap)} networks: AUC of pixels minus one map's", "; ".join(parts), _held([said]),
        )  # fmt: skip
    one = found("toxic-spans-500-copies-p-0.5-n-10", folder)
    if one is not None:
        yield from _spans(one)


def _context(one: Found, about: str) -> Iterator[Row]:
    area, score = (
        [one[f"break, {kind}, {what}"] for kind in ("significant", "vanilla")] for what in ("area", "robust m_f")
    )
    yield _judged(
        "Less of the context of an object is significant than one explanation marks.", f"{about}: share of the context",
        {"area": area[0] - area[1]}, [("better", "worse")],
    )  # fmt: skip
    words = {"at least": "holds", "less": "does not hold", "not shown": "is not shown", "too few to say": FEW}
    yield (
        "The object is found as well with it (m ratio .99 at least).", f"{about}: robust m_f", ratio(*score),
        words[at_least(*score, 0.99)],
    )  # fmt: skip


def _defence(one: Found, about: str) -> Iterator[Row]:
    """The paper's criterion, and one that asks for more: that the smoothed map stays where it was."""
    clean, single = one["nothing: clean defended"], one["nothing: adversarial"]
    maps = {label: one[f"{knows}: adversarial defended"] for knows, label in KNOWS.items()}
    yield _judged(
        "The smoothed map stays further from the attacker's map than a single one.",
        f"{about}: distance minus that of the single map", {label: far - single for label, far in maps.items()},
        [("worse", "better")] * len(maps),
    )  # fmt: skip
    yield _judged(
        "(not in the paper) It stays where the clean image's is.", f"{about}: distance minus the clean image's",
        {label: far - clean for label, far in maps.items()}, [("worse", "better")] * len(maps),
    )  # fmt: skip


def _spans(one: Found) -> Iterator[Row]:
    some, shares, shown = spans(one)
    precision = {name: cell(values[0]) for name, values in shares.items()}
    chance = (one["marked"] / one["words"])[some].mean()
    yield (
        "(not in the paper) Significant words are marked by people more often than one map's.",
        f"LEMNA, {size(one, 512, 'toxic posts')}; {int(some.sum())} have a significant word: precision",
        f"significant {precision['significant']}; as many by vanilla {precision['vanilla']}; chance {chance:.4f}",
        _held(shown[:1]),
    )
    recall = {
        name: (one[f"{name} hits"] / one["marked"])[one["marked"] > 0]
        for name in ("significant", "vanilla above its break")
    }
    gap = recall["significant"] - recall["vanilla above its break"]
    yield (
        "(not in the paper) They find more of what people mark than one map.",
        f"the same, all {len(gap)} posts with a mark: recall",
        f"significant {cell(recall['significant'])}; one map above its break {cell(recall['vanilla above its break'])}",
        _held(verdicts([gap], [("worse", "better")])),
    )
