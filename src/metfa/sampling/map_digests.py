"""Which maps of an unfinished run are done: a digest of each, so that only what is whole counts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from metfa._base.writing import new_file
from metfa.results.arrays import require_plain_file

__all__ = ["DIGEST", "Done", "digest_of_map"]

DIGEST = 8  # bytes of a map's digest; zeros where there is no map yet


class Done:
    """The file ``done.bin``: for each job the digest of its map and its predicted class, or zeros.

    Raises
    ------
    ValueError
        If the file has another length.
    """

    def __init__(self, path: Path, n_jobs: int) -> None:
        self._path, self._n_jobs = path, n_jobs
        self._digests = bytearray()
        if path.exists():
            require_plain_file(path)
            found = path.read_bytes()
            if len(found) == DIGEST * n_jobs:
                self._digests = bytearray(found)
            elif len(found) != n_jobs:  # as it was once, without digests: then all maps are made again
                raise ValueError(
                    f"{path} is damaged and cannot be resumed: it has {len(found)} bytes for {n_jobs} maps, {DIGEST} "
                    "each; give another folder"
                )

    @property
    def begun(self) -> bool:
        """Whether there is such a file."""
        return bool(self._digests)

    @property
    def number(self) -> int:
        """How many jobs are done."""
        return sum(job in self for job in range(self._n_jobs))

    def __contains__(self, job: int) -> bool:
        return any(self._digests[DIGEST * job : DIGEST * (job + 1)])

    def begin(self) -> None:
        """Write the file, with nothing done."""
        self._digests = bytearray(DIGEST * self._n_jobs)
        with new_file(self._path, replace=True) as file:
            file.write(self._digests)

    def forget(self, jobs: Iterable[int]) -> None:
        """Count these jobs as not done."""
        for job in jobs:
            self._digests[DIGEST * job : DIGEST * (job + 1)] = bytes(DIGEST)

    def damaged(self, jobs: range, maps: np.ndarray, classes: np.ndarray | None) -> list[int]:
        r"""Those of the `jobs` that are done, but with another map (sample, batch, \*features) or class than here."""
        found = []
        for job in jobs:
            place = divmod(job, maps.shape[1])
            predicted = b"" if classes is None else classes[place].tobytes()
            if job in self and self._digests[DIGEST * job : DIGEST * (job + 1)] != digest_of_map(
                maps[place], predicted
            ):
                found.append(job)
        return found


def digest_of_map(row: np.ndarray, predicted: bytes) -> bytes:
    """Digest of a map and its predicted class, never zeros."""
    found = hashlib.blake2b(row.tobytes() + predicted, digest_size=DIGEST).digest()
    return found if any(found) else b"\1" * DIGEST
