"""The folder of an explained object: its pixels and the classes of all pixels, beside the samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.other_run import OtherRunError
from metfa.results import files
from metfa.results.arrays import read_array, write_array

__all__ = ["CONTEXT", "REGION", "SAMPLE", "read_classes", "read_region", "save_classes", "save_region"]

CONTEXT, REGION, CLASSES, SAMPLE = "context.json", "region.npy", "classes.npy", "sample"
SCHEMA_VERSION = 1


def save_region(region: np.ndarray, folder: Path) -> None:
    """Write the object's pixels into `folder`, the folder of its samples.

    Raises
    ------
    FileExistsError
        If samples of another object are kept there.
    """
    if (folder / SAMPLE).exists():
        if not (folder / CONTEXT).exists() or not np.array_equal(read_region(folder), region):
            raise OtherRunError(f"{folder} holds samples of another object; give a new folder", "of another object")
        return
    folder.mkdir(parents=True, exist_ok=True)
    described = write_array(folder / REGION, region)
    files.write_json(folder / CONTEXT, {"schema_version": SCHEMA_VERSION, "region": described})


def save_classes(classes: np.ndarray, folder: Path) -> None:
    """Write the classes of all pixels beside the object's pixels, unless they are there."""
    with files.read_manifest(folder / CONTEXT, SCHEMA_VERSION) as about:
        known = dict(about)
    if "classes" not in known:
        files.write_json(folder / CONTEXT, {**known, "classes": write_array(folder / CLASSES, classes)})


def read_region(folder: Path) -> np.ndarray:
    """The object's pixels, (height, width) bool, that `save_region` wrote."""
    region = _read(folder, "region")
    assert region is not None
    if region.dtype != bool or region.ndim != 2:
        raise ValueError(f"{folder / REGION} must hold pixels (height, width) bool, got {region.dtype} {region.shape}")
    if region.view(np.uint8).max(initial=0) > 1:
        raise ValueError(f"{folder / REGION} is damaged: it holds no booleans")
    return region


def read_classes(folder: Path) -> np.ndarray | None:
    """The classes of all pixels, (height, width) int; None in a folder from before they were kept."""
    return _read(folder, "classes")


def _read(folder: Path, name: str) -> Any:
    with files.read_manifest(folder / CONTEXT, SCHEMA_VERSION) as about:
        if name == "classes" and name not in about:
            return None
        return np.array(read_array(folder / CONTEXT, name, about[name]))
