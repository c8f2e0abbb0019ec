"""Error bars for feature attributions: significance, intervals and stable maps for any explainer.

Importing metfa loads NumPy alone; torch, matplotlib and the rest come with the first name that needs them.
"""

from metfa._lazy import lazy_names

_HOME = {
    "AttributionSample": "metfa.result",
    "Smoothed": "metfa.smoothed",
    "TooFewSamplesError": "metfa.result",
    "allocator": "metfa.allocator",
    "explain": "metfa.sampling",
    "explainers": "metfa.explainers",
    "load": "metfa.io",
    "models": "metfa.models",
    "noise": "metfa.noise",
    "plot": "metfa.plot",
    "randomised": "metfa._randomised",
    "seeded": "metfa._randomised",
    "stats": "metfa.stats",
}

_WARNINGS = (
    "DegenerateAttributionsWarning",
    "MetfaWarning",
    "ModelStateWarning",
    "ReproducibilityWarning",
    "RowDependenceWarning",
    "SignedAttributionsWarning",
)
_HOME |= dict.fromkeys(_WARNINGS, "metfa._warnings")

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names("metfa", _HOME)
