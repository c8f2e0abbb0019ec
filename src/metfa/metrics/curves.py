"""Insertion and deletion: the class probability while the best features are shown, or hidden, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from metfa._arrays import from_host, namespace, to_host
from metfa._base.validation import MOST_CALLS, positive_int
from metfa.calls.called import Called
from metfa.calls.hidden import Baseline, Hidden, checked_attributions, checked_inputs
from metfa.metrics.scores import NOT_FINITE, Scores, divisor, faults_of, warn_of_missing
from metfa.sampling.rows import Rows
from metfa.sampling.streams import Purpose, root_entropy, stream

__all__ = ["FaithfulnessCurve", "OverallFaithfulness", "deletion", "insertion", "overall"]


@dataclass(frozen=True, eq=False, repr=False)
class FaithfulnessCurve(Scores):
    """Class probability of every input against the share of its features that are inserted, or deleted.

    Attributes
    ----------
    raw : numpy.ndarray, (batch,)
        Area below `values` by the trapezoid rule; NaN where `degenerate` gives a reason.
    clean : numpy.ndarray, (batch,)
        Class probability of the clean input.
    degenerate : tuple of (str or None), one an input
        Why an input has no score: its map is constant or not finite.
    fractions : numpy.ndarray, (points,)
        Share of the features that are inserted or deleted, 0 to 1.
    values : numpy.ndarray, (batch, points)
        Class probability at each of them. A constant map has a random order; a map that is not finite has NaN here.
    """

    fractions: np.ndarray
    values: np.ndarray

    @cached_property
    def normalised(self) -> np.ndarray:
        """Values over the clean probability, (batch, points), NaN where that is below 1e-6; `score` is their area."""
        return self.values / divisor(self.clean)[:, None]


@dataclass(frozen=True, eq=False, repr=False)
class OverallFaithfulness(Scores):
    """Insertion minus deletion; the two curves may have different baselines.

    Attributes
    ----------
    insertion, deletion : FaithfulnessCurve
        Curves of the same inputs, targets and attributions.
    """

    raw: np.ndarray = field(init=False)
    clean: np.ndarray = field(init=False)
    degenerate: tuple[str | None, ...] = field(init=False)
    insertion: FaithfulnessCurve
    deletion: FaithfulnessCurve

    def __post_init__(self) -> None:
        if not np.allclose(self.insertion.clean, self.deletion.clean, rtol=1e-4, atol=1e-6):
            raise ValueError(
                "`insertion` and `deletion` are not of the same inputs and targets: their clean scores differ"
            )
        object.__setattr__(self, "raw", self.insertion.raw - self.deletion.raw)
        object.__setattr__(self, "clean", self.insertion.clean)
        object.__setattr__(self, "degenerate", self.insertion.degenerate)


@dataclass(frozen=True)
class Walk:
    """The features of every input, from the highest score to the lowest, cut into steps."""

    counts: np.ndarray  # (points,), of the features moved at each point
    moved_at: np.ndarray  # (batch, *features), the first point at which a feature is moved
    degenerate: tuple[str | None, ...]

    @classmethod
    def along(cls, attributions: Any, steps: int, ids: tuple[str, ...], root: int) -> Walk:
        """Equal scores get a random order, which depends on the input alone and so is the same for all its maps."""
        maps = to_host(attributions)
        flat = maps.reshape(len(maps), -1)
        n_features = flat.shape[1]
        counts = np.unique(np.arange(steps + 1) * n_features // steps)  # fewer steps if there are fewer features
        moved_at = np.empty(flat.shape, dtype=np.int32)
        point_of_place = np.searchsorted(counts, np.arange(n_features), side="right")
        for row, (scores, identity) in enumerate(zip(flat, ids, strict=True)):
            at_random = stream(root, identity, 0, Purpose.TIES).permutation(n_features)
            moved_at[row, np.lexsort((at_random, -scores.astype(np.float64)))] = point_of_place
        return cls(counts, moved_at.reshape(maps.shape), faults_of(maps))


Kind = Literal["insertion", "deletion"]


def _curves(
    model: Any,
    inputs: Any,
    attributions: Any,
    target: Any,
    kinds: tuple[Kind, ...],
    baseline: Baseline,
    steps: int,
    rng: Any,
) -> list[FaithfulnessCurve]:
    """The curves asked for. Images that two curves share are given to the model once."""
    called = Called.of(model)
    positive_int(steps, "steps", maximum=MOST_CALLS)
    inputs = checked_inputs(inputs)
    attributions = checked_attributions(attributions, inputs)
    hidden = Hidden.behind(baseline, inputs)
    walk = Walk.along(attributions, steps, Rows(inputs).ids(), root_entropy(rng))
    last = len(walk.counts) - 1
    whole: dict[Kind, int] = {"insertion": last, "deletion": 0}  # points at which nothing is hidden
    asked: list[tuple[Kind, int]] = [
        (kind, point) for kind in kinds for point in range(last + 1) if point != whole[kind]
    ]
    if len(kinds) == 2:
        asked.remove(("deletion", last))  # everything is hidden, as at the start of the insertion
    with called.asked():
        targets, clean = called.target_probabilities(inputs, target)
        found = _asked_at(called, asked, hidden, walk, targets)
    warn_of_missing(walk.degenerate, clean)
    curves = []
    for kind in kinds:
        values = np.empty((len(clean), last + 1))
        values[:, [point for of, point in asked if of == kind]] = found[:, [of == kind for of, _ in asked]]
        values[:, whole[kind]] = clean
        if kind == "deletion" and len(kinds) == 2:
            values[:, last] = curves[0].values[:, 0]
        values[[fault == NOT_FINITE for fault in walk.degenerate]] = np.nan
        curves.append(_curve(values, clean, walk))
    return curves


def _curve(values: np.ndarray, clean: np.ndarray, walk: Walk) -> FaithfulnessCurve:
    fractions = walk.counts / walk.counts[-1]
    missing = [fault is not None for fault in walk.degenerate]
    area = np.where(missing, np.nan, _area(values, fractions))
    return FaithfulnessCurve(area, clean, walk.degenerate, fractions, values)


def _asked_at(
    called: Called, asked: list[tuple[Kind, int]], hidden: Hidden, walk: Walk, targets: list[Any]
) -> np.ndarray:
    """Class probabilities of every input at the points asked, (batch, len(asked))."""
    xp, like = namespace(hidden.inputs), hidden.inputs
    n = len(targets)
    moved_at = from_host(walk.moved_at, like, xp.int32)
    of_row = np.repeat(np.arange(n), len(asked))
    rows = from_host(of_row, like, xp.int64)
    points = from_host(np.tile([point for _, point in asked], n), like, xp.int32)
    deleted = from_host(np.tile([kind == "deletion" for kind, _ in asked], n), like, xp.bool)
    beside = (..., *[None] * (moved_at.ndim - 1))

    def copies(start: int, stop: int) -> Any:
        first, last = of_row[start], of_row[stop - 1]
        row = slice(first, first + 1) if first == last else rows[start:stop]  # one row is broadcast, not gathered
        moved = moved_at[row] <= points[start:stop][beside]
        return hidden.keeping(moved != deleted[start:stop][beside], row)

    return called.copies_probabilities(of_row.tolist(), like, copies, targets).reshape(n, len(asked))


def _area(values: np.ndarray, fractions: np.ndarray) -> np.ndarray:
    """Area below each curve, by the trapezoid rule."""
    return ((values[:, 1:] + values[:, :-1]) / 2 * np.diff(fractions)).sum(axis=1)


def insertion(
    model: Any,
    inputs: Any,
    attributions: Any,
    target: Any = None,
    *,
    baseline: Baseline = "black",
    steps: int = 100,
    rng: Any = 0,
) -> FaithfulnessCurve:
    r"""Show the features of each input, best first, and record how the class probability grows.

    The score is :math:`\frac{1}{f_c(I)} \int_0^1 f_c(I^{M+}_n)\, dn`, where only the share n of the features with the
    highest attributions is kept (paper, section on faithfulness metrics; Petsiuk et al. 2018, who do not divide). The
    higher, the more faithful.

    Parameters
    ----------
    model : torch.nn.Module, callable or Called
        Inputs (batch, ...) -> scores (batch, classes); a `metfa.Called` says how it is asked.
    inputs : array, (batch, ...)
        Floating point; images (batch, channels, height, width) with pixels in [0, 1].
    attributions : array, (batch, \*features)
        One score for each feature, (batch, height, width) for images: the channels of a pixel are hidden together.
    target : int, sequence or array, optional
        Class of each input; None: the predicted one.
    baseline : {"black", "mean", "blur"}, float, sequence of float, array or callable
        Values of hidden features. "black" is zero, the paper's blank image; "mean" is the mean colour of each image;
        "blur" is a Gaussian blur of 11 pixels, sigma 5 (``eclique/RISE``, ``Evaluation.ipynb``, for insertion; there
        the image is surrounded by black, here it is mirrored at its border); a number, or one for each channel (of a
        table: column); an array that broadcasts to one input; or a function of the inputs.
    steps : int
        Steps from 0 % to 100 %, both included: at step k the first :math:`\lfloor k F / steps \rfloor` of F features
        are shown. With fewer features than steps, each step shows one feature.
    rng : int or numpy.random.Generator
        Seed of the order of equal scores. The order depends on the input, not on the attributions: all maps of an input
        put equal scores in the same order.

    Returns
    -------
    FaithfulnessCurve
        `score` (batch,), `raw` (batch,) not divided by the clean probability, and the curves.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, before the model is asked; for scores that are not finite.

    Warns
    -----
    DegenerateAttributionsWarning
        For attributions that are constant (the tie rule alone would order their features) or not finite. Their score is
        NaN: they must not win.
    ModelOutputWarning
        For a clean probability below 1e-6, where the normalised score is NaN; and for scores that look like
        probabilities already.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> from metfa import metrics
    >>> def model(images):  # the class is in the upper left pixel
    ...     return np.stack([images[:, 0, 0, 0], 1 - images[:, 0, 0, 0]], axis=1)
    >>> good, bad = np.array([[[4, 3], [2, 1]]]), np.array([[[1, 2], [3, 4]]])
    >>> called = metfa.Called(model, softmax=False)
    >>> curve = metrics.insertion(called, np.ones((1, 1, 2, 2)), good, target=0)
    >>> curve.fractions, curve.values[0]
    (array([0.  , 0.25, 0.5 , 0.75, 1.  ]), array([0., 1., 1., 1., 1.]))
    >>> curve.score
    array([0.875])
    >>> metrics.insertion(called, np.ones((1, 1, 2, 2)), bad, target=0).score
    array([0.125])
    """
    return _curves(model, inputs, attributions, target, ("insertion",), baseline, steps, rng)[0]


def deletion(
    model: Any,
    inputs: Any,
    attributions: Any,
    target: Any = None,
    *,
    baseline: Baseline = "black",
    steps: int = 100,
    rng: Any = 0,
) -> FaithfulnessCurve:
    """Hide the features of each input, best first, and record how the class probability falls.

    The score is that of :func:`insertion`, but the share n of features with the highest attributions is hidden. The
    lower, the more faithful. Parameters, result, errors and warnings are those of :func:`insertion`.
    """
    return _curves(model, inputs, attributions, target, ("deletion",), baseline, steps, rng)[0]


def overall(
    model: Any,
    inputs: Any,
    attributions: Any,
    target: Any = None,
    *,
    baseline: Baseline = "black",
    steps: int = 100,
    rng: Any = 0,
) -> OverallFaithfulness:
    """Insertion minus deletion, the paper's overall score: the higher, the more faithful.

    Both curves contain the whole input and the baseline alone; the model is asked about these once. Parameters, errors
    and warnings are those of :func:`insertion`; the result holds both curves.
    """
    both = _curves(model, inputs, attributions, target, ("insertion", "deletion"), baseline, steps, rng)
    return OverallFaithfulness(*both)
