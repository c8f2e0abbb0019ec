"""Growth by looks: a result knows at which sizes it was looked at, and joined after a look it holds at any time."""

import numpy as np
import pytest
import scipy.stats

import metfa
from metfa.stats import SequentialTestResult

SIGMA = 1.0
STEP, STEPS = 20, 10
NULL = np.zeros(400)


def part(first=0, n=STEP, levels=NULL, batch=1, **settings):
    """Samples `first` .. of normal scores about the levels, under one seed."""
    return metfa.explain(
        lambda inputs, target: inputs, np.repeat(levels[None], batch, axis=0), 0,
        noise=metfa.noise.Gaussian(SIGMA), n_samples=n, rng=0, run=metfa.Run(first_sample=first), **settings,
    )  # fmt: skip


def test_growing_until_significant_keeps_its_level():
    """400 null features, ten looks, both sides: each side is wrong with probability at most .05.

    As if each size had been fixed, .28 would be marked at some look. False alarms: P(Bin(400, .1) > 65) < 1e-3.
    """
    assert scipy.stats.binom.sf(65, 400, 0.1) < 1e-3
    grown, naive = part(), np.zeros(400, bool)
    ever = grown.significance_map(0.0)[0] != 0
    for look in range(1, STEPS):
        grown = grown.concat(part(look * STEP))
        assert grown.any_time
        ever |= grown.significance_map(0.0)[0] != 0
        naive |= metfa.stats.sign_test(grown.values[:, 0], 0.0).pvalue <= 0.1
    assert ever.sum() <= 65 < naive.sum()
    assert ever.mean() < naive.mean() / 2


def test_parts_joined_before_any_look_are_exact():
    whole = part(n=60)
    joined = part(0).concat(part(STEP)).concat(part(2 * STEP))
    assert not joined.any_time
    assert joined.grown is None
    np.testing.assert_array_equal(joined.values, whole.values)
    for correction in ("none", "bh", "by"):
        np.testing.assert_array_equal(
            joined.significance_map(0.0, correction=correction), whole.significance_map(0.0, correction=correction)
        )
    assert [str(one) for one in joined.summary(0.0)] == [str(one) for one in whole.summary(0.0)]
    assert joined.looks == [60]


@pytest.mark.parametrize(
    "look",
    [
        lambda sample: sample.significance_map(0.0),
        lambda sample: sample.summary(0.0),
        lambda sample: sample.plan(0.5, threshold=0.0, max_samples=30),
        lambda sample: sample.test(0.0),
        lambda sample: sample.confidence_interval(),
        lambda sample: sample.certified_radius(0.0),
        lambda sample: sample.certified_interval(0.1),
        lambda sample: sample.of_input(1).significance_map(0.0),
        lambda sample: sample.with_unit(1.0).significance_map(0.0),
    ],
)
def test_what_counts_as_a_look(look):
    first = part(batch=2)
    look(first)
    joined = first.concat(part(STEP, batch=2))
    assert joined.any_time
    assert joined.grown == "joined from parts after looks at 20 samples"
    assert joined.summary(0.0)[0].stopped == joined.grown
    assert isinstance(joined.test(0.0), SequentialTestResult)
    assert joined.confidence_interval().confidence_level == 0.95
    ranks = metfa.stats.sequence_ranks(40, 0.95)
    np.testing.assert_array_equal(
        joined.confidence_interval().low, metfa.stats.median_interval(joined.values, ranks=ranks).low
    )


def test_the_smoothed_map_and_the_mean_are_no_looks():
    first = part()
    for name in ("smoothed", "mean", "median", "std"):
        getattr(first, name)()
    assert not first.concat(part(STEP)).any_time


def test_a_look_at_the_later_part_counts_too():
    second = part(STEP, n=30)
    second.significance_map(0.0)
    assert part().concat(second).grown == "joined from parts after looks at 30 samples"


def test_what_is_for_a_fixed_number_is_refused():
    first = part()
    first.significance_map(0.0)
    joined = first.concat(part(STEP))
    with pytest.raises(ValueError, match=r"`correction` must hold whenever sampling stops, and 'bh'"):
        joined.significance_map(0.0, correction="bh")
    joined.significance_map(0.0, correction="e-bh")  # as the message says
    with pytest.raises(ValueError, match="`mean_interval` is for a number of samples that was fixed beforehand, but"):
        joined.mean_interval()


def test_files_keep_the_looks(tmp_path):
    first = part()
    first.significance_map(0.0)
    loaded = metfa.load(first.save(tmp_path / "seen"))
    assert loaded.looks == [STEP]
    assert loaded.concat(part(STEP)).any_time
    assert not metfa.load(part().save(tmp_path / "unseen")).concat(part(STEP)).any_time
    grown = first.concat(part(STEP))
    assert metfa.load(grown.save(tmp_path / "grown")).grown == grown.grown


def test_until_goes_on_after_looks():
    rule = metfa.Until(undecided=0.9, threshold=0.0, first=STEP)
    first = part(n=rule, levels=np.linspace(-3, 3, 400))
    first.significance_map()
    joined = first.concat(part(first.n_samples, levels=np.linspace(-3, 3, 400)))
    assert joined.stopping.added == STEP
    assert joined.summary()[0].stopped == str(joined.stopping)
