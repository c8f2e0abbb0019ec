"""Infidelity of Yeh et al.: do the attributions predict how the class probability changes under noise?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._arrays import from_host, to_host
from metfa._base.validation import MOST_CALLS, check_flag, check_function, positive_int
from metfa.calls.called import Called
from metfa.calls.hidden import checked_attributions, checked_inputs
from metfa.calls.inputs import require_tensor
from metfa.metrics.scores import Scores, faults_of, warn_of_missing
from metfa.sampling.rows import Rows
from metfa.sampling.streams import Purpose, root_entropy, streams

if TYPE_CHECKING:
    import torch

__all__ = ["infidelity"]

NO_NOISE = "a noise that changes nothing"
ONE_DRAW = "a single draw that changes anything, which every map fits"
NO_CHANGE = "a class probability that the noise does not change"


def infidelity(
    model: Any,
    inputs: torch.Tensor,
    attributions: Any,
    target: Any = None,
    *,
    noise: Callable[..., Any],
    n_perturbations: int = 10,
    normalise: bool = True,
    rng: Any = 0,
) -> Scores:
    r"""Infidelity: do the attributions predict how the class probability changes under noise?

    The mean over draws of :math:`(\beta n^\top a - (f_c(I) - f_c(I - n)))^2` (Yeh et al. 2019 [1]_, and Captum's
    ``infidelity`` [2]_, with :math:`\beta = 1`). The lower, the more faithful; never below 0.

    Parameters
    ----------
    model : torch.nn.Module, callable or Called
        Inputs (batch, ...) -> scores (batch, classes); a `metfa.Called` says how it is asked.
    inputs : torch.Tensor, (batch, ...)
        Floating point.
    attributions : array, (batch, \*features)
        One score for each feature. A pixel's score counts for each of its channels.
    target : int, sequence or tensor, optional
        Class of each input; None: the predicted one.
    noise : callable
        ``f(x, rng) -> x`` for one input on the host, a NumPy array. n is the input minus its noisy copy.
    n_perturbations : int
        Draws for each input: Captum's default.
    normalise : bool
        True: :math:`\beta` is the factor, not below 0, that fits an input's draws best, so that maps of any size can be
        compared. Attributions that predict changes of the wrong sign get the factor 0 and the score of a map that
        predicts no change at all, the mean of :math:`(f_c(I) - f_c(I - n))^2`. False: :math:`\beta` is 1, and the
        attributions must be in units of probability per unit of the input. (Captum's ``normalize`` lets the factor be
        negative: a map and its opposite then have the same score.)
    rng : int, numpy.random.Generator or None
        Seed. Draws depend on the input, not on the attributions: all maps of an input get the same draws.

    Returns
    -------
    Scores
        `score` (batch,), not divided by anything.

    Raises
    ------
    TypeError, ValueError
        For bad arguments.

    Warns
    -----
    DegenerateAttributionsWarning
        For attributions that are constant or not finite, and if every map would be perfect. That is so if the noise
        changes nothing (with `normalise`: changes something in fewer than two draws), or never changes the class
        probability. The score is then NaN.

    Notes
    -----
    Of a map of absolute values only changes of one sign can be predicted: give signed attributions.

    References
    ----------
    .. [1] C.-K. Yeh, C.-Y. Hsieh, A. Suggala, D. Inouye and P. Ravikumar, "On the (In)fidelity and Sensitivity of
       Explanations", NeurIPS 2019.
    .. [2] N. Kokhlikyan et al., "Captum: A Unified and Generic Model Interpretability Library for PyTorch", 2020.
    """
    positive_int(n_perturbations, "n_perturbations", maximum=MOST_CALLS)
    check_flag(normalise, "normalise")
    check_function(noise, "noise", "noise(x, rng)", None, None)
    called = Called.of(model)
    require_tensor(inputs)
    inputs = checked_inputs(inputs)
    attributions = checked_attributions(attributions, inputs)
    root = root_entropy(rng)
    faults = list(faults_of(to_host(attributions)))
    rows = Rows(inputs)
    raw = np.full(len(inputs), np.nan)
    with called.asked():
        targets, clean = called.target_probabilities(inputs, target)
        for row, identity in enumerate(rows.ids()):
            if faults[row] is not None:
                continue
            image = inputs[row : row + 1]
            weights = from_host(to_host(attributions[row : row + 1]), like=inputs)
            rngs = streams([(root, identity, draw) for draw in range(n_perturbations)], Purpose.OUTER)
            same, wheres = [row] * n_perturbations, [f"input {row}"] * n_perturbations
            noisy = rows.batch(rows.noisy(same, noise, rngs, wheres))
            n_changed = int((noisy != image).flatten(1).any(dim=1).sum())
            if n_changed < (2 if normalise else 1):
                faults[row] = ONE_DRAW if n_changed else NO_NOISE
                continue
            copies = called.copies_probabilities(
                [row] * n_perturbations, inputs, lambda start, stop, noisy=noisy: noisy[start:stop], targets
            )
            changes = clean[row] - copies
            if not changes.any():  # every map would be perfect
                faults[row] = NO_CHANGE
                continue
            spread = (weights[:, None] if weights.ndim < inputs.ndim else weights).expand_as(image)
            predicted = to_host(((image - noisy).double() * spread).flatten(1).sum(dim=1)).astype(np.float64)
            factor = _factor(predicted, changes) if normalise else 1.0
            raw[row] = ((factor * predicted - changes) ** 2).mean()
    ones = np.ones(len(clean))
    warn_of_missing(faults, ones)
    return Scores(raw, ones, tuple(faults))


def _factor(predicted: np.ndarray, changes: np.ndarray) -> float:
    """The factor, not below 0, with which the predictions are nearest to the changes."""
    size = float(predicted @ predicted)
    return max(0.0, float(predicted @ changes) / size) if size > 0 else 0.0
