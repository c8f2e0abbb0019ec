"""The one place that opens files for writing: whole files and folders under random names, and changes of a file.

Folders may come from strangers, so nothing is written through a link, be it symbolic or a second name of a file. What
is being written has a name of its own, ``.metfa-`` and random letters, and a lock that ends with its process. So what a
killed process left can be told from what a running one still writes, and `sweep` removes it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from metfa._base.locks import locked
from metfa._base.own_files import begins_with, foreign_in
from metfa._base.temporary import is_temporary, new_name
from metfa._base.validation import as_path

__all__ = [
    "changed_file",
    "check_replaceable",
    "folder_below",
    "kept_after",
    "new_file",
    "new_folder",
    "opened",
    "put",
    "sweep",
]

SAFE = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"))
NOT_WAITING = getattr(os, "O_NONBLOCK", 0)  # for a reader, as a pipe would make it wait


@contextmanager
def new_file(path: Path, *, replace: bool = False) -> Iterator[BinaryIO]:
    """A file to write into; at the end it stands at `path`, whole, and after an error nothing does.

    Parameters
    ----------
    path : Path
        Where it will stand, in a folder that exists.
    replace : bool
        Whether it takes the place of a file that stands there. If that is a link, the link itself is replaced.

    Raises
    ------
    FileExistsError
        If something stands there, without `replace`.
    OSError
        If writing fails; it names `path`.
    """
    with _named(path):
        temporary, handle = _begun(path.parent)
        try:
            with os.fdopen(handle, "wb", closefd=False) as file:
                yield file
            if replace:
                temporary.replace(path)
            else:
                _linked(temporary, path)
        finally:
            with suppress(OSError):
                temporary.unlink()
            os.close(handle)


@contextmanager
def new_folder(path: str | Path, *, replaces: str | None = None) -> Iterator[Path]:
    """A folder to write into; at the end it becomes the new folder `path`, after an error it is removed.

    Parameters
    ----------
    path : path
        Where it will stand.
    replaces : str, optional
        Name of a file. An earlier folder that holds it is replaced, once the new one is whole.

    Raises
    ------
    FileExistsError
        If `path` exists, and is no such earlier folder.
    OSError
        If writing fails; it names the file, and says that nothing is kept.
    """
    target = as_path(path, "path")
    check_replaceable(target, replaces)
    with _named(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent)
        temporary, handle = _begun_folder(target.parent)
    try:
        with kept_after(f"nothing of {target} is kept", moved=(temporary, target)):
            yield temporary
            check_replaceable(target, replaces)
            if target.exists():
                earlier = target.rename(new_name(target.parent))
                try:
                    temporary.rename(target)
                except BaseException:
                    earlier.rename(target)
                    raise
                shutil.rmtree(earlier, ignore_errors=True)  # what stays is swept later
            else:
                temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    finally:
        if handle is not None:
            os.close(handle)


def check_replaceable(path: Path, holding: str | None, *, kind: str = "folder") -> None:
    """Raise a FileExistsError unless `path` is free, or may be replaced.

    Parameters
    ----------
    path : Path
        Where something will be written.
    holding : str, optional
        What may be replaced: a folder with a file of this name, or a file with this text at its start. None: nothing.
    kind : {"folder", "file"}
        What will be written.
    """
    if not (path.exists() or path.is_symlink()):
        return
    if holding is None:
        raise _exists(path, kind)
    found = (path / holding).is_file() if kind == "folder" else path.is_file() and begins_with(path, holding)
    ours = found and not path.is_symlink()
    foreign = foreign_in(path) if ours and kind == "folder" else None
    if not ours or foreign is not None:
        said = f"{path} is no such {kind}" if foreign is None else f"{foreign} is something else, which would be lost"
        raise FileExistsError(f"`overwrite` replaces what an earlier call wrote, and {said}: choose another path")


@contextmanager
def changed_file(path: Path) -> Iterator[BinaryIO]:
    """The plain file at `path`, to be read and changed in place, without a buffer.

    Raises
    ------
    ValueError
        If it is missing, a link, or a file with a second name, through which something else would be changed.
    OSError
        If writing fails; it names `path`.
    """
    with _named(path), open(path, "r+b", buffering=0, opener=lambda path, _: opened(Path(path), os.O_RDWR)) as file:
        yield file  # pyright: ignore[reportReturnType] - a raw file


def opened(path: Path, flags: int) -> int:
    """A handle of the plain file at `path`, which has no other name; raises as `changed_file` does."""
    try:
        handle = os.open(path, flags | SAFE | NOT_WAITING, 0o666)
    except FileNotFoundError as error:
        raise ValueError(f"{path} is missing: the folder is incomplete") from error
    except OSError as error:
        if path.is_symlink() or path.is_dir():
            raise _not_followed(path) from error
        raise
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or path.is_symlink():
        os.close(handle)
        raise _not_followed(path)
    return handle


def put(file: BinaryIO, offset: int, content: bytes | bytearray | memoryview) -> None:
    """Write all of `content` into a file of `changed_file`."""
    with _named(Path(file.name)):
        file.seek(offset)
        rest = memoryview(content)
        while rest:
            rest = rest[file.write(rest) :]


def folder_below(folder: Path, name: str) -> Path:
    """The folder `name` in `folder`, made if there is none; raises a ValueError if it is a link or no folder."""
    below = folder / name
    with suppress(FileExistsError):
        below.mkdir()
    if not stat.S_ISDIR(below.lstat().st_mode):
        raise ValueError(f"{below} is a link or no folder, and is not followed")
    return below


@contextmanager
def kept_after(what: str, *, moved: tuple[Path, Path] | None = None) -> Iterator[None]:
    """Let errors of the system that come from inside also say what is kept, and so what to do.

    `moved` is a folder that would have got another name, and that name: the errors name the files by the latter.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is None:
            raise
        name = Path(os.fsdecode(error.filename))
        if moved is not None and name.is_relative_to(moved[0]):
            name = moved[1] / name.relative_to(moved[0])
        raise OSError(error.errno, f"{error.strerror} ({what})", str(name)) from error


def sweep(folder: Path) -> None:
    """Remove what killed processes left in `folder`; what a running one writes is locked, and stays.

    Where a file system has no locks, nothing is known of the writers, and everything stays.
    """
    with os.scandir(folder) as entries:
        left = [Path(entry.path) for entry in entries if is_temporary(entry.name) and not entry.is_symlink()]
    for path in left:
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY | SAFE | NOT_WAITING)
            try:
                if locked(handle):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            finally:
                os.close(handle)


def _begun(folder: Path) -> tuple[Path, int]:
    """A new, locked file of a random name, and its handle."""
    while True:
        path = new_name(folder)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE, 0o666)
        if _is_safe(handle, path):
            return path, handle
        os.close(handle)


def _begun_folder(folder: Path) -> tuple[Path, int | None]:
    """The same for a folder; there is no handle on Windows, which opens no folders."""
    while True:
        path = new_name(folder)
        path.mkdir()
        try:
            handle = os.open(path, os.O_RDONLY | SAFE)
        except FileNotFoundError:
            continue
        except OSError:
            return path, None
        if _is_safe(handle, path):
            return path, handle
        os.close(handle)


def _is_safe(handle: int, path: Path) -> bool:
    """Whether nobody sweeps it: it is locked, and another process was not faster than the lock."""
    try:
        return locked(handle) and os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False
    except OSError:  # no locks, so nobody sweeps
        return True


def _linked(temporary: Path, path: Path) -> None:
    """Give a file its name, which must be free; that is one step, so that nobody comes between."""
    try:
        os.link(temporary, path, follow_symlinks=False)
    except FileExistsError:
        raise _exists(path, "file") from None
    except (OSError, NotImplementedError):  # a file system without hard links
        check_replaceable(path, None, kind="file")
        temporary.rename(path)


def _exists(path: Path, kind: str) -> FileExistsError:
    return FileExistsError(
        f"`path` exists already: {path}; choose a new {kind}, nothing is overwritten unless you write overwrite=True"
    )


def _not_followed(path: Path) -> ValueError:
    return ValueError(f"{path} is a link or no plain file, and is not followed")


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let errors of the system that name no file or a temporary one, such as those of a full disk, name `path`."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        if error.filename is not None and not is_temporary(Path(os.fsdecode(error.filename)).name):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
