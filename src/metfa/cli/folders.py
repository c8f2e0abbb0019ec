"""The folders of commands: whether they may be written into, what they hold, and how they are read again."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from metfa._base.other_run import OtherRunError
from metfa._base.own_files import foreign_in
from metfa._base.owner import Owner
from metfa._base.temporary import is_temporary
from metfa._base.writing import check_replaceable
from metfa.results.files import LEVELS, MANIFEST, load
from metfa.results.manifests import read_json, write_json
from metfa.sampling.store import RUN
from metfa.segmentation.explanation import load_context
from metfa.segmentation.kept import CONTEXT, REGION, SAMPLE
from metfa.text.answers.tree import load_answer_tree

__all__ = [
    "REPORT", "begin_folder", "check_folder", "check_new", "is_finished", "note", "read_about", "read_folder",
    "sampled_in",
]  # fmt: skip

ABOUT, REPORT = "about.json", "report.txt"
Found = TypeVar("Found")


def check_folder(folder: Path, call: dict[str, Any], *, overwrite: bool = False) -> None:
    """Refuse a folder that cannot be made or that holds anything but results of the same call.

    With `overwrite` results of another call are allowed too, and nothing else.
    """
    if (folder / ABOUT).exists():
        name = _differing(folder, call)
        if name is not None and not overwrite:
            raise FileExistsError(
                f"{folder} holds results with {name}={read_about(folder).get(name)}, not {call[name]}; give another "
                "`--out`, or --overwrite"
            )
        if name is not None:
            _check_own(folder)
        return
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir():
        raise NotADirectoryError(f"`--out` must be a folder, but {existing} is a file")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(f"`--out`: nothing can be written in {existing}")
    if existing == folder and not all(is_temporary(path.name) for path in folder.iterdir()):
        raise FileExistsError(f"`--out`: {folder} is not empty and holds no results of such a call; give a new folder")


def check_new(path: Path, holding: str, option: str = "--out", *, overwrite: bool, kind: str = "folder") -> None:
    """Refuse a path that is taken; with `overwrite` it may be what such a command wrote (`check_replaceable`)."""
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already: give another `{option}`, or --overwrite")
    check_replaceable(path, holding, kind=kind)


def begin_folder(folder: Path, call: dict[str, Any], *, overwrite: bool = False) -> None:
    """Make the folder, without results of another call, which `overwrite` removes, and write down the call."""
    if overwrite and (folder / ABOUT).exists() and _differing(folder, call) is not None:
        _remove(folder)
    folder.mkdir(parents=True, exist_ok=True)
    note(folder, call)


def sampled_in(folder: Path, call: dict[str, Any], sample: Callable[[], Found], *, overwrite: bool = False) -> Found:
    """What `sample` makes in the folder of this call, or finds there; it says so if that is another run's.

    Then the folder is refused, or with `overwrite` removed and sampled anew.
    """
    begin_folder(folder, call, overwrite=overwrite)
    try:
        return sample()
    except OtherRunError as error:
        if not overwrite:
            raise FileExistsError(
                f"{folder} holds samples {error.held}; give another `--out`, or --overwrite"
            ) from error
    _remove(folder)
    begin_folder(folder, call)
    return sample()


def is_finished(folder: Path) -> bool:
    """Whether `folder` holds a report of its samples, the last of the views to be written."""
    return (folder / REPORT).exists()


def note(folder: Path, about: dict[str, Any]) -> None:
    """Write down what is explained, unless `folder` is finished and so has it."""
    if not is_finished(folder):
        write_json(folder / ABOUT, about)


def read_folder(folder: Path) -> tuple[Any, dict[str, Any]]:
    """Sample (for a scene the context of the object) and description in a folder, or a saved sample alone."""
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    if not (folder / SAMPLE).is_dir():
        nested = [shlex.quote(str(path.parent)) for path in sorted(folder.glob(f"*/{SAMPLE}"))]
        if nested:
            raise ValueError(f"{folder} holds several results, name one of them: {', '.join(nested)}")
        return load(folder), {}
    sample = _loaded(folder)
    return sample, read_about(folder) if (folder / ABOUT).exists() else {}


def _differing(folder: Path, call: dict[str, Any]) -> str | None:
    """The first setting in which the results of a folder are not of this call; None if they are, or if it has none."""
    kept = read_about(folder)
    differing = [name for name in call if kept.get(name) != call[name]]
    begun = is_finished(folder) or any((folder / SAMPLE).glob("*"))
    return differing[0] if differing and (begun or not call.keys() <= kept.keys()) else None


def _remove(folder: Path) -> None:
    """Remove a folder of results, unless another command samples there."""
    _check_own(folder)
    if (folder / SAMPLE).is_dir():
        with Owner(folder / SAMPLE, "--out"):
            pass
    shutil.rmtree(folder)


def _check_own(folder: Path) -> None:
    """Raise if there is anything in a folder that no command has written."""
    if (foreign := foreign_in(folder)) is not None:
        raise FileExistsError(
            f"`--overwrite` removes what metfa has written, and {foreign} is something else: move it, or give another "
            "`--out`"
        )


def _loaded(folder: Path) -> Any:
    finished = any((folder / SAMPLE / name).exists() for name in (MANIFEST, LEVELS))
    begun = (folder / SAMPLE / RUN).exists() or ((folder / ABOUT).exists() and not is_finished(folder))
    if begun and not finished:
        raise ValueError(f"{folder} holds an unfinished run: repeat the command that began it")
    if (folder / CONTEXT).exists():
        return load_context(folder)
    if (folder / SAMPLE / LEVELS).exists():
        return load_answer_tree(folder / SAMPLE)
    if (folder / REGION).exists():
        raise ValueError(f"{folder} is incomplete: {CONTEXT} is missing, which says what the object is")
    return load(folder / SAMPLE)


def read_about(folder: Path) -> dict[str, Any]:
    """The description in a folder."""
    about = read_json(folder / ABOUT)
    if not isinstance(about, dict):
        raise ValueError(f"{folder / ABOUT} is damaged: an object is needed, got {type(about).__name__}")
    if "bfloat16" in about:  # of folders from before `--fast`, whose networks were not folded
        about["fast"] = "bfloat16, not folded" if about.pop("bfloat16") else None
    return about
