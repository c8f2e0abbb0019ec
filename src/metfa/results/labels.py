"""What the values of a frame's columns are called: labels, truth values and dates, where a sample has their codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._frames.columns import label_text

if TYPE_CHECKING:
    from metfa.results.samples import Samples

__all__ = ["are_columns", "joined_codes", "ordered_codes", "value_texts"]

FIELDS: dict[str, type] = {"name": str, "kind": str, "labels": list}


def value_texts(sample: Samples) -> list[str | None] | None:
    """Names of the values of the first input, None for numbers; None where it is no row of a frame."""
    columns, inputs = sample.provenance.get("columns"), sample.inputs
    if columns is None or not isinstance(inputs, np.ndarray) or inputs.shape[1:] != (len(columns),):
        return None
    return [label_text(column, float(code)) for column, code in zip(columns, inputs[0], strict=True)]


def ordered_codes(sample: Samples, table: np.ndarray) -> np.ndarray:
    """Numbers (rows, columns) of a frame with NaN for labels, whose codes have no order."""
    columns = sample.provenance.get("columns") or []
    unordered = [place for place, column in enumerate(columns) if column["kind"] == "label"]
    found = np.array(table, np.float64)
    if len(columns) == found.shape[1]:
        found[:, unordered] = np.nan
    return found


def joined_codes(sample: Samples, other: Samples) -> tuple[Any, Any]:
    """Inputs of `other` in the codes of both, and the columns of both, where both are rows of a frame.

    The labels of `sample` come first, so that its own codes stay.
    """
    ours, theirs = sample.provenance.get("columns"), other.provenance.get("columns")
    if ours is None or theirs is None or [one["name"] for one in ours] != [one["name"] for one in theirs]:
        return other.inputs, ours
    inputs, columns = np.array(other.inputs), []
    for place, (own, more) in enumerate(zip(ours, theirs, strict=True)):
        kept = set(own["labels"])
        labels = [*own["labels"], *(label for label in more["labels"] if label not in kept)]
        codes_of = {label: code for code, label in enumerate(labels)}
        columns.append({**own, "labels": labels})
        if more["labels"]:
            codes, known = inputs[..., place], ~np.isnan(inputs[..., place])
            codes[known] = np.array([codes_of[label] for label in more["labels"]])[codes[known].astype(np.int64)]
    return inputs, columns


def are_columns(value: Any) -> bool:
    """Whether these describe columns, as `Columns.described` does."""
    return isinstance(value, list) and all(
        isinstance(column, dict)
        and all(isinstance(column.get(name), kind) for name, kind in FIELDS.items())
        and all(isinstance(label, str) for label in column["labels"])
        for column in value
    )
