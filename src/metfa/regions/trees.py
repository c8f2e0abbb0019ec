"""Coarser and finer superpixels, each finer one within one coarser: where inside is it?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from metfa._base.validation import as_list, positive_int
from metfa.regions._planes import spread
from metfa.regions.colours import hierarchy, place_names
from metfa.results.corrections import check_alpha
from metfa.results.regions import Regions

__all__ = ["RegionTree", "tree"]


@dataclass(frozen=True, repr=False)
class RegionTree:
    """Regions of a picture at several levels, from coarse to fine, made by `metfa.regions.tree`.

    Attributes
    ----------
    levels : tuple of Regions
        The regions of each level; the first is the coarsest.
    parents : tuple of tuple of int
        For each level after the first, the region of the level before that each region lies in:
        ``parents[level - 1][region]``.
    """

    levels: tuple[Regions, ...]
    parents: tuple[tuple[int, ...], ...]

    def __repr__(self) -> str:
        return f"RegionTree({', '.join(str(len(level)) for level in self.levels)} regions)"

    def children(self, region: int, *, level: int = 0) -> tuple[int, ...]:
        """The regions of the next level that lie in a region of `level`."""
        level = positive_int(level, "level", minimum=0)
        if level >= len(self.parents):
            raise ValueError(f"`level` must be at most {len(self.parents) - 1}, as the finest has none, got {level}")
        region = positive_int(region, "region", minimum=0)
        if region >= len(self.levels[level]):
            raise ValueError(f"`region` must be one of 0..{len(self.levels[level]) - 1} of level {level}, got {region}")
        return tuple(child for child, parent in enumerate(self.parents[level]) if parent == region)

    def inside(self, region: int, *, level: int = 0, against: Any = None) -> Regions:
        """The finer regions within a region, to be asked about alone: ``sample.over(tree.inside(3))``.

        Parameters
        ----------
        region : int
            A region of `level`.
        level : int
            Level of the region, 0 for the coarsest.
        against : None, "rest", "region" or ndarray of bool
            None: as the tree has it. "region": the mean over the whole region, so "more than the region around it?"
            Others as for `metfa.Regions`.

        Returns
        -------
        Regions
            The children, with the names that they have in the next level.

        Notes
        -----
        See `alpha_inside` for the level at which to test them.
        """
        chosen, finer = self.children(region, level=level), self.levels[level + 1]
        masks = finer.as_masks()
        if isinstance(against, str) and against == "region":
            against = masks[list(chosen)].any(axis=0)
        return replace(
            finer,
            masks=masks[list(chosen)],
            names=[finer.names[child] for child in chosen],
            against=finer.against if against is None else against,
        )

    def alpha_inside(self, region: int, *, level: int = 0, alpha: float = 0.05) -> float:
        r"""The alpha for the regions within a region, so that `alpha` holds for all levels of the tree together.

        The coarsest regions are tested at `alpha` with ``correction="bonferroni"``. A region that is significant may
        be opened: the regions inside it are tested at this alpha, with ``correction="bonferroni"``, for the same
        statement (important, or more than the rest) and at a threshold that is fixed beforehand, as 0 with `against`.
        Then a statement that is false is made anywhere in the tree with probability at most `alpha`, however the
        samples depend on each other.

        This is :math:`\alpha / m` for m coarsest regions, and on the next level that of the region's own family,
        divided by its size: an equal share for each region, which it hands on when it is significant [1]_. Where
        regions are opened at the full alpha, it holds for each family by itself, not for all that are opened.

        Parameters
        ----------
        region, level
            The region that is opened, see `inside`.
        alpha : float
            For the whole tree.

        Returns
        -------
        float

        References
        ----------
        .. [1] F. Bretz, W. Maurer, W. Brannath, M. Posch, A graphical approach to sequentially rejective multiple test
           procedures, Statistics in Medicine 2009, https://doi.org/10.1002/sim.3495

        Examples
        --------
        >>> import numpy as np
        >>> from metfa import regions
        >>> picture = np.random.default_rng(0).random((32, 32))
        >>> tree = regions.tree(picture, (4, 16))
        >>> tree.alpha_inside(2, alpha=0.05)
        0.0125
        """
        check_alpha(alpha)
        share = float(alpha)
        self.children(region, level=level)
        while level > 0:
            region, level = self.parents[level - 1][region], level - 1
            share /= len(self.children(region, level=level))
        return share / len(self.levels[0])


def tree(
    image: Any,
    n_segments: Any = (8, 40, 200),
    *,
    method: str = "slic",
    shape: Any = None,
    how: str = "mean",
    against: Any = None,
) -> RegionTree:
    """Superpixels of one picture at several levels, each finer one within one coarser.

    Ask about the coarse ones first, then about those inside the significant ones. The finest are made as
    `metfa.regions.superpixels` makes them; the most similar neighbours are made one for each coarser level.

    Parameters
    ----------
    image
        As for `metfa.regions.superpixels`, but one picture.
    n_segments : sequence of int
        Numbers of superpixels of the levels, ascending.
    method, shape, how, against
        As for `metfa.regions.superpixels`.

    Returns
    -------
    RegionTree
        Its `levels`, the parents of each region, and `inside(region)`; `alpha_inside` says at which level to test.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> from metfa import regions
    >>> picture = np.zeros((1, 32, 32))
    >>> picture[0, :16, :16] = 1
    >>> tree = regions.tree(picture, (4, 16), against="rest")
    >>> tree
    RegionTree(4, 16 regions)
    >>> inside = tree.inside(0)
    >>> inside.names == tuple(tree.levels[1].names[child] for child in tree.children(0))
    True
    """
    numbers = tuple(
        positive_int(number, "n_segments", minimum=2)
        for number in as_list(n_segments, "n_segments", "numbers of superpixels such as (8, 40, 200)")
    )
    if not numbers or list(numbers) != sorted(set(numbers)):
        raise ValueError(f"`n_segments` must be ascending numbers such as (8, 40, 200), got {numbers!r:.80}")
    rows, shape = hierarchy(image, numbers, method, shape, "tree")
    if len(rows) != 1:
        raise ValueError(
            f"`image` must be one picture, got {len(rows)}: make a tree of each, such as of `sample.of_input(0)`"
        )
    levels = rows[0]
    parents = tuple(
        tuple(coarse.ravel()[np.unique(fine, return_index=True)[1]].tolist()) for coarse, fine in pairwise(levels)
    )
    return RegionTree(
        tuple(Regions(spread(labels, shape), place_names(labels), how=how, against=against) for labels in levels),
        parents,
    )
