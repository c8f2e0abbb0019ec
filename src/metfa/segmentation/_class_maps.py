"""What a segmentation network returns, in whatever wrapping, as one map of scores for each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metfa._arrays import is_array, namespace
from metfa.explainers._called_model import checked_scores
from metfa.explainers._enlargement import enlargement, resized
from metfa.explainers._probability_model import ProbabilityModel

__all__ = ["Segmenter", "class_maps"]


def class_maps(output: Any, images: Any, *, softmax: bool = True) -> Any:
    """Scores of every class in every pixel, (batch, classes, height, width), of what a network made of `images`.

    Parameters
    ----------
    output : array, mapping with "out" or "logits", or object with `.logits`
        (batch, classes, rows, columns), as torchvision's, transformers' and segmentation_models_pytorch's networks
        return them. Coarser maps are enlarged bilinearly. A single class, the foreground, becomes two.
    images : array, (batch, channels, height, width)
        What the network was asked about.
    softmax : bool
        Whether the scores are logits, of which a softmax makes probabilities. A single one is the logit of a sigmoid,
        which is the softmax of itself and 0.
    """
    maps = checked_scores(_unwrapped(output), len(images))
    if maps.ndim != 4 or 0 in maps.shape:
        raise ValueError(
            f"`model` must return maps of class scores (batch, classes, height, width), got shape {tuple(maps.shape)}"
        )
    if maps.shape[1] == 1:
        xp = namespace(maps)
        maps = xp.concat([xp.zeros_like(maps) if softmax else 1 - maps, maps], axis=1)
    size = tuple(images.shape[2:])
    if tuple(maps.shape[2:]) == size:
        return maps
    return resized(
        maps, [enlargement(cells, pixels, "centres") for cells, pixels in zip(maps.shape[2:], size, strict=True)]
    )


def _unwrapped(output: Any) -> Any:
    """The array within `output`, or `output` itself, which the check that follows will refuse."""
    if is_array(output):
        return output
    if isinstance(output, Mapping):
        found = [output[name] for name in ("out", "logits") if name in output]
        return found[0] if found else output
    return getattr(output, "logits", output)


@dataclass(frozen=True)
class Segmenter(ProbabilityModel):
    """A segmentation network, asked for its maps of class scores."""

    def _called(self, batch: Any) -> Any:
        with self._precision(batch):
            return class_maps(self.model(self._laid_out(batch)), batch, softmax=self.softmax)
