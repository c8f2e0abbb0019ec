"""Captum's methods by name, as explainers with one map for each image."""

from __future__ import annotations

import inspect
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from metfa._arrays import to_host
from metfa._base.lazy import needs_extra
from metfa._base.one_line import one_line
from metfa._base.validation import did_you_mean, shown
from metfa._base.warnings import ModelStateWarning, warn
from metfa.calls.answers import checked_scores
from metfa.calls.behind import loaded_torch
from metfa.calls.called import Called
from metfa.calls.guard import model_as_found, model_in_evaluation
from metfa.calls.inputs import require_tensor
from metfa.calls.parts import answered_by_parts, each
from metfa.calls.plain import plain_module
from metfa.calls.targets import row_targets, stacked_targets
from metfa.explainers.heatmaps import Sign, heatmap
from metfa.sampling.randomised import seeded

__all__ = ["from_captum"]

RANDOM = {"GradientShap", "KernelShap", "Lime", "ShapleyValueSampling"}
OF_RELU = {"GuidedBackprop", "Deconvolution"}
AT_LAYERS = {*OF_RELU, "DeepLift", "DeepLiftShap", "LRP"}
GOVERNED = {
    "self",
    "inputs",
    "target",
    "additional_forward_args",
    "return_convergence_delta",
    "return_input_shape",
    "kwargs",
}
ELSEWHERE = {
    "FeaturePermutation": "it permutes features across the rows of a batch, so one input alone has no attribution",
    "NoiseTunnel": "`metfa.explain(...)` samples under noise, and `.mean()` is its map",
}


@dataclass(frozen=True)
class CaptumMethod:
    """An explainer from one of Captum's attribution objects."""

    attribution: Any
    settings: dict[str, Any] = field(default_factory=dict)
    called: Called | None = field(default=None, repr=False)  # how the attribution's model is asked

    def __repr__(self) -> str:
        return one_line(self)

    differentiable = True

    @property
    def model(self) -> Any:
        """Model of the attribution."""
        return self.attribution.forward_func

    def __call__(self, inputs: Any, target: Any = None) -> Any:
        """Attributions of the inputs' shape, a tuple for a tuple; `target=None` explains the class predicted."""
        from captum.attr import GradientAttribution

        from metfa.calls.differentiation import graph_kept
        from metfa.calls.no_gradient import gradient_expected

        torch: Any = loaded_torch()
        parts: tuple[Any, ...] = inputs if isinstance(inputs, tuple) else (inputs,)
        if not parts:
            raise ValueError("`inputs` is an empty tuple: there is nothing to explain")
        for part in parts:
            require_tensor(part)
        asked = Called(self.model) if self.called is None else self.called
        by_gradient = isinstance(self.attribution, GradientAttribution)
        differentiable = any(part.requires_grad for part in parts) and torch.is_grad_enabled()
        parts = tuple(part if differentiable and part.requires_grad else part.detach() for part in parts)
        first = next(iter(parts))
        with (
            model_as_found(self.model),
            model_in_evaluation(self.model),
            gradient_expected(self.model, first) if by_gradient else nullcontext(),
            graph_kept() if differentiable else nullcontext(),
            asked.precision(first),
            warnings.catch_warnings(),
        ):
            warnings.filterwarnings("ignore", "Setting (forward, )?backward hooks", UserWarning)  # undone on leaving
            with torch.no_grad():
                scores = asked.layouts.asked_first(
                    inputs, lambda: answered_by_parts(self.model, each(torch.clone, asked.laid_out(inputs)))
                )
                scores = checked_scores(scores, len(first), self.model)
            parts = asked.laid_out(parts) if len(parts) > 1 else (asked.laid_out(first),)
            first = parts[0]
            target = stacked_targets(row_targets(target, to_host(scores), len(first)), first)
            for part in parts:
                if by_gradient and part.is_floating_point():
                    part.requires_grad_()
            leaves = parts if isinstance(inputs, tuple) else first
            try:
                maps = self.attribution.attribute(leaves, target=target, **self.settings)
                if isinstance(maps, tuple):
                    return maps if differentiable else tuple(one.detach() for one in maps)
                return maps if differentiable else maps.detach()
            except (AssertionError, TypeError) as error:  # what Captum raises for a setting that it cannot take
                name = type(self.attribution).__name__
                given = ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
                raise ValueError(f"Captum's {name}({given}) cannot explain this: {error}") from error


def from_captum(model: Any, name: str, *, channel_axis: Any = 1, sign: Sign = "absolute", **settings: Any) -> Any:
    r"""Explainer from the name of one of Captum's classes, with maps (batch, \*features) in [0, 1].

    If you have the object, write ``heatmap(Saliency(model).attribute)``. This function is for names, as on the command
    line.

    Parameters
    ----------
    model : torch.nn.Module or Called
        Inputs (batch, channels, \*features) -> scores (batch, classes), or a `metfa.Called` that says how it is asked
        (layout and `fast`). Or several inputs; explain a tuple of them
        then, with one `channel_axis` for each.
    name : str
        A class of ``captum.attr`` that takes only a model: "Saliency", "InputXGradient", "IntegratedGradients",
        "DeepLift", "DeepLiftShap", "GradientShap", "GuidedBackprop", "Deconvolution", "FeatureAblation", "Occlusion",
        "ShapleyValueSampling", "ShapleyValues", "Lime", "KernelShap" or "LRP". Those that draw random numbers are
        wrapped in `metfa.seeded`: one row a call, each from its own stream.
    channel_axis, sign
        As for :func:`heatmap`.
    **settings
        Arguments of the class or of its ``attribute`` method, such as ``n_steps=20`` (IntegratedGradients) or
        ``sliding_window_shapes=(3, 16, 16), strides=(3, 8, 8)`` (Occlusion).

    Returns
    -------
    callable
        Explainer; it has ``.model``, so the class predicted on the clean input is found.

    Raises
    ------
    ValueError
        If Captum has no such method, the method has no such setting, or a setting that it needs is missing.

    Examples
    --------
    >>> import torch
    >>> from metfa.explainers import from_captum
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3)).eval()
    >>> from_captum(model, "IntegratedGradients", n_steps=8)(torch.rand(2, 3, 2, 2), target=0).shape
    torch.Size([2, 2, 2])
    """
    methods = _methods()
    if not isinstance(name, str):
        raise TypeError(f"`name` must be the name of a class of Captum, such as 'Saliency', got {shown(name)}")
    if name not in methods:
        raise ValueError(_unknown_method(name, methods))
    if not callable(model):
        raise TypeError(f"`model` must be a torch.nn.Module, got {shown(model)}")
    called = Called.of(model)
    model = called.model
    kind = methods[name]
    made_with = _settings_of(kind)[1:]  # the first is the model
    called_with = _settings_of(kind.attribute)
    known = {parameter.name for parameter in made_with + called_with}
    for setting in settings:
        if setting not in known:
            raise ValueError(
                f"captum's {name} has no setting {setting!r}{did_you_mean(setting, known)}; it has "
                f"{', '.join(sorted(known)) or 'none'}"
            )
    needed = {parameter.name for parameter in made_with + called_with if parameter.default is parameter.empty}
    if needed - settings.keys():
        raise ValueError(f"captum's {name} needs the setting {', '.join(sorted(needed - settings.keys()))}")
    torch: Any = loaded_torch()
    if name in AT_LAYERS:
        model = plain_module(model, f"captum's {name}")
        if not isinstance(model, torch.nn.Module):
            raise TypeError(
                f"`model` must be a torch.nn.Module, because captum's {name} works at its layers, got {shown(model)}"
            )
    if name in OF_RELU and not any(isinstance(module, torch.nn.ReLU) for module in getattr(model, "modules", list)()):
        warn(
            f"captum's {name} changes the gradient of torch.nn.ReLU alone, which the model does not have (maybe it has "
            "ReLU6, or functions): its maps are those of Saliency",
            ModelStateWarning,
        )
    constructor = {parameter.name for parameter in made_with}
    attribution = kind(model, **{key: value for key, value in settings.items() if key in constructor})
    given = {key: value for key, value in settings.items() if key not in constructor}
    called = called if called.model is model else replace(called, model=model)
    method: Any = CaptumMethod(attribution, given, called)
    return heatmap(seeded(method) if name in RANDOM else method, channel_axis=channel_axis, sign=sign)


def _methods() -> dict[str, Any]:
    """Captum's classes that need nothing but a model."""
    with needs_extra("Captum's methods", "captum"):
        from captum import attr
    methods = {}
    for name in attr.__all__:
        kind = getattr(attr, name)
        if inspect.isclass(kind) and issubclass(kind, attr.Attribution) and hasattr(kind, "attribute"):
            needed = [p for p in inspect.signature(kind).parameters.values() if p.default is p.empty]
            if [p.name for p in needed] in (["forward_func"], ["model"]) and name not in ELSEWHERE:
                methods[name] = kind
    return methods


def _settings_of(function: Any) -> list[inspect.Parameter]:
    return [p for p in inspect.signature(function).parameters.values() if p.name not in GOVERNED]


def _unknown_method(name: Any, methods: dict[str, Any]) -> str:
    from captum import attr

    if name in ELSEWHERE:
        return f"captum's {name} is no explainer here: {ELSEWHERE[name]}"
    if isinstance(name, str) and name in attr.__all__:
        return (
            f"captum's {name} needs more than a model: make it yourself and pass "
            "`heatmap(lambda inputs, target: ...)`; by name there are " + ", ".join(sorted(methods))
        )
    nearest = did_you_mean(str(name), methods)
    return f"`name`: captum has no method {name!r}{nearest}; by name there are {', '.join(sorted(methods))}"
