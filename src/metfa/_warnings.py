"""Warning categories, so that a caller can silence or escalate one kind alone."""

__all__ = [
    "DegenerateAttributionsWarning",
    "MetfaWarning",
    "ModelStateWarning",
    "ReproducibilityWarning",
    "RowDependenceWarning",
    "SignedAttributionsWarning",
]


class MetfaWarning(UserWarning):
    """Base of every warning that metfa raises."""


class DegenerateAttributionsWarning(MetfaWarning):
    """Attributions hold no evidence: a map is constant, or no threshold separates the scores."""


class SignedAttributionsWarning(MetfaWarning):
    """A threshold made for one-signed scores meets strong negative scores."""


class ModelStateWarning(MetfaWarning):
    """The model was found in a state unfit for explaining, such as training mode."""


class ReproducibilityWarning(MetfaWarning):
    """The explainer draws random numbers that the seed of the call does not govern."""


class RowDependenceWarning(MetfaWarning):
    """The attributions of one row depend on the other rows of its batch."""
