"""LIME: a linear model fitted to the class probability, whose inputs say which segments of the input are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from metfa._arrays import from_host, namespace, to_host, widen
from metfa._base.percents import rows_of_one_call
from metfa._base.validation import MOST_CALLS, check_flag, check_number, keep, positive_int
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.calls.answers import one_score
from metfa.calls.baseline import baseline_like, check_baseline
from metfa.calls.held import asks_a_model, hold, model_itself
from metfa.calls.inputs import check_spatial
from metfa.calls.targets import target_indices
from metfa.explainers._segments import check_segmentation, check_several, segments_of
from metfa.explainers.heatmaps import scale_to_unit
from metfa.explainers.linear_fits import warn_of_penalty, weighted_ridge
from metfa.sampling.randomised import row_generators

__all__ = ["LIME", "Surrogate"]


@dataclass(frozen=True, eq=False)
class Surrogate:
    """The linear model that LIME fitted around one input.

    Parameters
    ----------
    labels : ndarray of int, such as (height, width)
        Segment of each pixel, step or voxel, from 0 on.
    coefficients : ndarray, (n_segments,)
        How much the class probability rises if a segment is shown. All are exactly 0 if the probability is the same, to
        rounding, whatever is shown; NaN if the model returned NaN.
    intercept : float
        Probability with all segments hidden, by the linear model.
    r2 : float
        Weighted coefficient of determination of the fit, at most 1; 0 where the probability does not vary.
    kept : float
        Share of the coefficients that the ridge penalty leaves (effective degrees of freedom over n_segments).
    """

    labels: np.ndarray
    coefficients: np.ndarray
    intercept: float
    r2: float
    kept: float = 1.0

    @property
    def weights(self) -> np.ndarray:
        """Coefficient of each pixel's segment, in the shape of the labels."""
        return self.coefficients[self.labels]

    def strongest(self, n_segments: int) -> np.ndarray:
        """1 on the `n_segments` segments with the largest positive coefficients, 0 elsewhere.

        Among equal coefficients, the segment with the smaller label comes first.
        """
        order = np.argsort(-self.coefficients, kind="stable")[:n_segments]
        chosen = np.where(np.isfinite(self.coefficients), 0.0, np.nan)
        chosen[order[self.coefficients[order] > 0]] = 1
        return chosen[self.labels]


@asks_a_model
@dataclass(frozen=True)
class LIME:
    r"""Local linear surrogate over segments (Ribeiro et al. 2016): which superpixels raise the class probability?

    The input is cut into segments; copies of it hide each segment with probability ½; a ridge regression of the class
    probability on what is shown, weighted by closeness to the input, gives each segment its coefficient. Segmentation,
    weights and regression are those of ``marcotcr/lime`` 0.2.0.1 (``lime_image.py``, ``lime_base.py``).

    Parameters
    ----------
    called : torch.nn.Module, callable or Called
        Model, or a `metfa.Called` that says how it is asked: images (batch, channels, height, width), series (batch,
        channels, length) or volumes (batch, channels, depth, height, width) -> scores (batch, classes). Any function of
        arrays will do.
    n_perturbations : int
        Copies of each input; the first hides nothing. 1000 in the lime package and the MeTFA paper.
    segmentation : {"auto", "quickshift", "slic"}, Blocks, array or callable
        "quickshift" with kernel size 4, maximal distance 200 and ratio 0.2 (the lime package's), for images; "slic"
        with scikit-image's defaults and a blur of one pixel, for images and volumes; `Blocks`, windows of equal length
        or rectangles or cuboids of equal size; integer labels, such as (height, width), for all inputs; or a function
        from an input with channels last, such as (height, width, channels), a float64 NumPy array, to labels.
        "quickshift" and "slic" need scikit-image and values in [0, 1]; with three channels or one they work in Lab
        colours, otherwise on the values as they are. "auto" is "quickshift" for images, ``Blocks(40)`` for series and
        ``Blocks(5)`` for volumes.
    n_segments_shown : int or None
        The map is 1 on this many segments, with the largest positive coefficients (on fewer if fewer are positive),
        and 0 elsewhere (5 in the MeTFA paper and in the lime package's ``get_image_and_mask``). None: the coefficient
        of each pixel's segment.
    hide : "mean", float or sequence of float
        What hides a segment: its own mean in each channel (the lime package's default), or a value in the units of the
        inputs, one number or one for each channel; 0 is black. The MeTFA paper's code hides with 0 in *normalised*
        images, which is the training mean: write ``hide=(0.485, 0.456, 0.406)`` for the usual ImageNet networks.
    kernel_width : float
        Width w of the closeness :math:`\sqrt{\exp(-d^2 / w^2)}`, d the cosine distance of what is shown.
    regularization : float
        Ridge penalty on the coefficients, 1 in the lime package; the intercept is free.
    rng : int, numpy.random.Generator or None
        Seed of direct calls without `rngs`; `metfa.explain` passes its own generators. Segmentation and perturbations
        draw from it.
    scale : bool
        With ``n_segments_shown=None``: True sets negative coefficients to 0 and scales each map to [0, 1], False
        returns the coefficients with their signs. Maps of zeros and ones stay as they are.

    Notes
    -----
    Copies are made on the model's device, a batch at a time. So each perturbation needs memory for a few numbers per
    segment, not for an input. Segments are found on the host, anew for each row. So noise moves them too, and part of
    LIME's instability comes from them. Labels of your own keep them fixed.

    All segments enter the regression, as in the lime package, which keeps up to 100,000 features.

    An input that is a single segment is refused: one segment says nothing about its parts.

    Warnings name inputs whose score no perturbation changes, fits of which the ridge penalty takes more than half, and
    fits that are no better than luck: R² is not above n_segments / (n_perturbations - 1), so the adjusted R² is not
    positive. Scores that have nothing to do with the segments reach that R² on average, so such coefficients are noise.
    `fit` gives the segments, the coefficients and R² of each row.

    One thing differs from the lime package. The ridge penalty draws segments that count for nothing towards those that
    do, by about 1e-4 of their score with 1000 copies. That is always to the same side, so many runs would call it
    significant. A coefficient that least squares give the other sign, or nothing but rounding, is 0 here.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> from metfa.explainers import LIME
    >>> def model(images):  # probabilities of two classes, by the brightness of the upper left quarter
    ...     bright = images[:, 0, :8, :8].mean(axis=(1, 2))
    ...     return np.stack([bright, 1 - bright], axis=1)
    >>> quarters = np.kron([[0, 1], [2, 3]], np.ones((8, 8), dtype=int))
    >>> called = metfa.Called(model, softmax=False)
    >>> explainer = LIME(called, segmentation=quarters, hide=0, n_segments_shown=1, rng=0)
    >>> maps, scores = explainer(np.ones((1, 1, 16, 16)), target=0)
    >>> maps[0, ::8, ::8]
    array([[1., 0.],
           [0., 0.]])
    """

    called: Any
    n_perturbations: int = field(default=1000, kw_only=True)
    segmentation: Any = field(default="auto", kw_only=True)
    n_segments_shown: int | None = field(default=5, kw_only=True)
    hide: str | float | Sequence[float] = field(default="mean", kw_only=True)
    kernel_width: float = field(default=0.25, kw_only=True)
    regularization: float = field(default=1.0, kw_only=True)
    scale: bool = field(default=True, kw_only=True)
    rng: Any = field(default=None, kw_only=True, repr=False)

    model: ClassVar[property] = model_itself
    rows_independent = True  # for any model: no pass holds two rows
    n_forwards: ClassVar[property] = property(attrgetter("n_perturbations"))  # see `metfa.sampling.progress`
    forwards = "perturbations"

    def __post_init__(self) -> None:
        hold(self)
        keep(self, scale=check_flag(self.scale, "scale"))
        keep(self, n_perturbations=positive_int(self.n_perturbations, "n_perturbations", minimum=2, maximum=MOST_CALLS))
        check_segmentation(self.segmentation)
        if self.n_segments_shown is not None:
            keep(self, n_segments_shown=positive_int(self.n_segments_shown, "n_segments_shown"))
        if isinstance(self.hide, str):
            if self.hide != "mean":
                raise ValueError(f"`hide` must be 'mean', a number or one number a channel, got {self.hide!r}")
        else:
            check_baseline(self.hide, "hide")
        keep(self, kernel_width=check_number(self.kernel_width, "kernel_width", above=0))
        keep(self, regularization=check_number(self.regularization, "regularization", above=0))

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Any = None) -> tuple[Any, Any]:
        r"""Maps and scores of a batch.

        Parameters
        ----------
        inputs : array, (batch, channels, \*axes)
            Floating point.
        target : int, sequence or array, optional
            Class of each row; None: the predicted one.
        rngs : list of numpy.random.Generator, optional
            One generator for each row.

        Returns
        -------
        maps : array, (batch, \*axes)
            float32 (or wider).
        scores : array, (batch, classes)
            The model's scores of the inputs themselves.
        """
        surrogates, scores = self.fit(inputs, target, rngs=rngs)
        if self.n_segments_shown is not None:
            maps = np.stack([surrogate.strongest(self.n_segments_shown) for surrogate in surrogates])
        else:
            maps = np.stack([surrogate.weights for surrogate in surrogates])
            maps = scale_to_unit(np.clip(maps, 0, None)) if self.scale else maps
        return from_host(maps, like=widen(inputs[:, 0])), scores

    def fit(self, inputs: Any, target: Any = None, *, rngs: Any = None) -> tuple[list[Surrogate], Any]:
        """The linear model of each row, and the model's scores of the inputs themselves.

        Parameters
        ----------
        inputs, target, rngs
            As for a call.

        Returns
        -------
        surrogates : list of Surrogate
            One for each row: its segments, coefficients, intercept and R².
        scores : array, (batch, classes)
        """
        check_spatial(inputs, self.model)
        generators = row_generators(inputs, rngs, self.rng)
        if self.hide != "mean":
            baseline_like(self.hide, inputs, "hide")
        segments = segments_of(to_host(inputs), self.segmentation, generators)
        check_several(segments)
        with self.called.asked():
            scores = self.called.scores(inputs)
            targets = self.called.targets(target, scores)
            target_indices(targets)  # raises for masks
            surrogates = [
                self._surrogate(inputs[row : row + 1], labels, entry, rng)
                for row, (labels, entry, rng) in enumerate(zip(segments, targets, generators, strict=True))
            ]
        same = sum(
            not fit.coefficients.any() and self._hides_nothing(inputs[row : row + 1], fit.labels)
            for row, fit in enumerate(surrogates)
        )
        self._warn_of_noise(surrogates, same)
        return surrogates, scores

    def _hides_nothing(self, image: Any, labels: np.ndarray) -> bool:
        """Whether a segment that is hidden looks as before, as one of one pixel does behind its mean."""
        return bool(namespace(image).all(self._hidden(image, labels) == image))

    def _surrogate(self, image: Any, labels: np.ndarray, target: Any, rng: np.random.Generator) -> Surrogate:
        xp = namespace(image)
        shown = rng.integers(0, 2, (self.n_perturbations, labels.max() + 1), dtype=bool)
        shown[0] = True
        hidden = self.called.laid_out(self._hidden(image, labels))
        original = self.called.laid_out(image)
        shown_there = from_host(shown, image, xp.bool)
        pixels = from_host(labels.ravel(), image, xp.int32)
        answers = []

        def ask(start: int, stop: int) -> None:
            kept = xp.take(shown_there[start:stop], pixels, axis=1)
            copies = xp.where(xp.reshape(kept, (stop - start, 1, *labels.shape)), original, hidden)
            answers.append(to_host(one_score(self.called.as_probabilities(widen(self.called(copies))), target)))

        self.called.in_batches(self.n_perturbations, image, ask)
        distances = 1 - np.sqrt(shown.mean(axis=1))  # cosine distance of zeros and ones to all ones
        closeness = np.exp(-((distances / self.kernel_width) ** 2) / 2)
        return Surrogate(labels, *weighted_ridge(shown, np.concatenate(answers), closeness, self.regularization))

    def _warn_of_noise(self, surrogates: list[Surrogate], n_same: int) -> None:
        """Warn of fits that say little; `n_same` are 0 because a hidden segment looks as before."""
        n, copies = len(surrogates), self.n_perturbations
        n_flat = sum(not fit.coefficients.any() for fit in surrogates) - n_same
        if n_same:
            warn(
                f"LIME's coefficients are all 0 for {rows_of_one_call(n_same, n)}: with `hide`={self.hide!r} a hidden "
                "segment looks as before: take another `hide`, such as a number, or larger segments",
                DegenerateAttributionsWarning,
            )
        if n_flat:
            warn(
                f"LIME's coefficients are all 0 for {rows_of_one_call(n_flat, n)}: the class has the same score in "
                f"each of {copies} copies that is close enough to count",
                DegenerateAttributionsWarning,
            )
        warn_of_penalty(surrogates, self.regularization, copies)
        poor = [fit for fit in surrogates if fit.coefficients.any() and fit.r2 * (copies - 1) <= len(fit.coefficients)]
        if poor:
            worst = min(poor, key=lambda fit: fit.r2)
            warn(
                f"LIME's linear model explains no more of the scores of {rows_of_one_call(len(poor), n)} than of "
                f"unrelated scores (R² {worst.r2:.2f} with {len(worst.coefficients)} segments and {copies} copies): "
                "take more `n_perturbations`, or fewer segments",
                DegenerateAttributionsWarning,
            )

    def _hidden(self, image: Any, labels: np.ndarray) -> Any:
        r"""The input with all its segments hidden, (1, channels, \*axes) or what broadcasts to it."""
        if self.hide != "mean":
            return baseline_like(self.hide, image, "hide")
        segment, channels = labels.ravel(), to_host(image[0])
        sums = [np.bincount(segment, channel.ravel()) for channel in channels]
        return from_host((sums / np.bincount(segment))[None, :, labels], like=image)
