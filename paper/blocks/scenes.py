"""Scenes: a context that is planted, and how much context of road scenes is significant."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from metfa.attacks import Detection
from paper.cells import HOLM, Found, Part, cell, found, how, ratio, size, table, verdicts
from paper.planted_context import MAPS, TRAININGS, WAYS

__all__ = ["context", "planted"]

PLANNED = {"tree": 58, "bicyclist": 4, "car": 47}


def planted(folder: Path) -> Part:
    """Detection of needed context by image and by pixel, and what is marked where none is needed."""
    tables = {training: found(f"planted-context-{training[0]}-{training[1]}-blur", folder) for training in TRAININGS}
    known = {training: one for training, one in tables.items() if one is not None}
    about = f"{sum(map(len, known.values()))} images, {len(known)} of {len(TRAININGS)} networks"
    biased = {seed: one for (seed, kind), one in known.items() if kind == "planted"}
    if not biased:
        return Part(about, "")
    rows = [
        [str(seed), *(_area(one, name) for name in MAPS), *(cell(_of_grass(one, name)) for name in MAPS)]
        for seed, one in biased.items()
    ]
    header = ["seed", *(f"images: {name}" for name in MAPS), *(f"pixels: {name}" for name in MAPS)]
    gaps = [_of_grass(one, name) - _of_grass(one, "vanilla") for one in biased.values() for name in MAPS[1:]]
    shown = iter(zip(gaps, verdicts(gaps, [("worse", "better")] * len(gaps)), strict=True))
    apart = [
        [str(seed), *(f"{cell(gap, sign='+')}, {said}" for gap, said in (next(shown) for _ in MAPS[1:]))]
        for seed in biased
    ]
    marked = [
        [f"{seed}{', unbiased' * (kind != 'planted')}", way, *_marked(one, way)]
        for (seed, kind), one in known.items()
        for way in WAYS
    ]
    where = ["a 3's grass", "a 3's rest (wrong)", "other digits (wrong)", "other digits with any mark"]
    return Part(about, "\n\n".join([
        "Areas under the ROC curve, of images with 95 % limits:",
        table(header, rows),
        f"AUC of pixels minus vanilla's, image by image; what is shown, {HOLM}:",
        table(["seed", *MAPS[1:]], apart),
        "The share of the context that is marked at the threshold 0.3:",
        table(["seed", "marked by", *where], marked),
    ]))  # fmt: skip


def _area(one: Found, name: str) -> str:
    """Area of images by the mean score of their context, with its limits."""
    needed, scores = one["needed"] == 1, one[f"{name}, mean"]
    if needed.all() or not needed.any():
        return "–"
    areas = Detection({name: scores[~needed]}, {name: scores[needed]})
    return "{:.3f} ({:.2f} to {:.2f})".format(areas.auc(name), *areas.auc_interval(name))


def _of_grass(one: Found, name: str) -> np.ndarray:
    """Area of pixels, of the images with a context that is needed."""
    return one[f"{name}, AUC"][one["needed"] == 1]


def _marked(one: Found, way: str) -> list[str]:
    needed = one["needed"] == 1
    any_of = one[f"{way}, any"][~needed]
    parts = [one[f"{way}, grass"][needed], one[f"{way}, rest"][needed], one[f"{way}, rest"][~needed]]
    return [*map(cell, parts), f"{int(any_of.sum())} of {len(any_of)}"]


def context(folder: Path) -> Part:
    rows, sizes, about = [], [], ""
    for name, planned in PLANNED.items():
        one = found(f"context-{name}-0.05-blur-6x8", folder)
        sizes.append(f"{size(one, planned)} {name}s")
        if one is None:
            rows.append([name, size(None, planned), *("–" for _ in range(8))])
            continue
        about = f"P = O_n = {one.setting['P and O_n']}, {how(one)}."
        area = [one[f"break, {kind}, area"] for kind in ("vanilla", "significant")]
        score = [one[f"break, {kind}, robust m_f"] for kind in ("vanilla", "significant")]
        rows.append([name, size(one, planned), *map(cell, area), ratio(*area[::-1]),
                     cell(one["robust m_f, nothing"]), cell(one["break, significant, robust m_f of as many at random"]),
                     *map(cell, score), ratio(*score[::-1])])  # fmt: skip
    header = ["class", "objects", "context marked: vanilla", "significant", "area ratio", "robust m_f: nothing"]
    header += ["as many pixels at random", "vanilla", "significant", "m ratio"]
    return Part(", ".join(sizes), f"{about}\n\n{table(header, rows)}".lstrip())
