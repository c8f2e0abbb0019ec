"""The state of an unfinished attack, from which an interrupted one goes on: images, the best so far, the optimiser."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.owner import Owner
from metfa._base.validation import as_path
from metfa._base.writing import kept_after, new_file, sweep
from metfa.attacks.result import AttackResult
from metfa.attacks.saving import ATTACK, load_attack
from metfa.results import manifests
from metfa.results.arrays import require_plain_file

__all__ = ["Kept"]

CALL = "call.json"


class Kept:
    """State of each batch, one file for each, in a folder beside the folder of the result, `store`.

    Raises
    ------
    FileExistsError
        If `store` holds anything but a finished attack.
    """

    def __init__(self, store: str | Path) -> None:
        self.store = as_path(store, "store")
        self.folder = self.store.with_name(f"{self.store.name}.unfinished")
        self.finished: AttackResult | None = None
        self._owner = ExitStack()
        if self.store.exists() or self.store.is_symlink():
            if not (self.store / ATTACK).exists():
                raise FileExistsError(
                    f"`store` exists already and holds no attack: {self.store}; nothing is overwritten, give a new one"
                )
            self.finished = load_attack(self.store)

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *_: object) -> None:
        """Let other calls go on with it."""
        self._owner.close()

    def root(self) -> int | None:
        """Seed of the finished or interrupted attack; None if there is none."""
        if self.finished is not None:
            return _root(self.finished.provenance.get("rng"), self.store)
        return _root(self._call()["rng"], self.folder / CALL) if (self.folder / CALL).exists() else None

    def begin(self, call: dict[str, Any]) -> AttackResult | None:
        """Go on with an attack by the same call, or begin a new one; returns the result if it was finished.

        Raises
        ------
        FileExistsError
            If another call was interrupted there, or made the result.
        BlockingIOError
            If another call attacks there.
        """
        if self.finished is not None:
            self._check(f"{self.store} holds a finished attack", call, self.finished.provenance.get("call"))
            return self.finished
        self.folder.mkdir(parents=True, exist_ok=True)
        self._owner.enter_context(Owner(self.folder, "store"))
        sweep(self.folder)
        if (self.folder / CALL).exists():
            self._check(f"{self.folder} holds an interrupted attack", call, self._call())
        else:
            manifests.write_json(self.folder / CALL, call)
        return None

    def _check(self, holds: str, call: dict[str, Any], found: Any) -> None:
        found = found if isinstance(found, dict) else {}  # results did not always say it
        for name, value in call.items():
            if found.get(name) != value:
                was, asked = repr(found.get(name)), repr(value)
                pairs = enumerate(zip(was, asked, strict=False))
                start = max(0, next((place for place, (a, b) in pairs if a != b), 0) - 40)  # before they differ
                was, asked = (f"{'...' if start else ''}{text[start : start + 100]}" for text in (was, asked))
                raise FileExistsError(f"{holds} with {name}={was}, not {asked}: give another `store`, or remove it")

    def read(self, batch: int) -> dict[str, np.ndarray] | None:
        """State of a batch; None if there is none."""
        path = self.folder / f"batch_{batch}.npz"
        if not path.exists():
            return None
        require_plain_file(path)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return dict(arrays)
        except Exception as error:  # NumPy may raise anything for a file that anybody may have written
            raise ValueError(f"{path} is damaged: remove {self.folder} to begin anew") from error

    def write(self, batch: int, state: dict[str, Any]) -> None:
        """Replace the state of a batch, arrays by name, in one step."""
        with (
            kept_after("the steps so far are kept: mend it, and repeat the call to go on"),
            new_file(self.folder / f"batch_{batch}.npz", replace=True) as file,
        ):
            np.savez(file, **state)

    def finish(self, result: AttackResult) -> None:
        """Save the result and remove what was kept."""
        with kept_after("the steps so far are kept: mend it, and repeat the call to go on"):
            result.save(self.store)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self) -> dict[str, Any]:
        call = manifests.read_json(self.folder / CALL)
        if not isinstance(call, dict) or not isinstance(call.get("rng"), str):
            raise ValueError(f"{self.folder / CALL} is damaged: remove {self.folder} to begin anew")
        return call


def _root(seed: Any, where: Path) -> int:
    try:
        return int(seed, 16)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} is damaged: its seed is {seed!r:.40}") from error
