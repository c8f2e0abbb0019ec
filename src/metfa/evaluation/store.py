"""The store of results: one small file for each unit, in any file system that fsspec supports."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from metfa._base.lazy import needs_extra
from metfa._base.validation import as_path, did_you_mean, shown
from metfa._base.writing import folder_below, kept_after, new_file, sweep

__all__ = ["UnitStore"]

OBJECT_STORES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")  # no folders; metfa never makes a bucket
PROTOCOLS = ("file", "local", "memory", *OBJECT_STORES, "adl", "hdfs", "sftp", "smb")
MAX_BYTES = 64 * 2**20
READ_AT_ONCE = 256


class UnitStore:
    """Results of units by their address, below one URL.

    A file at an address is complete: a store of objects (S3, Google's, Azure's) shows an object when all of it is
    there, and elsewhere a file is written under another name and then renamed. Its content has a digest; if a file is
    damaged later, the digest shows it, and the result counts as missing. Writing an address again replaces figures by
    equal figures, so any number of processes can use one store, without locks. Two that run at the same time may
    measure a unit twice.

    In a folder of this machine nothing is written through links, and a run first removes what killed runs have left.
    Elsewhere nobody can tell the half file of a killed run (``*.tmp`` over SFTP, SMB or HDFS, a multipart upload in a
    store of objects) from one that is being written: nothing reads it, and it stays until you remove it.

    Parameters
    ----------
    url : str or Path
        A folder, or a URL of fsspec such as ``s3://bucket/study``.
    options : dict
        Passed to fsspec, such as ``{"endpoint_url": ...}`` for S3.

    Raises
    ------
    ValueError
        If files cannot be written and renamed with the protocol of the URL.
    """

    url: str
    options: dict[str, Any]
    fs: Any
    root: str

    def __init__(self, url: str | Path, options: dict[str, Any] | None = None) -> None:
        if not isinstance(url, str | Path) or not str(url).strip():
            raise TypeError(f"`store` must be a folder or a URL, got {shown(url)}")
        if not isinstance(options, Mapping | None):
            raise TypeError(f"`store_options` must be a dict, got {shown(options)}")
        self.url, self.options = str(url), dict(options or {})
        protocol = self.url.partition("://")[0] if "://" in self.url else "file"
        as_path(self.url.partition("://")[2] or self.url, "store")  # what no file system can hold
        if "::" in self.url or protocol not in PROTOCOLS:
            raise ValueError(
                f"`store` must be a folder or a URL of {', '.join(PROTOCOLS)}, got {self.url!r}"
                f"{did_you_mean(protocol, PROTOCOLS)}"
            )
        with needs_extra("`store`", "study"):
            import fsspec
            from fsspec.implementations.local import LocalFileSystem
        self.fs, root = fsspec.core.url_to_fs(self.url, **self.options)
        self.root = root.rstrip("/")
        self._is_local, self._has_folders = isinstance(self.fs, LocalFileSystem), protocol not in OBJECT_STORES
        if not self._is_local and any(character in self.root for character in "*?["):
            raise ValueError(
                f"`store` must be a URL without *, ? and [, because fsspec reads them as patterns, got {self.url!r}"
            )
        if self.fs.isfile(self.root):
            raise NotADirectoryError(f"`store` must be a folder, but {self.url} is a file")

    def check_writable(self) -> None:
        """Write a small file and remove it again, so that a store that cannot be written shows before hours of work.

        Raises
        ------
        OSError
            If that fails.
        """
        path = f"{self.root}/units/{os.urandom(6).hex()}.tmp"
        try:
            self._put(path, b"")
            self.fs.rm_file(path)
            if self._is_local:
                for folder in Path(self.root).glob("*/*/"):
                    sweep(folder)
        except (OSError, ValueError) as error:
            raise OSError(f"`store`: nothing can be written to {self.url}: {error}") from error

    def write(self, address: str, result: dict[str, Any]) -> None:
        """Keep the result of a unit."""
        text = _canonical(result)
        self._put(self._path("units", address), _file(_digest(address, text), text))

    def write_failure(self, address: str, failure: dict[str, Any]) -> None:
        """Keep the record of a failure."""
        self._put(self._path("failures", address), _canonical(failure))

    def read(self, addresses: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Results of the units that are in the store and not damaged."""
        here = self._listed("units")
        wanted = [address for address in addresses if self._path("units", address) in here]
        results = {}
        for start in range(0, len(wanted), READ_AT_ONCE):
            part = {self._path("units", address): address for address in wanted[start : start + READ_AT_ONCE]}
            for path, content in self._contents(list(part)).items():
                result = _whole(content, part[path])
                if result is not None:
                    results[part[path]] = result
        return results

    def read_failures(self, addresses: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Records of the failed units."""
        here = self._listed("failures")
        paths = {self._path("failures", address): address for address in addresses}
        found = self._contents([path for path in paths if path in here])
        return {paths[path]: failure for path, content in found.items() if (failure := _parsed(content)) is not None}

    def forget_failure(self, address: str) -> None:
        """Remove the record of a failure, once the unit has a result."""
        path = self._path("failures", address)
        if self.fs.exists(path):
            with suppress(FileNotFoundError):  # another process removed it
                self.fs.rm_file(path)

    def _path(self, kind: str, address: str) -> str:
        return f"{self.root}/{kind}/{address[:2]}/{address}.json"

    def _listed(self, kind: str) -> set[str]:
        self.fs.invalidate_cache()
        folder = f"{self.root}/{kind}"
        return set(self.fs.find(folder)) if self.fs.exists(folder) else set()

    def _contents(self, paths: list[str]) -> dict[str, bytes]:
        """Read many files, at once where the file system can; files that cannot be read are left out.

        It reads ranges, because fsspec's other call for many files reads brackets and stars in a name as patterns.
        """
        found = self.fs.cat_ranges(paths, None, None, on_error="return") if paths else []
        return {path: content for path, content in zip(paths, found, strict=True) if isinstance(content, bytes)}

    def _put(self, path: str, content: bytes) -> None:
        if self._is_local:
            self._put_here(Path(path), content)
        elif not self._has_folders:  # a store of objects shows an object when all of it is there
            self.fs.pipe_file(path, content)
        else:
            self.fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            temporary = f"{path}.{os.urandom(6).hex()}.tmp"
            self.fs.pipe_file(temporary, content)
            self.fs.mv(temporary, path)

    def _put_here(self, path: Path, content: bytes) -> None:
        folder = Path(self.root)
        folder.mkdir(parents=True, exist_ok=True)
        for name in path.parent.relative_to(folder).parts:
            folder = folder_below(folder, name)
        with suppress(OSError):  # an empty folder of that name
            path.rmdir()
        with (
            kept_after("the units so far are kept: mend it, and repeat the call to go on"),
            new_file(path, replace=True) as file,
        ):
            file.write(content)


def _canonical(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


BEFORE, BETWEEN = b'{"digest":"', b'","result":'


def _file(digest: bytes, text: bytes) -> bytes:
    return BEFORE + digest + BETWEEN + text + b"}"


def _digest(address: str, text: bytes) -> bytes:
    """Digest of a result and its address, so that a file at the address of another unit counts as damaged."""
    return hashlib.blake2b(f"{address} ".encode() + text, digest_size=16).hexdigest().encode()


def _parsed(content: bytes) -> dict[str, Any] | None:
    if len(content) > MAX_BYTES:
        return None
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _whole(content: bytes, address: str) -> dict[str, Any] | None:
    """The result in a file, or None if the file is damaged; the digest is of the bytes as stored."""
    digest, between, text = content.removeprefix(BEFORE).partition(BETWEEN)
    text = text.removesuffix(b"}")
    if content != _file(digest, text) or not between or digest != _digest(address, text):
        return None
    result = _parsed(text)
    return result if result is not None and isinstance(result.get("rows"), list) else None
