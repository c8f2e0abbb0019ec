"""Actors of Ray, on this machine or a cluster, that measure units and write them into the shared store."""

from __future__ import annotations

import logging
import math
import os
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ray
from ray.exceptions import RayError, RaySystemError, RayTaskError

from metfa._base.provenance import printable, versions
from metfa.allocator import keep_freed_memory
from metfa.evaluation.executors import failure_of, measure_and_keep
from metfa.evaluation.store import UnitStore
from metfa.evaluation.study import Study
from metfa.evaluation.units import Unit
from metfa.evaluation.worker import Worker

__all__ = ["run_on_ray"]

DEATHS = 3  # after so many dead workers, their unit counts as the cause; after so many failed starts, Ray is given up
IN_ADDRESSES = {"metfa", "numpy", "torch"}
USAGE = "RAY_USAGE_STATS_ENABLED"
PATIENCE = 300.0  # seconds without a node that could hold a worker; a cluster that grows on demand takes minutes


def run_on_ray(
    study: Study, units: Sequence[Unit], store: UnitStore, workers: int, *, threads: int = 1
) -> Iterator[tuple[Unit, str | None]]:
    """Units as they finish, in no fixed order; each comes with None or the message of its failure.

    An actor holds the model and measures one unit at a time. It writes the result itself and returns only the message
    of a failure. If an actor or its node dies, a new actor replaces it and its unit is measured again.

    Parameters
    ----------
    study : Study
        Sent to every node once, with its model unless the model is a name; its arrays are shared, read-only.
    units : sequence of Unit
        Units to measure.
    store : UnitStore
        Must be the same place for every node.
    workers : int
        Number of actors. With ``device="cuda"`` they share the GPUs evenly.
    threads : int
        Threads of torch, and CPUs, for each actor. The default is Ray's, 1, so that figures do not depend on the size
        of a node or on the number of workers.

    Raises
    ------
    ValueError
        If the store is in the memory of this process, or the device is one named GPU.
    TypeError
        If the study cannot be pickled.
    RuntimeError
        If no worker can be started.
    """
    _check(study, store)
    if not units:
        return
    workers = min(workers, len(units))
    with _connected(workers * threads):
        room = {"num_cpus": threads, "num_gpus": _gpus_each(study.device, workers)}
        yield from _Crew(study, store, threads, room).measured(units, workers)


@ray.remote
class _Actor:
    """A separate process with a worker."""

    def load(self, study: Study, store: UnitStore, threads: int, expected: dict[str, str]) -> None:
        """Load the model; this is not a constructor, because Ray treats an error there as the death of the actor."""
        keep_freed_memory()
        self.worker, self.store = Worker(study, threads=threads), store
        found = versions()
        for name in IN_ADDRESSES & expected.keys() & found.keys():
            if found[name] != expected[name]:
                raise RuntimeError(
                    f"a node of Ray has {name} {found[name]}, but the units were addressed with {expected[name]}: "
                    "install the same versions on every node"
                )

    def measure(self, unit: Unit) -> str | None:
        """Measure one unit into the store."""
        return measure_and_keep(self.worker, unit, self.store)


class _Crew:
    """Actors and the unit that each measures; None while an actor starts and loads the model."""

    def __init__(self, study: Study, store: UnitStore, threads: int, room: dict[str, float]) -> None:
        self.store, self.room, self.to_load = store, room, (_sent(study), store, threads, versions())
        self.doing: dict[Any, tuple[Any, Unit | None]] = {}  # keys are references to the answers
        self.deaths: Counter[str] = Counter()  # dead workers, for each address of the unit that they measured
        self.failed_starts = 0  # in a row

    def measured(self, units: Sequence[Unit], workers: int) -> Iterator[tuple[Unit, str | None]]:
        """Keep the actors busy, and replace those that die."""
        todo = deque(units)
        try:
            for _ in range(workers):
                self._start()
            while todo or self._busy:
                answer = self._next_answer()
                actor, unit = self.doing.pop(answer)
                try:
                    failure: str | None = ray.get(answer)
                except RayTaskError as error:  # from loading or the store, not the fault of a unit
                    raise _in_our_words(error.cause) from error
                except RayError as death:
                    ray.kill(actor)  # it may be alive but out of reach
                    failure = self._after(death, unit)
                    if unit and not failure:
                        todo.append(unit)
                        unit = None
                    if todo and (self.failed_starts < DEATHS or not self.doing):
                        self._start()
                else:
                    self.failed_starts = 0
                    if todo:
                        self._give(actor, todo.popleft())
                    else:
                        ray.kill(actor)  # frees its memory and GPU while others finish
                if unit:
                    yield unit, failure
        finally:
            for actor, _ in self.doing.values():
                ray.kill(actor)

    @property
    def _busy(self) -> bool:
        return any(unit for _, unit in self.doing.values())

    def _start(self) -> None:
        actor: Any = _Actor.options(**self.room).remote()  # pyright: ignore[reportFunctionMemberAccess]
        self.doing[actor.load.remote(*self.to_load)] = actor, None

    def _give(self, actor: Any, unit: Unit) -> None:
        self.doing[actor.measure.remote(unit)] = actor, unit

    def _next_answer(self) -> Any:
        while True:
            answers, _ = ray.wait(list(self.doing), num_returns=1, timeout=PATIENCE)
            if answers:
                return answers[0]
            if not self._busy:
                _check_room(self.room)

    def _after(self, death: RayError, unit: Unit | None) -> str | None:
        """Message of the failure if a unit had too many dead workers; raises if no worker is left and none starts."""
        if unit is None:
            self.failed_starts += 1
            if not self.doing and self.failed_starts >= DEATHS:
                raise RuntimeError(
                    f"no worker can be started: {self.failed_starts} died one after the other while they loaded the "
                    "model"
                ) from death
            return None
        self.deaths[unit.address] += 1
        if self.deaths[unit.address] < DEATHS:
            return None
        error = RuntimeError(f"{DEATHS} workers died while they measured this unit")
        error.__cause__ = death
        failure = failure_of(unit, error)
        self.store.write_failure(unit.address, failure)
        return failure["error"]


def _check(study: Study, store: UnitStore) -> None:
    if "memory" in store.fs.protocol:
        raise ValueError(
            f"`store` is {store.url!r}, which only this process can read: with executor='ray' give a folder or "
            "URL that every node can reach"
        )
    if study.device.startswith("cuda:"):
        raise ValueError(f"`device` is {study.device!r}, but Ray gives each worker its GPU: write device='cuda'")


@contextmanager
def _connected(cpus: int) -> Iterator[None]:
    """The cluster of this process, else the one in RAY_ADDRESS, else a new one on this machine."""
    if ray.is_initialized():
        yield
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if os.environ.get("RAY_ADDRESS"):
        ray.init(**quiet)
    else:
        with _without_usage_statistics():
            ray.init(address="local", num_cpus=cpus, include_dashboard=False, **quiet)
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _without_usage_statistics() -> Iterator[None]:
    """Turn off Ray's usage reports, which must happen before Ray starts."""
    before = os.environ.get(USAGE)
    os.environ[USAGE] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[USAGE]
        else:
            os.environ[USAGE] = before


def _gpus_each(device: str, workers: int) -> float:
    """Share of a GPU for each worker, so that all workers fit; rounded down to Ray's smallest share."""
    if not device.startswith("cuda"):
        return 0
    gpus = int(ray.cluster_resources().get("GPU", 0))
    if gpus == 0:
        raise ValueError(f"`device` is {device!r}, but Ray finds no GPU in its cluster")
    return 10_000 // math.ceil(workers / gpus) / 10_000


def _sent(study: Study) -> Any:
    """Reference to the study; each node fetches it once."""
    try:
        return ray.put(study)
    except TypeError as error:
        reason = printable(str(error.__cause__ or error).partition("\n")[0])  # the rest is long: it repeats the study
        raise TypeError(f"`study` must be picklable to be sent to the workers of Ray: {reason}") from error


def _in_our_words(error: Exception) -> Exception:
    if not isinstance(error, RaySystemError):
        return error
    reason = printable(str(error).partition("\n")[0])  # the rest is the traceback
    return ImportError(f"a worker of Ray cannot read the study; every node must have its code: {reason}")


def _check_room(room: dict[str, float]) -> None:
    needed = {"CPU": room["num_cpus"], "GPU": room["num_gpus"]}
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(all(node.get(name, 0) >= amount for name, amount in needed.items()) for node in nodes):
        raise RuntimeError(
            f"no worker can be started: each takes {needed['CPU']:g} CPU and {needed['GPU']:g} GPU, more than any of "
            f"the {len(nodes)} living nodes has"
        )
