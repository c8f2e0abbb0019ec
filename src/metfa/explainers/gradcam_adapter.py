"""The methods of the grad-cam library, as explainers that leave the model as they find it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import nn

from metfa._arrays import to_host
from metfa._base.lazy import needs_extra
from metfa._base.one_line import one_line
from metfa._base.validation import check_function
from metfa.calls.called import Called
from metfa.calls.guard import model_as_found, model_in_evaluation
from metfa.calls.inputs import SHAPES, check_spatial, require_tensor
from metfa.calls.no_gradient import gradient_expected
from metfa.calls.parts import asked_scores
from metfa.calls.plain import plain_module
from metfa.calls.replaced import modules_as_found
from metfa.calls.targets import row_targets
from metfa.explainers._gradcam_methods import (
    ALONE,
    INDEPENDENT,
    OF_ANY_GRID,
    OF_FULLGRAD,
    WITHOUT_RESHAPE,
    class_score,
    in_one_row,
    inner_methods,
    is_fullgrad,
    layers_of,
    method_named,
    model_of,
    settings_of,
)
from metfa.explainers._layers import Watch, check_layer, watched
from metfa.explainers._read_patches import require_patches_read
from metfa.explainers.cam import enlarged
from metfa.explainers.heatmaps import scale_to_unit
from metfa.sampling.randomised import seeded

__all__ = ["from_gradcam"]


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
    called: Called | None = field(default=None, repr=False)  # how the model is asked

    def __repr__(self) -> str:
        return one_line(self)

    @property
    def rows_independent(self) -> bool:
        """Whether it is one of the methods listed above, and the model mixes no rows."""
        return self.known and self.asked.rows_independent

    @cached_property
    def asked(self) -> Called:
        """How the model is asked."""
        return Called.of(self.called or self.model)

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        r"""Maps (batch, \*axes) in [0, 1] and the model's scores (batch, classes)."""
        require_tensor(inputs)
        check_spatial(inputs, self.model)
        if inputs.ndim != 4:
            self._require_any_grid(inputs.ndim - 2)
        if torch.bfloat16 in {inputs.dtype, *(weight.dtype for weight in self.model.parameters())}:
            raise TypeError("grad-cam cannot explain in torch.bfloat16: write `model.float()` and `inputs.float()`")
        with (
            model_as_found(self.model),
            model_in_evaluation(self.model),
            gradient_expected(self.model, inputs),
            modules_as_found(self.model),
            torch.enable_grad(),
        ):
            inputs = self.asked.laid_out(inputs.detach())
            leaf = inputs.detach().requires_grad_()  # else there is no backward pass where the weights are frozen
            watches, scores = self._looked_into(inputs)
            targets = [self.target_of(entry) for entry in row_targets(target, to_host(scores), len(scores))]
            for made in targets:
                check_function(made, "the result of target_of", "made(scores)", 1)
            if inputs.ndim == 4:
                cam = self._made(watches) if inspect.isclass(self.method) else self.method
                maps = torch.from_numpy(cam(leaf, targets, **self.called_with))
            else:
                maps = self._of_any_grid(watches, leaf, targets)
        return scale_to_unit(maps.to(inputs.device)), scores

    def _require_any_grid(self, n_axes: int) -> None:
        form = SHAPES[n_axes]
        if not inspect.isclass(self.method):
            name = type(self.method).__name__
            raise ValueError(
                f"`method` is an object of grad-cam, which reads images; for {form} give its class: "
                f"`from_gradcam({name!r}, model)`"
            )
        name = self.method.__name__
        if name not in OF_ANY_GRID:
            raise ValueError(
                f"`method`: {name} of grad-cam takes images, not {form}; these of its methods do: "
                f"{', '.join(OF_ANY_GRID)}; `metfa.explainers.ScoreCAM` does, too"
            )
        if self.called_with.get("aug_smooth"):
            raise ValueError(f"`aug_smooth` of grad-cam flips images, so it has no meaning for {form}: leave it out")

    def _of_any_grid(self, watches: list[Watch], leaf: torch.Tensor, targets: list[Any]) -> torch.Tensor:
        """Maps of series or volumes: grad-cam is shown each layer's pixels in one row, and the map is enlarged here."""
        maps = []
        for watch in watches:
            grid, reshape = watch.feature_map(len(leaf)).shape[2:], watch.reshaping()
            cam = self.method(self.model, [watch.module], **self.made_with | {"reshape_transform": in_one_row(reshape)})
            cam.get_target_width_height = lambda _: None  # no enlargement of the row
            rows = torch.from_numpy(cam(leaf, targets, **self.called_with))
            maps.append(enlarged(rows.reshape(len(leaf), *grid), leaf.shape[2:]))
        return torch.stack(maps).mean(0)

    def _looked_into(self, inputs: torch.Tensor) -> tuple[list[Watch], torch.Tensor]:
        """The layers to explain by, each with a feature map, and the scores of the inputs."""
        made = inspect.isclass(self.method)
        owner = None if made else inner_methods(self.method)[0]
        reshape = self.made_with.get("reshape_transform") if made else getattr(owner, "reshape_transform", None)
        with torch.no_grad(), ExitStack() as stack:
            size = inputs.shape[2:]
            watches = [stack.enter_context(watched(self.model, layer, reshape, size)) for layer in self.layers]
            scores = self._scores(inputs.clone())
        for watch in watches:
            watch.feature_map(len(inputs), instead=OF_FULLGRAD if is_fullgrad(self.method) else None)
            watch.require_one_call()
            if not made and reshape is None and watch.named is not None and watch.reshaping() is not None:
                shape = tuple(watch.output.shape)
                wrong, right = "height", "`reshape_transform=lambda output: output.permute(0, 3, 1, 2)`"
                if len(shape) == 3:
                    wrong, right = "tokens", watch.channel_axes.reshape_for(shape)
                raise ValueError(
                    f"`method` reads layer {watch.name}, of shape {shape}, with its {wrong} as channels: make it with "
                    f"{right}"
                )
            if not is_fullgrad(self.method):
                with torch.no_grad():
                    require_patches_read(watch, self._scores, inputs)
        return watches, scores

    def _scores(self, batch: torch.Tensor) -> torch.Tensor:
        return asked_scores(self.model, batch)

    def _made(self, watches: list[Watch]) -> Any:
        """An object of the method's class, which reads layers with channels last as such."""
        settings = dict(self.made_with)
        layers = [] if is_fullgrad(self.method) else [watch.module for watch in watches]
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
    model: nn.Module | Called | None = None,
    layer: str | nn.Module | Sequence[str | nn.Module] | None = None,
    *,
    target_of: Callable[[Any], Any] | None = None,
    **settings: Any,
) -> Any:
    r"""Explainer from a method of the grad-cam library (``jacobgil/pytorch-grad-cam``).

    Parameters
    ----------
    method : class, str or object
        A class of ``pytorch_grad_cam`` such as ``GradCAM``, or its name. Each call makes a new object of it, so that
        none of its hooks stay. If you give an object, it is used with its own model and layers.
    model : torch.nn.Module or Called
        Model, or a `metfa.Called` that says how it is asked (layout and ``fast="exact"``; grad-cam cannot explain in
        bfloat16): images (batch, channels, height, width), series (batch, channels, length) or volumes (batch,
        channels, depth, height, width) -> scores (batch, classes). Series and volumes work for EigenCAM, EigenGradCAM,
        GradCAM, GradCAMElementWise, GradCAMPlusPlus, HiResCAM, KPCA_CAM, LayerCAM, RandomCAM and XGradCAM.
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
        Explainer with ``.model``; maps (batch, \*axes) in [0, 1], on the inputs' device, and scores. RandomCAM
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
        method = method_named(method, library)
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
    called = model if isinstance(model, Called) else None
    if called is not None:
        if called.fast == "bfloat16":
            raise ValueError("`fast` must not be 'bfloat16', in which grad-cam cannot explain: write `fast='exact'`")
        model = called.model
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
    if called is not None:
        layers = tuple(map(called.layer, layers))
    for one in layers:
        check_layer(one, model if made else nn.Identity())
    made_with, called_with = settings_of(kind, settings, made=made)
    inner = settings.get("base_method", getattr(method, "base_cam", None))
    kinds = {kind, inner if inspect.isclass(inner) or inner is None else type(inner)} - {None}
    explainer = GradCAMMethod(
        method,
        model if isinstance(model, nn.Module) else model_of(method),
        layers if made or is_fullgrad(method) else layers_of(method),
        target_of or class_score,
        made_with,
        called_with,
        known=kinds <= {getattr(library, name, None) for name in INDEPENDENT},
        called=called,
    )
    alone = kinds & {getattr(library, name, None) for name in ALONE} or called_with.get("eigen_smooth")
    return seeded(explainer) if alone else explainer
