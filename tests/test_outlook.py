"""What more samples would bring: near to what they bring, and told with its cost."""

import re

import numpy as np
import pytest

import metfa

WEIGHTS = np.linspace(-1, 3, 2000)


def run(n_samples, inputs=1.0):
    return metfa.explain(
        lambda x, target: WEIGHTS * x, np.full((2, 2000), inputs), 0, noise=metfa.noise.Gaussian(0.5),
        n_samples=n_samples, rng=0,
    )  # fmt: skip


@pytest.mark.parametrize("correction", [None, "bh", "e-bh"])
@pytest.mark.parametrize("asked", [0.1, 0.05])
def test_is_near_to_what_comes(correction, asked):
    found = run(30).plan(asked, threshold=1.0, correction=correction)
    fixed = run(found.n_samples)
    share = (fixed.significance_map(1.0, correction=correction) == 0).mean(axis=1).max()
    assert share == pytest.approx(asked, abs=0.035)
    assert found.undecided[0][0] == 30
    assert found.undecided[-1][1] <= asked < found.undecided[-2][1]


def test_after_until():
    sample = run(metfa.until(undecided=0.2, threshold=1.0))
    found = sample.plan(0.1, **sample.stopping.settings)
    longer = run(metfa.until(undecided=0.1, threshold=1.0))
    assert found.n_samples == pytest.approx(longer.n_samples, rel=0.35)


def test_tells_the_cost():
    sample = run(30)
    found = sample.plan(0.05, threshold=1.0)
    assert found.more_maps == 2 * (found.n_samples - 30)
    assert found.seconds == pytest.approx(found.more_maps * sample.provenance["seconds"] / 60)
    assert re.fullmatch(
        r"5\.0% undecided likely takes about \d+ samples: \d+ more explanations, about \S+ s", str(found)
    )


def test_what_is_reached_and_what_is_not():
    done = run(30).plan(0.9, threshold=1.0)
    assert (done.n_samples, done.more_maps) == (30, 0)
    assert "is reached with the 30 samples that there are" in str(done)
    never = run(30).plan(0.0, threshold=1.0, max_samples=60)
    assert never.n_samples is None
    assert str(never).startswith("0.0% undecided would likely take more than 60 samples (")


def test_is_repeatable():
    assert run(30).plan(0.05, threshold=1.0).undecided == run(30).plan(0.05, threshold=1.0).undecided


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"undecided": 5}, "`undecided` must be a share below 1, got 5"),
        ({"undecided": -1}, "`undecided` must be finite and not negative"),
        ({"undecided": 0.1, "max_samples": 0}, "`max_samples` must be at least 1"),
        ({"undecided": 0.1, "max_samples": 9}, "`max_samples` must be at least the 10 samples that there are, got 9"),
        ({"undecided": 0.1, "alpha": 2}, "`alpha` must lie between"),
    ],
)
def test_bad_input(settings, message):
    with pytest.raises(ValueError, match=message):
        run(10).plan(**settings)
