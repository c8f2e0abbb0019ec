"""Rows of tables in one call: explainer and noise are chosen for the model, and the result says which."""

from metfa._base.lazy import lazy_names

_HOME = {"explain": "metfa.tables.rows"}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names("metfa.tables", _HOME, "table")
