"""The result of `explain_answer_tree`: one for each level, from documents to sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.percents import counted, percent
from metfa._base.provenance import printable
from metfa._base.validation import as_path
from metfa._base.writing import new_folder
from metfa.results.corrections import check_alpha
from metfa.results.decisions import TooFewSamplesError
from metfa.results.files import LEVELS, load
from metfa.results.manifests import read_json, write_json
from metfa.results.sample import AttributionSample
from metfa.text._lines import cut
from metfa.text.rendering import render_html

__all__ = ["AnswerTree", "folder_of", "found_on", "listed", "load_answer_tree"]

LONGEST_NAME = 60  # letters of a part that was opened, in a sentence
MOST_NAMED = 6


@dataclass(frozen=True, repr=False, eq=False)
class AnswerTree:
    """Which documents raise the score of an answer, and which of their parts, level by level.

    Made by `explain_answer_tree`, or by `load_answer_tree`.

    Attributes
    ----------
    levels : tuple of AttributionSample
        The result of each level, the documents first; as of `metfa.text.explain_answer`. Its own alpha is its share.
    parents : tuple of tuple of (str or None)
        For each level, the part of an earlier level that each of its sources lies in; None for documents.
    alpha : float
        Of all levels together.
    """

    levels: tuple[AttributionSample, ...]
    parents: tuple[tuple[str | None, ...], ...]
    alpha: float

    def found(self, index: int = 0) -> tuple[tuple[str, ...], ...]:
        """Names of the sources that add more than δ in some context, of each level, for one of the answers."""
        return tuple(_named(level, found_on(level)[index]) for level in self.levels)

    @property
    def headed(self) -> dict[str, AttributionSample]:
        """The levels with headings, for ``metfa.report.write(path, tree.headed)``."""
        found = {}
        for number, (level, parents) in enumerate(zip(self.levels, self.parents, strict=True), 1):
            within = list(dict.fromkeys(name for name in parents if name is not None))
            what = f"{counted(level.n_features, 'part')} of {listed(within)}"
            found[f"Level {number}: {what if within else counted(level.n_features, 'document')}"] = level
        return found

    def report(self, path: str | Path, **settings: Any) -> Path:
        """Write one HTML file with all levels; see `metfa.report.write`."""
        from metfa.report import write

        return write(path, self.headed, **settings)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a new folder `path`, with a folder for each level; see `load_answer_tree`."""
        with new_folder(path, replaces=LEVELS if overwrite else None) as folder:
            for number, level in enumerate(self.levels, 1):
                level.save(folder / folder_of(number))
            self.write_manifest(folder)
        return as_path(path, "path")

    def write_manifest(self, folder: Path) -> None:
        """Write what the levels do not say themselves."""
        write_json(folder / LEVELS, {"alpha": self.alpha, "parents": [list(names) for names in self.parents]})

    def __str__(self) -> str:
        said = [f"{heading}: {_marked(level)}" for heading, level in self.headed.items()]
        return "\n".join([*said, _promise(self.alpha, self.levels[0])])

    def __repr__(self) -> str:
        sizes = ", ".join(counted(level.n_features, "source") for level in self.levels)
        return f"AnswerTree({sizes}, alpha={self.alpha:g})"

    def _repr_html_(self) -> str:
        return "".join(render_html(level, title=heading) for heading, level in self.headed.items())


def load_answer_tree(path: str | Path) -> AnswerTree:
    """Read a folder written by `AnswerTree.save`, or by ``explain_answer_tree(..., run=metfa.Run(store=...))``.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If it is unfinished, damaged, or something else.
    """
    folder = as_path(path, "path")
    if not (folder / LEVELS).is_file():
        if folder.is_dir():
            raise ValueError(
                f"{folder} holds no tree of an answer, or an unfinished one: repeat the call that began it"
            )
        raise FileNotFoundError(f"no such folder: {folder}")
    try:
        known = read_json(folder / LEVELS)
        alpha, parents = known["alpha"], known["parents"]
        check_alpha(alpha)
        fits = len(parents) > 0 and all(one is None or isinstance(one, str) for names in parents for one in names)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{folder / LEVELS} is damaged: {error}") from error
    levels = [load(folder / folder_of(number)) for number in range(1, len(parents) + 1)]
    if not fits or any(len(names) != level.n_features for names, level in zip(parents, levels, strict=True)):
        raise ValueError(f"{folder / LEVELS} is damaged: it does not fit its levels")
    return AnswerTree(tuple(levels), tuple(map(tuple, parents)), alpha)


def folder_of(number: int) -> str:
    """Name of the folder of a level."""
    return f"level-{number}"


def listed(names: Sequence[str]) -> str:
    """Names of parts in a sentence; a name may hold commas."""
    shown = [cut(printable(name), LONGEST_NAME) for name in names[:MOST_NAMED]]
    return "; ".join(shown) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def found_on(level: AttributionSample) -> np.ndarray:
    """Which sources add more than δ in some context, (answers, sources); none where the samples are too few."""
    try:
        return level.significance_map() > 0
    except TooFewSamplesError:
        return np.zeros(level.values.shape[1:], bool)


def _named(level: AttributionSample, found: np.ndarray) -> tuple[str, ...]:
    return tuple(str(name) for name, on in zip(level.feature_names or (), found, strict=True) if on)


def _marked(level: AttributionSample) -> str:
    """What is found on a level, in words."""
    terms, each = level.terms(), [listed(_named(level, found)) or "none" for found in found_on(level)]
    said = each[0] if len(each) == 1 else "; ".join(f"of answer {k} {names}" for k, names in enumerate(each))
    return f"{(terms.sides or ('above',))[0]}: {said} ({terms.level})"


def _promise(alpha: float, level: AttributionSample) -> str:
    each = ", for each answer by itself" if len(level.target) > 1 else ""
    delta = f"{float(np.asarray(level.terms().threshold).flat[0]):.3g}"
    return (
        f"With probability at least {percent(1 - alpha)}, no part of any level that adds at most {delta} in every "
        f"context is among them{each}."
    )
