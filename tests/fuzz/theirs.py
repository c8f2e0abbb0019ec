"""Models, explainers and metrics as a user writes them; what they raise is their own."""

import numpy as np
import torch

WEIGHTS = np.array([[3.0, 0.0, -2.0], [0.0, 1.0, 1.0]]).T


def linear(inputs, target=None):
    return np.abs(inputs * WEIGHTS[:, 0])


def of_class(inputs, target):
    return inputs * WEIGHTS.T[np.asarray(target)]


def scores_of(inputs):
    return np.asarray(inputs) @ WEIGHTS


def text_scores(texts):
    texts = [row if isinstance(row, str) else " ".join(row) for row in texts]
    good = np.array([0.2 + 0.6 * ("good" in row) - 0.1 * ("dull" in row) for row in texts])
    return np.stack([good, 1 - good], axis=1)


def rows_scores(rows):
    return np.array([2.0 * ("a good film" in kept) for kept in rows])


def pixels_of(images):
    flat = images.reshape(len(images), -1)
    return np.stack([flat.mean(1), flat[:, ::2].mean(1)], axis=1)


def segments(image):
    return np.kron([[0, 1], [2, 3]], np.ones((4, 4), dtype=int))


def mean_of(model, inputs, attributions, target):
    return np.asarray(attributions).reshape(len(inputs), -1).mean(axis=1)


def of_class_maps(images):
    return 9 * torch.cat([images[:, :1] - 0.5, 0.5 - images[:, 1:2]], dim=1)


def explain_pixels(model):
    return lambda inputs, target=None: np.abs(inputs[:, 0] - 0.5)


def host_maps(images):
    return 9 * np.concatenate([images[:, :1] - 0.5, 0.5 - images[:, 1:2]], axis=1)


def probable(rows):
    first = 1 / (1 + np.exp(-rows @ WEIGHTS[:, 0]))
    return np.stack([first, 1 - first], axis=1)
