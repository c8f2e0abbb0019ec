"""One explainer on its inputs: prepared, advanced to a number of samples, and turned into a result."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from itertools import islice
from typing import Any

import numpy as np

from metfa._arrays import device_of
from metfa._base.percents import counted
from metfa._base.provenance import versions
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.calls.answers import chosen, is_regression
from metfa.calls.behind import loaded_torch
from metfa.calls.targets import target_indices
from metfa.noise.pixel_space import gaussian_std
from metfa.results.one_map import of_one_map
from metfa.results.pooling import facts_of, pooled_maps, terms_of
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample
from metfa.results.stopping import Stopping
from metfa.sampling.clean_maps import clean_maps
from metfa.sampling.explainer_attributes import (
    known_facts,
    known_inputs_within,
    known_notes,
    known_signed,
    known_terms,
    known_unit,
    maps_are_draws,
)
from metfa.sampling.first_copy import FirstCopy, counted_apart
from metfa.sampling.loop import Explained
from metfa.sampling.part_names import layout_of
from metfa.sampling.request import Request, fitting_names
from metfa.sampling.store import Sink
from metfa.sampling.unmoved import alike, unchanged, unchanging, undrawn, warn_of_undrawn, warn_of_unmoved
from metfa.sampling.what_rules_see import Seen, SeenMaps, SeenParts, SeenRegions

__all__ = ["Sampler"]


class Sampler:
    r"""One explainer on its inputs: targets, clean scores and clean maps are known, and samples come as they are asked.

    The caller holds the sink, and leaves the models as found.

    Parameters
    ----------
    request : Request
    sink : Sink
        Where the samples are kept; entered.
    target : optional
        Instead of the request's.

    Attributes
    ----------
    targets : tuple
        One for each input.
    vanilla : ndarray, (batch, \*features)
        Clean maps, pooled where the request has regions.
    scores : ndarray or None, (batch, classes)
        Clean scores.
    taken, made : int
        Number of samples of each input, and of the maps that this call made for them.
    kept_layout : str or None
        Memory layout in which earlier samples of the same run were made, see `metfa.calls.layouts`.
    first_copy : FirstCopy
        What the first noisy copy changes.
    unmoved : list of int
        Rows whose noisy copies are all the same so far, or for which nothing is drawn, and that have one map.
    layout : Layout or None
        How the maps of several inputs lie in one row; None where there is one map.
    """

    request: Request
    sink: Sink
    targets: tuple[Any, ...]
    scores: Any
    vanilla: Any
    unmoved: list[int]
    made: int
    taken: int

    def __init__(self, request: Request, sink: Sink, target: Any = None) -> None:
        self._started, clock = datetime.now(timezone.utc), time.perf_counter()
        self.request, self.sink, self.kept_layout = request, sink, sink.laid_out
        first = list(islice(request.jobs(0, request.most, sink.is_done), request.batch_size))
        target = request.target if target is None else target
        loop, scores = request.loop(sink.root).ready(target, request.predict, first)
        self._of_outputs = scores is not None and scores.ndim == 2 and is_regression(request.predict)
        if self._of_outputs:  # the chosen one is the score; none is predicted, so that no noisy copy can change it
            scores, loop = chosen(scores, target_indices(loop.targets)), replace(loop, predict=None)
        self._looks = replace(loop, noise=counted_apart(loop.noise))
        self.first_copy = FirstCopy.of(self._looks, request.ids[0], request.run.first_sample)
        clean = clean_maps(loop)
        maps, self.layout = clean.maps, clean.layout
        self._loop = replace(loop, features=self.layout or maps.shape[1:], regions=request.over)
        self.targets = tuple(loop.targets)
        self.scores = clean.scores if scores is None else scores
        self._of_classes = _facts_of_classes(request.run.class_names, self.scores)
        self.vanilla, self._terms = maps, known_terms(request.explainer)
        self._signed, self._unit = known_signed(request.explainer), known_unit(request.explainer)
        if self.layout is not None:
            self.layout = layout_of(request, self.layout, maps, scores)
        if request.over is not None:
            request.over.check_fits(maps.shape[1:], len(maps))
            self.vanilla, self._terms = pooled_maps(maps, request.over), terms_of(request.over, maps)
            self._signed, self._unit = facts_of(request.over, maps, self._signed, self._unit)
        self._of_draws = maps_are_draws(request.explainer)
        self._facts_of_calls = known_facts(request.explainer)
        self._names = None
        if self.layout is None:
            required = request.run.feature_names is not None
            self._names = fitting_names(request.feature_names, self.vanilla.shape[1:], required=required)
        self.taken = self.made = 0
        self._constant: Counter[Any] = Counter()
        self._alike, self.unmoved = list(range(len(request.rows))), []
        self._finished: AttributionSample | None = None
        self._seconds = time.perf_counter() - clock

    def seen(self, over: Regions | None) -> Seen:
        """What a rule looks at: the samples, in their parts, or the scores of the rule's regions `over` in them."""
        if over is not None and self.layout is None:
            return SeenRegions(self.values, self.vanilla, self._unit, over)
        given = None if self._terms is None else self._terms.unit
        unit = self._unit if given is None else given
        if self.layout is not None:
            return SeenParts(self.values, self.vanilla, unit, self.layout)
        if known_inputs_within(self.request.explainer):
            return SeenMaps(lambda start, stop: self.values(start, stop)[:, 0], self.vanilla[0], unit)
        return SeenMaps(self.values, self.vanilla, unit)

    def open(self) -> AttributionSample | None:
        """Prepare the sink; returns the result if the call was finished before."""
        self.first_copy.warn()
        self.sink.laid_out = self._facts_of_calls.get("layout")
        self.sink.first_copy = self.first_copy.facts
        found = self.sink.open(self.request.most, self.vanilla, list(self.targets), self.layout)
        if found is not None:
            made = {**found.provenance, **self._of_classes}
            self._finished = replace(found, feature_names=self._names, provenance=made)
        return self._finished

    def values(self, start: int, stop: int) -> np.ndarray:
        r"""Samples (stop - start, batch, \*features) of those taken."""
        return self.sink.values(start, stop) if self._finished is None else self._finished.values[start:stop]

    @contextmanager
    def advancing(self, upto: int) -> Iterator[Iterator[int]]:
        """Make the samples up to this number; the inner iterator makes a chunk, and returns its number of maps."""
        self.sink.make_room(upto)
        jobs = list(self.request.jobs(self.taken, upto, self.sink.is_done))
        with self._loop.over(jobs) as chunks:
            yield self._written(chunks)
        first = self.request.run.first_sample
        if self._looks.noise is None:
            same = [] if self._of_draws else of_one_map(self._alike, self.values(0, upto), noisy=False)
            self.unmoved = undrawn(self._looks, same, first)
            self._alike = [row for row in self._alike if row not in same or row in self.unmoved]
        else:
            self._alike = alike(self._looks, self._alike, range(first + max(1, self.taken), first + upto), first)
            same = of_one_map(self._alike, self.values(0, upto), noisy=True)
            self.unmoved = unchanging(self._looks, same, first)
        self.made, self.taken = self.made + len(jobs), upto

    @property
    def _of_one_number(self) -> bool:
        """Whether the model gives a column of one number a row, which is no class of its own unless it has a name."""
        shape = () if self.scores is None else self.scores.shape
        return len(shape) == 2 and shape[1] == 1 and self.request.run.class_names is None

    @property
    def _n_made(self) -> int:
        """Maps that were made, those of a first batch included that a rule did not need."""
        first = 0 if self._loop.first is None else len(self._loop.first.jobs)
        return self.made + max(0, first - self.taken * len(self.request.rows))

    def _written(self, chunks: Iterable[Explained]) -> Iterator[int]:
        clock = time.perf_counter()
        for chunk in chunks:
            scores = None if self._of_outputs else chunk.class_scores
            places = [(job.sample_id - self.request.run.first_sample, job.row) for job in chunk.jobs]
            classes = None if scores is None or scores.shape[1] < 2 else scores.argmax(1)
            self.sink.write(places, chunk.maps, classes)
            self._constant += chunk.constant
            self._seconds += time.perf_counter() - clock
            yield len(places)
            clock = time.perf_counter()  # what others did meanwhile does not count

    def warn(self) -> None:
        """Warn of maps that say nothing."""
        shape = self.taken, len(self.request.rows)
        if self._looks.noise is None:
            warn_of_undrawn(self.unmoved, shape)
        else:
            still = unchanged if self.taken == 1 else unchanging
            warn_of_unmoved(still(self._looks, self._alike, self.request.run.first_sample), self.unmoved, shape)
        for part, count in ({} if self._of_draws else self._constant).items():
            of = "" if part is None else f" of part {part!r}"
            message = f"{count} of {self.made} maps{of} are constant and say nothing about their features"
            if count:
                warn(message, DegenerateAttributionsWarning)

    def sample(self, stopping: Stopping | None, of_parts: Sequence[Stopping] = ()) -> AttributionSample:
        """The result with all samples taken; the sink's last act. `of_parts`: how sampling ended for each part."""
        if self._finished is not None:
            return self._finished
        if self.layout is not None and of_parts:
            self.layout = self.layout.with_stopping(of_parts)
        return self.sink.result(self.taken, stopping=stopping, **self._facts(0, self.taken))

    def part(self, start: int, stop: int) -> AttributionSample:
        """A result with some of the samples taken, for a look at them."""
        facts = self._facts(start, stop)
        return AttributionSample(values=self.values(start, stop), predictions=None, stopping=None, **facts)

    def clean(self) -> AttributionSample:
        """A result whose only sample is the clean maps: what can be known of it before there is a sample."""
        return AttributionSample(
            values=self.vanilla[None], predictions=None, stopping=None, **self._facts(0, 1)
        )  # fmt: skip

    def _facts(self, start: int, stop: int) -> dict[str, Any]:
        """Fields of a result with the samples from `start` to `stop`."""
        request, first = self.request, self.request.run.first_sample
        notes = [*known_notes(request.explainer), *known_notes(request.noise)]
        return {
            "inputs": request.rows.host,
            "target": self.targets,
            "vanilla": self.vanilla,
            "scores": self.scores,
            "sample_ids": tuple(range(first + start, first + stop)),
            "input_names": request.ids,
            "feature_names": self._names,
            "default_terms": self._terms,
            "regions": request.over,
            "provenance": {
                **request.settings,
                "rng": hex(self.sink.root),
                "usual_threshold": self.sink.usual,
                "n_samples": stop - start,
                "signed": self._signed,
                "unmoved": [request.ids[row] for row in self.unmoved],
                "first_copy": self.first_copy.facts,
                "unit": self._unit,
                "gaussian_std": gaussian_std(request.noise),
                "batch_size": self._loop.batch_size,
                **self._facts_of_calls,
                "device": None if request.rows.array is None else str(device_of(request.rows.array)),
                "started": self._started.isoformat(timespec="seconds"),
                "seconds": round(self._seconds, 3),
                "maps_made": self._n_made,  # in these seconds, without those of an interrupted run
                **({"notes": notes} if notes else {}),
                **({"of_outputs": True} if self._of_outputs or self._of_one_number else {}),
                **self._of_classes,
                "versions": versions(),
                **({} if self.layout is None else {"parts": self.layout.written()}),
                **_threads(),
            },
        }


def _facts_of_classes(names: Sequence[str] | None, scores: Any) -> dict[str, Any]:
    """What a result says of the names of its classes; ValueError if there are fewer than classes."""
    if names is None:
        return {}
    if scores is not None and scores.ndim == 2 and len(names) < scores.shape[1]:
        given = counted(len(names), "name")
        raise ValueError(f"`class_names` has {given}, but the model gives scores of {scores.shape[1]:,} classes")
    return {"class_names": list(names)}


def _threads() -> dict[str, int]:
    torch = loaded_torch()
    return {} if torch is None else {"torch_threads": torch.get_num_threads()}
