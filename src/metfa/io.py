"""Results as folders: a manifest.json and one .npy file an array. Nothing is pickled, nothing half-written is loaded.

`manifest.json` names every array with its dtype, shape and BLAKE2b digest and is written last: a folder without it is
unfinished. `load` checks each file against the manifest before it reads a number, follows no symbolic links, and never
imports anything that a manifest names.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from metfa.result import AttributionSample

__all__ = ["load", "new_folder", "save"]

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1
MAX_MANIFEST_BYTES = 64 * 2**20
ARRAYS = ("values", "vanilla", "scores", "predictions")


def save(sample: AttributionSample, path: str | Path) -> Path:
    """Write `sample` to the new folder `path`, all or nothing.

    Raises
    ------
    FileExistsError
        If `path` exists: nothing is ever overwritten.
    TypeError
        If the inputs are a list of objects other than texts.
    """
    target = new_folder(path)
    _check_savable(sample)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        for name in ARRAYS:
            if getattr(sample, name) is not None:
                _write_array(temporary / f"{name}.npy", getattr(sample, name))
        write_manifest(temporary, sample)
        temporary.chmod(0o777 & ~_umask())
        if target.exists():
            raise FileExistsError(f"`path` exists already: {target}; choose a new folder, nothing is overwritten")
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return target


def load(path: str | Path) -> AttributionSample:
    """Read a folder written by `AttributionSample.save` or by ``explain(..., store=)``.

    The samples are memory-mapped read-only; every file is checked against its digest first.

    Parameters
    ----------
    path : path
        The folder.

    Returns
    -------
    AttributionSample

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If the folder is unfinished, damaged, tampered with or of a newer version; the message names the file.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    if not (folder / MANIFEST).exists():
        if (folder / "run.json").exists():
            raise ValueError(
                f"{folder} holds an unfinished run: repeat the call with `store={str(folder)!r}` to resume it"
            )
        raise ValueError(f"{folder} is not a saved result: it has no {MANIFEST}")
    manifest = _read_manifest(folder)
    try:
        described = manifest["arrays"]
        arrays = {name: _read_array(folder, name, described[name]) for name in ARRAYS if name in described}
        inputs = _read_inputs(folder, manifest["inputs"], described)
        names = manifest["feature_names"]
        sample = AttributionSample(
            values=arrays["values"],
            inputs=inputs,
            target=tuple(_target_from_json(entry) for entry in manifest["target"]),
            vanilla=np.array(arrays["vanilla"]),
            scores=None if "scores" not in arrays else np.array(arrays["scores"]),
            predictions=None if "predictions" not in arrays else np.array(arrays["predictions"]),
            sample_ids=tuple(int(i) for i in manifest["sample_ids"]),
            input_ids=tuple(str(i) for i in manifest["input_ids"]),
            feature_names=None if names is None else tuple(str(name) for name in names),
            provenance=dict(manifest["provenance"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder / MANIFEST} is damaged: {type(error).__name__} at {error}") from error
    _check_consistent(folder, sample)
    return sample


def new_folder(path: str | Path) -> Path:
    """`path` if nothing is there yet."""
    target = Path(path)
    if target.exists() or target.is_symlink():
        raise FileExistsError(f"`path` exists already: {target}; choose a new folder, nothing is overwritten")
    return target


def write_manifest(folder: Path, sample: AttributionSample) -> None:
    """Write the inputs and then, as the last file and at once, the manifest that makes `folder` a result."""
    described: dict[str, Any] = {}
    inputs = sample.inputs
    kind = "array" if isinstance(inputs, np.ndarray) else type(inputs).__name__
    keys: list[Any] = []
    if kind == "list":
        write_json(folder / "inputs.json", inputs)
    else:
        keys = list(inputs) if kind == "dict" else list(range(len(inputs))) if kind == "tuple" else []
        for index, part in enumerate([inputs] if kind == "array" else [inputs[key] for key in keys]):
            _write_array(folder / f"inputs_{index}.npy", part)
            described[f"inputs_{index}"] = _describe(folder / f"inputs_{index}.npy", part)
    for name in ARRAYS:
        if getattr(sample, name) is not None:
            described[name] = _describe(folder / f"{name}.npy", getattr(sample, name))
    write_json(
        folder / MANIFEST,
        {
            "schema_version": SCHEMA_VERSION,
            "arrays": described,
            "inputs": {
                "kind": kind,
                "keys": keys,
                **({"digest": _digest(folder / "inputs.json")} if kind == "list" else {}),
            },
            "target": [_target_to_json(entry) for entry in sample.target],
            "sample_ids": list(sample.sample_ids),
            "input_ids": list(sample.input_ids),
            "feature_names": sample.feature_names,
            "provenance": sample.provenance,
        },
    )


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file at once: a reader finds the old file or the new one, never half of it."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(content, indent=1, sort_keys=True, allow_nan=False), encoding="utf-8")
    temporary.replace(path)


def _check_savable(sample: AttributionSample) -> None:
    if isinstance(sample.inputs, list) and not all(isinstance(text, str) for text in sample.inputs):
        kinds = sorted({type(entry).__name__ for entry in sample.inputs})
        raise TypeError(f"`inputs` must be arrays or a list of texts to be saved, got a list of {', '.join(kinds)}")
    if isinstance(sample.inputs, dict) and not all(isinstance(key, str) for key in sample.inputs):
        raise TypeError("`inputs` must be a dict with text keys to be saved")
    for entry in sample.target:
        _target_to_json(entry)


def _target_to_json(entry: Any) -> Any:
    if entry is None or isinstance(entry, int):
        return entry
    if isinstance(entry, tuple | list) and all(isinstance(part, int) for part in entry):
        return list(entry)
    raise TypeError(f"`target` must be integers or tuples of integers to be saved, got {type(entry).__name__}")


def _target_from_json(entry: Any) -> Any:
    return tuple(entry) if isinstance(entry, list) else entry


def _write_array(path: Path, array: np.ndarray) -> None:
    with path.open("wb") as file:
        np.lib.format.write_array_header_2_0(
            file, {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
        )
        for part in array if array.ndim > 1 else [array]:  # one sample at a time: memory stays flat
            file.write(np.ascontiguousarray(part).data if part.size else b"")


def _describe(path: Path, array: np.ndarray) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "shape": list(array.shape), "digest": _digest(path)}


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def _require_plain_file(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        raise ValueError(f"{path} is missing: the folder is incomplete") from error
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is a link or no plain file, and is not followed")


def _read_json(path: Path) -> Any:
    _require_plain_file(path)
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, more than the {MAX_MANIFEST_BYTES} allowed")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _read_manifest(folder: Path) -> dict[str, Any]:
    manifest = _read_json(folder / MANIFEST)
    if not isinstance(manifest, dict):
        raise ValueError(f"{folder / MANIFEST} is damaged: an object is needed, got {type(manifest).__name__}")
    version = manifest.get("schema_version")
    if version != SCHEMA_VERSION:
        raise ValueError(
            f"{folder / MANIFEST} has schema version {version!r}; this metfa reads version {SCHEMA_VERSION}"
        )
    return manifest


def _read_array(folder: Path, name: str, described: dict[str, Any]) -> np.ndarray:
    path = folder / f"{name}.npy"
    _require_plain_file(path)
    dtype, shape = np.dtype(str(described["dtype"])), tuple(int(side) for side in described["shape"])
    if dtype.kind not in "fiub" or any(side < 0 for side in shape):
        raise ValueError(f"{folder / MANIFEST} is damaged: {name} has dtype {dtype} and shape {shape}")
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            reader = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}[version[0]]
            found_shape, fortran, found_dtype = reader(file)
        except (ValueError, KeyError) as error:
            raise ValueError(f"{path} is no array file: {error}") from error
        offset = file.tell()
    if (found_shape, fortran, found_dtype) != (shape, False, dtype):
        raise ValueError(f"{path} holds {found_dtype} {found_shape}, the manifest says {dtype} {shape}")
    expected = offset + math.prod(shape) * dtype.itemsize
    if path.stat().st_size != expected:
        raise ValueError(f"{path} is truncated or padded: {path.stat().st_size} bytes, {expected} expected")
    if _digest(path) != described["digest"]:
        raise ValueError(f"{path} was changed after it was saved: its digest differs from the manifest's")
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _read_inputs(folder: Path, described: dict[str, Any], arrays: dict[str, Any]) -> Any:
    kind, keys = described["kind"], described["keys"]
    if kind == "list":
        texts = _read_json(folder / "inputs.json")
        if _digest(folder / "inputs.json") != described["digest"]:
            raise ValueError(f"{folder / 'inputs.json'} was changed after it was saved")
        return [str(text) for text in texts]
    if kind not in ("array", "tuple", "dict"):
        raise ValueError(f"{folder / MANIFEST} is damaged: unknown kind of inputs {kind!r}")
    count = 1 if kind == "array" else len(keys)
    parts = [np.array(_read_array(folder, f"inputs_{i}", arrays[f"inputs_{i}"])) for i in range(count)]
    if kind == "array":
        return parts[0]
    return tuple(parts) if kind == "tuple" else {str(key): part for key, part in zip(keys, parts, strict=True)}


def _check_consistent(folder: Path, sample: AttributionSample) -> None:
    n, batch = sample.values.shape[:2] if sample.values.ndim > 1 else (-1, -1)
    checks: list[tuple[str, Callable[[], bool]]] = [
        ("sample_ids", lambda: len(sample.sample_ids) == n and len(set(sample.sample_ids)) == n),
        ("input_ids", lambda: len(sample.input_ids) == batch),
        ("target", lambda: len(sample.target) == batch),
        ("vanilla", lambda: sample.vanilla.shape == sample.values.shape[1:]),
        ("scores", lambda: sample.scores is None or len(sample.scores) == batch),
        ("predictions", lambda: sample.predictions is None or sample.predictions.shape == (n, batch)),
    ]
    for name, holds in checks:
        if not holds():
            raise ValueError(
                f"{folder / MANIFEST} is damaged: {name} does not fit values of shape {sample.values.shape}"
            )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
