"""The state of an unfinished attack, from which an interrupted one goes on: images, the best so far, the optimiser."""

from __future__ import annotations

import io as memory
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.validation import as_path
from metfa.results import files

__all__ = ["Kept"]

CALL = "call.json"


@dataclass(frozen=True)
class Kept:
    """State of each batch, one file for each, in a folder beside the folder of the result."""

    folder: Path

    @classmethod
    def beside(cls, store: str | Path) -> Kept:
        """The folder of an attack whose result will be in `store`; raises if `store` exists."""
        path = as_path(store, "store")
        if path.exists() or path.is_symlink():
            raise FileExistsError(
                f"`store` exists already: {path}; `metfa.attacks.load_attack` reads a finished attack, and nothing is "
                "overwritten"
            )
        return cls(path.with_name(f"{path.name}.unfinished"))

    def root(self) -> int | None:
        """Seed of the interrupted attack; None if there is none."""
        if not (self.folder / CALL).exists():
            return None
        return int(self._call()["rng"], 16)

    def begin(self, call: dict[str, Any]) -> None:
        """Go on with an attack by the same call, or begin a new one.

        Raises
        ------
        FileExistsError
            If another call was interrupted there.
        """
        if not (self.folder / CALL).exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            files.write_json(self.folder / CALL, call)
            return
        found = self._call()
        for name, value in call.items():
            if found.get(name) != value:
                raise FileExistsError(
                    f"{self.folder} holds an interrupted attack with {name}={found.get(name)!r:.80}, not "
                    f"{value!r:.80}: give another `store`, or remove it"
                )

    def read(self, batch: int) -> dict[str, np.ndarray] | None:
        """State of a batch; None if there is none."""
        path = self.folder / f"batch_{batch}.npz"
        if not path.exists():
            return None
        files.require_plain_file(path)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return dict(arrays)
        except Exception as error:  # NumPy may raise anything for a file that anybody may have written
            raise ValueError(f"{path} is damaged: remove {self.folder} to begin anew") from error

    def write(self, batch: int, state: dict[str, Any]) -> None:
        """Replace the state of a batch, arrays by name, in one step."""
        buffer = memory.BytesIO()
        np.savez(buffer, **state)
        path = self.folder / f"batch_{batch}.npz"
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
        temporary.write_bytes(buffer.getvalue())
        temporary.replace(path)

    def remove(self) -> None:
        """Remove the folder: the attack is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self) -> dict[str, Any]:
        call = files.read_json(self.folder / CALL)
        if not isinstance(call, dict) or not isinstance(call.get("rng"), str):
            raise ValueError(f"{self.folder / CALL} is damaged: remove {self.folder} to begin anew")
        return call
