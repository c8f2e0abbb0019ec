"""Work done for one item after the other, or by threads ahead of the one who asks for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from itertools import islice
from typing import Any

from metfa._base.threaded import waited_for

__all__ = ["ahead", "in_turn"]

AHEAD = 2  # chunks whose noise is drawn while the explainer works on an earlier one


@contextmanager
def in_turn(work: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Iterator[tuple[Any, Any]]]:
    """Each item with the result of `work` for it."""
    yield ((item, work(item)) for item in items)


@contextmanager
def ahead(work: Callable[..., Any], items: Iterator[Any]) -> Iterator[Iterator[tuple[Any, Any]]]:
    """The same, with threads that work ahead. All of them end with the context, each after the noise that it draws."""
    stopping = threading.Event()
    pool = ThreadPoolExecutor(AHEAD, thread_name_prefix="metfa-noise")

    def begun(item: Any) -> Any:  # in this thread's context: a noise may ask the model that is explained
        return item, pool.submit(copy_context().run, work, item, stopping.is_set)

    def results() -> Iterator[tuple[Any, Any]]:
        drawing = deque(map(begun, islice(items, AHEAD)))
        while drawing:
            item, future = drawing.popleft()
            result = waited_for(future)
            drawing.extend(map(begun, islice(items, 1)))
            yield item, result

    try:
        yield results()
    finally:
        stopping.set()
        pool.shutdown(wait=True, cancel_futures=True)
