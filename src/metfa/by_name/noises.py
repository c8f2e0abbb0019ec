"""Noise on pixels by name, as the command line and the files of studies give it."""

from __future__ import annotations

from typing import Any

from metfa import noise as noises

__all__ = ["NOISE_FORMS", "noise_of"]

NOISE_FORMS = "uniform:RADIUS, gaussian:STD, laplace:SCALE, brightness:LOW:HIGH[:image|pixel], joined by +, or none"


def noise_of(text: str) -> Any:
    """Noise on pixels in [0, 1] from its text form, such as ``uniform:0.1`` or ``gaussian:0.1+brightness:0.9:1.1``.

    ``none`` is None, for methods with randomness of their own.
    """
    if text == "none":
        return None
    parts = [_one_noise(part.strip(), text) for part in text.split("+")]
    return parts[0] if len(parts) == 1 else noises.Compose(*parts)


def _one_noise(text: str, whole: str) -> Any:
    kind, *fields = text.lower().split(":")
    bounds = (0.0, 1.0)
    try:
        if kind == "brightness" and len(fields) in (2, 3):
            per: Any = fields[2] if len(fields) == 3 else "image"
            return noises.Brightness(float(fields[0]), float(fields[1]), per=per, bounds=bounds)
        simple = {"uniform": noises.Uniform, "gaussian": noises.Gaussian, "laplace": noises.Laplace}
        if kind in simple and len(fields) == 1:
            return simple[kind](float(fields[0]), bounds=bounds)
    except ValueError as error:
        raise ValueError(f"{whole!r} is no noise: {error}") from error
    raise ValueError(f"the noise must be {NOISE_FORMS}, got {whole!r}")
