"""The descent of an attack: steps, projection, restarts, and the best image on the way."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from metfa._arrays import to_host
from metfa._base.warnings import MetfaWarning, warn
from metfa.attacks._objective import LossTerms, Objective
from metfa.attacks.settings import AttackSettings

__all__ = ["Ball", "Best", "descend"]

DECAY, DECAY_OF_SQUARES, STABILISER = 0.9, 0.999, 1e-8  # Adam's
ROUNDING = 1e-4  # of a level; float32 may miss it by this much


@dataclass(frozen=True)
class Ball:
    """Images within `epsilon` of the clean ones and within [0, 1]."""

    low: torch.Tensor
    high: torch.Tensor

    @classmethod
    def around(cls, images: torch.Tensor, epsilon: float | None) -> Ball:
        """The ball around images; its ends are rounded inwards, so that no returned image lies outside."""
        if epsilon is None:
            return cls(torch.zeros_like(images), torch.ones_like(images))
        exact = images.detach().cpu().double()
        low, high = ((exact + way * epsilon).clamp(0, 1).to(images.dtype) for way in (-1, 1))
        for _ in range(2):  # the sum was rounded; the difference to the image will be too
            low = torch.where(exact - low.double() > epsilon, torch.nextafter(low, torch.ones_like(low)), low)
            high = torch.where(high.double() - exact > epsilon, torch.nextafter(high, torch.zeros_like(high)), high)
        return cls(low.to(images.device), high.to(images.device))

    def project(self, images: torch.Tensor) -> torch.Tensor:
        """The nearest images in the ball."""
        return images.clamp(self.low, self.high)

    def random(self, rngs: list[np.random.Generator]) -> torch.Tensor:
        """One image anywhere in the ball for each row."""
        drawn = np.stack([rng.random(tuple(self.low.shape[1:])) for rng in rngs])
        share = torch.as_tensor(drawn, dtype=self.low.dtype, device=self.low.device)
        return self.project(self.low + share * (self.high - self.low))

    def in_eight_bits(self, images: torch.Tensor) -> torch.Tensor:
        """The nearest images with 256 levels; within the ball, if it holds any."""
        levels, low, high = ((255 * values.cpu().double()) for values in (images, self.low, self.high))
        low, high = (low - ROUNDING).ceil(), (high + ROUNDING).floor()
        levels = levels.round()
        levels = torch.where(low <= high, levels.clamp(low, high), levels)
        return (levels / 255).to(images.device, images.dtype)


@dataclass
class Best:
    """The best image of each row so far, by the unsoftened model."""

    images: torch.Tensor
    as_asked: torch.Tensor
    distance: torch.Tensor

    def offer(self, images: torch.Tensor, as_asked: torch.Tensor, distance: torch.Tensor) -> None:
        """Keep each row that is better: an image with the wanted prediction is better, then one with the nearer map."""
        better = (as_asked & ~self.as_asked) | ((as_asked == self.as_asked) & (distance < self.distance))
        rows = better.reshape(-1, *[1] * (images.ndim - 1))
        self.images = torch.where(rows, images, self.images)
        self.as_asked = torch.where(better, as_asked, self.as_asked)
        self.distance = torch.where(better, distance, self.distance)


class _Adam:
    def __init__(self) -> None:
        self.mean: Any = 0
        self.square: Any = 0
        self.count = 0

    def __call__(self, gradient: torch.Tensor) -> torch.Tensor:
        self.count += 1
        self.mean = DECAY * self.mean + (1 - DECAY) * gradient
        self.square = DECAY_OF_SQUARES * self.square + (1 - DECAY_OF_SQUARES) * gradient**2
        size = (self.square / (1 - DECAY_OF_SQUARES**self.count)).sqrt()
        return self.mean / (1 - DECAY**self.count) / (size + STABILISER)


@dataclass
class _State:
    """The state of a descent before a step."""

    images: torch.Tensor
    best: Best
    adam: _Adam
    restart: int = 0
    step: int = 0

    def written(self, curves: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """As arrays, with the curves so far."""
        tensors = {"images": self.images, **{f"best_{name}": tensor for name, tensor in vars(self.best).items()}}
        if self.adam.count:
            tensors |= {"adam_mean": self.adam.mean, "adam_square": self.adam.square}
        arrays = {name: to_host(tensor) for name, tensor in tensors.items()}
        arrays |= {"at": np.array([self.restart, self.step, self.adam.count])}
        return arrays | {f"curve_{name}": curve for name, curve in curves.items()}

    @classmethod
    def read(cls, arrays: dict[str, np.ndarray], clean: torch.Tensor, curves: dict[str, np.ndarray]) -> _State:
        """From arrays, on the device of the clean images; the curves are put back too."""

        def tensor(name: str) -> torch.Tensor:
            return torch.from_numpy(arrays[name]).to(clean.device)

        missing = {"images", "at", *(f"best_{field.name}" for field in fields(Best))} - arrays.keys()
        if missing:
            raise ValueError(f"the state of the interrupted attack is damaged, it lacks {', '.join(sorted(missing))}")
        curves.update(
            {name.removeprefix("curve_"): values for name, values in arrays.items() if name.startswith("curve_")}
        )
        adam = _Adam()
        restart, step, adam.count = map(int, arrays["at"])
        if adam.count:
            adam.mean, adam.square = tensor("adam_mean"), tensor("adam_square")
        best = Best(*(tensor(f"best_{field.name}") for field in fields(Best)))
        return cls(tensor("images"), best, adam, restart, step)


def descend(
    objective: Objective,
    settings: AttackSettings,
    look: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]],
    bar: Any,
    begun: dict[str, np.ndarray] | None = None,
    keep: Callable[[dict[str, np.ndarray]], None] | None = None,
) -> tuple[Best, dict[str, np.ndarray]]:
    """Attack a batch.

    Parameters
    ----------
    objective, settings
        The function that is minimised, and how.
    look : callable
        Images -> whether each is predicted as asked, its distance from the goal, and distances to record, by the
        unsoftened model.
    bar : progress bar
        Updated at every step.
    begun : dict of ndarray, optional
        State that `keep` got in an interrupted call; this call goes on from there and ends with the same result.
    keep : callable, optional
        Called with the state at every refresh, and at the end.

    Returns
    -------
    best : Best
    curves : dict of ndarray, (restarts, steps, batch)
        Terms of the loss at each step (NaN if a stage has no such term), "loss", their weighted sum, and "distance"
        (and "distance defended"), by the unsoftened model, at the steps with a look at the image.
    """
    clean = objective.clean
    ball = Ball.around(clean, settings.epsilon)
    n_all = settings.n_first_steps + settings.n_steps
    curves: dict[str, np.ndarray] = defaultdict(lambda: np.full((settings.n_restarts, n_all, len(clean)), np.nan))
    state = (
        _State(clean, Best(clean, *look(clean)[:2]), _Adam()) if begun is None else _State.read(begun, clean, curves)
    )
    best, at = state.best, (state.restart, state.step)
    bar.update(at[0] * n_all + at[1])
    for restart in range(at[0], settings.n_restarts):
        first = at[1] if restart == at[0] else 0
        if first == 0:
            state.images = clean if restart == 0 else ball.random(objective.streams("start", restart))
            state.adam = _Adam()
        images, adam, drawn = state.images, state.adam, restart * n_all
        for step in range(first, n_all):
            stage, step_size = step - settings.n_first_steps, settings.first_step_size
            if keep is not None and stage >= 0 and stage % settings.refresh_every == 0:
                state.images, state.restart, state.step = images, restart, step
                keep(state.written(curves))
            if stage < 0:
                terms = objective.prediction(images)
                direction = _finite(terms.gradient).sign()
            else:
                if stage % settings.refresh_every == 0:
                    objective.maps.refresh(images, objective.explained, objective.streams("refresh", drawn + step))
                progress = stage / settings.n_steps
                terms = objective(images, drawn + step, progress)
                gradient = _finite(terms.gradient)
                direction = adam(gradient) if settings.step == "adam" else gradient.sign()
                step_size = settings.step_size * _share(settings.schedule, progress)
            _record(curves, (restart, step), terms)
            images = ball.project(images - step_size * direction)
            if step + 1 in (settings.n_first_steps, n_all) or (stage >= 0 and (stage + 1) % settings.check_every == 0):
                as_asked, distance, looked = look(images)
                best.offer(images, as_asked, distance)
                for name, values in looked.items():
                    curves[name][restart, step] = values.cpu().numpy()
            bar.update(1)
    if keep is not None:
        state.restart, state.step = settings.n_restarts, 0
        keep(state.written(curves))
    return best, dict(curves)


def _record(curves: dict[str, np.ndarray], place: tuple[int, int], terms: LossTerms) -> None:
    for name, value in {**terms.values, "loss": terms.total}.items():
        curves[name][place] = value.detach().cpu().numpy()


def _finite(gradient: torch.Tensor) -> torch.Tensor:
    """The gradient, set to 0 for images whose gradient is not finite: these do not move."""
    bad = ~gradient.isfinite().flatten(1).all(1)
    if not bad.any():
        return gradient
    warn(
        f"the gradient of {int(bad.sum())} of {len(gradient)} images is not finite at a step, which leaves them where "
        "they are",
        MetfaWarning,
    )
    return torch.where(bad.reshape(-1, *[1] * (gradient.ndim - 1)), 0, gradient)


def _share(schedule: str, progress: float) -> float:
    """Share of the step size that is used."""
    return {"constant": 1.0, "linear": 1 - progress, "cosine": (1 + math.cos(math.pi * progress)) / 2}[schedule]
