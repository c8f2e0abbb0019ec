"""What a result must be like so that each figure, text and page of it can be made, checked when it is saved or read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.mapped import unload
from metfa.results.corrections import BOTH, STATEMENTS
from metfa.results.labels import are_columns
from metfa.results.rules import RULES
from metfa.results.same_copies import are_first_copies

if TYPE_CHECKING:
    from metfa.results.sample import AttributionSample

__all__ = ["misfits"]

LARGEST_INT = 2**63 - 1


def misfits(sample: AttributionSample) -> Iterator[tuple[str, str]]:
    """Fields of a result that do not fit, each with what is wrong with it."""
    n, batch, *features = sample.values.shape
    holds = {
        "sample_ids": len(set(sample.sample_ids)) == n and all(_is_count(i) for i in sample.sample_ids),
        "input_ids": len(sample.input_names) == batch and all(isinstance(name, str) for name in sample.input_names),
        "inputs": _lengths(sample.inputs) == {batch},
        "target": len(sample.target) == batch,
        "vanilla": (sample.vanilla is None) == (sample.population is not None)
        and (sample.vanilla is None or sample.vanilla.shape == sample.values.shape[1:]),
        "scores": sample.scores is None or sample.scores.shape[:1] == (batch,),
        "predictions": sample.predictions is None or sample.predictions.shape == (n, batch),
        "regions": sample.regions is None
        or (features == [len(sample.regions)] and len(sample.regions.masks) in (1, batch)),
        "stopping": _over_fits(sample, tuple(features), batch),
        "feature_names": sample.feature_names is None or features == [len(sample.feature_names)],
        "population": sample.population is None or len(sample.population.names) == n,
        "pairs_of": sample.pairs_of is None
        or (features == [len(sample.pairs_of) * (len(sample.pairs_of) - 1) // 2] and sample.regions is None),
    }
    yield from (
        (name, f"does not fit values of shape {sample.values.shape}") for name, fits in holds.items() if not fits
    )
    if not n or not batch:
        yield "values", f"holds no samples: its shape is {sample.values.shape}"
    for name in ("values", "vanilla"):
        if getattr(sample, name) is not None and not _all_finite(getattr(sample, name)):
            yield name, "holds NaN or infinity, and attributions are finite"
    if sample.scores is not None and (sample.scores.dtype.kind not in "biuf" or 0 in sample.scores.shape):
        yield "scores", f"must be numbers for one or more classes, got {sample.scores.dtype} {sample.scores.shape}"
    elif sample.scores is not None and np.isnan(sample.scores).any():
        yield "scores", "holds NaN"
    if sample.predictions is not None and sample.predictions.dtype.kind not in "iu":
        yield "predictions", f"must be class indices, got {sample.predictions.dtype}"
    if sample.feature_names is not None and not all(isinstance(name, str) for name in sample.feature_names):
        yield "feature_names", "must be texts"
    for entry in sample.target:
        parts = entry if isinstance(entry, tuple) else (entry,)
        if entry is not None and not all(_is_int(part) for part in parts):
            yield "target", f"must hold integers, got {entry!r:.40}"
    yield from _of_provenance(sample.provenance)


def _over_fits(sample: AttributionSample, features: tuple[int, ...], batch: int) -> bool:
    """Whether the regions that sampling asked about are those of the features, or of such maps."""
    over = None if sample.stopping is None else sample.stopping.over
    return over in (None, sample.regions) or (over.feature_shape == features and len(over.masks) in (1, batch))


def _of_provenance(made: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Misfits of the entries that are read later; there may be others, of any kind."""
    for name, (fits, what) in PROVENANCE.items():
        if made.get(name) is not None and not fits(made[name]):
            yield f"provenance[{name!r}]", f"must be {what}, got {type(made[name]).__name__}: {made[name]!r:.40}"


def _lengths(inputs: Any) -> set[int]:
    parts = inputs.values() if isinstance(inputs, dict) else inputs if isinstance(inputs, tuple) else [inputs]
    return {len(part) for part in parts}


def _all_finite(values: np.ndarray) -> bool:
    for part in values:  # one sample at a time: memory stays flat
        if not np.isfinite(part).all():
            return False
        unload(values)
    return True


def _is_int(value: Any) -> bool:
    return type(value) is int and abs(value) <= LARGEST_INT


def _is_count(value: Any) -> bool:
    return _is_int(value) and value >= 0


def _is_number(value: Any) -> bool:
    return _is_int(value) or (type(value) is float and math.isfinite(value))


def _is_size(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_seed(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"0x[0-9a-f]{1,64}", value) is not None


def _are_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(part, str) for pair in value.items() for part in pair)


def _are_facts(value: Any) -> bool:
    """Whether these are facts of a text, as `metfa.text.explain_text` finds them."""
    if not isinstance(value, dict):
        return False
    ends = value.get("unscaled", [0, 0])
    return (
        isinstance(ends, list | tuple)
        and len(ends) == 2
        and all(map(_is_number, ends))
        and _is_number(value.get("r2", 0))
        and _is_count(value.get("unread", 0))
    )


Kind = tuple[Callable[[Any], bool], str]
TEXT: Kind = (_is_text, "a text")
COUNT: Kind = (_is_count, "a count")
SIZE: Kind = (_is_size, "a finite number, not negative")
PROVENANCE: dict[str, Kind] = {
    **dict.fromkeys(("explainer", "noise", "streams", "device", "started", "until", "score", "picked"), TEXT),
    **dict.fromkeys(("layout", "fast"), TEXT),
    **dict.fromkeys(("n_samples", "first_sample", "batch_size", "maps_made", "torch_threads"), COUNT),
    **dict.fromkeys(("seconds", "gaussian_std"), SIZE),
    "rng": (_is_seed, "a hexadecimal number such as '0x1f'"),
    "families": (lambda value: value in (STATEMENTS, BOTH), f"'{STATEMENTS}' or '{BOTH}'"),
    "usual_threshold": (lambda value: isinstance(value, str) and value in RULES, f"one of {', '.join(RULES)}"),
    **dict.fromkeys(("signed", "of_outputs"), (lambda value: isinstance(value, bool), "true or false")),
    "unmoved": (lambda value: isinstance(value, list) and all(map(_is_text, value)), "a list of input names"),
    "class_names": (lambda value: isinstance(value, list) and all(map(_is_text, value)), "a list of texts"),
    "versions": (_are_texts, "texts by name"),
    "part": (lambda value: _is_text(value) or _is_count(value), "the name of a part"),
    "first_copy": (lambda value: value is None or are_first_copies(value), "what the first noisy copy changes"),
    "columns": (are_columns, "names, kinds and labels of columns"),
    "text": (_are_facts, "facts of a text"),
}
