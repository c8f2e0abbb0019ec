"""The maps of the clean inputs."""

from __future__ import annotations

import numpy as np

from metfa.sampling.loop import Explained, Job, Loop

__all__ = ["clean_maps"]


def clean_maps(loop: Loop) -> Explained:
    """Maps of the clean inputs, and their scores (batch, classes) if the explainer returns scores."""
    clean = loop if loop.clean else loop.cleaned()
    jobs = [Job(row, 0) for row in range(len(loop.rows))]
    with clean.over(jobs) as chunks:
        explained = [(chunk.maps, chunk.class_scores, chunk.layout) for chunk in chunks]
    maps, scores, layouts = zip(*explained, strict=True)
    known = None if any(of is None for of in scores) else np.concatenate(scores)
    return Explained(jobs, np.concatenate(maps), known, layouts[0])
