"""The maps of the clean inputs."""

from __future__ import annotations

import numpy as np

from metfa.sampling.loop import Job, Loop

__all__ = ["clean_maps"]


def clean_maps(loop: Loop) -> tuple[np.ndarray, np.ndarray | None]:
    """Maps of the clean inputs, and their scores (batch, classes) if the explainer returns scores."""
    clean = loop if loop.clean else loop.cleaned()
    with clean.over([Job(row, 0) for row in range(len(loop.rows))]) as chunks:
        explained = [(chunk.maps, chunk.class_scores) for chunk in chunks]
    maps, scores = zip(*explained, strict=True)
    return np.concatenate(maps), None if any(of is None for of in scores) else np.concatenate(scores)
