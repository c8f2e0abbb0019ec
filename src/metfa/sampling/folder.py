"""Samples in a folder, from which an interrupted run resumes.

The folder of an unfinished run holds ``run.json`` (what is computed), ``values.npy``, ``vanilla.npy``,
``predictions.npy`` and ``done.bin``. The last has a digest of each finished map, written after the map's numbers; where
they do not fit, as after a power failure, the map is made again. ``.lock`` belongs to the call that writes. Files are
written, not mapped, so that the process's own memory does not grow with N. The last step turns the folder into a saved
result. The same call again returns it, as it goes on with an unfinished one.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.earlier_words import layout_of
from metfa._base.other_run import OTHER_MODEL, OTHER_NOISE, differing, finished_run, unfinished_run
from metfa._base.owner import LOCK, Owner
from metfa._base.provenance import describe
from metfa._base.store_folder import check_free, check_store
from metfa._base.validation import as_path
from metfa._base.writing import changed_file, kept_after, new_file, put, sweep
from metfa.results.arrays import array_offset, map_array, write_array, write_array_header
from metfa.results.files import MANIFEST, check_inputs, check_targets, load_joined, write_manifest
from metfa.results.joining import same_maps
from metfa.results.layout import Layout, sizes_of
from metfa.results.manifests import read_json, write_json
from metfa.results.rules import RULES, USUAL, USUAL_ONCE
from metfa.results.same_copies import same_copies
from metfa.results.sample import AttributionSample
from metfa.results.until import Until
from metfa.sampling.map_digests import DIGEST, Done, digest_of_map
from metfa.sampling.request import Request

__all__ = ["LEARNED", "RUN", "StoreSink"]

RUN = "run.json"
DONE = "done.bin"
PREDICTIONS = "predictions.npy"
LEARNED = "learned.json"  # what an explainer has paid for before the samples (`metfa.text.explain_answer`)
CLASS = np.dtype(np.int64)


class StoreSink:
    """Samples in a folder, which this call alone writes into until it ends.

    Raises
    ------
    FileExistsError
        If the folder holds anything other than a run of this call, finished or not; the message names what differs.
    BlockingIOError
        If another call writes into it.
    ValueError
        If it holds an unfinished run of another call, or is a link.
    """

    def __init__(self, path: str | Path, request: Request) -> None:
        check_inputs(request.rows.host)
        self.folder: Path = as_path(path, "store")
        self.root: int = request.root
        self._rule = describe(request.n_samples) if isinstance(request.n_samples, Until) else None
        self._asked = {**request.settings, "until": self._rule, "input_ids": list(request.ids)}
        self._n_jobs, self._seed_given, self._open = request.most * len(request.ids), request.seed_given, ExitStack()
        self.n_done, self.usual, self.laid_out = 0, USUAL, None
        self.first_copy: dict[str, Any] | None = None
        self._found: AttributionSample | None = None  # the result, if it is there
        if not self._is_finished(request):
            self._begin(request)

    def __enter__(self) -> StoreSink:
        return self

    def __exit__(self, *error: object) -> None:
        """Let others write."""
        self._open.close()

    def _is_finished(self, request: Request) -> bool:
        """Whether the result is there; then its seed is this call's, where none was given."""
        if (self.folder / MANIFEST).exists():
            self._found = load_joined(self.folder)
            self.laid_out, self._asked["explainer"] = layout_of(self._found.provenance, request.explainer)
            made = self._found.provenance.get("rng")
            if not self._seed_given and isinstance(made, str):
                self.root, self._asked["rng"] = int(made, 16), made
        return self._found is not None

    def _begin(self, request: Request) -> None:
        """Take the folder, and read what is done."""
        check_store(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        held = (entry for entry in self.folder.iterdir() if entry.name != LEARNED)
        check_free(self.folder, held, (RUN, MANIFEST), "unfinished run")
        self._open.enter_context(Owner(self.folder, "store"))
        try:
            sweep(self.folder)
            if self._is_finished(request):  # another call has just ended
                return self._open.close()
            if (self.folder / RUN).exists():
                self._resume(request)
            self._done = Done(self.folder / DONE, self._n_jobs)
            self.n_done = self._done.number
        except BaseException:
            self._open.close()
            raise

    def _resume(self, request: Request) -> None:
        kept = read_json(self.folder / RUN)
        if isinstance(kept, dict) and "scale" in kept:
            raise FileExistsError(
                f"`store` holds an unfinished comparison: {self.folder}; repeat the call of `metfa.compare` or "
                "`metfa.contrast` to resume, or give another folder"
            )
        try:
            self.root = int(kept["rng"], 16)
            self.usual = kept.get("usual_threshold", USUAL_ONCE)
            RULES[self.usual]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self.folder / RUN} is damaged and cannot be resumed: give another folder") from error
        self.laid_out, self._asked["explainer"] = layout_of(kept, request.explainer)
        for name, asked in self._asked.items():
            if kept.get(name) != asked and (self._seed_given or name != "rng"):
                raise unfinished_run(differing(name, kept.get(name), asked))
        self._asked["rng"] = kept["rng"]

    def open(
        self, most_samples: int, vanilla: np.ndarray, targets: list[Any], layout: Layout | None = None
    ) -> AttributionSample | None:
        """See `Sink`."""
        check_targets(targets)
        self._layout = layout
        if self._found is not None:
            return self._finished_result(self._found, vanilla, targets)
        self._shape = (most_samples, *vanilla.shape)
        self._dtype = vanilla.dtype
        if self._done.begun:
            self._go_on(vanilla, targets)
        else:
            known = {"usual_threshold": self.usual, "parts": sizes_of(layout), "layout": self.laid_out}
            known |= {"target": describe(targets), "first_copy": self.first_copy}
            write_json(self.folder / RUN, {**self._asked, **known})
            self._new_array("values.npy", self._shape, self._dtype)
            write_array(self.folder / "vanilla.npy", vanilla)
            self._done.begin()  # last: it shows that the files above are complete
        self._values = self._open.enter_context(changed_file(self.folder / "values.npy"))
        self._flags = self._open.enter_context(changed_file(self.folder / DONE))
        return None

    def _go_on(self, vanilla: np.ndarray, targets: list[Any]) -> None:
        """Check that the folder holds the same run, and what of it is whole."""
        run = read_json(self.folder / RUN)
        for name, asked in (("target", describe(targets)), ("parts", sizes_of(self._layout))):
            if run.get(name) != asked:
                raise unfinished_run(differing(name, run.get(name), asked))
        if same_copies(run.get("first_copy"), self.first_copy) is False:
            raise unfinished_run(OTHER_NOISE)
        if "kept" in run:  # interrupted while files were cut to the samples taken
            self._resize(self._shape[0])
            self._forget_after(run["kept"])
        array_offset(self.folder / "values.npy", self._dtype, self._shape)
        if not same_maps(map_array(self.folder / "vanilla.npy", vanilla.dtype, vanilla.shape), vanilla, self._layout):
            raise unfinished_run(OTHER_MODEL)
        self._done.forget(self._done.damaged(range(self._n_jobs), *self._written(self._shape[0])))
        self.n_done = self._done.number

    def make_room(self, n_samples: int) -> None:
        """See `Sink`; files take no room until they are written to."""

    def is_done(self, job: int) -> bool:
        """See `Sink`."""
        return self._found is not None or job in self._done

    def write(self, places: list[tuple[int, int]], maps: np.ndarray, predictions: np.ndarray | None) -> None:
        """See `Sink`."""
        jobs = [sample * self._shape[1] + row for sample, row in places]
        maps = np.ascontiguousarray(maps, self._dtype)
        classes = [b""] * len(jobs) if predictions is None else [CLASS.type(one).tobytes() for one in predictions]
        with self._errors():
            offset = array_offset(self.folder / "values.npy", self._dtype, self._shape)
            for job, row in zip(jobs, maps, strict=True):
                put(self._values, offset + job * row.nbytes, row.tobytes())
            if predictions is not None:
                self._write_classes(jobs, classes)
            for job, row, predicted in zip(jobs, maps, classes, strict=True):
                put(self._flags, DIGEST * job, digest_of_map(row, predicted))

    def values(self, start: int, stop: int) -> np.ndarray:
        """See `Sink`."""
        return map_array(self.folder / "values.npy", self._dtype, self._shape)[start:stop]

    def result(self, n_samples: int, **fields: Any) -> AttributionSample:
        """See `Sink`."""
        with self._open, self._errors():
            if n_samples < self._shape[0]:
                write_json(self.folder / RUN, {**read_json(self.folder / RUN), "kept": n_samples})
                self._resize(n_samples)
            # As it is on disk, which another call may have changed where a file system has no locks.
            done, (maps, classes) = Done(self.folder / DONE, self._n_jobs), self._written(n_samples)
            jobs = range(n_samples * self._shape[1])
            lost = sum(job not in done for job in jobs) + len(done.damaged(jobs, maps, classes))
            if lost:
                raise ValueError(
                    f"{self.folder} was changed while it was written: {lost} of {len(jobs)} maps are not what this "
                    "call wrote; repeat the call, which makes them again"
                )
            if self._rule is not None:
                fields["provenance"] = {**fields["provenance"], "until": self._rule}
            sample = AttributionSample(values=maps, predictions=classes, **fields)
            if fields["scores"] is not None:
                write_array(self.folder / "scores.npy", fields["scores"])
            write_manifest(self.folder, sample)
            self._tidy()
        return load_joined(self.folder)

    def _finished_result(self, found: AttributionSample, vanilla: np.ndarray, targets: list[Any]) -> AttributionSample:
        """The result that is there, if this call would make it."""
        made = found.provenance
        kept = {
            **{name: made.get(name) for name in self._asked},
            "input_ids": list(found.input_names),
            "target": describe(list(found.target)),
            "parts": sizes_of(made.get("parts")),
        }
        asked = {**self._asked, "target": describe(targets), "parts": sizes_of(self._layout)}
        if self._rule is not None:
            kept["n_samples"] = asked["n_samples"]  # the rule says the largest number
        for name, value in asked.items():
            if kept[name] != value:
                raise finished_run(self.folder, differing(name, kept[name], value))
        if found.vanilla.dtype != vanilla.dtype or not same_maps(found.vanilla, vanilla, self._layout):
            raise finished_run(self.folder, OTHER_MODEL)
        if same_copies(made.get("first_copy"), self.first_copy) is False:
            raise finished_run(self.folder, OTHER_NOISE)
        with suppress(OSError):  # the call that made it may have been killed in its last step, or may be in it
            if any((self.folder / name).exists() for name in (RUN, DONE, LOCK)):
                with Owner(self.folder, "store"):
                    self._tidy()
        return found

    def _tidy(self) -> None:
        """Remove the files that only an unfinished run needs."""
        for name in (RUN, DONE):
            (self.folder / name).unlink(missing_ok=True)

    def _written(self, n_samples: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Maps and classes on disk."""
        maps = map_array(self.folder / "values.npy", self._dtype, (n_samples, *self._shape[1:]))
        path = self.folder / PREDICTIONS
        return maps, np.array(map_array(path, CLASS, maps.shape[:2])) if path.exists() else None

    def _new_array(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """Make an .npy file of zeros at once; it takes no room until it is written to."""
        with new_file(self.folder / name, replace=True) as file:
            write_array_header(file, dtype, shape)
            file.truncate(file.tell() + math.prod(shape) * dtype.itemsize)

    def _resize(self, n_samples: int) -> None:
        """Change the files of samples to this many; NumPy's headers leave room for larger counts."""
        shape = (n_samples, *self._shape[1:])
        for name, whole, dtype in (("values.npy", shape, self._dtype), (PREDICTIONS, shape[:2], CLASS)):
            if (self.folder / name).exists():
                with changed_file(self.folder / name) as file:
                    write_array_header(file, dtype, whole)
                    file.truncate(file.tell() + math.prod(whole) * dtype.itemsize)

    def _forget_after(self, n_samples: Any) -> None:
        """Mark later samples as not done: another rule may have made more, and they may have been cut off."""
        if type(n_samples) is not int or n_samples not in range(self._shape[0]):
            raise ValueError(f"{self.folder / RUN} is damaged and cannot be resumed: give another folder")
        self._done.forget(range(n_samples * self._shape[1], self._n_jobs))

    def _write_classes(self, jobs: list[int], classes: list[bytes]) -> None:
        path = self.folder / PREDICTIONS
        if not path.exists():
            self._new_array(PREDICTIONS, self._shape[:2], CLASS)
        offset = array_offset(path, CLASS, self._shape[:2])
        with changed_file(path) as file:
            for job, predicted in zip(jobs, classes, strict=True):
                put(file, offset + job * len(predicted), predicted)

    def _errors(self) -> AbstractContextManager[None]:
        return kept_after("the maps so far are kept: mend it, and repeat the call to resume")
