"""Explainers, and wrappers that turn other libraries' attributions into the maps of the paper."""

from metfa._base.lazy import lazy_names

_HOME = {
    "AttentionRollout": "metfa.explainers.rollout",
    "Blocks": "metfa.explainers.blocks",
    "Blur": "metfa.calls.blur",
    "CAM": "metfa.explainers.cam",
    "Gradient": "metfa.explainers.gradient",
    "GradientRollout": "metfa.explainers.rollout",
    "IGOS": "metfa.explainers.igos",
    "LIME": "metfa.explainers.lime",
    "LRP": "metfa.explainers.lrp",
    "LeGrad": "metfa.explainers.legrad",
    "MASK": "metfa.explainers.mask",
    "MaskState": "metfa.explainers.mask",
    "RISE": "metfa.explainers.rise",
    "ScoreCAM": "metfa.explainers.score_cam",
    "Shares": "metfa.explainers.shares",
    "SmoothGrad": "metfa.explainers.smooth_grad",
    "Surrogate": "metfa.explainers.lime",
    "from_captum": "metfa.explainers.captum_adapter",
    "from_gradcam": "metfa.explainers.gradcam_adapter",
    "from_shap": "metfa.explainers.shap_adapter",
    "from_lime": "metfa.explainers.lime_adapter",
    "heatmap": "metfa.explainers.heatmaps",
    "mean_colour": "metfa.calls.baseline",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names("metfa.explainers", _HOME)
