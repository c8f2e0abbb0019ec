"""Work on the parts of large arrays by several threads: NumPy lets others run while it works on numbers."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

import numpy as np

__all__ = ["n_threads", "threaded", "waited_for"]

MOST = 4  # threads: each holds the part that it works on, and more wait for the memory
LOOKS = 0.1  # seconds between looks for Ctrl-C: libraries such as polars let it wake nobody who waits

Part = TypeVar("Part")
Found = TypeVar("Found")


def n_threads() -> int:
    """How many threads work on a large array: one for each processor core that this process may use, at most 4."""
    return min(MOST, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def threaded(work: Callable[[Part], Found], parts: Iterable[Part]) -> Iterator[Found]:
    """`work` of each part, in the order of the parts, which no number of threads changes.

    No more parts are begun than there are threads, and one. Where somebody interrupts, those that were begun are
    waited for, and no others begin: keep the parts small.
    """
    threads, rest = n_threads(), iter(parts)
    first = list(islice(rest, 2))
    if threads == 1 or len(first) < 2:
        yield from map(work, first)
        yield from map(work, rest)
        return
    errors = np.geterr()  # which errors of numbers are ignored: a new thread does not know it

    def worked(part: Part) -> Found:
        with np.errstate(**errors):
            return work(part)

    pool = ThreadPoolExecutor(threads, thread_name_prefix="metfa-numbers")
    try:
        begun: deque[Future[Found]] = deque(pool.submit(worked, part) for part in first)
        while begun:
            begun.extend(pool.submit(worked, part) for part in islice(rest, max(0, threads + 1 - len(begun))))
            yield waited_for(begun.popleft())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def waited_for(future: Future[Found]) -> Found:
    """The result of a future, for which Ctrl-C does not wait."""
    while not future.done():
        wait([future], timeout=LOOKS)
    return future.result()
