"""A study from a TOML file, which runs code or downloads weights only where the caller allows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from metfa._base.validation import as_path, check_flag
from metfa.by_name.methods import Of
from metfa.by_name.thresholds import threshold_of
from metfa.evaluation.entries import check_known, check_model, method_of, named_noise, parsed
from metfa.evaluation.inputs import Texts, study_inputs
from metfa.evaluation.study import Study
from metfa.results.until import Until

__all__ = ["read_study"]

TABLES = ("study", "model", "data", "explainers", "sampling", "outer", "metrics")
UNTIL = tuple(entry.name for entry in fields(Until))
STUDY = ("aggregates", "n_samples", "confidence_level", "n_outer", "over", "seed", "batch_size", "device", "version")


def read_study(path: str | Path, *, allow_import: bool = False, allow_download: bool = False) -> Study:
    """Study from a TOML file.

    The file has these tables:

    - ``[study]``: settings of `metfa.Study` (n_samples, confidence_level, n_outer, seed, aggregates, batch_size,
      device, version, and over, the name of regions such as ``"superpixels:50"``); n_samples may be a rule such as
      ``{undecided = 0.05, max_samples = 300}``, see `metfa.Until`;
    - ``[model]``: ``name``;
    - ``[data]``: ``inputs`` (a folder of pictures, or a CSV file of pictures or texts, relative to the TOML file) and
      perhaps ``limit`` and ``shuffle``;
    - ``[explainers]``: for each name the name of a method, or a table with ``method`` and ``settings``;
    - ``[sampling]`` and ``[outer]``: noises such as ``normal = "gaussian:0.1"``, for texts ``"sense-synonyms:0.5"``
      (``"none"`` for no outer noise);
    - ``[metrics]``: for each name a table of settings. A ``threshold`` may be ``"jenks"``,
      ``"jenks_of_medians"`` or ``"jenks_of_means"``, a ``correction`` ``"none"``.

    Parameters
    ----------
    path : path
        The file, at most 1 MiB.
    allow_import : bool
        Import ``package.module:callable`` if the file names such a model or method; this runs its code.
    allow_download : bool
        Let timm and torchvision download the weights of a model that the file names.

    Raises
    ------
    ValueError
        If the file is not TOML, has unknown entries, or names something that is not allowed.
    """
    path = as_path(path, "path")
    check_flag(allow_import, "allow_import")
    check_flag(allow_download, "allow_download")
    content = parsed(path, "study")
    check_known(content, TABLES, "the file")
    for name in ("model", "data", "explainers", "metrics"):
        if name not in content:
            raise ValueError(f"{path}: the table [{name}] is missing")
    for name, table in content.items():
        if not isinstance(table, Mapping):
            raise ValueError(f"{path}: `{name}` must be a table, got {table!r}")
    study, data, model = content.get("study", {}), content["data"], content["model"]
    check_known(study, STUDY, "[study]")
    if isinstance(study.get("n_samples"), Mapping):
        study = {**study, "n_samples": _until(study["n_samples"])}
    check_known(data, ("inputs", "limit", "shuffle"), "[data]")
    check_known(model, ("name",), "[model]")
    for table, name in ((data, "inputs"), (model, "name")):
        if not isinstance(table.get(name), str):
            raise ValueError(f"{path}: `{name}` must be a string, got {table.get(name)!r}")
    check_model(model["name"], "study", allow_import=allow_import, allow_download=allow_download)
    inputs = path.parent / data["inputs"]
    of: Of = "text" if isinstance(study_inputs(inputs, None, data.get("limit")), Texts) else "image"
    return Study(
        model=str(path.parent / model["name"]) if model["name"].endswith(".npz") else model["name"],
        inputs=inputs,
        limit=data.get("limit"),
        shuffle=data.get("shuffle"),
        explainers={
            name: method_of(_with_method(name, entry), of, f"explainers.{name}", allow_import=allow_import)
            for name, entry in content["explainers"].items()
        },
        sampling={name: named_noise(name, text, "sampling", of) for name, text in content.get("sampling", {}).items()},
        outer={name: named_noise(name, text, "outer", of) for name, text in content.get("outer", {}).items()},
        metrics={name: _metric(settings) for name, settings in content["metrics"].items()},
        **study,
    )


def _with_method(name: str, entry: Any) -> Any:
    """An entry of the explainers, whose name is that of the method where it names none."""
    return {"method": name, **entry} if isinstance(entry, Mapping) else entry


def _metric(settings: Any) -> Any:
    """Settings of a metric; noise and threshold may be written as text."""
    if not isinstance(settings, Mapping):
        return settings
    settings = _as_python(settings, "[metrics]")
    if isinstance(settings.get("noise"), str):
        return {**settings, "noise": named_noise("noise", settings["noise"], "metrics")}
    return settings


def _until(table: Mapping[str, Any]) -> Until:
    """A rule that ends sampling."""
    check_known(table, UNTIL, "[study] n_samples")
    settings = _as_python(table, "[study] n_samples")
    try:
        return Until(**settings)
    except (TypeError, ValueError) as error:
        raise type(error)(f"[study] n_samples: {error}") from error


def _as_python(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Settings with the threshold from its text."""
    settings = dict(table)
    if isinstance(settings.get("threshold"), str):
        settings["threshold"] = threshold_of(settings["threshold"], f"{where}: `threshold`")
    return settings
