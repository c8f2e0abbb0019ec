"""Networks are trained in one way: Adam, the state with the lowest validation loss is kept, seeds decide everything."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from benchmarks.truth.task import Part

__all__ = ["perceptron", "trained"]


def perceptron(*widths: int) -> nn.Sequential:
    """Linear layers of these widths with ReLU between them; images are flattened."""
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def trained(
    build: Callable[[], nn.Module],
    train: Part,
    validation: Part,
    *,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    seed: int,
    epochs: int,
    batch: int,
) -> nn.Module:
    """The network that `build` makes, in evaluation mode."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = build()
        for layer in network.modules():
            if isinstance(layer, nn.Linear | nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        inputs, labels = (torch.from_numpy(array) for array in train[:2])
        held, held_labels = (torch.from_numpy(array) for array in validation[:2])
        optimiser = torch.optim.Adam(network.parameters(), lr=5e-3)
        best, kept = np.inf, copy.deepcopy(network.state_dict())
        for _ in range(epochs):
            for rows in torch.randperm(len(inputs)).split(batch):
                optimiser.zero_grad()
                loss(network(inputs[rows]), labels[rows]).backward()
                optimiser.step()
            with torch.no_grad():
                now = float(loss(network(held), held_labels))
            if now < best:
                best, kept = now, copy.deepcopy(network.state_dict())
        network.load_state_dict(kept)
    return network.eval().requires_grad_(False)
