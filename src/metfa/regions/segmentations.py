"""Objects of a segmentation: labels or masks of an array or a file, as the features of a map."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from metfa._arrays import as_array, is_array, to_host
from metfa._base.lazy import needs_extra
from metfa._base.pictures import of_exact_levels, open_image
from metfa._base.validation import as_names, as_path, is_whole, positive_int, shown
from metfa.regions._planes import feature_shape, plane_of, spread
from metfa.results.regions import Regions

__all__ = ["objects"]

LEVELS = ("P", "L", "1", "I", "I;16")  # of Pillow: pictures of one number a pixel


def objects(
    segmentation: Any,
    names: Any = None,
    *,
    of: Any = None,
    ignore: Any = (),
    how: str = "mean",
    against: Any = None,
) -> Regions:
    r"""Objects of a segmentation, drawn by a person or found by a network in the clean picture.

    Parameters
    ----------
    segmentation : array, dict, path or PIL.Image.Image
        Labels, integers (height, width), of which each value from 0 on is a region, and negative ones are in none. Or
        a mask, bool (height, width), or masks, bool (regions, height, width), which may overlap, also in a list. Or a
        dict of masks by name. Or a picture with a palette, grey levels or black and white, or the path of one, such as
        "mask.png", whose levels are the labels. In a picture with a palette the index counts, not the colour.
    names : sequence of str or dict, optional
        Names by label, such as the class names of a network or ``{1: "cup", 2: "spoon"}``; for masks a name for each.
        By default "label 1", ... or "mask 0", ....
    of : AttributionSample or tuple of int, optional
        A result, or the shape of its maps, which the segmentation covers; by default its own height and width. It is
        enlarged to a map of twice, three times, ... its size. It is shrunk to a smaller one only if no cell belongs to
        several objects.
    ignore : int or sequence of int
        Labels that are in no region, such as ``ignore=(0, 255)`` for background and borders.
    how, against
        As for `metfa.Regions`.

    Returns
    -------
    Regions
        In the order of the labels or masks.

    Raises
    ------
    TypeError, ValueError
        For masks that are empty, colours instead of labels, sizes that do not fit, or files that are damaged or larger
        than Pillow's limit of 89 million pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import regions
    >>> labels = np.array([[0, 0, 7], [0, 0, 7]])
    >>> regions.objects(labels, {0: "road", 7: "bicycle"}).names
    ('road', 'bicycle')
    >>> len(regions.objects(labels, ignore=0, of=(4, 6)))
    1

    The surroundings of an explained object: ``labels[explanation.region] = -1`` takes its own pixels out, and
    ``explanation.sample.over(regions.objects(labels, class_names))`` asks about all others.
    """
    if isinstance(segmentation, Mapping):
        if names is not None:
            raise ValueError("`names` must be left out where `segmentation` is a dict, which names its masks")
        names, segmentation = as_names(list(segmentation), "segmentation"), _stack(list(segmentation.values()))
    elif isinstance(segmentation, list | tuple) and any(map(is_array, segmentation)):
        segmentation = _stack(list(segmentation))
    found = _labels_or_masks(segmentation)
    if found.dtype == bool:
        if _ignored(ignore):
            raise ValueError("`ignore` names labels, but `segmentation` holds masks: leave those masks out")
        masks = found if found.ndim == 3 else found[None]
        named = [f"mask {number}" for number in range(len(masks))] if names is None else names
    else:
        masks, named = _compact(found, names, _ignored(ignore))
    shape = masks.shape[-2:] if of is None else feature_shape(of, "(224, 224)")
    return Regions(spread(_on_map(masks, plane_of(shape, "of")), shape), named, how=how, against=against)


def _stack(masks: list[Any]) -> np.ndarray:
    if not masks:
        raise ValueError("`segmentation` must hold at least one mask, got none")
    arrays = [to_host(as_array(mask, "segmentation")) for mask in masks]
    for mask in arrays:
        if mask.dtype != bool or mask.ndim != 2:
            raise TypeError(
                f"`segmentation` must hold masks of bool (height, width), got {mask.dtype} of shape {mask.shape}: "
                "write `mask > 0`, or give one array of labels"
            )
    if len({mask.shape for mask in arrays}) != 1:
        raise ValueError(f"`segmentation` must hold masks of one size, got {[mask.shape for mask in arrays]!r:.80}")
    return np.stack(arrays)


def _labels_or_masks(segmentation: Any) -> np.ndarray:
    """Integers (height, width), or bool with or without an axis of regions."""
    if isinstance(segmentation, str | os.PathLike):
        path = as_path(segmentation, "segmentation")
        with needs_extra("a segmentation from a file"):
            picture = open_image(path)
        return _levels(picture, f"{path}")
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(segmentation, pillow.Image):
        return _levels(segmentation, "the picture")
    found = to_host(as_array(segmentation, "segmentation"))
    if found.dtype.kind not in "iub":
        raise TypeError(
            f"`segmentation` must hold labels (integers) or masks (bool), got {found.dtype}: of class scores (classes, "
            "height, width) take `scores.argmax(0)`, of probabilities of an object `probabilities > 0.5`"
        )
    if found.ndim != 2 and not (found.ndim == 3 and found.dtype == bool):
        raise ValueError(
            "`segmentation` must be labels (height, width), or masks of bool (height, width) or (regions, height, "
            f"width), got {found.dtype} of shape {found.shape}"
        )
    if not found.size:
        raise ValueError(f"`segmentation` has no pixels: shape {found.shape}")
    return found


def _levels(picture: Any, what: str) -> np.ndarray:
    """Labels of a picture, whose black and white are 0 and 1."""
    picture = of_exact_levels(picture, f"`segmentation`: {what}")
    if picture.mode not in LEVELS:
        raise ValueError(
            f"`segmentation`: {what} holds colours (mode {picture.mode}), not labels: save it with a palette or grey "
            "levels, of which each is an object"
        )
    return np.asarray(picture).astype(np.int64)


def _ignored(ignore: Any) -> list[int]:
    if is_whole(ignore):
        return [int(ignore)]
    if not isinstance(ignore, list | tuple | set | frozenset) or not all(map(is_whole, ignore)):
        raise TypeError(f"`ignore` must be a label or a sequence of labels, got {shown(ignore)}")
    return [int(label) for label in ignore]


def _compact(labels: np.ndarray, names: Any, ignored: list[int]) -> tuple[np.ndarray, list[str]]:
    """Labels 0.. of the objects that are there, -1 elsewhere, and their names."""
    there = np.unique(labels)
    kept = there[(there >= 0) & ~np.isin(there, ignored)]
    if not len(kept):
        raise ValueError(f"`segmentation` holds no object: its labels are {there.tolist()!r:.80}, `ignore`={ignored}")
    number = np.searchsorted(kept, labels)
    inside = np.isin(labels, kept)
    return np.where(inside, number, -1), _names_of(kept.tolist(), names)


def _names_of(labels: list[int], names: Any) -> list[str]:
    if names is None:
        return [f"label {label}" for label in labels]
    if isinstance(names, Mapping):
        given = {positive_int(label, "names", minimum=0): name for label, name in names.items()}
        return list(as_names([given.get(label, f"label {label}") for label in labels], "names"))
    given = as_names(names, "names")
    if labels[-1] >= len(given):
        raise ValueError(
            f"`names` must name each label up to {labels[-1]}, got {len(given)} names: give a dict of labels and "
            "names, or `ignore` labels that are no objects"
        )
    return [given[label] for label in labels]


def _on_map(masks: np.ndarray, plane: tuple[int, int]) -> np.ndarray:
    """Labels or masks (..., height, width) on a map of another size; raises where that is not exact."""
    size = masks.shape[-2:]
    for axis, (pixels, cells) in zip((-2, -1), zip(size, plane, strict=True), strict=True):
        if cells % pixels == 0:
            masks = np.repeat(masks, cells // pixels, axis=axis)
        elif pixels % cells == 0:
            blocks = np.moveaxis(masks, axis, -1)
            blocks = blocks.reshape(*blocks.shape[:-1], cells, pixels // cells)
            several = int((blocks != blocks[..., :1]).any(axis=-1).sum())
            if several:
                raise ValueError(
                    f"`segmentation` of {size[0]} x {size[1]} pixels does not fit maps of {plane[0]} x {plane[1]}, "
                    "where cells belong to several objects: shrink it by a rule of your own, such as "
                    f"`labels[{size[0] // plane[0] // 2}::{size[0] // plane[0]}, "
                    f"{size[1] // plane[1] // 2}::{size[1] // plane[1]}]`, or enlarge the maps to the picture's size"
                )
            masks = np.moveaxis(blocks[..., 0], -1, axis)
        else:
            raise ValueError(
                f"`segmentation` of {size[0]} x {size[1]} pixels does not fit maps of {plane[0]} x {plane[1]}: resize "
                f"it first, to the pixels that the model sees; Pillow's `resize(({plane[1]}, {plane[0]}), 0)` takes "
                "the nearest label"
            )
    return masks
