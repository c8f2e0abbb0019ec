"""What differs between two explanations of the same noisy copies: two results, or two explainers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from metfa._base.other_words import our_words
from metfa._base.validation import as_path, one_of, shown
from metfa._base.warnings import ReproducibilityWarning, each_once, warn
from metfa.results.attribution_parts import AttributionParts
from metfa.results.differences import difference_of, sides_of
from metfa.results.joining import equal
from metfa.results.same_copies import same_copies
from metfa.results.sample import AttributionSample
from metfa.results.scaled import SCALES
from metfa.results.until import Until
from metfa.sampling.pair_folder import PairFolder
from metfa.sampling.paired import renamed, sampled_pair
from metfa.sampling.request import Request
from metfa.sampling.run import Run
from metfa.sampling.sampler import Sampler

__all__ = ["compare", "folder_of_pair", "run_of_part"]

DRAWS = ("shared", "own")


@our_words
@each_once()
def compare(
    before: AttributionSample | Callable[..., Any],
    after: AttributionSample | Callable[..., Any],
    inputs: Any = None,
    target: Any = None,
    *,
    noise: Any = None,
    n_samples: int | Until = 10,
    scale: str = "raw",
    draws: str = "shared",
    names: Any = None,
    batch_size: int | None = None,
    rng: Any = None,
    run: Run | None = None,
) -> AttributionSample:
    r"""What differs between two explanations of the same noisy copies, feature by feature.

    The samples are paired differences: :math:`d_i = E_{after}(x \oplus n_i) - E_{before}(x \oplus n_i)`, the same noise
    in both. They are independent draws from the law of the difference, so that every statement about samples holds for
    them (sign test against 0, interval, corrections, regions). It is a statement about the median of the difference,
    not about the difference of the medians. A feature that is not shown to differ may differ.

    Parameters
    ----------
    before, after : AttributionSample or explainer
        Two results of the same inputs with the same seed, noise and samples, such as those of two calls of
        `metfa.explain`; nothing else but `scale` and `names` is given then. Or two explainers, called as in
        `metfa.explain`: of two models, or two methods or settings of one.
    inputs, noise, n_samples, batch_size, rng, run
        As in `metfa.explain`, for both. With ``n_samples=metfa.Until(...)`` the looks are at the differences; those of
        regions with ``Until(over=...)``. In ``run.store`` the parts are the folders ``before`` and ``after``, results
        as well; `metfa.load` reads the whole.
    target : int or sequence, optional
        As in `metfa.explain`, for both. None: the class that `before` predicts for the clean input, **for both**, also
        where the model of `after` predicts another one.
    scale : {"raw", "share", "rank", "mean"}
        How each map is scaled before it is subtracted, see `AttributionSample.scaled`. "raw" compares maps as they are,
        which says little if their scales have nothing to do with each other.
    draws : {"shared", "own"}
        Whether explainers with randomness of their own (masks, permutations) draw the same numbers for the same copy:
        then it does not count as a difference, and smaller ones are found. "own": `after` draws others.
    names : (str, str), optional
        What the two are called in sentences, such as ``("v1", "v2")``.

    Returns
    -------
    AttributionSample
        Differences (n, batch, \*features), after minus before, compared with 0: marks are +1 where there is more in
        `after`, -1 where there is less. Its `pair` holds both results.

    Raises
    ------
    TypeError, ValueError
        For arguments that do not belong together, before a model is asked; for results that are not of the same
        copies, saying what differs; for maps of different shapes.

    Notes
    -----
    Two explainers are advanced together, round by round. Beside both samples there is their difference in memory; with
    a store the samples are on disk. After `Until` the number of samples depends on what was seen, also for the two
    parts: their tests hold at any time.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> old, new = np.array([3.0, 0.5, -2.0]), np.array([3.0, 0.5, -1.0])
    >>> v1, v2 = (lambda inputs, target, w=w: inputs * w for w in (old, new))
    >>> noise = metfa.noise.Uniform(0.1)
    >>> found = metfa.compare(v1, v2, np.ones((1, 3)), 0, noise=noise, n_samples=20, names=("v1", "v2"), rng=0)
    >>> found.significance_map()
    array([[0, 0, 1]], dtype=int8)
    >>> found.terms().sides
    ('more in v2 than in v1', 'less in v2 than in v1')
    """
    one_of(scale, "scale", ("raw", *SCALES))
    one_of(draws, "draws", DRAWS)
    sides_of(names)
    several = next((one for one in (before, after) if isinstance(one, AttributionParts)), None)
    if several is not None:
        one = several.layout.names[0]
        raise TypeError(
            f"`before` and `after` must be results of one map, got one of {len(several)} parts: compare each part by "
            f"itself, as in `metfa.compare(before[{one!r}], after[{one!r}])`"
        )
    if isinstance(before, AttributionSample) and isinstance(after, AttributionSample):
        _check_not_given(
            inputs=inputs is not None, target=target is not None, noise=noise is not None,
            n_samples=not (type(n_samples) is int and n_samples == 10), draws=draws != "shared",
            batch_size=batch_size is not None, rng=rng is not None, run=run is not None,
        )  # fmt: skip
        _warn_of_noise_without_a_name(before, after)
        return difference_of(before, after, scale=scale, names=names)
    if isinstance(before, AttributionSample) or isinstance(after, AttributionSample):
        name, other = ("after", after) if isinstance(before, AttributionSample) else ("before", before)
        raise TypeError(
            f"`before` and `after` must be two results or two explainers, got one result, and `{name}`={shown(other)}: "
            "explain with both, or give the result of metfa.explain for both"
        )
    if inputs is None:
        raise TypeError(
            "`inputs` is missing: two explainers are compared on inputs, metfa.compare(before, after, inputs, ...)"
        )
    run = Run.checked(run)
    common = {
        "inputs": inputs, "target": target, "noise": noise, "n_samples": n_samples, "over": None, "predict": None,
        "row_args": None, "batch_size": batch_size,
    }  # fmt: skip
    with renamed("before"):
        first = Request(explainer=before, rng=rng, run=run_of_part(run, "before"), **common)
    with renamed("after"):
        second = Request(
            explainer=after, rng=first.root, run=run_of_part(run, "after"), follows=True, own_draws=draws == "own",
            **common,
        )  # fmt: skip

    def aim(leader: Sampler) -> Any:
        return None if all(one is None for one in leader.targets) else list(leader.targets)

    def difference(one: AttributionSample, other: AttributionSample) -> AttributionSample:
        return difference_of(one, other, scale=scale, names=names)

    asked = {"scale": scale, "names": None if names is None else list(names), "draws": draws}
    return sampled_pair(first, second, aim, difference, folder_of_pair(run, asked, first), names=("before", "after"))


def _warn_of_noise_without_a_name(before: AttributionSample, after: AttributionSample) -> None:
    """Functions are known by their names alone, and a lambda has none of its own; of changed inputs no copy tells."""
    copies = [one.provenance.get("first_copy") for one in (before, after)]
    if equal(before.inputs, after.inputs) and same_copies(*copies) is not None:
        return
    noises = [str(one.provenance.get("noise")) for one in (before, after)]
    if noises[0] == noises[1] and "<lambda>" in noises[0]:
        warn(
            f"the noise of both results is known by its name alone, {noises[0]}: if these are two functions, the "
            "copies are not the same, and the differences mean nothing; give a noise of metfa.noise, or a function "
            "with a name",
            ReproducibilityWarning,
        )


def _check_not_given(**given: bool) -> None:
    """Raise if something is given that is for explainers alone."""
    for name, is_given in given.items():
        if is_given:
            raise ValueError(
                f"`{name}` is for explainers, and these are two results, whose copies are made already: leave it out"
            )


def run_of_part(run: Run, part: str) -> Run:
    """The settings of one of two explainers, whose folder lies in that of the comparison."""
    return run if run.store is None else replace(run, store=as_path(run.store, "store") / part)


def folder_of_pair(run: Run, asked: dict[str, Any], request: Request) -> PairFolder | None:
    """The folder of the comparison, if it has one."""
    if run.store is None:
        return None
    over = request.n_samples.over if isinstance(request.n_samples, Until) else None
    return PairFolder(Path(run.store), asked, len(request.rows), over)
