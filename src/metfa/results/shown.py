"""How a result is shown: as a figure, as a page, and in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from metfa.results.exported import Exported

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from typing_extensions import Unpack

    from metfa.explore import Explorer
    from metfa.plot.settings import PlotSettings
    from metfa.report.settings import PageSettings, ReportSettings
    from metfa.results.sample import AttributionSample

__all__ = ["Shown"]


@dataclass(frozen=True, repr=False, eq=False)
class Shown(Exported):
    """The views of an `AttributionSample`."""

    def report(self, path: str | Path, **settings: Unpack[ReportSettings]) -> Path:
        """Write one HTML file that shows the samples and lets readers try settings.

        `settings` are the arguments of `metfa.report.write`: title, regions, threshold, alpha, correction, split,
        confidence_level, flips_from, kind, overwrite.
        """
        from metfa.report import write

        return write(path, cast("AttributionSample", self), **settings)

    def explore(
        self,
        other: AttributionSample | None = None,
        *,
        more: Callable[..., AttributionSample] | None = None,
        **settings: Unpack[PageSettings],
    ) -> Explorer:
        """The page of `report` in a cell of a notebook, whose choices Python can read.

        It needs anywidget: ``pip install "metfa[notebook]"``. It is shown by JupyterLab, Jupyter Notebook, VS Code,
        Colab and marimo.

        Parameters
        ----------
        other : AttributionSample, optional
            A second result of the same copies: the page shows the differences, see `metfa.compare`.
        more : callable, optional
            What goes on sampling, called as ``more(n_samples=..., rng=..., run=...)``: the call that made this result,
            without these three, such as ``partial(metfa.explain, explainer, inputs, noise=noise)``. With it the page
            has a button, and `Explorer.sample_more` works. The samples are joined after a look, so only statements
            that hold at any time stand then; see `Explorer`.
        settings
            Of `metfa.report.write`: regions, threshold, alpha, correction, split, confidence_level, flips_from, kind.

        Returns
        -------
        Explorer
            A widget, to be shown as the last line of a cell.

        Raises
        ------
        ModuleNotFoundError
            Without anywidget; it says what to install.
        TypeError, ValueError
            For bad arguments, before anything is shown.
        """
        from metfa.explore import explored

        return explored(cast("AttributionSample", self), other, more=more, **settings)

    @overload
    def plot(self, *, kind: Any = None, ax: Axes, **settings: Unpack[PlotSettings]) -> Axes: ...

    @overload
    def plot(self, *, kind: Any = None, fig: SubFigure, **settings: Unpack[PlotSettings]) -> SubFigure: ...

    @overload
    def plot(self, *, kind: Any = None, fig: Figure | None = None, **settings: Unpack[PlotSettings]) -> Figure: ...

    def plot(self, *, kind: Any = None, **settings: Any) -> Any:
        """Draw maps, regions or bars, with the function that `metfa.plot.drawing_of` finds for it and for `kind`.

        `settings` are its arguments. All figures have index, title, threshold, alpha, correction, split,
        confidence_level, palette and flips_from. Maps of images have picture, those of regions also pixels, bars
        feature_names and max_features, comparisons delta. Bars draw into `ax`, all others, which have several panels,
        into `fig`, a figure or subfigure: what is given is returned.
        """
        from metfa.plot import drawing_of

        sample = cast("AttributionSample", self)
        return drawing_of(sample, kind, settings)(sample, **settings)

    def _repr_html_(self) -> str:
        from metfa.plot import notebook_html

        return notebook_html(cast("AttributionSample", self))
