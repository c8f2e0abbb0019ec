"""Noise by name, as the command line and study files write it."""

from __future__ import annotations

from typing import Any

from metfa import noise as noises
from metfa.by_name.methods import Of
from metfa.text import SenseSynonyms, Synonyms

__all__ = ["NOISE_FORMS", "TEXT_NOISE_FORMS", "noise_of"]

NOISE_FORMS = "uniform:RADIUS, gaussian:STD, laplace:SCALE, brightness:LOW:HIGH[:image|pixel], joined by +, or none"
TEXT_NOISE_FORMS = (
    "sense-synonyms:P[:nltk], P the probability of each word to be replaced by a synonym in its most frequent sense, "
    "with nltk's tagger; synonyms:P[:PARTS], in any sense, PARTS of speech such as adj+adv; or none"
)


def noise_of(text: str, of: Of = "image") -> Any:
    """Noise from its text form.

    For images this is noise on pixels in [0, 1], such as ``uniform:0.1`` or ``gaussian:0.1+brightness:0.9:1.1``; for
    texts ``sense-synonyms:0.5``, ``synonyms:0.3`` or ``synonyms:0.3:adj+adv``. ``none`` gives None, for methods with
    randomness of their own.
    """
    if text == "none":
        return None
    if of == "text":
        return _synonyms(text)
    parts = [_one_noise(part.strip(), text) for part in text.split("+")]
    return parts[0] if len(parts) == 1 else noises.Compose(*parts)


def _synonyms(text: str) -> Any:
    kind, *fields = text.lower().split(":")
    if kind not in ("synonyms", "sense-synonyms") or len(fields) not in (1, 2) or not all(fields):
        raise ValueError(f"the noise must be {TEXT_NOISE_FORMS}, got {text!r}")
    try:
        if kind == "sense-synonyms":
            return SenseSynonyms(float(fields[0]), part_of_speech=fields[1] if len(fields) == 2 else "counts")
        parts = [part.strip() for part in fields[1].split("+")] if len(fields) == 2 else None
        return Synonyms(float(fields[0]), part_of_speech=parts)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a noise: {error}") from error


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
        raise ValueError(f"{whole!r} is not a noise: {error}") from error
    raise ValueError(f"the noise must be {NOISE_FORMS}, got {whole!r}")
