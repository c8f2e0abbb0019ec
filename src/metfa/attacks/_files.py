"""An attack as a folder, as `metfa.io` writes samples: .npy files, and a manifest last that has their digests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from metfa import io
from metfa.attacks.result import AttackResult, Measured

__all__ = ["load_attack", "save_attack"]

MEASURED = ("clean", "adversarial", "rounded")
PARTS = ("inputs", "scores", "maps", "defended")


def save_attack(result: AttackResult, path: str | Path) -> Path:
    """Write `result` to the new folder `path`, all or nothing."""
    target = io.new_folder(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.urandom(4).hex()}")
    temporary.mkdir()
    try:
        arrays = _arrays(result)
        for name, array in arrays.items():
            io.write_array(temporary / f"{name}.npy", array)
        io.write_json(
            temporary / io.MANIFEST,
            {
                "schema_version": io.SCHEMA_VERSION,
                "attack": result.kind,
                "knows": result.knows,
                "asked": result.asked,
                "explained": result.explained,
                "epsilon": result.epsilon,
                "arrays": {name: io.described_array(temporary / f"{name}.npy", a) for name, a in arrays.items()},
                "provenance": result.provenance,
            },
        )
        temporary.rename(io.new_folder(target))
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return target


def load_attack(path: str | Path) -> AttackResult:
    """Read a folder written by `AttackResult.save`; every file is checked against its digest first.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If the folder holds no attack, or is damaged or tampered with; the message names the file.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    manifest = io.read_manifest(folder)
    if "attack" not in manifest:
        raise ValueError(f"{folder} holds no attack; `metfa.load({str(folder)!r})` reads samples")
    try:
        return _assembled(folder, manifest)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{folder / io.MANIFEST} is damaged: {type(error).__name__} at {error}") from error


def _arrays(result: AttackResult) -> dict[str, np.ndarray]:
    found = {f"{name}_{part}": getattr(getattr(result, name), part) for name in MEASURED for part in PARTS}
    found |= {"target_map": result.target_map}
    found |= {f"curve_{name}": values for name, values in result.curves.items()}
    return {name: array for name, array in found.items() if array is not None}


def _measured(arrays: dict[str, np.ndarray], name: str) -> Measured:
    inputs, scores, maps = (arrays[f"{name}_{part}"] for part in PARTS[:3])
    return Measured(inputs, scores, maps, arrays.get(f"{name}_defended"))


def _assembled(folder: Path, manifest: dict[str, Any]) -> AttackResult:
    described = manifest["arrays"]
    known = {f"{name}_{part}" for name in MEASURED for part in PARTS} | {"target_map"}
    curves = [name for name in described if name not in known]
    if not all(name.removeprefix("curve_").isidentifier() and name.startswith("curve_") for name in curves):
        raise ValueError(f"{folder / io.MANIFEST} is damaged: it names the arrays {sorted(curves)!r:.200}")
    arrays = {name: np.array(io.read_array(folder, name, about)) for name, about in described.items()}
    measured = [_measured(arrays, name) for name in MEASURED]
    n = len(manifest["asked"])
    holds = {
        "attack": manifest["attack"] in ("manipulation", "targeted"),
        "knows": manifest["knows"] in ("nothing", "defence", "seed"),
        "asked": all(type(entry) is int for entry in manifest["asked"]),
        "explained": len(manifest["explained"]) == n and all(type(entry) is int for entry in manifest["explained"]),
        "epsilon": isinstance(manifest["epsilon"], float | int | None),
        "provenance": isinstance(manifest["provenance"], dict),
        "arrays": all(
            one.inputs.shape == measured[0].inputs.shape
            and one.maps.shape == arrays["target_map"].shape
            and (one.defended is None) == (measured[0].defended is None)
            and (one.defended is None or one.defended.shape == one.maps.shape)
            and one.scores.shape == measured[0].scores.shape
            and one.scores.ndim == 2
            and len(one.inputs) == len(one.scores) == len(one.maps) == n
            for one in measured
        ),
        "curves": all(arrays[name].ndim == 3 and arrays[name].shape[2] == n for name in curves),
    }
    for name, fits in holds.items():
        if not fits:
            raise ValueError(f"{folder / io.MANIFEST} is damaged: {name} does not fit an attack of {n} images")
    return AttackResult(
        manifest["attack"],
        manifest["knows"],
        *measured,
        target_map=arrays["target_map"],
        asked=tuple(manifest["asked"]),
        explained=tuple(manifest["explained"]),
        epsilon=manifest["epsilon"],
        curves={name.removeprefix("curve_"): arrays[name] for name in curves},
        provenance=manifest["provenance"],
    )
