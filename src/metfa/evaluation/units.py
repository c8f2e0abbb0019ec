"""Units of a study: one input and one explainer each, with an address that is a hash of all that changes a figure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from metfa.calls.behind import loaded_torch
from metfa.evaluation._identity import identity, model_identity
from metfa.evaluation.inputs import ImageFiles
from metfa.evaluation.study import Study
from metfa.sampling.streams import SCHEME

__all__ = ["SCHEMA", "Unit", "units_of"]

SCHEMA = 5  # figures of two of them never meet in a table
# 2: mstd without its bias for few draws. 3: each statement is a family of its own. 5: mstd with what has no units.


@dataclass(frozen=True)
class Unit:
    """The piece of work that one worker computes at a time."""

    address: str
    index: int  # place of the input in the study
    input: str  # name of the input
    digest: str  # digest of its content, which is the id of its random streams
    explainer: str


def units_of(study: Study, model: Any) -> list[Unit]:
    """Units in the order of the tables: input by input, explainer by explainer.

    An address contains everything that changes a figure: named settings, the digests of weights and content, versions.
    It contains no path, no thread count and nothing of the other units, so that a study can be extended and moved.
    """
    common = _common(study, model)
    explainers = {
        name: identity(factory, f"explainers[{name!r}]", study.version) for name, factory in study.methods.items()
    }
    units = []
    for index, name in enumerate(study.data.names):
        digest = study.data.digest(index)
        for explainer, described in explainers.items():
            content = {
                **common, "input": digest, "target": study.data.targets[index], "explainer": [explainer, described]
            }  # fmt: skip
            units.append(Unit(_hash(content), index, name, digest, explainer))
    return units


def _common(study: Study, model: Any) -> dict[str, Any]:
    torch = loaded_torch()
    preprocess = getattr(model, "preprocess", None) if isinstance(study.data, ImageFiles) else None
    return {
        "schema": SCHEMA,
        "versions": {
            "metfa": metadata.version("metfa"),
            "numpy": np.__version__,
            "torch": None if torch is None else str(torch.__version__),
        },
        "streams": SCHEME,
        "model": model_identity(study.called(model), study.version),
        "preprocess": identity(preprocess, "model.preprocess", study.version),
        "sampling": _noises(study.noises, "sampling", study),
        "outer": _noises(study.outer_noises, "outer", study),
        "metrics": [
            [
                measure.name,
                identity(getattr(measure.rows, "metric", measure.rows), "metrics", study.version),
                identity(measure.settings, "metrics", study.version),
            ]
            for measure in study.measures
        ],
        "aggregates": list(study.maps),
        "n_samples": list(study.sizes) if study.rule is None else identity(study.rule, "n_samples", study.version),
        "confidence_level": list(study.levels),
        "n_outer": study.n_outer,
        "seed": study.seed,
        "batch_size": study.batch_size,
        "device": study.device.partition(":")[0],
        "version": study.version,
        **({} if study.parts is None else {"over": identity(study.parts, "over", study.version)}),
    }


def _noises(noises: Any, name: str, study: Study) -> list[list[str | None]]:
    """Pairs, not a dict, because their order is the order of the rows of a unit."""
    return [
        [key, None if noise is None else identity(noise, f"{name}[{key!r}]", study.version)]
        for key, noise in noises.items()
    ]


def _hash(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
