"""Images of 8 × 8 pixels with two planted shapes: the four families of XAI-TRIS, on two backgrounds.

Clark, Wilming and Haufe, "XAI-TRIS: non-linear image benchmarks to quantify false positive post-hoc attribution of
feature importance", Machine Learning 113, 2024 (arXiv:2306.12816). Sizes, shapes and strengths are those of the
authors' settings for 8 × 8 images (braindatalab/xai-tris, ``data/data_config_8by8.json``); the code is ours.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from torch import nn

from benchmarks.truth.task import Data, Fitted, Part, Task
from benchmarks.truth.training import perceptron, trained

__all__ = [
    "CONVOLUTIONAL",
    "IMAGES",
    "LINEAR",
    "RIGID",
    "blind",
    "fitted",
    "multilayer",
    "nothing_learned",
    "redrawn",
    "right",
]

SIDE, INPUTS = 8, 10_000
SHAPES = np.array([[[1, 0], [1, 1], [1, 0]], [[1, 0], [1, 0], [1, 1]]], bool)  # a T that lies, and an L
CORNERS = (1, 1), (4, 5)
STRENGTHS = {  # of the shapes, on white and on correlated background
    "LIN": (0.18, 0.0125),
    "MULT": (0.7, 0.1),
    "RIGID": (0.65, 0.2),
    "XOR": (0.35, 0.15),
}
REDRAWS, LEAST_EFFECT = 200, 0.1


def planted(family: str, background: str, seed: int) -> Data:
    """10,000 images of both classes in equal numbers, 80, 10 and 10 % of them for training, validation and test."""
    rng = np.random.default_rng([seed, 7])
    labels = rng.permutation(np.arange(INPUTS) % 2)
    shapes = _shapes(family, labels, rng)
    noise = rng.normal(0, 0.5, (INPUTS, SIDE, SIDE))
    if background == "correlated":
        noise = gaussian_filter(noise, sigma=(0, 3, 3))
    strength = STRENGTHS[family][background == "correlated"]
    if family == "MULT":
        images = _normed(1 - strength * shapes) * _normed(noise)
    else:
        images = strength * _normed(shapes) + (1 - strength) * _normed(noise)
    images = (images / np.abs(images).max()).astype(np.float32)[:, None]
    used = shapes != 0
    if family in ("LIN", "MULT"):  # where a class has no shape, its absence decides
        used = np.broadcast_to(used.any(axis=0), used.shape)
    order = np.concatenate([np.flatnonzero(labels == label).reshape(-1, 10) for label in (0, 1)])
    parts = (order[:, :8], order[:, 8:9], order[:, 9:])
    return Data(*(Part(images[rows], labels[rows], used[rows]) for rows in (np.sort(part.ravel()) for part in parts)))


def _normed(images: np.ndarray) -> np.ndarray:
    """Divided by the norm of all images together."""
    return images / np.linalg.norm(images)


def _shapes(family: str, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Planted shapes (n, 8, 8) of these labels: 0 outside of them."""
    both = np.zeros((2, SIDE, SIDE))
    for one, shape, (row, column) in zip(both, SHAPES, CORNERS, strict=True):
        one[row : row + 3, column : column + 2] = shape
    if family == "XOR":
        first = rng.choice([-1, 1], len(labels))
        return first[:, None, None] * (both[0] + np.where(labels == 0, 1, -1)[:, None, None] * both[1])
    if family != "RIGID":
        return both[labels]
    images = np.zeros((len(labels), SIDE, SIDE))
    for image, label, turns in zip(images, labels, rng.integers(4, size=len(labels)), strict=True):
        shape = np.rot90(SHAPES[label], turns)
        row, column = (rng.integers(SIDE - side + 1) for side in shape.shape)
        image[row : row + shape.shape[0], column : column + shape.shape[1]] = shape
    return images


class Margin(nn.Module):
    """Half the margin of two classes and its opposite: its differences are those of the network's two logits."""

    def __init__(self, network: nn.Module, readable: np.ndarray | None = None) -> None:
        super().__init__()
        self.network = network
        self.readable = None if readable is None else torch.from_numpy(readable.astype(np.float32))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits = self.network(images if self.readable is None else images * self.readable)
        margin = (logits[:, 1:] - logits[:, :1]) / 2
        return torch.cat([-margin, margin], dim=1)


def multilayer() -> nn.Module:
    return perceptron(64, 32, 16, 8, 2)


def _linear() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 2, bias=False))


def _convolutional() -> nn.Module:
    layers: list[nn.Module] = []
    for channels in (1, 4, 4, 4):
        layers += [nn.Conv2d(channels, 4, 2, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4, 2))


def fitted(build, data: Data, seed: int, *, reads=None, shuffled: bool = False) -> Fitted:
    """A network of that build; it `reads` only some pixels, or learns from labels that mean nothing."""
    train, validation = data.train, data.validation
    if shuffled:
        rng = np.random.default_rng([seed, 8])
        train, validation = (part._replace(labels=rng.permutation(part.labels)) for part in (train, validation))
    readable = None if reads is None else reads(data)
    model = trained(
        lambda: Margin(build(), readable), train, validation, loss=nn.functional.cross_entropy, seed=seed, epochs=60,
        batch=512,
    )  # fmt: skip
    return Fitted(model, float((_predicted(model, data.test) == data.test.labels).mean()))


def _predicted(model: nn.Module, part: Part) -> np.ndarray:
    return model(torch.from_numpy(part.inputs)).argmax(dim=1).numpy()


def right(found: Fitted, data: Data) -> np.ndarray:
    return np.flatnonzero(_predicted(found.model, data.test) == data.test.labels)


def every(found: Fitted, data: Data) -> np.ndarray:  # noqa: ARG001
    return np.arange(len(data.test.labels))


def redrawn(found: Fitted, data: Data, images: np.ndarray) -> np.ndarray:
    """Pixels whose effect is at least a tenth of the image's largest, bool (n, 8, 8).

    The effect is the mean absolute change of the margin when the pixel alone is redrawn from 200 training images.
    """
    drawn = data.train.inputs[np.random.default_rng(9).choice(len(data.train.inputs), REDRAWS, replace=False), 0]
    effects = np.zeros((len(images), SIDE * SIDE))
    for image, effect in zip(torch.from_numpy(images), effects, strict=True):
        copies = image.repeat(SIDE * SIDE, REDRAWS, 1, 1).view(SIDE * SIDE, REDRAWS, SIDE * SIDE)
        pixels = torch.arange(SIDE * SIDE)
        copies[pixels, :, pixels] = torch.from_numpy(drawn.reshape(REDRAWS, -1).T.copy())
        changed = found.model(copies.view(-1, 1, SIDE, SIDE))[:, 1].view(SIDE * SIDE, REDRAWS)
        effect[:] = (changed - found.model(image[None])[0, 1]).abs().mean(dim=1).numpy()
    return (effects >= LEAST_EFFECT * effects.max(axis=1, keepdims=True)).reshape(-1, SIDE, SIDE)


def all_shapes(data: Data) -> np.ndarray:
    """The pixels of both shapes, bool (8, 8)."""
    return data.test.used.any(axis=0)


def readable(found: Fitted, data: Data, images: np.ndarray) -> np.ndarray:  # noqa: ARG001
    return np.broadcast_to(all_shapes(data), images[:, 0].shape)


def nothing_used(data: Data) -> Data:
    """The same, with labels that are to be shuffled: no pixel decides them."""
    return data._replace(test=data.test._replace(used=np.zeros_like(data.test.used)))


def _task(family: str, background: str, network: str, build, least: float, truth=redrawn, kind="estimated", **fit):
    return Task(
        f"{family} {background}", network, partial(planted, family, background), partial(fitted, build, **fit), least,
        right, truth, kind, "images",
    )  # fmt: skip


LEAST = {"LIN white": 0.85, "LIN correlated": 0.95, "MULT white": 0.9, "MULT correlated": 0.95, "XOR white": 0.95}
LEAST |= {"XOR correlated": 0.95, "RIGID white": 0.8, "RIGID correlated": 0.9}


def _of(families: tuple[str, ...], network: str, build) -> list[Task]:
    pairs = [(family, background) for family in families for background in ("white", "correlated")]
    return [_task(*pair, network, build, LEAST[" ".join(pair)]) for pair in pairs]


def blind(family: str) -> Task:
    """A network that reads the pixels of the shapes and no others."""
    least = LEAST[f"{family} white"]
    return _task(family, "white", "blind to the rest", multilayer, least, readable, "exact", reads=all_shapes)


def nothing_learned() -> Task:
    """A network that was trained on labels in a random order."""
    made = _task("LIN", "white", "labels shuffled", multilayer, 0.0, shuffled=True)
    return Task(**{**vars(made), "make": lambda seed: nothing_used(planted("LIN", "white", seed)), "chosen": every})


IMAGES = _of(("LIN", "MULT", "XOR"), "MLP", multilayer)
RIGID = _of(("RIGID",), "MLP", multilayer)
LINEAR = _of(("LIN",), "linear", _linear)
CONVOLUTIONAL = _of(("LIN", "MULT", "RIGID", "XOR"), "CNN", _convolutional)
