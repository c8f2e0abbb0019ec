"""Settings in text form."""

import re

import pytest

from metfa import stats
from metfa.cli.parsing import settings_of, threshold_of


@pytest.mark.parametrize(
    ("texts", "settings"),
    [
        ([], {}),
        (["n_masks=500", "keep = 0.1"], {"n_masks": 500, "keep": 0.1}),
        (["grid=(7, 5)", "softmax=False", "batch_size=None"], {"grid": (7, 5), "softmax": False, "batch_size": None}),
        (["segmentation=slic", "layer='head.act'", "a=b=c"], {"segmentation": "slic", "layer": "head.act", "a": "b=c"}),
    ],
)
def test_settings(texts, settings):
    assert settings_of(texts) == settings


@pytest.mark.parametrize("text", ["", "n_masks", "=5", "n_masks=", "n masks=5", "__import__('os')=1"])
def test_what_is_no_setting(text):
    with pytest.raises(ValueError, match=f"`--set` must be key=value.*got {re.escape(repr(text))}"):
        settings_of([text])


def test_a_setting_given_twice():
    with pytest.raises(ValueError, match="names keep twice"):
        settings_of(["keep=0.1", "keep=0.2"])


def test_a_setting_is_data_never_code():
    assert settings_of(["a=__import__('os').getcwd()"]) == {"a": "__import__('os').getcwd()"}


def test_thresholds():
    assert threshold_of("jenks") is stats.jenks
    assert threshold_of("0.25") == 0.25
    for text in ("", "otsu", "nan", "inf", "1e999", "0,5"):
        with pytest.raises(
            ValueError, match=f"`--threshold` must be 'jenks_of_medians' .*, got {re.escape(repr(text))}"
        ):
            threshold_of(text)
