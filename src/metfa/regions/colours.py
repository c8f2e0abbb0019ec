"""Superpixels: parts of a picture that are alike in colour and lie together."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.validation import one_of, positive_int
from metfa.regions._merging import in_order, merged
from metfa.regions._pictures import pictures_of, shape_of_maps
from metfa.regions._planes import plane_of, spread
from metfa.results.regions import Regions

__all__ = ["METHODS", "hierarchy", "place_names", "superpixels"]

METHODS = ("slic", "quickshift")
COMPACTNESS = 10.0  # scikit-image's of slic: how far apart in Lab colours one side of a segment counts
REACH = 10.0  # scikit-image's of quickshift: distance over which segments are joined, in Lab colours and pixels
FINER, FINE = 2, 100  # slic is asked for twice as many, and at least 100: few large ones cross the edges of colours


def superpixels(
    image: Any,
    n_segments: int = 50,
    *,
    method: str = "slic",
    shape: Any = None,
    how: str = "mean",
    against: Any = None,
) -> Regions:
    r"""Parts of a picture that are alike in colour and lie together, found in the clean picture.

    scikit-image's segments are made finer than asked for (twice as many of SLIC, and at least 100). Then the most
    similar neighbours are made one until `n_segments` are left. So their number is exact, and equal for each picture of
    a batch. Where a map has too few pixels for that, the pixels themselves are made one in this way.

    Parameters
    ----------
    image : AttributionSample, PIL.Image.Image, array, or list of them
        A result, whose clean inputs are taken; or the picture as the model sees it, cropped as it is for the model:
        (channels, height, width), (height, width, channels) or (height, width), with 1 or 3 channels; or a batch of
        pictures. Of three axes the first is the channels, unless the last alone has the length 1 or 3. Values may have
        any scale, normalised ones too: each picture is scaled so that its least value is 0 and its largest 1.
    n_segments : int
        Number of superpixels, at least 2 and at most the number of pixels of a map.
    method : {"slic", "quickshift"}
        SLIC [1]_ with scikit-image's compactness of 10 and a blur of one pixel; or quickshift [2]_ with ratio 0.2 and
        kernel size 4, as for LIME, and scikit-image's distance of 10, or less where that gives too few: several times
        slower, with segments of more different sizes. Both in Lab colours.
    shape : tuple of int, optional
        Shape of the maps; by default the result's, or the height and width of the picture. The map must cover the whole
        picture. Where it has another size, such as 7 x 7 of a CAM, superpixels are made of the picture's mean colours
        in the map's own cells. So no cell belongs to two.
    how, against
        As for `metfa.Regions`.

    Returns
    -------
    Regions
        In the order of their first pixels, each named by its number and its place, such as "region 12 (top left)". For
        a batch, "region 12", as the places differ.

    Raises
    ------
    ValueError
        For values that are not finite, other numbers of channels, or more superpixels than pixels.
    ModuleNotFoundError
        Without scikit-image; `metfa.regions.grid` needs none.

    Notes
    -----
    The same picture gives the same regions; no global seed is used or changed. Two neighbours are made one where the
    variance of colours and places within segments grows least [3]_.

    Make regions of the clean picture, never of the maps that are tested.

    References
    ----------
    .. [1] R. Achanta et al., SLIC Superpixels Compared to State-of-the-Art Superpixel Methods, TPAMI 2012,
       https://doi.org/10.1109/TPAMI.2012.120
    .. [2] A. Vedaldi, S. Soatto, Quick Shift and Kernel Methods for Mode Seeking, ECCV 2008,
       https://doi.org/10.1007/978-3-540-88693-8_52
    .. [3] J. H. Ward, Hierarchical Grouping to Optimize an Objective Function, JASA 1963,
       https://doi.org/10.1080/01621459.1963.10500845

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import regions
    >>> picture = np.zeros((3, 40, 60))
    >>> picture[0, :20, :30] = 1  # a red corner on black
    >>> found = regions.superpixels(picture, 4, against="rest")
    >>> found
    Regions(4 regions, mean, against the rest)
    >>> found.names[0]
    'region 0 (top left)'
    """
    n_segments = positive_int(n_segments, "n_segments", minimum=2)
    rows, shape = hierarchy(image, (n_segments,), method, shape, "superpixels")
    labels = tuple(spread(levels[0], shape) for levels in rows)
    names = place_names(rows[0][0]) if len(rows) == 1 else None
    return Regions(labels, names, how=how, against=against)


def hierarchy(
    image: Any, numbers: tuple[int, ...], method: Any, shape: Any, made: str
) -> tuple[list[list[np.ndarray]], tuple[int, ...]]:
    """For each picture labels (height, width) of each number of superpixels, nested; and the shape of the maps.

    Numbers ascend.
    """
    method = one_of(method, "method", METHODS)
    shape = shape_of_maps(image, shape)
    pictures = pictures_of(image, None if shape is None else plane_of(shape, "shape"))
    height, width = pictures[0].shape[:2]
    if numbers[-1] > height * width:
        raise ValueError(
            f"`n_segments` must be at most the number of pixels of a map, {height} x {width} = {height * width}, got "
            f"{numbers[-1]}"
        )
    with needs_extra(f"`metfa.regions.{made}`, unlike `metfa.regions.grid`,", "lime"):
        segmentation, color = import_module("skimage.segmentation"), import_module("skimage.color")
    rows = []
    for picture in pictures:
        labels = _fine(segmentation, picture, numbers[-1], method)
        colours, levels = color.rgb2lab(picture), []
        for number in reversed(numbers):
            labels = merged(labels, _with_places(colours, number), number)
            levels.insert(0, labels)
        rows.append(levels)
    return rows, shape or (height, width)


def _fine(segmentation: Any, picture: np.ndarray, n_segments: int, method: str) -> np.ndarray:
    """Labels of at least `n_segments` segments; each pixel is one where that many are too many for scikit-image."""
    asked, reach = max(FINER * n_segments, FINE), REACH
    while True:
        if asked >= picture.shape[0] * picture.shape[1]:
            return np.arange(picture.shape[0] * picture.shape[1]).reshape(picture.shape[:2])
        if method == "slic":
            labels = segmentation.slic(picture, n_segments=asked, compactness=COMPACTNESS, sigma=1, start_label=0)
        else:
            labels = segmentation.quickshift(picture, ratio=0.2, kernel_size=4, max_dist=reach, rng=0)
        labels = in_order(labels)
        if labels.max() + 1 >= n_segments:
            return labels
        asked, reach = 2 * asked, reach / 2


def _with_places(colours: np.ndarray, n_segments: int) -> np.ndarray:
    """Lab colours and places (height, width, 5), weighted against each other as SLIC does."""
    height, width = colours.shape[:2]
    side = np.sqrt(height * width / n_segments)
    places = np.moveaxis(np.mgrid[:height, :width], 0, -1) * (COMPACTNESS / side)
    return np.concatenate([colours, places], axis=-1)


def place_names(labels: np.ndarray) -> list[str]:
    """Names of the segments of one picture, labels (height, width) from 0: a number, and where in the picture it is."""
    height, width = labels.shape
    rows, columns = np.mgrid[:height, :width]
    sizes = np.bincount(labels.ravel())
    down, across = (
        np.bincount(labels.ravel(), weights=(place.ravel() + 0.5) / side) / sizes
        for place, side in ((rows, height), (columns, width))
    )
    return [f"region {number} ({_place(*at)})" for number, at in enumerate(zip(down, across, strict=True))]


def _place(down: float, across: float) -> str:
    """The third of the picture's height and of its width that a centre, in [0, 1], lies in."""
    words = ("top", "", "bottom")[int(3 * down)], ("left", "", "right")[int(3 * across)]
    return " ".join(filter(None, words)) or "centre"
