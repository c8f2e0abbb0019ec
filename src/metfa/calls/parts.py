"""Batches of several inputs: a tuple or dict with one array for each, and how a model is asked about them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from metfa._arrays import is_array, namespace
from metfa._base.progress import asked
from metfa.calls.answers import answered, checked_scores
from metfa.calls.behind import loaded_torch
from metfa.calls.inputs import batch_of, check_values, require_tensor

__all__ = [
    "answered_by_parts",
    "are_parts",
    "asked_scores",
    "each",
    "formed",
    "joined",
    "largest",
    "n_needed",
    "name_in_words",
    "named",
    "of_rows",
    "rows_in",
    "with_gradient",
]


def are_parts(batch: Any) -> bool:
    """Whether a batch is a tuple or dict of arrays."""
    parts = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, tuple) else ()
    return len(parts) > 0 and all(map(is_array, parts))


def named(batch: Any) -> dict[Any, Any]:
    """The arrays of a batch by name, which of a tuple is the place and of a single array None."""
    if not are_parts(batch):
        return {None: batch}
    return dict(batch) if isinstance(batch, Mapping) else dict(enumerate(batch))


def formed(parts: Mapping[Any, Any], like: Any) -> Any:
    """Arrays by name in the form of the batch `like`: of a tuple a dict by place, where some are left out."""
    if None in parts:
        return parts[None]
    return tuple(parts.values()) if isinstance(like, tuple) and len(parts) == len(like) else dict(parts)


def each(function: Callable[[Any], Any], batch: Any) -> Any:
    """The batch with each of its arrays changed."""
    return formed({name: function(part) for name, part in named(batch).items()}, batch)


def rows_in(batch: Any) -> int:
    """Number of rows of a batch that has some."""
    return len(next(iter(named(batch).values())))


def largest(batch: Any) -> Any:
    """The array of a batch whose rows have most numbers."""
    return max(named(batch).values(), key=lambda part: math.prod(part.shape[1:]))


def of_rows(batch: Any, start: int, stop: int) -> Any:
    """Some rows of a batch."""
    return each(lambda part: part[start:stop, ...], batch)


def joined(batches: Sequence[Any]) -> Any:
    """Batches of the same form one behind the other."""
    columns = [named(batch) for batch in batches]
    whole = {name: [column[name] for column in columns] for name in columns[0]}
    return formed({name: namespace(*pieces).concat(pieces, axis=0) for name, pieces in whole.items()}, batches[0])


def name_in_words(name: Any) -> str:
    """How a part is called in messages."""
    return "inputs" if name is None else f"inputs[{name!r}]"


def with_gradient(inputs: Any) -> dict[Any, Any]:
    """The parts by name that a model may have a gradient by: those of floating point.

    Raises
    ------
    TypeError, ValueError
        Unless all are tensors of numbers with as many rows, and at least one of them is of floating point and finite.
    """
    parts = named(inputs)
    for name, part in parts.items():
        require_tensor(part, name_in_words(name))
        if None in parts or part.is_floating_point():
            check_values(batch_of(part, name_in_words(name)), name_in_words(name))
    n_rows = {name: len(part) for name, part in parts.items()}
    if len(set(n_rows.values())) > 1:
        raise ValueError(f"`inputs` must have one batch axis in common, got {n_rows} rows")
    found = {name: part for name, part in parts.items() if part.is_floating_point()}
    if not found:
        raise TypeError(f"no part of `inputs` is floating point, so none has a gradient: {_listed(parts)}")
    return found


def answered_by_parts(model: Any, batch: Any) -> Any:
    """What a model returns for a batch: a tuple gives it the parts by place, a dict by name if its arguments have them.

    Raises
    ------
    TypeError, ValueError
        As `answered`, for one array. For several inputs a ValueError if the model fails, which says what came and what
        the model takes.
    """
    if not are_parts(batch):
        return answered(model, batch)
    takes = _arguments_of(model)
    try:
        if isinstance(batch, tuple):
            return model(*batch)
        return model(**batch) if _binds(takes, batch) else model(batch)
    except Exception as error:
        said = " ".join(str(error).split())
        if isinstance(error, MemoryError) or "out of memory" in said or "nference tensor" in said:
            raise
        came = _listed(named(batch))
        wants = "" if takes is None else f"it takes ({', '.join(takes.parameters)})"
        how = "given by name"
        if isinstance(batch, tuple):
            how, wants = (
                "given in this order",
                f"{wants}: give the parts in the order of its arguments" if wants else "",
            )
        about = "; ".join(filter(None, (how, wants, f"it says: {said[:300]}")))
        raise ValueError(f"the model fails on the parts {came}, {about}") from error


def asked_scores(model: Any, batch: Any) -> Any:
    """The checked scores of a batch, asked for and counted for the progress that is shown."""
    scores = checked_scores(answered_by_parts(model, batch), rows_in(batch), model)
    asked(rows_in(batch))
    return scores


def n_needed(model: Any) -> int:
    """How many inputs a model needs, at least one."""
    takes = _arguments_of(model)
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [] if takes is None else [one for one in takes.parameters.values() if one.default is one.empty]
    return max(1, sum(one.kind in by_place for one in needed))


def _listed(parts: Mapping[Any, Any]) -> str:
    return ", ".join(
        f"`{name_in_words(name)}` {tuple(part.shape)} of {str(part.dtype).rpartition('.')[2]}"
        for name, part in parts.items()
    )


def _arguments_of(model: Any) -> inspect.Signature | None:
    torch = loaded_torch()
    module = torch is not None and isinstance(model, torch.nn.Module)
    try:
        return inspect.signature(model.forward if module else model)
    except (TypeError, ValueError):
        return None


def _binds(takes: inspect.Signature | None, batch: Mapping[Any, Any]) -> bool:
    if takes is None or not all(isinstance(name, str) for name in batch):
        return False
    try:
        takes.bind(**batch)
    except TypeError:
        return False
    return True
