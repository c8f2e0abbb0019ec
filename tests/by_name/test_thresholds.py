"""Thresholds by name."""

import re

import pytest

from metfa import stats
from metfa.by_name.thresholds import threshold_of


def test_a_rule_or_a_number():
    for rule in (stats.jenks, stats.jenks_of_medians, stats.jenks_of_means):
        assert threshold_of(rule.__name__, "x") is rule
    assert threshold_of("0.25", "x") == 0.25
    for text in ("", "otsu", "nan", "inf", "1e999", "0,5"):
        with pytest.raises(
            ValueError, match=f"^the threshold must be 'jenks_of_medians' .*, got {re.escape(repr(text))}$"
        ):
            threshold_of(text, "the threshold")
