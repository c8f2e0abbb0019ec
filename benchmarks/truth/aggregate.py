"""From units to tables: means over trainings with their standard errors, and the mean of the six tasks of images."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.truth.images import IMAGES

__all__ = ["KEYS", "SIX", "TABLES", "aggregated", "read", "write"]

SIX = "six tasks"  # their mean, of those trainings that have all of them
KEYS = ("task", "network", "explainer", "kind", "std", "n")
LABELS = {"marks": ("rule", "correction"), "ranking": ("map",), "regions": ("rule", "correction")}
TABLES = tuple(LABELS)


def aggregated(results: Iterable[dict[str, Any]], which: str) -> list[dict[str, Any]]:
    """Rows of the table `which`, one of `TABLES`: each figure's mean over trainings, and its standard error.

    A standard error is missing where there is one training.
    """
    labels = (*KEYS, *LABELS[which])
    groups: dict[tuple[Any, ...], dict[int, dict[str, float]]] = defaultdict(dict)
    for result in results:
        setting = result["setting"]
        for row in result[which]:
            whole = {**setting, **row}
            figures = {name: value for name, value in row.items() if name not in labels}
            groups[tuple(whole[name] for name in labels)][setting["training"]] = figures
    groups |= _means_of_six(groups)
    return [{**dict(zip(labels, key, strict=True)), **_described(found)} for key, found in groups.items()]


def _means_of_six(groups: dict[tuple[Any, ...], dict[int, dict[str, float]]]) -> dict[tuple[Any, ...], Any]:
    names = [task.name for task in IMAGES]
    found: dict[tuple[Any, ...], Any] = {}
    for key in groups:
        if key[0] != names[0] or key[1] != "MLP":
            continue
        six = [groups.get((name, *key[1:]), {}) for name in names]
        trainings = set.intersection(*(set(one) for one in six))
        means = {
            training: {name: _nanmean([one[training][name] for one in six]) for name in six[0][training]}
            for training in sorted(trainings)
        }
        if means:
            found[(SIX, *key[1:])] = means
    return found


def _nanmean(values: Iterable[float]) -> float:
    numbers = np.array(list(values), dtype=float)
    return float(np.nanmean(numbers)) if np.isfinite(numbers).any() else np.nan


def _described(trainings: dict[int, dict[str, float]]) -> dict[str, Any]:
    row: dict[str, Any] = {"trainings": len(trainings)}
    for name in next(iter(trainings.values())):
        numbers = np.array([found[name] for found in trainings.values()], dtype=float)
        numbers = numbers[np.isfinite(numbers)]
        row[name] = numbers.mean() if numbers.size else np.nan
        row[f"{name}_se"] = numbers.std(ddof=1) / np.sqrt(numbers.size) if numbers.size > 1 else np.nan
    return row


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """As CSV, all or nothing; figures with three decimals, missing ones empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _shown(value) for name, value in row.items()} for row in rows)
    part.replace(path)


def _shown(value: Any) -> Any:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.3f}"
    return value


def read(path: Path) -> list[dict[str, Any]]:
    """Rows of a table: numbers as floats, missing ones as nan."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: _number(name, text) for name, text in row.items()} for row in csv.DictReader(file)]


def _number(name: str, text: str) -> Any:
    if name in KEYS[:4] or name in {label for labels in LABELS.values() for label in labels} or name == "truth":
        return text
    return float(text) if text else np.nan
