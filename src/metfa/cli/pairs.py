"""Two folders of results as pairs: what explains the same input in both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from metfa._base.content_ids import is_content_id
from metfa._base.provenance import printable
from metfa._base.temporary import is_temporary
from metfa.cli.folders import read_folder
from metfa.cli.titles import file_name
from metfa.evaluation.record import RECORD, Record
from metfa.results.attribution_parts import AttributionParts
from metfa.results.differences import difference_of
from metfa.results.files import MANIFEST
from metfa.results.sample import AttributionSample
from metfa.sampling.store import RUN
from metfa.segmentation.kept import SAMPLE

__all__ = ["Pair", "Pairs", "pairs_of"]

ABOUT = ("image", "text", "model", "method", "noise", "predicted", "explained")


class Result(NamedTuple):
    """The result of one input, its name, what is known of it, and whether it was explained with other inputs."""

    name: str
    sample: AttributionSample
    about: dict[str, Any]
    place: str  # in its folder, by which equal inputs are paired
    together: bool = False


class Pair(NamedTuple):
    """The results of one input in both folders."""

    before: Result
    after: Result

    @property
    def name(self) -> str:
        """Name of the input."""
        return self.before.name

    @property
    def together(self) -> bool:
        """Whether other inputs were explained in the same call, whose time is that of all."""
        return self.before.together or self.after.together

    def difference(self, scale: str, names: tuple[str, str] | None) -> AttributionSample:
        """The paired differences; errors name the input."""
        try:
            return difference_of(self.before.sample, self.after.sample, scale=scale, names=names)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from error

    def about(self, names: tuple[str, str] | None) -> dict[str, Any]:
        """What is known of both: once where they agree, else both, each with its name."""
        first, second = names or ("before", "after")
        both = {}
        for name in ABOUT:
            one, other = _said(self.before.about, name), _said(self.after.about, name)
            if one is not None or other is not None:
                both[name] = one if one == other else f"{first}: {one or 'unknown'}; {second}: {other or 'unknown'}"
        return {**both, "compared": f"{first} and {second}"} if both else {}


class Pairs(NamedTuple):
    """The pairs, and the names of inputs that are in one folder alone."""

    pairs: list[Pair]
    only_before: list[str]
    only_after: list[str]


def pairs_of(before: Path, after: Path) -> Pairs:
    """The results of two folders by the ids of their inputs; those of one input several times also by their places.

    Raises
    ------
    OSError, ValueError
        For folders that hold no results, or no input that is in both.
    """
    sides = [_named(list(_results_in(folder))) for folder in (before, after)]
    left = {_key(result): [] for result in sides[1]}
    for result in sides[1]:
        left[_key(result)].append(result)
    pairs, only_before = [], []
    for result in sides[0]:
        same = left.get(_key(result), [])
        several = len(same) > 1 or sum(_key(other) == _key(result) for other in sides[0]) > 1
        found = next((other for other in same if not several or other.place == result.place), None)
        if found is None:
            only_before.append(result.name)
        else:
            pairs.append(Pair(result, found))
            same.remove(found)
    only_after = [result.name for results in left.values() for result in results]
    if not pairs:
        kinds = [{type(result.sample.inputs).__name__ for result in results} for results in sides]
        why = "their contents differ"
        if kinds[0] != kinds[1]:
            why = "one explains texts and the other does not" if "list" in kinds[0] | kinds[1] else "their kinds differ"
        raise ValueError(
            f"no input of {before} is in {after}, {why}: explain the same inputs by models that see the same pixels or "
            "words; for a changed input give both the same name, `metfa.Run(input_names=...)` in Python"
        )
    return Pairs(pairs, only_before, only_after)


def _key(result: Result) -> str:
    return result.sample.input_names[0]


def _named(results: list[Result]) -> list[Result]:
    """Results by the names that the user gave their inputs, else by their places; with both where a name repeats."""
    given = [_given(result.sample) for result in results]
    times = Counter(given)
    names = [
        result.name if name is None else name if times[name] == 1 else f"{result.name}, {name}"
        for result, name in zip(results, given, strict=True)
    ]
    return [Result(printable(name), *result[1:]) for result, name in zip(results, names, strict=True)]


def _given(sample: AttributionSample) -> str | None:
    """The name that the user gave an input; None for digests of contents, and for populations, which hold many."""
    name = sample.input_names[0]
    return None if sample.population is not None or is_content_id(name) else printable(name) or None


def _results_in(folder: Path) -> Iterator[Result]:
    """The results of each input in a folder of results, of folders of results, or of a regression check."""
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    if (folder / RECORD).exists():
        kept, samples = Record.found_in(folder).read()
        about = {"model": kept["model"], **{name: kept["asked"].get(name) for name in ("method", "noise")}}
        yield from (Result(name, sample, about, name) for name, sample in samples)
        return
    folders = [folder]
    if not _holds_result(folder):
        folders = sorted(path for path in folder.iterdir() if not is_temporary(path.name) and _holds_result(path))
        if not folders:
            raise ValueError(f"{folder} holds no results of metfa")
    for path in folders:
        sample, about = read_folder(path)
        if isinstance(sample, AttributionParts):
            raise ValueError(
                f"{path} has several parts, which this command does not compare: in Python compare each part, "
                "`metfa.compare(before[name], after[name])`"
            )
        if not isinstance(sample, AttributionSample):
            raise ValueError(
                f"{path} explains an object of a scene, which this command does not compare: in Python compare the two "
                "`metfa.segmentation.load_context(...).sample`"
            )
        batch, name = len(sample.target), path.resolve().name
        for row in range(batch):
            place = name if batch == 1 else f"{name}, input {row}"
            yield Result(place, sample.of_input(row), about, place, together=batch > 1)


def _holds_result(folder: Path) -> bool:
    return folder.is_dir() and any((folder / name).exists() for name in (SAMPLE, MANIFEST, RUN))


def _said(about: dict[str, Any], name: str) -> str | None:
    said = about.get(name)
    if said is not None and name == "image":
        return file_name(said)
    if said is not None and name == "method" and about.get("settings"):
        return f"{said} ({about['settings']})"
    return None if said is None else str(said)
