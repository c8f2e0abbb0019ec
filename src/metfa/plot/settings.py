"""What figures take and return, for type checkers and editors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from typing_extensions import TypeVar

    OnAxes = TypeVar("OnAxes", bound=Axes | Figure, default=Figure)  # what is given and returned, else a new figure
    InFigure = TypeVar("InFigure", bound=Figure | SubFigure, default=Figure)

    from metfa.plot.kinds import Kind
    from metfa.results.sample import AttributionSample

__all__ = ["CommonSettings", "PartsSettings", "PlotSettings"]


class CommonSettings(TypedDict, total=False):
    """Arguments of all figures of results."""

    title: str | None
    threshold: Any
    alpha: float | None
    correction: str | None
    split: int | None
    confidence_level: float
    palette: str
    flips_from: float


class PlotSettings(CommonSettings, total=False):
    """Arguments of the figures of a sample; those after `index` are of some figures alone."""

    index: int
    picture: Any
    pixels: AttributionSample | None
    feature_names: Sequence[str] | None
    max_features: int
    delta: float | None


class PartsSettings(CommonSettings, total=False):
    """Arguments of the figure of a result of several inputs."""

    index: int
    kind: Mapping[str | int, Kind] | None
