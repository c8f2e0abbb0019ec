"""Reading what was saved: every array is checked against its manifest, and every field against the others."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.validation import is_text, with_article
from metfa.results.arrays import KINDS, digest_of, read_array
from metfa.results.checks import misfits
from metfa.results.corrections import BOTH
from metfa.results.manifests import read_json
from metfa.results.population import Population
from metfa.results.regions import Regions
from metfa.results.rules import USUAL_ONCE
from metfa.results.sample import AttributionSample
from metfa.results.stopping import Stopping
from metfa.results.terms import Terms

__all__ = ["ARRAYS", "MANIFEST", "assembled", "check_inputs", "check_targets", "read_stopping", "typed"]

MANIFEST = "manifest.json"
ARRAYS = ("values", "vanilla", "scores", "predictions")
RULES_ONCE = {"families": BOTH, "usual_threshold": USUAL_ONCE}  # of files that do not say which


def assembled(folder: Path, manifest: dict[str, Any]) -> AttributionSample:
    """The result in a folder."""
    described = manifest["arrays"]
    values, vanilla, scores, predictions = (
        read_array(folder / MANIFEST, name, described[name]) if name in described else None for name in ARRAYS
    )
    names = manifest["feature_names"]
    if names is not None and not isinstance(names, list):
        raise TypeError("feature_names, which must be a list")
    ids, input_names, target = (typed(manifest, name, list) for name in ("sample_ids", "input_ids", "target"))
    check_targets(target)
    population, pairs_of = manifest.get("population"), manifest.get("pairs_of")
    kinds = {array.dtype.kind for array in (values, vanilla) if array is not None}
    unknown = vanilla is None and population is None
    if values is None or unknown or values.ndim < 3 or kinds - set("biuf"):
        raise ValueError(f"{folder / MANIFEST} is damaged: values and vanilla must be numbers (n, batch, *features)")
    if pairs_of is not None and not (isinstance(pairs_of, list) and all(isinstance(name, str) for name in pairs_of)):
        raise TypeError("pairs_of, which must be a list of texts")
    inputs = _read_inputs(folder, manifest["inputs"], described)
    default_terms = manifest.get("default_terms")
    stopping = read_stopping(folder, manifest, values.shape)
    regions = _read_regions(folder, manifest.get("regions", {}), described)
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
        provenance={**RULES_ONCE, **typed(manifest, "provenance", dict)},
        stopping=stopping,
        default_terms=None if default_terms is None else Terms.read(default_terms, values.shape),
        regions=regions.get("regions"),
        population=None if population is None else Population.read(population, *values.shape[1::-1]),
        pairs_of=None if pairs_of is None else tuple(pairs_of),
    )
    for name, wrong in misfits(sample):
        raise ValueError(f"{folder / MANIFEST} is damaged: {name} {wrong}")
    try:
        if sample.stopping is not None or sample.default_terms is not None:
            sample.terms()  # they must agree
    except (TypeError, ValueError) as error:
        raise ValueError(f"{folder / MANIFEST} is damaged: stopping or default_terms: {error}") from error
    return sample


def read_stopping(folder: Path, manifest: dict[str, Any], shape: tuple[int, ...]) -> Stopping | None:
    """How sampling stopped, with the regions that it asked about."""
    n, batch = shape[:2]
    stopping = None if manifest.get("stopping") is None else Stopping.read(manifest["stopping"], batch, n)
    regions = _read_regions(folder, manifest.get("regions", {}), manifest["arrays"])
    if "over" not in regions:
        return stopping
    if stopping is None:
        raise TypeError("regions over, which belong to a stopping")
    return replace(stopping, over=regions["over"])


def _read_regions(folder: Path, about: Any, arrays: dict[str, Any]) -> dict[str, Regions]:
    if not isinstance(about, dict) or set(about) - {"regions", "over"}:
        raise TypeError("regions, which must be an object")

    def read(name: str, part: str) -> np.ndarray:
        return np.array(read_array(folder / MANIFEST, f"{name}_{part}", arrays[f"{name}_{part}"]))

    try:
        return {name: Regions.read(written, partial(read, name)) for name, written in about.items()}
    except ValueError as error:
        raise ValueError(f"{folder / MANIFEST} is damaged: regions: {error}") from error


def typed(manifest: dict[str, Any], name: str, kind: type) -> Any:
    """An entry of a manifest; TypeError if it is of another kind."""
    if not isinstance(manifest[name], kind):
        raise TypeError(f"{name}, which must be {with_article(kind.__name__)}")
    return manifest[name]


def _read_inputs(folder: Path, about: dict[str, Any], arrays: dict[str, Any]) -> Any:
    kind, keys = about["kind"], typed(about, "keys", list)
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
