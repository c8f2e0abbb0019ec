"""CAM: the channels of the last feature map, weighted by the linear classifier's weights for the class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional

from metfa._arrays import to_host, widen
from metfa._base.validation import check_flag, keep
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.calls.differentiation import weights_frozen
from metfa.calls.held import asks_a_model, hold, model_itself, rows_as_the_model
from metfa.calls.inputs import check_spatial, require_tensor
from metfa.calls.row_dependence import row_by_row
from metfa.calls.targets import row_targets
from metfa.explainers._last_use import LastUse, last_use
from metfa.explainers._layers import CONVOLUTIONS, Watch, check_layer, name_of, watched
from metfa.explainers.heatmaps import finished

__all__ = ["CAM", "enlarged", "warn_if_constant"]

TOLERANCE = 1e-2  # of the largest value: bfloat16 rounds each to 2**-9, other poolings differ by far more
REQUIRED = "CAM needs a model that averages its last feature map over all pixels and classifies it by one linear layer"
INSTEAD = "use `ScoreCAM(model)` or `from_gradcam(GradCAM, model)`, which take a `layer=`"


@asks_a_model
@dataclass(frozen=True)
class CAM:
    r"""Class activation mapping (Zhou et al. 2016): :math:`\sum_k w_{ck} A_k`, exact for networks made for it.

    The network must average its last feature map A over all pixels and classify the average by one linear layer w
    (dropout between them does nothing here). Then the map's mean is the class score without its bias. Each call checks
    this by the numbers. As in the authors' ``zhoubolei/CAM`` (``pytorch_CAM.py``), the map is not rectified: 0 is the
    strongest evidence against the class, not its absence.

    Parameters
    ----------
    called : torch.nn.Module or Called
        Model, or a `metfa.Called` that says how it is asked: images (batch, channels, height, width), series (batch,
        channels, length) or volumes (batch, channels, depth, height, width) -> scores (batch, classes). The last
        feature map and the classifier are found by running it: ResNet, DenseNet, EfficientNet, MobileNet-V2, SqueezeNet
        and others like them.
    upsample : bool
        Enlarge the map to the input, linearly along each axis with pixel centres matched. (The authors round the map to
        8 bits first and resize it to 256 pixels.) False: the map as it is, in the size of the features; the ADV² attack
        compares such maps.
    scale : bool
        Scale each map to [0, 1] by its smallest and largest value, as the authors do. False: the sum above.

    Notes
    -----
    Where the classifier is a 1x1 convolution that is averaged afterwards (SqueezeNet), its input is A and its kernel
    w; a ReLU behind it, as in SqueezeNet, is left out, and so is the bias, as in the authors' script.

    Examples
    --------
    >>> import torch
    >>> from metfa.explainers import CAM
    >>> model = torch.nn.Sequential(
    ...     torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(),
    ...     torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 4),
    ... ).eval()
    >>> maps, scores = CAM(model)(torch.rand(2, 3, 9, 12), target=1)
    >>> maps.shape, scores.shape
    (torch.Size([2, 9, 12]), torch.Size([2, 4]))
    """

    called: Any
    upsample: bool = field(default=True, kw_only=True)
    scale: bool = field(default=True, kw_only=True)

    model: ClassVar[property] = model_itself
    rows_independent: ClassVar[property] = rows_as_the_model
    differentiable = True

    def __post_init__(self) -> None:
        hold(self, at_layers="CAM")
        check_layer(None, self.model)
        keep(self, upsample=check_flag(self.upsample, "upsample"))
        keep(self, scale=check_flag(self.scale, "scale"))

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        r"""Maps and scores of a batch.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, channels, \*axes)
            Floating point. Where they require a gradient, the maps are differentiable in them.
        target : int, sequence or tensor, optional
            Class of each row; None: the predicted one.

        Returns
        -------
        maps : torch.Tensor, (batch, \*axes)
            float32 (or wider), in [0, 1] with `scale`.
        scores : torch.Tensor, (batch, classes)
            The model's scores, detached.

        Raises
        ------
        ValueError
            If the model is not of this kind; the message says what was found.
        """
        require_tensor(inputs)
        check_spatial(inputs, self.model)
        n_axes = inputs.ndim - 2
        differentiable = inputs.requires_grad and torch.is_grad_enabled()
        with weights_frozen(self.model), torch.set_grad_enabled(differentiable):
            self.called.laid_out(inputs)
            with (
                watched(self.model, n_axes=n_axes) as watch,
                last_use(self.model, (nn.Linear, CONVOLUTIONS[n_axes])) as classifier,
            ):
                scores = self.called.in_one_pass(inputs.clone())  # a model may work in place on what it gets
            dependent = self.called.row_look.finds_dependence(inputs.detach(), scores.detach())
        if dependent:
            return row_by_row(self, inputs, target)
        features = self._averaged(watch, classifier, scores)
        targets = row_targets(target, to_host(scores), len(scores))
        if not all(isinstance(entry, int) for entry in targets):
            raise TypeError("`target` must be a class index, or one for each row")
        weights = classifier.module.weight.detach().flatten(1)[targets].to(features.dtype)
        maps = torch.einsum("bk,bk...->b...", weights, features)
        warn_if_constant(maps, f"the feature map {watch.name} shows nothing of the class")
        maps = enlarged(maps, inputs.shape[2:]) if self.upsample else maps
        return finished(maps, scale=self.scale), scores.detach()

    def _averaged(self, watch: Watch, classifier: LastUse, scores: torch.Tensor) -> torch.Tensor:
        r"""The feature map (batch, channels, \*axes) whose average the classifier sees."""
        found = list(watch.averaged_maps(len(scores))) or [
            watch.feature_map(len(scores), instead=f"{REQUIRED}; {INSTEAD}")
        ]
        module, given = classifier.module, classifier.input
        name = name_of(self.model, module)
        if scores.ndim != 2 or module.weight.shape[0] != scores.shape[1]:
            raise ValueError(
                f"{REQUIRED}: its last layer {name} gives {module.weight.shape[0]} numbers, but its scores have shape "
                f"{tuple(scores.shape)}; {INSTEAD}"
            )
        if not isinstance(module, nn.Linear) and given.shape[2:].numel() > 1:
            pixelwise = set(module.kernel_size) == {1} and module.groups == 1
            if pixelwise and any(given.shape[2:] == x.shape[2:] and _equal_average(x, scores) for x in found):
                return widen(given)
            raise ValueError(
                f"{REQUIRED}: it ends with the convolution {name}, and its scores are not the average of a 1x1 "
                f"convolution's output; {INSTEAD}"
            )
        for features in found:
            for rectified in (features, features.relu()):  # a ReLU may be a function, which no hook sees
                if _equal_average(rectified, given.flatten(1)):
                    return widen(rectified)
        raise ValueError(
            f"{REQUIRED}: its classifier {name} takes an input of shape {tuple(given.shape)} that is not the average "
            f"of the last feature map {watch.name}, of shape {tuple(watch.output.shape)}; {INSTEAD}"
        )


def _equal_average(features: torch.Tensor, vector: torch.Tensor) -> bool:
    mean, vector = widen(features.detach()).mean(tuple(range(2, features.ndim))), widen(vector.detach())
    return mean.shape == vector.shape and bool((mean - vector).abs().max() <= TOLERANCE * vector.abs().max())


def enlarged(maps: torch.Tensor, size: Any, *, align_corners: bool = False) -> torch.Tensor:
    r"""Maps (batch, \*axes) enlarged linearly along each axis to `size`; a constant map stays exactly constant."""
    low = maps.amin(tuple(range(1, maps.ndim)), keepdim=True)  # interpolation rounds, but never zero
    mode = {1: "linear", 2: "bilinear", 3: "trilinear"}[maps.ndim - 1]
    return low + functional.interpolate((maps - low)[:, None], size, mode=mode, align_corners=align_corners)[:, 0]


def warn_if_constant(maps: torch.Tensor, why: str) -> None:
    r"""Warn once of the maps (batch, \*axes) that are constant."""
    axes = tuple(range(1, maps.ndim))
    constant = int((maps.amax(axes) == maps.amin(axes)).sum())
    if constant:
        warn(f"{constant} of {len(maps)} maps are constant: {why}", DegenerateAttributionsWarning)
