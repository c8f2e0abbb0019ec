"""The sources of an answer, from files and folders."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from metfa._base.validation import shown
from metfa.text.pieces import cut_into

__all__ = ["Split", "groups_of", "read_sources"]

TEXTS, LINES = (".txt", ".md", ".rst", ".text"), (".jsonl", ".ndjson")
LARGEST = 10_000_000  # bytes of a file


class Split(str, enum.Enum):
    """What a source is."""

    files = "files"
    paragraphs = "paragraphs"
    sentences = "sentences"


def read_sources(paths: Sequence[Path], split: Split | None) -> dict[str, str]:
    """Names and texts: of files, of the text files of folders, of the lines of JSON files; or of their parts.

    Without `split`, a single text file is cut into paragraphs, and several files stay whole.
    """
    files = [file for path in paths for file in _files(path)]
    whole = dict(_unique(part for file, name in files for part in _parts(file, name)))
    single = len(files) == 1 and files[0][0].suffix.lower() not in LINES
    kind = split or (Split.paragraphs if single else Split.files)
    if kind is Split.files:
        return whole
    found: dict[str, str] = {}
    for name, text in whole.items():
        pieces = [piece.strip() for piece in cut_into(text, kind.value)]
        noun = kind.value.removesuffix("s")
        for number, piece in enumerate(pieces, 1):
            found[f"{noun} {number}" if single else f"{name}, {noun} {number}"] = piece
    return found


def groups_of(texts: Sequence[str], names: Sequence[str]) -> dict[str, list[str]] | None:
    """Groups from texts such as ``year=chronicle|plaque``; None where there are none."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, members = text.partition("=")
        listed = [member.strip() for member in members.split("|")]
        if not (equals and name.strip() and all(listed)):
            raise ValueError(f"`--group` must be NAME=SOURCE|SOURCE, with names of sources, got {text!r}")
        unknown = [member for member in listed if member not in names]
        if unknown:
            known = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
            raise ValueError(f"`--group`: there is no source named {unknown[0]!r}; there are {known}")
        if name.strip() in found:
            raise ValueError(f"`--group` names {name.strip()!r} twice")
        found[name.strip()] = listed
    return found or None


def _files(path: Path) -> list[tuple[Path, str]]:
    """The files that a path stands for, and what they are called."""
    if path.is_dir():
        suffixes = (*TEXTS, *LINES)
        found = sorted(file for file in path.rglob("*") if file.is_file() and file.suffix.lower() in suffixes)
        found = [file for file in found if not any(part.startswith(".") for part in file.relative_to(path).parts)]
        if not found:
            raise FileNotFoundError(f"{path} holds no texts: files that end with {', '.join(suffixes)} are read")
        return [(file, file.relative_to(path).as_posix()) for file in found]
    if not path.exists():
        raise FileNotFoundError(f"no such file or folder: {path}")
    return [(path, path.name)]


def _parts(file: Path, name: str) -> Iterator[tuple[str, str]]:
    if file.stat().st_size > LARGEST:
        raise ValueError(f"{file} has more than {LARGEST:,} bytes: cut it into parts")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is no text in UTF-8: {error}; save its text as UTF-8") from error
    if file.suffix.lower() in LINES:
        yield from _lines(file, text)
        return
    if not text.strip():
        raise ValueError(f"{file} is empty: leave it out")
    yield name, text.strip()


def _lines(file: Path, text: str) -> Iterator[tuple[str, str]]:
    """Named parts: a line holds an object with "text" and perhaps "name", or a text."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            read: Any = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{file}, line {number}: no JSON: {error}") from error
        part = {"text": read} if isinstance(read, str) else read
        named = isinstance(part, dict) and isinstance(part.get("text"), str)
        if not named or not isinstance(part.get("name", ""), str):
            raise ValueError(
                f'{file}, line {number}: must be {{"name": "...", "text": "..."}} or a text, got {shown(read)}'
            )
        if not part["text"].strip():
            raise ValueError(f"{file}, line {number}: the text is empty: leave it out")
        yield part.get("name") or f"line {number}", part["text"].strip()


def _unique(parts: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    taken: set[str] = set()
    for name, text in parts:
        if name in taken:
            raise ValueError(f"two sources are called {name!r}: give them other names, or leave one out")
        taken.add(name)
        yield name, text
