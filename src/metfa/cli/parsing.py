"""Texts of the command line turned into settings of the library."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from metfa.by_name import thresholds
from metfa.results.until import CRITERIA

__all__ = ["criteria_of", "folders_of", "our_option", "settings_of", "size_of", "threshold_of"]

OPTIONS = {  # what is tried, and ours
    "--class": "--target INDEX",
    "--explainer": "--method",
    "--force": "--overwrite",
    "--gpu": "--device cuda",
    "--network": "--model",
    "--no-pretrained": "--random-weights",
    "--output": "--out",
    "--sigma": "--noise gaussian:STD",
    "--std": "--noise gaussian:STD",
    "--verbose": "nothing: a bar is shown",
    **dict.fromkeys(("--nsamples", "--n-samples", "--num-samples", "--n"), "--samples NUMBER, or -n NUMBER"),
    **dict.fromkeys(("--random-state", "--random-seed", "--rng"), "--seed"),
    **dict.fromkeys(("--target-layers", "--target-layer", "--layer", "--layers"), "--set layer=NAME"),
}
SETTINGS = ("baseline", "baselines", "grid", "keep", "n_iterations", "n_masks", "n_perturbations", "n_steps", "steps")


def our_option(name: str | None) -> str:
    """End of a message about an option that there is not: what to write for it; nothing where that is not known."""
    if name is None:
        return ""
    setting = name.lstrip("-").replace("-", "_")
    written = OPTIONS.get(name) or (f"--set {setting}=VALUE" if setting in SETTINGS else None)
    return "" if written is None else f": write {written}"


def settings_of(texts: Sequence[str]) -> dict[str, Any]:
    """Settings from texts such as ``n_masks=500`` or ``grid=(7,7)``: Python literals, anything else is text.

    ``true`` and ``false`` may be in lower case, as in study files.
    """
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and name.isidentifier() and value):
            raise ValueError(f"`--set` must be key=value, such as n_masks=500, got {text!r}")
        if name in settings:
            raise ValueError(f"`--set` names {name} twice")
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[name] = {"true": True, "false": False}.get(value, value)
    return settings


def threshold_of(text: str | None) -> Callable[..., float] | float | None:
    """Rule or number from its text form, ``jenks_of_medians`` or a number; None where it is not given."""
    return None if text is None else thresholds.threshold_of(text, "`--threshold`")


def criteria_of(text: str) -> dict[str, float]:
    """Reasons to stop sampling from a text such as ``undecided=0.05`` or ``undecided=0.1,width=0.2``."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if name not in CRITERIA or name in found or not equals or math.isnan(number):
            raise ValueError(
                f"`--until` must be {', '.join(f'{criterion}=NUMBER' for criterion in CRITERIA)}, joined by commas, "
                f"such as undecided=0.05, got {text!r}"
            )
        found[name] = number
    return found


def size_of(text: str | None) -> tuple[int, int] | None:
    """Height and width from a text such as ``240x320``."""
    if text is None:
        return None
    height, cross, width = text.lower().partition("x")
    if not (cross and height.isdecimal() and width.isdecimal() and int(height) and int(width)):
        raise ValueError(f"`--size` must be HEIGHTxWIDTH in pixels, such as 240x320, got {text!r}")
    return int(height), int(width)


def folders_of(folder: Path, images: list[Path]) -> list[Path]:
    """One folder for each picture, named after its file; names that are equal, apart from case, are numbered."""
    taken: set[str] = set()
    folders = []
    for path in images:
        stem = path.stem.strip(".") or "picture"
        names = (f"{stem}-{k}" if k > 1 else stem for k in range(1, len(images) + 2))
        name = next(name for name in names if name.casefold() not in taken)
        taken.add(name.casefold())
        folders.append(folder / name)
    return folders
