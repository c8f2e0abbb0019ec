"""`evaluate`: the units of a study that are not in the store yet are measured, and all of them read."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from metfa._base.lazy import needs_extra
from metfa._base.progress import progress_bar
from metfa._base.provenance import printable
from metfa._base.validation import did_you_mean, positive_int
from metfa._base.warnings import EqualInputsWarning, FailedUnitsWarning, ModelOutputWarning, warn
from metfa.evaluation.estimate import Estimate, estimate
from metfa.evaluation.executors import run_here
from metfa.evaluation.results import Evaluation
from metfa.evaluation.store import UnitStore
from metfa.evaluation.study import Study
from metfa.evaluation.units import Unit, units_of
from metfa.evaluation.worker import Worker, load_model

__all__ = ["Run", "check_executor", "evaluate", "prepare"]

EXECUTORS = ("local", "ray")
LOST = {"error": "it was measured, but the store holds neither its result nor why it failed"}


def evaluate(
    study: Study,
    *,
    store: str | Path,
    store_options: dict[str, Any] | None = None,
    executor: Literal["local", "ray"] = "local",
    workers: int = 1,
    progress: bool = False,
) -> Evaluation:
    """Measure explainers over a data set; what the store holds already is not computed again.

    A study is cut into units, one input and one explainer each. A unit's result is one file in the store, addressed by
    a hash of everything that it computes: a run that was killed goes on where it was, a changed study never meets old
    figures, an extended one keeps those that it shares. A unit that fails is recorded, and the rest goes on; the next
    call tries it again.

    Parameters
    ----------
    study : Study
        What to measure.
    store : path or URL
        A folder, or a URL of fsspec such as ``s3://bucket/folder``.
    store_options : dict, optional
        Passed to fsspec.
    executor : {"local", "ray"}
        This process, or actors of Ray (``pip install 'metfa[ray]'``): those of the cluster that this process is
        connected to or that ``RAY_ADDRESS`` names, else of this machine.
    workers : int
        Actors of Ray.
    progress : bool
        Show a bar with rate and time left.

    Returns
    -------
    Evaluation
        Tidy rows, tables and failures.

    Raises
    ------
    TypeError, ValueError, OSError
        For bad arguments, an unreadable input, or a store that cannot be written to.

    Warns
    -----
    EqualInputsWarning
        If inputs are equal to others.
    FailedUnitsWarning
        If units failed; `Evaluation.failures` holds why.
    ModelOutputWarning
        If the model's scores are not what a metric or an explainer takes them for, such as logits for probabilities.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> def model(rows):
    ...     return np.stack([rows.sum(axis=1), -rows.sum(axis=1)], axis=1)
    >>> def sizes(model):
    ...     return lambda inputs, target: np.abs(inputs)
    >>> study = metfa.Study(
    ...     model=model, inputs=np.eye(3) + 1, explainers={"sizes": sizes}, metrics=["mstd"],
    ...     sampling={"normal": metfa.noise.Gaussian(0.1)}, outer={"normal": metfa.noise.Gaussian(0.1)}, version="1",
    ... )
    >>> result = metfa.evaluate(study, store="memory://example")
    >>> len(result.rows), sorted(result.rows[0])[:3]
    (9, ['aggregate', 'clean', 'confidence_level'])
    """
    check_executor(executor, workers)
    return prepare(study, store=store, store_options=store_options).run(executor, workers, progress=progress)


def prepare(study: Study, *, store: str | Path, store_options: dict[str, Any] | None = None) -> Run:
    """A study beside its store: which units are done, which are to do, what they will cost; nothing is measured yet."""
    if not isinstance(study, Study):
        raise TypeError(f"`study` must be a metfa.Study, got {type(study).__name__}")
    kept = UnitStore(store, store_options)
    study.try_noises()
    model = load_model(study)
    units = tuple(units_of(study, model))
    twins = len(units) - len({unit.address for unit in units})
    if twins:
        warn(
            f"{twins} of {len(units)} units are of inputs that are equal to others: measured once, they count as often "
            "as they are listed, and standard errors come out too small",
            EqualInputsWarning,
        )
    return Run(study, model, kept, units, kept.read([unit.address for unit in units]))


@dataclass(frozen=True, eq=False)
class Run:
    """A study that can be run, or go on.

    Attributes
    ----------
    units : tuple of Unit
        All of them, in the order of the tables.
    done : dict of str to dict
        Results that the store holds, by address.
    """

    study: Study = field(repr=False)
    model: Any = field(repr=False)
    store: UnitStore
    units: tuple[Unit, ...] = field(repr=False)
    done: dict[str, dict[str, Any]] = field(repr=False)

    @property
    def todo(self) -> list[Unit]:
        """Units without a result."""
        missing = {unit.address: unit for unit in self.units if unit.address not in self.done}
        return list(missing.values())  # equal inputs have one address

    def estimate(self) -> Estimate:
        """What the units to do will cost, from a short trial."""
        return estimate(Worker(self.study, self.model), self.todo)

    def run(self, executor: str = "local", workers: int = 1, *, progress: bool = False) -> Evaluation:
        """Measure what is to do, see :func:`evaluate`."""
        check_executor(executor, workers)
        todo = self.todo
        if todo:
            self.store.check_writable()
        if executor == "ray":
            with needs_extra("`executor='ray'`", "ray"):
                from metfa.evaluation.on_ray import run_on_ray
            running = run_on_ray(self.study, todo, self.store, workers)
        else:
            running = run_here(self.study, self.model, todo, self.store)
        done = len(self.done)
        with progress_bar(
            done + len(todo), done, shown=progress, unit="unit", doing="evaluating", extra="study"
        ) as bar:
            for unit, failure in running:
                if failure is not None:
                    bar.write(f"failed: {printable(f'{unit.input}, {unit.explainer}: {failure}')}", file=sys.stderr)
                bar.update(1)
        return self._read(todo)

    def _read(self, measured: list[Unit]) -> Evaluation:
        done = self.done | self.store.read([unit.address for unit in measured])
        results = {unit.address: done[unit.address] for unit in self.units if unit.address in done}
        doubted = [doubts for result in results.values() if (doubts := result.get("record", {}).get("doubts"))]
        if doubted:
            warn(f"in {len(doubted)} of {len(self.units)} units {doubted[0][0]}", ModelOutputWarning)
        failed = {unit.address: LOST for unit in self.units if unit.address not in done}
        failures = failed | self.store.read_failures(list(failed))
        if failures:
            first = next(iter(failures.values()))
            warn(
                f"{len(failures)} of {len(self.units)} units failed, the first with {first.get('error')}; see "
                "`failures`",
                FailedUnitsWarning,
            )
        return Evaluation(self.study, self.units, results, failures)


def check_executor(executor: Any, workers: Any) -> None:
    """Raise unless there is such an executor, and it can have so many workers."""
    if executor not in EXECUTORS:
        known = f"{', '.join(EXECUTORS)}, got {executor!r}{did_you_mean(str(executor), EXECUTORS)}"
        raise ValueError(f"`executor` must be one of {known}")
    if positive_int(workers, "workers") > 1 and executor == "local":
        raise ValueError(f"`workers` is {workers}, but `executor='local'` is this process alone: write executor='ray'")
