"""Digits of 8 × 8 pixels on two textures: the digit decides, or the texture of one half of the image does.

As Hoyer, Munoz, Katiyar, Khoreva and Fischer do with MNIST, "Grid saliency for context explanations of semantic
segmentation", NeurIPS 2019. Here the digits are scikit-learn's zeros and ones, the textures stripes; the code is ours.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.truth.images import SIDE, fitted, multilayer, redrawn, right
from benchmarks.truth.task import Data, Part, Task

__all__ = ["DIGITS", "planted"]

SIZES = {"train": 8000, "validation": 1000, "test": 1000}
CLASSES = (0, 1)
INK = 0.5  # least ink of a pixel that belongs to the digit


def planted(decides: str, seed: int) -> Data:
    """Ten thousand images, in each part of other digits; `decides` is "digit" or "texture".

    Each half has stripes that lie or stand. Where the digit decides, its ink is used. Where the texture does, the left
    half is used as far as no ink covers it, and digits and the right half are drawn at random.
    """
    from sklearn.datasets import load_digits

    pictures, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng([seed, 17])
    glyphs = [rng.permutation(pictures[digits == digit]).reshape(-1, SIDE, SIDE) / 16 for digit in CLASSES]
    parts, begin = [], 0.0
    for n, share in zip(SIZES.values(), (0.7, 0.15, 0.15), strict=True):
        kinds, standing = rng.integers(2, size=n), rng.integers(2, size=(n, 2)).astype(bool)
        ink = np.empty((n, SIDE, SIDE))
        for kind, every in enumerate(glyphs):
            mine = every[int(begin * len(every)) : int((begin + share) * len(every))]
            ink[kinds == kind] = mine[rng.integers(len(mine), size=(kinds == kind).sum())]
        images = np.maximum(ink, 0.5 * stripes(standing, rng)) + rng.normal(0, 0.05, ink.shape)
        labels, used = (kinds, ink > INK) if decides == "digit" else (standing[:, 0].astype(int), ink <= INK)
        if decides == "texture":
            used[..., SIDE // 2 :] = False
        parts.append(Part((images / 1.2).astype(np.float32)[:, None], labels, used))
        begin += share
    return Data(*parts)


def stripes(standing: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Stripes of one pixel on both halves of images (n, 8, 8), at a random phase: 0 and 1."""
    lying = (np.arange(SIDE)[:, None] + np.zeros(SIDE, int)) % 2
    halves = np.where(np.arange(SIDE) < SIDE // 2, standing[:, :1], standing[:, 1:])  # (n, columns)
    return (np.where(halves[:, None], lying.T, lying) + rng.integers(2, size=(len(standing), 1, 1))) % 2


def _task(decides: str, least: float) -> Task:
    name = {"digit": "digit on texture", "texture": "texture under digit"}[decides]
    fit = partial(fitted, multilayer)
    return Task(name, "MLP", partial(planted, decides), fit, least, right, redrawn, "estimated", "images")


DIGITS = [_task("digit", 0.95), _task("texture", 0.95)]
