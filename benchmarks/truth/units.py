"""Units: one explainer on one training of one task under one noise. Finished ones are files."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import metfa
from benchmarks.truth import explainers, scoring, texts
from benchmarks.truth.aggregate import TABLES
from benchmarks.truth.task import Data, Fitted, Task

__all__ = ["VERSION", "Unit", "measured"]

VERSION = 2  # of what a unit's file holds: raise it where tasks, explainers or scores change
BATCH = 256
WRITTEN = ("accuracy", "learned", "seconds", *TABLES)

KINDS: dict[str, Callable[[float], Any]] = {
    "Gaussian": metfa.noise.Gaussian,
    "synonyms": texts.Synonyms,
    "uniform": lambda std: metfa.noise.Uniform(round(std * 3**0.5, 6)),
}


@dataclass(frozen=True)
class Unit:
    """What is sampled once.

    Attributes
    ----------
    task : Task
    explainer : str
        Name in `explainers.OF`, under what the task is of.
    training : int
        Seed of data, training and noise.
    kind : str
        Law of the noise.
    std : float
        Its standard deviation, in the units of the input; of "synonyms", the share of words that are replaced.
    inputs : int
        How many inputs of the test part are explained.
    sizes : tuple of int
        Numbers of samples that are scored; the largest is drawn.
    """

    task: Task
    explainer: str
    training: int
    kind: str
    std: float
    inputs: int
    sizes: tuple[int, ...]

    @property
    def setting(self) -> dict[str, Any]:
        found = {name: value for name, value in vars(self).items() if name != "task"}
        return {
            "version": VERSION, "task": self.task.name, "network": self.task.network, **found,
            "sizes": list(self.sizes),
        }  # fmt: skip

    @property
    def file(self) -> str:
        parts = (self.task.name, self.task.network, self.explainer, self.kind, f"{self.std:g}", self.training)
        return "_".join(re.sub(r"[^a-zA-Z0-9.]+", "-", str(part)) for part in parts) + ".json"


@lru_cache(maxsize=1)
def _fitted(task: Task, training: int) -> tuple[Data, Fitted]:
    data = task.make(training)
    return data, task.fit(data, training)


@lru_cache(maxsize=1)
def _truths(task: Task, training: int, inputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs that are explained, task truth and model truth, bool (inputs, features)."""
    data, found = _fitted(task, training)
    rows = task.chosen(found, data)[:inputs]
    explained = data.test.inputs[rows]
    task_truth, model_truth = data.test.used[rows], task.model_truth(found, data, explained)
    return explained, scoring.flat(task_truth), scoring.flat(np.asarray(model_truth))


def measured(unit: Unit, folder: Path) -> tuple[dict[str, Any], bool]:
    """What the unit's file holds, and whether it was there; where there is none, the unit is sampled and written.

    Raises
    ------
    ValueError
        For a file that is damaged, or of another version or setting. It is left as it is.
    """
    path = folder / unit.file
    if path.exists():
        return _read(path, unit.setting), True
    worked = time.process_time()
    result = {"setting": unit.setting, **_sampled(unit)}
    result["seconds"] = time.process_time() - worked
    folder.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(result), encoding="utf-8")
    part.replace(path)
    return result, False


def _read(path: Path, setting: dict[str, Any]) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        known = found["setting"]
        if known == setting:
            _ = [found[name] for name in WRITTEN]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is no unit of this benchmark ({type(error).__name__}: {error}): it was left as it is; move it away"
        ) from error
    if known != setting:
        differ = [name for name in setting if not isinstance(known, dict) or known.get(name) != setting[name]]
        raise ValueError(
            f"{path} was measured with another setting ({', '.join(differ)}): it was left as it is; move it away, or "
            "give another folder"
        )
    return found


def _sampled(unit: Unit) -> dict[str, Any]:
    data, found = _fitted(unit.task, unit.training)
    result = {"accuracy": found.accuracy, "learned": found.accuracy >= unit.task.min_accuracy, "flips": None}
    result |= {"kind": unit.task.kind, **{name: [] for name in TABLES}}
    if not result["learned"]:
        return result
    inputs, task, model = _truths(unit.task, unit.training, unit.inputs)
    explainer = explainers.OF[unit.task.of][unit.explainer](found.model, data)
    words, scaled = unit.task.of == "texts", unit.task.of != "tables"
    sample = metfa.explain(
        explainer, inputs.tolist() if words else torch.from_numpy(inputs), 1 if words else None,
        noise=KINDS[unit.kind](unit.std), n_samples=max(unit.sizes), rng=unit.training, batch_size=BATCH,
    )  # fmt: skip
    if scaled:
        result["flips"] = None if sample.flip_rate is None else float(sample.flip_rate.mean())
    result |= {"task_share": float(task.mean()), "model_share": float(model.mean())}
    for n in unit.sizes:
        part = scoring.first(sample, n)
        rows = {
            "marks": scoring.marks(part, task, model, scaled=scaled),
            "ranking": scoring.ranking(part, task, model, scaled=scaled),
            "regions": scoring.of_regions(part, task, model) if unit.task.of == "images" else (),
        }
        for name in TABLES:
            result[name] += [{"n": n, **row} for row in rows[name]]
    return result
