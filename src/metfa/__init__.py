"""Error bars for feature attributions: significance, intervals and stable maps for any explainer.

Importing metfa loads NumPy alone; torch, matplotlib and the rest come with the first name that needs them.
"""

from metfa._base import warnings as _warnings
from metfa._base.lazy import lazy_names

_HOME = {
    "AttributionParts": "metfa.results.attribution_parts",
    "AttributionSample": "metfa.results.sample",
    "Called": "metfa.calls.called",
    "Coded": "metfa.calls.coded",
    "FixedBatch": "metfa.calls.fixed_batch",
    "Regions": "metfa.results.regions",
    "Run": "metfa.sampling.run",
    "Smoothed": "metfa.sampling.smoothed",
    "Study": "metfa.evaluation.study",
    "Terms": "metfa.results.terms",
    "TooFewSamplesError": "metfa.results.decisions",
    "across_models": "metfa.sampling.across_models",
    "allocator": "metfa.allocator",
    "attacks": "metfa.attacks",
    "compare": "metfa.sampling.compare",
    "contrast": "metfa.sampling.contrast",
    "evaluate": "metfa.evaluation.run",
    "evaluation": "metfa.evaluation",
    "explain": "metfa.sampling.explain",
    "explainers": "metfa.explainers",
    "explore": "metfa.explore",
    "load": "metfa.results.files",
    "metrics": "metfa.metrics",
    "models": "metfa.models",
    "noise": "metfa.noise",
    "plot": "metfa.plot",
    "regions": "metfa.regions",
    "report": "metfa.report",
    "randomised": "metfa.sampling.randomised",
    "seeded": "metfa.sampling.randomised",
    "segmentation": "metfa.segmentation",
    "spread": "metfa.sampling.spread",
    "stats": "metfa.stats",
    "tables": "metfa.tables",
    "text": "metfa.text",
    "Until": "metfa.results.until",
    "__version__": "metfa._base.version",
}

_HOME |= {name: "metfa._base.warnings" for name in _warnings.__all__ if name.endswith("Warning")}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names("metfa", _HOME)
