"""`Called`: a model, and how it is asked for scores, probabilities and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from metfa._arrays import copied, first_not_finite, to_host, widen
from metfa._base.one_line import one_line
from metfa._base.other_words import our_words
from metfa._base.validation import check_flag, check_function, positive_int
from metfa._base.warnings import RowDependenceWarning, warn
from metfa.calls.answers import about, check_logits, chosen, softmax
from metfa.calls.at_fault import or_the_row_at_fault
from metfa.calls.batches import in_batches
from metfa.calls.behind import loaded_torch
from metfa.calls.fast import fast_copy
from metfa.calls.guard import model_in_evaluation, normalises_by_batch
from metfa.calls.inputs import batch_of
from metfa.calls.layouts import AUTO, Layouts, check_layout
from metfa.calls.parts import (
    are_parts,
    asked_scores,
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


@our_words
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
        Rows in one pass. Changed copies of the inputs, which some explainers and metrics make, are rows too. None: on a
        CPU 16, fewer of large images, at most the pixels of six of 224 x 224; on a GPU 256, fewer if they would not fit
        into a quarter of its memory (4 kB a pixel); 256 for texts. A pass that does not fit is halved. It changes
        speed, memory and rounding only. (Those who ask about the rows given alone, as `Gradient`, use one pass.)
    softmax : bool
        Turn the model's scores into probabilities by a softmax over classes, where probabilities are asked for. False
        uses the scores as they are: for models that return probabilities. (Gradients are always those of the scores as
        they are. Text models usually return probabilities, so there a plain model means ``Called(model,
        softmax=False)``.)
    fast : {"exact", "bfloat16"}, optional
        Ask a copy of the model, made when the `Called` is made (its `model`): batch normalisations folded into the
        layers before them, frozen weights. "exact": the same function up to rounding. "bfloat16": also in that
        precision, which is faster on processors that have it. Single maps change (those of `Gradient` correlate at
        about .9 on EfficientNet-Lite0; optimised masks change by more than rounding), but significance maps agree as
        well as those of two runs with different noise. Maps are float32. Results say what was done. If the model's
        weights change later, the next call is refused.
    memory_format : "auto", torch.memory_format or None
        Memory layout of the model's input. "auto": channels last for images in float32 or float64 and a model on a CPU
        with two or more two-dimensional convolutions, which is faster there; otherwise, and if the model fails on that,
        as they are given. Maps stay the same to rounding. The choice is recorded, and a run that is resumed keeps its
        own. None: as they are given. The model itself is never converted.

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
    fast: Literal["exact", "bfloat16"] | None = field(default=None, kw_only=True)
    memory_format: Any = field(default=AUTO, kw_only=True)

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
        check_layout(self.memory_format)
        object.__setattr__(self, "model", fast_copy(self.model, self.fast))
        if normalises_by_batch(self.model):
            warn(
                "the model normalises each batch by its own mean and variance (batch normalisation without running "
                "statistics), so that a row's scores depend on the other rows: it is asked about one row at a time",
                RowDependenceWarning,
            )

    @property
    def rows_independent(self) -> bool:
        """Whether no row can depend on another: true for a module in evaluation mode, unknown for a function.

        A module that calls a function says itself whether this holds. A model whose rows have been seen to depend on
        each other is not believed.
        """
        torch = loaded_torch()
        known = torch is not None and isinstance(self.model, torch.nn.Module)
        return known and getattr(self.model, "rows_independent", True) and not self.row_look.dependent

    @cached_property
    def row_look(self) -> RowLook:
        """Whether the model mixes rows."""
        return RowLook(self.in_one_pass, self, dependent=True if normalises_by_batch(self.model) else None)

    @cached_property
    def layouts(self) -> Layouts:
        """How batches are laid out."""
        return Layouts(self.model, self.memory_format)

    @property
    def facts(self) -> dict[str, str]:
        """What results say of how the model was asked, as far as it was: the layout of batches, and the fast copy."""
        fast = self.fast and self.model.fast_copy.said
        return {name: said for name, said in (("layout", self.layouts.said()), ("fast", fast)) if said}

    def layer(self, layer: Any) -> Any:
        """A layer as given, or its name where it is a module of the model that a fast copy was made of."""
        return layer if self.fast is None else self.model.fast_copy.name_of(layer) or layer

    # Contexts: each call of the model is inside `asked` (or `weights_frozen`, for gradients).

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Context for asking the model: evaluation mode and no graph inside, everything put back afterwards.

        The outermost autocast is opened here, switched off: torch keeps the weights that it casts until that one ends.
        """
        torch, unchanged = loaded_torch(), nullcontext() if self.fast is None else self.model.fast_copy.unchanged()
        casts_kept = torch.autocast("cpu", enabled=False) if torch and self.fast == "bfloat16" else nullcontext()
        without_graph = nullcontext() if torch is None else torch.no_grad()
        with model_in_evaluation(self.model), unchanged, without_graph, casts_kept:
            yield

    def precision(self, batch: Any) -> Any:
        """Context in which the model computes in the precision that `fast` asks for."""
        if self.fast != "bfloat16":
            return nullcontext()
        return loaded_torch().autocast(next(iter(named(batch).values())).device.type, dtype=loaded_torch().bfloat16)

    def laid_out(self, batch: Any) -> Any:
        """The batch in its layout; the first one also shows how to fold a fast copy.

        Those who watch the model's layers call this before, because both may ask the model about a row.
        """
        if self.fast is not None:
            self.model.fast_copy.fold(self.model, batch, layout=self.layouts.layout_of(batch))
        return self.layouts.laid_out(batch)

    def in_batches(self, n: int, like: Any, work: Callable[[int, int], None]) -> None:
        """Call ``work(start, stop)`` over 0..n, `batch_size` at a time."""
        in_batches(n, self.batch_size, like, work)

    # Scores of one batch, or of many rows.

    def __call__(self, batch: Any) -> Any:
        """The model's checked scores of one batch, which it may overwrite; rows may be asked alone, see `RowLook`."""
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
            return asked_scores(self.model, self.laid_out(batch))

    def scores(self, inputs: Any) -> Any:
        """The model's scores of any number of rows, (n, classes), at least float32; `inputs` are left as they are."""
        inputs, answers = inputs if are_parts(inputs) else batch_of(inputs), []

        def ask(start: int, stop: int) -> None:
            batch = of_rows(inputs, start, stop)
            answers.append(widen(self.layouts.asked_first(batch, lambda: self(each(copied, batch)))))

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
        if self.softmax:
            check_logits(host)
        return row_targets(target, host, len(host), self.model)

    # Probabilities of the rows' targets.

    def target_probabilities(self, inputs: Any, target: Any) -> tuple[list[Any], np.ndarray]:
        """Targets of the inputs (the predicted class if `target` is None), and their probabilities, (batch,)."""
        scores = or_the_row_at_fault(self.scores, inputs)
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
