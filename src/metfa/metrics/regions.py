"""How probable the class is when only a region is shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._arrays import as_array, from_host, namespace, to_host
from metfa.calls.called import Called
from metfa.calls.hidden import Baseline, Hidden, check_features, checked_inputs
from metfa.metrics.scores import Scores, warn_of_missing

__all__ = ["region_score"]


def region_score(
    model: Any,
    inputs: Any,
    regions: Any,
    target: Any = None,
    *,
    baseline: Baseline = "black",
) -> Scores:
    r"""Class probability of a region alone, everything else hidden (paper, figure on the threshold h).

    Parameters
    ----------
    model : torch.nn.Module, callable or Called
        Inputs (batch, ...) -> scores (batch, classes); a `metfa.Called` says how it is asked.
    inputs : array, (batch, ...)
        Floating point; images (batch, channels, height, width) with pixels in [0, 1].
    regions : array of bool, (batch, \*features)
        True for the features that are kept, such as ``sample.significance_map() == 1``.
    target : int, sequence or array, optional
        Class of each input; None: the predicted one.
    baseline
        As for :func:`metfa.metrics.insertion`.

    Returns
    -------
    Scores
        `raw` is the class probability of the region alone; `score` divides it by that of the clean input.

    Warns
    -----
    DegenerateAttributionsWarning
        For regions without a feature: they have no score.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> from metfa import metrics
    >>> def model(images):
    ...     mean = images.mean(axis=(1, 2, 3))
    ...     return np.stack([mean, 1 - mean], axis=1)
    >>> regions = np.array([[[True, False], [False, False]]])
    >>> metrics.region_score(metfa.Called(model, softmax=False), np.ones((1, 1, 2, 2)), regions, target=0).score
    array([0.25])
    """
    called = Called.of(model)
    inputs, regions = checked_inputs(inputs), as_array(regions, "regions")
    check_features(regions, inputs, "regions")
    kept = to_host(regions)
    if kept.dtype != bool:
        raise TypeError(
            f"`regions` must be boolean, got {kept.dtype}: for the important features of a significance map write "
            "`significance == 1`"
        )
    hidden = Hidden.behind(baseline, inputs)
    shown = from_host(kept, like=inputs, dtype=namespace(inputs).bool)
    empty = tuple(None if region.any() else "an empty region" for region in kept)
    with called.asked():
        targets, clean = called.target_probabilities(inputs, target)
        raw = called.copies_probabilities(
            range(len(kept)), inputs, lambda start, stop: hidden.keeping(shown[start:stop], slice(start, stop)), targets
        )
    warn_of_missing(empty, clean)
    return Scores(np.where([reason is not None for reason in empty], np.nan, raw), clean, empty)
