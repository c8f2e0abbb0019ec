"""Warning categories, so that a caller can silence or escalate one kind alone; and `warn`."""

from __future__ import annotations

import sys
import warnings

__all__ = [
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
    "warn",
]


class MetfaWarning(UserWarning):
    """Base of every warning that metfa raises."""


class DegenerateAttributionsWarning(MetfaWarning):
    """Attributions hold no evidence: a map is constant, or no threshold separates the scores."""


class EqualInputsWarning(MetfaWarning):
    """Inputs of a study are equal to others, so that averages over inputs count them more than once."""


class FailedUnitsWarning(MetfaWarning):
    """Units of a study failed; the others have their results."""


class SignedAttributionsWarning(MetfaWarning):
    """A threshold made for one-signed scores meets strong negative scores."""


class MissedObjectWarning(MetfaWarning):
    """The model takes the object to explain for one of another class."""


class SmallRegionWarning(MetfaWarning):
    """An object to explain has so few pixels that it may be none."""


class ModelOutputWarning(MetfaWarning):
    """The model's scores are not what the explainer's settings take them for, such as probabilities for logits."""


class ModelStateWarning(MetfaWarning):
    """The model was found in a state unfit for explaining, such as training mode."""


class ReproducibilityWarning(MetfaWarning):
    """The explainer draws random numbers that the seed of the call does not govern."""


class RowDependenceWarning(MetfaWarning):
    """The attributions of one row depend on the other rows of its batch."""


class UnreadWordsWarning(MetfaWarning):
    """A text is longer than what its model reads; words behind cannot matter."""


class WeakAttackWarning(MetfaWarning):
    """An attack is weaker than it looks, so that its failure says nothing of the defence."""


def warn(message: str, category: type[MetfaWarning]) -> None:
    """Warn at the line of the caller's own code that called into metfa, however deep we are.

    Frames of `contextlib`, through which our guards warn, count as ours.
    """
    level = 1
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("metfa", "contextlib"):
        level += 1
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)
