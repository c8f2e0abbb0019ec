"""Thresholds by name."""

import re

import pytest

from metfa import stats
from metfa.by_name.thresholds import threshold_of


def test_a_rule_or_a_number():
    assert threshold_of("jenks", "x") is stats.jenks
    assert threshold_of("0.25", "x") == 0.25
    for text in ("", "otsu", "nan", "inf", "1e999", "0,5"):
        with pytest.raises(ValueError, match=f"^the threshold must be 'jenks' .*, got {re.escape(repr(text))}$"):
            threshold_of(text, "the threshold")
