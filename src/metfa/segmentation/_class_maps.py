"""The result of a segmentation network, in any wrapping, as one map of scores for each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metfa._arrays import first_not_finite, is_array, is_floating, namespace, widen
from metfa.calls.answers import answered, check_logits, checked_scores, warn_of_probabilities
from metfa.calls.called import Called
from metfa.calls.enlargement import enlargements, resized

__all__ = ["asked_maps", "check_kind", "class_maps"]

ROUNDING = 1e-3  # probabilities in half precision may leave [0, 1] by this much


def class_maps(output: Any, images: Any, *, softmax: bool = True) -> Any:
    """Scores of every class in every pixel, (batch, classes, height, width), from a network's `output` for `images`.

    Parameters
    ----------
    output : array, mapping with "out" or "logits", or object with `.logits`
        (batch, classes, rows, columns), as torchvision's, transformers' and segmentation_models_pytorch's networks
        return them. Coarser maps are enlarged bilinearly. A single class, the foreground, becomes two.
    images : array, (batch, channels, height, width)
        The network's input.
    softmax : bool
        Whether the scores are logits, which a softmax turns into probabilities. A single one is the logit of a sigmoid,
        which equals the softmax of it and 0.
    """
    maps = checked_scores(_unwrapped(output), len(images))
    if maps.ndim != 4 or 0 in maps.shape:
        hint = ": for a RegionModel give its `.network`" if maps.ndim == 2 else ""
        raise ValueError(
            "`model` must return maps of class scores (batch, classes, height, width), got shape "
            f"{tuple(maps.shape)}{hint}"
        )
    if not is_floating(maps):
        raise TypeError(f"`model` must return scores, floating point, got {maps.dtype}: labels have none, see `argmax`")
    if maps.shape[1] == 1:
        xp = namespace(maps)
        maps = xp.concat([xp.zeros_like(maps) if softmax else 1 - maps, maps], axis=1)
    size = tuple(images.shape[2:])
    if tuple(maps.shape[2:]) == size:
        return maps
    return resized(maps, enlargements(tuple(maps.shape[2:]), size, "centres"))


def _unwrapped(output: Any) -> Any:
    """The array within `output`, or `output` itself, which the next check will refuse."""
    if is_array(output):
        return output
    if isinstance(output, Mapping):
        found = [output[name] for name in ("out", "logits") if name in output]
        if not found:
            raise TypeError(
                "`model` must return maps of class scores: a tensor, an object with `.logits`, or a mapping with 'out' "
                f"or 'logits', got one with {', '.join(map(repr, output)) or 'nothing'}: wrap it so that it returns "
                "the maps alone"
            )
        return found[0]
    return getattr(output, "logits", output)


def asked_maps(called: Called, images: Any, targets: Sequence[Any], first: int = 0) -> Any:
    """Maps of class scores of a batch; raises unless they are finite and have the targets of the rows from `first` on.

    The network may overwrite `images`.
    """
    with called.precision(images):
        output = answered(called.model, called.laid_out(images))
        maps = widen(class_maps(output, images, softmax=called.softmax))
    bad = first_not_finite(maps)
    if bad is not None:
        raise ValueError(f"the model's scores of input {first + bad} are not finite")
    for row, target in enumerate(targets):
        if not isinstance(target, int) or target >= maps.shape[1]:
            raise ValueError(
                f"`target` must lie in 0..{maps.shape[1] - 1}, the classes of the model, got {target} for input "
                f"{first + row}"
            )
    return maps


def check_kind(scores: Any, *, softmax: bool) -> None:
    """Check that maps of scores (batch, classes, height, width) of clean images agree with `softmax`.

    Raises
    ------
    ValueError
        If they should be probabilities, and some lie outside [0, 1].

    Warns
    -----
    ModelOutputWarning
        If they should be logits, but look like probabilities.
    """
    xp = namespace(scores)
    lowest, highest = float(xp.min(scores)), float(xp.max(scores))
    within = lowest >= -ROUNDING and highest <= 1 + ROUNDING
    if not softmax and not within:
        raise ValueError(
            "`softmax=False` is for networks that give probabilities, but this one's scores reach from "
            f"{lowest:.3g} to {highest:.3g}: leave it out"
        )
    if softmax and within and highest > lowest:
        if scores.shape[1] == 2 and not bool(xp.any(scores[:, 0] != 0)):  # one class, whose sigmoid stands beside a 0
            warn_of_probabilities()
        else:
            check_logits(scores)
