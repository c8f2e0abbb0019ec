"""`FixedBatch`: a model that takes only batches of one size, as a function that takes any."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from metfa._arrays import copied, is_array, namespace
from metfa._base.one_line import one_line
from metfa._base.validation import keep, positive_int
from metfa.calls.behind import loaded_torch

__all__ = ["FixedBatch", "explain_fixed_batch"]

AT_LAYERS = (
    "; explainers at the layers of a model (CAM, ScoreCAM, LRP, from_gradcam, some of Captum) cannot take that, and "
    "need a model for any number of rows"
)
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
        When called, if the model takes another size, or does not return one row of scores an input.

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

    def __repr__(self) -> str:
        return one_line(self)

    def __post_init__(self) -> None:
        if not callable(self.model):
            raise TypeError(f"`model` must be a module or a function inputs -> scores, got {type(self.model).__name__}")
        keep(self, size=positive_int(self.size, "size"))

    def __call__(self, inputs: Any) -> Any:
        """Scores of any number of rows."""
        try:
            return self._scores(inputs)
        except Exception as error:
            said = _said_of_shapes(error)
            if said is None or not is_array(inputs):
                raise
            size = _size_taken(self.model, said, inputs, not_size=self.size)
            if size is None:
                raise
            raise ValueError(
                f"`size` is {self.size}, but the model takes batches of {size} ({said[:200]}): write "
                f"`metfa.FixedBatch(model, {size})`"
            ) from error

    def _scores(self, inputs: Any) -> Any:
        xp, n = namespace(inputs), len(inputs)
        scores = [self._asked(xp, inputs[start : start + self.size]) for start in range(0, n, self.size)]
        return namespace(scores[0]).concat(scores, axis=0)

    def _asked(self, xp: Any, rows: Any) -> Any:
        n = len(rows)
        scores = self.model(rows if n == self.size else xp.concat([rows, *[rows[-1:]] * (self.size - n)], axis=0))
        if not is_array(scores) or tuple(scores.shape[:1]) != (self.size,):
            got = f"shape {tuple(scores.shape)}" if is_array(scores) else type(scores).__name__
            raise ValueError(f"`model` must return one row of scores for each of its {self.size} inputs, got {got}")
        return copied(scores[:n])  # which may lie where the model writes its next answer


def explain_fixed_batch(model: Any, batch: Any, error: Exception) -> None:
    """Raise a ValueError that says so if a model has failed because it takes only batches of one size.

    Sizes are tried, one row and then the numbers in the model's own error; what is advised has worked.
    """
    said = _said_of_shapes(error)
    if said is None or isinstance(model, FixedBatch) or not is_array(batch):
        return
    size = _size_taken(model, said, batch, not_size=len(batch))
    if size is not None:
        rows = "one row" if size == 1 else f"{size} rows"
        torch = loaded_torch()
        of_torch = torch is not None and isinstance(model, torch.nn.Module)
        raise ValueError(
            f"the model takes a batch of {rows}, but not this one of {len(batch)} ({said[:200]}): write "
            f"`metfa.FixedBatch(model, {size})` in its place{AT_LAYERS if of_torch else ''}"
        ) from error


def _said_of_shapes(error: Exception) -> str | None:
    """What an error says, in one line, if it is about shapes and nobody has explained it yet."""
    said = " ".join(str(error).split())
    return said if ABOUT_SHAPES.search(said) and not any(words in said for words in OF_OTHERS) else None


def _size_taken(model: Any, said: str, batch: Any, *, not_size: int) -> int | None:
    """A size of batches that the model takes, of one row and the numbers in its error."""
    numbers = [int(number) for number in re.findall(r"\d+", said[:1000])]
    sizes = [size for size in dict.fromkeys([1, *numbers]) if 1 <= size <= LARGEST_TRIED and size != not_size]
    return next((size for size in sizes if _takes(model, size, batch)), None)


def _takes(model: Any, size: int, batch: Any) -> bool:
    try:
        FixedBatch(model, size)._scores(batch)
    except Exception:
        return False
    return True
