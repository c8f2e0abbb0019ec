"""Where samples go while they are made: to memory, or to a folder from which an interrupted run resumes.

A folder in the making holds ``run.json`` (what is being computed), ``values.npy``, ``vanilla.npy``, ``predictions.npy``
and ``done.bin``, one byte a job, set after the job's numbers have been written. Files are written, not mapped, so that
the process's own memory does not grow with N. The last step turns the folder into a saved result.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from metfa._provenance import describe
from metfa.io import MANIFEST, _read_json, load, write_json, write_manifest
from metfa.result import AttributionSample, same_map

__all__ = ["MemorySink", "Sink", "StoreSink"]

RUN = "run.json"
DONE = "done.bin"


class Sink(Protocol):
    """What the sampling loop needs of the place its samples go to."""

    resumed_root: int | None

    def open(self, n_samples: int, vanilla: np.ndarray, targets: list[Any]) -> None:
        """Make room for `n_samples` maps like each of `vanilla`."""
        ...

    def is_done(self, job: int) -> bool:
        """Whether job number ``sample * batch + input`` was finished by an earlier, interrupted run."""
        ...

    def write(self, places: list[tuple[int, int]], maps: np.ndarray, predictions: np.ndarray | None) -> None:
        """Keep maps (and predicted classes) at their places (sample, input)."""
        ...

    def result(self, **fields: Any) -> AttributionSample:
        """The finished result."""
        ...


class MemorySink:
    """Samples in memory."""

    resumed_root = None

    def open(self, n_samples: int, vanilla: np.ndarray, targets: list[Any]) -> None:  # noqa: ARG002
        """See `Sink`."""
        self._values = np.empty((n_samples, *vanilla.shape), dtype=vanilla.dtype)
        self._predictions: np.ndarray | None = None

    def is_done(self, job: int) -> bool:  # noqa: ARG002
        """See `Sink`."""
        return False

    def write(self, places: list[tuple[int, int]], maps: np.ndarray, predictions: np.ndarray | None) -> None:
        """See `Sink`."""
        samples, inputs = map(list, zip(*places, strict=True))
        self._values[samples, inputs] = maps
        if predictions is not None:
            if self._predictions is None:
                self._predictions = np.full(self._values.shape[:2], -1, dtype=np.int64)
            self._predictions[samples, inputs] = predictions

    def result(self, **fields: Any) -> AttributionSample:
        """See `Sink`."""
        return AttributionSample(values=self._values, predictions=self._predictions, **fields)


class StoreSink:
    """Samples in a folder.

    Raises
    ------
    FileExistsError
        If the folder holds something else than an unfinished run.
    ValueError
        If it holds an unfinished run of another call; the message names what differs.
    """

    def __init__(self, path: str | Path, settings: dict[str, Any], input_ids: tuple[str, ...], explicit_rng: bool):
        self.folder = Path(path)
        self.resumed_root: int | None = None
        self._asked = {**settings, "input_ids": list(input_ids)}
        self._done = bytearray()
        if (self.folder / MANIFEST).exists():
            raise FileExistsError(
                f"`store` already holds a finished result: metfa.load({str(self.folder)!r}) reads it; give another "
                "folder for a new run"
            )
        if (self.folder / RUN).exists():
            self._resume(explicit_rng)
        elif self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise FileExistsError(f"`store` exists and is no unfinished run: {self.folder}; give a new or empty folder")
        else:
            self.folder.mkdir(parents=True, exist_ok=True)

    def _resume(self, explicit_rng: bool) -> None:
        kept = _read_json(self.folder / RUN)
        compared = [name for name in self._asked if explicit_rng or name != "rng"]
        differing = [name for name in compared if kept.get(name) != self._asked[name]]
        if differing:
            name = differing[0]
            raise ValueError(
                f"`store` holds an unfinished run with {name}={kept.get(name)}, this call has {self._asked[name]}: "
                "repeat the call as it was to resume, or give another folder"
            )
        self._asked["rng"] = kept["rng"]
        self.resumed_root = int(kept["rng"], 16)
        if (self.folder / DONE).exists():
            self._done = bytearray((self.folder / DONE).read_bytes())

    def open(self, n_samples: int, vanilla: np.ndarray, targets: list[Any]) -> None:
        """See `Sink`."""
        self._shape = (n_samples, *vanilla.shape)
        self._dtype = vanilla.dtype
        values = self.folder / "values.npy"
        if self._done:
            kept = _read_json(self.folder / RUN)
            if kept["target"] != describe(targets):
                raise ValueError(
                    f"`store` holds an unfinished run for target {kept['target']}, not {describe(targets)}"
                )
            if not same_map(np.load(self.folder / "vanilla.npy", allow_pickle=False), vanilla):
                raise ValueError(
                    "`store` holds an unfinished run of another model: the clean input's attributions differ"
                )
        else:
            write_json(self.folder / RUN, {**self._asked, "target": describe(targets)})
            _sparse_array(values, self._shape, self._dtype)
            np.save(self.folder / "vanilla.npy", vanilla)
            self._done = bytearray(n_samples * len(vanilla))
            (self.folder / DONE).write_bytes(self._done)  # last: its presence says that the files above are whole
        self._offset = values.stat().st_size - int(np.prod(self._shape)) * self._dtype.itemsize

    def is_done(self, job: int) -> bool:
        """See `Sink`."""
        return job < len(self._done) and self._done[job] == 1

    def write(self, places: list[tuple[int, int]], maps: np.ndarray, predictions: np.ndarray | None) -> None:
        """See `Sink`."""
        batch = self._shape[1]
        jobs = [sample * batch + row for sample, row in places]
        self._write_rows(self.folder / "values.npy", self._offset, jobs, maps)
        if predictions is not None:
            path = self.folder / "predictions.npy"
            if not path.exists():
                _sparse_array(path, self._shape[:2], np.dtype(np.int64))
            offset = path.stat().st_size - self._shape[0] * batch * 8
            self._write_rows(path, offset, jobs, predictions.astype(np.int64))
        self._write_rows(self.folder / DONE, 0, jobs, np.ones(len(jobs), dtype=np.uint8))

    def result(self, **fields: Any) -> AttributionSample:
        """See `Sink`."""
        values = np.load(self.folder / "values.npy", mmap_mode="r", allow_pickle=False)
        path = self.folder / "predictions.npy"
        predictions = np.load(path, allow_pickle=False) if path.exists() else None
        sample = AttributionSample(values=values, predictions=predictions, **fields)
        if fields["scores"] is not None:
            np.save(self.folder / "scores.npy", fields["scores"])
        write_manifest(self.folder, sample)
        for name in (RUN, DONE):
            (self.folder / name).unlink()
        return load(self.folder)

    @staticmethod
    def _write_rows(path: Path, offset: int, jobs: list[int], rows: np.ndarray) -> None:
        rows = np.ascontiguousarray(rows)
        size = rows[0].nbytes
        with path.open("r+b") as file:
            for job, row in zip(jobs, rows, strict=True):
                file.seek(offset + job * size)
                file.write(row.tobytes())


def _sparse_array(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """An .npy file of zeros that takes no room until it is written to."""
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(file, header)
        file.truncate(file.tell() + int(np.prod(shape)) * dtype.itemsize)
