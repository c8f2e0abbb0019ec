"""The columns that a model was fitted on, and frames whose columns are put into that order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from metfa._frames.columns import names_of, with_columns
from metfa._frames.matching import in_order
from metfa.calls.behind import PassesOn, owner_of

__all__ = ["by_name", "check_blind", "fitted_names", "in_order_of"]

SHOWN = 5  # names in a message
ATTRIBUTES = ("feature_names_in_", "feature_names_", "feature_name_")
OF_BOOSTERS = {"xgboost": "feature_names", "lightgbm": "feature_name"}


def fitted_names(model: Any) -> list[str] | None:
    """Names of the columns that a model was fitted on, in their order; None where it knows none.

    Those of scikit-learn, xgboost, lightgbm and catboost keep them; names that the library made up for an array do not
    count.
    """
    owner = owner_of(model)
    library = type(owner).__module__.partition(".")[0]
    for attribute in (*ATTRIBUTES, *([OF_BOOSTERS[library]] if library in OF_BOOSTERS else [])):
        try:
            found: Any = getattr(owner, attribute, None)
            names: Any = found() if callable(found) else found
            names = None if names is None or isinstance(names, str) else [str(name) for name in names]
        except Exception:  # a model that is not fitted raises its library's own error
            names = None
        if names:
            return None if _made_up(names) else names
    return None


def _made_up(names: list[str]) -> bool:
    """Whether these are names that lightgbm or catboost give the columns of an array."""
    return any(names == [f"{stem}{place}" for place in range(len(names))] for stem in ("Column_", ""))


def in_order_of(columns: Sequence[Any], fitted: Sequence[str]) -> list[Any]:
    """A frame's columns in the order in which a model was fitted on them.

    Raises
    ------
    ValueError
        If a column is missing or the model does not know it.
    """
    own = {str(name): name for name in columns}
    if not set(fitted) <= set(own):  # lightgbm writes no blanks
        written = {name.replace(" ", "_"): given for name, given in own.items()}
        own = written if set(fitted) <= set(written) else own
    return [own[name] for name in in_order(list(own), fitted, "which the model was fitted on")]


def check_blind(asked: Any, columns: Sequence[Any]) -> None:
    """Raise if a function names a model of lightgbm, which takes columns by place, and they have another order."""
    for model in _named_by(owner_of(asked)):
        if type(model).__module__.startswith("lightgbm.") and (fitted := fitted_names(model)):
            order = in_order_of(columns, fitted)
            if order != list(columns):
                raise ValueError(
                    f"`inputs` has its columns in another order than the model was fitted on, and lightgbm takes them "
                    f"by their place: write `inputs[{order[:SHOWN]}]`, or pass the model's own method, such as "
                    "`predict=model.predict`"
                )


def _named_by(function: Any) -> Iterator[Any]:
    """What a function written in Python holds around it, or names among the globals of its module."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # a variable without a value yet
            yield cell.cell_contents
    yield from (function.__globals__.get(name) for name in code.co_names)


def by_name(asked: Callable[..., Any], columns: Sequence[Any], model: Any = None) -> Callable[..., Any]:
    """A function of frames with these columns that asks `asked` with the columns in the order that its model knows.

    The model is that of `asked`, or given.
    """
    fitted = fitted_names(asked if model is None else model)
    if fitted is None:
        check_blind(asked, columns)
    order = list(columns) if fitted is None else in_order_of(columns, fitted)
    return asked if order == list(columns) else InOrder(asked, order)


@dataclass(frozen=True)
class InOrder(PassesOn):
    """A function of frames that asks its model with the columns in this order."""

    model: Callable[..., Any]
    order: list[Any]

    def __call__(self, frame: Any) -> Any:
        """Scores of the frame."""
        other = hasattr(frame, "columns") and names_of(frame) != self.order
        return self.model(with_columns(frame, self.order) if other else frame)
