"""The folder of recorded explanations, with which the present ones are compared.

``regression.json`` says how they were made, and ``inputs`` holds a folder of samples for each input, which is complete
when it has its manifest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metfa._base.temporary import is_temporary
from metfa._base.validation import check_number
from metfa._base.writing import folder_below
from metfa.results.files import MANIFEST, load
from metfa.results.manifests import read_manifest, write_json
from metfa.results.sample import AttributionSample

__all__ = ["RECORD", "Record"]

RECORD, INPUTS = "regression.json", "inputs"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Record:
    """A folder, and what it must hold: the explanations that are `asked` for (`Regression.asked`)."""

    folder: Path
    asked: dict[str, Any]

    @classmethod
    def found_in(cls, folder: Path) -> Record:
        """The record that a folder holds, whatever was asked for."""
        asked = cls(folder, {})._kept()["asked"]
        return cls(folder, asked)

    @property
    def places(self) -> list[Path]:
        """The folder of each input, whose number does not depend on the order of the inputs."""
        numbers = {name: number for number, name in enumerate(sorted(self.asked["inputs"]))}
        return [self.folder / INPUTS / f"{numbers[name]:06d}" for name in self.asked["inputs"]]

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def check_free(self, model: str) -> bool:
        """Whether the folder holds the finished record; raises if it holds anything but this record, of this model."""
        if not self.folder.exists():
            return False
        if not self.folder.is_dir():
            raise NotADirectoryError(f"`out` must be a folder, but {self.folder} is a file")
        if not (self.folder / RECORD).exists():
            if all(is_temporary(path.name) for path in self.folder.iterdir()):
                return False
            raise FileExistsError(f"`out`: {self.folder} is not empty and holds no record; give a new folder")
        kept = self._kept()
        differing = self._differing(kept) or (f"of {kept['model']}, not {model}" if kept["model"] != model else None)
        if differing is not None:
            raise FileExistsError(f"`out`: {self.folder} holds a record {differing}; give a new folder")
        return self._missing is None

    def begin(self, about: dict[str, Any]) -> None:
        """Write what is recorded, unless an interrupted call did."""
        self.folder.mkdir(parents=True, exist_ok=True)
        folder_below(self.folder, INPUTS)
        if not (self.folder / RECORD).exists():
            write_json(self.folder / RECORD, {"schema_version": SCHEMA_VERSION, "asked": self.asked, **about})

    def read(self) -> tuple[dict[str, Any], list[tuple[str, AttributionSample]]]:
        """How it was made, and the samples of each input by its name; raises unless it is finished and as asked."""
        if not self.folder.is_dir():
            raise FileNotFoundError(f"`against`: no such folder: {self.folder}")
        if not (self.folder / RECORD).exists():
            raise ValueError(f"`against`: {self.folder} holds no record ({RECORD} is missing): make one first")
        kept = self._kept()
        differing = self._differing(kept)
        if differing is not None:
            raise ValueError(
                f"`against`: {self.folder} holds a record {differing}: check it by the file that it was made with, or "
                "make a new record"
            )
        if self._missing is not None:
            raise ValueError(
                f"`against`: {self.folder} is an unfinished record, {self._missing} is missing: repeat the call that "
                "began it"
            )
        return kept, [(name, load(place)) for name, place in zip(self.asked["inputs"], self.places, strict=True)]

    @property
    def _missing(self) -> str | None:
        """Name of the first input that has no samples."""
        names = zip(self.asked["inputs"], self.places, strict=True)
        return next((name for name, place in names if not (place / MANIFEST).exists()), None)

    def _kept(self) -> dict[str, Any]:
        with read_manifest(self.folder / RECORD, SCHEMA_VERSION) as kept:
            if not isinstance(kept["asked"], dict) or not isinstance(kept["asked"]["inputs"], dict):
                raise TypeError("asked, which must be an object with inputs")
            check_number(kept["delta"], "delta")
            return {"weights": kept["weights"], **kept, "model": str(kept["model"])}

    def _differing(self, kept: dict[str, Any]) -> str | None:
        """How the record differs from what is asked for, in words; None if it does not."""
        had = kept["asked"]
        for name, value in self.asked.items():
            if name != "inputs" and had.get(name) != value:
                return f"with {name}={had.get(name)}, not {value}"
        inputs, others = self.asked["inputs"], had["inputs"]
        for name in sorted({*inputs, *others}):
            if name not in others:
                return f"without the input {name!r}"
            if name not in inputs:
                return f"with the input {name!r}, which is not among the inputs now"
            if inputs[name] != others[name]:
                if sorted(map(repr, inputs.values())) == sorted(map(repr, others.values())):
                    return (
                        f"of the same inputs in another order, as the input {name!r} is another one now (texts are "
                        "paired by their places, pictures by their names)"
                    )
                return f"of another content or target of the input {name!r}"
        return None
