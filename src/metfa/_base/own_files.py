"""Which files of a folder are metfa's: what `overwrite` may remove, and whose other files it never does."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from metfa._base.temporary import is_temporary

__all__ = ["begins_with", "foreign_in"]

BEGINNING = 4096  # bytes of a file in which a mark of ours is looked for
WRITTEN = (  # names of all files that this library writes into a folder of its own
    *("manifest.json", "run.json", "done.bin", ".lock", "learned.json", "inputs.json", "context.json", "attack.json"),
    *(
        "about.json",
        "levels.json",
    ),
    *("changes.json", "failures.json", "rows.csv", "tables.md", "tables.tex", "table-[0-9]*.csv"),
    *("differences.md", "differences.tex", "difference-[0-9]*.csv"),
    *("report.txt", "report.html", "words.html", "figure.png", "figure-[0-9]*.png", "maps.png", "maps-[0-9]*.png"),
    *("regions.png", "certified.png"),
    *("adversarial.png", "values.npy", "vanilla.npy", "scores.npy", "predictions.npy", "inputs_[0-9]*.npy"),
    *("regions_*.npy", "over_*.npy", "region.npy", "classes.npy", "target_map.npy", "curve_[0-9]*.npy"),
    *("clean_*.npy", "adversarial_*.npy", "rounded_*.npy"),
)


def foreign_in(folder: Path) -> Path | None:
    """A file below `folder` that metfa did not write, or a link; None if there is none."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            return path
        if any(map(is_temporary, path.relative_to(folder).parts)):
            continue
        if path.is_file() and not any(fnmatchcase(path.name, name) for name in WRITTEN):
            return path
    return None


def begins_with(path: Path, mark: str) -> bool:
    """Whether a file holds a text among its first bytes, by which metfa's files of one kind are known."""
    with path.open("rb") as file:
        return mark.encode() in file.read(BEGINNING)
