"""A study from a TOML file, which runs code or downloads weights only where the caller allows it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from metfa._base.lazy import needs_extra
from metfa._base.validation import as_path, check_flag, did_you_mean
from metfa.by_name.methods import Of, check_method, check_settings
from metfa.by_name.noises import noise_of
from metfa.by_name.thresholds import threshold_of
from metfa.evaluation.inputs import Texts, study_inputs
from metfa.evaluation.study import NamedMethod, Study
from metfa.results.until import Until

__all__ = ["read_study"]

MAX_BYTES = 2**20
TABLES = ("study", "model", "data", "explainers", "sampling", "outer", "metrics")
UNTIL = tuple(entry.name for entry in fields(Until))
STUDY = ("aggregates", "n_samples", "confidence_level", "n_outer", "over", "seed", "batch_size", "device", "version")
EXPLAINER = ("method", "settings")
DOWNLOADED = ("timm", "torchvision")


def read_study(path: str | Path, *, allow_import: bool = False, allow_download: bool = False) -> Study:
    """Study from a TOML file.

    The file has these tables:

    - ``[study]``: settings of `metfa.Study` (n_samples, confidence_level, n_outer, seed, aggregates, batch_size,
      device, version, and over, the name of regions such as ``"superpixels:50"``); n_samples may be a rule such as
      ``{undecided = 0.05, max_samples = 300}``, see `metfa.Until`;
    - ``[model]``: ``name``;
    - ``[data]``: ``inputs`` (a folder of pictures, or a CSV file of pictures or texts, relative to the TOML file) and
      perhaps ``limit``;
    - ``[explainers]``: for each name the name of a method, or a table with ``method`` and ``settings``;
    - ``[sampling]`` and ``[outer]``: noises such as ``normal = "gaussian:0.1"``, for texts ``"synonyms:0.3"``
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
    content = _parsed(path)
    _known(content, TABLES, "the file")
    for name in ("model", "data", "explainers", "metrics"):
        if name not in content:
            raise ValueError(f"{path}: the table [{name}] is missing")
    for name, table in content.items():
        if not isinstance(table, Mapping):
            raise ValueError(f"{path}: `{name}` must be a table, got {table!r}")
    study, data, model = content.get("study", {}), content["data"], content["model"]
    _known(study, STUDY, "[study]")
    if isinstance(study.get("n_samples"), Mapping):
        study = {**study, "n_samples": _until(study["n_samples"])}
    _known(data, ("inputs", "limit"), "[data]")
    _known(model, ("name",), "[model]")
    for table, name in ((data, "inputs"), (model, "name")):
        if not isinstance(table.get(name), str):
            raise ValueError(f"{path}: `{name}` must be a string, got {table.get(name)!r}")
    _check_model(model["name"], allow_import=allow_import, allow_download=allow_download)
    inputs = path.parent / data["inputs"]
    of: Of = "text" if isinstance(study_inputs(inputs, None, data.get("limit")), Texts) else "image"
    return Study(
        model=str(path.parent / model["name"]) if model["name"].endswith(".npz") else model["name"],
        inputs=inputs,
        limit=data.get("limit"),
        explainers={name: _method(name, entry, of, allow_import) for name, entry in content["explainers"].items()},
        sampling={name: _noise(name, text, "sampling", of) for name, text in content.get("sampling", {}).items()},
        outer={name: _noise(name, text, "outer", of) for name, text in content.get("outer", {}).items()},
        metrics={name: _metric(settings) for name, settings in content["metrics"].items()},
        **study,
    )


def _parsed(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"no such study: {path}")
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path} is larger than a study can be ({MAX_BYTES} bytes)")
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        with needs_extra("a study file", "study"):
            import tomli as tomllib  # pyright: ignore[reportMissingImports]
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from error


def _known(table: Any, names: Iterable[str], where: str) -> None:
    if not isinstance(table, Mapping):
        raise ValueError(f"{where} must be a table, got {table!r}")
    for name in table:
        if name not in names:
            raise ValueError(
                f"{where} has no entry {name!r}{did_you_mean(name, names)}; it may have {', '.join(names)}"
            )


def _check_model(name: str, *, allow_import: bool, allow_download: bool) -> None:
    source, colon, _ = name.partition(":")
    if not colon or name.endswith(".npz"):
        return
    if source in DOWNLOADED:
        if not allow_download:
            raise ValueError(
                f"the study names {name!r}, and {source} may download its weights: allow it by --allow-download"
            )
    elif not allow_import:
        raise ValueError(f"the study names {name!r}, and importing it runs its code: allow it by --allow-import")


def _method(name: str, entry: Any, of: Of, allow_import: bool) -> NamedMethod:
    if isinstance(entry, str):
        entry = {"method": entry}
    _known(entry, EXPLAINER, f"[explainers.{name}]")
    method, settings = entry.get("method", name), entry.get("settings", {})
    if not isinstance(method, str) or not isinstance(settings, Mapping):
        raise ValueError(f"[explainers.{name}]: `method` must be a string and `settings` a table")
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    source, colon, _ = method.partition(":")
    if colon and source != "captum":
        if not allow_import:
            raise ValueError(
                f"[explainers.{name}] names {method!r}, and importing it runs its code: allow it by --allow-import"
            )
    else:
        try:
            check_method(method, of)
            check_settings(method, settings, of)
        except (ValueError, TypeError) as error:
            raise type(error)(f"[explainers.{name}]: {error}") from error
    return NamedMethod(method, settings, of)


def _noise(name: str, text: Any, table: str, of: Of = "image") -> Any:
    if not isinstance(text, str):
        raise ValueError(f"[{table}]: `{name}` must be a string such as 'gaussian:0.1', got {text!r}")
    try:
        return noise_of(text, of)
    except ValueError as error:
        raise ValueError(f"[{table}] {name}: {error}") from error


def _metric(settings: Any) -> Any:
    """Settings of a metric; noise and threshold may be written as text."""
    if not isinstance(settings, Mapping):
        return settings
    settings = _as_python(settings, "[metrics]")
    if isinstance(settings.get("noise"), str):
        return {**settings, "noise": _noise("noise", settings["noise"], "metrics")}
    return settings


def _until(table: Mapping[str, Any]) -> Until:
    """A rule that ends sampling."""
    _known(table, UNTIL, "[study] n_samples")
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
