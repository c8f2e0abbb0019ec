"""Reports: one HTML file that shows how uncertain explanations are, and lets readers try settings without the model."""

from metfa.report.writing import write

__all__ = ["write"]
