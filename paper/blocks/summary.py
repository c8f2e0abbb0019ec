"""What the paper claims and what is found here, for the documentation: a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from paper.blocks.images import NOISES, of_gradient
from paper.blocks.texts import of_words, said_of_words, spans
from paper.cells import FEWEST, found, ratio, size, stability

__all__ = ["summary"]

SYNONYMS = "synonyms, p = 0.5"


Row = tuple[str, str, str]  # question, what was measured, what was found


def summary(folder: Path) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["question", "measured on", "found"])
    writer.writerows([*_gradient(folder), *_words(folder), *_rest(folder)])
    return out.getvalue()


def _gradient(folder: Path) -> Iterator[Row]:
    one = found("stability-gradient", folder)
    if one is None:
        return
    about = f"Gradient, {size(one, 100, 'photographs')}, P = normal"
    beside, of_mean = of_gradient(one, "vanilla"), of_gradient(one, "mean")

    def path(figure: str) -> str:
        parts = []
        for outer in NOISES:
            before, after = (one[stability(map_, outer, figure)].mean() for map_ in ("vanilla", "smoothed, normal, 10"))
            parts.append(f"{outer} {before:.3f} → {after:.3f} ({beside[figure, 'normal', outer][1]})")
        return "; ".join(parts)

    yield "Do the maps of two noisy copies agree better?", f"correlation, {about}", path("correlation")
    yield "Do scores vary less?", f"mstd, {about}", path("score")
    yield "Do they, with maps scaled to [0, 1] once more?", f"rescaled mstd, {about}", path("rescaled")
    for noise in NOISES:
        shown = [f"{outer} {of_mean['correlation', noise, outer][1]}" for outer in NOISES]
        yield (
            "Do smoothed medians agree better than means of the same samples?",
            f"correlation, {about.rpartition(',')[0]}, P = {noise}", "; ".join(shown),
        )  # fmt: skip


def _words(folder: Path) -> Iterator[Row]:
    units = {"toxicity": (92, "posts"), "sentiment": (100, "sentences")}
    for data, about in units.items():
        one = found(f"text-stability-lemna-500-copies-{data}", folder)
        if one is None:
            continue
        vanilla, mean, smoothed = (
            one[stability(map_, SYNONYMS)] for map_ in ("vanilla", f"mean, {SYNONYMS}, 10", f"smoothed, {SYNONYMS}, 10")
        )
        yield (
            "Do scores of words vary less?", f"mstd divided by vanilla's, LEMNA, {size(one, *about)}",
            f"smoothed {ratio(smoothed, vanilla)}; mean {ratio(mean, vanilla)}",
        )  # fmt: skip
    for data, about in units.items():
        it = of_words(folder, data, 500)
        if it is None:
            continue
        said = said_of_words(it[1])
        for p, where in ((0.0, "the clean text"), (0.7, "texts under P(0.7)")):
            yield (
                "Are smoothed words more faithful than vanilla's?", f"{where}, LEMNA, {size(it[0], *about)}",
                "; ".join(f"{metric} {said[metric, p]}" for metric in ("FDT", "ST", "FAT")),
            )  # fmt: skip
    one = found("toxic-spans-500-copies-p-0.5-n-10", folder)
    if one is not None:
        some, shares, shown = spans(one)
        precision = {name: np.nanmean(values[0]) for name, values in shares.items()}
        chance = (one["marked"] / one["words"])[some].mean()
        yield (
            "Are significant words those that people mark?",
            f"precision, LEMNA, {int(some.sum())} of {len(one)} posts",
            f"significant {precision['significant']:.3f} ({shown[0]}); as many by vanilla {precision['vanilla']:.3f}; "
            f"by chance {chance:.3f}",
        )


def _rest(folder: Path) -> Iterator[Row]:
    one = found("attack-lite0-cam-200-3-1-8", folder)
    if one is not None:
        m2, m3, m4, clean = (
            one[what]
            for what in ("nothing: adversarial", "nothing: adversarial defended", "defence: adversarial defended",
                         "nothing: clean defended")
        )  # fmt: skip
        yield (
            "Does smoothing take attacks back?",
            f"share of the way to the smoothed map of the clean image, CAM, {size(one, 20, 'photographs')}",
            f"unaware {ratio(m3 - m2, clean - m2)}; aware {ratio(m4 - m2, clean - m2)}",
        )
    for question, file, planned, names in (
        ("Are smoothed maps of other explainers more stable?", "stability-normal", 20, ("RISE", "LIME", "I-GOS")),
        ("Are smoothed maps of images more faithful?", "faithfulness", 50, ("RISE", "Score-CAM", "I-GOS")),
    ):
        tables = {name: found(f"{file}-{name.lower()}", folder) for name in names}
        few = all(one is None or len(one) < FEWEST for one in tables.values())
        sizes = ", ".join(f"{name} {size(one, planned)}" for name, one in tables.items())
        yield question, f"{sizes} photographs", "too few to say" if few else "see paper/RESULTS.md"
