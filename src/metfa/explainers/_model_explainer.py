"""What explainers of a model have in common: the model, how it is called, and how its maps are scaled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from metfa._arrays import first_not_finite, widen
from metfa.calls.called import CalledModel
from metfa.explainers.heatmaps import scale_to_unit

__all__ = ["ModelExplainer"]


@dataclass(frozen=True)
class ModelExplainer(CalledModel):
    """Settings of every explainer here, documented by each."""

    scale: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.scale, bool):
            raise TypeError(f"`scale` must be True or False, got {type(self.scale).__name__}: {self.scale!r}")

    def _finished(self, maps: Any) -> Any:
        maps = widen(maps)
        bad = first_not_finite(maps)
        if bad is not None:
            raise ValueError(
                f"the map of input {bad} is not finite: the input or the model's scores hold NaN or infinity"
            )
        return scale_to_unit(maps) if self.scale else maps
