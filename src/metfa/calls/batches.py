"""Work in batches that fit into memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["in_batches"]

CPU_BATCH_SIZE = 16  # the fastest of 8, 16 and 32 for EfficientNet-Lite0; for ResNet-18 it hardly matters
LARGE = 256 * 256  # pixels or voxels; from here on, fewer inputs fill the processor and its memory
GPU_BATCH_SIZE = 256


def in_batches(n: int, batch_size: int | None, like: Any, work: Callable[[int, int], None]) -> None:
    """Call ``work(start, stop)`` over 0..n, `batch_size` at a time.

    With None, the size is chosen for images as large as `like`, and a batch that does not fit into memory is repeated
    in halves. So `work` must have no effect before it succeeds. A size that the caller gives is never changed.
    """
    size = batch_size or (_cpu_batch_size(like) if _on_cpu(like) else GPU_BATCH_SIZE)
    start = 0
    while start < n:
        stop = min(start + size, n)
        try:
            work(start, stop)
        except (MemoryError, RuntimeError) as error:
            full = isinstance(error, MemoryError) or "out of memory" in str(error)
            if not full or batch_size is not None or stop - start == 1:
                raise
            size = (stop - start) // 2
        else:
            start = stop


def _cpu_batch_size(like: Any) -> int:
    axes = getattr(like, "ndim", 0)
    pixels = math.prod(like.shape[min(2, axes - 2) :]) if axes > 2 else 0
    return CPU_BATCH_SIZE if pixels <= LARGE else max(1, CPU_BATCH_SIZE * LARGE // pixels)


def _on_cpu(x: Any) -> bool:
    return isinstance(x, np.ndarray) or getattr(getattr(x, "device", None), "type", "cpu") == "cpu"
