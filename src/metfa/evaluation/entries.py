"""Entries of files that describe what is explained: read from TOML, checked, and turned into methods and noises."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from metfa._base.lazy import needs_extra
from metfa._base.validation import did_you_mean
from metfa.by_name.methods import Of, check_method, check_settings
from metfa.by_name.noises import noise_of
from metfa.evaluation.study import NamedMethod

__all__ = ["check_known", "check_model", "method_of", "named_noise", "parsed"]

MAX_BYTES = 2**20
METHOD = ("method", "settings")
DOWNLOADED = ("timm", "torchvision")


def parsed(path: Path, what: str) -> dict[str, Any]:
    """The tables of a TOML file of at most 1 MiB; `what` is the word for such a file."""
    if not path.is_file():
        raise FileNotFoundError(f"no such {what}: {path}")
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path} is larger than a {what} can be ({MAX_BYTES} bytes)")
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        with needs_extra(f"a {what} file", "study"):
            import tomli as tomllib  # pyright: ignore[reportMissingImports]
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from error


def check_known(table: Any, names: Iterable[str], where: str) -> None:
    """Raise unless a table has no entries but those with these names."""
    if not isinstance(table, Mapping):
        raise ValueError(f"{where} must be a table, got {table!r}")
    for name in table:
        if name not in names:
            raise ValueError(
                f"{where} has no entry {name!r}{did_you_mean(name, names)}; it may have {', '.join(names)}"
            )


def check_model(name: str, what: str, *, allow_import: bool, allow_download: bool) -> None:
    """Raise if loading the model would run code or download weights, and that is not allowed."""
    source, colon, _ = name.partition(":")
    if not colon or name.endswith(".npz"):
        return
    if source in DOWNLOADED:
        if not allow_download:
            raise ValueError(
                f"the {what} names {name!r}, and {source} may download its weights: allow it by --allow-download"
            )
    elif not allow_import:
        raise ValueError(f"the {what} names {name!r}, and importing it runs its code: allow it by --allow-import")


def method_of(entry: Any, of: Of, where: str, *, allow_import: bool) -> NamedMethod:
    """A method by its name, or by a table with `method` and `settings`; `where` is the table's name in the file."""
    if isinstance(entry, str):
        entry = {"method": entry}
    check_known(entry, METHOD, f"[{where}]")
    method, settings = entry.get("method"), entry.get("settings", {})
    if not isinstance(method, str) or not isinstance(settings, Mapping):
        raise ValueError(f"[{where}]: `method` must be a string and `settings` a table")
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    source, colon, _ = method.partition(":")
    if colon and source != "captum":
        if not allow_import:
            raise ValueError(f"[{where}] names {method!r}, and importing it runs its code: allow it by --allow-import")
    else:
        try:
            check_method(method, of)
            check_settings(method, settings, of)
        except (ValueError, TypeError) as error:
            raise type(error)(f"[{where}]: {error}") from error
    return NamedMethod(method, settings, of)


def named_noise(name: str, text: Any, table: str, of: Of = "image") -> Any:
    """The noise that the entry `name` of a table names."""
    if not isinstance(text, str):
        raise ValueError(f"[{table}]: `{name}` must be a string such as 'gaussian:0.1', got {text!r}")
    try:
        return noise_of(text, of)
    except ValueError as error:
        raise ValueError(f"[{table}] {name}: {error}") from error
