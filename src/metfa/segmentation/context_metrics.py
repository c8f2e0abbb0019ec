"""Faithfulness of a context explanation: is the object found equally well if only it and its context are left?"""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._arrays import as_array, copied, from_host, namespace, to_host
from metfa.calls.answers import chosen
from metfa.calls.called import Called
from metfa.calls.hidden import Baseline, Hidden, checked_inputs
from metfa.calls.targets import row_targets
from metfa.metrics.scores import Scores
from metfa.segmentation._class_maps import asked_maps, check_kind

__all__ = ["context_faithfulness"]


def context_faithfulness(
    model: Any,
    inputs: Any,
    context: Any,
    target: Any,
    *,
    region: Any,
    baseline: Baseline = "black",
) -> Scores:
    r"""One minus the loss of the object's probability when only the object and its context are shown (paper, m_f).

    .. math:: m_f = 1 - \frac{1}{|R|} \sum_R \max(0, F_c(I) - F_c((R \cup M) \odot I))

    with R the object's pixels, M the context's, and F_c the probability of class c in a pixel. The robust form is
    ``metfa.metrics.robust(context_faithfulness, noise=...)``, with R and M of the clean image.

    Parameters
    ----------
    model : torch.nn.Module, callable or Called
        Segmentation network, see `RegionModel`; a `metfa.Called` says how it is asked.
    inputs : array, (batch, channels, height, width)
        Images, floating point, pixels in [0, 1].
    context : array of bool, (batch, height, width) or (height, width)
        The explanation M, such as ``explanation.significant()``. All False: the object alone is shown.
    target : int or sequence
        Class of the object of each image.
    region : array of bool, (batch, height, width) or (height, width)
        The object's pixels R.
    baseline
        As for :func:`metfa.metrics.insertion`; the paper uses "black".

    Returns
    -------
    Scores
        `raw` and `score` are m_f, in [0, 1].

    Raises
    ------
    TypeError, ValueError
        For bad arguments, and if `softmax` is False and scores lie outside [0, 1].

    Warns
    -----
    ModelOutputWarning
        If the model gives probabilities and `softmax` is True.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> from metfa.segmentation import context_faithfulness
    >>> def network(images):  # class 1 is likely in bright images
    ...     bright = images.mean(axis=(2, 3), keepdims=True) + 0 * images
    ...     return np.concatenate([1 - bright, bright], axis=1)
    >>> region, context = np.array([[True, False, False, False]]), np.array([[False, True, False, False]])
    >>> network = metfa.Called(network, softmax=False)
    >>> context_faithfulness(network, np.ones((1, 1, 1, 4)), context, 1, region=region).score
    array([0.5])
    """
    called, inputs = Called.of(model), checked_inputs(inputs)
    if inputs.ndim != 4:
        raise ValueError(f"`inputs` must be images (batch, channels, height, width), got shape {tuple(inputs.shape)}")
    if target is None:
        raise TypeError("`target` must be the class of the object, or one for each image, got None")
    targets = row_targets(target, None, len(inputs))
    objects, kept = _pixels(region, inputs, "region"), _pixels(context, inputs, "context")
    if not objects.any(axis=(1, 2)).all():
        raise ValueError(f"`region` must hold pixels of each image, but it holds none of input {_first_empty(objects)}")
    hidden = Hidden.behind(baseline, inputs)
    shown = from_host(objects | kept, like=inputs, dtype=namespace(inputs).bool)
    found = np.empty(len(inputs))

    def judge(start: int, stop: int) -> None:
        rows = slice(start, stop)
        scores = asked_maps(called, copied(inputs[rows]), targets[rows], start)
        check_kind(scores, softmax=called.softmax)
        left = asked_maps(called, hidden.keeping(shown[rows], rows), targets[rows], start)
        clean, left = (chosen(called.as_probabilities(maps), [(t,) for t in targets[rows]]) for maps in (scores, left))
        lost = np.maximum(clean - left, 0)
        found[rows] = 1 - (lost * objects[rows]).sum(axis=(1, 2)) / objects[rows].sum(axis=(1, 2))

    with called.asked():
        called.in_batches(len(inputs), inputs, judge)
    return Scores(found, np.ones(len(found)), (None,) * len(found))


def _pixels(given: Any, inputs: Any, name: str) -> np.ndarray:
    """Pixels (batch, height, width) bool on the host; a single map is used for all images."""
    host = to_host(as_array(given, name))
    if host.dtype != bool:
        raise TypeError(f"`{name}` must be boolean, got {host.dtype}: for a significance map write `significance == 1`")
    shape = (len(inputs), *inputs.shape[2:])
    if host.shape not in (shape, shape[1:]):
        raise ValueError(f"`{name}` must be pixels {shape} or {shape[1:]}, got shape {host.shape}")
    return np.broadcast_to(host, shape)


def _first_empty(objects: np.ndarray) -> int:
    return int(objects.any(axis=(1, 2)).argmin())
