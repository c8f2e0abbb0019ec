"""`metfa demo`: its photographs, and its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from metfa.cli.folders import check_folder, is_finished
from metfa.cli.run import Sampling, call_of

__all__ = ["demo_folder", "demo_photo"]

DEMO_PHOTOS = {"coffee": "coffee", "cat": "chelsea"}


def demo_photo(name: str) -> Any:
    """One of scikit-image's photographs (CC0): coffee, or the cat Chelsea."""
    from PIL import Image

    if name not in DEMO_PHOTOS:
        raise ValueError(f"`--photo` must be one of {sorted(DEMO_PHOTOS)}, got {name!r}")
    try:
        from skimage import data
    except ImportError as error:
        raise ModuleNotFoundError("the demo's photographs come with scikit-image: pip install 'metfa[demo]'") from error
    return Image.fromarray(getattr(data, DEMO_PHOTOS[name])())


def demo_folder(name: str, sampling: Sampling) -> Path:
    """First of metfa-demo, metfa-demo-2, ... that is free or holds an unfinished run of the same call."""
    for folder in (Path(f"metfa-demo-{k}" if k > 1 else "metfa-demo") for k in range(1, 10_000)):
        try:
            check_folder(folder, call_of(name, sampling))
        except (FileExistsError, NotADirectoryError, ValueError):
            continue
        if not is_finished(folder):
            return folder
    raise FileExistsError("metfa-demo, metfa-demo-2, ... are all taken: give `--out`")
