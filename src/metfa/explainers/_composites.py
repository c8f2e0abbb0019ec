"""Zennit's composites by name, the paper's setting among them, and the box that some of them need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from metfa.explainers._supported_layers import linear_types

__all__ = [
    "BOXED",
    "PAPER",
    "box_at_first_layer",
    "box_of",
    "check_bounds",
    "composite_named",
    "composite_names",
]

PAPER = "zbox-alpha1beta0"
BOXED = (PAPER, "epsilon_gamma_box")  # these need the range of the pixels
STABILISER = 1e-9


def composite_names() -> tuple[str, ...]:
    """Names: the paper's, then zennit's own."""
    from zennit.composites import COMPOSITES

    return PAPER, *sorted(COMPOSITES)


def composite_named(name: str, *box: torch.Tensor) -> Any:
    """A fresh composite; those in `BOXED` take the lowest and highest values at the first layer."""
    from zennit.composites import COMPOSITES

    return papers_composite(*box) if name == PAPER else COMPOSITES[name](*box)


def papers_composite(low: torch.Tensor, high: torch.Tensor) -> Any:
    """Composite "zbox-alpha1beta0"; it has no rule for activations that are not monotone."""
    from zennit import rules
    from zennit.composites import SpecialFirstLayerMapComposite
    from zennit.layer import Sum
    from zennit.types import AvgPool, BatchNorm

    monotone = (
        nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.CELU, nn.SELU, nn.Softplus, nn.Hardtanh, nn.Tanh, nn.Sigmoid,
    )  # fmt: skip
    settings: dict[str, Any] = {"stabilizer": STABILISER, "zero_params": ["bias"]}
    return SpecialFirstLayerMapComposite(
        layer_map=[
            ((*monotone, BatchNorm), rules.Pass()),
            ((Sum, AvgPool), rules.Norm(stabilizer=STABILISER)),
            (linear_types(), rules.ZPlus(**settings)),  # alpha 1, beta 0 without the work for beta
        ],
        first_map=[(linear_types(), rules.ZBox(low, high, **settings))],
    )


class _Arrived(Exception):  # noqa: N818 - carries a result out of a forward pass
    """What arrived at the first layer."""


def box_at_first_layer(model: nn.Module, low: torch.Tensor, high: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The images of lowest and highest values, as they arrive at the first convolution or linear layer."""

    def arrive(_: nn.Module, args: Any) -> None:
        raise _Arrived(args[0])

    layers = [module for module in model.modules() if isinstance(module, linear_types())]
    handles = [layer.register_forward_pre_hook(arrive) for layer in layers]
    try:
        with torch.no_grad():
            model(torch.stack([low, high]))
    except _Arrived as arrived:
        low, high = arrived.args[0]
        return torch.minimum(low, high)[None], torch.maximum(low, high)[None]
    finally:
        for handle in handles:
            handle.remove()
    raise ValueError("`model` calls no convolution or linear layer (as a module), so LRP has no first layer")


def box_of(bounds: tuple[Any, Any], inputs: torch.Tensor, channel_axis: int | None) -> list[torch.Tensor]:
    """Inputs that are lowest and highest everywhere, without batch axis."""
    return [_bound(bound, inputs, channel_axis) for bound in bounds]


def _bound(bound: Any, inputs: torch.Tensor, channel_axis: int | None) -> torch.Tensor:
    values = torch.as_tensor(bound, dtype=inputs.dtype, device=inputs.device)
    if values.ndim == 1 and channel_axis is not None:
        values = values.reshape([-1 if axis == channel_axis else 1 for axis in range(1, inputs.ndim)])
    try:
        return values.expand(inputs.shape[1:])
    except RuntimeError:
        raise ValueError(
            f"`bounds` must be numbers, or one for each channel of inputs {tuple(inputs.shape)}, got {bound!r}"
        ) from None


def check_bounds(bounds: Any) -> None:
    """Raise unless `bounds` is a pair of lowest and highest values: numbers, or one for each channel."""
    if not (isinstance(bounds, Sequence) and len(bounds) == 2):
        raise TypeError(f"`bounds` must be a pair (lowest, highest), got {bounds!r}")
    try:
        low, high = (torch.as_tensor(bound, dtype=torch.float64, device="cpu") for bound in bounds)
        ordered = bool((low < high).all())
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"`bounds` must be numbers, or one for each channel, got {bounds!r}") from None
    if not ordered:
        raise ValueError(f"`bounds` must be (lowest, highest), got {bounds!r}")
