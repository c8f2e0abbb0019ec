"""Scenes: a context that is planted, and how much context of road scenes is significant."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from metfa.attacks import Detection
from paper.cells import FEWEST, HOLM, Found, Part, cell, found, how, ratio, size, table, verdicts
from paper.planted_context import BASELINES, MAPS, TRAININGS, WAYS

__all__ = ["PLANNED", "context", "of_grass", "of_scenes", "planted"]

PLANNED = {"tree": 58, "bicyclist": 4, "car": 47}
BESIDE = ("robust m_f, nothing", "robust m_f, all", "break, significant, robust m_f of as many at random")


def planted(folder: Path) -> Part:
    """What the networks need; detection of needed context by image and by pixel; marks where none is needed."""
    tables = {
        (training, baseline): found(f"planted-context-{training[0]}-{training[1]}-{baseline}", folder)
        for baseline in BASELINES for training in TRAININGS
    }  # fmt: skip
    known = {key: one for key, one in tables.items() if one is not None}
    about = f"{sum(map(len, known.values()))} images, {len(known)} of {len(tables)} networks and baselines"
    biased = {(seed, baseline): one for ((seed, kind), baseline), one in known.items() if kind == "planted"}
    if not biased:
        return Part(about, "")
    rows = [
        [f"{seed}, {baseline}", *(_area(one, name) for name in MAPS), *(cell(_of_grass(one, name)) for name in MAPS)]
        for (seed, baseline), one in biased.items()
    ]
    header = ["seed, baseline", *(f"images: {name}" for name in MAPS), *(f"pixels: {name}" for name in MAPS)]
    apart = [
        [f"{baseline}, {len(gap)} networks", name, cell(gap, sign="+"), said]
        for (baseline, name), (gap, said) in of_grass(folder).items()
    ]
    marked = [
        [f"{len(ones)} {kind}, {baseline}", way, *_marked(ones, way)]
        for kind in dict.fromkeys(kind for _, kind in TRAININGS)
        for baseline in BASELINES
        if (ones := [one for (training, behind), one in known.items() if (training[1], behind) == (kind, baseline)])
        for way in WAYS
    ]
    where = ["a 3's grass", "a 3's rest (wrong)", "other digits (wrong)", "other digits with any mark (share)"]
    return Part(about, "\n\n".join([
        "Mean IoU of the networks, by the class and what it lies on:",
        _networks(folder),
        "Areas under the ROC curve, of images with 95 % limits:",
        table(header, rows),
        f"AUC of pixels minus vanilla's, a mean over images for each network. What is shown of networks, {HOLM}:",
        table(["baseline", "map", "difference", "shown"], apart),
        "The share of the context that is marked at the threshold 0.3, means over networks (for an independent context "
        "all marks are wrong):",
        table(["networks, baseline", "marked by", *where], marked),
    ]))  # fmt: skip


def of_grass(folder: Path) -> dict[tuple[str, str], tuple[np.ndarray, str]]:
    """AUC of pixels minus vanilla's, by baseline and map, one mean for each biased network, and what it shows.

    Images of one network share its faults, so they are not independent: the networks are.
    """
    gaps: dict[tuple[str, str], np.ndarray] = {}
    for baseline in BASELINES:
        tables = [found(f"planted-context-{seed}-{kind}-{baseline}", folder) for seed, kind in TRAININGS
                  if kind == "planted"]  # fmt: skip
        ones = [one for one in tables if one is not None]
        for name in MAPS[1:] if ones else ():
            gaps[baseline, name] = np.array([(_of_grass(one, name) - _of_grass(one, "vanilla")).mean() for one in ones])
    shown = verdicts(list(gaps.values()), [("worse", "better")] * len(gaps))
    return dict(zip(gaps, zip(gaps.values(), shown, strict=True), strict=True))


def _networks(folder: Path) -> str:
    """Mean IoU of each network."""
    tables = {training: found(f"planted-network-{training[0]}-{training[1]}", folder) for training in TRAININGS}
    known = {training: one for training, one in tables.items() if one is not None}
    names = [name for name in next(iter(known.values())).columns if name != "seconds"]
    rows = [
        [f"{seed}{', unbiased' * (kind != 'planted')}", unit, *(f"{one[name][k]:.2f}" for name in names)]
        for (seed, kind), one in known.items()
        for k, unit in enumerate(one.units)
    ]
    return table(["seed", "scenes", *names], rows)


def _area(one: Found, name: str) -> str:
    """Area of images by the mean score of their context, with its limits."""
    needed, scores = one["needed"] == 1, one[f"{name}, mean"]
    if min(needed.sum(), (~needed).sum()) < FEWEST:
        return "–"
    areas = Detection({name: scores[~needed]}, {name: scores[needed]})
    return "{:.3f} ({:.2f} to {:.2f})".format(areas.auc(name), *areas.auc_interval(name))


def _of_grass(one: Found, name: str) -> np.ndarray:
    """Area of pixels, of the images with a context that is needed."""
    return one[f"{name}, AUC"][one["needed"] == 1]


def _marked(ones: list[Found], way: str) -> list[str]:
    """Shares of the grass and of the rest; of other digits as many are marked by construction, whatever the way."""

    def shares(what: str, *, needed: bool) -> str:
        return cell(np.array([one[f"{way}, {what}"][(one["needed"] == 1) == needed].mean() for one in ones]))

    found_ = [shares("grass", needed=True), shares("rest", needed=True)]
    if way.startswith("as many"):
        return [*found_, "", ""]
    return [*found_, shares("rest", needed=False), shares("any", needed=False)]


def of_scenes(name: str, folder: Path) -> Found | None:
    """Figures of the objects of a class, behind black."""
    return found(f"context-{name}-0.05-black-6x8", folder)


def context(folder: Path) -> Part:
    """How much context is marked, and how well the object is found with it."""
    rows, sizes, about = [], [], ""
    for name, planned in PLANNED.items():
        one = of_scenes(name, folder)
        sizes.append(f"{size(one, planned)} {name}s")
        if one is None:
            rows.append([name, size(None, planned), *("–" for _ in range(9))])
            continue
        about = f"P = O_n = {one.setting['P and O_n']}, {how(one)}."
        area = [one[f"break, {kind}, area"] for kind in ("vanilla", "significant")]
        score = [one[f"break, {kind}, robust m_f"] for kind in ("vanilla", "significant")]
        rows.append([name, size(one, planned), *map(cell, area), ratio(*area[::-1]),
                     *(cell(one[what]) for what in BESIDE), *map(cell, score), ratio(*score[::-1])])  # fmt: skip
    header = ["class", "objects", "context marked: vanilla", "significant", "area ratio", "robust m_f: nothing"]
    header += ["all", "as many pixels at random", "vanilla", "significant", "m ratio"]
    return Part(", ".join(sizes), f"{about}\n\n{table(header, rows)}".lstrip())
