"""Metrics: is an explanation faithful to the model, also under noise, and is it stable?"""

from metfa._base.lazy import lazy_names

_HOME = {
    "FaithfulnessCurve": "metfa.metrics.curves",
    "OverallFaithfulness": "metfa.metrics.curves",
    "RobustScore": "metfa.metrics.robustness",
    "Scores": "metfa.metrics.scores",
    "Stability": "metfa.metrics.stability",
    "certified_radius": "metfa.metrics.decisions",
    "certified_share": "metfa.metrics.decisions",
    "deletion": "metfa.metrics.curves",
    "infidelity": "metfa.metrics.yeh_infidelity",
    "insertion": "metfa.metrics.curves",
    "interval_width": "metfa.metrics.stability",
    "max_sensitivity": "metfa.metrics.stability",
    "mstd": "metfa.metrics.stability",
    "overall": "metfa.metrics.curves",
    "prediction_agreement": "metfa.metrics.stability",
    "region_score": "metfa.metrics.regions",
    "robust": "metfa.metrics.robustness",
    "top_k_overlap": "metfa.metrics.stability",
    "undecided": "metfa.metrics.decisions",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names("metfa.metrics", _HOME)
