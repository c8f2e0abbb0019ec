"""Explainers with randomness of their own, made reproducible row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metfa._arrays import as_array, namespace
from metfa._guard import random_state_as_found, seed_global_generators
from metfa._protocol import explained_model
from metfa._provenance import describe
from metfa._rows import Rows
from metfa._streams import Purpose, root_entropy, stream

__all__ = ["randomised", "row_generators", "seeded"]


def row_generators(inputs: Any, rngs: Sequence[np.random.Generator] | None, rng: Any) -> list[np.random.Generator]:
    """The generators given, or one for each row addressed by the row's content below the seed `rng`."""
    rows = Rows(inputs)
    if rngs is None:
        root = root_entropy(rng)
        return [stream(root, identity, 0, Purpose.EXPLAINER) for identity in rows.ids()]
    if len(rngs) != len(rows):
        raise ValueError(f"`rngs` must hold one generator for each of the {len(rows)} rows, got {len(rngs)}")
    return list(rngs)


class randomised:  # noqa: N801 - read as a function
    r"""Explainer from a function that takes one random generator for each row.

    Parameters
    ----------
    function : callable
        ``function(inputs, target, *, rngs)`` -> attributions (batch, \*features); row i must draw from ``rngs[i]``
        only.
    rng : int, numpy.random.Generator or None
        Seed for direct calls without `rngs`; `metfa.explain` passes its own generators.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> @metfa.randomised
    ... def explainer(inputs, target, *, rngs):
    ...     return np.stack([row * rng.random(row.shape) for row, rng in zip(inputs, rngs)])
    >>> explainer(np.ones((2, 3)), target=0).shape
    (2, 3)
    """

    def __init__(self, function: Callable[..., Any], *, rng: Any = None) -> None:
        if not callable(function):
            raise TypeError(f"`function` must be callable, got {type(function).__name__}")
        self._function = function
        self._rng = rng
        self.model = explained_model(function)
        self.rows_independent = bool(getattr(function, "rows_independent", False))

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Any = None, **row_args: Any) -> Any:
        """Attributions of a batch, row i with randomness from ``rngs[i]``."""
        return self._function(inputs, target, rngs=row_generators(inputs, rngs, self._rng), **row_args)

    def __repr__(self) -> str:
        return f"randomised({describe(self._function)})"


class seeded:  # noqa: N801 - read as a function
    r"""Third-party explainer that draws from the global generators, made reproducible row by row.

    Each row is explained by a call of its own, with the global generators of Python, NumPy and torch seeded from that
    row's stream and put back afterwards. So rows never share draws (Captum's ShapleyValueSampling shares its
    permutations over a batch, which would void the intervals), and the caller's generators are untouched.

    Parameters
    ----------
    explainer : callable
        ``explainer(inputs, target=...)`` -> attributions (batch, \*features).
    rng : int, numpy.random.Generator or None
        Seed for direct calls; `metfa.explain` passes its own generators.
    """

    rows_independent = True

    def __init__(self, explainer: Callable[..., Any], *, rng: Any = None) -> None:
        if not callable(explainer):
            raise TypeError(f"`explainer` must be callable, got {type(explainer).__name__}")
        self._explainer = explainer
        self._rng = rng
        self.model = explained_model(explainer)

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Any = None, **row_args: Any) -> Any:
        """Attributions of a batch, one row a call."""
        rows = Rows(inputs)
        maps = []
        for index, rng in enumerate(row_generators(inputs, rngs, self._rng)):
            one_target = target if target is None or not hasattr(target, "__len__") else target[index : index + 1]
            one_args = {name: values[index : index + 1] for name, values in row_args.items()}
            with random_state_as_found():
                seed_global_generators(rng)
                maps.append(as_array(self._explainer(rows.batch([rows[index]]), target=one_target, **one_args)))
        return namespace(*maps).concat(maps, axis=0)

    def __repr__(self) -> str:
        return f"seeded({describe(self._explainer)})"
