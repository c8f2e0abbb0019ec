"""Objects in scenes: which surroundings does a segmentation network need to find them?"""

from metfa._base.lazy import lazy_names

_HOME = {
    "ClassContext": "metfa.segmentation.class_contexts",
    "ContextExplanation": "metfa.segmentation.explanation",
    "ContextTable": "metfa.segmentation.class_contexts",
    "GridSaliency": "metfa.segmentation.grid_saliency",
    "RegionModel": "metfa.segmentation.regions",
    "context_faithfulness": "metfa.segmentation.context_metrics",
    "context_table": "metfa.segmentation.class_contexts",
    "explain_context": "metfa.segmentation.context",
    "load_context": "metfa.segmentation.explanation",
    "predicted_region": "metfa.segmentation.regions",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names("metfa.segmentation", _HOME)
