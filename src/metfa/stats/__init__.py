"""Exact small-sample statistics of a median, for arrays of any library.

Usable alone: nothing here knows about models or explainers, and at run time nothing but NumPy is needed.
"""

from metfa.stats._certificate import certified_radius, certified_ranks, proportion_bound
from metfa.stats._intervals import ConfidenceInterval, mean_interval, median_interval, smoothed_median
from metfa.stats._multiplicity import bh, bonferroni, by, correct, e_bh, expected_false_marks, holm
from metfa.stats._ranks import Ranks, median_ranks, min_samples, paper_ranks
from metfa.stats._threshold_rules import TimesMean, jenks_of_means, jenks_of_medians
from metfa.stats._thresholds import jenks, jenks_sorted
from metfa.stats._variance_shares import VarianceShares, variance_shares
from metfa.stats.closed_bounds import EValueBounds, SimesBounds, e_value_bounds, simes_bounds
from metfa.stats.closed_fdr import closed_e_bh
from metfa.stats.prominences import Prominence, prominence
from metfa.stats.sequential import (
    SequentialTestResult,
    confidence_sequence,
    log_e_values,
    sequence_ranks,
    sequential_test,
)
from metfa.stats.sign_tests import SignTestResult, sign_test

__all__ = [
    "ConfidenceInterval",
    "EValueBounds",
    "Prominence",
    "Ranks",
    "SequentialTestResult",
    "SignTestResult",
    "SimesBounds",
    "TimesMean",
    "VarianceShares",
    "bh",
    "bonferroni",
    "by",
    "certified_radius",
    "certified_ranks",
    "closed_e_bh",
    "confidence_sequence",
    "correct",
    "e_bh",
    "e_value_bounds",
    "expected_false_marks",
    "holm",
    "jenks",
    "jenks_of_means",
    "jenks_of_medians",
    "jenks_sorted",
    "log_e_values",
    "mean_interval",
    "median_interval",
    "median_ranks",
    "min_samples",
    "paper_ranks",
    "prominence",
    "proportion_bound",
    "sequence_ranks",
    "sequential_test",
    "sign_test",
    "simes_bounds",
    "smoothed_median",
    "variance_shares",
]
