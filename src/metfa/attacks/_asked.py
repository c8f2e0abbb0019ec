"""What an attack is asked for, checked: the model, who is attacked, the classes, and the maps to draw."""

from __future__ import annotations

from typing import Any

import torch

from metfa._arrays import as_array, to_host
from metfa._base.provenance import describe
from metfa.attacks._batch import Knows, Streams, Victim
from metfa.calls.called import Called
from metfa.calls.inputs import check_images, require_tensor
from metfa.calls.targets import row_targets
from metfa.sampling.protocol import explained_model
from metfa.sampling.smoothed import SampledExplainer

__all__ = ["check_wanted", "checked", "classes_of", "maps_to_draw", "two_axes"]

ROUNDING = 1e-6  # of maps in [0, 1]


def checked(model: Any, explainer: Any, inputs: Any, defence: Any, knows: Any) -> tuple[Called, Knows]:
    """How the model is asked and what the attacker knows, after checks of the arguments."""
    for name, value in (("model", model), ("explainer", explainer)):
        if not callable(value):
            raise TypeError(f"`{name}` must be callable, got {type(value).__name__}")
    called = Called.of(model)
    if not called.softmax:
        raise ValueError("`softmax=False` says that `model` gives probabilities, but an attack needs its logits")
    _check_same_model(called.model, explainer, "explainer")
    require_tensor(inputs)
    check_images(inputs)
    if inputs.dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"`inputs` must be float32 or float64, because {inputs.dtype} cannot represent small steps: write "
            "`inputs.float()`"
        )
    if inputs.min() < 0 or inputs.max() > 1:
        raise ValueError(
            f"`inputs` must be pixels in [0, 1], got {float(inputs.min()):.3g} to {float(inputs.max()):.3g}: let the "
            "model normalise inside"
        )
    if defence is not None and not isinstance(defence, SampledExplainer):
        raise TypeError(f"`defence` must be a metfa.Smoothed, got {type(defence).__name__}")
    if defence is not None:
        _check_same_model(called.model, defence.explainer, "defence")
    if not isinstance(knows, str | None) or knows not in (None, "nothing", "defence", "seed"):
        raise ValueError(f"`knows` must be 'nothing', 'defence' or 'seed', got {knows!r}")
    if defence is None and knows in ("defence", "seed"):
        raise ValueError(f"`knows={knows!r}` needs a `defence`, such as metfa.Smoothed(explainer, ...)")
    knows = knows or ("nothing" if defence is None else "defence")
    if defence is not None and knows != "nothing" and defence.explainer != explainer:
        shown, attacked = describe(defence.explainer), describe(explainer)
        alike = ", which looks the same: make one and give it to both" if shown == attacked else ""
        raise ValueError(
            f"`defence` must smooth the explainer that is attacked for an attacker who knows it, got a defence of "
            f"{shown} and another explainer {attacked}{alike}"
        )
    return called, knows


def _check_same_model(model: Any, explainer: Any, name: str) -> None:
    """Raise if the explainer visibly explains a network that shares nothing with the attacked one."""
    networks = (model, explained_model(explainer))
    if not all(isinstance(network, torch.nn.Module) for network in networks):
        return
    attacked, explained = ({id(weight) for weight in network.parameters()} for network in networks)
    if attacked and explained and not attacked & explained:
        raise ValueError(
            f"`{name}` must explain `model`, got {describe(explainer)}, which explains another network: none of its "
            "parameters is one of `model`'s"
        )


def check_wanted(kind: str, target_map: Any, target: Any) -> None:
    """Raise unless there is what this kind of attack wants."""
    if kind == "targeted" and target is None:
        raise ValueError("`target` must be the class to be predicted, or one for each input, got None")
    if kind == "manipulation" and target_map is None:
        raise ValueError("`target_map` must be the map to draw, got None")
    if isinstance(target_map, str):
        raise TypeError(
            f"`target_map` must be a map, got the text {target_map!r}: write `metfa.attacks.drawn({target_map!r}, "
            "height, width)`"
        )


def classes_of(kind: str, target: Any, scores: torch.Tensor, predicted: list[int]) -> tuple[list[int], list[int]]:
    """For each row, the class that the model should predict, and the class whose map is drawn."""
    explained = row_targets(target, to_host(scores), len(scores))
    if not all(isinstance(entry, int) for entry in explained):
        raise TypeError("`target` must be a class index, or one for each input")
    if kind == "manipulation":
        return predicted, explained
    for row, (now, wanted) in enumerate(zip(predicted, explained, strict=True)):
        if now == wanted:
            raise ValueError(f"`target` must be another class than the one predicted, got {wanted} for input {row}")
    return explained, explained


def maps_to_draw(
    target_map: Any,
    victim: Victim,
    images: torch.Tensor,
    predicted: list[int],
    streams: Streams,
    batch_size: int,
) -> torch.Tensor:
    """Maps to draw, one for each image, checked against the shape of the explainer's own maps."""
    classes = torch.tensor(predicted, device=images.device)
    shown = len(images) if target_map is None else 1  # one is enough to see the shape
    parts = [slice(start, min(start + batch_size, shown)) for start in range(0, shown, batch_size)]
    benign = torch.cat([victim.maps(images[part], classes[part], streams[part]) for part in parts])
    if not benign.isfinite().all():
        raise ValueError("the explainer's map of a clean image is not finite")
    if target_map is None:
        return benign
    drawn = torch.as_tensor(as_array(target_map, "target_map"), dtype=benign.dtype, device=benign.device).detach()
    shape = tuple(benign.shape[1:])
    if tuple(drawn.shape) not in (shape, (len(images), *shape)):
        raise ValueError(
            f"`target_map` must be of the shape of the explainer's maps, {shape}, or one for each input, "
            f"{(len(images), *shape)}, got {tuple(drawn.shape)}"
        )
    if not drawn.isfinite().all():
        raise ValueError("`target_map` must be finite, but it holds NaN or infinity")
    low, high = float(drawn.min()) + 0.0, float(drawn.max()) + 0.0  # without a minus of 0
    if _are_scaled(benign) and (low < -ROUNDING or high > 1 + ROUNDING):
        instead = ": write `target_map / 255`" if low >= 0 and 1 < high <= 255 else ""
        raise ValueError(
            f"`target_map` must lie in [0, 1] as the explainer's maps do, got {low:.3g} to {high:.3g}{instead}"
        )
    return drawn.expand(len(images), *shape)


def _are_scaled(maps: torch.Tensor) -> bool:
    """Whether each of some maps goes from 0 at least to exactly 1."""
    return bool((maps.flatten(1).amax(1) - 1).abs().max() < ROUNDING and maps.min() >= 0)


def two_axes(scores: torch.Tensor) -> torch.Tensor:
    """Scores (batch, classes); raises for others."""
    if scores.ndim != 2:
        raise ValueError(f"`model` must return scores (batch, classes), got shape {tuple(scores.shape)}")
    return scores
