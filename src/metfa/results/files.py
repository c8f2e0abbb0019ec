"""Results as folders: a manifest.json, and one .npy file for each array. Nothing is pickled.

`manifest.json` is written last and names every array with dtype, shape and BLAKE2b digest. `load` checks each file
before it reads a number, follows no symbolic links, and never imports anything that a manifest names.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.validation import as_path, check_flag, one_of
from metfa._base.writing import new_folder
from metfa.results.arrays import describe_array, digest_of, write_array
from metfa.results.attribution_parts import in_parts
from metfa.results.checks import misfits
from metfa.results.differences import difference_of
from metfa.results.manifests import damage_named, read_manifest, write_json
from metfa.results.reading import ARRAYS, MANIFEST, assembled, check_inputs, check_targets, read_stopping, typed
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample
from metfa.results.scaled import SCALES
from metfa.results.terms import Terms

__all__ = [
    "LEVELS",
    "MANIFEST",
    "PARTS",
    "check_inputs",
    "check_targets",
    "load",
    "load_joined",
    "save",
    "write_comparison",
    "write_manifest",
]

SCHEMA_VERSION = 1
LEVELS = "levels.json"  # of a folder with a result for each level (`metfa.text.explain_answer_tree`)
PARTS = ("before", "after")  # folders of the two results that a comparison is of


def save(sample: AttributionSample, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write `sample` to the folder `path`, all or nothing; `overwrite` replaces a saved result that stands there.

    Raises
    ------
    FileExistsError
        If `path` exists, and is no saved result or `overwrite` is not given.
    TypeError
        If the inputs are a list of anything but texts or lists of tokens, or a target is not one or several integers.
    ValueError
        If a field could not be read back, such as scores that are NaN.
    """
    parts = {"": sample} if sample.pair is None else dict(zip(PARTS, sample.pair, strict=True))
    for part in parts.values():  # before a folder is made
        check_inputs(part.inputs)
        check_targets(part.target)
        _check(part)
    with new_folder(path, replaces=MANIFEST if check_flag(overwrite, "overwrite") else None) as temporary:
        for name, part in parts.items():
            folder = temporary / name
            folder.mkdir(exist_ok=True)
            for array in ARRAYS:
                if getattr(part, array) is not None:
                    write_array(folder / f"{array}.npy", getattr(part, array))
            write_manifest(folder, part)
        if sample.pair is not None:
            write_comparison(temporary, sample, scale="raw")  # its parts are scaled
    return as_path(path, "path")


def load(path: str | Path) -> Any:
    """Read a folder written by `AttributionSample.save` or by ``explain(..., run=metfa.Run(store=...))``.

    The samples are memory-mapped read-only; every file is checked against its digest first. Of a comparison the two
    parts are read, and subtracted again.

    Parameters
    ----------
    path : path
        The folder.

    Returns
    -------
    AttributionSample or AttributionParts
        What was saved.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If the folder is unfinished, damaged, changed or of a newer version; the message names the file.
    """
    joined = load_joined(path)
    with damage_named(as_path(path, "path") / MANIFEST):
        return in_parts(joined)


def load_joined(path: str | Path) -> AttributionSample:
    """The same; the parts of several inputs as they are kept, in one row of features."""
    folder = as_path(path, "path")
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    if MANIFEST not in (names := {entry.name for entry in folder.iterdir()}):
        if {"run.json", "learned.json"} & names:
            if folder.name in PARTS and (folder.parent / "run.json").exists():
                folder = folder.parent  # of the comparison, which makes this part
            raise ValueError(
                f"{folder} holds an unfinished run: to resume it, repeat the call with "
                f"`run=metfa.Run(store={str(folder)!r})`"
            )
        hint = f"; the samples lie in {folder / 'sample'}" if (folder / "sample" / MANIFEST).is_file() else ""
        if hint and "context.json" in names:
            hint = "; it holds the context of an object: read it with `metfa.segmentation.load_context`"
        if LEVELS in names:
            hint = "; it holds the levels of an answer: read it with `metfa.text.load_answer_tree`"
        if "attack.json" in names:
            hint = "; it holds an attack: read it with `metfa.attacks.load_attack`"
        raise ValueError(f"{folder} is not a saved result: it has no {MANIFEST}{hint}")
    with read_manifest(folder / MANIFEST, SCHEMA_VERSION) as manifest:
        return _compared(folder, manifest) if "compared" in manifest else assembled(folder, manifest)


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
    about_regions = _write_regions(folder, sample, described)
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
            **({} if sample.population is None else {"population": sample.population.written()}),
            **({} if sample.pairs_of is None else {"pairs_of": sample.pairs_of}),
        },
    )


def write_comparison(folder: Path, sample: AttributionSample, *, scale: str) -> None:
    """Write the manifest of a comparison, whose parts are in `folder`; they will be scaled by `scale` when read."""
    described: dict[str, Any] = {}
    write_json(
        folder / MANIFEST,
        {
            "schema_version": SCHEMA_VERSION,
            "compared": sample.provenance["compared"],
            "scale": scale,
            "arrays": described,
            "regions": _write_regions(folder, sample, described, ("over",)),
            "looks": sample.looks,
            "stopping": None if sample.stopping is None else sample.stopping.written(),
            "default_terms": None if sample.default_terms is None else sample.default_terms.written(),
        },
    )


def _write_regions(
    folder: Path, sample: AttributionSample, described: dict[str, Any], names: tuple[str, ...] = ("regions", "over")
) -> dict[str, Any]:
    """Write what a result knows of regions; returns it as JSON, and adds the descriptions of its arrays."""
    about = {}
    for name, regions in _regions_of(sample).items():
        if name in names:
            about[name], parts = regions.written()
            for part, array in parts.items():
                described[f"{name}_{part}"] = write_array(folder / f"{name}_{part}.npy", array)
    return about


def _regions_of(sample: AttributionSample) -> dict[str, Regions]:
    """What a result knows of regions, by the names of their files: what its features are, what `Until` asked about."""
    found = {"regions": sample.regions, "over": None if sample.stopping is None else sample.stopping.over}
    return {name: regions for name, regions in found.items() if regions is not None}


def _compared(folder: Path, manifest: dict[str, Any]) -> AttributionSample:
    """The differences of the two results in a folder."""
    said, file = typed(manifest, "compared", dict), folder / MANIFEST
    parts = []
    for name in PARTS:
        if (folder / name).is_symlink():
            raise ValueError(f"{folder / name} is a link, and is not followed")
        with read_manifest(folder / name / MANIFEST, SCHEMA_VERSION) as of_part:
            parts.append(assembled(folder / name, of_part))
    try:
        sample = difference_of(*parts, scale=manifest["scale"], names=said["names"], word=said.get("word", "in"))
        scale = one_of(said["scale"], "scale", ("raw", *SCALES))
        if manifest["scale"] not in ("raw", scale):
            raise ValueError(f"`scale` is {scale!r}, and its parts are to be scaled by {manifest['scale']!r:.40}")
        provenance = {
            **sample.provenance,
            "compared": {**sample.provenance["compared"], "scale": scale},
            "looks": [*sample.looks, *(size for size in typed(manifest, "looks", list) if size not in sample.looks)],
        }
        sample = replace(sample, provenance=provenance)
        if manifest["default_terms"] is not None:
            sample = replace(sample, default_terms=Terms.read(manifest["default_terms"], sample.values.shape))
        stopping = read_stopping(folder, manifest, sample.values.shape)
        sample = replace(sample, stopping=stopping if stopping is not None else sample.stopping)
        sample.terms()
    except ValueError as error:
        raise ValueError(f"{file} is damaged, or does not fit its parts: {error}") from error
    for name, wrong in misfits(sample):
        raise ValueError(f"{file} is damaged: {name} {wrong}")
    return sample
