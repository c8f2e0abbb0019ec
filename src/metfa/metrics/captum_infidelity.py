"""Infidelity by Captum, with metfa's own draws, batches that fit into memory, and one score for each input."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._arrays import from_host, to_host
from metfa._base.lazy import needs_extra
from metfa._base.validation import MOST_CALLS, check_flag, positive_int
from metfa.calls.answers import about
from metfa.calls.called import Called
from metfa.calls.hidden import checked_attributions, checked_inputs
from metfa.calls.inputs import require_tensor
from metfa.calls.targets import stacked_targets
from metfa.metrics.scores import Scores, faults_of, warn_of_missing
from metfa.sampling.rows import Rows
from metfa.sampling.streams import Purpose, root_entropy, stream

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
    r"""Infidelity by Captum: do the attributions predict how the class probability changes under noise?

    The mean over draws of :math:`(n^\top a - (f_c(I) - f_c(I - n)))^2` (Yeh et al. 2019). The lower, the more faithful.

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
        Multiply the attributions of each input by the factor that fits best, so that maps in [0, 1] can be compared.
        (Captum's ``normalize``, which is off there by default.)
    rng : int, numpy.random.Generator or None
        Seed. Draws depend on the input, not on the attributions: all maps of an input get the same draws.

    Returns
    -------
    Scores
        `score` (batch,), not divided by anything.

    Raises
    ------
    ModuleNotFoundError
        Without Captum: ``pip install 'metfa[captum]'``.

    Warns
    -----
    DegenerateAttributionsWarning
        For attributions that are constant or not finite, and if every map would be perfect. That is so if the noise
        changes nothing (with `normalise`: changes something in fewer than two draws), or never changes the class
        probability. The score is then NaN.
    """
    positive_int(n_perturbations, "n_perturbations", maximum=MOST_CALLS)
    check_flag(normalise, "normalise")
    if not callable(noise):
        raise TypeError(f"`noise` must be a function f(x, rng) -> x, got {type(noise).__name__}")
    called = Called.of(model)
    require_tensor(inputs)
    inputs = checked_inputs(inputs)
    attributions = checked_attributions(attributions, inputs)
    root = root_entropy(rng)
    faults = list(faults_of(to_host(attributions)))
    with needs_extra("`infidelity`", "captum"):
        import captum.metrics
    rows = Rows(inputs)
    raw = np.full(len(inputs), np.nan)
    with called.asked():
        targets, clean = called.target_probabilities(inputs, target)
        for row, identity in enumerate(rows.ids()):
            if faults[row] is not None:
                continue
            image = inputs[row : row + 1]
            weights = from_host(to_host(attributions[row : row + 1]), like=inputs)
            streams = (stream(root, identity, draw, Purpose.OUTER) for draw in range(n_perturbations))
            noisy = rows.batch([rows.noisy(row, noise, rng, f"input {row}") for rng in streams])
            n_changed = int((noisy != image).flatten(1).any(dim=1).sum())
            if n_changed < (2 if normalise else 1):
                faults[row] = ONE_DRAW if n_changed else NO_NOISE
                continue
            with about(f"noisy copies of input {row}"):
                raw[row] = captum.metrics.infidelity(
                    called.probabilities,
                    lambda copies, noisy=noisy: (copies - noisy, noisy),
                    image,
                    (weights[:, None] if weights.ndim < inputs.ndim else weights).expand_as(image),
                    target=stacked_targets(targets[row : row + 1], inputs),
                    n_perturb_samples=n_perturbations,
                    normalize=normalise,
                )
            if raw[row] == 0:  # a perfect map, or a model for which every map is perfect
                copies = called.copies_probabilities(
                    [row] * n_perturbations, inputs, lambda start, stop, noisy=noisy: noisy[start:stop], targets
                )
                if (copies == clean[row]).all():
                    faults[row], raw[row] = NO_CHANGE, np.nan
    ones = np.ones(len(clean))
    warn_of_missing(faults, ones)
    return Scores(raw, ones, tuple(faults))
