"""`evaluate`: measure the units of a study that are not in the store yet, and read all of them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from metfa._base.lazy import needs_extra
from metfa._base.progress import progress_bar
from metfa._base.provenance import printable
from metfa._base.validation import check_flag, one_of, positive_int
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
LOST = {"error": "it was measured, but the store holds neither its result nor its failure"}


def evaluate(
    study: Study,
    *,
    store: str | Path,
    store_options: dict[str, Any] | None = None,
    executor: Literal["local", "ray"] = "local",
    workers: int = 1,
    progress: bool = False,
) -> Evaluation:
    """Measure explainers over a data set; units that are in the store already are not computed again.

    A study is cut into units, one input and one explainer each. The result of a unit is one file in the store. Its
    address is a hash of everything that decides the figures. So a run that was killed continues where it stopped, a
    changed study never uses old figures, and an extended study keeps the figures that it shares. A unit that fails is
    recorded, and the others are still measured; the next call tries it again.

    Parameters
    ----------
    study : Study
        The study to measure.
    store : path or URL
        A folder, or a URL of fsspec such as ``s3://bucket/folder``.
    store_options : dict, optional
        Passed to fsspec.
    executor : {"local", "ray"}
        This process, or actors of Ray (``pip install 'metfa[ray]'``). Ray uses the cluster that this process is
        connected to, else the one in ``RAY_ADDRESS``, else this machine.
    workers : int
        Number of actors of Ray.
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
        If some inputs are equal.
    FailedUnitsWarning
        If units failed; `Evaluation.failures` holds the reasons.
    ModelOutputWarning
        If the model's scores are not what a metric or an explainer expects, such as logits in place of probabilities.

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
    check_flag(progress, "progress")
    return prepare(study, store=store, store_options=store_options).run(executor, workers, progress=progress)


def prepare(study: Study, *, store: str | Path, store_options: dict[str, Any] | None = None) -> Run:
    """Compare a study with its store: the `Run` knows the units that are done and to do; nothing is measured yet."""
    if not isinstance(study, Study):
        raise TypeError(f"`study` must be a metfa.Study, got {type(study).__name__}")
    kept = UnitStore(store, store_options)
    study.try_on_first()
    model = load_model(study)
    units = tuple(units_of(study, model))
    twins = len(units) - len({unit.address for unit in units})
    if twins:
        warn(
            f"{twins} of {len(units)} units have inputs that are equal to others: each is measured once but counts as "
            "often as it is listed, so standard errors are too small",
            EqualInputsWarning,
        )
    return Run(study, model, kept, units, kept.read([unit.address for unit in units]))


@dataclass(frozen=True, eq=False)
class Run:
    """A study that can be started or continued.

    Attributes
    ----------
    units : tuple of Unit
        All units, in the order of the tables.
    done : dict of str to dict
        Results in the store, by address.
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
        return list(missing.values())  # equal inputs share one address

    def estimate(self) -> Estimate:
        """The cost of the units to do, estimated from a short trial."""
        return estimate(Worker(self.study, self.model), self.todo)

    def run(self, executor: str = "local", workers: int = 1, *, progress: bool = False) -> Evaluation:
        """Measure the units to do, see :func:`evaluate`."""
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
    """Raise unless the executor exists and can have this number of workers."""
    one_of(executor, "executor", EXECUTORS)
    if positive_int(workers, "workers") > 1 and executor == "local":
        raise ValueError(f"`workers` is {workers}, but `executor='local'` has one: write executor='ray'")
