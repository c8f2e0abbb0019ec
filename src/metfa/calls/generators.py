"""Leave the process's global random generators as found."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from metfa.calls.behind import loaded_torch
from metfa.calls.ownership import owned

__all__ = ["DRAWS", "random_state_as_found", "seeded_generators", "seeds_from"]


def _same(a: Any, b: Any) -> bool:
    return all(_same(a[key], b[key]) for key in a) if isinstance(a, dict) else bool(np.array_equal(a, b))


def _torch_generators() -> list[Any]:
    """Global generators of torch's devices in use; `torch.manual_seed` would also reach those started later."""
    torch = loaded_torch()
    return [] if torch is None else [torch.default_generator, *torch.cuda.default_generators]


def _random_state() -> tuple[Any, Any, list[tuple[Any, Any]]]:
    """State of the global generators of Python, NumPy and torch."""
    of_torch = [(generator, generator.get_state()) for generator in _torch_generators()]
    return random.getstate(), np.random.get_state(legacy=False), of_torch  # noqa: NPY002


def _is_random_state(state: tuple[Any, Any, list[tuple[Any, Any]]]) -> bool:
    python, numpy, of_torch = state
    return (
        random.getstate() == python
        and _same(np.random.get_state(legacy=False), numpy)  # noqa: NPY002
        and all(generator.get_state().equal(found) for generator, found in of_torch)
    )


def _restore_random_state(state: tuple[Any, Any, list[tuple[Any, Any]]]) -> None:
    python, numpy, of_torch = state
    random.setstate(python)
    np.random.set_state(numpy)  # noqa: NPY002
    for generator, found in of_torch:
        generator.set_state(found)


GENERATORS = "the global random generators"  # as a thing that one thread may own
DRAWS = (
    "`explainer` (or `predict`, or `noise`) draws from global random generators, so `rng` does not govern it: wrap the "
    "explainer as `metfa.seeded(explainer)` to get the same samples every time (where a function of the model is "
    "expected, write `lambda model: metfa.seeded(function(model))`)"
)
_found: list[Any] = []  # the state that the first of the contexts below has found, once for each context that is open


@contextmanager
def random_state_as_found() -> Iterator[Callable[[], bool]]:
    """Restore the global generators of Python, NumPy and torch on leaving.

    Yields a function. It returns whether somebody has drawn from them, or seeded them, since. Where several such
    contexts are open, in one thread or in many, the last to close restores what the first has found: otherwise somebody
    who goes on drawing would draw the same numbers again.
    """
    with owned([GENERATORS]):
        before = _random_state()
        _found.append(_found[0] if _found else before)

    def drawn() -> bool:
        with owned([GENERATORS]):
            return not _is_random_state(before)

    try:
        yield drawn
    finally:
        with owned([GENERATORS]):
            first = _found.pop()
            if not _found:
                _restore_random_state(first)


def seeds_from(rng: np.random.Generator) -> list[int]:
    """Seeds for the global generators of Python, NumPy and torch."""
    return [int(seed) for seed in rng.integers(0, 2**32, size=3, dtype=np.uint32)]


@contextmanager
def seeded_generators(rng: np.random.Generator) -> Iterator[None]:
    """The global generators of Python, NumPy and, where loaded, torch seeded from one stream, and put back on leaving.

    One thread has them meanwhile.
    """
    seeds = seeds_from(rng)
    with owned([GENERATORS]):
        before = _random_state()
        try:
            random.seed(seeds[0])
            np.random.seed(seeds[1])  # noqa: NPY002
            for generator in _torch_generators():
                generator.manual_seed(seeds[2])
            yield
        finally:
            _restore_random_state(before)
