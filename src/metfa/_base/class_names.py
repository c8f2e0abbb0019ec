"""How the name of a class is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["class_name", "class_with_probability"]


def class_name(index: int, class_names: Sequence[Any] | None) -> str:
    """The name of a class, or ``class 7`` where none is known."""
    return f"class {index}" if class_names is None or index >= len(class_names) else str(class_names[index])


def class_with_probability(index: int, class_names: Sequence[Any] | None, probabilities: Any) -> str:
    """The name of a class with its entry of `probabilities`, (classes,), such as ``tabby (0.83)``."""
    return f"{class_name(index, class_names)} ({_shown(float(probabilities[index]))})"


def _shown(probability: float) -> str:
    """Two digits; what is not 0 or 1 is not written so."""
    shown = f"{probability:.2f}"
    if shown == "0.00" and probability > 0:
        return "< 0.01"
    return "> 0.99" if shown == "1.00" and probability < 1 else shown
