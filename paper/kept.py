"""Figures that are kept: a small table a measurement, a line a unit. Scripts go on from them, pages are made from them.

A file's first line holds, behind "# ", the settings that its figures were measured with, the number of its units and a
digest of what follows, as JSON. Then comes a CSV table: the name of the unit, its seconds, its figures with four
digits. A figure that is missing has its reason in its place, behind "missing: ".
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metfa._base.owner import Owner
from metfa._base.writing import new_file

__all__ = ["RESULTS", "VERSION", "Kept", "read"]

RESULTS = Path(__file__).parent / "results"
VERSION = 1  # of what scripts measure: raise it where a figure of the same settings means something else
MISSING = "missing: "
FIRST = ("unit", "seconds")

Figures = dict[str, "float | str"]


@dataclass
class Kept:
    """The table of one measurement.

    Attributes
    ----------
    path : Path
    setting : dict
        What decides the figures: strings, numbers, and lists and dicts of them.
    lines : dict of str to dict
        Figures of each finished unit, in the order in which they were finished: floats, and reasons (str) of those that
        are missing; "seconds" is among them.
    """

    path: Path
    setting: dict[str, Any]
    lines: dict[str, Figures] = field(default_factory=dict, repr=False)

    @classmethod
    def opened(cls, path: Path, setting: Mapping[str, Any]) -> Kept:
        """The table in this file, or an empty one where there is no file.

        Raises
        ------
        ValueError
            For a file that is damaged, or of another version or setting. It is left as it is.
        """
        wanted = json.loads(json.dumps({"version": VERSION, **setting}, allow_nan=False))
        if not path.exists():
            return cls(path, wanted)
        found = read(path)
        differ = sorted(
            name for name in wanted.keys() | found.setting.keys() if wanted.get(name) != found.setting.get(name)
        )
        if differ:
            raise ValueError(
                f"{path} was measured with another setting ({', '.join(differ)}): it was left as it is; move it away, "
                "or give another folder"
            )
        return found

    def add(self, unit: str, figures: Mapping[str, float | str], seconds: float) -> None:
        """Keep a finished unit, and what other processes have kept meanwhile: one after the other reads and writes.

        Raises
        ------
        ValueError
            For figures with other names than those of the units before it, and for damage in the file.
        """
        line = {name: _figure(_shown(figure)) for name, figure in {"seconds": round(seconds, 1), **figures}.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(self.path.parent):
            self.lines = Kept.opened(self.path, self.setting).lines
            known = next(iter(self.lines.values()), line)
            if list(known) != list(line):
                other = sorted(known.keys() ^ line.keys()) or "the same in another order"
                raise ValueError(f"{unit} has other figures than the units in {self.path}: {other}")
            self.lines.setdefault(unit, line)
            with new_file(self.path, replace=True) as file:
                file.write(self._text().encode())

    def column(self, name: str) -> list[float | str]:
        """One figure of all units."""
        return [line[name] for line in self.lines.values()]

    def _text(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["unit", *next(iter(self.lines.values()))])
        for unit, line in self.lines.items():
            writer.writerow([unit, *map(_shown, line.values())])
        rest = out.getvalue()
        about = {"setting": self.setting, "units": len(self.lines), "digest": _digest(rest)}
        return f"# {json.dumps(about, allow_nan=False)}\n{rest}"


def read(path: Path) -> Kept:
    """The table in a file, whatever its settings are.

    Raises
    ------
    ValueError
        If the file is damaged. It is left as it is.
    """
    try:
        return _parsed(path)
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise ValueError(
            f"{path} is no table of results ({type(error).__name__}: {error}): it was left as it is; move it away"
        ) from error


def _parsed(path: Path) -> Kept:
    first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    if not first.startswith("# "):
        raise ValueError("it has no first line with settings")
    about = json.loads(first[2:])
    setting, n_units = dict(about["setting"]), about["units"]
    rows = list(csv.reader(io.StringIO(rest), strict=True))
    if not rows or tuple(rows[0][:2]) != FIRST or len(set(rows[0])) < len(rows[0]):
        raise ValueError("its columns are not those of a table of results")
    lines: dict[str, Figures] = {}
    for number, row in enumerate(rows[1:], 3):
        if len(row) != len(rows[0]):
            raise ValueError(f"line {number} has {len(row)} entries, the table {len(rows[0])} columns")
        if row[0] in lines:
            raise ValueError(f"line {number} repeats the unit {row[0]}")
        lines[row[0]] = {name: _figure(text) for name, text in zip(rows[0][1:], row[1:], strict=True)}
    if len(lines) != n_units or not rest.endswith("\n"):
        raise ValueError(f"it says {n_units} units and has {len(lines)}, or its end is missing")
    if about["digest"] != _digest(rest):
        raise ValueError("its figures are not those that were kept: its digest says so")
    return Kept(path, setting, lines)


def _digest(rest: str) -> str:
    return hashlib.blake2b(rest.encode(), digest_size=8).hexdigest()


def _alone(folder: Path) -> Owner:
    """The right to write into a folder, as soon as nobody else has it."""
    while True:
        with suppress(BlockingIOError):
            return Owner(folder, "folder")
        time.sleep(0.02)


def _shown(figure: float | str) -> str:
    if isinstance(figure, str):
        return MISSING + figure
    if not math.isfinite(figure):
        return MISSING + "not finite"
    return f"{figure:.4g}"


def _figure(text: str) -> float | str:
    if text.startswith(MISSING):
        return text.removeprefix(MISSING)
    figure = float(text)
    if not math.isfinite(figure):
        raise ValueError(f"{text!r} is no figure")
    return figure
