"""The explained object: its pixels, and a segmentation network as a classifier of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from metfa._arrays import as_array, to_host
from metfa._base.validation import check_flag, positive_int
from metfa.calls.answers import answered
from metfa.calls.called import Called
from metfa.calls.inputs import check_images, require_tensor
from metfa.segmentation._class_maps import asked_maps, check_kind, class_maps
from metfa.segmentation._object import check_size, checked_region

__all__ = ["RegionModel", "one_image", "predicted_classes", "predicted_region", "region_of_class"]


class RegionModel(torch.nn.Module):
    """A segmentation network as a classifier of one region: each class's score, averaged over the region's pixels.

    With it every explainer of classifiers explains a segmentation: ``Gradient(RegionModel(network, region))``,
    `RISE`, `MASK`, or ``ScoreCAM(regional, layer=network.decoder)``. The softmax of these scores is the geometric mean
    of the pixels' probabilities, scaled to sum to 1.

    Parameters
    ----------
    network : torch.nn.Module or callable
        Images (batch, channels, height, width) -> class scores (batch, classes, height, width): a tensor, a dict with
        "out" (torchvision) or "logits", or an object with `.logits` (transformers). Coarser maps are enlarged.
    region : array of bool, (height, width)
        The object's pixels.
    softmax : bool
        Whether the network gives logits, not probabilities. It also decides how the scores of a single class become
        two, see `predicted_region`.
    shown : torch.Tensor, (channels, height, width), optional
        An image whose region is pasted into every image before the network sees it. So explainers that hide parts of an
        image can only hide the object's surroundings. None: images stay as they are.

    Examples
    --------
    >>> import torch
    >>> from metfa.segmentation import RegionModel
    >>> network = lambda images: torch.cat([images, 1 - images], dim=1)  # bright pixels are class 0
    >>> regional = RegionModel(network, torch.tensor([[True, False]]))
    >>> regional(torch.tensor([[[[0.75, 0.0]]]]))
    tensor([[0.7500, 0.2500]])
    """

    shown: Any
    region: np.ndarray
    training: bool

    def __init__(self, network: Any, region: Any, *, softmax: bool = True, shown: torch.Tensor | None = None) -> None:
        super().__init__()
        if not callable(network):
            raise TypeError(f"`network` must be a module or a function images -> class maps, got {network!r:.80}")
        if isinstance(network, RegionModel):
            raise TypeError("`network` must be a segmentation network, got a RegionModel")
        check_flag(softmax, "softmax")
        if shown is not None and not isinstance(shown, torch.Tensor):
            raise TypeError(f"`shown` must be an image, a torch.Tensor, or None, got {type(shown).__name__}")
        self.shown = None if shown is None else as_array(shown, "shown")
        self.network = network
        self.region = checked_region(region)
        if shown is not None and (shown.ndim != 3 or tuple(shown.shape[1:]) != self.region.shape or shown.is_complex()):
            height, width = self.region.shape
            raise ValueError(
                f"`shown` must be an image (channels, {height}, {width}), as large as the region, got {shown.dtype} of "
                f"shape {tuple(shown.shape)}"
            )
        self.softmax = softmax
        self.training = getattr(network, "training", False)
        self._places: dict[torch.device, torch.Tensor] = {}

    @property
    def rows_independent(self) -> bool:
        """Whether no row can depend on another; unknown if the network is a function."""
        return isinstance(self.network, torch.nn.Module)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Scores (batch, classes) of images of the region's height and width."""
        check_size(self.region, images)
        if self.shown is not None:
            region = torch.as_tensor(self.region, device=images.device)
            images = torch.where(region, self.shown.to(images), images)
        return self.in_region(class_maps(answered(self.network, images), images, softmax=self.softmax)).mean(dim=2)

    def in_region(self, maps: torch.Tensor) -> torch.Tensor:
        """The region's pixels of maps (..., height, width), (..., pixels)."""
        if maps.device not in self._places:  # an optimisation asks at each step
            self._places[maps.device] = torch.from_numpy(np.flatnonzero(self.region)).to(maps.device)
        return maps.flatten(-2)[..., self._places[maps.device]]

    def extra_repr(self) -> str:
        """The text that `repr` shows."""
        height, width = self.region.shape
        return f"region of {self.region.sum():,} of {height} x {width} pixels"


def predicted_region(model: Any, image: Any, target: int) -> np.ndarray:
    """The pixels to which a segmentation network gives a class, (height, width) bool: the paper's R.

    Parameters
    ----------
    model : torch.nn.Module, callable or Called
        Segmentation network, see `RegionModel`; a `metfa.Called` says how it is asked. If there is a single class, the
        foreground, it is class 1, and its pixels are those with a logit above 0, or (`softmax` False) with a
        probability above 1/2.
    image : torch.Tensor, (channels, height, width) or (1, channels, height, width)
        Floating point, pixels in [0, 1].
    target : int
        The class.

    Raises
    ------
    ValueError
        If no pixel has this class; the message names the classes found. If `softmax` is False and scores lie outside
        [0, 1].

    Warns
    -----
    ModelOutputWarning
        If the model gives probabilities and `softmax` is True.
    """
    target = positive_int(target, "target", minimum=0)
    return region_of_class(predicted_classes(Called.of(model), one_image(image), target), target)


def predicted_classes(called: Called, image: torch.Tensor, target: int) -> np.ndarray:
    """The class that the network gives each pixel of an image (1, channels, height, width), (height, width) int64."""
    with called.asked():
        maps = asked_maps(called, image.detach().clone(), [target])
        check_kind(maps, softmax=called.softmax)
    return to_host(maps[0].argmax(dim=0))


def region_of_class(classes: np.ndarray, target: int) -> np.ndarray:
    """The pixels of that class, bool; raises a ValueError that names the classes found if there are none."""
    region = classes == target
    if not region.any():
        found, sizes = np.unique(classes, return_counts=True)
        listed = ", ".join(f"{found[k]} ({sizes[k]:,} pixels)" for k in np.argsort(-sizes))
        raise ValueError(f"the model finds class {target} nowhere in the image; it finds {listed}")
    return region


def one_image(image: Any) -> Any:
    """`image` as a batch of one (1, channels, height, width); raises unless it is one image."""
    require_tensor(image)
    batch = image[None] if image.ndim == 3 else image
    check_images(batch)
    if len(batch) != 1:
        raise ValueError(f"`image` must be one image, got {len(batch)}: explain one after the other")
    return batch
