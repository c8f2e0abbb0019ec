"""Reports: one HTML file in which the uncertainty of explanations can be seen, and settings tried without the model."""

from metfa.report.writing import write

__all__ = ["write"]
