"""A model as explainers and metrics call it: in which precision, in which layout."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from metfa._arrays import is_array, is_floating, namespace, to_host
from metfa._base.warnings import RowDependenceWarning, warn
from metfa.calls.guard import loaded_torch, normalises_by_batch

__all__ = ["CalledModel", "answered", "checked_scores"]


@dataclass(frozen=True)
class CalledModel:
    """A model, and how it is called; the settings are documented by each class or function that offers them."""

    model: Any
    autocast: Any = field(default=None, kw_only=True)
    memory_format: Any = field(default=None, kw_only=True)

    @property
    def rows_independent(self) -> bool:
        """Whether rows cannot depend on each other: true of a module in evaluation mode, unknown of a function.

        A module that calls something else, such as a function, says so of itself.
        """
        torch = loaded_torch()
        known = torch is not None and isinstance(self.model, torch.nn.Module)
        return known and getattr(self.model, "rows_independent", True) and not normalises_by_batch(self.model)

    def __post_init__(self) -> None:
        if not callable(self.model):
            raise TypeError(f"`model` must be a module or a function inputs -> scores, got {type(self.model).__name__}")
        torch = loaded_torch()
        for name in ("autocast", "memory_format"):
            value, kind = getattr(self, name), "dtype" if name == "autocast" else "memory_format"
            if value is not None and not (torch is not None and isinstance(value, getattr(torch, kind))):
                raise TypeError(f"`{name}` must be a torch.{kind} or None, got {type(value).__name__}: {value!r}")
        if normalises_by_batch(self.model):
            warn(
                "the model normalises each batch by its own mean and variance (batch normalisation without running "
                "statistics), so that a row's scores depend on the other rows, and maps on `batch_size`",
                RowDependenceWarning,
            )

    def _precision(self, batch: Any) -> Any:
        """Context in which the model is called."""
        if self.autocast is None:
            return nullcontext()
        return loaded_torch().autocast(batch.device.type, dtype=self.autocast)

    def _laid_out(self, batch: Any) -> Any:
        """The batch in the memory format asked for; the model itself is never converted."""
        if self.memory_format is None or batch.ndim not in (4, 5):
            return batch
        return batch.contiguous(memory_format=self.memory_format)

    def _called(self, batch: Any) -> Any:
        """The model's scores of a batch, as it gives them."""
        torch = loaded_torch()
        if torch is not None and isinstance(self.model, torch.nn.Module) and not isinstance(batch, torch.Tensor):
            raise TypeError(
                f"`inputs` must be a torch.Tensor for a torch model, got {type(batch).__name__}: write "
                "`torch.from_numpy(inputs)`"
            )
        with self._precision(batch):
            return checked_scores(answered(self.model, self._laid_out(batch)), len(batch))


def answered(model: Any, batch: Any) -> Any:
    """What the model returns for a batch; a TypeError where its weights differ in dtype and torch refuses the batch."""
    try:
        return model(batch)
    except RuntimeError as error:
        weights = next((weight.dtype for weight in getattr(model, "parameters", list)() if is_floating(weight)), None)
        if weights is None or weights == batch.dtype or "type" not in str(error):
            raise
        raise TypeError(
            f"`inputs` are {batch.dtype}, but the model's weights {weights}, and torch does not mix them ({error}): "
            f"write `inputs.to({weights})` or `model.to({batch.dtype})`"
        ) from error


def checked_scores(scores: Any, n_rows: int) -> Any:
    """What a model returned, if it is an array with one row of scores an input; raises otherwise."""
    if not is_array(scores):
        part = "[0]" if isinstance(scores, tuple | list) else ""
        if isinstance(scores, Mapping) and scores:
            part = f"[{'logits' if 'logits' in scores else next(iter(scores))!r}]"
        hint = f": wrap it so that it gives them alone, as in `lambda inputs: model(inputs){part}`" if part else ""
        raise TypeError(f"`model` must return an array of scores (batch, classes), got {type(scores).__name__}{hint}")
    if scores.ndim < 1 or scores.shape[0] != n_rows:
        raise ValueError(
            f"`model` must return one row of scores an input, got shape {tuple(scores.shape)} for {n_rows} inputs"
        )
    bad = _first_nan(scores)
    if bad is not None:
        raise ValueError(f"the model's scores are NaN for row {bad} of {n_rows}")
    return scores


def _first_nan(scores: Any) -> int | None:
    host = (
        to_host(namespace(scores).isnan(scores)).reshape(len(scores), -1).any(axis=1) if is_floating(scores) else None
    )
    return None if host is None or not host.any() else int(host.argmax())
