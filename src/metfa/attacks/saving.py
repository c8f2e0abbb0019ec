"""Results of attacks as folders: ``attack.json`` and one .npy file for each array, checked when they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.validation import as_path, check_flag
from metfa._base.writing import new_folder
from metfa.attacks.result import AttackResult, Measured
from metfa.results import files
from metfa.results.arrays import read_array, write_array

__all__ = ["ATTACK", "load_attack", "save_attack"]

ATTACK = "attack.json"
SCHEMA_VERSION = 1
MEASURED = ("clean", "adversarial", "rounded")
FIELDS = ("inputs", "scores", "maps", "defended")


def save_attack(result: AttackResult, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a folder `path`, all or nothing; see `AttackResult.save`."""
    with new_folder(path, replaces=ATTACK if check_flag(overwrite, "overwrite") else None) as folder:
        arrays = {name: write_array(folder / f"{name}.npy", values) for name, values in _arrays(result).items()}
        files.write_json(
            folder / ATTACK,
            {
                "schema_version": SCHEMA_VERSION,
                "arrays": arrays,
                "kind": result.kind,
                "knows": result.knows,
                "asked": result.asked,
                "explained": result.explained,
                "epsilon": result.epsilon,
                "curves": list(result.curves),
                "provenance": result.provenance,
            },
        )
    return as_path(path, "path")


def load_attack(path: str | Path) -> AttackResult:
    """Read a folder written by `AttackResult.save`; every file is checked against its digest.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such folder, or if it is damaged, tampered with or of a newer version; see `metfa.load`.
    """
    folder = as_path(path, "path")
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    manifest = folder / ATTACK
    if not manifest.exists():
        raise ValueError(f"`path`: {folder} is no saved attack: it has no {ATTACK}")
    with files.read_manifest(manifest, SCHEMA_VERSION) as about:
        return _assembled(manifest, about)


def _arrays(result: AttackResult) -> dict[str, np.ndarray]:
    found = {"target_map": result.target_map}
    for part in MEASURED:
        for field in FIELDS:
            values = getattr(getattr(result, part), field)
            if values is not None:
                found[f"{part}_{field}"] = values
    return found | {f"curve_{place}": curve for place, curve in enumerate(result.curves.values())}


def _assembled(manifest: Path, about: dict[str, Any]) -> AttackResult:
    described = about["arrays"]

    def read(name: str) -> np.ndarray:
        values = np.array(read_array(manifest, name, described[name]))
        if values.dtype.kind != "f":
            raise ValueError(f"{manifest} is damaged: {name} must be floating point, got {values.dtype}")
        return values

    parts = {
        part: Measured(
            inputs=read(f"{part}_inputs"),
            scores=read(f"{part}_scores"),
            maps=read(f"{part}_maps"),
            defended=read(f"{part}_defended") if f"{part}_defended" in described else None,
        )
        for part in MEASURED
    }
    result = AttackResult(
        kind=about["kind"],
        knows=about["knows"],
        **parts,
        target_map=read("target_map"),
        asked=tuple(map(int, about["asked"])),
        explained=tuple(map(int, about["explained"])),
        epsilon=_number(about["epsilon"]),
        curves={str(name): read(f"curve_{place}") for place, name in enumerate(about["curves"])},
        provenance={**about["provenance"]},
    )
    _check_fit(manifest, result)
    return result


def _number(value: Any) -> float | None:
    if value is not None and not isinstance(value, int | float):
        raise TypeError(f"epsilon, which must be a number, not {value!r:.40}")
    return value


def _check_fit(manifest: Path, result: AttackResult) -> None:
    """Raise unless the parts are of one batch, so that no number belongs to other images than it says."""
    n, clean = len(result.asked), result.clean
    fits = {
        "kind": result.kind in ("manipulation", "targeted"),
        "knows": result.knows in ("nothing", "defence", "seed"),
        "explained": len(result.explained) == n,
        "target_map": result.target_map.shape == clean.maps.shape,
        "epsilon": result.epsilon is None or (type(result.epsilon) is float and 0 <= result.epsilon <= 1),
        "asked": all(0 <= index < clean.scores.shape[1] for index in (*result.asked, *result.explained)),
        "curves": all(curve.ndim == 3 and curve.shape[2] == n for curve in result.curves.values()),
    }
    for part in MEASURED:
        measured: Measured = getattr(result, part)
        alike = [
            getattr(getattr(measured, field), "shape", None) == getattr(getattr(clean, field), "shape", None)
            for field in FIELDS
        ]
        fits[part] = all(alike) and len(measured.inputs) == len(measured.scores) == len(measured.maps) == n
    if result.epsilon is not None and fits["adversarial"]:
        fits["adversarial"] = bool(result.budget()["linf"].max() <= result.epsilon + 1e-6)
    for name, fit in fits.items():
        if not fit:
            raise ValueError(f"{manifest} is damaged: {name} does not fit the rest")
