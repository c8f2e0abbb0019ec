"""The inputs of a study, loaded one at a time: pictures of a folder or a list, texts, or arrays."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from metfa._arrays import as_array, is_array, to_host
from metfa._base.pictures import open_image
from metfa._base.validation import as_path, is_text, positive_int
from metfa.sampling.rows import Rows
from metfa.sampling.streams import numbered_ids
from metfa.text.words import words_of

__all__ = ["Arrays", "ImageFiles", "Texts", "study_inputs"]

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm")


@dataclass(frozen=True)
class ImageFiles:
    """Pictures in files; the model's preprocessing turns each into pixels when it is needed."""

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    targets: tuple[int | None, ...]

    def __len__(self) -> int:
        return len(self.paths)

    def taken(self, places: Sequence[int]) -> ImageFiles:
        """Some of them, in this order."""
        return ImageFiles(_at(self.paths, places), _at(self.names, places), _at(self.targets, places))

    def digest(self, index: int, loaded: Any = None) -> str:  # noqa: ARG002
        """Digest of the file, without decoding it."""
        return hashlib.blake2b(self.paths[index].read_bytes(), digest_size=16).hexdigest()

    def load(self, index: int, preprocess: Callable[[Any], Any] | None) -> Any:
        """Pixels (3, height, width)."""
        if preprocess is None:
            raise ValueError(
                "`model` has no preprocessing for pictures: give the name of a model, or a metfa.models.LoadedModel "
                "with a `preprocess`"
            )
        return preprocess(open_image(self.paths[index]))


@dataclass(frozen=True)
class Arrays:
    """Arrays without a batch axis, in the form that the model takes; a sequence gives one at a time."""

    sequence: Any
    names: tuple[str, ...]
    targets: tuple[int | None, ...]

    def __len__(self) -> int:
        return len(self.names)

    def taken(self, places: Sequence[int]) -> Arrays:
        """Some of them, in this order."""
        return Arrays(_Taken(self.sequence, places), _at(self.names, places), _at(self.targets, places))

    def digest(self, index: int, loaded: Any = None) -> str:
        """Digest of the content, of what was `loaded` if that is given."""
        try:
            return Rows((self.load(index, None) if loaded is None else loaded)[None]).ids()[0]
        except (TypeError, ValueError) as error:
            raise type(error)(f"`inputs[{index}]`: {error}") from error

    def load(self, index: int, preprocess: Callable[[Any], Any] | None) -> Any:  # noqa: ARG002
        """The array itself, as it is."""
        entry = self.sequence[index]
        if isinstance(entry, tuple | dict | str):
            raise TypeError(
                f"`inputs[{index}]` must be an array, got {type(entry).__name__}: if the data set holds pairs, give "
                "only the arrays, and the labels as `targets`"
            )
        return as_array(entry, f"inputs[{index}]")


@dataclass(frozen=True)
class Texts:
    """Texts, each a str or the list of its tokens."""

    texts: tuple[Any, ...]
    names: tuple[str, ...]
    targets: tuple[int | None, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def taken(self, places: Sequence[int]) -> Texts:
        """Some of them, in this order."""
        return Texts(_at(self.texts, places), _at(self.names, places), _at(self.targets, places))

    def digest(self, index: int) -> str:
        """Digest of the words."""
        return Rows([self.texts[index]]).ids()[0]

    def load(self, index: int, preprocess: Callable[[Any], Any] | None) -> Any:  # noqa: ARG002
        """The text itself."""
        return self.texts[index]


@dataclass(frozen=True)
class _Taken:
    """Entries of a sequence at some places, each loaded when it is asked for."""

    sequence: Any
    places: Sequence[int]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> Any:
        return self.sequence[self.places[index]]


def _at(entries: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
    return tuple(entries[place] for place in places)


def study_inputs(
    inputs: Any, targets: Any, limit: int | None, shuffle: int | None = None
) -> ImageFiles | Arrays | Texts:
    """Inputs of any kind that a study takes: the first `limit`, in a random order where `shuffle` is a seed.

    Raises
    ------
    TypeError, ValueError, OSError
        For inputs of an unknown kind, missing files, a CSV file without a column "path" or "text", and targets that do
        not fit.
    """
    if limit is not None:
        positive_int(limit, "limit")
    if shuffle is not None:
        found, order = study_inputs(inputs, targets, None), positive_int(shuffle, "shuffle", 0)
        places = sorted(range(len(found)), key=lambda place: hashlib.blake2b(f"{order}/{place}".encode()).digest())
        return found.taken(places[:limit])
    if isinstance(inputs, str | Path):
        return _files(as_path(inputs, "inputs").absolute(), targets, limit)
    if is_array(inputs):
        if inputs.ndim < 2:
            raise ValueError(
                f"`inputs` must have a batch axis and features, got an array of shape {tuple(inputs.shape)}"
            )
        sequence: Any = inputs
    elif hasattr(inputs, "__getitem__") and hasattr(inputs, "__len__") and not isinstance(inputs, dict):
        sequence = inputs
    elif isinstance(inputs, Iterable) and not isinstance(inputs, dict | set):
        sequence = list(islice(inputs, limit))
    else:
        raise TypeError(
            "`inputs` must be a folder of pictures, a CSV file with a column 'path' or 'text', an array with a batch "
            f"axis or a sequence of arrays or texts, got {type(inputs).__name__}"
        )
    n = len(sequence) if limit is None else min(limit, len(sequence))
    if n == 0:
        raise ValueError("`inputs` is empty: there is nothing to explain")
    names, chosen = _numbered(n), _targets(targets, n, len(sequence))
    if isinstance(sequence, list | tuple) and is_text(sequence[0]):
        return Texts(_texts(sequence[:n]), names, chosen)
    return Arrays(sequence, names, chosen)


def _numbered(n: int) -> tuple[str, ...]:
    return tuple(f"{index:0{len(str(n - 1))}d}" for index in range(n))


def _texts(entries: Sequence[Any]) -> tuple[Any, ...]:
    if all(isinstance(entry, str) and entry.lower().endswith(SUFFIXES) for entry in entries):
        raise ValueError(f"`inputs` holds names of pictures ({entries[0]!r:.80}, ...): give a folder or a CSV file")
    for index, entry in enumerate(entries):
        if not is_text(entry):
            raise TypeError(f"`inputs[{index}]` must be a text or a list of tokens like the first, got {entry!r:.80}")
        try:
            words_of(entry)
        except ValueError as error:
            raise ValueError(f"`inputs[{index}]`: {str(error).removeprefix('`inputs`: ')}") from error
    return tuple(entries)


def _files(path: Path, targets: Any, limit: int | None) -> ImageFiles | Texts:
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if _is_picture(file, path))
        if not found:
            raise ValueError(f"`inputs`: no pictures ({', '.join(SUFFIXES)}) in {path}")
        paths = found[:limit]
        names = _names(file.relative_to(path).as_posix() for file in paths)
        return ImageFiles(tuple(paths), names, _targets(targets, len(paths), len(found)))
    if not path.is_file():
        raise FileNotFoundError(f"`inputs`: no such folder or file: {path}")
    if path.suffix.lower() != ".csv":
        raise ValueError(f"`inputs` must be a folder or a .csv file, got {path}")
    if targets is not None:
        raise ValueError("`targets` must be None for a CSV file: write them in its column 'target'")
    return _index(path, limit)


def _is_picture(file: Path, folder: Path) -> bool:
    """Whether the path is hidden: such files and folders are copies and notes of other programs, not data."""
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return file.suffix.lower() in SUFFIXES and not hidden and file.is_file()


def _index(path: Path, limit: int | None) -> ImageFiles | Texts:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            columns = reader.fieldnames or []
            lines = [(reader.line_num, line) for line in islice(reader, limit)]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"`inputs`: {path} is not a CSV file in UTF-8: {error}") from error
    if ("path" in columns) == ("text" in columns):
        raise ValueError(
            f"`inputs`: {path} must have a column 'path' (pictures) or 'text', it has {', '.join(columns) or 'none'}"
        )
    if not lines:
        raise ValueError(f"`inputs`: {path} has no lines: there is nothing to explain")
    targets = [_target_of(line.get("target"), f"{path}, line {number}") for number, line in lines]
    if "text" in columns:
        try:
            texts = _texts([line["text"] or "" for _, line in lines])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        return Texts(texts, _numbered(len(lines)), tuple(targets))
    paths = []
    for number, line in lines:
        file = path.parent / (line["path"] or "")
        if not line["path"] or not file.is_file():
            raise FileNotFoundError(f"{path}, line {number}: no such picture: {line['path'] or 'nothing is named'}")
        paths.append(file)
    return ImageFiles(tuple(paths), _names(line["path"] for _, line in lines), tuple(targets))


def _names(texts: Iterable[str]) -> tuple[str, ...]:
    """A different name for each input, valid in UTF-8; if a picture is listed twice, a number is added."""
    return numbered_ids(text.encode("utf-8", "backslashreplace").decode() for text in texts)


def _target_of(text: str | None, where: str) -> int | None:
    if text is None or not text.strip():
        return None
    if not text.strip().isdecimal():
        raise ValueError(f"{where}: `target` must be a class index or empty, got {text!r}")
    return int(text)


def _targets(targets: Any, n: int, of: int) -> tuple[int | None, ...]:
    """Targets of the first n inputs; `targets` holds them for these or for all inputs."""
    if targets is None:
        return (None,) * n
    if is_array(targets):
        targets = to_host(targets).tolist()
    if isinstance(targets, str) or not isinstance(targets, Sequence):
        raise TypeError(f"`targets` must be a sequence with one class index for each input, got {targets!r}")
    if len(targets) not in (n, of):
        raise ValueError(f"`targets` must hold one class index for each of the {of} inputs, got {len(targets)}")
    return tuple(
        None if target is None else positive_int(target, f"targets[{index}]", 0)
        for index, target in enumerate(targets[:n])
    )
