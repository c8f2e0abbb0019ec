"""Noise of many rows at once: what is the same for all of them is done once, and only the numbers are drawn one by one.

A noise may have a method ``many(rows, rngs)`` beside its call: noisy copies of `rows` (n, ...), each with the numbers
of its own generator, equal to those of n calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from metfa._arrays import is_array
from metfa.noise.draws import check_generator

__all__ = ["OfMany", "many_of"]


class OfMany:
    """A noise that is written for many rows; one row is a batch of one."""

    def many(self, rows: Any, rngs: Iterable[np.random.Generator]) -> Any:
        """Noisy copies of `rows` (n, ...), with the numbers of one generator each."""
        raise NotImplementedError

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""
        check_generator(rng)
        return self.many(x[None, ...] if is_array(x) else x, (rng,))[0, ...]  # it says what is wrong with others


def many_of(noise: Any) -> Callable[[Any, Iterable[np.random.Generator]], Any] | None:
    """The noise's `many`; None if it has none, or a call of its own in a class that inherits it."""
    first = next((vars(kind) for kind in type(noise).__mro__ if vars(kind).keys() & {"many", "__call__"}), {})
    return noise.many if "many" in first else None
