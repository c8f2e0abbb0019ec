"""Explainers, and wrappers that turn other libraries' attributions into the maps of the paper."""

from metfa._lazy import lazy_names

_HOME = {
    "Gradient": "metfa.explainers.gradient",
    "RISE": "metfa.explainers.rise",
    "SmoothGrad": "metfa.explainers.smooth_grad",
    "heatmap": "metfa.explainers.heatmaps",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names("metfa.explainers", _HOME)
