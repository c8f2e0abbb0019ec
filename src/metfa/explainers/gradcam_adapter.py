"""The methods of the grad-cam library, as explainers that leave the model as they find it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from metfa._arrays import to_host
from metfa._base.lazy import needs_extra
from metfa._base.validation import check_function, did_you_mean
from metfa.calls.answers import answered, checked_scores
from metfa.calls.called import Called
from metfa.calls.guard import model_as_found, model_in_evaluation
from metfa.calls.inputs import check_images, require_tensor
from metfa.calls.no_gradient import gradient_expected
from metfa.calls.plain import hidden_layers, plain_module
from metfa.calls.replaced import modules_as_found
from metfa.calls.targets import row_targets
from metfa.explainers._layers import Watch, check_layer, watched
from metfa.explainers._read_patches import require_patches_read
from metfa.explainers.heatmaps import scale_to_unit
from metfa.sampling.randomised import seeded

__all__ = ["from_gradcam"]

# Read in grad-cam 1.5.7: each sums its loss over the rows, and weights a row by its own gradients or forward passes.
INDEPENDENT = [
    "AblationCAM", "FEM", "FinerCAM", "FullGrad", "GradCAM", "GradCAMElementWise", "GradCAMPlusPlus", "HiResCAM",
    "LayerCAM", "RefineCAM", "SESS", "ScoreCAM", "SegEigenCAM", "ShapleyCAM", "XGradCAM",
]  # fmt: skip
# These get one row a call. They draw random numbers (scikit-learn's kernel PCA of large maps starts from a random
# vector), or the map's sign depends on the rounding of a singular vector, which changes with the size of the batch.
ALONE = ["EigenCAM", "EigenGradCAM", "KPCA_CAM", "RandomCAM"]
WITHOUT_RESHAPE = ("ShapleyCAM",)  # it applies the transform to its weights, not to the activations
OF_FULLGRAD = "FullGrad knows the biases of convolutions and batch normalisations alone: use another method"
GOVERNED = {"self", "model", "target_layers", "input_tensor", "targets", "args", "kwargs"}


@dataclass(frozen=True)
class GradCAMMethod:
    """An explainer from a class of the library, with a new object for each call, or from an object."""

    method: Any
    model: nn.Module
    layers: tuple[str | nn.Module | None, ...]
    target_of: Callable[[Any], Any]
    made_with: dict[str, Any] = field(default_factory=dict)
    called_with: dict[str, Any] = field(default_factory=dict)
    known: bool = False

    @property
    def rows_independent(self) -> bool:
        """Whether it is one of the methods listed above, and the model mixes no rows."""
        return self.known and Called(self.model).rows_independent

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Maps (batch, height, width) in [0, 1] and the model's scores (batch, classes)."""
        require_tensor(inputs)
        check_images(inputs)
        if torch.bfloat16 in {inputs.dtype, *(weight.dtype for weight in self.model.parameters())}:
            raise TypeError("grad-cam cannot explain in torch.bfloat16: write `model.float()` and `inputs.float()`")
        leaf = inputs.detach().requires_grad_()  # else there is no backward pass where the weights are frozen
        with (
            model_as_found(self.model),
            model_in_evaluation(self.model),
            gradient_expected(self.model, inputs),
            modules_as_found(self.model),
            torch.enable_grad(),
        ):
            watches, scores = self._looked_into(inputs)
            targets = [self.target_of(entry) for entry in row_targets(target, to_host(scores), len(scores))]
            for made in targets:
                check_function(made, "the result of target_of", "made(scores)", 1)
            cam = self._made(watches) if inspect.isclass(self.method) else self.method
            maps = cam(leaf, targets, **self.called_with)
        return scale_to_unit(torch.from_numpy(maps).to(inputs.device)), scores

    def _looked_into(self, inputs: torch.Tensor) -> tuple[list[Watch], torch.Tensor]:
        """The layers to explain by, each with a feature map, and the scores of the inputs."""
        made = inspect.isclass(self.method)
        owner = None if made else _inner(self.method)[0]
        reshape = self.made_with.get("reshape_transform") if made else getattr(owner, "reshape_transform", None)
        with torch.no_grad(), ExitStack() as stack:
            size = inputs.shape[2:]
            watches = [stack.enter_context(watched(self.model, layer, reshape, size)) for layer in self.layers]
            scores = self._scores(inputs.clone())
        for watch in watches:
            watch.feature_map(len(inputs), instead=OF_FULLGRAD if _is_fullgrad(self.method) else None)
            watch.require_one_call()
            if not made and reshape is None and watch.named is not None and watch.reshaping() is not None:
                shape = tuple(watch.output.shape)
                wrong, right = "height", "`reshape_transform=lambda output: output.permute(0, 3, 1, 2)`"
                if len(shape) == 3:
                    wrong, right = "tokens", watch.layouts.reshape_for(shape)
                raise ValueError(
                    f"`method` reads layer {watch.name}, of shape {shape}, with its {wrong} as channels: make it with "
                    f"{right}"
                )
            if not _is_fullgrad(self.method):
                with torch.no_grad():
                    require_patches_read(watch, self._scores, inputs)
        return watches, scores

    def _scores(self, batch: torch.Tensor) -> torch.Tensor:
        return checked_scores(answered(self.model, batch), len(batch), self.model)

    def _made(self, watches: list[Watch]) -> Any:
        """An object of the method's class, which reads layers with channels last as such."""
        settings = dict(self.made_with)
        layers = [] if _is_fullgrad(self.method) else [watch.module for watch in watches]
        reshape = settings.get("reshape_transform")
        ways = {watch.reshaping() for watch in watches if layers and reshape is None}
        if ways - {None}:
            if len(ways) > 1:
                mixed = "some give channels first and some channels last, or tokens"
                raise ValueError(f"`layer` names layers of which {mixed}: explain by each alone")
            reshape = ways.pop()
            if "ablation_layer" in inspect.signature(self.method).parameters:
                from pytorch_grad_cam.ablation_layer import AblationLayerVit

                settings.setdefault("ablation_layer", AblationLayerVit())  # ablates along the last axis
        if reshape is not None:
            if self.method.__name__ in WITHOUT_RESHAPE:
                raise ValueError(
                    f"`layer`: {self.method.__name__} of grad-cam reads channels on axis 1 only, and ignores "
                    "`reshape_transform`: name a layer that gives (batch, channels, height, width)"
                )
            settings["reshape_transform"] = lambda output: reshape(output).clone()  # grad-cam detaches it in place
        return self.method(self.model, layers, **settings)


def from_gradcam(
    method: Any,
    model: nn.Module | None = None,
    layer: str | nn.Module | Sequence[str | nn.Module] | None = None,
    *,
    target_of: Callable[[Any], Any] | None = None,
    **settings: Any,
) -> Any:
    """Explainer from a method of the grad-cam library (``jacobgil/pytorch-grad-cam``).

    Parameters
    ----------
    method : class, str or object
        A class of ``pytorch_grad_cam`` such as ``GradCAM``, or its name. Each call makes a new object of it, so that
        none of its hooks stay. If you give an object, it is used with its own model and layers.
    model : torch.nn.Module
        Images (batch, channels, height, width) -> scores (batch, classes).
    layer : str, torch.nn.Module, or a sequence of them, optional
        As for `ScoreCAM`, also where channels are last and for tokens; several layers are combined as the method does.
        None: the last feature map, and in a transformer the layer that is said there. (FullGrad takes all convolutions
        and batch normalisations with a bias, and none may be named.)
    target_of : callable, optional
        Turns each row's entry in `target` into a target of grad-cam. None: ``ClassifierOutputTarget``, for class
        indices. FinerCAM needs one: ``target_of=lambda index: FinerWeightedTarget(index, [3, 7], 1.0)``.
    **settings
        Arguments of the class or of its call, such as ``eigen_smooth=True``, ``reshape_transform=`` where that is not
        recognised, or ``batch_size=`` of AblationCAM.

    Returns
    -------
    callable
        Explainer with ``.model``; maps (batch, height, width) in [0, 1], on the inputs' device, and scores. RandomCAM
        and KPCA_CAM, which draw random numbers, and EigenCAM, EigenGradCAM and ``eigen_smooth=True``, whose sign
        depends on rounding, are wrapped in `metfa.seeded`: one row a call, each from its own stream.

    Raises
    ------
    ValueError
        If grad-cam has no such method, or the method no such setting.

    Notes
    -----
    The model's modes, gradients, hooks and modules are as before after each call (grad-cam leaves it in evaluation
    mode, with hooks; after an exception, AblationCAM leaves a layer replaced). ScoreCAM and AblationCAM of grad-cam
    draw progress bars, which ``TQDM_DISABLE=1`` in the environment turns off; metfa's own `ScoreCAM` has the variant
    "grad-cam".

    Examples
    --------
    >>> import torch
    >>> from metfa.explainers import from_gradcam
    >>> model = torch.nn.Sequential(
    ...     torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 4)
    ... ).eval()
    >>> maps, scores = from_gradcam("GradCAM", model)(torch.rand(2, 3, 8, 8), target=[1, 2])
    >>> maps.shape
    torch.Size([2, 8, 8])
    """
    with needs_extra("grad-cam's methods", "gradcam"):
        import pytorch_grad_cam as library
    if isinstance(method, str):
        method = _by_name(method, library)
    made = inspect.isclass(method)
    kind: Any = method if made else type(method)
    try:
        takes = inspect.signature(kind).parameters.keys()
    except (TypeError, ValueError):  # of some built-in classes
        takes = set()
    if not {"model", "target_layers"} <= takes:
        raise TypeError(f"`method` must be a method of grad-cam, got {kind.__name__} that takes no `target_layers`")
    if target_of is not None:
        check_function(target_of, "target_of", "target_of(index)", 0)
    if made:
        if not isinstance(model, nn.Module):
            raise TypeError(f"`model` must be a torch.nn.Module, got {type(model).__name__}")
        model = plain_module(model, kind.__name__)
    elif model is not None or layer is not None:
        raise ValueError(f"`model` and `layer` belong to the {kind.__name__} object that is given: leave them out")
    if kind is library.FullGrad and layer is not None:
        raise ValueError("`layer` must be None: FullGrad takes all layers with a bias")
    if kind is getattr(library, "FinerCAM", None) and target_of is None:
        raise ValueError(
            "FinerCAM compares the class with others, and `target` names only one: write "
            "`target_of=lambda index: FinerWeightedTarget(index, [3, 7], 1.0)`"
        )
    layers: tuple[Any, ...] = tuple(layer) if isinstance(layer, list | tuple) else (layer,)
    for one in layers:
        check_layer(one, model if made else nn.Identity())
    made_with, called_with = _settings(kind, settings, made=made)
    inner = settings.get("base_method", getattr(method, "base_cam", None))
    kinds = {kind, inner if inspect.isclass(inner) or inner is None else type(inner)} - {None}
    explainer = GradCAMMethod(
        method,
        model if isinstance(model, nn.Module) else _model_of(method),
        layers if made or _is_fullgrad(method) else _layers_of(method),
        target_of or _class_score,
        made_with,
        called_with,
        known=kinds <= {getattr(library, name, None) for name in INDEPENDENT},
    )
    alone = kinds & {getattr(library, name, None) for name in ALONE} or called_with.get("eigen_smooth")
    return seeded(explainer) if alone else explainer


def _by_name(name: str, library: Any) -> Any:
    known = sorted(known for known in INDEPENDENT + ALONE if hasattr(library, known))
    if name in known:
        return getattr(library, name)
    raise ValueError(f"`method`: grad-cam has no {name!r}{did_you_mean(name, known)}; it has {', '.join(known)}")


def _settings(kind: Any, settings: dict[str, Any], *, made: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the class, and those of its call."""
    constructor = inspect.signature(kind).parameters if made else {}
    call = {**inspect.signature(kind.__call__).parameters, **inspect.signature(kind.forward).parameters}
    passed_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in constructor.values())
    known = (constructor.keys() | call.keys()) - GOVERNED
    for name in settings:
        if name not in known and (name in GOVERNED or not passed_on):
            raise ValueError(
                f"{kind.__name__} has no setting {name!r}{did_you_mean(name, known)}; it has {', '.join(sorted(known))}"
            )
    called_with = {name: value for name, value in settings.items() if name in call and name not in constructor}
    return {name: value for name, value in settings.items() if name not in called_with}, called_with


def _inner(cam: Any) -> list[Any]:
    """The object itself, or the methods that it is built on: those that have model, layers and their form."""
    for owners in ([getattr(cam, "base_cam", None)], list(getattr(cam, "base_cam_per_layer", ())), [cam]):
        if owners and all(isinstance(getattr(owner, "model", None), nn.Module) for owner in owners):
            return owners
    raise TypeError(f"`method` must have a model, got {type(cam).__name__} without one")


def _layers_of(cam: Any) -> tuple[nn.Module, ...]:
    return tuple(layer for owner in _inner(cam) for layer in getattr(owner, "target_layers", ()))


def _model_of(cam: Any) -> nn.Module:
    """The model of an object, if its layers can be watched."""
    model = _inner(cam)[0].model
    if (hidden := hidden_layers(model)) is not None:
        raise ValueError(f"`method` works at the layers of its model, and {hidden}")
    return model


def _is_fullgrad(method: Any) -> bool:
    return (method if inspect.isclass(method) else type(method)).__name__ == "FullGrad"


def _class_score(entry: Any) -> Any:
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
