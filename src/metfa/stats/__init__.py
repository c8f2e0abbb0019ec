"""Exact small-sample statistics of a median, for arrays of any library.

Usable alone: nothing here knows about models or explainers, and at run time nothing but NumPy is needed.
"""

from metfa.stats._intervals import ConfidenceInterval, mean_interval, median_interval, smoothed_median
from metfa.stats._median_test import MedianTestResult, median_test
from metfa.stats._multiplicity import bh, bonferroni, by, correct, expected_false_marks, holm
from metfa.stats._ranks import Ranks, median_ranks, min_samples, paper_ranks
from metfa.stats._thresholds import jenks, jenks_sorted

__all__ = [
    "ConfidenceInterval",
    "MedianTestResult",
    "Ranks",
    "bh",
    "bonferroni",
    "by",
    "correct",
    "expected_false_marks",
    "holm",
    "jenks",
    "jenks_sorted",
    "mean_interval",
    "median_interval",
    "median_ranks",
    "median_test",
    "min_samples",
    "paper_ranks",
    "smoothed_median",
]
