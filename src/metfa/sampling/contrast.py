"""Why this class and not that one: one explainer, two targets, the same noisy copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metfa._base.other_words import our_words
from metfa._base.validation import one_of
from metfa._base.warnings import DegenerateAttributionsWarning, each_once, warn
from metfa.calls.targets import row_targets
from metfa.results.differences import difference_of
from metfa.results.joining import equal
from metfa.results.sample import AttributionSample
from metfa.results.scaled import SCALES
from metfa.results.until import Until
from metfa.sampling.compare import folder_of_pair, run_of_part
from metfa.sampling.paired import sampled_pair
from metfa.sampling.request import Request
from metfa.sampling.run import Run
from metfa.sampling.sampler import Sampler

__all__ = ["contrast"]


@our_words
@each_once()
def contrast(
    explainer: Callable[..., Any],
    inputs: Any,
    target: Any = None,
    against: Any = None,
    *,
    noise: Any,
    n_samples: int | Until = 10,
    scale: str = "raw",
    predict: Callable[..., Any] | None = None,
    row_args: dict[str, Any] | None = None,
    batch_size: int | None = None,
    rng: Any = None,
    run: Run | None = None,
) -> AttributionSample:
    r"""Why this class and not that one: the map of a class minus that of another, on the same noisy copies.

    The samples are paired differences: :math:`d_i = E(x \oplus n_i; target) - E(x \oplus n_i; against)`, with the same
    noise and the same draws of the explainer. See `metfa.compare`.

    Parameters
    ----------
    explainer, inputs, noise, n_samples, predict, row_args, batch_size, rng, run
        As in `metfa.explain`; `n_samples` and the store of `run` as in `metfa.compare`.
    target : int or sequence, optional
        The class, one for all or one entry for each row. None: the class predicted for the clean input.
    against : int or sequence, optional
        The other class. None: the most probable class of the clean input apart from the target, which is the second
        most probable one where the target is the predicted class.
    scale : {"raw", "share", "rank", "mean"}
        How each map is scaled before it is subtracted, see `AttributionSample.scaled`.

    Returns
    -------
    AttributionSample
        Differences (n, batch, \*features), compared with 0: marks are +1 where there is more for the target, -1 where
        there is more for the other class. Its `pair` holds the results of the other class and of the target.

    Raises
    ------
    TypeError, ValueError
        For bad arguments; for a row whose two classes are equal; without `against` if the scores are not known.

    Warns
    -----
    DegenerateAttributionsWarning
        If all differences are 0, as those of an explainer that does not look at its target.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> weights = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    >>> explainer = lambda inputs, target: inputs * weights[target]
    >>> noise = metfa.noise.Uniform(0.1)
    >>> found = metfa.contrast(explainer, np.ones((1, 3)), 0, 1, noise=noise, n_samples=20, rng=0)
    >>> found.significance_map()
    array([[ 1,  0, -1]], dtype=int8)
    """
    one_of(scale, "scale", ("raw", *SCALES))
    run = Run.checked(run)
    common = {
        "explainer": explainer, "inputs": inputs, "noise": noise, "n_samples": n_samples, "over": None,
        "predict": predict, "row_args": row_args, "batch_size": batch_size,
    }  # fmt: skip
    wanted = Request(target=target, rng=rng, run=run_of_part(run, "after"), **common)
    n_rows = len(wanted.rows)
    others = None if against is None else _against(against, n_rows)
    if target is not None and others is not None:
        _check_differ(row_targets(target, None, n_rows), others)
    other = Request(target=others, rng=wanted.root, run=run_of_part(run, "before"), follows=True, **common)

    def aim(leader: Sampler) -> list[Any]:
        if leader.targets[0] is None:
            raise ValueError("`explainer` explains a model with one score a row, (batch,): there is no other class")
        found = _next_best(leader.scores, leader.targets) if others is None else others
        _check_differ(leader.targets, found)
        return found

    def difference(of_target: AttributionSample, of_other: AttributionSample) -> AttributionSample:
        names = _names(of_other.target, of_target.target, of_target.target_noun)
        return difference_of(of_other, of_target, scale=scale, names=names, word="for")

    found = sampled_pair(wanted, other, aim, difference, folder_of_pair(run, {"scale": scale}, wanted))
    if not found.vanilla.any() and not any(one.any() for one in found.values):
        warn(
            "all differences are 0: `explainer` gives the same maps for both classes, so that it does not look at its "
            "`target`, or the two do not differ for it",
            DegenerateAttributionsWarning,
        )
    return found


def _against(against: Any, n_rows: int) -> list[Any]:
    try:
        return row_targets(against, None, n_rows)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("`target`", "`against`")) from error


def _check_differ(targets: Sequence[Any], others: Sequence[Any]) -> None:
    for row, (target, other) in enumerate(zip(targets, others, strict=True)):
        if equal(target, other):
            raise ValueError(
                f"`against` must be another class than `target`, and both are {target} for input {row}: leave "
                "`against` out for the most probable other class"
            )


def _next_best(scores: np.ndarray | None, targets: Sequence[Any]) -> list[int]:
    """The class of each row with the largest score apart from its target."""
    if scores is None or scores.ndim != 2:
        shape = "not known" if scores is None else f"of shape {scores.shape}, not (batch, classes)"
        raise ValueError(
            f"`against` is None, and the scores of the model are {shape}: pass `against=`, or `predict=` (inputs -> "
            "scores) so that the most probable other class can be found"
        )
    if scores.shape[1] < 2:
        raise ValueError("`against` is None, and the model has one class alone: there is no other to compare with")
    rest = scores.astype(np.float64)
    for row, target in enumerate(targets):
        if not isinstance(target, int):
            raise TypeError(f"`against` must be given where a target is no class index, got {target!r:.80}")
        rest[row, target] = -np.inf
    return [int(best) for best in rest.argmax(axis=1)]


def _names(others: Sequence[Any], targets: Sequence[Any], noun: str) -> tuple[str, str]:
    """What the two are called: by their classes (or outputs, as the noun says), if these are the same in all rows."""
    if all(isinstance(one, int) and one == of[0] for of in (others, targets) for one in of):
        return f"{noun} {others[0]}", f"{noun} {targets[0]}"
    return f"the other {noun}", "the target"
