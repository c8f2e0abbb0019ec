"""Score-CAM: channels of a feature map, each weighted by the class score of the image under it as a mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from metfa._arrays import to_host, widen
from metfa._base.progress import expected
from metfa._base.validation import check_flag, keep, one_of
from metfa.calls.baseline import baseline_like, check_baseline
from metfa.calls.differentiation import index_of, of_indices
from metfa.calls.held import asks_a_model, hold, model_itself, rows_as_the_model
from metfa.calls.inputs import check_spatial, require_tensor
from metfa.calls.targets import row_targets
from metfa.explainers._layers import check_layer, watched
from metfa.explainers._read_patches import require_patches_read
from metfa.explainers.cam import enlarged, warn_if_constant
from metfa.explainers.heatmaps import finished

__all__ = ["ScoreCAM"]


@dataclass(frozen=True)
class Variant:
    """The points in which definitions differ; the defaults here are the authors'."""

    over_channels: bool = False  # weights are a softmax of raw scores over the channels, flat ones included
    of_masks: bool = False  # the map sums the masks, not the activations
    scaled_first: bool = False  # a mask is scaled before it is enlarged
    align_corners: bool = False  # when masks are enlarged
    rectified_first: bool = False  # the map is rectified before it is enlarged
    epsilon: float = 0.0  # added to a channel's range

    def masks(self, channels: torch.Tensor, size: Any) -> torch.Tensor:
        r"""Masks (n, \*axes) in [0, 1] of channels that are not flat."""
        if self.scaled_first:
            return enlarged(self._scaled(channels), size, align_corners=self.align_corners)
        return self._scaled(enlarged(channels, size, align_corners=self.align_corners))

    def _scaled(self, channels: torch.Tensor) -> torch.Tensor:
        axes = tuple(range(1, channels.ndim))
        low = channels.amin(axes, keepdim=True)
        return (channels - low) / (channels.amax(axes, keepdim=True) - low + self.epsilon)


VARIANTS = {
    "original": Variant(),
    "metfa": Variant(of_masks=True),
    "grad-cam": Variant(over_channels=True, align_corners=True, rectified_first=True, epsilon=1e-8),
    "torch-cam": Variant(over_channels=True, scaled_first=True, rectified_first=True, epsilon=1e-8),
}


@asks_a_model
@dataclass(frozen=True)
class ScoreCAM:
    r"""Score-weighted class activation mapping (Wang et al. 2020): class activation without gradients.

    Each channel :math:`A_k` of a feature map is enlarged to the input (U, linear along each axis) and scaled to [0, 1];
    the image is multiplied by it, and the class's probability for that product is the channel's weight. The map is
    :math:`\mathrm{ReLU}(\sum_k f(x \odot s(U(A_k))) \, U(A_k))`, as in the authors' code (``haofanwang/Score-CAM``,
    ``cam/scorecam.py``).

    Parameters
    ----------
    called : torch.nn.Module or Called
        Model, or a `metfa.Called` that says how it is asked: images (batch, channels, height, width), series (batch,
        channels, length) or volumes (batch, channels, depth, height, width) -> scores (batch, classes).
    layer : str or torch.nn.Module, optional
        The layer whose output is used: a dotted name such as ``"layer4"`` (or the end of one, so that ``"head.act"`` is
        found in a wrapped model too), or the module itself. None: the last feature map, that is the output of the last
        module, in the order of execution, that is as high and wide as the last convolution's: behind its batch
        normalisation, activation and residual sum, before pooling. It is the authors' choice for VGG16
        (``features.29``) and ResNet (``layer4``). In a transformer: the last normalisation of tokens before the last
        attention (``blocks.11.norm1`` of timm's ViT), or the last map with channels last (``norm`` of its Swin).
        Channels last, (batch, height, width, channels), are recognised from the functions around the layer, such as a
        convolution or ``permute``; where tokens lie is found by following the pixels of the convolution that cuts the
        patches, and tokens without a place, such as a class token, are left out. Where either is not certain, an error
        asks for `reshape_transform`. A layer of a network for series gives (batch, channels, length), or tokens; one
        for volumes (batch, channels, depth, height, width). A layer behind which the model reads no patch is refused.
    variant : {"original", "metfa", "grad-cam", "torch-cam"}
        The definition, see Notes. "grad-cam" and "torch-cam" always use scores as they are, without a softmax.
    baseline : float or sequence of float
        Value of hidden pixels, in the units of the inputs: one number, or one for each channel. 0, the default, is
        black for pixels in [0, 1]. The authors mask normalised images, where 0 is the mean colour: ``baseline=(0.485,
        0.456, 0.406)`` for the usual ImageNet networks.
    reshape_transform : callable, optional
        Turns the output of a named layer into (batch, channels, height, width), or into a feature map of the axes that
        the inputs have, as in grad-cam, where this is not
        recognised: for 14 x 14 tokens behind a class token ``lambda tokens: tokens[:, 1:].unflatten(1, (14,
        14)).movedim(-1, 1)``.
    scale : bool
        Scale each map to [0, 1] by its smallest and largest value (the authors' convention). False: the sum above.

    Notes
    -----
    Implementations differ in what they compute:

    - "original": as above.
    - "metfa": the masks :math:`s(U(A_k))` are summed, not the activations, so strong channels count no more than weak
      ones (the MeTFA paper's code, ``cam/scorecam.py``).
    - "grad-cam": the weights are a softmax of the class's raw scores *over the channels*; masks are enlarged with
      corners matched, and the sum is rectified before it is enlarged (``jacobgil/pytorch-grad-cam`` 1.5.7,
      ``score_cam.py``). If scores differ much, one channel gets nearly all the weight; if they differ little, all get
      nearly the same.
    - "torch-cam": weights as in "grad-cam" (it subtracts the clean score first, which changes no softmax), masks scaled
      at the layer's resolution and then enlarged (``frgfm/torch-cam``, ``methods/activation.py``; its maps keep the
      layer's resolution, here they are enlarged).

    Flat channels are not run through the model one by one: they have no weight ("original", "metfa"), or they all leave
    the same hidden image, which is run once. Whether a channel is flat is decided on the layer's output, before
    enlargement rounds it.

    Masks are made a batch at a time. Beside that, memory holds one feature map for each row. The sum is taken at the
    layer's resolution and enlarged once, which is the same: enlargement is linear.

    Examples
    --------
    >>> import torch
    >>> from metfa.explainers import ScoreCAM
    >>> model = torch.nn.Sequential(
    ...     torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 4)
    ... ).eval()
    >>> maps, scores = ScoreCAM(model)(torch.rand(2, 3, 8, 8), target=1)
    >>> maps.shape, scores.shape
    (torch.Size([2, 8, 8]), torch.Size([2, 4]))
    >>> ScoreCAM(model).channel_weights(torch.rand(2, 3, 8, 8), target=1).shape
    torch.Size([2, 8])
    """

    called: Any
    layer: str | nn.Module | None = None
    variant: Literal["original", "metfa", "grad-cam", "torch-cam"] = field(default="original", kw_only=True)
    baseline: float | Sequence[float] = field(default=0.0, kw_only=True)
    reshape_transform: Callable[[Any], torch.Tensor] | None = field(default=None, kw_only=True)
    scale: bool = field(default=True, kw_only=True)

    model: ClassVar[property] = model_itself
    rows_independent: ClassVar[property] = rows_as_the_model

    def __post_init__(self) -> None:
        hold(self, at_layers="ScoreCAM")
        keep(self, scale=check_flag(self.scale, "scale"))
        check_layer(self.layer, self.model)
        one_of(self.variant, "variant", VARIANTS)
        check_baseline(self.baseline)
        if self.reshape_transform is not None and (self.layer is None or not callable(self.reshape_transform)):
            raise TypeError(
                "`reshape_transform` must be a function of the output of the layer that `layer=` names, got "
                f"{type(self.reshape_transform).__name__}{' and no layer' if self.layer is None else ''}"
            )

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        r"""Maps and scores of a batch.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, channels, \*axes)
            Floating point.
        target : int, sequence or tensor, optional
            Class of each row; None: the predicted one.

        Returns
        -------
        maps : torch.Tensor, (batch, \*axes)
            float32 (or wider), in [0, 1] with `scale`.
        scores : torch.Tensor, (batch, classes)
            The model's scores of the inputs themselves.

        Raises
        ------
        ValueError
            If there is no such layer, if it is used more than once, if it gives no feature map, or if the model reads
            no patch behind it.
        """
        variant = VARIANTS[self.variant]
        features, weights, maps, scores, name = self._weighed(inputs, target)
        if not variant.of_masks:
            combined = torch.einsum("bk,bk...->b...", weights, features)
            maps = enlarged(combined.relu() if variant.rectified_first else combined, inputs.shape[2:]).relu()
        warn_if_constant(maps, f"the weighted channels of layer {name} are flat, or nowhere positive")
        return finished(maps, scale=self.scale), scores

    def channel_weights(self, inputs: torch.Tensor, target: Any = None) -> torch.Tensor:
        """Weight of each channel, (batch, channels): 0 for flat ones, except where a softmax runs over the channels.

        If the weights hardly differ, the map is nearly the mean of the channels, for every class.
        """
        return self._weighed(inputs, target)[1]

    def _weighed(self, inputs: torch.Tensor, target: Any) -> tuple[Any, Any, Any, Any, str]:
        """The feature map, its channels' weights, the weighted sum of the masks (if it is wanted), scores, layer."""
        require_tensor(inputs)
        check_spatial(inputs, self.model)
        baseline = baseline_like(self.baseline, inputs)
        with self.called.asked():
            features, scores, name = self._looked_into(inputs)
            weights, summed = self._weights(inputs, baseline, features, self._wanted(target, scores))
        return features, weights, summed, scores, name

    def _looked_into(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, str]:
        r"""The layer's feature map of the inputs (batch, channels, \*axes), the scores, the layer's name."""
        parts: list[tuple[torch.Tensor, torch.Tensor]] = []
        name = ""

        def look(start: int, stop: int) -> None:
            nonlocal name
            self.called.laid_out(inputs[start:stop])
            with watched(self.model, self.layer, self.reshape_transform, inputs.shape[2:]) as watch:
                scores = widen(self.called.in_one_pass(inputs[start:stop].clone()))  # it may work in place on its input
            if self.called.row_look.finds_dependence(inputs[start:stop], scores):
                for row in range(start, stop):
                    look(row, row + 1)
                return
            features = watch.feature_map(stop - start)
            if not parts:
                require_patches_read(watch, self.called.in_one_pass, inputs[start:stop])
            parts.append((widen(features), scores))
            name = watch.name

        self.called.in_batches(len(inputs), inputs, look)
        features, scores = map(torch.cat, zip(*parts, strict=True))
        return features, scores, name

    def _wanted(self, target: Any, scores: torch.Tensor) -> torch.Tensor:
        """Targets as indices (batch, axes) into the scores of a row; no axes if the model gives one score a row."""
        raw = VARIANTS[self.variant].over_channels
        targets = row_targets(target, to_host(scores), len(scores)) if raw else self.called.targets(target, scores)
        return index_of(targets, scores.device)

    def _weights(
        self, inputs: torch.Tensor, baseline: torch.Tensor, features: torch.Tensor, wanted: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights (batch, channels), and the weighted sum of masks for the variant that uses it."""
        variant = VARIANTS[self.variant]
        contrast = self.called.laid_out(inputs - baseline)
        size = inputs.shape[2:]
        axes = tuple(range(2, features.ndim))
        flat = features.amax(axes) == features.amin(axes)
        rows, channels = (~flat).nonzero(as_tuple=True)
        expected(round(len(rows) / len(features)), "channels")
        weights = features.new_zeros(features.shape[:2])
        summed = features.new_zeros((len(inputs), *size) if variant.of_masks else (0, *size))

        def weight_of(images: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
            scores = widen(self.called(images))
            scores = scores if variant.over_channels else self.called.as_probabilities(scores)
            return of_indices(scores.expand(len(indices), *scores.shape[1:]), indices)

        def weigh(start: int, stop: int) -> None:
            row, channel = rows[start:stop], channels[start:stop]
            masks = variant.masks(features[row, channel], size)
            masked = torch.addcmul(baseline, contrast[row], masks[:, None].to(contrast.dtype))
            weight = weight_of(masked, wanted[row]).to(weights.dtype)
            weights[row, channel] = weight
            if variant.of_masks:
                summed.index_add_(0, row, weight.reshape(-1, *[1] * len(size)) * masks)

        self.called.in_batches(len(rows), inputs, weigh)
        if variant.over_channels:
            if flat.any():
                hidden = weight_of(baseline.expand_as(contrast[:1]), wanted).to(weights.dtype)
                weights = torch.where(flat, hidden[:, None], weights)
            weights = weights.softmax(1)
        return weights, summed
