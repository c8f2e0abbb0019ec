"""JSON files: written at once, and read as what anybody may have written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from metfa._base.writing import new_file
from metfa.results.arrays import require_plain_file

__all__ = ["damage_named", "read_json", "read_manifest", "write_json"]

MAX_JSON_BYTES = 64 * 2**20


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file at once: a reader finds the old file or the new one, never half of it."""
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False)
    if len(text) > MAX_JSON_BYTES:
        raise ValueError(f"{path} would have {len(text)} bytes, more than the {MAX_JSON_BYTES} that are read back")
    with new_file(path, replace=True) as file:
        file.write(text.encode())


def read_json(path: Path) -> Any:
    """Read a JSON file that anybody may have written; if that fails, a ValueError names the file."""
    require_plain_file(path)
    if path.stat().st_size > MAX_JSON_BYTES:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, more than the {MAX_JSON_BYTES} allowed")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


@contextmanager
def read_manifest(path: Path, schema_version: int) -> Iterator[dict[str, Any]]:
    """The content of the manifest at `path`; the caller makes a result from it within the context.

    Raises
    ------
    ValueError
        If it is not an object of this version, or an entry is missing or of a wrong kind; the message names the file.
    """
    manifest = read_json(path)
    if not isinstance(manifest, dict):
        raise ValueError(f"{path} is damaged: an object is needed, got {type(manifest).__name__}")
    version = manifest.get("schema_version")
    if version != schema_version:
        raise ValueError(f"{path} has schema version {version!r:.40}; this metfa reads version {schema_version}")
    with damage_named(path):
        yield manifest


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Errors about what a manifest holds become a ValueError that names the file."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{path} is damaged: {type(error).__name__} at {error}") from error
