"""The loss of an attack: four terms, each with one number for each image that depends on this image alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from metfa._base.warnings import WeakAttackWarning, warn
from metfa.attacks._softened import soft_backward, softplus
from metfa.attacks.settings import AttackSettings
from metfa.calls.called import Called

__all__ = ["LossTerms", "Objective", "map_term", "softened"]

Streams = Callable[[str, int], list[np.random.Generator]]  # purpose, step -> one generator a row


@dataclass(frozen=True)
class LossTerms:
    """Values of the terms, (batch,) each, and the gradient of their weighted sum with respect to the images."""

    values: dict[str, torch.Tensor]
    total: torch.Tensor
    gradient: torch.Tensor


def _warn_of_flat(gradient: torch.Tensor, values: torch.Tensor, what: str) -> None:
    """Warn of images that cannot be attacked for lack of a derivative; somebody might think they are safe."""
    flat = ~gradient.flatten(1).any(1) & (values.detach() > 0)
    if flat.any():
        warn(
            f"the derivative through {what} is exactly 0 for {int(flat.sum())} of {len(flat)} images, so no step "
            "moves the maps: a noise that rounds (write `noise_derivative='identity'`), a clamp instead of a ReLU, or "
            "a saturated model hides it from the attacker, which is no defence",
            WeakAttackWarning,
        )


def softened(settings: AttackSettings, progress: float) -> Any:
    """Context in which maps are differentiated; `progress` goes from 0 to 1."""
    if settings.softening == "backward":
        return soft_backward()
    if settings.softening == "softplus":
        first, last = settings.beta
        return softplus(first * (last / first) ** progress)
    return nullcontext()


def map_term(maps: torch.Tensor, target_map: torch.Tensor, scale: str) -> torch.Tensor:
    r"""Mean squared difference of maps (batch, \*features), with "mean" each divided by its mean absolute value."""
    if scale == "mean":
        maps, target_map = _of_mean_one(maps), _of_mean_one(target_map)
    return ((maps - target_map) ** 2).flatten(1).mean(1)


def _of_mean_one(maps: torch.Tensor) -> torch.Tensor:
    size = maps.abs().flatten(1).mean(1).reshape(-1, *[1] * (maps.ndim - 1))
    return maps / size.clamp(min=1e-6)  # a map of zeros stays zero


@dataclass(frozen=True)
class Objective:
    """The loss of a batch of images.

    Attributes
    ----------
    called : Called
        The model, and how it is asked for logits.
    settings : AttackSettings
    clean, probabilities, target_map : torch.Tensor
        The images at the start, their probabilities, and the maps to draw.
    asked, explained : torch.Tensor of int, (batch,)
        Class that the model should predict, and class whose map is drawn.
    maps : callable
        Differentiable maps, see `differentiable_maps`.
    defence : object or None
        The same under the defence, if the attacker knows it.
    streams : callable
        Random generators by purpose and step.
    """

    called: Called
    settings: AttackSettings
    clean: torch.Tensor
    probabilities: torch.Tensor
    target_map: torch.Tensor
    asked: torch.Tensor
    explained: torch.Tensor
    maps: Any
    defence: Any
    streams: Streams

    def prediction(self, images: torch.Tensor) -> LossTerms:
        """The prediction's term alone."""
        with torch.enable_grad():
            leaf = images.detach().requires_grad_()
            value = self._prediction(leaf)
            (gradient,) = torch.autograd.grad(value.sum(), leaf)
        return LossTerms({"prediction": value.detach()}, value.detach(), gradient)

    def __call__(self, images: torch.Tensor, step: int, progress: float) -> LossTerms:
        """All terms at a step; weights and softening depend on `progress`, from 0 to 1."""
        weights = self.settings.weights(progress)
        values: dict[str, torch.Tensor] = {}
        with torch.enable_grad():
            leaf = images.detach().requires_grad_()
            if weights["prediction"]:
                values["prediction"] = self._prediction(leaf)
            if weights["pixels"]:
                values["pixels"] = ((leaf - self.clean) ** 2).flatten(1).mean(1)
            if weights["map"]:
                with softened(self.settings, progress):
                    maps = self.maps(leaf, self.explained, self.streams("explainer", step))
                    values["map"] = map_term(maps, self.target_map, self.settings.map_scale)
                if progress == 0:
                    (of_map,) = torch.autograd.grad(values["map"].sum(), leaf, retain_graph=True)
                    _warn_of_flat(of_map, values["map"], "the explainer")
            elif self.defence is not None:
                self.maps.follow(images, self.explained)
            total = sum(weights[name] * value for name, value in values.items())
            gradient = torch.zeros_like(images)
            if isinstance(total, torch.Tensor):
                (gradient,) = torch.autograd.grad(total.sum(), leaf)
        values = {name: value.detach() for name, value in values.items()}
        if self.defence is not None and weights["defence"]:
            values["defence"], through = self._defence(images.detach(), step, progress)
            if progress == 0:
                _warn_of_flat(through, values["defence"], "the defence")
            gradient = gradient + weights["defence"] * through
        total = sum(weights[name] * value for name, value in values.items())
        return LossTerms(values, torch.as_tensor(total, device=images.device).expand(len(images)), gradient)

    def _prediction(self, images: torch.Tensor) -> torch.Tensor:
        scores = self.called(images.clone())  # it may work in place
        if self.settings.prediction_loss == "probabilities":
            return ((scores.softmax(1) - self.probabilities) ** 2).sum(1)
        if self.settings.prediction_loss == "cross-entropy":
            return functional.cross_entropy(scores, self.asked, reduction="none")
        own = scores.gather(1, self.asked[:, None])[:, 0]
        others = scores.scatter(1, self.asked[:, None], -torch.inf).amax(1)
        return (others - own + self.settings.margin).clamp(min=0)

    def _defence(self, images: torch.Tensor, step: int, progress: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean term over `n_draws` smoothed maps, and its gradient."""
        n_draws = self.settings.n_draws
        value, gradient = torch.zeros(len(images), device=images.device), torch.zeros_like(images)
        for draw in range(n_draws):
            with softened(self.settings, progress):
                maps, pull_back = self.defence.vjp(images, self.explained, self.streams("noise", step * n_draws + draw))
                with torch.enable_grad():
                    leaf = maps.requires_grad_()
                    term = map_term(leaf, self.target_map, self.settings.map_scale)
                    (derivative,) = torch.autograd.grad(term.sum(), leaf)
                gradient += pull_back(derivative) / n_draws
            value = value + term.detach() / n_draws
        return value, gradient
