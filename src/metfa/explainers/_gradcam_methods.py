"""What is known of the grad-cam library's methods, and read of its classes and objects."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from metfa._base.other_words import our_word
from metfa._base.validation import did_you_mean
from metfa.calls.plain import hidden_layers

__all__ = [
    "ALONE",
    "INDEPENDENT",
    "OF_ANY_GRID",
    "OF_FULLGRAD",
    "WITHOUT_RESHAPE",
    "class_score",
    "in_one_row",
    "inner_methods",
    "is_fullgrad",
    "layers_of",
    "method_named",
    "model_of",
    "settings_of",
]

# Read in grad-cam 1.5.7: each sums its loss over the rows, and weights a row by its own gradients or forward passes.
INDEPENDENT = [
    "AblationCAM", "FEM", "FinerCAM", "FullGrad", "GradCAM", "GradCAMElementWise", "GradCAMPlusPlus", "HiResCAM",
    "LayerCAM", "RefineCAM", "SESS", "ScoreCAM", "SegEigenCAM", "ShapleyCAM", "XGradCAM",
]  # fmt: skip
# These get one row a call. They draw random numbers (scikit-learn's kernel PCA of large maps starts from a random
# vector), or the map's sign depends on the rounding of a singular vector, which changes with the size of the batch.
ALONE = ["EigenCAM", "EigenGradCAM", "KPCA_CAM", "RandomCAM"]
# These work for a row of pixels as for an image, so they explain series and volumes, too. The others build images of
# the layer's channels, or copies of the input with four axes.
OF_ANY_GRID = [
    "EigenCAM", "EigenGradCAM", "GradCAM", "GradCAMElementWise", "GradCAMPlusPlus", "HiResCAM", "KPCA_CAM", "LayerCAM",
    "RandomCAM", "XGradCAM",
]  # fmt: skip
WITHOUT_RESHAPE = ("ShapleyCAM",)  # it applies the transform to its weights, not to the activations
OF_FULLGRAD = "FullGrad knows the biases of convolutions and batch normalisations alone: use another method"
GOVERNED = {"self", "model", "target_layers", "input_tensor", "targets", "args", "kwargs"}


def method_named(name: str, library: Any) -> Any:
    known = sorted(known for known in INDEPENDENT + ALONE if hasattr(library, known))
    if name in known:
        return getattr(library, name)
    raise ValueError(f"`method`: grad-cam has no {name!r}{did_you_mean(name, known)}; it has {', '.join(known)}")


def settings_of(kind: Any, settings: dict[str, Any], *, made: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the class, and those of its call."""
    constructor = inspect.signature(kind).parameters if made else {}
    call = {**inspect.signature(kind.__call__).parameters, **inspect.signature(kind.forward).parameters}
    passed_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in constructor.values())
    known = (constructor.keys() | call.keys()) - GOVERNED | {"layer"}
    for name in settings:
        if name not in known and (name in GOVERNED or not passed_on):
            raise ValueError(
                f"{kind.__name__} has no setting {name!r}{our_word(name, known)}; it has {', '.join(sorted(known))}"
            )
    called_with = {name: value for name, value in settings.items() if name in call and name not in constructor}
    return {name: value for name, value in settings.items() if name not in called_with}, called_with


def inner_methods(cam: Any) -> list[Any]:
    """The object itself, or the methods that it is built on: those that have model, layers and their form."""
    for owners in ([getattr(cam, "base_cam", None)], list(getattr(cam, "base_cam_per_layer", ())), [cam]):
        if owners and all(isinstance(getattr(owner, "model", None), nn.Module) for owner in owners):
            return owners
    raise TypeError(f"`method` must have a model, got {type(cam).__name__} without one")


def layers_of(cam: Any) -> tuple[nn.Module, ...]:
    return tuple(layer for owner in inner_methods(cam) for layer in getattr(owner, "target_layers", ()))


def model_of(cam: Any) -> nn.Module:
    """The model of an object, if its layers can be watched."""
    model = inner_methods(cam)[0].model
    if (hidden := hidden_layers(model)) is not None:
        raise ValueError(f"`method` works at the layers of its model, and {hidden}")
    return model


def is_fullgrad(method: Any) -> bool:
    return (method if inspect.isclass(method) else type(method)).__name__ == "FullGrad"


def in_one_row(reshape: Any) -> Any:
    """What makes (batch, channels, 1, pixels) of a layer's output."""
    return lambda output: (output if reshape is None else reshape(output)).flatten(2)[:, :, None].clone()


def class_score(entry: Any) -> Any:
    """The score of a class, as the library differentiates or evaluates it; None: the one score of a row."""
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget, RawScoresOutputTarget

    if entry is None:
        return RawScoresOutputTarget()
    if not isinstance(entry, int):
        raise TypeError(
            f"`target` must hold class indices, got {type(entry).__name__}; for other targets of grad-cam write "
            "`target_of=`, such as `target_of=lambda mask: SemanticSegmentationTarget(8, mask)`"
        )
    return ClassifierOutputTarget(entry)
