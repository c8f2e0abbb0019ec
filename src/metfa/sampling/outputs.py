"""What an explainer returned: attributions of one map or of several parts, with or without scores."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from metfa._arrays import as_array, copied, is_array, to_host
from metfa._base.percents import counted
from metfa._base.validation import with_article
from metfa.results.layout import Layout, Part

__all__ = [
    "checked_maps",
    "checked_scores",
    "in_one_row",
    "not_finite_at",
    "on_host",
    "read_output",
    "require_one_map",
]

Name = str | int
CHOOSE = "choose the attributions of one input, as in `lambda inputs, target: explainer(inputs, target=target)[0]`"


def read_output(output: Any, batch: Any, n_rows: int) -> tuple[Any, Any]:
    """Attributions, an array or a dict of the parts' arrays, and scores or None; raises if it can be read in two ways.

    For one input a pair is (attributions, scores). For a tuple of inputs, a tuple with one array for each is the
    attributions of all parts, as Captum returns them; for a dict of inputs, a dict is. Scores stand beside these, as in
    ``((first, second), scores)``.
    """
    names = _names_of(batch)
    if names and isinstance(output, list) and all(map(is_array, output)):
        output = tuple(output)
    attributions, scores = output, None
    if isinstance(output, tuple) and not (isinstance(batch, tuple) and _are_parts(output, batch)):
        if len(output) != 2 or (isinstance(batch, tuple) and len(batch) != 1 and not _are_many(output[0])):
            raise TypeError(_unreadable(output, batch))
        attributions, scores = output
        if isinstance(batch, Mapping) and is_array(attributions) and _fits_a_part(scores, batch):
            raise TypeError(_unreadable(output, batch))
    attributions = (
        _parts(attributions, batch, n_rows) if _are_many(attributions) else checked_maps(attributions, n_rows)
    )
    return attributions, None if scores is None else checked_scores(scores, n_rows)


def not_finite_at(one: Any) -> str:
    """End of a message: which scores of one map are NaN or infinity, and what to do."""
    host = np.asarray(to_host(one))
    bad = np.argwhere(~np.isfinite(host))
    place = bad[0].tolist()
    more = f" and {counted(len(bad) - 1, 'other')}" if len(bad) > 1 else ""
    where = f", at feature {place[0] if len(place) == 1 else tuple(place)}{more}" if place else ""
    return (
        f"{where}: a test needs a number from each sample; look for a division by 0 or a logarithm of 0, or let the "
        "explainer return 0 where a feature has no score"
    )


def require_one_map(parts: Collection[Any] | None, who: str, instead: str = CHOOSE) -> None:
    """Raise if attributions are those of several inputs, where `who` takes one array."""
    if parts is not None:
        raise TypeError(
            f"`explainer` returned attributions of {len(parts)} parts, and {who} takes one array: {instead}"
        )


def checked_maps(attributions: Any, n_rows: int, what: str = "attributions") -> Any:
    """Attributions as an array with one map for each row."""
    of = "" if what == "attributions" else f" as {what}"
    attributions = as_array(attributions, what)
    if attributions.ndim < 1 or attributions.shape[0] != n_rows:
        raise ValueError(
            f"`explainer` must return one map for each row, got shape {tuple(attributions.shape)}{of} for {n_rows} "
            "rows; if it explains a single row a call, write `batch_size=1`"
        )
    if attributions.ndim == 1 or 0 in attributions.shape:
        raise ValueError(
            f"`explainer` must return attributions (batch, *features), got shape {tuple(attributions.shape)}{of}, "
            "which leaves no features to test"
        )
    return copied(attributions)  # an explainer may write its next ones to the same place


def checked_scores(scores: Any, n_rows: int) -> Any:
    """Scores as an array with the batch axis first."""
    scores = as_array(scores, "scores")
    if scores.ndim < 1 or scores.shape[0] != n_rows:
        raise ValueError(
            f"`explainer` must return scores (batch, classes) beside its attributions, got shape "
            f"{tuple(scores.shape)} for {n_rows} rows"
        )
    return copied(scores)


def on_host(maps: Any) -> np.ndarray:
    """Maps as they are kept: real numbers, which represent integers and booleans exactly."""
    host = to_host(maps)
    return host.astype(np.result_type(host.dtype, np.float32)) if host.dtype.kind in "biu" else host


def in_one_row(parts: Mapping[Name, np.ndarray]) -> tuple[np.ndarray, Layout]:
    """Maps of parts on the host as one row of features for each row of the batch, and where each part lies."""
    rows = [maps.reshape(len(maps), math.prod(maps.shape[1:])) for maps in parts.values()]
    return np.concatenate(rows, axis=1), Layout(tuple(Part(name, maps.shape[1:]) for name, maps in parts.items()))


def _names_of(batch: Any) -> list[Name]:
    return list(batch) if isinstance(batch, Mapping) else list(range(len(batch))) if isinstance(batch, tuple) else []


def _are_many(attributions: Any) -> bool:
    return isinstance(attributions, tuple | Mapping)


def _are_parts(output: Sequence[Any], batch: tuple[Any, ...]) -> bool:
    """Whether a tuple for a tuple of inputs is the attributions of each.

    A pair could be (attributions, scores) too, so both must have the shapes of their inputs.
    """
    if len(output) != len(batch) or not all(map(is_array, output)):
        return False
    return len(output) != 2 or all(
        tuple(maps.shape) == tuple(part.shape) for maps, part in zip(output, batch, strict=True)
    )


def _fits_a_part(scores: Any, batch: Mapping[Name, Any]) -> bool:
    """Whether what stands where scores do has the shape of an input, so that it may be its attributions."""
    return is_array(scores) and tuple(scores.shape) in {tuple(part.shape) for part in _arrays_of(batch)}


def _parts(attributions: Any, batch: Any, n_rows: int) -> dict[Name, Any]:
    """The arrays of parts by name, in the order of the inputs."""
    names = _names_of(batch)
    if not names:
        came = with_article(type(attributions).__name__)
        raise TypeError(
            f"`explainer` returned {came} of attributions for one input: return one array, or give `inputs` "
            "as a dict with the same names"
        )
    if isinstance(attributions, tuple):
        if isinstance(batch, Mapping) or len(attributions) != len(names):
            raise TypeError(
                f"`explainer` returned a tuple of {len(attributions)} attributions for "
                f"{with_article(type(batch).__name__)} of {len(names)} inputs: return a dict of those that it "
                f"explains, {_example(names)}"
            )
        attributions = dict(zip(names, attributions, strict=True))
    if not all(type(name) in (int, str) for name in names):
        raise TypeError(f"`inputs` must be a dict with texts as keys to be explained in parts, got {names!r:.80}")
    unknown = [name for name in attributions if name not in names]
    if unknown or not attributions:
        raise TypeError(
            f"`explainer` must return attributions with names of the inputs, {', '.join(map(repr, names))}, got "
            f"{', '.join(map(repr, attributions)) or 'none'}"
        )
    return {
        name: checked_maps(attributions[name], n_rows, f"the attributions of part {name!r}")
        for name in names
        if name in attributions
    }


def _unreadable(output: Sequence[Any], batch: Any) -> str:
    names = _names_of(batch)
    if not names:
        return f"`explainer` returned a tuple of {len(output)}, one array is needed: {CHOOSE}"
    shapes = ", ".join(str(tuple(one.shape)) if is_array(one) else type(one).__name__ for one in output)
    own = ", ".join(str(tuple(part.shape)) for part in _arrays_of(batch))
    return (
        f"`explainer` returned a tuple of shapes {shapes} for inputs of shapes {own}, and it does not show which are "
        f"attributions and which scores: return a dict of the parts that it explains, {_example(names)}, or a pair of "
        "such a dict and the scores"
    )


def _example(names: list[Name]) -> str:
    return f"{{{', '.join(f'{name!r}: ...' for name in names[:3])}}}"


def _arrays_of(batch: Any) -> list[Any]:
    return list(batch.values()) if isinstance(batch, Mapping) else list(batch)
