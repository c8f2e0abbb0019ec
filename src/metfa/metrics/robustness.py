"""Robust forms of the metrics: the explanation of the clean input, scored on noisy inputs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from metfa._arrays import as_array, copied, is_array, to_host
from metfa._base.provenance import describe
from metfa._base.validation import MOST_CALLS, check_function, is_text, keep, positive_int
from metfa.calls.called import Called
from metfa.calls.guard import model_in_evaluation
from metfa.calls.hidden import detached
from metfa.calls.targets import row_targets
from metfa.metrics.scores import Scores, divisor
from metfa.sampling.protocol import predict_scores
from metfa.sampling.rows import Rows
from metfa.sampling.streams import Purpose, root_entropy, streams

__all__ = ["RobustScore", "robust"]

TEXTS_IN_A_CALL = 256


@dataclass(frozen=True, eq=False, repr=False)
class RobustScore(Scores):
    """A metric of every input under noise.

    The paper's RI, RD and RO are means of ratios. The few noisy inputs whose clean score is tiny dominate such a mean:
    with normal noise of 0.1, the mean of 1 / f was ten times 1 over the mean of f. So `score` is the ratio of means,
    and `mean_of_ratios` is the paper's form.

    Attributes
    ----------
    raw : numpy.ndarray, (batch,)
        Mean over the draws.
    clean : numpy.ndarray, (batch,)
        Mean over the draws of the model's score of the noisy input; `score` is raw over clean.
    degenerate : tuple of (str or None), one an input
        Why the attributions of an input have no score.
    raws, cleans : numpy.ndarray, (draws, batch)
        Both numbers for every draw.
    draws : tuple
        What the metric returned for every draw.
    """

    raws: np.ndarray
    cleans: np.ndarray
    draws: tuple[Any, ...]

    @classmethod
    def of(cls, draws: Sequence[Any]) -> RobustScore:
        """From the metric's results for every draw: their `raw` and `clean`, or `score`, or the results themselves."""
        return cls._of(draws, [_figures_of(draw) for draw in draws])

    @classmethod
    def _of(cls, draws: Sequence[Any], figures: Sequence[tuple[np.ndarray, np.ndarray]]) -> RobustScore:
        raws, cleans = map(np.stack, zip(*figures, strict=True))
        reasons = zip(*(getattr(draw, "degenerate", (None,) * raws.shape[1]) for draw in draws), strict=True)
        degenerate = tuple(next((reason for reason in of_draws if reason), None) for of_draws in reasons)
        return cls(raws.mean(axis=0), cleans.mean(axis=0), degenerate, raws, cleans, tuple(draws))

    @cached_property
    def ratios(self) -> np.ndarray:
        """Score of every draw, (draws, batch): NaN where the noisy input's own score is below 1e-6."""
        return self.raws / divisor(self.cleans)

    @property
    def mean_of_ratios(self) -> np.ndarray:
        """The paper's form, (batch,): the mean over the draws that have a ratio; NaN where none has."""
        known = ~np.isnan(self.ratios)
        return np.where(known, self.ratios, 0).sum(axis=0) / np.where(known.any(axis=0), known.sum(axis=0), np.nan)

    @property
    def median_of_ratios(self) -> np.ndarray:
        """Median over the draws that have a ratio, (batch,); NaN where none has."""
        medians = [
            np.median(ratios[~np.isnan(ratios)]) if not np.isnan(ratios).all() else np.nan for ratios in self.ratios.T
        ]
        return np.array(medians)


@dataclass(frozen=True)
class robust:  # noqa: N801 - read as a function
    r"""Robust form of a metric: its mean over noisy copies of the input, with the clean input's attributions.

    ``robust(insertion, noise=...)`` is the paper's RI, `deletion` gives RD, and `overall` RO (paper, section on robust
    faithfulness). For texts, under `metfa.text.Synonyms`, `metfa.text.fdt`, `st` and `fat` give RFDT, RST and RFAT. A
    draw depends on the seed, the input and its number only. So this object scores all maps of an input on the same
    noisy copies.

    Parameters
    ----------
    metric : callable
        ``metric(model, inputs, attributions, target, **settings)`` -> an object with `score` (batch,), or an array
        (batch,): one of `metfa.metrics`, or your own. If the object has `raw` and `clean` too, the mean of each is
        taken. Metrics of a sample, such as `mstd`, are under noise already.
    noise : callable
        ``f(x, rng) -> x`` for one input on the host: the paper's outer noise :math:`O_n`.
    n_outer : int
        Number of draws; 10 in the paper.
    rng : int, numpy.random.Generator or None
        Seed. None: fresh, but the same for all calls of this object.

    Warns
    -----
    MetfaWarning
        All warnings of the metric, each once per call instead of once per draw.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> from metfa import metrics
    >>> def model(images):
    ...     return np.stack([images[:, 0, 0, 0], 1 - images[:, 0, 0, 0]], axis=1)
    >>> robust_insertion = metrics.robust(metrics.insertion, noise=metfa.noise.Uniform(0.1, bounds=(0, 1)), rng=0)
    >>> maps = np.array([[[4, 3], [2, 1]]])
    >>> result = robust_insertion(metfa.Called(model, softmax=False), np.ones((1, 1, 2, 2)), maps, target=0)
    >>> result.score, result.raw.shape, result.raws.shape
    (array([0.875]), (1,), (10, 1))
    """

    metric: Callable[..., Any]
    noise: Callable[..., Any] = field(kw_only=True)
    n_outer: int = field(default=10, kw_only=True)
    rng: Any = field(default=None, kw_only=True, repr=False)
    root: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not callable(self.metric):
            raise TypeError(f"`metric` must be callable, got {type(self.metric).__name__}")
        _check_takes_maps(self.metric)
        check_function(self.noise, "noise", "noise(x, rng)", None, None)
        keep(self, n_outer=positive_int(self.n_outer, "n_outer", maximum=MOST_CALLS))
        object.__setattr__(self, "root", root_entropy(self.rng))

    def __call__(self, model: Any, inputs: Any, attributions: Any, target: Any = None, **settings: Any) -> RobustScore:
        r"""The metric of a batch under noise.

        Parameters
        ----------
        model : torch.nn.Module, callable or Called
            Inputs (batch, ...) -> scores (batch, classes), as the metric takes it.
        inputs : array, (batch, ...), or list of texts
            Clean inputs.
        attributions : array, (batch, \*features), or one array a text
            Attributions of the clean inputs.
        target : int, sequence or array, optional
            Class of each input; None: the class predicted on the clean input, the same for all draws.
        **settings
            Settings of the metric, such as `steps`.

        Returns
        -------
        RobustScore
        """
        inputs = inputs if _are_texts(inputs) else detached(as_array(inputs, "inputs"))
        rows, draws, figures = Rows(inputs), [], []
        with _each_warning_once():
            if target is None:
                target = _predicted(Called.of(model), inputs)
            for draw in range(self.n_outer):
                found = self.metric(model, self._noisy(rows, draw), _own(attributions), target, **settings)
                _check_found(found, len(rows))
                draws.append(found)
                figures.append(_figures_of(found))  # it may write the next ones to the same place
        return RobustScore._of(draws, figures)

    def _noisy(self, rows: Rows, draw: int) -> Any:
        rngs = streams([(self.root, identity, draw) for identity in rows.ids()], Purpose.OUTER)
        every = range(len(rows))
        return rows.batch(rows.noisy(every, self.noise, rngs, [f"input {row}, draw {draw}" for row in every]))

    def __repr__(self) -> str:
        return f"robust({describe(self.metric)}, noise={self.noise!r}, n_outer={self.n_outer})"


def _predicted(called: Called, inputs: Any) -> list[Any] | None:
    """Targets of the clean inputs, with the model asked as the metric asks it; None for one score a row."""
    if not _are_texts(inputs):
        targets = called.target_probabilities(inputs, None)[0]
        return None if all(target is None for target in targets) else targets
    size, model = called.batch_size or TEXTS_IN_A_CALL, called.model
    with model_in_evaluation(model):
        parts = [predict_scores(model, deepcopy(inputs[k : k + size]), "model") for k in range(0, len(inputs), size)]
    scores = np.concatenate(parts)
    return None if scores.ndim == 1 else row_targets(None, scores, len(inputs))


def _check_takes_maps(metric: Callable[..., Any]) -> None:
    """Raise if `metric` cannot take the arguments of a metric of a map; metrics of a sample cannot."""
    try:
        signature = inspect.signature(metric)
    except (TypeError, ValueError):
        return
    try:
        signature.bind_partial("model", "inputs", "attributions", "target")
    except TypeError:
        raise TypeError(
            "`metric` must take (model, inputs, attributions, target), got "
            f"{describe(metric)}({', '.join(signature.parameters)}): a metric of a sample is under noise already, call "
            "it on `metfa.explain(explainer, inputs, target, noise=..., n_samples=10)`"
        ) from None


@contextmanager
def _each_warning_once() -> Iterator[None]:
    """Give the warnings of all draws at the end, equal ones once."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:  # also the warnings before an error
        for one in {(one.category, str(one.message)): one for one in caught}.values():
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno, source=one.source)


def _check_found(found: Any, n_inputs: int) -> None:
    """Raise unless a metric returned one number for each input, and if it has clean scores, one of these too."""
    for name, values in (("number", _raw(found)), ("clean score", _clean(found, n_inputs))):
        if values.shape != (n_inputs,):
            got = f"{len(values)}" if values.ndim == 1 else f"an array of shape {values.shape}"
            raise ValueError(f"`metric` must return one {name} for each of the {n_inputs} inputs, got {got}")


def _own(maps: Any) -> Any:
    """Maps for a metric that may write to them."""
    if isinstance(maps, list):
        return list(map(_own, maps))
    return copied(maps) if is_array(maps) else maps


def _figures_of(found: Any) -> tuple[np.ndarray, np.ndarray]:
    """Copies of the numbers of a metric's result, and of its clean scores."""
    raw = np.array(_raw(found))
    return raw, np.array(_clean(found, len(raw)))


def _raw(found: Any) -> np.ndarray:
    return _figures(found.raw if hasattr(found, "raw") else getattr(found, "score", found))


def _clean(found: Any, n_inputs: int) -> np.ndarray:
    return _figures(getattr(found, "clean", np.ones(n_inputs)))


def _figures(values: Any) -> np.ndarray:
    """A metric's result as an array (batch,); a single number, in any form, is that of one input."""
    try:
        host = to_host(as_array(values))
    except (TypeError, ValueError):
        host = None
    if host is None or host.dtype.kind not in "fiub":
        kind = type(values).__name__ if host is None else f"an array of {host.dtype}"
        raise TypeError(
            f"`metric` must return an array with one number for each input, or an object with `score`, got {kind}"
        )
    return host.reshape(1) if host.size == 1 else host


def _are_texts(inputs: Any) -> bool:
    return isinstance(inputs, list) and bool(inputs) and is_text(inputs[0])
