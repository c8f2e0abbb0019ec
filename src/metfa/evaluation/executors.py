"""The executors that run the units: this process, or the actors of Ray."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from metfa._base.provenance import printable
from metfa.evaluation.store import UnitStore
from metfa.evaluation.study import Study
from metfa.evaluation.units import Unit
from metfa.evaluation.worker import Worker

__all__ = ["failure_of", "measure_and_keep", "run_here"]


def run_here(study: Study, model: Any, units: Sequence[Unit], store: UnitStore) -> Iterator[tuple[Unit, str | None]]:
    """Measure units one after the other; each comes with None or the message of its failure."""
    worker = Worker(study, model)
    for unit in units:
        yield unit, measure_and_keep(worker, unit, store)


def measure_and_keep(worker: Worker, unit: Unit, store: UnitStore) -> str | None:
    """Measure a unit and write its result or its failure; return the message of the failure, or None.

    Exceptions of the store itself are raised: they are not failures of the unit.
    """
    try:
        result = worker.measure(unit)
    except Exception as error:  # a unit may fail in any way: the user's model and explainers run in it
        failure = failure_of(unit, error)
        store.write_failure(unit.address, failure)
        return failure["error"]
    store.write(unit.address, result)
    store.forget_failure(unit.address)
    return None


def failure_of(unit: Unit, error: BaseException) -> dict[str, Any]:
    """The record of a failure."""
    return {
        "input": unit.input,
        "explainer": unit.explainer,
        "error": printable(f"{type(error).__name__}: {error}")[:500],
        "traceback": "".join(traceback.format_exception(error))[-20_000:],
    }
