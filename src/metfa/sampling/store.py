"""Where samples are kept while they are made: in memory, or in a folder from which an interrupted run resumes.

The folder of an unfinished run holds ``run.json`` (what is computed), ``values.npy``, ``vanilla.npy``,
``predictions.npy`` and ``done.bin``. The last has one byte for each job, set after the job's numbers have been written.
Files are written, not mapped, so that the process's own memory does not grow with N. The last step turns the folder
into a saved result.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from metfa._base.provenance import describe
from metfa._base.validation import as_path
from metfa.results.files import (
    MANIFEST,
    array_offset,
    check_inputs,
    check_targets,
    load,
    read_json,
    require_plain_file,
    write_array_header,
    write_json,
    write_manifest,
)
from metfa.results.parts import same_maps
from metfa.results.sample import AttributionSample
from metfa.results.stopping import Until
from metfa.sampling.request import Request

__all__ = ["RUN", "MemorySink", "Sink", "StoreSink", "sink_of"]

RUN = "run.json"
DONE = "done.bin"


class Sink(Protocol):
    """What the sampling loop needs from the place of its samples."""

    root: int  # of the streams; when a run is resumed, its root
    n_done: int

    def open(self, most_samples: int, vanilla: np.ndarray, targets: list[Any]) -> None:
        """Prepare for at most `most_samples` maps like each of `vanilla`."""
        ...

    def make_room(self, n_samples: int) -> None:
        """Make room for the first `n_samples`."""
        ...

    def is_done(self, job: int) -> bool:
        """Whether job number ``sample * batch + input`` was finished by an earlier, interrupted run."""
        ...

    def write(self, places: list[tuple[int, int]], maps: np.ndarray, predictions: np.ndarray | None) -> None:
        """Keep maps (and predicted classes) at their places (sample, input)."""
        ...

    def values(self, start: int, stop: int) -> np.ndarray:
        """Samples that have been written."""
        ...

    def result(self, n_samples: int, **fields: Any) -> AttributionSample:
        """The finished result, with the first `n_samples`."""
        ...


class MemorySink:
    """Samples in memory."""

    n_done = 0

    def __init__(self, root: int) -> None:
        self.root = root

    def open(self, most_samples: int, vanilla: np.ndarray, targets: list[Any]) -> None:  # noqa: ARG002
        """See `Sink`."""
        self._most = most_samples
        self._values = np.empty((0, *vanilla.shape), dtype=vanilla.dtype)
        self._predictions: np.ndarray | None = None

    def make_room(self, n_samples: int) -> None:
        """See `Sink`."""
        if n_samples > len(self._values):
            room = n_samples if len(self._values) == 0 else min(max(n_samples, 2 * len(self._values)), self._most)
            self._values = _longer(self._values, room)
            if self._predictions is not None:
                self._predictions = _longer(self._predictions, room)

    def is_done(self, job: int) -> bool:  # noqa: ARG002
        """See `Sink`."""
        return False

    def write(self, places: list[tuple[int, int]], maps: np.ndarray, predictions: np.ndarray | None) -> None:
        """See `Sink`."""
        samples, inputs = map(list, zip(*places, strict=True))
        self._values[samples, inputs] = maps
        if predictions is not None:
            if self._predictions is None:
                self._predictions = np.empty(self._values.shape[:2], dtype=np.int64)
            self._predictions[samples, inputs] = predictions

    def values(self, start: int, stop: int) -> np.ndarray:
        """See `Sink`."""
        return self._values[start:stop]

    def result(self, n_samples: int, **fields: Any) -> AttributionSample:
        """See `Sink`."""
        predictions = None if self._predictions is None else self._predictions[:n_samples]
        return AttributionSample(values=self._values[:n_samples], predictions=predictions, **fields)


class StoreSink:
    """Samples in a folder.

    Raises
    ------
    FileExistsError
        If the folder holds anything other than an unfinished run.
    ValueError
        If it holds an unfinished run of another call; the message names what differs.
    """

    def __init__(self, path: str | Path, request: Request) -> None:
        check_inputs(request.rows.host)
        rule = describe(request.n_samples) if isinstance(request.n_samples, Until) else None
        self.folder = as_path(path, "store")
        self.root = request.root
        self._asked = {**request.settings, "until": rule, "input_ids": list(request.ids)}
        self._done = bytearray()
        self.n_done = 0
        if (self.folder / MANIFEST).exists():
            raise FileExistsError(
                f"`store` already holds a finished result: metfa.load({str(self.folder)!r}) reads it; give another "
                "folder for a new run"
            )
        if (self.folder / RUN).exists():
            self._resume(request.seed_given)
        else:
            if self.folder.exists() and not self.folder.is_dir():
                raise FileExistsError(f"`store` must be a folder, but {self.folder} is a file")
            self.folder.mkdir(parents=True, exist_ok=True)
            if {entry.name for entry in self.folder.iterdir()} - {f".{RUN}.tmp"}:
                raise FileExistsError(
                    f"`store` holds files, but no unfinished run: {self.folder}; give a new or empty folder"
                )

    def _resume(self, seed_given: bool) -> None:
        kept = read_json(self.folder / RUN)
        try:
            self.root = int(kept["rng"], 16)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self.folder / RUN} is damaged and cannot be resumed: give another folder") from error
        for name, asked in self._asked.items():
            if kept.get(name) != asked and (seed_given or name != "rng"):
                raise self._of_another_call(f"{name}={kept.get(name)}", asked)
        self._asked["rng"] = kept["rng"]
        if (self.folder / DONE).exists():
            require_plain_file(self.folder / DONE)
            self._done = bytearray((self.folder / DONE).read_bytes())
            n_jobs = self._asked["n_samples"] * len(self._asked["input_ids"])
            if len(self._done) != n_jobs:
                raise ValueError(
                    f"{self.folder / DONE} is damaged and cannot be resumed: it has {len(self._done)} bytes for "
                    f"{n_jobs} maps; give another folder"
                )
            self.n_done = self._done.count(1)

    def open(self, most_samples: int, vanilla: np.ndarray, targets: list[Any]) -> None:
        """See `Sink`."""
        check_targets(targets)
        self._shape = (most_samples, *vanilla.shape)
        self._dtype = vanilla.dtype
        if self._done:
            kept = read_json(self.folder / RUN).get("target")
            if kept != describe(targets):
                raise self._of_another_call(f"target={kept}", describe(targets))
            if "kept" in read_json(self.folder / RUN):  # interrupted while files were cut to the samples taken
                self._resize(self._shape[0])
                self._forget_after(read_json(self.folder / RUN)["kept"])
            array_offset(self.folder / "values.npy", self._dtype, self._shape)
            offset = array_offset(self.folder / "vanilla.npy", vanilla.dtype, vanilla.shape)
            if not same_maps(
                np.memmap(self.folder / "vanilla.npy", vanilla.dtype, "r", offset, vanilla.shape), vanilla
            ):
                raise ValueError(
                    "`store` holds an unfinished run of another model: the clean input's attributions differ; "
                    "give another folder"
                )
        else:
            write_json(self.folder / RUN, {**self._asked, "target": describe(targets)})
            self._new_array("values.npy", self._shape, self._dtype)
            np.save(self.folder / "vanilla.npy", vanilla)
            self._done = bytearray(math.prod(self._shape[:2]))
            temporary = self.folder / f".{DONE}.tmp"
            temporary.write_bytes(self._done)
            temporary.replace(self.folder / DONE)  # last: it shows that the files above are complete

    def make_room(self, n_samples: int) -> None:
        """See `Sink`; files take no room until they are written to."""

    def is_done(self, job: int) -> bool:
        """See `Sink`."""
        return job < len(self._done) and self._done[job] == 1

    def write(self, places: list[tuple[int, int]], maps: np.ndarray, predictions: np.ndarray | None) -> None:
        """See `Sink`."""
        jobs = [sample * self._shape[1] + row for sample, row in places]
        self._write_rows("values.npy", self._shape, jobs, maps.astype(self._dtype, copy=False))
        if predictions is not None:
            if not (self.folder / "predictions.npy").exists():
                self._new_array("predictions.npy", self._shape[:2], np.dtype(np.int64))
            self._write_rows("predictions.npy", self._shape[:2], jobs, predictions.astype(np.int64))
        with (self.folder / DONE).open("r+b") as file:
            for job in jobs:
                file.seek(job)
                file.write(b"\1")

    def values(self, start: int, stop: int) -> np.ndarray:
        """See `Sink`."""
        path = self.folder / "values.npy"
        offset = array_offset(path, self._dtype, self._shape)
        return np.memmap(path, self._dtype, "r", offset, self._shape)[start:stop]

    def result(self, n_samples: int, **fields: Any) -> AttributionSample:
        """See `Sink`."""
        if n_samples < self._shape[0]:
            write_json(self.folder / RUN, {**read_json(self.folder / RUN), "kept": n_samples})
            self._resize(n_samples)
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

    def _new_array(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """Make an .npy file of zeros at once; it takes no room until it is written to."""
        temporary = self.folder / f".{name}.tmp"
        with temporary.open("wb") as file:
            write_array_header(file, dtype, shape)
            file.truncate(file.tell() + math.prod(shape) * dtype.itemsize)
        temporary.replace(self.folder / name)

    def _resize(self, n_samples: int) -> None:
        """Change the files of samples to this many; NumPy's headers leave room for larger counts."""
        shape = (n_samples, *self._shape[1:])
        for name, whole, dtype in (("values", shape, self._dtype), ("predictions", shape[:2], np.dtype(np.int64))):
            path = self.folder / f"{name}.npy"
            if path.exists():
                require_plain_file(path)
                with path.open("r+b") as file:
                    write_array_header(file, dtype, whole)
                    file.truncate(file.tell() + math.prod(whole) * dtype.itemsize)

    def _forget_after(self, n_samples: Any) -> None:
        """Mark later samples as not done: another rule may have made more, and they may have been cut off."""
        if type(n_samples) is not int or n_samples not in range(self._shape[0]):
            raise ValueError(f"{self.folder / RUN} is damaged and cannot be resumed: give another folder")
        start = n_samples * self._shape[1]
        self._done[start:] = bytes(len(self._done) - start)
        self.n_done = self._done.count(1)

    def _write_rows(self, name: str, shape: tuple[int, ...], jobs: list[int], rows: np.ndarray) -> None:
        offset = array_offset(self.folder / name, rows.dtype, shape)
        with (self.folder / name).open("r+b") as file:
            for job, row in zip(jobs, rows, strict=True):
                file.seek(offset + job * row.nbytes)
                file.write(row.tobytes())

    def _of_another_call(self, kept: str, asked: Any) -> ValueError:
        return ValueError(
            f"`store` holds an unfinished run with {kept}, this call has {asked}: repeat the call as it was to resume, "
            "or give another folder"
        )


def sink_of(request: Request) -> Sink:
    """Memory, or the folder of the request, which may hold a part of its samples already."""
    return MemorySink(request.root) if request.run.store is None else StoreSink(request.run.store, request)


def _longer(array: np.ndarray, length: int) -> np.ndarray:
    """A copy of `array` with room for `length` entries."""
    longer = np.empty((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
