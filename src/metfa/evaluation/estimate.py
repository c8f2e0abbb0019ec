"""The cost of a study, estimated from a short trial: explanations, forward and backward passes, time, disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from metfa._base.percents import counted
from metfa._base.provenance import printable
from metfa.calls.behind import loaded_torch
from metfa.calls.guard import left_as_found
from metfa.calls.row_dependence import looked_at
from metfa.calls.targets import row_targets
from metfa.evaluation.study import Study
from metfa.evaluation.units import Unit
from metfa.evaluation.worker import Worker
from metfa.sampling.loop import Job, Loop
from metfa.sampling.protocol import known_independent, predict_scores, takes_rngs
from metfa.sampling.rows import Rows
from metfa.sampling.streams import root_entropy

__all__ = ["Estimate", "estimate"]

BYTES_A_ROW = 220
TRIALS = 5
SHORT, WARMING = 2.0, 20.0  # seconds: an explanation that takes longer is the whole trial; what a first one may load


@dataclass(frozen=True)
class Estimate:
    """Cost of the units that are not in the store yet.

    Attributes
    ----------
    units : int
    explanations : int
        Single maps to be computed.
    forwards, backwards : int
        Images that pass forward and backward through the model.
    seconds : float
        Time with one worker, at the speed of the trial.
    bytes : int
        Size of the results in the store.
    not_counted : dict of str to str
        Explainers that failed in the trial, with their errors.
    at_most : bool
        Whether the cost may be lower, because a rule ends sampling; `max_samples` are counted.
    timed : dict of str to int
        How many explanations of each explainer the trial timed: a batch, or one where this takes seconds.
    """

    units: int
    explanations: int
    forwards: int
    backwards: int
    seconds: float
    bytes: int
    not_counted: Mapping[str, str] = field(default_factory=dict)
    at_most: bool = False
    timed: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        failed = "".join(
            f"; not counted, as it failed in the trial: {name}, {why}" for name, why in self.not_counted.items()
        )
        passes = ""
        if self.forwards:  # counted only for torch modules
            passes = f"{self.forwards:,} inputs forward and {self.backwards:,} backward, "
        most, took = "up to about " if self.at_most else "", _duration(self.seconds)
        return (
            f"{self.units:,} units: {most}{self.explanations:,} explanations, {passes}about {took} with one worker"
            f"{self._timed_on}, {self.bytes / 1e6:.1f} MB of results{printable(failed)}"
        )

    @property
    def _timed_on(self) -> str:
        """What the time is from, in brackets."""
        names: dict[int, list[str]] = {}
        for name, n in self.timed.items():
            names.setdefault(n, []).append(printable(name))
        said = [f"{counted(n, 'explanation')} of {', '.join(found)}" for n, found in names.items()]
        return f" (timed: {'; '.join(said)})" if said else ""


def estimate(worker: Worker, units: list[Unit]) -> Estimate:
    """Explain a batch of noisy copies with every explainer, or one if it takes long, ask the model, and multiply."""
    study = worker.study
    explanations = forwards = backwards = 0
    seconds = 0.0
    not_counted, timed = {}, {}
    for name in study.methods:
        mine = [unit for unit in units if unit.explainer == name]
        if not mine:
            continue
        trial = _first_trial(worker, mine)
        if isinstance(trial, str):
            not_counted[name] = trial
            continue
        timed[name] = trial.n
        wanted, asked = _explanations(study, worker.explainers[name]), _asked_by_metrics(study)
        explanations += len(mine) * wanted
        forwards += len(mine) * round(wanted * trial.forwards + asked)
        backwards += len(mine) * round(wanted * trial.backwards)
        seconds += len(mine) * (wanted * trial.seconds + asked * trial.seconds_asked)
    size = len(units) * _rows(study) * BYTES_A_ROW
    at_most = study.rule is not None
    return Estimate(len(units), explanations, forwards, backwards, seconds, size, not_counted, at_most, timed)


def _explanations(study: Study, explainer: Any) -> int:
    """Maps that one unit needs; every sampling has its own vanilla map, and there is at least one sampling."""
    most, sampled, own_randomness = study.most, len(study.noises), takes_rngs(explainer)
    independent = known_independent(explainer)
    looks = _looks(study, most, independent)
    inner = most if study.rule is None else most + 1 + looks
    total = len(study.sampled) * (1 + most + looks) or 2
    if any(measure.under_outer_noise for measure in study.measures):
        aggregates = len(study.maps) > ("vanilla" in study.maps)
        draws = 1 + study.n_outer
        of_aggregates = sampled * aggregates * (draws + _looks(study, study.n_outer, True)) * inner
        of_aggregates += sampled * aggregates * looks * (study.rule is None)  # once for all draws
        for noise in study.outer_noises.values():
            vanilla = "vanilla" in study.maps and (noise is not None or own_randomness)
            total += vanilla * (draws + _looks(study, study.n_outer, independent)) + of_aggregates
    return total


def _looks(study: Study, n_samples: int, independent: bool) -> int:
    """Rows that a sampling also explains alone, to find out whether rows depend on each other."""
    n = min(study.batch_size, n_samples)
    return len(looked_at(n, one=independent)) if n > 1 else 0


def _n_maps(study: Study) -> int:
    of_one = ("mean" in study.maps) + ("smoothed" in study.maps) * len(study.levels)
    return ("vanilla" in study.maps) + len(study.noises) * len(study.sizes) * of_one


def _asked_by_metrics(study: Study) -> int:
    """Images that the metrics of one unit pass to the model."""
    total = 0
    noisy = sum(noise is not None for noise in study.outer_noises.values())
    for measure in study.measures:
        curve = 3 * measure.settings.get("n", 10) if measure.of_texts else 2 * measure.settings.get("steps", 100)
        if measure.of == "maps":
            total += _n_maps(study) * curve
        elif measure.of == "maps under noise":
            total += _n_maps(study) * noisy * study.n_outer * curve
    return total


def _rows(study: Study) -> int:
    of = [measure.of for measure in study.measures]
    outer, sampled = len(study.outer_noises), len(study.noises) * len(study.sizes) * len(study.levels)
    by_map = 3 * of.count("maps") + outer * (3 * of.count("maps under noise") + of.count("outer samples"))
    return _n_maps(study) * by_map + sampled * of.count("samples")


def _first_trial(worker: Worker, units: list[Unit]) -> _Trial | str:
    """A trial of the first of a few units that works, or the last error; the run itself records failures."""
    failure = ""
    for unit in units[:TRIALS]:
        try:
            return _trial(worker, unit)
        except Exception as error:  # noqa: PERF203 - a few at most
            failure = f"{type(error).__name__}: {error}"
    return failure


@dataclass(frozen=True)
class _Trial:
    """Cost of one explanation, of which n were timed, and of one image that a metric passes to the model."""

    n: int
    forwards: float
    backwards: float
    seconds: float
    seconds_asked: float


def _trial(worker: Worker, unit: Unit) -> _Trial:
    """Time a batch of samples in the loop of the run, or one where that takes long, and a batch through the model."""
    study, rows = worker.study, Rows(worker.batch(unit))
    noise = study.held(next(iter(study.sampled.values()), None))
    address = (root_entropy(study.seed), unit.digest)
    loop = Loop(worker.explainers[unit.explainer], rows, noise, [address], study.batch_size)
    jobs = [Job(0, sample) for sample in range(study.batch_size)]
    copies = loop.cleaned().batch(jobs)

    def explained(some: list[Job]) -> None:
        with loop.over(some) as chunks:
            list(chunks)

    with left_as_found(worker.module), _counted(worker.module) as count:
        scores = predict_scores(worker.module, copies)  # warms up as well
        asked = _timed(lambda: predict_scores(worker.module, copies))
        loop = replace(loop, targets=row_targets(study.data.targets[unit.index], scores[:1], 1))
        count.update(forwards=0, backwards=0)
        n, seconds = 1, _timed(lambda: explained(jobs[:1]))
        if SHORT <= seconds < WARMING:
            count.update(forwards=0, backwards=0)
            seconds = _timed(lambda: explained(jobs[:1]))
        if seconds < SHORT and len(jobs) > 1:
            explained(jobs)  # a batch of this size is looked at once, see `RowLook`
            count.update(forwards=0, backwards=0)
            n, seconds = len(jobs), _timed(lambda: explained(jobs))
    return _Trial(n, count["forwards"] / n, count["backwards"] / n, seconds / n, asked / len(jobs))


def _timed(work: Callable[[], Any]) -> float:
    clock = time.perf_counter()
    work()
    return time.perf_counter() - clock


@contextmanager
def _counted(module: Any) -> Iterator[dict[str, int]]:
    """Count the images that pass through a torch module; for other models nothing is counted."""
    count = {"forwards": 0, "backwards": 0}
    torch = loaded_torch()
    if torch is None or not isinstance(module, torch.nn.Module):
        yield count
        return

    def forward(*called: Any) -> None:
        output = called[-1]
        count["forwards"] += len(output)
        if output.requires_grad:
            output.register_hook(lambda gradient: count.__setitem__("backwards", count["backwards"] + len(gradient)))

    handle = module.register_forward_hook(forward)
    try:
        yield count
    finally:
        handle.remove()


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
