"""Work in batches that fit into memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from metfa.allocator import freed_memory_kept
from metfa.calls.behind import loaded_torch

__all__ = ["in_batches", "rows_that_fit"]

CPU_BATCH_SIZE = 16
# Pixels in a pass on a CPU. The activations of more, over 32 MiB each, are blocks that glibc returns to the system
# after each pass: a row of EfficientNet-Lite0's forward pass took 40, 44, 57, 60 and 65 ms among 4, 6, 8, 10 and 16;
# with freed memory kept (`metfa.allocator`) 37, 34, 36, 35 and 30 ms.
CPU_PIXELS = 6 * 224 * 224
GPU_BATCH_SIZE = 256
OF_A_PIXEL = 4096  # bytes that a pixel takes with its gradient: 2 to 4 kB in ResNet-50, EfficientNet-B0 and ViT-B/16
BUDGET = 4 * 2**30  # bytes for a pass on a CPU, the same on every machine, so that the same call has the same batches


def in_batches(n: int, batch_size: int | None, like: Any, work: Callable[[int, int], None]) -> None:
    """Call ``work(start, stop)`` over 0..n, `batch_size` at a time.

    With None, the size is chosen for images as large as `like`, and a batch that does not fit into memory is repeated
    in halves. So `work` must have no effect before it succeeds. A size that the caller gives is never changed.
    """
    size = batch_size or _rows_in_a_pass(like)
    start = 0
    with freed_memory_kept() if n > size and _on_cpu(like) else nullcontext():
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


def rows_that_fit(like: Any, *, on_cpu: int, on_gpu: int) -> int:
    """As many rows as this, or fewer, down to one, if images as large as those of `like` would not fit into memory.

    The memory is 4 GiB on a CPU and a quarter of a GPU's, and a pixel takes 4 kB. So the number depends on the images
    and on the kind of the device, and not on what else is in memory.
    """
    pixels = _pixels(like)
    most, memory = (on_cpu, BUDGET) if _on_cpu(like) else (on_gpu, _share_of(like.device))
    return most if pixels == 0 else max(1, min(most, memory // (OF_A_PIXEL * pixels)))


def _rows_in_a_pass(like: Any) -> int:
    pixels = _pixels(like)
    if pixels == 0 or not _on_cpu(like):
        return rows_that_fit(like, on_cpu=CPU_BATCH_SIZE, on_gpu=GPU_BATCH_SIZE)
    return max(1, min(CPU_BATCH_SIZE, CPU_PIXELS // pixels))


def _pixels(like: Any) -> int:
    """Pixels or voxels of a row; 0 for a table."""
    axes = getattr(like, "ndim", 0)
    return math.prod(like.shape[min(2, axes - 2) :]) if axes > 2 else 0


def _on_cpu(like: Any) -> bool:
    return isinstance(like, np.ndarray) or getattr(getattr(like, "device", None), "type", "cpu") == "cpu"


def _share_of(device: Any) -> int:
    """A quarter of a GPU's memory; where it cannot be known, what a CPU gets."""
    torch = loaded_torch()
    if torch is None or device.type != "cuda":
        return BUDGET
    return torch.cuda.get_device_properties(device).total_memory // 4
