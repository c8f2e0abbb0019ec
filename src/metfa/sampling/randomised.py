"""Explainers with randomness of their own, made reproducible row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metfa._arrays import is_array, namespace
from metfa._base.provenance import describe
from metfa._base.validation import as_list, check_kind
from metfa.calls.generators import seeded_generators
from metfa.calls.guard import model_as_found
from metfa.sampling.entries import count_rows, one_entry, one_row
from metfa.sampling.protocol import call_explainer, check_explainer, explained_model, known_independent
from metfa.sampling.rows import Rows
from metfa.sampling.streams import Purpose, root_entropy, stream

__all__ = ["randomised", "row_generators", "seeded"]


def row_generators(inputs: Any, rngs: Sequence[np.random.Generator] | None, rng: Any) -> list[np.random.Generator]:
    """The generators given, or one for each row, from the seed `rng` and the row's content."""
    if rngs is None:
        root = root_entropy(rng)
        return [stream(root, identity, 0, Purpose.EXPLAINER) for identity in Rows(inputs).ids()]
    given = as_list(rngs, "rngs", "a list of generators, one for each row")
    if len(given) != count_rows(inputs):
        raise ValueError(f"`rngs` must hold one generator for each of the {count_rows(inputs)} rows, got {len(given)}")
    for one in given:
        check_kind(one, "rngs", np.random.Generator, "`numpy.random.default_rng(0)`")
    return given


@dataclass(frozen=True, repr=False)
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

    function: Callable[..., Any]
    rng: Any = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"`function` must be callable, got {type(self.function).__name__}")

    @property
    def model(self) -> Any:
        """Model of the function; None if unknown."""
        return explained_model(self.function)

    @property
    def rows_independent(self) -> bool:
        """Whether the function promises that its rows do not depend on each other."""
        return known_independent(self.function)

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Any = None, **row_args: Any) -> Any:
        """Attributions of a batch, row i with randomness from ``rngs[i]``."""
        return self.function(inputs, target, rngs=row_generators(inputs, rngs, self.rng), **row_args)

    def __repr__(self) -> str:
        return f"randomised({describe(self.function)})"


@dataclass(frozen=True, repr=False)
class seeded:  # noqa: N801 - read as a function
    r"""Third-party explainer that draws from the global generators, made reproducible row by row.

    Each row is explained by a call of its own. For it the global generators of Python, NumPy and torch are seeded from
    the row's stream, and put back afterwards. So rows never share draws (Captum's ShapleyValueSampling shares its
    permutations over a batch, which would make the intervals invalid), and the caller's generators stay as they were.

    Parameters
    ----------
    explainer : callable
        ``explainer(inputs, target=...)`` -> attributions (batch, \*features), or a pair of them with the scores.
    rng : int, numpy.random.Generator or None
        Seed for direct calls; `metfa.explain` passes its own generators.
    """

    explainer: Callable[..., Any]
    rng: Any = field(default=None, kw_only=True, repr=False)

    rows_independent = True

    def __post_init__(self) -> None:
        check_explainer(self.explainer)

    @property
    def model(self) -> Any:
        """Model of the explainer; None if unknown."""
        return explained_model(self.explainer)

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Any = None, **row_args: Any) -> Any:
        """Attributions of a batch (and scores, if the explainer gives them), one row a call."""
        outputs = []
        generators = row_generators(inputs, rngs, self.rng)
        with model_as_found(self.explainer):  # own the model before the generators, as all threads do
            for index, rng in enumerate(generators):
                per_row = isinstance(target, list | tuple) or (is_array(target) and target.ndim > 0)
                one_target = one_entry(target, index) if per_row else target
                one_args = {name: one_entry(values, index) for name, values in row_args.items()}
                with seeded_generators(rng):
                    output = call_explainer(self.explainer, one_row(inputs, index), one_target, 1, [rng], one_args)
                outputs.append(output)
        maps, scores = zip(*outputs, strict=True)
        parts = isinstance(maps[0], dict)
        joined = {name: _joined([one[name] for one in maps]) for name in maps[0]} if parts else _joined(maps)
        return joined if scores[0] is None else (joined, _joined(scores))

    def __repr__(self) -> str:
        return f"seeded({describe(self.explainer)})"


def _joined(rows: Sequence[Any]) -> Any:
    return namespace(*rows).concat(rows, axis=0)
