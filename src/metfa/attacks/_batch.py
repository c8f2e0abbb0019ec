"""Images that are attacked together: the victim, the random streams, and the measurements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch

from metfa._arrays import to_host
from metfa.attacks._descent import Ball, descend
from metfa.attacks._maps import Maps, StraightThrough, differentiable_maps, maps_of, move
from metfa.attacks._objective import Objective, softened
from metfa.attacks.result import Measured
from metfa.attacks.settings import AttackSettings
from metfa.calls.called import Called
from metfa.sampling.protocol import known_independent
from metfa.sampling.rows import Rows
from metfa.sampling.smoothed import SampledExplainer
from metfa.sampling.streams import Purpose, root_entropy, stream

__all__ = ["Batch", "Knows", "Streams", "Victim"]

Knows = Literal["nothing", "defence", "seed"]


@dataclass(frozen=True)
class Streams:
    """Generators for a batch of images, by image, purpose and step.

    For an attacker who knows the seed, "noise" is the defender's noise, the same at each step.
    """

    roots: tuple[int, ...]
    known: bool = False

    @classmethod
    def of(cls, images: torch.Tensor, root: int) -> Streams:
        """Streams below one root, by each image's content."""
        ids = Rows(images).ids()
        return cls(tuple(root_entropy(stream(root, identity, 0, Purpose.NOISE)) for identity in ids))

    def __getitem__(self, rows: slice) -> Streams:
        return replace(self, roots=self.roots[rows])

    def __call__(self, purpose: str, step: int) -> list[np.random.Generator]:
        """One generator a row."""
        if self.known and purpose == "noise":
            purpose, step = "defender", 0
        return [stream(root, purpose, step, Purpose.NOISE) for root in self.roots]


@dataclass(frozen=True)
class Victim:
    """Model, explainer and defence as they are, never softened."""

    called: Called
    explainer: Any
    defence: SampledExplainer | None

    @classmethod
    def of(cls, called: Called, explainer: Any, defence: SampledExplainer | None) -> Victim:
        """A victim; if its explainer may mix rows, the defence gives it one row at a time."""
        if defence is not None and not known_independent(defence.explainer):
            defence = replace(defence, batch_size=1)
        return cls(called, explainer, defence)

    def scores(self, images: torch.Tensor) -> torch.Tensor:
        """The model's scores."""
        with torch.no_grad():
            return self.called(images.clone()).detach()

    def maps(self, images: torch.Tensor, explained: torch.Tensor, streams: Streams) -> torch.Tensor:
        """The explainer's maps; its random numbers are the same at each look."""
        return maps_of(self.explainer, images.detach(), explained, streams("explainer as it is", 0)).detach()

    def defended(self, images: torch.Tensor, explained: torch.Tensor, rngs: list[Any]) -> torch.Tensor | None:
        """The defence's maps."""
        if self.defence is None:
            return None
        return maps_of(self.defence, images.detach(), explained, rngs).detach()


@dataclass(frozen=True)
class Batch:
    """Images that are attacked together."""

    victim: Victim
    settings: AttackSettings
    knows: Knows
    images: torch.Tensor
    scores: torch.Tensor
    target_map: torch.Tensor
    asked: torch.Tensor
    explained: torch.Tensor
    streams: Streams

    def attacked(
        self, bar: Any, begun: dict[str, np.ndarray] | None, keep: Callable[[dict[str, np.ndarray]], None] | None
    ) -> tuple[Measured, Measured, Measured, dict[str, np.ndarray]]:
        """Measured clean, adversarial and rounded images, and the curves; see `descend` for `begun` and `keep`."""
        best, curves = descend(self.objective, self.settings, self._look, bar, begun, keep)
        adversarial = best.images
        rounded = Ball.around(self.images, self.settings.epsilon).in_eight_bits(adversarial)
        return self._measured(self.images), self._measured(adversarial), self._measured(rounded), curves

    def any_map_moves(self) -> bool:
        """Whether any map has a derivative other than 0; raises if the explainer gives none at all."""
        maps, rngs = self.objective.maps, self.streams("explainer", 0)
        if not isinstance(maps, Maps):
            return True  # MASK's own descent is unrolled
        with softened(self.settings, 0.0):
            return any(
                move(maps, self.images[row : row + 1], self.explained[row : row + 1], rng)
                for row, rng in enumerate(rngs)
            )

    @cached_property
    def objective(self) -> Objective:
        """The function that is minimised."""
        victim, defence = self.victim, None
        maps = differentiable_maps(victim.explainer, self.settings.unrolled)
        if victim.defence is not None and self.knows != "nothing":
            seen = victim.defence
            if self.settings.noise_derivative == "identity":
                seen = replace(seen, noise=StraightThrough(seen.noise))
            defence = maps.defended(seen)
        return Objective(
            called=victim.called,
            settings=self.settings,
            clean=self.images,
            probabilities=self.scores.softmax(1),
            target_map=self.target_map,
            asked=self.asked,
            explained=self.explained,
            maps=maps,
            defence=defence,
            streams=replace(self.streams, known=self.knows == "seed"),
        )

    def _look(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]:
        """Whether images are predicted as asked, and their maps' distance to the target, by the unsoftened model.

        If the attacker knows the defence, the distance is a mean of both maps' distances, with the weights at the end.
        The defended map is then under the attacker's own noise, the same at each look.
        """
        as_asked = self.victim.scores(images).argmax(1) == self.asked
        distance = self._distance(self.victim.maps(images, self.explained, self.streams))
        looked = {"distance": distance}
        if self.knows == "nothing":
            return as_asked, distance, looked
        rngs = self.streams("defender" if self.knows == "seed" else "look", 0)
        defended = self.victim.defended(images, self.explained, rngs)
        assert defended is not None, "an attacker who knows a defence has one"
        looked["distance defended"] = self._distance(defended)
        weights = self.settings.weights(1.0)
        both = weights["map"] + weights["defence"]
        if not both:
            return as_asked, looked["distance defended"], looked
        wanted = (weights["map"] * distance + weights["defence"] * looked["distance defended"]) / both
        return as_asked, wanted, looked

    def _distance(self, maps: torch.Tensor) -> torch.Tensor:
        return (maps - self.target_map).abs().flatten(1).mean(1)

    def _measured(self, images: torch.Tensor) -> Measured:
        defended = self.victim.defended(images, self.explained, self.streams("defender", 0))
        return Measured(
            to_host(images),
            to_host(self.victim.scores(images)),
            to_host(self.victim.maps(images, self.explained, self.streams)),
            None if defended is None else to_host(defended),
        )
