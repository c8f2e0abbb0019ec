"""Maps for the attack: differentiable in the image, and fast enough for every step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from metfa._base.provenance import describe
from metfa._base.warnings import DegenerateAttributionsWarning
from metfa.calls.behind import owner_of
from metfa.calls.differentiation import graph_kept
from metfa.explainers.cam import CAM
from metfa.explainers.lrp import LRP
from metfa.explainers.mask import MASK, MaskState
from metfa.sampling.protocol import call_explainer, known_independent, takes_rngs
from metfa.sampling.smoothed import SampledExplainer

__all__ = [
    "DefendedMaps",
    "Maps",
    "StraightThrough",
    "UnrolledMASK",
    "UnrolledMaps",
    "differentiable_maps",
    "maps_of",
    "move",
    "needs_softening",
]

DIFFERENTIABLE = (
    "Gradient, SmoothGrad, CAM, LRP, MASK, AttentionRollout, GradientRollout and LeGrad of metfa.explainers, "
    "`from_captum` with a method of gradients (Saliency, InputXGradient, IntegratedGradients), and Captum's own "
    "objects (`heatmap(LayerGradCam(model, layer).attribute)`, which is Grad-CAM)"
)


def maps_of(explainer: Any, inputs: torch.Tensor, target: torch.Tensor, rngs: Sequence[np.random.Generator]) -> Any:
    r"""Maps (batch, \*features) of an unsoftened explainer; one row a call unless it promises that rows do not mix."""
    alone = not known_independent(explainer)
    wants = takes_rngs(explainer)
    parts = []
    with _quiet():
        for start, stop in _parts(len(inputs), alone=alone):
            given = list(rngs[start:stop]) if wants else None
            parts.append(call_explainer(explainer, inputs[start:stop], target[start:stop], stop - start, given, {})[0])
    return torch.cat(parts)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings about images on the way, and Captum's about inputs that need no gradient."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateAttributionsWarning)
        warnings.filterwarnings("ignore", "Input Tensor .* did not already require gradients", UserWarning)
        yield


def _parts(n_rows: int, *, alone: bool) -> list[tuple[int, int]]:
    return [(row, row + 1) for row in range(n_rows)] if alone else [(0, n_rows)]


def needs_softening(explainer: Any) -> bool:
    """Whether maps are gradients of the class score, so that steps need the network's second derivatives.

    CAM and LRP are made of activations, for which first derivatives are enough; ADV² attacks MASK with the unsoftened
    network.
    """
    return not isinstance(_inmost(explainer), CAM | LRP | MASK)


def _inmost(explainer: Any) -> Any:
    """The innermost explainer, inside wrappers such as `heatmap`."""
    owner = owner_of(explainer)
    while hasattr(owner, "explainer"):
        owner = owner_of(owner.explainer)
    return owner


@dataclass(frozen=True)
class Maps:
    """An explainer whose maps are in the graph of the inputs."""

    explainer: Any
    context: Callable[[], AbstractContextManager[Any]] = nullcontext

    def __call__(self, inputs: torch.Tensor, target: torch.Tensor, rngs: Sequence[np.random.Generator]) -> torch.Tensor:
        r"""Maps (batch, \*features)."""
        with self.context():
            return maps_of(self.explainer, inputs, target, rngs)

    def refresh(self, inputs: torch.Tensor, target: torch.Tensor, rngs: Sequence[np.random.Generator]) -> None:
        """Do nothing: every map is made anew."""

    def follow(self, inputs: torch.Tensor, target: torch.Tensor) -> None:
        """Do nothing: every map is made anew."""

    def defended(self, defence: SampledExplainer) -> DefendedMaps:
        """The same under a defence."""
        return DefendedMaps(defence, self.context)


@dataclass(frozen=True)
class DefendedMaps:
    """Smoothed maps, with the gradient in two passes that `Smoothed.vjp` takes."""

    defence: SampledExplainer
    context: Callable[[], AbstractContextManager[Any]] = nullcontext

    def vjp(self, inputs: torch.Tensor, target: torch.Tensor, rngs: Sequence[np.random.Generator]) -> Any:
        """Maps, and a function that pulls a derivative back from them to the inputs."""
        with self.context(), _quiet():
            maps, pull_back = self.defence.vjp(inputs, target, rngs=list(rngs))
        return maps, self._within(pull_back)

    def _within(self, pull_back: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def pulled(derivative: Any) -> Any:
            with self.context(), _quiet():
                return pull_back(derivative)

        return pulled


@dataclass(frozen=True)
class UnrolledMASK:
    """The last steps of a MASK that has nearly settled, as an explainer that is differentiable in the inputs."""

    explainer: MASK
    state: MaskState  # of one row each, or of one for all
    steps: tuple[int, int]

    rows_independent = True

    @property
    def model(self) -> Any:
        """Model of the MASK."""
        return self.explainer.model

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> torch.Tensor:
        """Maps (batch, height, width)."""
        return self.finished(self.after(inputs, target), inputs)

    def after(self, inputs: torch.Tensor, target: Any) -> MaskState:
        """State after the steps; the last ones are in the graph of the inputs."""
        free, tracked = self.steps
        state = self._of_rows(len(inputs))
        for _ in range(free):
            state = self.explainer.step(inputs.detach(), target, state)
        graph = inputs.requires_grad and torch.is_grad_enabled()
        for _ in range(tracked):
            state = self.explainer.step(inputs, target, state, create_graph=graph)
        return state

    def finished(self, state: MaskState, inputs: torch.Tensor) -> torch.Tensor:
        """Maps of a state."""
        return self.explainer.maps(state.masks, inputs)

    def _of_rows(self, n_rows: int) -> MaskState:
        masks, mean, square = (
            values if len(values) == n_rows else values.expand(n_rows, *values.shape[1:])
            for values in (self.state.masks, self.state.mean, self.state.square)
        )
        return MaskState(masks, mean, square, self.state.count)


class UnrolledMaps:
    """MASK, whose map is the end of an optimisation: its state follows the image, and its last steps are unrolled.

    As in ADV² (``rev1/mask_v2``), each step of the attack starts from the state of the step before. From time to time a
    full optimisation makes the state anew.
    """

    def __init__(self, explainer: MASK, steps: tuple[int, int]) -> None:
        self.explainer = explainer
        self._steps = steps
        self._state: MaskState | None = None

    def refresh(self, inputs: torch.Tensor, target: torch.Tensor, rngs: Sequence[np.random.Generator]) -> None:
        """Optimise the masks of these inputs in full."""
        mask, inputs = self.explainer, inputs.detach()
        places = np.stack([rng.integers(0, max(mask.jitter, 1), (mask.n_iterations, 2)) for rng in rngs])
        state = mask.start(inputs, target)
        for iteration in range(mask.n_iterations):
            state = mask.step(inputs, target, state, shifts=places[:, iteration])
        self._state = state

    def __call__(self, inputs: torch.Tensor, target: torch.Tensor, rngs: Sequence[np.random.Generator]) -> torch.Tensor:
        """Maps (batch, height, width)."""
        if self._state is None:
            self.refresh(inputs, target, rngs)
        unrolled, state = self._advanced(inputs, target)
        with _quiet():
            return unrolled.finished(state, inputs)

    def follow(self, inputs: torch.Tensor, target: torch.Tensor) -> None:
        """Let the state follow the images of a step that asks for no map: the defended maps start from it."""
        self._advanced(inputs.detach(), target)

    def _advanced(self, inputs: torch.Tensor, target: torch.Tensor) -> tuple[UnrolledMASK, MaskState]:
        assert self._state is not None
        unrolled = UnrolledMASK(self.explainer, self._state, self._steps)
        with _quiet():
            state = unrolled.after(inputs, target)
        self._state = MaskState(state.masks.detach(), state.mean.detach(), state.square.detach(), state.count)
        return unrolled, state

    def defended(self, defence: SampledExplainer) -> UnrolledDefence:
        """The same under a defence: every noisy copy starts from the state of its own image."""
        return UnrolledDefence(defence, self)

    def of_row(self, row: int) -> UnrolledMASK:
        """Explainer for copies of one image of the batch."""
        assert self._state is not None
        part = slice(row, row + 1)
        state = MaskState(self._state.masks[part], self._state.mean[part], self._state.square[part], self._state.count)
        return UnrolledMASK(self.explainer, state, self._steps)


@dataclass(frozen=True)
class UnrolledDefence:
    """Smoothed maps of an unrolled MASK, image by image."""

    defence: SampledExplainer
    maps: UnrolledMaps

    def vjp(self, inputs: torch.Tensor, target: torch.Tensor, rngs: Sequence[np.random.Generator]) -> Any:
        """Maps, and a function that pulls a derivative back from them to the inputs."""
        pairs = []
        for row in range(len(inputs)):
            defence = DefendedMaps(replace(self.defence, explainer=self.maps.of_row(row)))
            pairs.append(defence.vjp(inputs[row : row + 1], target[row : row + 1], rngs[row : row + 1]))

        def pulled(derivative: torch.Tensor) -> torch.Tensor:
            return torch.cat([pull(derivative[row : row + 1]) for row, (_, pull) in enumerate(pairs)])

        return torch.cat([maps for maps, _ in pairs]), pulled


def differentiable_maps(explainer: Any, steps: tuple[int, int]) -> Maps | UnrolledMaps:
    """Maps of an explainer in the graph of the inputs, if it allows that; see `move`."""
    owner = owner_of(explainer)
    if isinstance(owner, MASK):
        return UnrolledMaps(owner, steps)
    # A gradient that other code took may be detached, which is not seen if it is multiplied by something in the graph.
    return Maps(explainer, nullcontext if getattr(_inmost(explainer), "differentiable", False) else graph_kept)


def move(maps: Maps, image: torch.Tensor, target: torch.Tensor, rng: np.random.Generator) -> bool:
    """Whether the derivative of an image's map with respect to the image (1, ...) is not 0 everywhere; true for a
    constant map.

    Raises
    ------
    ValueError
        If there is none at all; the message names what is needed, and which explainers have it.
    """
    leaf, gradient = image.detach().clone().requires_grad_(), None
    with torch.enable_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, if explainers get inputs with a graph that they do not use
        tried = maps(leaf, target, [rng])
    if tried.requires_grad:
        derivative = torch.linspace(1, 2, tried.numel(), dtype=tried.dtype, device=tried.device).reshape(tried.shape)
        (gradient,) = torch.autograd.grad(tried, leaf, derivative, allow_unused=True)
    if gradient is None:
        raise ValueError(
            "`explainer` must return maps that are differentiable in the inputs, and those of "
            f"{describe(maps.explainer)} are not (it takes no gradients, or detaches what it returns). An attack can "
            f"be made on {DIFFERENTIABLE}"
        )
    return bool(gradient.any() or tried.detach().amax() == tried.detach().amin())


@dataclass(frozen=True)
class StraightThrough:
    """A noise with the derivative of the identity (Athalye et al. 2018, "Obfuscated gradients").

    For attackers: a noise that rounds, or leaves the graph, has no useful derivative of its own.
    """

    noise: Callable[..., Any]

    def __call__(self, x: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
        """Noisy copy of the input `x`, with numbers from `rng`."""
        return self.noise(x.detach(), rng) + (x - x.detach())
