"""A comparison in a folder: the folders ``before`` and ``after`` of its parts, from which an interrupted run resumes.

While it is unfinished, ``run.json`` says what is compared, and, as soon as the last sample is made, how sampling ended.
So a call that is killed while the parts are finished, one after the other, ends in the same way when it is repeated.
The last step is the manifest of a comparison, which `metfa.load` reads. ``.lock`` belongs to the call that writes.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from metfa._base.owner import LOCK, Owner
from metfa._base.store_folder import check_free, check_store
from metfa._base.validation import as_path
from metfa._base.writing import kept_after, sweep
from metfa.results.files import MANIFEST, PARTS, load, write_comparison
from metfa.results.manifests import read_json, write_json
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample
from metfa.results.stopping import Stopping
from metfa.sampling.folder import RUN

__all__ = ["PairFolder"]


class PairFolder:
    """A folder that this call alone writes into until it ends.

    Parameters
    ----------
    path : path
    asked : dict
        What is asked of the comparison, as JSON; the folders of the parts know what is asked of them.
    batch : int
        Number of inputs.
    over : Regions, optional
        The regions of the rule that ends sampling.

    Attributes
    ----------
    finished : bool
        Whether the comparison is finished.
    ended : (int, Stopping or None) or None
        Number of samples and how sampling ended, where an interrupted run had made them all.

    Raises
    ------
    FileExistsError
        If the folder holds anything other than this comparison, finished or not; the message names what differs.
    BlockingIOError
        If another call writes into it.
    ValueError
        If it holds another unfinished comparison, or is a link.
    """

    folder: Path
    finished: bool

    def __init__(self, path: str | Path, asked: dict[str, Any], batch: int, over: Regions | None) -> None:
        self.folder, self._asked, self._batch, self._over = as_path(path, "store"), asked, batch, over
        self.finished = (self.folder / MANIFEST).exists()
        self.ended: tuple[int, Stopping | None] | None = None
        self._open = ExitStack()

    def __enter__(self) -> PairFolder:
        if self.finished:
            self._check_finished()
            return self
        _check_free(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._open.enter_context(Owner(self.folder, "store"))
        try:
            sweep(self.folder)
            self.finished = (self.folder / MANIFEST).exists()  # another call has just ended
            if self.finished:
                self._open.close()
                self._check_finished()
            elif (self.folder / RUN).exists():
                self._resume()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """Let others write."""
        self._open.close()

    def begin(self) -> None:
        """Note what is compared, unless an interrupted run has."""
        if not self.finished and not (self.folder / RUN).exists():
            write_json(self.folder / RUN, self._asked)

    def end(self, n_samples: int, stopping: Stopping | None) -> None:
        """Note how sampling ended."""
        ended = {"n_samples": n_samples, "stopping": None if stopping is None else stopping.written()}
        write_json(self.folder / RUN, {**self._asked, "ended": ended})

    def finish(self, sample: AttributionSample) -> None:
        """Write the manifest of the comparison, whose parts are in their folders as they were made, unscaled."""
        with kept_after("the maps so far are kept: mend it, and repeat the call to resume"):
            write_comparison(self.folder, sample, scale=sample.provenance["compared"]["scale"])
            (self.folder / RUN).unlink(missing_ok=True)

    def result(self) -> AttributionSample:
        """The finished comparison."""
        with suppress(OSError):  # the call that made it may have been killed in its last step, or may be in it
            if any((self.folder / name).exists() for name in (RUN, LOCK)):
                with Owner(self.folder, "store"):
                    (self.folder / RUN).unlink(missing_ok=True)
        return load(self.folder)

    def _resume(self) -> None:
        kept = read_json(self.folder / RUN)
        if not isinstance(kept, dict) or "scale" not in kept:
            raise FileExistsError(
                f"`store` holds an unfinished run of one explainer, and no comparison: {self.folder}; give another "
                "folder"
            )
        for name, asked in self._asked.items():
            if kept.get(name) != asked:
                raise ValueError(
                    f"`store` holds an unfinished comparison with {name}={kept.get(name)}, this call has {asked}: "
                    "repeat the call as it was to resume, or give another folder"
                )
        if "ended" in kept:
            try:
                n_samples, stopping = kept["ended"]["n_samples"], kept["ended"]["stopping"]
                if stopping is not None:
                    stopping = replace(Stopping.read(stopping, self._batch, n_samples), over=self._over)
            except (KeyError, TypeError) as error:
                raise ValueError(
                    f"{self.folder / RUN} is damaged and cannot be resumed: give another folder"
                ) from error
            self.ended = n_samples, stopping

    def _check_finished(self) -> None:
        """Raise unless the finished result is a comparison on the terms of this call."""
        manifest = read_json(self.folder / MANIFEST)
        made = manifest.get("compared") if isinstance(manifest, dict) else None
        if not isinstance(made, dict):
            raise FileExistsError(
                f"`store` holds a finished result of one explainer, and no comparison: {self.folder}; give another "
                "folder"
            )
        for part in PARTS:
            if not (self.folder / part / MANIFEST).exists():
                raise ValueError(f"{self.folder / part} is missing or unfinished, so that the comparison is incomplete")
        for name, asked in self._asked.items():
            if name in made and made[name] != asked:
                parts = ", ".join(f"metfa.load({str(self.folder / part)!r})" for part in PARTS)
                raise FileExistsError(
                    f"`store` holds a finished comparison with {name}={made[name]}, this call has {asked}: give "
                    f"another folder, or compare its parts, `metfa.compare({parts}, ...)`"
                )


def _check_free(folder: Path) -> None:
    """Raise unless `folder` is new or holds nothing but what an unfinished comparison may hold."""
    check_store(folder)
    if folder.exists():
        parts = [folder / part for part in PARTS]
        held = [entry for entry in folder.iterdir() if entry.name not in PARTS]
        held += [entry for part in parts if part.is_dir() for entry in part.iterdir()]
        held += [part for part in parts if part.exists() and not part.is_dir()]
        check_free(folder, held, (RUN,), "unfinished comparison")
