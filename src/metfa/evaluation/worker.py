"""A worker: holds the model and its explainers, and measures one unit after the other."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from metfa import stats
from metfa._arrays import is_array, namespace
from metfa._base.provenance import versions
from metfa._base.warnings import DegenerateAttributionsWarning, ModelOutputWarning
from metfa.calls.behind import loaded_torch
from metfa.evaluation._measures import BESIDE_MSTD, Measure
from metfa.evaluation.inputs import Texts
from metfa.evaluation.study import Study
from metfa.evaluation.units import Unit
from metfa.results.sample import AttributionSample
from metfa.results.until import Until
from metfa.sampling.explain import explain
from metfa.sampling.protocol import explained_model, takes_rngs
from metfa.sampling.run import Run
from metfa.sampling.smoothed import SampledExplainer
from metfa.sampling.streams import root_entropy

__all__ = ["Worker", "load_model"]


class Aggregate(NamedTuple):
    """Which map is measured: from which samples it is made, and how."""

    aggregate: str
    sampling: str | None = None
    n_samples: int | None = None
    confidence_level: float | None = None

    @property
    def level(self) -> float:
        """Level of a smoothed map; only these have one."""
        assert self.confidence_level is not None
        return self.confidence_level


@dataclass(frozen=True)
class Aggregates(SampledExplainer):
    """All maps that a study makes from the same samples, side by side: (batch, maps, *features)."""

    wanted: tuple[Aggregate, ...] = field(default=(), kw_only=True)

    def summarised(self, samples: Any) -> Any:
        xp = namespace(samples)
        maps = []
        for entry in self.wanted:
            part = samples[:, : entry.n_samples]
            if entry.aggregate == "mean":
                maps.append(xp.mean(part, axis=1))
            else:
                maps.append(stats.smoothed_median(part, entry.level, axis=1))
        return xp.stack(maps, axis=1)


@dataclass(frozen=True)
class AggregatesUntil:
    """The same, but for each row from as many samples as a rule takes."""

    explainer: Callable[..., Any]
    noise: Any = field(kw_only=True)
    rule: Until = field(kw_only=True)
    batch_size: int = field(kw_only=True)
    wanted: tuple[Aggregate, ...] = field(kw_only=True)

    rows_independent = True

    @property
    def model(self) -> Any:
        """Model of the inner explainer; None if it is unknown."""
        return explained_model(self.explainer)

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Maps of a batch, row by row."""
        return np.concatenate([
            self._of_row(inputs[row : row + 1], None if target is None else target[row : row + 1], rng)
            for row, rng in enumerate(rngs)
        ])  # fmt: skip

    def _of_row(self, inputs: Any, target: Any, rng: np.random.Generator) -> np.ndarray:
        sample = explain(
            self.explainer, inputs, target, noise=self.noise, n_samples=self.rule, batch_size=self.batch_size,
            rng=root_entropy(rng), run=Run(input_names=[""]),
        )  # fmt: skip
        return np.stack([_map(sample, entry) for entry in self.wanted], axis=1)


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
        with self._threads_set() as threads, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ModelOutputWarning)
            warnings.simplefilter("ignore", DegenerateAttributionsWarning)  # in the rows, with their reason
            warnings.filterwarnings("ignore", ".* have a clean score below", ModelOutputWarning)  # likewise
            rows = [{name: row[name] for name in COLUMNS if row.get(name) is not None} for row in self._rows(unit)]
        doubts = sorted({str(warned.message) for warned in caught if warned.category is ModelOutputWarning})
        for warned in caught:
            if warned.category is not ModelOutputWarning:
                warnings.warn_explicit(warned.message, warned.category, warned.filename, warned.lineno)  # as it came
        record = {
            **({"doubts": doubts} if doubts else {}),
            "threads": threads,
            "device": self.study.device,
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
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            array = array.copy()  # mapped from a file or shared by Ray; torch.from_numpy and others need a writable one
        batch: Any = array[None]
        return batch.to(self.study.device) if hasattr(batch, "to") else batch

    def _rows(self, unit: Unit) -> Iterator[dict[str, Any]]:
        study, inputs, explainer = self.study, self.batch(unit), self.explainers[unit.explainer]
        target, held = study.data.targets[unit.index], study.held

        def sampled(explained: Any, noise: Any, n: Any, goal: Any = target) -> AttributionSample:
            return explain(
                explained, inputs, goal, noise=held(noise), n_samples=n, predict=self.module,
                batch_size=study.batch_size, rng=study.seed, run=Run(input_names=[unit.digest]),
            )  # fmt: skip

        most = study.rule or study.most
        samples = {name: sampled(explainer, noise, most) for name, noise in study.sampled.items()}
        clean = next(iter(samples.values())) if samples else sampled(explainer, _unchanged, 1)
        maps = {Aggregate("vanilla"): clean.vanilla} if "vanilla" in study.maps else {}
        for name, sample in samples.items():
            maps |= {entry: _map(sample, entry) for entry in self._wanted(name)}
        goal = list(clean.target)
        for measure in study.measures:
            if measure.of == "maps":
                for entry, map_ in maps.items():
                    rows = measure.rows(measure.called(self.module), inputs, map_, goal, **measure.own_settings)
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
                            part, called = _first(sample, n), measure.called(self.module)
                            rows = measure.rows(called, inputs, part, level, **measure.own_settings)
                            yield from _about(rows, Aggregate("samples", name, n, level))
        of_samples = [measure for measure in study.measures if measure.under_outer_noise]
        for outer, noise in study.outer_noises.items() if of_samples else ():
            for entry, sample in self._under(explainer, noise, lambda e, n: sampled(e, n, study.n_outer, goal)):
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

    def _under(self, explainer: Any, noise: Any, sampled: Callable[[Any, Any], AttributionSample]) -> Iterator[Any]:
        """The sample of every map under an outer noise; maps of one sampling noise share their inner samples.

        None instead of a sample if nothing changes the map.
        """
        if "vanilla" in self.study.maps:
            fixed = noise is None and not takes_rngs(explainer)
            yield Aggregate("vanilla"), None if fixed else sampled(explainer, noise)
        for name, inner in self.study.noises.items():
            wanted = tuple(self._wanted(name))
            if not wanted:
                continue
            settings = {"noise": self.study.held(inner), "batch_size": self.study.batch_size, "wanted": wanted}
            rule = self.study.rule
            if rule is None:
                both = Aggregates(explainer, n_samples=self.study.most, **settings)
            else:
                both = AggregatesUntil(explainer, rule=rule, **settings)
            sample = sampled(both, noise)
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


def _first(sample: AttributionSample, n: int | None) -> AttributionSample:
    """The first n samples; None: all that a rule took. A study's numbers are fixed beforehand: none is a look."""
    if n is None:
        return sample
    predictions = None if sample.predictions is None else sample.predictions[:n]
    made, ids = {**sample.provenance, "looks": []}, sample.sample_ids[:n]
    return replace(sample, values=sample.values[:n], predictions=predictions, sample_ids=ids, provenance=made)


def _map(sample: AttributionSample, entry: Aggregate) -> np.ndarray:
    part = _first(sample, entry.n_samples)
    return part.mean() if entry.aggregate == "mean" else part.smoothed(entry.level)


def _fixed(measure: Measure) -> dict[str, Any]:
    return {"metric": measure.name, "reason": "no outer noise, and no randomness of the explainer's own"}


def _about(rows: list[dict[str, Any]], entry: Aggregate, outer: str | None = None) -> list[dict[str, Any]]:
    return [{**entry._asdict(), "outer": outer, **row} for row in rows]


COLUMNS = (
    "metric", "aggregate", "sampling", "outer", "n_samples", "confidence_level", "score", "raw", "clean",
    "mean_of_ratios", "median_of_ratios", *BESIDE_MSTD, "reason",
)  # fmt: skip
