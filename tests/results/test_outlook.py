"""What more samples would bring: near to what they bring, and told with its cost."""

import re

import numpy as np
import pytest

import metfa
from metfa.sampling import folder

WEIGHTS = np.linspace(-1, 3, 2000)


class Explainer:
    """Weighted inputs; may be interrupted."""

    rows_independent = True

    def __init__(self, stop_at=None):
        self.stop_at, self.rows = stop_at, 0

    def __call__(self, inputs, target):
        self.rows += len(inputs)
        if self.stop_at is not None and self.rows > self.stop_at:
            raise KeyboardInterrupt
        return WEIGHTS * inputs


def run(n_samples, stop_at=None, store=None, **settings):
    inputs, noise = np.ones((2, 2000)), metfa.noise.Gaussian(0.5)
    kept = metfa.Run(store=store)
    return metfa.explain(Explainer(stop_at), inputs, 0, noise=noise, n_samples=n_samples, rng=0, run=kept, **settings)


@pytest.mark.parametrize("correction", [None, "bh", "e-bh", "closed-e-bh"])
@pytest.mark.parametrize("asked", [0.1, 0.05])
def test_is_near_to_what_comes(correction, asked):
    found = run(30).plan(asked, threshold=1.0, correction=correction)
    fixed = run(found.n_samples)
    share = (fixed.significance_map(1.0, correction=correction) == 0).mean(axis=1).max()
    assert share == pytest.approx(asked, abs=0.035)
    assert found.undecided[0][0] == 30
    assert found.undecided[-1][1] <= asked < found.undecided[-2][1]


def test_after_until():
    sample = run(metfa.Until(undecided=0.2, threshold=1.0))
    found = sample.plan(0.1)
    longer = run(metfa.Until(undecided=0.1, threshold=1.0))
    assert found.n_samples == pytest.approx(longer.n_samples, rel=0.35)


def test_tells_the_cost():
    sample = run(30)
    found = sample.plan(0.05, threshold=1.0)
    assert found.afresh
    assert found.more_maps == 2 * found.n_samples
    assert found.seconds == pytest.approx(found.more_maps * sample.provenance["seconds"] / 60)
    assert re.fullmatch(
        rf"5% undecided likely takes about {found.n_samples} samples: {found.more_maps} explanations, about \S+ s, in "
        rf"a new call with `n_samples={found.n_samples}` and another `rng`\. \(.*\)",
        str(found),
    )


def test_tells_the_cost_of_more_where_they_may_be_joined():
    for sample, correction in ((run(30), "e-bh"), (run(metfa.Until(undecided=0.2, threshold=1.0)), None)):
        found = sample.plan(0.05, threshold=1.0, correction=correction)
        assert not found.afresh
        assert found.more_maps == 2 * (found.n_samples - sample.n_samples)
        assert re.fullmatch(
            rf"5% undecided likely takes about {found.n_samples:,} samples: {found.more_maps:,} more explanations, "
            r"about \S+ s",
            str(found),
        )


def test_what_is_advised_can_be_done():
    """A new call with another seed, as the plan says, is decided exactly and reaches what was asked."""
    found = run(30).plan(0.1, threshold=1.0)
    fresh = metfa.explain(
        Explainer(), np.ones((2, 2000)), 0, noise=metfa.noise.Gaussian(0.5), n_samples=found.n_samples, rng=1
    )
    assert not fresh.any_time
    assert fresh.summary(1.0)[0].undecided == pytest.approx(0.1, abs=0.035)


def test_one_input_costs_what_one_costs():
    sample = run(30)
    one = sample.of_input(1).plan(0.05, threshold=1.0)
    assert one.seconds == pytest.approx(one.more_maps * sample.provenance["seconds"] / 60)


def test_a_resumed_run_goes_by_the_maps_of_its_last_call(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(30, stop_at=2 + 50, store=tmp_path / "s", batch_size=2)  # the clean inputs come first
    sample = run(30, store=tmp_path / "s", batch_size=2)
    assert 0 < (made := sample.provenance["maps_made"]) < 60
    found = sample.plan(0.05, threshold=1.0)
    assert found.seconds == pytest.approx(found.more_maps * sample.provenance["seconds"] / made)


def test_the_time_is_not_known_where_nothing_was_left_to_make(tmp_path, monkeypatch):
    def dies(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(folder, "write_manifest", dies)
        with pytest.raises(KeyboardInterrupt):
            run(30, store=tmp_path / "s")
    found = run(30, store=tmp_path / "s").plan(0.05, threshold=1.0)
    assert found.seconds is None
    assert f"{found.more_maps} explanations, in a new call" in str(found)


def test_what_is_reached_and_what_is_not():
    done = run(30).plan(0.9, threshold=1.0)
    assert (done.n_samples, done.more_maps) == (30, 0)
    assert "is reached with the 30 samples that there are" in str(done)
    never = run(30).plan(0.0, threshold=1.0, max_samples=60)
    assert never.n_samples is None
    assert str(never).startswith("0% undecided would likely take more than 60 samples (")


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
