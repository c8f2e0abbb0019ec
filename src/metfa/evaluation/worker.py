"""A worker: holds the model and its explainers, and measures one unit after the other."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from metfa._arrays import copied, is_array
from metfa._base.provenance import versions
from metfa._base.warnings import DegenerateAttributionsWarning, ModelOutputWarning
from metfa.allocator import freed_memory_kept
from metfa.calls.behind import loaded_torch
from metfa.evaluation._figures import BESIDE_MSTD
from metfa.evaluation._measures import Measure
from metfa.evaluation.aggregates import Aggregate, Aggregates, AggregatesUntil, first, map_of
from metfa.evaluation.inputs import Texts
from metfa.evaluation.over import regions_for
from metfa.evaluation.study import Study
from metfa.evaluation.units import Unit
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample
from metfa.sampling.entries import copy_of
from metfa.sampling.explain import explain
from metfa.sampling.explainer_attributes import known_facts
from metfa.sampling.protocol import takes_rngs
from metfa.sampling.run import Run

__all__ = ["Worker", "load_model"]


def load_model(study: Study) -> Any:
    """The model of a study: a LoadedModel if it has a name, else the study's own object."""
    if not isinstance(study.model, str):
        return study.model
    from metfa import models, text  # which need torch

    return text.load_model(study.model) if study.of == "text" else models.load(study.model)


@dataclass
class Worker:
    """Measures units of one study; made once in each process."""

    study: Study
    model: Any = None
    threads: int | None = None
    explainers: dict[str, Callable[..., Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.model = load_model(self.study) if self.model is None else self.model
        if loaded_torch() is not None and self.study.device != "cpu" and hasattr(self.module, "to"):
            try:
                self.module.to(self.study.device)  # in place, as torch does with modules
            except (RuntimeError, AssertionError) as error:
                reason = str(error).splitlines()[0]
                raise ValueError(f"`device` {self.study.device!r} is not available: {reason}") from error
        self.explainers = {name: _made(name, factory, self.module) for name, factory in self.study.methods.items()}

    @property
    def module(self) -> Any:
        """Inputs -> scores."""
        return self.study.called(self.model)

    def measure(self, unit: Unit) -> dict[str, Any]:
        """The content of a unit's file: rows of figures, and a record of how they were made."""
        clock = time.perf_counter()
        recorded = warnings.catch_warnings(record=True)
        with self._threads_set() as threads, freed_memory_kept(), recorded as caught:
            warnings.simplefilter("always", ModelOutputWarning)
            warnings.simplefilter("ignore", DegenerateAttributionsWarning)  # in the rows, with their reason
            warnings.filterwarnings("ignore", ".* have a clean score below", ModelOutputWarning)  # likewise
            inputs = self.batch(unit)
            regions = regions_for(self.study.parts, inputs[0])
            found = self._rows(unit, inputs, regions)
            rows = [{name: row[name] for name in COLUMNS if row.get(name) is not None} for row in found]
        doubts = sorted({str(warned.message) for warned in caught if warned.category is ModelOutputWarning})
        for warned in caught:
            if warned.category is not ModelOutputWarning:
                warnings.warn_explicit(warned.message, warned.category, warned.filename, warned.lineno)  # as it came
        record = {
            **({"doubts": doubts} if doubts else {}),
            **({} if regions is None else {"over": f"{regions!r} {regions.digest}"}),
            "threads": threads,
            "device": self.study.device,
            **known_facts(self.explainers[unit.explainer]),
            "machine": platform.machine(),
            "versions": versions(),
            "seconds": round(time.perf_counter() - clock, 3),
        }
        return {"input": unit.input, "explainer": unit.explainer, "rows": rows, "record": record}

    @contextmanager
    def _threads_set(self) -> Iterator[int | None]:
        torch = loaded_torch()
        if torch is None:
            yield None
            return
        before = torch.get_num_threads()
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        try:
            yield torch.get_num_threads()
        finally:
            torch.set_num_threads(before)

    def batch(self, unit: Unit) -> Any:
        """The input as a batch of one, on the model's device."""
        if isinstance(self.study.data, Texts):
            return [self.study.data.texts[unit.index]]
        array = self.study.data.load(unit.index, getattr(self.model, "preprocess", None))
        if not is_array(array):
            raise TypeError(f"input {unit.input} is no array but {type(array).__name__}")
        if self.study.data.digest(unit.index, array) != unit.digest:
            raise ValueError(
                f"input {unit.input} is another one than before: give inputs that are the same each time that they are "
                "loaded, without random crops or flips, and leave their files as they are"
            )
        batch: Any = copied(array)[None]  # the caller's own, mapped from a file or shared by Ray
        return batch.to(self.study.device) if hasattr(batch, "to") else batch

    def _rows(self, unit: Unit, inputs: Any, regions: Regions | None) -> Iterator[dict[str, Any]]:
        study, explainer = self.study, self.explainers[unit.explainer]
        target, held = study.data.targets[unit.index], study.held

        def sampled(explained: Any, noise: Any, n: Any, over: Any = None, goal: Any = target) -> AttributionSample:
            return explain(
                explained, inputs, goal, noise=held(noise), n_samples=n, over=over, predict=self.module,
                batch_size=study.batch_size, rng=study.seed, run=Run(input_names=[unit.digest]),
            )  # fmt: skip

        most = study.rule or study.most
        samples = {name: sampled(explainer, noise, most, regions) for name, noise in study.sampled.items()}
        clean = next(iter(samples.values())) if samples else sampled(explainer, _unchanged, 1, regions)
        maps = {Aggregate("vanilla"): clean.vanilla} if "vanilla" in study.maps else {}
        for name, sample in samples.items():
            maps |= {entry: map_of(sample, entry) for entry in self._wanted(name)}
        goal = list(clean.target)
        for measure in study.measures:
            if measure.of == "maps":
                for entry, map_ in maps.items():
                    of_its_own = copy_of(inputs), copy_of(map_)  # a metric of others may write to them
                    rows = measure.rows(measure.called(self.module), *of_its_own, goal, **measure.own_settings)
                    yield from _about(rows, entry)
            elif measure.of == "maps under noise":
                for outer, noise in study.outer_noises.items():
                    for entry, map_ in maps.items() if noise is not None else ():
                        rows = measure.rows(
                            measure.called(self.module), inputs, map_, goal, noise=held(noise), rng=study.seed,
                            n_outer=study.n_outer, **measure.own_settings,
                        )  # fmt: skip
                        yield from _about(rows, entry, outer)
            elif measure.of == "samples":
                for name, sample in samples.items():
                    for n in study.sizes:
                        for level in study.levels if measure.by_level else (None,):
                            part, called = first(sample, n), measure.called(self.module)
                            rows = measure.rows(called, inputs, part, level, **measure.own_settings)
                            yield from _about(rows, Aggregate("samples", name, n, level))
        of_samples = [measure for measure in study.measures if measure.under_outer_noise]
        for outer, noise in study.outer_noises.items() if of_samples else ():
            for entry, sample in self._under(
            explainer, noise, regions, lambda e, n, over: sampled(e, n, study.n_outer, over, goal)
        ):  # fmt: skip
                for measure in of_samples:
                    if measure.of == "outer samples" or entry.aggregate == "vanilla":
                        rows = [_fixed(measure)] if sample is None else measure.rows(sample, **measure.settings)
                        yield from _about(rows, entry, outer)

    def _wanted(self, name: str) -> list[Aggregate]:
        study = self.study
        wanted = []
        for n in study.sizes:
            if "mean" in study.maps:
                wanted.append(Aggregate("mean", name, n))
            if "smoothed" in study.maps:
                wanted += [Aggregate("smoothed", name, n, level) for level in study.levels]
        return wanted

    def _under(
        self, explainer: Any, noise: Any, regions: Any, sampled: Callable[[Any, Any, Any], AttributionSample]
    ) -> Iterator[Any]:
        """The sample of every map under an outer noise; maps of one sampling noise share their inner samples.

        None instead of a sample if nothing changes the map.
        """
        if "vanilla" in self.study.maps:
            fixed = noise is None and not takes_rngs(explainer)
            yield Aggregate("vanilla"), None if fixed else sampled(explainer, noise, regions)
        for name, inner in self.study.noises.items():
            wanted = tuple(self._wanted(name))
            if not wanted:
                continue
            settings = {"noise": self.study.held(inner), "batch_size": self.study.batch_size, "wanted": wanted,
                        "over": regions}  # fmt: skip
            rule = self.study.rule
            if rule is None:
                both = Aggregates(explainer, n_samples=self.study.most, **settings)
            else:
                both = AggregatesUntil(explainer, rule=rule, **settings)
            sample = sampled(both, noise, None)  # its maps are pooled already
            for place, entry in enumerate(wanted):
                yield entry, replace(sample, values=sample.values[:, :, place], vanilla=sample.vanilla[:, place])


def _made(name: str, factory: Callable[[Any], Any], module: Any) -> Callable[..., Any]:
    """The explainer that a function of the model returns."""
    try:
        explainer = factory(module)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`explainers[{name!r}]` could not be made of the model: {error}") from error
    if not callable(explainer):
        raise TypeError(f"`explainers[{name!r}]` must return an explainer of the model, got {type(explainer).__name__}")
    return explainer


def _unchanged(x: Any, rng: np.random.Generator) -> Any:  # noqa: ARG001 - a noise takes a generator
    return x


def _fixed(measure: Measure) -> dict[str, Any]:
    return {"metric": measure.name, "reason": "no outer noise, and no randomness of the explainer's own"}


def _about(rows: list[dict[str, Any]], entry: Aggregate, outer: str | None = None) -> list[dict[str, Any]]:
    return [{**entry._asdict(), "outer": outer, **row} for row in rows]


COLUMNS = (
    "metric", "aggregate", "sampling", "outer", "n_samples", "confidence_level", "score", "raw", "clean",
    "mean_of_ratios", "median_of_ratios", *BESIDE_MSTD, "reason",
)  # fmt: skip
