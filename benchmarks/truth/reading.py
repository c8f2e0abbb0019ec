"""The committed tables, and rows of them by what they are about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from paper import kept

from benchmarks.truth.aggregate import SIX, TABLES, read
from benchmarks.truth.images import IMAGES
from benchmarks.truth.rules import DEFAULT

__all__ = [
    "DEFAULT", "OF_IMAGES", "OF_TABLES", "OF_TEXTS", "OF_WORDS", "SHAPES", "SYNONYMS", "WIDENED", "Results", "flips",
    "marks", "mean_of", "of_table", "one", "ranked", "shown", "stds_of", "with_error",
]  # fmt: skip

RESULTS = Path(__file__).parent / "results"
OF_IMAGES = ("Gradient", "SmoothGrad", "IG", "RISE")
OF_TABLES = ("Gradient", "IG", "exact SHAP", "conditional SHAP", "LIME")
OF_TEXTS = ("Occlusion", "LIME", "LEMNA")
OF_WORDS = (("KEY", "planted"), ("KEY", "BiLSTM"), ("NOT", "BiLSTM"))  # tasks and models
SHAPES = {"task": SIX, "network": "MLP", "kind": "Gaussian", "std": 0.1}
SYNONYMS = {"kind": "synonyms", "std": 0.3}
WIDENED = ("MULT white", "XOR white")  # tasks on which the radius of the noise was changed


class Results:
    """The committed tables; rows are found by what they are about."""

    def __init__(self, folder: Path = RESULTS) -> None:
        self.marks, self.ranking, self.regions, self.trainings = (
            read(folder / "full" / f"{name}.csv") for name in (*TABLES, "trainings")
        )
        self.noises = {
            name: read(folder / "full" / f"noises_{name}.csv") for name in ("marks", "ranking", "trainings")
        }  # of trainings that have all of them
        self.photographs = read(folder / "photographs" / "photographs.csv")
        self.mosaics = {name: kept.read(folder / "mosaics" / f"{name.lower()}.csv") for name in ("Gradient", "CAM")}
        self.about = {
            tier: json.loads((folder / tier / "about.json").read_text(encoding="utf-8")) for tier in ("full", "quick")
        }


def one(rows: list[dict[str, Any]], **about: Any) -> dict[str, Any]:
    """The row about these; KeyError if there is none, or more than one."""
    found = [row for row in rows if all(row[name] == value for name, value in about.items())]
    if len(found) != 1:
        raise KeyError(f"{len(found)} rows about {about}")
    return found[0]


def marks(rows: list[dict[str, Any]], explainer: str, rule: str | None = None, **about: Any) -> dict[str, Any]:
    """Row of the six tasks at the default rule, 50 samples, uncorrected, usual noise, unless `about` says otherwise."""
    usual = SHAPES | {"n": 50, "correction": "none"}
    return one(rows, explainer=explainer, rule=rule or DEFAULT, **(usual | about))


def ranked(rows: list[dict[str, Any]], explainer: str, which: str, **about: Any) -> dict[str, Any]:
    """Row of the ranking by a map: of the six tasks, 50 samples, usual noise, unless `about` says otherwise."""
    return one(rows, explainer=explainer, map=which, **(SHAPES | {"n": 50} | about))


def stds_of(found: Results) -> list[float]:
    """Radii of the noise at which the shapes were measured."""
    return sorted({row["std"] for row in found.noises["marks"]})


def flips(found: Results, kind: str, std: float) -> float:
    """Share of noisy images of the six tasks that the network gives another class."""
    six = {task.name for task in IMAGES}
    rows = [
        row["flips"]
        for row in found.noises["trainings"]
        if row["task"] in six and (row["kind"], row["std"]) == (kind, std)
    ]
    return float(np.mean(rows))


def of_table(rows: list[dict[str, Any]], explainer: str, rule: str, **about: Any) -> dict[str, Any]:
    usual = {"task": "additive rho 0", "network": "MLP", "std": 0.2, "correction": "none"}
    return marks(rows, explainer, rule, **(usual | about))


def shown(number: float, error: float = np.nan) -> str:
    """Two decimals without the zero before the point, with its standard error."""
    if np.isnan(number):
        return "–"
    text = f"{number:.2f}".removeprefix("0") if abs(number) < 10 else f"{number:.1f}"
    if np.isnan(error):
        return text
    return f"{text} ± {shown(error)}" if error >= 0.005 else f"{text} ± <.01"


def mean_of(table: kept.Kept, name: str) -> str:
    """Mean over the units of a kept table, with its standard error."""
    values = np.array([figure if isinstance(figure, float) else np.nan for figure in table.column(name)])
    values = values[np.isfinite(values)]
    return shown(values.mean(), values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan)


def with_error(row: dict[str, Any], name: str) -> str:
    return shown(row[name], row[f"{name}_se"])
