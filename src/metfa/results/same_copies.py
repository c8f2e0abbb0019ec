"""Whether two results are of the same noisy copies: by the first copy, since two noises may have one name."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["are_first_copies", "same_copies"]

ROUNDING = 1e-3  # of the largest change, by which processors may differ; another law or seed differs by as much as it


def same_copies(one: Any, other: Any) -> bool | None:
    """Whether two facts "first_copy" of equal inputs, see `metfa.sampling.first_copy`, are of one copy.

    None where they cannot say, as where neither changes anything.
    """
    if not (isinstance(one, dict) and isinstance(other, dict)) or one["input"] != other["input"]:
        return None
    a, b = one["changes"], other["changes"]
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    most = max(map(abs, [*a, *b]), default=0)
    return None if most == 0 else len(a) == len(b) and bool(np.allclose(a, b, rtol=0, atol=ROUNDING * most))


def are_first_copies(value: Any) -> bool:
    """Whether this is such a fact."""
    if not isinstance(value, dict) or set(value) != {"input", "changes"} or not isinstance(value["input"], str):
        return False
    changes = value["changes"]
    return isinstance(changes, str) or (isinstance(changes, list) and all(type(one) in (int, float) for one in changes))
