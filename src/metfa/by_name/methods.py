"""Explainers by name, as the command line and the files of studies give them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from metfa import explainers
from metfa._validation import did_you_mean

__all__ = ["METHODS", "METHOD_FORMS", "check_method", "check_settings", "explainer_of"]

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
METHOD_FORMS = f"{', '.join(METHODS)}, captum:NAME, or package.module:callable (model -> explainer)"
NO_SETTINGS = {"model", "rng", "autocast", "memory_format", "scale"}  # given in other ways


def check_method(method: str) -> None:
    """Raise unless there is such a method; torch is not needed to tell."""
    if ":" not in method and method not in METHODS:
        raise ValueError(f"the method must be one of {METHOD_FORMS}, got {method!r}{did_you_mean(method, METHODS)}")


def check_settings(method: str, settings: dict[str, Any]) -> None:
    """Raise unless the method takes such settings; those of a user's own method are seen when it is made."""
    if method in METHODS or method.startswith("captum:"):
        import torch

        explainer_of(method, torch.nn.Identity(), settings)


def explainer_of(method: str, module: Any, settings: dict[str, Any], *, bfloat16: bool = False) -> Any:
    """Explainer of a model by the method's name, or by ``package.module:callable``, called with the model."""
    import torch

    if method in METHODS:
        kind = getattr(explainers, METHODS[method])
        _check_names(settings, _settings_of_dataclass(kind), method)
        layout = {"memory_format": torch.channels_last, "autocast": torch.bfloat16 if bfloat16 else None}
        return kind(module, **{**layout, **settings})
    source, _, name = method.partition(":")
    if source == "captum":
        return explainers.from_captum(module, name, **settings)
    try:
        factory = getattr(import_module(source), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"the method {method!r} cannot be imported: {error}") from error
    _check_names(settings, _arguments(factory, settings), method)
    explainer = factory(module, **settings)
    if not callable(explainer):
        raise TypeError(f"the method {method!r} must return an explainer, got {type(explainer).__name__}")
    return explainer


def _settings_of_dataclass(kind: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(kind) if field.name not in NO_SETTINGS]


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
