"""Which row of a batch a model fails for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metfa.calls.answers import about
from metfa.calls.inputs import batch_of

__all__ = ["or_the_row_at_fault"]


def or_the_row_at_fault(scores_of: Callable[[Any], Any], inputs: Any) -> Any:
    """Scores of the inputs. If the model fails for some rows only, the error names the first of them."""
    inputs = batch_of(inputs)
    try:
        return scores_of(inputs)
    except ValueError:
        at_fault = [_fails(scores_of, inputs[row : row + 1]) for row in range(len(inputs))]
        if not all(at_fault):
            for row in np.flatnonzero(at_fault):
                with about(f"input {row}"):
                    scores_of(inputs[row : row + 1])
        raise


def _fails(scores_of: Callable[[Any], Any], row: Any) -> bool:
    try:
        scores_of(row)
    except ValueError:
        return True
    return False
