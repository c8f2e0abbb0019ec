"""Results as folders: a manifest.json, and one .npy file for each array. Nothing is pickled.

`manifest.json` is written last and names every array with dtype, shape and BLAKE2b digest. `load` checks each file
before it reads a number, follows no symbolic links, and never imports anything that a manifest names.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.validation import as_path, is_text
from metfa._base.writing import new_folder
from metfa.results.arrays import KINDS, describe_array, digest_of, read_array, write_array
from metfa.results.checks import misfits
from metfa.results.corrections import BOTH
from metfa.results.manifests import read_json, read_manifest, write_json
from metfa.results.population import Population
from metfa.results.regions import Regions
from metfa.results.rules import USUAL_ONCE
from metfa.results.sample import AttributionSample
from metfa.results.stopping import Stopping
from metfa.results.terms import Terms

__all__ = [
    "MANIFEST",
    "check_inputs",
    "check_targets",
    "load",
    "save",
    "write_manifest",
]

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1
ARRAYS = ("values", "vanilla", "scores", "predictions")
RULES_ONCE = {"families": BOTH, "usual_threshold": USUAL_ONCE}  # of files that do not say which


def save(sample: AttributionSample, path: str | Path) -> Path:
    """Write `sample` to the new folder `path`, all or nothing.

    Raises
    ------
    FileExistsError
        If `path` exists: nothing is ever overwritten.
    TypeError
        If the inputs are a list of anything but texts or lists of tokens, or a target is not one or several integers.
    ValueError
        If a field could not be read back, such as scores that are NaN.
    """
    check_inputs(sample.inputs)
    check_targets(sample.target)
    _check(sample)  # before a folder is made
    with new_folder(path) as temporary:
        for name in ARRAYS:
            if getattr(sample, name) is not None:
                write_array(temporary / f"{name}.npy", getattr(sample, name))
        write_manifest(temporary, sample)
    return as_path(path, "path")


def load(path: str | Path) -> AttributionSample:
    """Read a folder written by `AttributionSample.save` or by ``explain(..., run=metfa.Run(store=...))``.

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
        If the folder is unfinished, damaged, changed or of a newer version; the message names the file.
    """
    folder = as_path(path, "path")
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    if MANIFEST not in (names := {entry.name for entry in folder.iterdir()}):
        if "run.json" in names:
            raise ValueError(
                f"{folder} holds an unfinished run: to resume it, repeat the call with "
                f"`run=metfa.Run(store={str(folder)!r})`"
            )
        hint = f"; the samples lie in {folder / 'sample'}" if (folder / "sample" / MANIFEST).is_file() else ""
        if hint and "context.json" in names:
            hint = "; it holds the context of an object: read it with `metfa.segmentation.load_context`"
        if "attack.json" in names:
            hint = "; it holds an attack: read it with `metfa.attacks.load_attack`"
        raise ValueError(f"{folder} is not a saved result: it has no {MANIFEST}{hint}")
    with read_manifest(folder / MANIFEST, SCHEMA_VERSION) as manifest:
        return _assembled(folder, manifest)


def _check(sample: AttributionSample) -> None:
    """Raise if a field could not be read back."""
    for name, wrong in misfits(sample):
        raise ValueError(f"`{name}` {wrong}, so the result cannot be saved")


def write_manifest(folder: Path, sample: AttributionSample) -> None:
    """Write the inputs, then at once the manifest: the last file, which makes `folder` a result."""
    _check(sample)
    described: dict[str, Any] = {}
    inputs = sample.inputs
    about: dict[str, Any] = {"kind": "array" if isinstance(inputs, np.ndarray) else type(inputs).__name__, "keys": []}
    if isinstance(inputs, list):
        write_json(folder / "inputs.json", inputs)
        about["digest"] = digest_of(folder / "inputs.json")
    else:
        parts = (
            inputs if isinstance(inputs, dict) else dict(enumerate(inputs if isinstance(inputs, tuple) else [inputs]))
        )
        about["keys"] = list(parts)
        for index, part in enumerate(parts.values()):
            described[f"inputs_{index}"] = write_array(folder / f"inputs_{index}.npy", part)
    for name in ARRAYS:
        if getattr(sample, name) is not None:
            described[name] = describe_array(folder / f"{name}.npy", getattr(sample, name))
    about_regions = {}
    for name, regions in _regions_of(sample).items():
        about_regions[name], parts = regions.written()
        for part, array in parts.items():
            described[f"{name}_{part}"] = write_array(folder / f"{name}_{part}.npy", array)
    write_json(
        folder / MANIFEST,
        {
            "schema_version": SCHEMA_VERSION,
            "arrays": described,
            "inputs": about,
            "target": sample.target,
            "sample_ids": sample.sample_ids,
            "input_ids": sample.input_names,
            "feature_names": sample.feature_names,
            "provenance": sample.provenance,
            "stopping": None if sample.stopping is None else sample.stopping.written(),
            "default_terms": None if sample.default_terms is None else sample.default_terms.written(),
            "regions": about_regions,
            "population": None if sample.population is None else sample.population.written(),
            "compared": sample.compared,
        },
    )


def _regions_of(sample: AttributionSample) -> dict[str, Regions]:
    """What a result knows of regions, by the names of their files: what its features are, what `Until` asked about."""
    found = {"regions": sample.regions, "over": None if sample.stopping is None else sample.stopping.over}
    return {name: regions for name, regions in found.items() if regions is not None}


def check_targets(targets: Any) -> None:
    """Raise if a target cannot be written to a manifest."""
    for entry in targets:
        parts = entry if isinstance(entry, tuple | list) else [entry]
        if entry is not None and not all(isinstance(part, int) for part in parts):
            raise TypeError(f"`target` must be integers or tuples of integers to be saved, got {type(entry).__name__}")


def check_inputs(inputs: Any) -> None:
    """Raise if inputs cannot be written beside a manifest."""
    if isinstance(inputs, list):
        kinds = sorted({type(entry).__name__ for entry in inputs if not is_text(entry)})
        if kinds:
            raise TypeError(
                f"`inputs` must be arrays or a list of texts or of tokens to be saved, got a list of {', '.join(kinds)}"
            )
    else:
        if isinstance(inputs, dict) and not all(isinstance(key, str) for key in inputs):
            raise TypeError(f"`inputs` must be a dict with text keys to be saved, got {list(inputs)}")
        for part in inputs.values() if isinstance(inputs, dict) else inputs if isinstance(inputs, tuple) else [inputs]:
            if not isinstance(part, np.ndarray) or part.dtype.kind not in KINDS:
                kind = f"an array of {part.dtype}" if isinstance(part, np.ndarray) else type(part).__name__
                raise TypeError(f"`inputs` must be arrays or a list of texts to be saved, got {kind}")


def _assembled(folder: Path, manifest: dict[str, Any]) -> AttributionSample:
    described = manifest["arrays"]
    values, vanilla, scores, predictions = (
        read_array(folder / MANIFEST, name, described[name]) if name in described else None for name in ARRAYS
    )
    names = manifest["feature_names"]
    if names is not None and not isinstance(names, list):
        raise TypeError("feature_names, which must be a list")
    ids, input_names, target = (_typed(manifest, name, list) for name in ("sample_ids", "input_ids", "target"))
    check_targets(target)
    if any(array is not None and array.dtype.kind not in "biuf" for array in (values, vanilla)):
        raise ValueError(f"{folder / MANIFEST} is damaged: values and vanilla must be numbers (n, batch, *features)")
    if values is None or values.ndim < 3:
        raise ValueError(f"{folder / MANIFEST} is damaged: values must be numbers (n, batch, *features)")
    population, compared = manifest.get("population"), manifest.get("compared")
    if vanilla is None and population is None:
        raise ValueError(f"{folder / MANIFEST} is damaged: it has no map without noise, vanilla")
    if compared is not None and not (isinstance(compared, list) and all(isinstance(name, str) for name in compared)):
        raise TypeError("compared, which must be a list of texts")
    n, batch = values.shape[:2]
    inputs = _read_inputs(folder, manifest["inputs"], described)
    default_terms = manifest.get("default_terms")
    stopping = None if manifest.get("stopping") is None else Stopping.read(manifest["stopping"], batch, n)
    regions = _read_regions(folder, manifest.get("regions", {}), described)
    if "over" in regions:
        if stopping is None:
            raise TypeError("regions over, which belong to a stopping")
        stopping = replace(stopping, over=regions["over"])
    sample = AttributionSample(
        values=values,
        inputs=inputs,
        target=tuple(tuple(entry) if isinstance(entry, list) else entry for entry in target),
        vanilla=None if vanilla is None else np.array(vanilla),
        scores=None if scores is None else np.array(scores),
        predictions=None if predictions is None else np.array(predictions),
        sample_ids=tuple(ids),
        input_names=tuple(input_names),
        feature_names=None if names is None else tuple(names),
        provenance={**RULES_ONCE, **_typed(manifest, "provenance", dict)},
        stopping=stopping,
        default_terms=None if default_terms is None else Terms.read(default_terms, values.shape),
        regions=regions.get("regions"),
        population=None if population is None else Population.read(population, batch, n),
        compared=None if compared is None else tuple(compared),
    )
    for name, wrong in misfits(sample):
        raise ValueError(f"{folder / MANIFEST} is damaged: {name} {wrong}")
    try:
        if sample.stopping is not None or sample.default_terms is not None:
            sample.terms()  # they must agree
    except (TypeError, ValueError) as error:
        raise ValueError(f"{folder / MANIFEST} is damaged: stopping or default_terms: {error}") from error
    return sample


def _read_regions(folder: Path, about: Any, arrays: dict[str, Any]) -> dict[str, Regions]:
    if not isinstance(about, dict) or set(about) - {"regions", "over"}:
        raise TypeError("regions, which must be an object")

    def read(name: str, part: str) -> np.ndarray:
        return np.array(read_array(folder / MANIFEST, f"{name}_{part}", arrays[f"{name}_{part}"]))

    try:
        return {name: Regions.read(written, partial(read, name)) for name, written in about.items()}
    except ValueError as error:
        raise ValueError(f"{folder / MANIFEST} is damaged: regions: {error}") from error


def _typed(manifest: dict[str, Any], name: str, kind: type) -> Any:
    if not isinstance(manifest[name], kind):
        raise TypeError(f"{name}, which must be a {kind.__name__}")
    return manifest[name]


def _read_inputs(folder: Path, about: dict[str, Any], arrays: dict[str, Any]) -> Any:
    kind, keys = about["kind"], _typed(about, "keys", list)
    if kind == "list":
        texts = read_json(folder / "inputs.json")
        if digest_of(folder / "inputs.json") != about["digest"]:
            raise ValueError(f"{folder / 'inputs.json'} was changed after it was saved")
        if not isinstance(texts, list) or not all(map(is_text, texts)):
            raise ValueError(f"{folder / 'inputs.json'} is damaged: a list of texts is needed")
        return texts
    parts = [np.array(read_array(folder / MANIFEST, f"inputs_{i}", arrays[f"inputs_{i}"])) for i in range(len(keys))]
    if kind == "dict" and all(isinstance(key, str) for key in keys):
        return dict(zip(keys, parts, strict=True))
    if kind == "tuple" or (kind == "array" and len(parts) == 1):
        return tuple(parts) if kind == "tuple" else parts[0]
    raise ValueError(f"{folder / MANIFEST} is damaged: inputs of kind {kind!r:.40} with {len(keys)} keys")
