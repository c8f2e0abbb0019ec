"""`Normalised`: a wrapper that lets a model of normalised images take pixels."""

from collections.abc import Sequence

import torch
from torch import nn

from metfa._arrays import as_array
from metfa._base.validation import brief

__all__ = ["Normalised"]


class Normalised(nn.Module):
    """A model that takes pixels in [0, 1] and normalises them inside: ``model((x - mean) / std)``.

    Noise radii, black baselines, blur and clamping then all mean pixels, whatever the model was trained on.

    Parameters
    ----------
    model : torch.nn.Module
        Takes normalised images. It is kept as the attribute ``model``; both are in its mode.
    mean, std : sequence of float
        One value per channel, in units of pixels in [0, 1]. They are kept as buffers of shape (channels, 1, 1). Device
        and dtype are those of the first floating parameter of `model` (torch's default dtype if it has none).

    Notes
    -----
    ``.to(device)`` and ``.to(dtype)`` move model and buffers together. The input may have any floating dtype. It is
    normalised in the wider of two dtypes, its own and that of the buffers, and then cast to that of the buffers. So a
    bfloat16 model takes float32 pixels, and the gradient has the dtype of the input.

    Examples
    --------
    >>> import torch
    >>> from metfa.models import Normalised
    >>> pixels = torch.full((1, 3, 2, 2), 0.75)
    >>> Normalised(torch.nn.Flatten(), mean=[0.5, 0.5, 0.75], std=[0.5, 0.25, 0.5])(pixels)[0, ::4]
    tensor([0.5000, 1.0000, 0.0000])
    """

    training: bool

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, model: nn.Module, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise TypeError(f"`model` must be a torch.nn.Module, got {type(model).__name__}")
        parameter = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
        channels = []
        for name, values in (("mean", mean), ("std", std)):
            channel = torch.as_tensor(as_array(values, name), dtype=parameter.dtype, device=parameter.device)
            if channel.ndim != 1 or not channel.isfinite().all():
                raise ValueError(f"`{name}` must be one finite number per channel, got {brief(values)}")
            channels.append(channel)
        if len(channels[0]) != len(channels[1]):
            raise ValueError(f"`mean` and `std` must have one length, got {len(channels[0])} and {len(channels[1])}")
        if not (channels[1] > 0).all():
            raise ValueError(f"`std` must be positive, got {std}")
        self.model = model
        self.training = getattr(model, "training", False)
        self.register_buffer("mean", channels[0][:, None, None].clone())
        self.register_buffer("std", channels[1][:, None, None].clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Answer of the model to pixels `x` in [0, 1], of shape (batch, channels, height, width)."""
        if not x.is_floating_point():
            raise TypeError(f"`x` must hold floating-point pixels in [0, 1], got {x.dtype}; divide 8-bit pixels by 255")
        if x.ndim != 4 or x.shape[1] != len(self.mean):
            raise ValueError(f"`x` must be of shape (batch, {len(self.mean)}, height, width), got {tuple(x.shape)}")
        return self.model(((x - self.mean) / self.std).to(self.mean.dtype))
