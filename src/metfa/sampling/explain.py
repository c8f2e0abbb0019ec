"""Sample an explainer under noise: the one loop over (input, sample) jobs, and `explain`."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from metfa._arrays import device_of, first_not_finite
from metfa._base.progress import progress_bar
from metfa._base.provenance import describe, versions
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.calls.guard import left_as_found, loaded_torch
from metfa.calls.targets import row_targets
from metfa.noise.pixel_space import gaussian_std
from metfa.results.files import check_inputs
from metfa.results.sample import AttributionSample
from metfa.results.stopping import Until
from metfa.sampling.feature_names import checked_names, fitting_names
from metfa.sampling.protocol import explained_model, predict_scores, safe_batch_size, told_signed
from metfa.sampling.request import Job, Request, validated
from metfa.sampling.rounds import rounds_of
from metfa.sampling.store import MemorySink, StoreSink
from metfa.sampling.streams import SCHEME, Purpose

__all__ = ["explain"]


def explain(
    explainer: Callable[..., Any],
    inputs: Any,
    target: Any = None,
    *,
    noise: Any,
    n_samples: int | Until = 10,
    predict: Callable[..., Any] | None = None,
    row_args: dict[str, Any] | None = None,
    batch_size: int | None = None,
    rng: Any = None,
    input_ids: Sequence[Any] | None = None,
    feature_names: Sequence[str] | None = None,
    first_sample: int = 0,
    store: str | Path | None = None,
    progress: bool = False,
) -> AttributionSample:
    r"""Explain N noisy copies of each input.

    The samples :math:`e_i = E(x \oplus n_i)`, i = 1..N, are independent draws from the law of the explanation under
    the noise (paper, section on the sampling of explanations). The result answers questions about each feature's
    median: which are significant, how uncertain, what the stable map is.

    Parameters
    ----------
    explainer : callable
        Called ``explainer(inputs, target=target)``; returns attributions (batch, \*features), or a pair of them with
        the model's scores (batch, classes). A bound Captum method such as ``Saliency(model).attribute`` fits as it is.
        An explainer with randomness of its own takes ``rngs=`` too (`metfa.randomised`) or is wrapped by
        `metfa.seeded`.
    inputs : array, tuple or dict of arrays, or list of objects
        One batch, first axis the batch: NumPy, torch, JAX or CuPy arrays; a list for texts.
    target : int or sequence, optional
        What is explained: one class index for all, or one entry a row. None: the class predicted once on the clean
        input, held fixed for all samples.
    noise : callable or None
        ``f(x, rng) -> x`` for one input (NumPy on the host, no batch axis), from `metfa.noise` or your own; it runs in
        worker threads. For tuple or dict inputs also a tuple or dict of noises, None for parts left alone. None
        samples only the explainer's own randomness.
    n_samples : int or Until
        The paper's N, samples of each input. `metfa.stats.min_samples` tells the smallest N for a level. Or a rule that
        says when to stop, ``metfa.until(undecided=0.05)``: see `metfa.until`.
    predict : callable, optional
        Inputs -> scores (batch, classes). Found by itself on our explainers and on bound Captum methods.
    row_args : dict of arrays, optional
        Further keyword arguments of the explainer with one entry a row (baselines, masks), batched like the inputs.
    batch_size : int, optional
        Rows a call of the explainer, inputs and samples mixed; 10 by default. Changes speed and memory, not results.
    rng : int, numpy.random.Generator or None
        Seed. The same seed gives the same samples (to the rounding of the model's kernels) for every batch size,
        order of the inputs and split over several calls. None: fresh, recorded in the result.
    input_ids : sequence, optional
        One id for each input, the address of its random streams; by default a digest of its content.
    feature_names : sequence of str, optional
        One name for each feature of an attribution (batch, features), kept in the result and shown in figures; by
        default the columns of a data frame, where there are as many features.
    first_sample : int
        Id of the first sample: a later call with ``first_sample=10`` continues one of 10, see
        `AttributionSample.concat`.
    store : path, optional
        Folder that the samples are streamed to; memory then does not grow with N. An interrupted call resumes when
        repeated with the same arguments. (Functions are known by their names: a threshold rule may be another of the
        same name, since samples do not depend on it; explainer and noise must be the same.)
    progress : bool
        Show a bar with rate and time left (needs tqdm).

    Returns
    -------
    AttributionSample
        Samples (n, batch, \*features), the vanilla map, target, clean scores, share of flips, and provenance.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, before the model is touched; for attributions of a wrong shape or that are not finite,
        naming input and sample.

    Warns
    -----
    DegenerateAttributionsWarning
        If maps are constant.
    RowDependenceWarning
        If the explainer mixes the rows of a batch; it then goes one row a call.
    ReproducibilityWarning
        If the explainer draws from global generators, or was seen to have a generator of its own.

    Notes
    -----
    The model's mode, gradients and hooks and the global random generators are as before, also after an exception.
    The model is put in evaluation mode meanwhile. It is the one that the explainer shows (`model`, or Captum's
    ``forward_func``) or that `predict` is or belongs to: one hidden in a function of yours is not seen.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> weights = np.array([3.0, 0.0, -2.0])
    >>> explainer = lambda inputs, target: np.abs(inputs * weights)
    >>> sample = metfa.explain(explainer, np.ones((1, 3)), 0, noise=metfa.noise.Uniform(0.1), n_samples=20, rng=0)
    >>> sample.significance_map(threshold=1.0)
    array([[ 1, -1,  1]], dtype=int8)
    """
    call, n_samples, first_sample = validated(
        explainer, inputs, target, noise, n_samples, predict, row_args, batch_size, rng, input_ids, first_sample
    )
    names = checked_names(feature_names, inputs)
    started = datetime.now(timezone.utc)
    clock = time.perf_counter()
    rounds = rounds_of(n_samples, len(call.rows))
    settings = {
        "explainer": describe(explainer),
        "noise": describe(noise),
        "n_samples": rounds.most,
        "first_sample": first_sample,
        "rng": hex(call.root),
        "streams": SCHEME,
    }
    if store is None:
        sink = MemorySink()
    else:
        check_inputs(call.rows.host)
        rule = describe(n_samples) if isinstance(n_samples, Until) else None
        sink = StoreSink(store, {**settings, "until": rule}, call.ids, explicit_rng=rng is not None)
    if sink.resumed_root is not None:
        call = replace(call, root=sink.resumed_root)
        settings["rng"] = hex(call.root)
    n_rows = len(call.rows)

    def jobs(start: int, stop: int) -> Iterator[Job]:
        """What is not done yet of the samples from `start` to `stop`."""
        for sample in range(start, stop):
            for row in range(n_rows):
                if not sink.is_done(sample * n_rows + row):
                    yield Job(row, first_sample + sample)

    constant = made = taken = 0
    with left_as_found(explained_model(explainer), call.predict) as drawn:
        probed = list(islice(jobs(0, rounds.most), 2))
        rows = call.noisy_rows(probed)  # an unfit noise shows here, before the model is called
        scores = _clean_scores(call)
        targets = row_targets(target, scores, n_rows)

        def run(indices: list[int]) -> np.ndarray:
            return call.explained([probed[i] for i in indices], call.rows.batch([rows[i] for i in indices]), targets)[0]

        batch_size = safe_batch_size(explainer, call.batch_size, len(probed), run, drawn)
        vanilla, given_scores = _vanilla(call, targets, batch_size)
        scores = given_scores if scores is None else scores
        names = fitting_names(names, vanilla.shape[1:], required=feature_names is not None)
        rounds.check(vanilla)
        sink.open(rounds.most, vanilla, targets)
        total = rounds.most * n_rows
        with progress_bar(total, sink.n_done, shown=progress, unit="map", doing="explaining", extra="image") as bar:
            while (upto := rounds.next(taken, made / n_rows)) is not None:
                sink.make_room(upto)
                pending = list(jobs(taken, upto))
                with _NoiseAhead(call, list(_chunks(pending, batch_size))) as chunks:
                    for chunk, batch in chunks:
                        attributions, noisy_scores = call.explained(chunk, batch, targets)
                        _check_features(attributions, vanilla)
                        constant += _count_constant(attributions)
                        predicted = None if noisy_scores is None or noisy_scores.ndim != 2 else noisy_scores.argmax(1)
                        sink.write([(job.sample_id - first_sample, job.row) for job in chunk], attributions, predicted)
                        bar.update(len(chunk))
                made, taken = made + len(pending), upto
                bar.set_postfix_str(rounds.look(sink.values, taken))
    if constant:
        warn(
            f"{constant} of {made} maps are constant and say nothing about their features",
            DegenerateAttributionsWarning,
        )
    provenance = {
        **settings,
        "n_samples": taken,
        "signed": told_signed(explainer),
        "gaussian_std": gaussian_std(noise),
        "batch_size": batch_size,
        "device": None if call.rows.array is None else str(device_of(call.rows.array)),
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - clock, 3),
        "maps_made": made,  # in these seconds: not those that an interrupted run had made
        "versions": versions(),
    }
    torch = loaded_torch()
    if torch is not None:
        provenance["torch_threads"] = torch.get_num_threads()
    return sink.result(
        taken,
        inputs=call.rows.host,
        target=tuple(targets),
        vanilla=vanilla,
        scores=scores,
        sample_ids=tuple(range(first_sample, first_sample + taken)),
        input_ids=call.ids,
        feature_names=names,
        stopping=rounds.stopping(),
        provenance=provenance,
    )


def _chunks(jobs: Sequence[Job], size: int) -> Iterator[Sequence[Job]]:
    return (jobs[start : start + size] for start in range(0, len(jobs), size))


def _clean_scores(call: Request) -> np.ndarray | None:
    if call.predict is None:
        return None
    jobs = [Job(row, 0) for row in range(len(call.rows))]
    chunks = _chunks(jobs, call.batch_size)
    stacked = np.concatenate([predict_scores(call.predict, call.clean_batch(chunk)) for chunk in chunks])
    if len(stacked) != len(call.rows):
        raise ValueError(f"`predict` must return one row of scores an input, got {len(stacked)} for {len(call.rows)}")
    bad = first_not_finite(stacked)
    if bad is not None:
        raise ValueError(f"the model's scores of the clean input {bad} are not finite")
    return stacked


def _vanilla(call: Request, targets: list[Any], batch_size: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Maps of the clean inputs, and their scores (batch, classes) where the explainer returns such."""
    jobs = [Job(row, 0) for row in range(len(call.rows))]
    maps, scores = [], []
    for chunk in _chunks(jobs, batch_size):
        attributions, given = call.explained(chunk, call.clean_batch(chunk), targets, Purpose.CLEAN)
        _check_features(attributions, maps[0] if maps else attributions)
        maps.append(attributions)
        scores.append(given)
    have_scores = all(given is not None and given.ndim == 2 for given in scores)
    return np.concatenate(maps), np.concatenate(scores) if have_scores else None


class _NoiseAhead:
    """Chunks of jobs with their noisy batches, drawn and moved by threads while the explainer works on earlier ones."""

    AHEAD = 2

    def __init__(self, call: Request, chunks: Sequence[Sequence[Job]]) -> None:
        self._call, self._waiting = call, deque(chunks)
        self._drawing: deque[tuple[Sequence[Job], Future[Any]]] = deque()
        self._pool = ThreadPoolExecutor(max_workers=self.AHEAD, thread_name_prefix="metfa-noise")

    def __enter__(self) -> _NoiseAhead:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __iter__(self) -> Iterator[tuple[Sequence[Job], Any]]:
        while self._drawing:
            chunk, batch = self._drawing.popleft()
            drawn = batch.result()
            self._start()
            yield chunk, drawn

    def _start(self) -> None:
        while self._waiting and len(self._drawing) < self.AHEAD:
            chunk = self._waiting.popleft()
            self._drawing.append((chunk, self._pool.submit(self._call.noisy_batch, chunk)))


def _check_features(attributions: np.ndarray, reference: np.ndarray) -> None:
    if attributions.shape[1:] != reference.shape[1:]:
        raise ValueError(
            f"`explainer` returned features of shape {attributions.shape[1:]} after {reference.shape[1:]}: every row "
            "needs the same features"
        )


def _count_constant(attributions: np.ndarray) -> int:
    flat = attributions.reshape(len(attributions), -1)
    return int((flat.min(axis=1) == flat.max(axis=1)).sum()) if flat.shape[1] > 1 else 0
