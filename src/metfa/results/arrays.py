"""Arrays as .npy files, described in a manifest by dtype, shape and digest, and checked before a number is read."""

from __future__ import annotations

import hashlib
import math
import stat
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.mapped import mapped
from metfa._base.writing import new_file

__all__ = [
    "KINDS",
    "array_offset",
    "describe_array",
    "digest_of",
    "map_array",
    "read_array",
    "require_plain_file",
    "write_array",
    "write_array_header",
]

MAX_AXES = 32
KINDS = "biufcmMU"  # of dtypes without Python objects; bytes are texts of an unknown encoding


def write_array(path: Path, array: np.ndarray) -> dict[str, Any]:
    """Write an .npy file, whole; returns its entry in a manifest, which `read_array` checks."""
    with new_file(path, replace=True) as file:
        write_array_header(file, array.dtype, array.shape)
        for part in array if array.ndim > 1 else [array]:  # one sample at a time: memory stays flat
            file.write(part.tobytes())
    return describe_array(path, array)


def write_array_header(file: Any, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Write the start of an .npy file; the numbers follow in C order."""
    np.lib.format.write_array_header_2_0(
        file, {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    )


def describe_array(path: Path, array: np.ndarray) -> dict[str, Any]:
    """Entry of a manifest for the array that was written to `path`.

    The digest is that of the array's own numbers, so that a file that does not hold them is noticed when it is read.
    """
    with path.open("rb") as file:
        digest = hashlib.blake2b(file.read(array_offset(path, array.dtype, array.shape)), digest_size=16)
    for part in array if array.ndim > 1 else [array]:
        digest.update(part.tobytes())
    return {"dtype": array.dtype.str, "shape": list(array.shape), "digest": digest.hexdigest()}


def digest_of(path: Path) -> str:
    """BLAKE2b digest of a file."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def require_plain_file(path: Path) -> None:
    """Raise unless `path` is a file, and not a link to one."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError as error:
        raise ValueError(f"{path} is missing: the folder is incomplete") from error
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is a link or no plain file, and is not followed")


def array_offset(path: Path, dtype: np.dtype, shape: tuple[int, ...]) -> int:
    """Where the numbers of an .npy file start; raises unless it holds exactly `shape` numbers of `dtype`."""
    require_plain_file(path)
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            reader = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}[version[0]]
            found = reader(file)
        except Exception as error:  # whatever NumPy's parser meets in a header that anybody may have written
            raise ValueError(f"{path} is no array file: {error}") from error
        offset = file.tell()
    if found != (shape, False, dtype):
        raise ValueError(f"{path} holds {found[2]} {found[0]}, expected {dtype} {shape}")
    expected = offset + math.prod(shape) * dtype.itemsize
    if path.stat().st_size != expected:
        raise ValueError(f"{path} is truncated or padded: {path.stat().st_size} bytes, {expected} expected")
    return offset


def map_array(path: Path, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Memory map of an .npy file, which holds exactly `shape` numbers of `dtype`."""
    return mapped(path, dtype, array_offset(path, dtype, shape), shape)


def read_array(manifest: Path, name: str, described: dict[str, Any]) -> np.ndarray:
    """Memory map of an .npy file beside a manifest; its dtype, shape, size and digest must be those of the manifest."""
    path = manifest.with_name(f"{name}.npy")
    if not isinstance(described, dict) or not isinstance(described["shape"], list):
        raise TypeError(f"{name}, whose shape must be a list")
    shape = tuple(described["shape"])
    if len(shape) > MAX_AXES or not all(type(side) is int and side >= 0 for side in shape):
        raise ValueError(f"{manifest} is damaged: {name} has the shape {shape!r:.80}")
    if not isinstance(described["dtype"], str):
        raise TypeError(f"{name}, whose dtype must be a text")
    try:
        dtype = np.dtype(described["dtype"])
    except ValueError as error:
        raise TypeError(error) from error
    if dtype.kind not in KINDS:
        raise ValueError(f"{manifest} is damaged: {name} has the dtype {dtype}")
    found = map_array(path, dtype, shape)
    if digest_of(path) != described["digest"]:
        raise ValueError(f"{path} was changed after it was saved: its digest differs from the manifest's")
    return found
