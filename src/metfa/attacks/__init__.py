"""Attacks on explanations: can a map be drawn at will, and does smoothing stop it?"""

from metfa._lazy import lazy_names

_HOME = {
    "AttackResult": "metfa.attacks.result",
    "AttackSettings": "metfa.attacks.settings",
    "Measured": "metfa.attacks.result",
    "load_attack": "metfa.attacks._files",
    "manipulate": "metfa.attacks.attack",
    "targeted": "metfa.attacks.attack",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names("metfa.attacks", _HOME)
