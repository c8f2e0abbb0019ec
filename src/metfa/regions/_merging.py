"""Neighbouring segments made one, the most similar ones first, until a number of them is left."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

__all__ = ["in_order", "merged"]


def merged(labels: np.ndarray, features: np.ndarray, n_segments: int) -> np.ndarray:
    """Labels 0.. of at most `n_segments` segments, each a union of the given ones, in the order of their first pixels.

    Two neighbours are made one where the sum of squared distances of all pixels from their segment's mean grows least
    (Ward 1963). Of equal pairs the one with the smaller labels comes first, so nothing is left to chance.

    Parameters
    ----------
    labels : ndarray of int, (height, width)
        Segments 0, 1, ...
    features : ndarray, (height, width, k)
        What is similar: colours and places.
    n_segments : int
        How many are left, if there are as many.
    """
    flat, values = labels.ravel(), features.reshape(-1, features.shape[-1])
    sizes = np.bincount(flat).astype(np.float64)
    sums = np.stack([np.bincount(flat, weights=column) for column in values.T], axis=1)
    size, mean = dict(enumerate(sizes.tolist())), dict(enumerate(sums / sizes[:, None]))
    neighbours: dict[int, set[int]] = {segment: set() for segment in size}
    for a, b in _touching(labels):
        neighbours[a].add(b)
        neighbours[b].add(a)

    def growth(a: int, b: int) -> float:
        return size[a] * size[b] / (size[a] + size[b]) * float(((mean[a] - mean[b]) ** 2).sum())

    heap = [(growth(a, b), a, b) for a in neighbours for b in neighbours[a] if a < b]
    heapify(heap)
    whole = np.arange(2 * len(sizes))  # which larger segment each one has become part of
    new = len(sizes)
    while len(neighbours) > n_segments and heap:
        _, a, b = heappop(heap)
        if a not in neighbours or b not in neighbours:
            continue
        whole[[a, b]] = new
        size[new] = size[a] + size[b]
        mean[new] = (size[a] * mean[a] + size[b] * mean[b]) / size[new]
        neighbours[new] = (neighbours.pop(a) | neighbours.pop(b)) - {a, b}
        for other in neighbours[new]:
            neighbours[other] = neighbours[other] - {a, b} | {new}
            heappush(heap, (growth(other, new), other, new))
        new += 1
    for segment in range(new - 1, -1, -1):  # a whole is newer than its parts
        whole[segment] = whole[whole[segment]]
    return in_order(whole[labels])


def in_order(labels: np.ndarray) -> np.ndarray:
    """The same segments with labels 0.. in the order of their first pixels."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse].reshape(labels.shape)


def _touching(labels: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of segments that share an edge of a pixel."""
    pairs = np.concatenate(
        [
            np.stack([labels[:-1].ravel(), labels[1:].ravel()], axis=1),
            np.stack([labels[:, :-1].ravel(), labels[:, 1:].ravel()], axis=1),
        ]
    )
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return [(a, b) for a, b in np.unique(pairs, axis=0).tolist()]
