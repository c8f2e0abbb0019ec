"""The one loop over (input, sample) jobs: noisy copies in chunks, explained and checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from metfa._arrays import first_not_finite, namespace, to_host
from metfa._base.warnings import RowDependenceWarning, warn
from metfa.calls.generators import random_state_as_found
from metfa.calls.guard import training_noticed
from metfa.calls.row_dependence import dependence, explained_by_rounding, looked_at
from metfa.calls.targets import row_targets, stacked_targets
from metfa.results.layout import Layout
from metfa.results.pooling import pooled_maps
from metfa.results.regions import Regions
from metfa.sampling.entries import copy_of, count_rows, one_row, taken
from metfa.sampling.outputs import in_one_row, not_finite_at, on_host, require_one_map
from metfa.sampling.prefetch import ahead, in_turn
from metfa.sampling.protocol import call_explainer, predict_scores, safe_batch_size, takes_rngs
from metfa.sampling.rows import Rows
from metfa.sampling.streams import Purpose, streams

__all__ = ["Explained", "Job", "Loop"]

FOR_EXPLAINER, FOR_SECOND = (
    (Purpose.EXPLAINER, Purpose.CLEAN),
    (Purpose.SECOND_EXPLAINER, Purpose.SECOND_CLEAN),
)


class Job(NamedTuple):
    """One map to compute: the number of its input, and the id of the sample."""

    row: int
    sample_id: int

    def __str__(self) -> str:
        return f"input {self.row}, sample {self.sample_id}"


class Explained(NamedTuple):
    r"""Maps (jobs, \*features) of some jobs, and the model's scores if the explainer gives them.

    Maps of several inputs lie in one row for each job, by `layout`.
    """

    jobs: Sequence[Job]
    maps: Any
    scores: Any
    layout: Layout | None = None

    @property
    def parts(self) -> dict[Any, Any]:
        """The maps of each part; under None where there is but one."""
        return {None: self.maps} if self.layout is None else self.layout.split(self.maps)

    @property
    def constant(self) -> Counter[Any]:
        """Numbers of the maps of each part that are constant and so say nothing about their features."""
        flat = {name: maps.reshape(len(maps), -1) for name, maps in self.parts.items()}
        return Counter(
            {name: int((x.min(axis=1) == x.max(axis=1)).sum()) for name, x in flat.items() if x.shape[1] > 1}
        )

    def over(self, regions: Regions) -> Explained:
        """The same with the scores of regions as maps."""
        return Explained(self.jobs, pooled_maps(self.maps, regions, [job.row for job in self.jobs]), self.scores)

    @property
    def class_scores(self) -> np.ndarray | None:
        """Scores (jobs, classes) on the host; None if there are none of that shape."""
        return None if self.scores is None or self.scores.ndim != 2 else to_host(self.scores)


@dataclass(frozen=True, eq=False, repr=False)
class Loop:
    r"""Makes the maps of jobs, for `explain`, `Smoothed` and the estimate of a study.

    Parameters
    ----------
    explainer : callable
    rows : Rows or RowsInGraph
        If rows are on the host, the maps are too, and threads draw the noise ahead.
    noise : callable, tuple, dict or None
        As for `metfa.explain`.
    addresses : sequence of (int, str)
        Root and id of each row, which address the streams of its samples.
    batch_size : int
        Rows in one call of the explainer.
    row_args : dict of arrays
        Further arguments of the explainer, one entry for each row.
    targets : sequence
        One for each row, see `ready`.
    own_draws : bool
        Whether the explainer's randomness has streams apart from those of an explainer that it is compared with.
    features : tuple of int or Layout, optional
        Shape of every map, or the layout of its parts; by default those of the first.
    clean : bool
        Whether the clean rows are explained instead, see `cleaned`.
    first : Explained, optional
        Maps of the first jobs, if `ready` has made them.
    predict : callable or None
        Inputs -> scores, asked about each noisy batch for which the explainer gives none; None: nobody is asked.
    regions : Regions, optional
        What maps on the host are pooled over, after they were compared with those of rows alone.
    """

    explainer: Callable[..., Any]
    rows: Rows
    noise: Any
    addresses: Sequence[tuple[int, str]]
    batch_size: int
    row_args: Mapping[str, Any] = field(default_factory=dict)
    targets: Sequence[Any] = ()
    own_draws: bool = False
    features: tuple[int, ...] | Layout | None = None
    clean: bool = False
    first: Explained | None = None
    predict: Callable[[Any], Any] | None = None
    regions: Regions | None = None

    def aimed(self, target: Any, predict: Callable[[Any], Any] | None) -> tuple[Loop, np.ndarray | None]:
        """The same loop with a target for each row and a function to ask about noisy rows, and the clean scores; see
        `ready`.
        """
        scores, asked = (None, None) if predict is None else self._clean_scores(predict)
        targets = row_targets(target, scores, len(self.rows), predict)
        asked = None if self.noise is None else asked  # without noise the prediction cannot change
        return replace(self, targets=targets, predict=asked), scores

    def ready(
        self, target: Any, predict: Callable[[Any], Any] | None, jobs: Sequence[Job]
    ) -> tuple[Loop, np.ndarray | None]:
        """The same loop with a target for each row and a safe batch size, and the clean scores.

        Parameters
        ----------
        target : int or sequence, optional
            What is explained; None: the class that `predict` gives on the clean row.
        predict : callable or None
            Inputs -> scores, asked about all clean rows.
        jobs : sequence of Job
            The first jobs of the loop. The first batch of them, together and one row of it alone, shows whether the
            rows of a batch depend on each other (`safe_batch_size`). The loop keeps its maps.
        """
        jobs = jobs[: self.batch_size]
        noisy = self.noisy(jobs)  # a noise that does not fit fails here, before the model is called
        loop, scores = self.aimed(target, predict)
        first: Explained | None = None

        def run(indices: Sequence[int]) -> np.ndarray:
            nonlocal first
            batch = self.rows.batch(taken(noisy, indices))
            explained = loop.explained([jobs[index] for index in indices], batch)
            first = first or explained
            maps, layout = to_host(explained.maps), explained.layout
            return maps if layout is None or layout != first.layout else layout.balanced(maps, first.maps)

        with random_state_as_found() as drawn, training_noticed(self.explainer):
            size = safe_batch_size(self.explainer, self.batch_size, len(jobs), run, drawn)
        return replace(loop, batch_size=size, first=first if size > 1 else None), scores

    def cleaned(self) -> Loop:
        """The loop over the clean rows; an explainer with randomness of its own gets other draws there."""
        return replace(self, noise=None, clean=True, first=None)

    @contextmanager
    def over(self, jobs: Sequence[Job]) -> Iterator[Iterator[Explained]]:
        """Explain jobs in chunks of `batch_size`; each chunk is explained when the inner iterator is asked for it."""
        prepared = ahead if self.rows.on_host and not self.clean else in_turn
        made = self._made(jobs)
        with prepared(self.batch, self._chunks(jobs[len(made.jobs) if made else 0 :])) as batches:
            chunks = (self.explained(chunk, batch) for chunk, batch in batches)
            alike = self._alike(chunks if made is None else chain([made], chunks))
            yield alike if self.regions is None else (one.over(self.regions) for one in alike)

    def _made(self, jobs: Sequence[Job]) -> Explained | None:
        """Maps that `ready` has made of the first of these jobs; None if there are none."""
        if self.first is None:
            return None
        made = list(self.first.jobs)
        start = made.index(jobs[0]) if jobs and jobs[0] in made else len(made)  # a later round goes on with them
        pairs = zip(made[start:], jobs, strict=False)
        n = next((place for place, (old, new) in enumerate(pairs) if old != new), min(len(made) - start, len(jobs)))
        maps, scores = (
            None if of is None else of[start : start + n, ...] for of in (self.first.maps, self.first.scores)
        )
        return Explained(jobs[:n], maps, scores, self.first.layout) if n else None

    def batch(self, jobs: Sequence[Job], stopped: Callable[[], bool] = lambda: False) -> Any:
        """Noisy copies of the jobs' rows as one batch, or an error if the run is `stopped` before it is made."""
        return self.rows.batch(self.noisy(jobs, stopped))

    def explained(self, jobs: Sequence[Job], batch: Any, rngs: Any = None) -> Explained:
        """Maps of one batch, checked; `rngs`: generators instead of the jobs' own."""
        target = stacked_targets([self.targets[job.row] for job in jobs], self.rows.array)
        purposes = FOR_SECOND if self.own_draws else FOR_EXPLAINER
        rngs = (rngs or list(self._streams(jobs, purposes[self.clean]))) if self._draws else None
        row_args = {name: taken(values, [job.row for job in jobs]) for name, values in self.row_args.items()}
        asked = None if self.clean else self.predict
        given = batch if asked is None else copy_of(batch)  # the explainer may write to it
        maps, scores = call_explainer(self.explainer, given, target, len(jobs), rngs, row_args)
        if scores is None and asked is not None:
            scores = predict_scores(asked, batch)
        if not isinstance(maps, dict):
            return Explained(jobs, self._checked(maps, jobs), scores)
        require_one_map(None if self.rows.on_host else maps, "an explainer made of it")
        maps, layout = in_one_row({name: self._checked(part, jobs, name) for name, part in maps.items()})
        return Explained(jobs, maps, scores, layout)

    def _checked(self, maps: Any, jobs: Sequence[Job], part: Any = None) -> Any:
        """Maps as they are kept, after a look at their numbers."""
        of = "" if part is None else f", part {part!r}"
        if not namespace(maps).isdtype(maps.dtype, ("bool", "integral", "real floating")):
            raise TypeError(f"`explainer` must return real attributions, got {maps.dtype}{of}")
        maps = on_host(maps) if self.rows.on_host else maps
        bad = first_not_finite(maps)
        if bad is not None:
            where = f"the clean input {jobs[bad].row}" if self.clean else jobs[bad]
            raise ValueError(f"`explainer` returned NaN or infinity for {where}{of}{not_finite_at(maps[bad])}")
        return maps

    def noisy(self, jobs: Sequence[Job], stopped: Callable[[], bool] = lambda: False) -> Sequence[Any]:
        """Noisy copies of the jobs' rows, or an error if the run is `stopped` before the last is drawn."""
        rngs = self._streams(jobs, Purpose.NOISE, stopped)
        return self.rows.noisy([job.row for job in jobs], self.noise, rngs, jobs)

    @cached_property
    def _draws(self) -> bool:
        return takes_rngs(self.explainer)

    def _streams(
        self, jobs: Sequence[Job], purpose: Purpose, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[np.random.Generator]:
        for rng in streams([(*self.addresses[job.row], job.sample_id) for job in jobs], purpose):
            if stopped():
                raise CancelledError
            yield rng

    def _chunks(self, jobs: Sequence[Any]) -> Iterator[Sequence[Any]]:
        return (jobs[start : start + self.batch_size] for start in range(0, len(jobs), self.batch_size))

    def _clean_scores(self, predict: Callable[[Any], Any]) -> tuple[np.ndarray, Callable[[Any], Any]]:
        """Scores of the clean rows; and `predict`, from one call for each row if it mixes the rows of a batch."""
        clean, n = self.cleaned(), len(self.rows)

        def ask(rows: Sequence[int]) -> np.ndarray:
            return predict_scores(predict, clean.batch([Job(row, 0) for row in rows]))

        scores = np.concatenate([ask(rows) for rows in self._chunks(range(n))])
        if len(scores) != n:
            raise ValueError(f"`predict` must return one row of scores an input, got {len(scores)} for {n}")
        together = scores[: self.batch_size]
        alone = {row: ask([row])[0] for row in looked_at(len(together))} if len(together) > 1 else {}
        asked = predict
        if dependence(ask, together, alone, loose=explained_by_rounding(predict)):
            warn(
                "the model's scores of an input change with the inputs beside it, or from call to call: it is asked "
                "about one input at a time",
                RowDependenceWarning,
            )
            asked = _row_by_row(predict)
            scores = asked(clean.batch([Job(row, 0) for row in range(n)]))
        bad = first_not_finite(scores)
        if bad is not None:
            raise ValueError(f"the model's scores of the clean input {bad} are not finite")
        return scores, asked

    def _alike(self, explained: Iterable[Explained]) -> Iterator[Explained]:
        """The same, after a check that all have the same features."""
        features = self.features
        for one in explained:
            found = one.layout or tuple(one.maps.shape[1:])
            features = features or found
            if found != features:
                now, before = (getattr(each, "shapes", each) for each in (found, features))
                raise ValueError(
                    f"`explainer` returned features of shape {now} after {before}: every row needs the same features"
                )
            yield one


def _row_by_row(predict: Callable[[Any], Any]) -> Callable[[Any], np.ndarray]:
    """The same scores on the host, from one call for each row."""
    return lambda inputs: np.concatenate(
        [predict_scores(predict, one_row(inputs, row)) for row in range(count_rows(inputs))]
    )
