"""Two explainers on the same noisy copies, advanced together, and the differences of their samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from metfa._base.progress import watched_by
from metfa.calls.guard import left_as_found
from metfa.calls.layouts import layout_kept
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample
from metfa.results.stopping import Stopping
from metfa.results.until import Until
from metfa.sampling.outputs import require_one_map
from metfa.sampling.pair_folder import PairFolder
from metfa.sampling.progress import Progress
from metfa.sampling.request import Request
from metfa.sampling.rounds import Ended, Rounds, rounds_of
from metfa.sampling.sampler import Sampler
from metfa.sampling.store import sink_of

__all__ = ["renamed", "sampled_pair"]

Difference = Callable[[AttributionSample, AttributionSample], AttributionSample]


def sampled_pair(
    leader: Request,
    follower: Request,
    aim: Callable[[Sampler], Any],
    difference: Difference,
    folder: PairFolder | None,
    names: tuple[str, str] = ("explainer", "explainer"),
) -> AttributionSample:
    """Sample two requests together, until the rule is content with their differences.

    Parameters
    ----------
    leader, follower : Request
        For the same inputs, noise and samples. The follower gets the leader's seed.
    aim : callable
        The leader's sampler, whose targets and clean scores are known -> the follower's target.
    difference : callable
        Both results, the leader's first -> their differences.
    folder : PairFolder, optional
        Where it is kept; it holds the folders of both.
    names : (str, str)
        Of the arguments that gave the explainers.
    """
    rule, n_rows = leader.n_samples, len(leader.rows)
    rounds = rounds_of(rule, n_rows, signed=True)
    models = (leader.explainer, leader.predict, follower.explainer, follower.predict)
    with ExitStack() as held:
        if folder is not None:
            held.enter_context(folder)
            if folder.ended is not None:
                rounds = Ended(*folder.ended)
        sink = held.enter_context(sink_of(leader))
        follower = follower.with_root(sink.root)  # a run that is resumed without a seed has its own
        other = held.enter_context(sink_of(follower))
        held.enter_context(left_as_found(*models))
        total, done = 2 * n_rows * leader.most, sink.n_done + other.n_done
        explainers = (leader.explainer, follower.explainer)
        shown = {"shown": leader.run.progress, "doing": "comparing", "explainers": explainers}
        progress = held.enter_context(Progress(total, done, **shown))
        held.enter_context(watched_by(progress))
        with renamed(names[0]), layout_kept(sink.laid_out):
            first = _of_one_map(Sampler(leader, sink))
        first.first_copy.require()
        target = aim(first)
        with renamed(names[1]), layout_kept(other.laid_out):
            second = _of_one_map(Sampler(follower, other, target))
        seen = _SeenDifferences(first, second, difference, rule.over if isinstance(rule, Until) else None)
        rounds.check(seen, sink.usual)
        if folder is not None:
            folder.begin()
        found = [first.open(), second.open()]
        if folder is not None and folder.finished:
            return folder.result()
        if folder is not None and folder.ended is None and found != [None, None]:
            raise FileExistsError(
                f"`store` holds a finished result, and no finished comparison: {folder.folder}; give another folder"
            )
        _advance(first, second, rounds, seen, progress, names)
        del seen  # and what it keeps
        return _result(first, second, rounds.stopping(), difference, folder)


def _of_one_map(sampler: Sampler) -> Sampler:
    """The sampler, unless its maps are those of several inputs."""
    if sampler.layout is not None:
        one = sampler.layout.names[0]
        require_one_map(
            sampler.layout.parts,
            "a comparison",
            f"take the same part of both, as in `lambda inputs, target: explainer(inputs, target=target)[{one!r}]`, or "
            f"explain with both by the same `rng` and compare `before[{one!r}]` with `after[{one!r}]`",
        )
    return sampler


def _advance(
    first: Sampler, second: Sampler, rounds: Rounds, seen: _SeenDifferences, progress: Progress, names: tuple[str, str]
) -> None:
    """Make the samples of both, chunk by chunk in turn, so that a run that is cut short has as many of each."""
    n_rows = len(first.request.rows)
    while (upto := rounds.next(first.taken, (first.made + second.made) / (2 * n_rows))) is not None:
        with first.advancing(upto) as some, second.advancing(upto) as others:
            chunks = _named(names[0], some, first.kept_layout), _named(names[1], others, second.kept_layout)
            for n_maps in chain.from_iterable(zip_longest(*chunks, fillvalue=0)):
                progress.update(n_maps)
        unmoved = sorted({*first.unmoved} & {*second.unmoved})
        progress.set_postfix_str(rounds.look(seen, upto, unmoved))


@contextmanager
def renamed(argument: str) -> Iterator[None]:
    """Let errors about `explainer` say which argument it was."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError) or "`explainer`" not in str(error):
            raise
        raise type(error)(str(error).replace("`explainer`", f"`{argument}`")) from error


def _named(argument: str, chunks: Iterator[int], laid_out: str | None) -> Iterator[int]:
    """The chunks of one of the two; each is made when it is asked for, in that one's layout."""
    with renamed(argument):
        while True:
            with layout_kept(laid_out):
                n_maps = next(chunks, None)
            if n_maps is None:
                return
            yield n_maps


def _result(
    first: Sampler, second: Sampler, stopping: Stopping | None, difference: Difference, folder: PairFolder | None
) -> AttributionSample:
    """The differences of all samples; each part knows that its number of samples depends on what was seen."""
    if folder is not None:
        folder.end(first.taken, stopping)
    for one in (first, second):
        one.warn()
    of_part = stopping and replace(stopping, thresholds=None, nothing=(), over=None, noun="difference")
    found = difference(first.sample(of_part), second.sample(of_part))
    if stopping is not None:
        found = replace(found, stopping=stopping)
    if folder is not None:
        folder.finish(found)
    return found


class _SeenDifferences:
    """Differences of the samples of two explainers, or the differences of regions' scores in them; see `Seen`."""

    def __init__(self, first: Sampler, second: Sampler, difference: Difference, over: Regions | None) -> None:
        self._parts, self._difference, self._over = (first, second), difference, over
        clean = self._of(first.clean(), second.clean())
        self.vanilla = clean.vanilla
        # What takes time to make is kept: scaled maps, and scores of regions. Others are subtracted when asked for.
        self._kept = None
        if over is not None or clean.provenance["compared"]["scale"] != "raw":
            self._kept = np.empty((0, *clean.vanilla.shape), clean.values.dtype)

    def _of(self, first: AttributionSample, second: AttributionSample) -> AttributionSample:
        found = self._difference(first, second)
        return found if self._over is None else found.over(self._over)

    def _made(self, start: int, stop: int) -> AttributionSample:
        first, second = self._parts
        return self._of(first.part(start, stop), second.part(start, stop))

    def values(self, start: int, stop: int) -> np.ndarray:
        """See `Seen`."""
        if self._kept is None:
            return self._made(start, stop).values
        if stop > len(self._kept):
            self._kept = np.concatenate([self._kept, self._made(len(self._kept), stop).values])
        return self._kept[start:stop]

    def unit(self, taken: int) -> Any:
        """See `Seen`: the larger of both parts' units."""
        made = self._made(0, taken)
        if self._kept is not None and not len(self._kept):
            self._kept = made.values
        return made.unit
