"""Explainers by name, as the command line and study files write them."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

from metfa import explainers, segmentation, text
from metfa._base.import_path import imported
from metfa._base.other_words import our_word
from metfa._base.validation import did_you_mean
from metfa.calls.called import Called
from metfa.calls.held import SETTINGS

__all__ = ["GRADCAM", "Of", "check_method", "check_settings", "explainer_of", "method_forms", "methods_of"]

Of = Literal["image", "text", "scene"]
METHODS = {
    "gradient": "Gradient",
    "smoothgrad": "SmoothGrad",
    "rise": "RISE",
    "lime": "LIME",
    "igos": "IGOS",
    "scorecam": "ScoreCAM",
    "cam": "CAM",
    "mask": "MASK",
    "lrp": "LRP",
    "rollout": "AttentionRollout",
    "gradient-rollout": "GradientRollout",
    "legrad": "LeGrad",
}
TEXT_METHODS = {
    "lemna": "LEMNA",
    "lime": "LIME",
    "occlusion": "Occlusion",
    "gradient-x-input": "GradientXInput",
    "lrp": "LRP",
}
SCENE_METHODS = {"grid-saliency": "GridSaliency"}  # in addition to those of images, which explain a region's scores
GRADCAM = "gradcam"  # of the library pytorch-grad-cam; ours is `cam`, exact where the network averages its last map
ELSEWHERE = {  # what methods are called elsewhere, without hyphens and in small letters
    **dict.fromkeys(("ig", "integratedgradient", "integratedgradients"), "captum:IntegratedGradients"),
    **dict.fromkeys(("shap", "gradientshap", "expectedgradients"), "captum:GradientShap"),
    **dict.fromkeys(("inputxgradient", "gradientxinput"), "captum:InputXGradient"),
    **dict.fromkeys(("gradcam++", "gradcampp", "gradcamplusplus"), "gradcam:GradCAMPlusPlus"),
    "ablationcam": "gradcam:AblationCAM", "deeplift": "captum:DeepLift", "deepliftshap": "captum:DeepLiftShap",
    "eigencam": "gradcam:EigenCAM", "guidedbackprop": "captum:GuidedBackprop", "hirescam": "gradcam:HiResCAM",
    "kernelshap": "captum:KernelShap", "layercam": "gradcam:LayerCAM", "occlusion": "captum:Occlusion",
    "saliency": "gradient", "vanilla": "gradient", "xgradcam": "gradcam:XGradCAM",
}  # fmt: skip
NO_SETTINGS = {  # given in other ways; for images also `scale`, because the paper compares maps in [0, 1]
    "image": {"called", "model", "rng", "scale", "reshape_transform"},
    "text": {"called", "model", "rng"},
    "scene": {"called", "model", "rng", "scale", "reshape_transform", "target_class", "region"},
}
BATCHES, PROBABILITIES = ("batch_size",), ("batch_size", "softmax")
ASKING: dict[str, tuple[str, ...]] = {  # settings of the `Called` that matter to a method
    "smoothgrad": BATCHES,
    **dict.fromkeys(("rise", "lime", "igos", "scorecam", "mask", "grid-saliency", "lemna", "occlusion"), PROBABILITIES),
}


def method_forms(of: Of = "image") -> str:
    """The allowed texts for a method."""
    names = TEXT_METHODS if of == "text" else [*methods_of(of), "captum:NAME", "gradcam[:NAME] (pytorch-grad-cam)"]
    return f"{', '.join(names)}, or package.module:callable (model -> explainer)"


def methods_of(of: Of) -> dict[str, str]:
    """Our explainers of one kind of input, by the names that users write."""
    return {"image": METHODS, "text": TEXT_METHODS, "scene": {**SCENE_METHODS, **METHODS}}[of]


def check_method(method: str, of: Of = "image") -> None:
    """Raise unless there is such a method; this does not need torch."""
    names = [*methods_of(of), *([] if of == "text" else [GRADCAM])]
    if ":" not in method and method not in names:
        elsewhere = None if of == "text" else ELSEWHERE.get(re.sub(r"[-_ ]", "", method.lower()))
        instead = did_you_mean(method, names) if elsewhere is None else f", write {elsewhere}"
        raise ValueError(f"the method must be one of {method_forms(of)}, got {method!r}{instead}")


def check_settings(method: str, settings: dict[str, Any], of: Of = "image") -> None:
    """Raise unless the method takes such settings; for a user's own method this is checked when it is made."""
    if of == "text" and method in TEXT_METHODS:
        _check_names(settings, _settings_of(method, of), method)
        if method in ASKING:
            explainer_of(method, len, settings, of)  # any function will do for a model
    elif of != "text" and (method in methods_of(of) or method.partition(":")[0] in ("captum", GRADCAM)):
        import torch

        network: Any = torch.nn.Identity()
        if of == "scene":
            network = segmentation.RegionModel(network, torch.eye(2, dtype=torch.bool))
        if method.partition(":")[0] == GRADCAM:  # this network has no such layer
            settings = {name: value for name, value in settings.items() if name != "layer"}
        explainer_of(method, network, settings, of)


def explainer_of(method: str, model: Any, settings: dict[str, Any], of: Of = "image", *, fast: Any = None) -> Any:
    """Explainer of a model, from the method's name, or from ``package.module:callable``, called with the model."""
    if method in methods_of(of):
        _check_names(settings, _settings_of(method, of), method)
        asking = _asking(method, model, of, fast) | {name: settings[name] for name in SETTINGS if name in settings}
        own = {name: value for name, value in settings.items() if name not in SETTINGS}
        return _kind(method, of)(Called(model, **asking) if asking else model, **own)
    source, _, name = method.partition(":")
    if source == "captum":
        return explainers.from_captum(Called(model, fast=fast), name, **settings)
    if source == GRADCAM:
        _check_names(settings, ["layer", *(other for other in settings if not our_word(other, ["layer"]))], method)
        return explainers.from_gradcam(name or "GradCAM", Called(model, fast=fast), **settings)
    factory = imported(method, "the method")
    _check_names(settings, _arguments(factory, settings), method)
    explainer = factory(model, **settings)
    if not callable(explainer):
        raise TypeError(f"the method {method!r} must return an explainer, got {type(explainer).__name__}")
    return explainer


def _kind(method: str, of: Of) -> Any:
    home = text if of == "text" else segmentation if method in SCENE_METHODS else explainers
    return getattr(home, methods_of(of)[method])


def _settings_of(method: str, of: Of) -> list[str]:
    """The settings of a method of ours, and those of the way it asks the model."""
    own = [field.name for field in dataclasses.fields(_kind(method, of)) if field.name not in NO_SETTINGS[of]]
    return [*own, *(name for name in ASKING.get(method, ()) if of != "scene" or name != "softmax")]


def _asking(method: str, model: Any, of: Of, fast: Any) -> dict[str, Any]:
    """How a method asks unless its settings say otherwise."""
    if of == "text":
        return {"softmax": False} if method in ASKING else {}
    asking: dict[str, Any] = {} if fast is None else {"fast": fast}
    # the region's model knows whether its network gives logits
    return {**asking, "softmax": model.softmax} if of == "scene" else asking


def _arguments(factory: Callable[..., Any], settings: dict[str, Any]) -> list[str]:
    """Names that a user's factory takes besides the model; all of `settings` if they cannot be found out."""
    try:
        parameters = list(inspect.signature(factory).parameters.values())
    except (TypeError, ValueError):
        return list(settings)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return list(settings)
    return [parameter.name for parameter in parameters[1:]]


def _check_names(settings: dict[str, Any], allowed: Iterable[str], method: str) -> None:
    allowed = list(allowed)
    for name in settings:
        if name not in allowed:
            raise ValueError(
                f"{method} has no setting {name!r}{our_word(name, allowed)}; it has {', '.join(allowed) or 'none'}"
            )
