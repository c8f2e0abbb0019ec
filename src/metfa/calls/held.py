"""What explainers that hold a `Called` have in common."""

from __future__ import annotations

import functools
import inspect
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeVar

from metfa._base.one_line import in_short, one_line
from metfa._base.other_words import refuse_unknown
from metfa.calls.called import Called
from metfa.calls.plain import plain_module

__all__ = ["SETTINGS", "asks_a_model", "hold", "model_itself", "rows_as_the_model"]

SETTINGS = ("batch_size", "softmax", "fast", "memory_format")  # of a `Called`, not of explainers
Class = TypeVar("Class", bound=type)


def asks_a_model(kind: Class) -> Class:
    """Decorate the class of an explainer: settings of `Called` that are given to it get an error that says where."""
    made: Any = kind.__init__
    allowed = [name for name in inspect.signature(made).parameters if name != "self"]

    @functools.wraps(made)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        misplaced = [f"{name}={given[name]!r}" for name in SETTINGS if name in given]
        if misplaced:
            raise TypeError(
                f"`{misplaced[0].partition('=')[0]}` says how the model is asked, and belongs to metfa.Called: write "
                f"`{kind.__name__}(metfa.Called(model, {', '.join(misplaced)}))`"
            )
        refuse_unknown(kind.__name__, given, allowed)
        made(self, *args, **given)

    kind.__init__ = checked
    kind.__repr__ = _in_one_line  # pyright: ignore[reportAttributeAccessIssue]
    return kind


def _in_one_line(explainer: Any) -> str:
    """The explainer of its model, or of a `Called` that has settings."""
    called = explainer.called
    plain = one_line(called) == f"{Called.__name__}({in_short(called.model)})"
    return one_line(explainer, called=called.model if plain else called)


def hold(explainer: Any, *, at_layers: str | None = None) -> None:
    """Turn a plain model in the field `called` of a frozen explainer into a `Called`.

    `at_layers` names an explainer that works at the layers: it gets the plain module out of a compiled or parallel one.
    """
    called = Called.of(explainer.called)
    if at_layers is not None:
        plain = plain_module(called.model, at_layers)
        called = called if plain is called.model else replace(called, model=plain)
    object.__setattr__(explainer, "called", called)
    if hasattr(explainer, "layer"):
        object.__setattr__(explainer, "layer", called.layer(explainer.layer))


# Attributes of explainers that hold a `Called`.
model_itself: property = property(attrgetter("called.model"), doc="The model itself, which gives the clean prediction.")
rows_as_the_model: property = property(
    attrgetter("called.rows_independent"), doc="Whether the model leaves rows independent."
)
