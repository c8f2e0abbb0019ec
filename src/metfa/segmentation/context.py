"""`explain_context`: which surroundings of one object a segmentation network needs, tested under noise."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from metfa import noise
from metfa._base.other_words import our_words
from metfa._base.validation import MOST_CALLS, as_path, positive_int
from metfa._base.warnings import DegenerateAttributionsWarning, MissedObjectWarning, SmallRegionWarning, warn
from metfa.calls.called import Called
from metfa.sampling.explain import explain
from metfa.sampling.protocol import explained_model
from metfa.sampling.run import Run
from metfa.segmentation._object import check_size, checked_region
from metfa.segmentation.explanation import ContextExplanation
from metfa.segmentation.grid_saliency import GridSaliency
from metfa.segmentation.kept import SAMPLE, save_classes, save_region
from metfa.segmentation.regions import RegionModel, one_image, predicted_classes, region_of_class

__all__ = ["explain_context"]


@our_words
def explain_context(
    model: Any,
    image: Any,
    target: int,
    *,
    region: Any = None,
    method: Callable[[Any], Any] = GridSaliency,
    noise: Any = noise.Uniform(0.1, bounds=(0, 1)),  # noqa: B008 - settings alone
    n_samples: int = 10,
    min_pixels: int = 600,
    batch_size: int | None = None,
    rng: Any = None,
    run: Run | None = None,
) -> ContextExplanation:
    """Explain N noisy copies of a scene: which surroundings of an object does the network need?

    Parameters
    ----------
    model : torch.nn.Module, callable or Called
        Segmentation network, images (batch, channels, height, width) -> class scores (batch, classes, height, width),
        see `RegionModel` for what it may return. A `metfa.Called` says how it is asked, for example ``softmax=False``
        if the network returns probabilities.
    image : torch.Tensor, (channels, height, width) or (1, channels, height, width)
        The scene, floating point, pixels in [0, 1].
    target : int
        Class of the object.
    region : array of bool, (height, width), optional
        The object's pixels. None: all pixels to which the model gives the class in the clean image (the paper's R). In
        both cases it is the same for all samples.
    method : callable
        Makes the explainer from a `RegionModel` (if `model` is a `Called`, from a `Called` of a `RegionModel` with the
        same settings): `GridSaliency` (the paper's, the default), one with settings by `functools.partial`, or any
        explainer of classifiers, such as `metfa.explainers.Gradient`. These always see the object as it is in the clean
        image, whatever they hide; `GridSaliency` keeps it by itself.
    noise : callable or None
        ``f(image, rng) -> image``, the paper's U(-0.1, 0.1) by default.
    n_samples : int
        The paper's N.
    min_pixels : int
        Warn of smaller objects: the paper regards objects below 600 pixels as noise.
    batch_size, rng
        As in `metfa.explain`.
    run : Run, optional
        `store`, `progress`, `input_names` and `first_sample`, see `metfa.Run`. The store is a folder for the region and
        the samples; `load_context` reads it.

    Returns
    -------
    ContextExplanation

    Raises
    ------
    TypeError, ValueError
        For bad arguments, and if the model finds the class nowhere.
    FileExistsError
        If `store` holds samples of another object.

    Warns
    -----
    MissedObjectWarning
        If the model's best class for a given `region` is another one: an object that it does not find needs no context.
    SmallRegionWarning
        If the object has fewer than `min_pixels` pixels.

    Examples
    --------
    >>> import torch
    >>> from functools import partial
    >>> from metfa import segmentation
    >>> def network(images):  # class 1 is a bright pixel in an image whose left edge is bright
    ...     left = images[:, :, :, :2].mean((2, 3), keepdim=True)
    ...     return torch.cat([0 * images, 10 * images * left - 3], dim=1)
    >>> image = torch.zeros(1, 8, 8)
    >>> image[:, :, :2], image[:, 3:5, 5:7] = 0.9, 0.8  # the edge, and the object
    >>> region = image[0] == 0.8
    >>> explainer = partial(segmentation.GridSaliency, baseline=0.0)
    >>> found = segmentation.explain_context(
    ...     network, image, 1, region=region, method=explainer, min_pixels=1, rng=0
    ... )
    >>> found.significance_map(threshold=0.5)[0].tolist()
    [1, 1, -1, -1, -1, -1, -1, -1]
    """
    run = Run.checked(run, ("store", "progress", "input_names", "first_sample"))
    positive_int(target, "target", minimum=0)
    positive_int(min_pixels, "min_pixels")
    # No rule such as `Until`: it would count the object's pixels as decided, but they are not tested.
    positive_int(n_samples, "n_samples", maximum=MOST_CALLS)
    batch = one_image(image)
    if not callable(method) or explained_model(method) is not None:
        raise TypeError(
            "`method` must be a function of a RegionModel, such as metfa.segmentation.GridSaliency or "
            f"metfa.explainers.Gradient, got {method!r:.80}"
        )
    called = Called.of(model)
    classes = None
    if region is None:
        classes = predicted_classes(called, batch, target)
        region = region_of_class(classes, target)
        if region.all():
            raise ValueError(f"the model finds class {target} in all pixels, which leaves no context to explain")
    region = checked_region(region)
    check_size(region, batch)
    regional = RegionModel(called.model, region, softmax=called.softmax)
    made = method(regional if called is not model else replace(called, model=regional))
    asked = getattr(made, "called", called)
    if asked.softmax != called.softmax:
        raise ValueError(
            f"`softmax={called.softmax}` says that the model gives {'logits' if called.softmax else 'probabilities'}, "
            f"but the explainer asks with `softmax={asked.softmax}`: let it take the `Called` that `method` is "
            f"given, as in `lambda called: {type(made).__name__}(called)`"
        )
    if region.sum() < min_pixels:
        warn(
            f"the object is of {region.sum():,} px, fewer than {min_pixels:,}: it may be stray pixels rather than an "
            "object; `min_pixels` sets the limit",
            SmallRegionWarning,
        )
    if not isinstance(made, GridSaliency):
        regional.shown = batch[0].detach()
    folder = _folder(run.store)
    if folder is not None:
        save_region(region, folder)
    with warnings.catch_warnings():
        if isinstance(made, GridSaliency):  # an empty mask is an answer: no context is needed
            warnings.filterwarnings("ignore", r"\d+ of \d+ maps are constant", DegenerateAttributionsWarning)
        sample = explain(
            made,
            batch,
            target,
            noise=noise,
            n_samples=n_samples,
            batch_size=batch_size,
            rng=rng,
            run=replace(run, store=None if folder is None else folder / SAMPLE),
        )
    _warn_if_missed(sample.scores, target)
    if classes is None:
        classes = predicted_classes(called, batch, target)
    if folder is not None:
        save_classes(classes, folder)
    return ContextExplanation(sample, region, classes)


def _folder(store: str | Path | None) -> Path | None:
    """The folder for region and samples."""
    return None if store is None else as_path(store, "store")


def _warn_if_missed(scores: np.ndarray | None, target: int) -> None:
    best = target if scores is None else int(scores[0].argmax())
    if best != target:
        warn(
            f"the model takes the object for class {best}, not {target}: an object that it does not find "
            "needs no context, so the explanation may be empty",
            MissedObjectWarning,
        )
