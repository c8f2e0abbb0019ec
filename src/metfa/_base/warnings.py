"""`warn`, and a category for each kind of warning, so that one kind alone can be silenced or made an error."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = [
    "DarkPictureWarning",
    "DegenerateAttributionsWarning",
    "EqualInputsWarning",
    "FailedUnitsWarning",
    "MetfaWarning",
    "MissedObjectWarning",
    "ModelOutputWarning",
    "ModelStateWarning",
    "ReproducibilityWarning",
    "RowDependenceWarning",
    "SignedAttributionsWarning",
    "SmallRegionWarning",
    "UnreadWordsWarning",
    "WeakAttackWarning",
    "each_once",
    "said_of",
    "warn",
]

ABOUT: ContextVar[str | None] = ContextVar("about", default=None)
NUMBERS = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?")


class MetfaWarning(UserWarning):
    """Base of every warning that metfa raises."""


class DarkPictureWarning(MetfaWarning):
    """A picture of 16 bits uses so little of its range that the model sees it nearly black."""


class DegenerateAttributionsWarning(MetfaWarning):
    """Attributions hold no evidence, because a map is constant or no threshold separates the scores."""


class EqualInputsWarning(MetfaWarning):
    """Inputs of a study are equal to others, so that averages over inputs count them more than once."""


class FailedUnitsWarning(MetfaWarning):
    """Units of a study failed; the others have their results."""


class SignedAttributionsWarning(MetfaWarning):
    """Scores have strong negative values, but the threshold is meant for scores of one sign."""


class MissedObjectWarning(MetfaWarning):
    """The model assigns the object to explain to another class."""


class SmallRegionWarning(MetfaWarning):
    """An object to explain has so few pixels that it may not be an object."""


class ModelOutputWarning(MetfaWarning):
    """The model's scores are not what the explainer's settings assume, such as probabilities where logits are due."""


class ModelStateWarning(MetfaWarning):
    """The model was in a state that does not suit explanations, such as training mode."""


class ReproducibilityWarning(MetfaWarning):
    """The explainer draws random numbers that do not depend on the seed of the call."""


class RowDependenceWarning(MetfaWarning):
    """The attributions of one row depend on the other rows of its batch."""


class UnreadWordsWarning(MetfaWarning):
    """A text is longer than its model reads; the words after that cannot matter."""


class WeakAttackWarning(MetfaWarning):
    """An attack is weaker than it looks, so its failure says nothing about the defence."""


def warn(message: str, category: type[MetfaWarning]) -> None:
    """Warn at the line of the caller's own code that called metfa, however deep the call is; see `said_of`.

    Frames of `contextlib` count as metfa's, because metfa's guards warn through them.
    """
    level = 1
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("metfa", "contextlib"):
        level += 1
        frame = frame.f_back
    about = ABOUT.get()
    warnings.warn(message if about is None else f"{about}: {message}", category, stacklevel=level + 1)


@contextmanager
def said_of(what: str | None) -> Iterator[None]:
    """Let metfa's warnings within begin with what they are about; None changes nothing."""
    token = ABOUT.set(what or ABOUT.get())
    try:
        yield
    finally:
        ABOUT.reset(token)


@contextmanager
def each_once() -> Iterator[None]:
    """Show equal warnings from one place once, also those of other libraries; equal are texts with other numbers too.

    Python itself forgets what it has shown whenever a library changes its filters, so that a model or an explainer
    that warns would do so for each noisy copy. Filters hold as ever: what is an error stays one.
    """
    show = _Once(warnings.showwarning)
    warnings.showwarning = show
    try:
        yield
    finally:
        show.ended = True
        while isinstance(top := warnings.showwarning, _Once) and top.ended:
            warnings.showwarning = top.before


class _Once:
    """Shows a warning unless it has shown an equal one; all of them once its call has ended.

    Calls in several threads may end in any order, so that one may have ended while that of another stands before it.
    """

    def __init__(self, before: Callable[..., None]) -> None:
        self.before, self.ended = before, False
        self._seen: set[tuple[Any, ...]] = set()

    def __call__(self, message: Any, category: Any, filename: str, lineno: int, *rest: Any) -> None:
        one = (category, filename, lineno, NUMBERS.sub("#", str(message)))
        if self.ended or one not in self._seen:
            self._seen.add(one)
            self.before(message, category, filename, lineno, *rest)
