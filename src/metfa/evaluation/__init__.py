"""Evaluation of explainers over data sets: studies, their units, the store of results, and tables."""

from metfa._base.lazy import lazy_names

_HOME = {
    "Change": "metfa.results.changes",
    "Changes": "metfa.results.changes",
    "Evaluation": "metfa.evaluation.results",
    "Regression": "metfa.evaluation.regression",
    "Study": "metfa.evaluation.study",
    "Table": "metfa.evaluation.tables",
    "UnitStore": "metfa.evaluation.store",
    "evaluate": "metfa.evaluation.run",
    "prepare": "metfa.evaluation.run",
    "read_regression": "metfa.evaluation.regression_file",
    "read_rows": "metfa.evaluation.written",
    "read_study": "metfa.evaluation.toml",
    "write_tables": "metfa.evaluation.written",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names("metfa.evaluation", _HOME)
