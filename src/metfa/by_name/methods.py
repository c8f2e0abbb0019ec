"""Explainers by name, as the command line and the files of studies give them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Literal

from metfa import explainers, segmentation, text
from metfa._base.import_path import imported
from metfa._base.validation import did_you_mean

__all__ = ["Of", "check_method", "check_settings", "explainer_of", "method_forms", "methods_of"]

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
}
TEXT_METHODS = {
    "lemna": "LEMNA",
    "lime": "LIME",
    "occlusion": "Occlusion",
    "gradient-x-input": "GradientXInput",
}
SCENE_METHODS = {"grid-saliency": "GridSaliency"}  # beside those of images, which explain a region's scores
NO_SETTINGS = {  # given in other ways; of images, `scale` too: the paper compares maps in [0, 1]
    "image": {"model", "rng", "autocast", "memory_format", "scale"},
    "text": {"model", "rng"},
    "scene": {"model", "rng", "autocast", "memory_format", "scale", "target_class", "region", "softmax"},
}


def method_forms(of: Of = "image") -> str:
    """What can be written for a method."""
    names = TEXT_METHODS if of == "text" else [*methods_of(of), "captum:NAME"]
    return f"{', '.join(names)}, or package.module:callable (model -> explainer)"


def methods_of(of: Of) -> dict[str, str]:
    """Our explainers of one kind of input, by the names that are written for them."""
    return {"image": METHODS, "text": TEXT_METHODS, "scene": {**SCENE_METHODS, **METHODS}}[of]


def check_method(method: str, of: Of = "image") -> None:
    """Raise unless there is such a method; torch is not needed to tell."""
    names = methods_of(of)
    if ":" not in method and method not in names:
        raise ValueError(f"the method must be one of {method_forms(of)}, got {method!r}{did_you_mean(method, names)}")


def check_settings(method: str, settings: dict[str, Any], of: Of = "image") -> None:
    """Raise unless the method takes such settings; those of a user's own method are seen when it is made."""
    if of == "text" and method in TEXT_METHODS:
        kind = getattr(text, TEXT_METHODS[method])
        _check_names(settings, _settings_of_dataclass(kind, of), method)
        if settings:
            kind(len, **settings)  # those that have settings take any function for a model
    elif of != "text" and (method in methods_of(of) or method.startswith("captum:")):
        import torch

        network: Any = torch.nn.Identity()
        if of == "scene":
            network = segmentation.RegionModel(network, torch.eye(2, dtype=torch.bool))
        explainer_of(method, network, settings, of)


def explainer_of(method: str, model: Any, settings: dict[str, Any], of: Of = "image", *, bfloat16: bool = False) -> Any:
    """Explainer of a model by the method's name, or by ``package.module:callable``, called with the model."""
    if of == "text" and method in TEXT_METHODS:
        kind = getattr(text, TEXT_METHODS[method])
        _check_names(settings, _settings_of_dataclass(kind, of), method)
        return kind(model, **settings)
    if of != "text" and method in methods_of(of):
        import torch

        kind = getattr(segmentation if method in SCENE_METHODS else explainers, methods_of(of)[method])
        allowed = _settings_of_dataclass(kind, of)
        _check_names(settings, allowed, method)
        given: dict[str, Any] = {"memory_format": torch.channels_last}
        given["autocast"] = torch.bfloat16 if bfloat16 else None
        if of == "scene" and "softmax" in {field.name for field in dataclasses.fields(kind)}:
            given["softmax"] = model.softmax  # the region's model says what its network gives
        return kind(model, **{**given, **settings})
    source, _, name = method.partition(":")
    if source == "captum":
        return explainers.from_captum(model, name, **settings)
    factory = imported(method, "the method")
    _check_names(settings, _arguments(factory, settings), method)
    explainer = factory(model, **settings)
    if not callable(explainer):
        raise TypeError(f"the method {method!r} must return an explainer, got {type(explainer).__name__}")
    return explainer


def _settings_of_dataclass(kind: Any, of: Of) -> list[str]:
    return [field.name for field in dataclasses.fields(kind) if field.name not in NO_SETTINGS[of]]


def _arguments(factory: Callable[..., Any], settings: dict[str, Any]) -> list[str]:
    """Names that a user's factory takes beside the model; all of `settings` where that cannot be told."""
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
                f"{method} has no setting {name!r}{did_you_mean(name, allowed)}; it has {', '.join(allowed) or 'none'}"
            )
