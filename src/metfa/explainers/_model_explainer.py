"""What explainers of a model have in common: the model, how it is called, and how its maps are scaled."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from metfa._arrays import is_array, is_floating, widen
from metfa._guard import loaded_torch
from metfa.explainers.heatmaps import scale_to_unit

__all__ = ["ModelExplainer", "check_images", "require_tensor"]


@dataclass(frozen=True)
class ModelExplainer:
    """Settings of every explainer here, documented by each."""

    model: Any
    scale: bool = field(default=True, kw_only=True)
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
        if not isinstance(self.scale, bool):
            raise TypeError(f"`scale` must be True or False, got {type(self.scale).__name__}: {self.scale!r}")
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

    def _finished(self, maps: Any) -> Any:
        maps = widen(maps)
        return scale_to_unit(maps) if self.scale else maps


def _mixes_rows(module: Any) -> bool:
    batch_norm = loaded_torch().nn.modules.batchnorm._BatchNorm
    return isinstance(module, batch_norm) and module.running_mean is None


def check_images(inputs: Any) -> None:
    """Raise unless `inputs` is a batch of images (batch, channels, height, width) of floating-point numbers."""
    if not is_array(inputs):
        raise TypeError(f"`inputs` must be an array of images, got {type(inputs).__name__}")
    if inputs.ndim != 4:
        raise ValueError(f"`inputs` must be images (batch, channels, height, width), got shape {tuple(inputs.shape)}")
    if 0 in inputs.shape:
        raise ValueError(f"`inputs` has no rows or no pixels: shape {tuple(inputs.shape)}")
    if not is_floating(inputs):
        raise TypeError(
            f"`inputs` must be floating point, got {inputs.dtype}: scale 8-bit images by `images / 255` first"
        )


def require_tensor(inputs: Any) -> None:
    """Raise unless `inputs` is a torch tensor, which explainers by gradients and layers need."""
    torch = loaded_torch()
    if torch is None or not isinstance(inputs, torch.Tensor):
        raise TypeError(f"`inputs` must be a torch.Tensor, got {type(inputs).__name__}")
