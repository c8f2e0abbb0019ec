"""What a scorer has answered, kept in a folder: the pilot's scores, a run of samples, and at the end the result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.owner import Owner
from metfa._base.store_folder import check_free, check_store
from metfa._base.validation import as_path
from metfa._base.writing import kept_after, sweep
from metfa.results.arrays import write_array
from metfa.results.files import MANIFEST, load, write_manifest
from metfa.results.manifests import read_json, write_json
from metfa.results.sample import AttributionSample
from metfa.sampling.folder import LEARNED
from metfa.sampling.streams import root_entropy

__all__ = ["AnswerStore"]

PROMPTS = "prompts"  # folder of the samples, in which all answers of a prompt lie together
ARRAYS = ("values", "vanilla")


@dataclass(frozen=True)
class AnswerStore:
    """A folder that this call alone writes into until it ends; without one, nothing is kept.

    Attributes
    ----------
    folder : Path or None
    learned : dict or None
        What an earlier call has left.
    """

    folder: Path | None
    learned: dict[str, Any] | None

    @classmethod
    @contextmanager
    def opened(cls, store: Any) -> Iterator[AnswerStore]:
        """The folder, made where it is missing; raises if it holds anything else."""
        if store is None:
            yield cls(None, None)
            return
        folder = as_path(store, "store")
        check_store(folder)
        folder.mkdir(parents=True, exist_ok=True)
        check_free(folder, folder.iterdir(), (LEARNED,), "answers")
        with Owner(folder, "store"):
            sweep(folder)
            yield cls(folder, _read(folder / LEARNED) if (folder / LEARNED).exists() else None)

    def root(self, rng: Any) -> int:
        """Root of all streams: that of the earlier call, where no seed is given."""
        return int(self.learned["rng"], 16) if self.learned is not None and rng is None else root_entropy(rng)

    def begun(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What is known of these sources and settings; raises if the folder holds answers to others."""
        if self.learned is None:
            return {**asked, "whole": None, "scores": []}
        if {name: self.learned.get(name) for name in asked} != asked:
            raise ValueError(f"`store` holds answers to other sources or settings: {self.folder}; give another folder")
        return self.learned

    def write(self, known: dict[str, Any]) -> None:
        """Keep what is known so far."""
        if self.folder is not None:
            with kept_after("the answers so far are kept: mend it, and repeat the call to go on"):
                write_json(self.folder / LEARNED, known)

    @property
    def of_samples(self) -> Path | None:
        """The folder of the samples."""
        return None if self.folder is None else self.folder / PROMPTS

    def result(self) -> AttributionSample | None:
        """The result of an earlier call, if it was finished."""
        there = self.folder is not None and (self.folder / MANIFEST).exists()
        return load(self.folder) if there and self.folder is not None else None

    def finish(self, sample: AttributionSample) -> None:
        """Write the result, for `metfa.load`."""
        if self.folder is None:
            return
        for name in ARRAYS:
            write_array(self.folder / f"{name}.npy", getattr(sample, name))
        write_manifest(self.folder, sample)


def _read(path: Path) -> dict[str, Any]:
    learned = read_json(path)
    try:
        known = np.array(learned["scores"], dtype=np.float64)
        int(learned["rng"], 16)
        fits = known.ndim <= 2 and bool(np.isfinite(known).all()) and learned["whole"] is not None
        np.array(learned["whole"], dtype=np.float64)
    except (KeyError, TypeError, ValueError, AttributeError):
        fits = False
    if not fits:
        raise ValueError(f"{path} is damaged: give another folder")
    return learned
