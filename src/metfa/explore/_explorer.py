"""The widget: the report's page in a cell, and what is chosen on it as traits."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib import resources
from typing import Any

import anywidget  # pyright: ignore[reportMissingImports]
import numpy as np
import traitlets  # pyright: ignore[reportMissingImports]

from metfa._base.percents import counted
from metfa._base.validation import positive_int
from metfa.explore._chosen import Chosen
from metfa.explore._more import More, check_more, further, round_of, seconds_each
from metfa.explore._words import AT_ANY_TIME, NO_MORE, standing
from metfa.report.writing import InNotebook, page
from metfa.results.regions import Regions
from metfa.results.rules import AfterALook
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms
from metfa.results.thresholds import resolved

__all__ = ["Explorer"]

DRAWN = "drawn after a look"  # the name of a region that a reader drew


def _read_only(kind: Any, *settings: Any, **others: Any) -> Any:
    """A trait that the page sets and Python reads."""
    return kind(*settings, read_only=True, **others)


class Explorer(anywidget.AnyWidget):
    r"""A result in a cell of a notebook: the page of a report, whose choices Python can read.

    Made by `AttributionSample.explore`. Readers move thresholds, choose alpha and a correction, and draw regions; the
    attributes follow, and ``explorer.observe(function, "threshold")`` calls a function at each change. In marimo,
    ``mo.ui.anywidget(explorer)`` makes other cells follow. Only the page sets them.

    A page is a look. If more samples are joined after it, tests and intervals for a number of samples that was fixed
    beforehand do not hold for the longer run. So then only statements that hold at any time are made, see
    `AttributionSample.any_time`: tests by e-values with no correction, "bonferroni", "e-bh" or "closed-e-bh", and wider
    intervals. Where "holm" was chosen, "bonferroni" is chosen then, and "closed-e-bh" for "bh" and "by". The page says
    this.

    Attributes
    ----------
    sample : AttributionSample
        The result that is shown, with the samples that were added.
    alpha : float
    correction : str or None
        None for no correction.
    threshold : ndarray, (batch,)
        Of each input; nan where there is none. To decide on these terms, take `terms`, which knows which of them were
        moved by hand.
    regions : Regions or None
        What was drawn on the maps, one region for each input; None while there is an input without a drawing. It was
        chosen after a look at the samples: ``explorer.sample.guarantee(explorer.regions)`` holds for such regions. Ask
        ``over`` of new samples alone, with another seed.
    """

    _esm = (resources.files("metfa.explore") / "cell.js").read_text(encoding="utf-8")
    _page = traitlets.Unicode().tag(sync=True)
    _chosen = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    _sampling = traitlets.Dict().tag(sync=True)

    sample: AttributionSample = _read_only(traitlets.Instance, AttributionSample)
    alpha: float = _read_only(traitlets.Float)
    correction: str | None = _read_only(traitlets.Unicode, None, allow_none=True)
    threshold: np.ndarray = _read_only(traitlets.Instance, np.ndarray)
    regions: Regions | None = _read_only(traitlets.Instance, Regions, allow_none=True)

    def __init__(self, sample: AttributionSample, more: More | None, settings: Mapping[str, Any]) -> None:
        if more is not None:
            check_more(more, sample)
        super().__init__()
        self._more, self._settings, self._known, self._n_shown, self._rounds = more, dict(settings), None, 0, 0
        self._alone = threading.RLock()  # JupyterLab hears its page in another thread than that of cells
        self.set_trait("sample", sample)
        self._show()
        self._follow()
        self.on_msg(self._hear)

    @property
    def terms(self) -> Terms:
        """Alpha, correction and threshold as they are chosen, for ``explorer.sample.decide(explorer.terms)``.

        A threshold that was moved by hand depends on the samples, so it is a rule here, and no number: what holds only
        for a threshold that was fixed beforehand is refused, and "e-bh" decides in place of "closed-e-bh".

        Raises
        ------
        ValueError
            If it was moved and there are several inputs: explore one of them, ``sample.of_input(0).explore()``. And for
            a correction that does not hold after `sample_more`.
        """
        moved = [number for number in self._known.moved if number is not None] if self._known else []
        if moved and len(self.sample.target) > 1:
            raise ValueError(
                f"`terms` are for all {len(self.sample.target)} inputs, and thresholds of some were moved: explore one "
                "input, `sample.of_input(0).explore()`"
            )
        if self._known is None:
            return self._terms()
        threshold = {"threshold": AfterALook(moved[0])} if moved else {}
        return self._terms(alpha=self._known.alpha, correction=self._known.correction or "none", **threshold)

    def sample_more(self, n_samples: int) -> AttributionSample:
        """Add so many samples to each input, and show them; Ctrl-C keeps the rounds that are finished.

        Parameters
        ----------
        n_samples : int
            Number of further samples.

        Returns
        -------
        AttributionSample
            All samples, also as ``explorer.sample``. They hold at any time (`AttributionSample.any_time`).

        Raises
        ------
        ValueError
            Without ``more=``.
        """
        wanted = positive_int(n_samples, "n_samples")
        with self._alone:
            until = self.sample.n_samples + wanted
            try:
                while self.sample.n_samples < until:
                    self._round(until)
            finally:
                self._show()
        return self.sample

    def __repr__(self) -> str:
        if not self.trait_has_value("threshold"):  # while it is made
            return "Explorer()"
        threshold = ", ".join(f"{number:.3g}" for number in self.threshold[:3]) + ", ..." * (len(self.threshold) > 3)
        drawn = f", {counted(len(self.regions), 'region')} drawn" if self.regions is not None else ""
        return (
            f"Explorer of {self.sample!r}: threshold {threshold}, alpha {self.alpha:g}, correction "
            f"{self.correction or 'none'}{drawn}. Its page needs a front end with JavaScript."
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if self._n_shown != self.sample.n_samples:  # a page that asked for more was closed
            self._show()
        bundle: Any = super()._repr_mimebundle_(**kwargs)
        (bundle[0] if isinstance(bundle, tuple) else bundle)["text/plain"] = repr(self)  # the whole text
        return bundle

    # The page

    def _show(self) -> None:
        """Write the page of all samples; what is chosen stays."""
        sample, more = self.sample, self._more is not None
        said = standing(sample, more=more) | {
            "n": sample.n_samples,
            "noun": sample.sample_noun,
            "anyTime": sample.any_time,
            "more": more,
            "suggested": sample.n_samples,
            "secondsEach": seconds_each(sample),
        }
        moved = ((), ()) if self._known is None else (self._known.moved, self._known.moved_of_regions)
        self._page = page(sample, notebook=InNotebook(said, *moved), **self._settings)
        self._n_shown = sample.n_samples

    @traitlets.validate("_chosen")
    def _checked(self, proposal: Any) -> Any:
        if proposal["value"] is None:
            return None
        try:
            Chosen.read(proposal["value"], self.sample)
        except (TypeError, ValueError, KeyError) as error:
            raise traitlets.TraitError(f"what the page says it shows does not fit: {error}") from error
        return _fitting(proposal["value"], self.sample)

    @traitlets.observe("_chosen", "sample")
    def _follow(self, _: Any = None) -> None:
        """Let the attributes say what is chosen."""
        if self._n_shown == 0:  # while it is made
            return
        self._known = None if self._chosen is None else Chosen.read(self._chosen, self.sample)
        chosen = self._known or self._terms()
        self.set_trait("alpha", chosen.alpha)
        self.set_trait("correction", chosen.correction)
        made = resolved(self.sample.values, self._terms(correction="none"), self.sample.unmoved)[0].reshape(-1)
        thresholds = np.array(np.broadcast_to(made, len(self.sample.target)), dtype=np.float64)
        for place, number in enumerate(self._known.moved if self._known else ()):
            thresholds[place] = thresholds[place] if number is None else number
        if not self.trait_has_value("threshold") or not np.array_equal(self.threshold, thresholds, equal_nan=True):
            self.set_trait("threshold", thresholds)
        self._follow_drawing()

    def _follow_drawing(self) -> None:
        masks = self._known.drawn if self._known else ()
        if not masks or not all(mask.any() for mask in masks):
            self.set_trait("regions", None)
            return
        shape = self.sample.feature_shape
        found = tuple(mask.reshape(1, *shape) for mask in masks)
        if self.regions is None or not all(map(np.array_equal, self.regions.masks, found)):
            self.set_trait("regions", Regions(found, names=[DRAWN]))

    def _terms(self, **others: Any) -> Terms:
        """Terms of decisions as the page begins, but for others."""
        given = {name: self._settings.get(name) for name in ("threshold", "alpha", "correction", "split")}
        return self.sample.terms(**(given | others))

    # More samples

    def _round(self, until: int) -> None:
        if self._more is None:
            raise ValueError(NO_MORE)
        grown = further(self._more, self.sample, round_of(self.sample, until - self.sample.n_samples))
        self._settings = _fitting(self._settings, grown)  # before anybody decides on the longer run
        self._chosen = None if self._chosen is None else _fitting(self._chosen, grown)
        self.set_trait("sample", grown)

    def _hear(self, _: Any, content: Any, __: Any) -> None:
        """What the page asks for: a round of further samples, or the page of all."""
        kind = content.get("kind") if isinstance(content, dict) else None
        with self._alone:
            if kind == "done":
                self._show()
            if kind == "more" and type(content.get("until")) is int and content.get("from") == self.sample.n_samples:
                self._answer(content["until"])

    def _answer(self, until: int) -> None:
        """A round, and what the page is to know of it."""
        ended = None
        try:
            self._round(until)
        except KeyboardInterrupt:
            ended = "Interrupted: the samples of finished rounds are kept."
        except Exception as error:  # the page has no other way to learn it
            ended = f"{type(error).__name__}: {error}"
        self._rounds += 1
        self._sampling = {"n": self.sample.n_samples, "round": self._rounds, "ended": ended}


def _fitting(chosen: dict[str, Any], sample: AttributionSample) -> dict[str, Any]:
    """What is chosen, with corrections that hold for these samples: at any time, if somebody looked before."""
    if not sample.any_time:
        return chosen
    names = ("correction", "correctionOfRegions")
    return chosen | {name: AT_ANY_TIME.get(chosen[name], chosen[name]) for name in names if name in chosen}
