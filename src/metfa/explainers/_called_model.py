"""A model as explainers and metrics call it: in which precision, in which layout."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from metfa._guard import loaded_torch

__all__ = ["CalledModel"]


@dataclass(frozen=True)
class CalledModel:
    """A model, and how it is called; the settings are documented by each class or function that offers them."""

    model: Any
    autocast: Any = field(default=None, kw_only=True)
    memory_format: Any = field(default=None, kw_only=True)

    @property
    def rows_independent(self) -> bool:
        """Whether rows cannot depend on each other: true of a module in evaluation mode, unknown of a function."""
        torch = loaded_torch()
        known = torch is not None and isinstance(self.model, torch.nn.Module)
        return known and not any(map(_mixes_rows, self.model.modules()))

    def __post_init__(self) -> None:
        if not callable(self.model):
            raise TypeError(f"`model` must be a module or a function inputs -> scores, got {type(self.model).__name__}")
        torch = loaded_torch()
        for name in ("autocast", "memory_format"):
            value, kind = getattr(self, name), "dtype" if name == "autocast" else "memory_format"
            if value is not None and not (torch is not None and isinstance(value, getattr(torch, kind))):
                raise TypeError(f"`{name}` must be a torch.{kind} or None, got {type(value).__name__}: {value!r}")

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


def _mixes_rows(module: Any) -> bool:
    batch_norm = loaded_torch().nn.modules.batchnorm._BatchNorm
    return isinstance(module, batch_norm) and module.running_mean is None
