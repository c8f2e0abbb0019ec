"""`FixedBatch`: a model that takes only batches of one size, as a function that takes any."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from metfa._arrays import is_array, namespace
from metfa._base.validation import keep, positive_int

__all__ = ["FixedBatch", "explain_fixed_batch"]

LARGEST_TRIED = 256  # rows
OF_OTHERS = ("out of memory", "metfa.FixedBatch", "one row of scores an input")  # errors with another cause
ABOUT_SHAPES = re.compile(r"dimension|shape|size|batch", re.IGNORECASE)


@dataclass(frozen=True)
class FixedBatch:
    r"""A model that takes only batches of one size, as a function of any number of rows.

    Exported networks often have the size of the batch that they were exported with: an ONNX file with batch axis 1, a
    program of ``torch.export`` without dynamic shapes, a traced network that reshapes by numbers. Here the rows are
    asked `size` at a time. The last piece is filled up by its own last row, and the scores of these copies are cut off.

    Parameters
    ----------
    model : callable
        Inputs (size, ...) -> scores (size, classes), in any array library.
    size : int
        Rows that it takes.

    Raises
    ------
    ValueError
        When called, if the model does not return one row of scores an input.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> def model(rows):
    ...     return rows.reshape(4, 3) * [1, 10, 100]  # takes four rows
    >>> metfa.FixedBatch(model, 4)(np.ones((6, 3))).shape
    (6, 3)
    """

    model: Any
    size: int

    def __post_init__(self) -> None:
        if not callable(self.model):
            raise TypeError(f"`model` must be a module or a function inputs -> scores, got {type(self.model).__name__}")
        keep(self, size=positive_int(self.size, "size"))

    def __call__(self, inputs: Any) -> Any:
        """Scores of any number of rows."""
        xp, n = namespace(inputs), len(inputs)
        scores = [self._asked(xp, inputs[start : start + self.size]) for start in range(0, n, self.size)]
        return namespace(scores[0]).concat(scores, axis=0)

    def _asked(self, xp: Any, rows: Any) -> Any:
        n = len(rows)
        scores = self.model(rows if n == self.size else xp.concat([rows, *[rows[-1:]] * (self.size - n)], axis=0))
        if not is_array(scores) or tuple(scores.shape[:1]) != (self.size,):
            got = f"shape {tuple(scores.shape)}" if is_array(scores) else type(scores).__name__
            raise ValueError(f"`model` must return one row of scores for each of its {self.size} inputs, got {got}")
        return scores[:n]


def explain_fixed_batch(model: Any, batch: Any, error: Exception) -> None:
    """Raise a ValueError that says so if a model has failed because it takes only batches of one size.

    Sizes are tried, one row and then the numbers in the model's own error; what is advised has worked.
    """
    said = " ".join(str(error).split())
    if isinstance(model, FixedBatch) or not is_array(batch) or any(words in said for words in OF_OTHERS):
        return
    if not ABOUT_SHAPES.search(said):
        return
    numbers = [int(number) for number in re.findall(r"\d+", said[:1000])]
    for size in dict.fromkeys([1, *numbers]):
        if 1 <= size <= LARGEST_TRIED and size != len(batch) and _takes(model, size, batch):
            rows = "one row" if size == 1 else f"{size} rows"
            raise ValueError(
                f"the model takes a batch of {rows}, but not this one of {len(batch)} ({said[:200]}): write "
                f"`metfa.FixedBatch(model, {size})` in its place"
            ) from error


def _takes(model: Any, size: int, batch: Any) -> bool:
    try:
        FixedBatch(model, size)(batch)
    except Exception:
        return False
    return True
