"""Attacks on explanations: can somebody draw any map, and does smoothing stop it?"""

from metfa._base.lazy import lazy_names

_HOME = {
    "AttackResult": "metfa.attacks.result",
    "AttackSettings": "metfa.attacks.settings",
    "Detection": "metfa.attacks.detection",
    "Measured": "metfa.attacks.result",
    "detect": "metfa.attacks.detection",
    "drawn": "metfa.attacks.drawing",
    "load_attack": "metfa.attacks.saving",
    "manipulate": "metfa.attacks.attack",
    "targeted": "metfa.attacks.attack",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names("metfa.attacks", _HOME)
