"""Percents: the printed number is the share, rounded to the digits that are shown, and 0% and 100% mean just that."""

import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import metfa
from metfa._base.percents import percent

SHARES = sorted(
    {
        *np.linspace(0, 1, 1001).tolist(),
        *(k / n for n in (3, 7, 60, 50176) for k in (1, 2, n - 1)),
        *(10.0**-k for k in range(1, 20)),
        *(1 - 10.0**-k for k in range(1, 16)),
        *np.random.default_rng(0).uniform(0, 1, 1000).tolist(),
        5e-324,
        1e-300,
        float(np.nextafter(1, 0)),
    }
)


@pytest.mark.parametrize("places", [None, 0, 1, 2, 4])
def test_what_is_printed_is_the_rounded_share(places):
    for share in SHARES:
        text = percent(share, places)
        assert text.endswith("%")
        shown, exact = Decimal(text[:-1]), 100 * Decimal(repr(share))
        unit = Decimal(1).scaleb(shown.as_tuple().exponent)
        assert abs(shown - exact) <= unit / 2, (share, text)
        assert (shown == 0, shown == 100) == (share == 0, share == 1), (share, text)


@pytest.mark.parametrize(
    ("share", "places", "text"),
    [
        (0.025, None, "2.5%"),
        (0.005, None, "0.5%"),
        (0.05, None, "5%"),
        (0.07, None, "7%"),
        (0.95, None, "95%"),
        (0.99999, None, "99.999%"),
        (1 / 3, None, "33.3333%"),
        (1e-6, None, "0.0001%"),
        (0.2, None, "20%"),
        (0, None, "0%"),
        (1, None, "100%"),
        (0.99999, 2, "99.999%"),
        (0.9785, 2, "97.85%"),
        (0, 1, "0.0%"),
        (1, 2, "100.00%"),
        (1 / 50176, 1, "0.002%"),
        (np.float32(0.5), 1, "50.0%"),
        (1e-300, 2, "1e-298%"),
        (float("nan"), 1, "–"),
        (1.5, 0, "150%"),
        (-0.25, 0, "-25%"),
    ],
)
def test_examples(share, places, text):
    assert percent(share, places) == text


def test_no_other_place_writes_percents():
    """A format such as ``{share:.1%}`` prints 100.0% for 0.9999, and ``{100 * share:.0f}`` 2 for 0.025."""
    root = Path(metfa.__file__).parent
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in root.rglob("*.py")
        if path.name != "percents.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r":[^{}]*%\}|\{100 \*|g\}%", line)
    ]
    assert not found, found


def test_halves_are_rounded_to_even_as_on_the_page():
    """The same shares stand in page/tests/elements.test.js."""
    shares = [0.5625, 0.6875, 0.0625, 0.4375, 0.00285, 0.125, 0.0005, 2 / 3, 0]
    shown = ["56.2%", "68.8%", "6.2%", "43.8%", "0.3%", "12.5%", "0.05%", "66.7%", "0.0%"]
    assert [percent(share, 1) for share in shares] == shown
    assert [percent(share, 0) for share in (0.125, 0.135, 0.5)] == ["12%", "14%", "50%"]
