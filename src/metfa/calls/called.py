"""`Called`: a model, and how it is asked for scores, probabilities and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from metfa._arrays import copied, first_not_finite, to_host, widen
from metfa._base.one_line import one_line
from metfa._base.validation import check_flag, check_function, positive_int
from metfa._base.warnings import RowDependenceWarning, warn
from metfa.calls.answers import about, checked_scores, chosen, softmax, warn_of_probabilities
from metfa.calls.batches import in_batches
from metfa.calls.behind import loaded_torch
from metfa.calls.guard import model_in_evaluation, normalises_by_batch
from metfa.calls.inputs import batch_of
from metfa.calls.parts import (
    answered_by_parts,
    are_parts,
    each,
    joined,
    largest,
    n_needed,
    name_in_words,
    named,
    of_rows,
    rows_in,
)
from metfa.calls.row_dependence import RowLook
from metfa.calls.targets import row_targets, target_indices

__all__ = ["Called"]


@dataclass(frozen=True)
class Called:
    r"""A model, and how it is asked. Explainers and metrics take one wherever they take a model.

    A plain model means ``Called(model)``. A `Called` is itself a function inputs -> scores.

    Parameters
    ----------
    model : torch.nn.Module or callable
        Inputs (batch, ...) -> scores (batch, classes). One that takes only batches of one size is wrapped in a
        `FixedBatch` first.
    batch_size : int, optional
        Rows in one pass. Changed copies of the inputs, which some explainers and metrics make, are rows too. None: 16
        on a CPU, fewer if images are larger than 256 x 256 pixels (one from 1024 x 1024 on); 256 on a GPU, halved until
        they fit; 256 for texts. It changes speed, memory and rounding only. (Explainers that ask only about the rows
        given, such as `Gradient`, use one pass.)
    softmax : bool
        Turn the model's scores into probabilities by a softmax over classes, where probabilities are asked for. False
        uses the scores as they are: for models that return probabilities. (Gradients are always those of the scores as
        they are. Text models usually return probabilities, so there a plain model means ``Called(model,
        softmax=False)``.)
    autocast : torch.dtype, optional
        Run the model in this lower precision, such as ``torch.bfloat16``. This is faster. Single maps change (those of
        `Gradient` correlate at about .9 on EfficientNet-Lite0; optimised masks change by more than rounding), but
        significance maps agree as well as those of two runs with different noise. Maps are float32.
    memory_format : torch.memory_format, optional
        Memory layout of the model's input, such as ``torch.channels_last``. This is often faster for convolutions on a
        CPU; maps stay the same to rounding. The model itself is never converted.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> def model(images):  # probabilities of two classes
    ...     bright = images.mean(axis=(1, 2, 3))
    ...     return np.stack([bright, 1 - bright], axis=1)
    >>> explainer = metfa.explainers.RISE(metfa.Called(model, softmax=False, batch_size=8), n_masks=50, rng=0)
    >>> maps, scores = explainer(np.full((1, 1, 8, 8), 0.75))
    >>> scores
    array([[0.75, 0.25]])
    >>> metfa.Called(model).probabilities(np.full((1, 1, 8, 8), 0.75)).round(2)
    array([[0.62, 0.38]])
    """

    model: Any
    batch_size: int | None = field(default=None, kw_only=True)
    softmax: bool = field(default=True, kw_only=True)
    autocast: Any = field(default=None, kw_only=True)
    memory_format: Any = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        return one_line(self)

    @classmethod
    def of(cls, model: Any) -> Called:
        """`model` itself if it is a `Called`, and one with the usual settings if it is a plain model."""
        return model if isinstance(model, Called) else cls(model)

    def __post_init__(self) -> None:
        if isinstance(self.model, Called):
            raise TypeError(
                "`model` must be a model, got a Called: to change its settings write `dataclasses.replace(called, ...)`"
            )
        if not callable(self.model):
            raise TypeError(f"`model` must be a module or a function inputs -> scores, got {type(self.model).__name__}")
        check_function(self.model, "model", "model(inputs)", *(None,) * n_needed(self.model))
        if self.batch_size is not None:
            positive_int(self.batch_size, "batch_size")
        check_flag(self.softmax, "softmax")
        torch = loaded_torch()
        for name in ("autocast", "memory_format"):
            value, kind = getattr(self, name), "dtype" if name == "autocast" else "memory_format"
            if value is not None and not (torch is not None and isinstance(value, getattr(torch, kind))):
                raise TypeError(f"`{name}` must be a torch.{kind} or None, got {type(value).__name__}: {value!r}")
        if normalises_by_batch(self.model):
            warn(
                "the model normalises each batch by its own mean and variance (batch normalisation without running "
                "statistics), so that a row's scores depend on the other rows: it is asked about one row at a time",
                RowDependenceWarning,
            )

    @property
    def rows_independent(self) -> bool:
        """Whether no row can depend on another: true for a module in evaluation mode, unknown for a function.

        A module that calls something else, such as a function, says itself whether this holds. A model whose rows have
        been seen to depend on each other is no longer believed.
        """
        torch = loaded_torch()
        known = torch is not None and isinstance(self.model, torch.nn.Module)
        return known and getattr(self.model, "rows_independent", True) and not self.row_look.dependent

    @cached_property
    def row_look(self) -> RowLook:
        """Whether the model has been seen to mix rows."""
        return RowLook(self.in_one_pass, self, dependent=True if normalises_by_batch(self.model) else None)

    # Contexts: each call of the model is inside `asked` (or `weights_frozen`, for gradients).

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Context for asking the model: evaluation mode and no graph inside, everything put back afterwards.

        The outermost autocast is opened here, switched off so that it casts nothing. Torch keeps the weights that
        `autocast` casts until the outermost one ends.
        """
        torch = loaded_torch()
        casts_kept = nullcontext() if self.autocast is None else loaded_torch().autocast("cpu", enabled=False)
        with model_in_evaluation(self.model), nullcontext() if torch is None else torch.no_grad(), casts_kept:
            yield

    def precision(self, batch: Any) -> Any:
        """Context in which the model computes in the precision of `autocast`."""
        if self.autocast is None:
            return nullcontext()
        return loaded_torch().autocast(next(iter(named(batch).values())).device.type, dtype=self.autocast)

    def laid_out(self, batch: Any) -> Any:
        """The batch in the layout of `memory_format`."""
        if self.memory_format is None or batch.ndim not in (4, 5):
            return batch
        return batch.contiguous(memory_format=self.memory_format)

    def in_batches(self, n: int, like: Any, work: Callable[[int, int], None]) -> None:
        """Call ``work(start, stop)`` over 0..n, `batch_size` at a time, or as many as fit."""
        in_batches(n, self.batch_size, like, work)

    # Scores of one batch, or of many rows.

    def __call__(self, batch: Any) -> Any:
        """The model's scores of one batch, checked, in the model's own precision; the model may overwrite the batch.

        Two rows of a batch that is larger than all before are also asked about alone, see `RowLook`.
        """
        return self.row_look.scores(batch)

    def in_one_pass(self, batch: Any) -> Any:
        """The same in exactly one pass, for those who watch the model's layers meanwhile."""
        torch = loaded_torch()
        for name, part in named(batch).items():
            if torch is not None and isinstance(self.model, torch.nn.Module) and not isinstance(part, torch.Tensor):
                own = name_in_words(name)
                raise TypeError(
                    f"`{own}` must be a torch.Tensor for a torch model, got {type(part).__name__}: write "
                    f"`torch.from_numpy({own})`"
                )
        with self.precision(batch):
            scores = answered_by_parts(self.model, each(self.laid_out, batch))
            return checked_scores(scores, rows_in(batch), self.model)

    def scores(self, inputs: Any) -> Any:
        """The model's scores of any number of rows, (n, classes), at least float32; `inputs` are left as they are."""
        inputs = inputs if are_parts(inputs) else batch_of(inputs)
        answers = []

        def ask(start: int, stop: int) -> None:
            answers.append(widen(self(each(copied, of_rows(inputs, start, stop)))))

        with self.asked():
            self.in_batches(rows_in(inputs), largest(inputs), ask)
        return joined(answers)

    def as_probabilities(self, scores: Any) -> Any:
        """Scores as probabilities: their softmax, or the scores themselves (``softmax=False``)."""
        return softmax(scores) if self.softmax else scores

    def probabilities(self, inputs: Any) -> Any:
        """Class probabilities of any number of rows, (n, classes)."""
        scores = self.scores(inputs)
        if first_not_finite(scores) is not None:
            raise ValueError("the model's scores are not finite")
        return self.as_probabilities(scores)

    def targets(self, target: Any, scores: Any) -> list[Any]:
        """One target a row: those asked for, or the best class of the clean scores."""
        host = to_host(scores)
        if self.softmax and host.ndim > 1 and host.min() >= 0 and np.allclose(host.sum(axis=1), 1, atol=1e-3):
            warn_of_probabilities()
        return row_targets(target, host, len(host), self.model)

    # Probabilities of the rows' targets.

    def target_probabilities(self, inputs: Any, target: Any) -> tuple[list[Any], np.ndarray]:
        """Targets of the inputs (the predicted class if `target` is None), and their probabilities, (batch,)."""
        scores = self._scores_or_the_row_at_fault(inputs)
        bad = first_not_finite(scores)
        if bad is not None:
            raise ValueError(f"the model's scores of input {bad} are not finite")
        targets = self.targets(target, scores)
        return targets, chosen(self.as_probabilities(scores), target_indices(targets))

    def copies_probabilities(
        self, rows: Sequence[int], like: Any, make: Callable[[int, int], Any], targets: Sequence[Any]
    ) -> np.ndarray:
        """Probabilities, (n,), of the targets for changed copies of the inputs; one batch of copies exists at a time.

        Copy k is made from input ``rows[k]``, whose target is ``targets[rows[k]]``. ``make(start, stop)`` makes the
        copies of a batch, whose rows have the size of those of `like`.
        """
        found, indices = np.empty(len(rows)), target_indices(targets)

        def ask(start: int, stop: int) -> None:
            try:
                scores = widen(self(make(start, stop)))
            except ValueError:  # ask about one copy after the other to find the input
                for copy in range(start, stop):
                    with about(f"a changed copy of input {rows[copy]}"):
                        self(make(copy, copy + 1))
                raise
            found[start:stop] = chosen(self.as_probabilities(scores), [indices[row] for row in rows[start:stop]])

        with self.asked():
            self.in_batches(len(rows), like, ask)
        finite = np.isfinite(found)
        if not finite.all():
            raise ValueError(
                f"the model's scores of a changed copy of input {rows[int(finite.argmin())]} are not finite"
            )
        return found

    def _scores_or_the_row_at_fault(self, inputs: Any) -> Any:
        """Scores of the inputs. If the model fails for some rows only, the error names the first of them."""
        inputs = batch_of(inputs)
        try:
            return self.scores(inputs)
        except ValueError:
            at_fault = [self._at_fault(inputs[row : row + 1]) for row in range(len(inputs))]
            if not all(at_fault):
                for row in np.flatnonzero(at_fault):
                    with about(f"input {row}"):
                        self.scores(inputs[row : row + 1])
            raise

    def _at_fault(self, inputs: Any) -> bool:
        try:
            self.scores(inputs)
        except ValueError:
            return True
        return False

    def gradient(self, inputs: Any, target: Any = None) -> tuple[Any, Any]:
        r"""Gradient of each row's target score with respect to the inputs, and all scores, detached.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, ...), or tuple or dict of them
            Floating point. Where they require a gradient, the result is differentiable in them. Of several inputs those
            of integers and booleans, such as tokens and masks, have none.
        target : int, sequence or tensor, optional
            Class of each row; None: the predicted one.

        Returns
        -------
        gradient : torch.Tensor, or tuple or dict of them
            Of the inputs' shape; a dict by place, where a tuple has parts without a gradient.
        scores : torch.Tensor, (batch, classes)
        """
        from metfa.calls.gradients import gradient_of  # which needs torch

        return gradient_of(self, inputs, target)
