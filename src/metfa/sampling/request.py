"""A request to sample, validated: which rows, which noise, which streams; and one batch of it explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from metfa._arrays import device_of, first_not_finite, is_array, namespace, to_host
from metfa._base.validation import positive_int
from metfa.calls.guard import loaded_torch
from metfa.calls.targets import row_targets, stacked_targets
from metfa.results.stopping import Until
from metfa.sampling.protocol import call_explainer, explained_model, prediction_of, takes_rngs
from metfa.sampling.rows import Rows
from metfa.sampling.streams import MAX_SAMPLE_ID, Purpose, checked_ids, root_entropy, stream

__all__ = ["Job", "Request", "validated"]

DEFAULT_BATCH_SIZE = 10


class Job(NamedTuple):
    """One explanation to compute: which input, and which of its samples."""

    row: int
    sample_id: int


@dataclass(frozen=True)
class Request:
    """Everything that the sampling loop needs, and nothing that changes."""

    explainer: Callable[..., Any]
    rows: Rows
    noise: Any
    predict: Callable[..., Any] | None
    row_args: dict[str, Any]
    batch_size: int
    root: int
    ids: tuple[str, ...]

    def rngs(self, jobs: Sequence[Job], purpose: Purpose = Purpose.EXPLAINER) -> list[np.random.Generator]:
        """One generator for each job."""
        return [stream(self.root, self.ids[job.row], job.sample_id, purpose) for job in jobs]

    def noisy_rows(self, jobs: Sequence[Job]) -> list[Any]:
        """Noisy copy of each job, on the host."""
        streams = self.rngs(jobs, Purpose.NOISE) if self.noise is not None else [None] * len(jobs)
        return [
            self.rows.noisy(job.row, self.noise, rng, f"input {job.row}, sample {job.sample_id}")  # pyright: ignore[reportArgumentType]
            for job, rng in zip(jobs, streams, strict=True)
        ]

    def noisy_batch(self, jobs: Sequence[Job]) -> Any:
        """Noisy copies of the jobs as one batch."""
        return self.rows.batch(self.noisy_rows(jobs))

    def clean_batch(self, jobs: Sequence[Job]) -> Any:
        """Clean inputs of the jobs as one batch."""
        return self.rows.batch([self.rows[job.row] for job in jobs])

    def explained(
        self, jobs: Sequence[Job], batch: Any, targets: list[Any], purpose: Purpose = Purpose.EXPLAINER
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Attributions and scores of the jobs' rows on the host, checked."""
        target = stacked_targets([targets[job.row] for job in jobs], self.rows.array)
        rngs = self.rngs(jobs, purpose) if takes_rngs(self.explainer) else None
        row_args = self.row_args_of(jobs)
        attributions, scores = call_explainer(self.explainer, batch, target, len(jobs), rngs, row_args)
        host = to_host(attributions)
        if host.dtype.kind in "biu":
            host = host.astype(np.result_type(host.dtype, np.float32))
        self._check_attributions(host, jobs, purpose)
        return host, None if scores is None else to_host(scores)

    def row_args_of(self, jobs: Sequence[Job]) -> dict[str, Any]:
        """Further arguments of the explainer for the jobs."""
        indices = [job.row for job in jobs]
        return {name: _taken(values, indices) for name, values in self.row_args.items()}

    @staticmethod
    def _check_attributions(attributions: np.ndarray, jobs: Sequence[Job], purpose: Purpose) -> None:
        if attributions.dtype.kind != "f":
            raise TypeError(f"`explainer` must return real attributions, got {attributions.dtype}")
        bad = first_not_finite(attributions)
        if bad is not None:
            job = jobs[bad]
            clean = purpose is Purpose.CLEAN
            which = f"the clean input {job.row}" if clean else f"input {job.row}, sample {job.sample_id}"
            raise ValueError(f"`explainer` returned NaN or infinity for {which}")


def _taken(values: Any, indices: list[int]) -> Any:
    if not is_array(values):
        return [values[index] for index in indices]
    xp = namespace(values)
    return xp.take(values, xp.asarray(indices, device=device_of(values)), axis=0)


def validated(
    explainer: Any,
    inputs: Any,
    target: Any,
    noise: Any,
    n_samples: Any,
    predict: Any,
    row_args: Any,
    batch_size: Any,
    rng: Any,
    input_ids: Any,
    first_sample: Any,
) -> tuple[Request, int | Until, int]:
    """A request, the number of samples and the id of the first; raises before any model is touched."""
    if not callable(explainer):
        hint = "; pass its method, as in `Saliency(model).attribute`" if hasattr(explainer, "attribute") else ""
        raise TypeError(f"`explainer` must be callable, got {type(explainer).__name__}{hint}")
    if predict is not None and not callable(predict):
        raise TypeError(f"`predict` must be a function inputs -> scores, got {type(predict).__name__}")
    most = n_samples.max_samples if isinstance(n_samples, Until) else positive_int(n_samples, "n_samples")
    n_samples = n_samples if isinstance(n_samples, Until) else most
    first_sample = positive_int(first_sample, "first_sample", minimum=0)
    if first_sample + most - 1 > MAX_SAMPLE_ID:
        raise ValueError(f"`first_sample` + `n_samples` must not exceed {MAX_SAMPLE_ID + 1}, got {first_sample + most}")
    batch_size = DEFAULT_BATCH_SIZE if batch_size is None else positive_int(batch_size, "batch_size")
    root = root_entropy(rng)
    rows = Rows(inputs)
    rows.check_noise(noise)
    if predict is None:
        _check_library(explained_model(explainer), rows)
        predict = prediction_of(explainer)
    if target is not None or predict is None:
        row_targets(target, None, len(rows))  # a wrong kind or number shows before the model is touched
    if noise is None and not takes_rngs(explainer):
        raise ValueError(
            "`noise` is None, which samples the explainer's own randomness, but `explainer` takes no `rngs`: give a "
            f"noise such as {rows.some_noise}, or wrap a random explainer by metfa.seeded or metfa.randomised"
        )
    row_args = _checked_row_args(row_args, len(rows))
    ids = rows.ids() if input_ids is None else checked_ids(input_ids, len(rows))
    return Request(explainer, rows, noise, predict, row_args, batch_size, root, ids), n_samples, first_sample


def _check_library(model: Any, rows: Rows) -> None:
    torch = loaded_torch()
    if torch is None or rows.kind != "array" or not isinstance(model, torch.nn.Module):
        return
    if not isinstance(rows.array, torch.Tensor):
        raise TypeError(
            f"`inputs` must be a torch.Tensor for a torch model, got {type(rows.array).__name__}: write "
            "`torch.from_numpy(inputs)`, or pass `predict=` if the explainer converts them"
        )


def _checked_row_args(row_args: Any, n_rows: int) -> dict[str, Any]:
    if row_args is None:
        return {}
    if not isinstance(row_args, Mapping):
        raise TypeError(f"`row_args` must be a dict of arrays, got {type(row_args).__name__}")
    for name, values in row_args.items():
        if name in ("inputs", "target", "rngs"):
            raise ValueError(f"`row_args` must not hold {name!r}, which metfa passes to the explainer by itself")
        shape = values.shape if is_array(values) else (len(values),) if isinstance(values, list | tuple) else ()
        if tuple(shape[:1]) != (n_rows,):
            got = f"{shape[0]} entries" if shape else f"{type(values).__name__}: {values!r}"
            raise ValueError(f"`row_args[{name!r}]` must have one entry for each of the {n_rows} inputs, got {got}")
    return dict(row_args)
