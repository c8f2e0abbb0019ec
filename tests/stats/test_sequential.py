"""E-values of the sign test: reference values, the supermartingale by enumeration, and that one may look and stop."""

import itertools
import math
import re

import numpy as np
import pytest
from scipy import integrate, special
from scipy import stats as scipy_stats

from metfa import stats
from metfa.stats.sequential import fewest_reaching, log_e_at, log_e_table
from metfa.stats.sign_null import upper_tail_table


def at_once(n, priors=(0.5, 0.5), probability=0.5):
    return stats.log_e_values(np.arange(n + 1), n, prior=priors, probability=probability)


class TestLogEValues:
    @pytest.mark.parametrize(
        ("count", "n", "expected"),
        [
            (6, 6, 3.35977), (10, 10, 5.88831), (9, 10, 2.94033), (8, 10, 1.18305), (5, 10, -1.40204),
            (15, 20, 1.559), (18, 20, 6.30368), (40, 50, 8.1417), (60, 100, 0.153018), (700, 1000, 79.2961),
        ],
    )  # fmt: skip
    def test_reference(self, count, n, expected):
        assert float(stats.log_e_values([count], n)[0]) == pytest.approx(expected, rel=2e-5)

    @pytest.mark.parametrize("probability", [0.5, 0.2, 0.9])
    @pytest.mark.parametrize("prior", [(0.5, 0.5), (1, 1), (3, 0.7)])
    def test_numerical_integration(self, prior, probability):
        law = special.betainc(prior[1], prior[0], 1 - probability) * special.beta(*prior)
        for count, n in ((6, 6), (3, 9), (0, 4), (14, 20)):

            def mixed(q, count=count, n=n):
                kernel = q ** (prior[0] - 1) * (1 - q) ** (prior[1] - 1) / law
                return (q / probability) ** count * ((1 - q) / (1 - probability)) ** (n - count) * kernel

            expected, _ = integrate.quad(mixed, probability, 1, epsabs=0, epsrel=1e-9, limit=200)
            found = stats.log_e_values([count], n, probability=probability, prior=prior)
            assert float(np.exp(found[0])) == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize("probability", [0.5, 0.3])
    @pytest.mark.parametrize("n", [0, 1, 5, 40, 1000])
    def test_is_a_martingale_where_the_hypothesis_is_at_its_edge(self, n, probability):
        """The mean of the next value, given the count so far, is the value now; so it is fair whenever one stops."""
        now = at_once(n, probability=probability)
        then = at_once(n + 1, probability=probability)
        mean = np.logaddexp(math.log(probability) + then[1:], math.log(1 - probability) + then[:-1])
        np.testing.assert_allclose(mean, now, rtol=1e-13, atol=1e-12)

    @pytest.mark.parametrize("n", [1, 6, 100])
    def test_grows_with_the_count(self, n):
        assert (np.diff(at_once(n)) > 0).all()

    def test_falls_with_the_probability(self):
        """So that what is rejected at one is rejected at all below: `proportion_bound` inverts it."""
        p = np.linspace(1e-4, 1 - 1e-4, 2000)
        for n in (1, 2, 5, 10, 30, 100, 1000):
            for count in np.unique(np.linspace(0, n, 12).astype(int)).tolist():
                assert (np.diff(log_e_at(np.full(p.size, float(count)), n, p)) < 0).all()

    def test_six_that_agree_are_the_fewest_at_five_percent(self):
        assert fewest_reaching(20) == 6
        assert math.exp(at_once(6)[-1]) == pytest.approx(28.8, abs=0.05)
        assert math.exp(stats.log_e_values([7], 7, prior=(1, 1))[0]) == pytest.approx(31.9, abs=0.05)

    def test_a_million(self):
        n = 1_000_000
        values = stats.log_e_values([0, 400_000, 500_000, 600_000, n], n)
        assert np.isfinite(values).all()
        # log E of all is n log 2 + log B(n + a, b) - log B(a, b), cut to half of the law
        expected = n * math.log(2) + math.lgamma(n + 0.5) - math.lgamma(n + 1) - math.log(math.pi) / 2 + math.log(2)
        assert values[-1] == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("n", [10, 1000])  # by a table, and one by one
    def test_all_libraries_and_dtypes(self, backend, n):
        counts = np.array([[0, 3, 9] * 3, [10, 5, 8] * 3])
        given = backend.make(counts)
        if backend.is_floating:
            with pytest.raises(TypeError, match="`counts` must be integers, got"):
                stats.log_e_values(given, n)
            return
        found = stats.log_e_values(given, n)
        assert type(found) is type(given)
        np.testing.assert_allclose(backend.host(found), log_e_table(n)[counts], rtol=1e-6)

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"counts": [1.5]}, TypeError, "`counts` must be integers, got float64"),
            ({"counts": [11]}, ValueError, "`counts` must lie in 0..10, the number of samples, got 11..11"),
            ({"counts": [-1]}, ValueError, "got -1..-1"),
            ({"n": 2_000_000}, ValueError, "at most 1,000,000, got 2000000"),
            ({"n": 1.0}, TypeError, "`n` must be an integer, got float: 1.0"),
            ({"probability": 1}, ValueError, "`probability` must lie strictly between 0 and 1, got 1"),
            ({"probability": 0}, ValueError, "`probability` must lie strictly between 0 and 1, got 0"),
            ({"prior": (1, 0)}, ValueError, "`prior` must be finite and above 0, got 0"),
            ({"prior": 1}, TypeError, "`prior` must be a pair (a, b) of a Beta law, got int: 1"),
        ],
    )
    def test_bad_input(self, settings, error, message):
        given = {"counts": [5], "n": 10, **settings}
        with pytest.raises(error, match=re.escape(message)):
            stats.log_e_values(**given)


class TestTest:
    def test_by_hand(self):
        samples = np.array([[1.0, 0, -1], [2, 0, -1], [-1, 0, -3], [4, 5, 0]])
        found = stats.sequential_test(samples, 0)
        np.testing.assert_array_equal(found.above, [3, 1, 0])
        np.testing.assert_array_equal(found.below, [1, 0, 3])
        np.testing.assert_array_equal(found.sign, [1, 1, -1])
        table = log_e_table(4)
        np.testing.assert_allclose(found.log_e_above, table[[3, 1, 0]])
        np.testing.assert_allclose(found.log_e_below, table[[1, 0, 3]])
        np.testing.assert_allclose(found.pvalue, np.minimum(1, 2 * np.exp(-table[[3, 1, 3]])))
        for alternative, counts in (("greater", [3, 1, 0]), ("less", [1, 0, 3])):
            one = stats.sequential_test(samples, 0, alternative=alternative)
            np.testing.assert_allclose(one.pvalue, np.minimum(1, np.exp(-table[counts])))

    def test_all_libraries_and_dtypes(self, backend):
        samples = backend.make(np.random.default_rng(0).normal(7, 10, (30, 2, 3)).round())
        found = stats.sequential_test(samples, 5)
        plain = stats.sign_test(samples, 5)
        for name in ("above", "below", "sign"):
            np.testing.assert_array_equal(backend.host(getattr(found, name)), backend.host(getattr(plain, name)))
        for name, counts in (("log_e_above", found.above), ("log_e_below", found.below)):
            assert type(getattr(found, name)) is type(plain.pvalue)
            assert getattr(found, name).dtype == plain.pvalue.dtype
            np.testing.assert_allclose(
                backend.host(getattr(found, name)), log_e_table(30)[backend.host(counts)], rtol=1e-5
            )
        pvalues, least = backend.host(found.pvalue), backend.host(plain.pvalue)
        assert (pvalues >= least - 1e-6).all()  # what it costs to look at any time

    @pytest.mark.slow
    def test_one_may_look_after_every_sample(self):
        """False alarms of runs of 1,000 fair samples. By chance beyond the bounds: less than once in 10,000."""
        rng = np.random.default_rng(0)
        ever, naive, runs = 0, 0, 4000
        n = np.arange(1, 1001)
        limits = np.array([np.searchsorted(log_e_table(k), math.log(20)) for k in n.tolist()])
        plain = np.array([np.searchsorted(-upper_tail_table(k), -0.05) for k in n.tolist()])
        for _ in range(runs):
            counts = np.cumsum(rng.integers(0, 2, 1000))
            ever += bool((counts >= limits).any())
            naive += bool((counts >= plain).any())
        assert ever / runs <= 0.05 + 3.8 * math.sqrt(0.05 * 0.95 / runs)
        assert ever / runs > 0.02  # it is no empty promise either
        assert naive / runs > 0.3

    @pytest.mark.slow
    def test_a_threshold_from_the_samples_themselves_does_no_harm(self):
        """The rule looks at all samples at each look, and stops when it likes what it sees."""
        rng = np.random.default_rng(1)
        wrong, runs, features = 0, 600, 40
        for _ in range(runs):
            samples = rng.normal(0, 1, (120, features))
            for n in (10, 20, 40, 80, 120):
                height = np.quantile(samples[:n], 0.4)  # somewhere below the medians, which are 0
                found = stats.sequential_test(samples[:n], height)
                false = (found.log_e_below >= math.log(20)) & (height < 0)  # "median below h", though it is 0 > h
                if false[0]:
                    wrong += 1
                    break
        assert wrong / runs <= 0.05 + 3.8 * math.sqrt(0.05 * 0.95 / runs)

    def test_refuses_nan(self):
        with pytest.raises(ValueError, match="`samples` must be free of NaN, got 1"):
            stats.sequential_test(np.array([[1.0, np.nan]]), 0)


class TestIntervals:
    @pytest.mark.parametrize("n", [7, 8, 20, 63])
    @pytest.mark.parametrize("level", [0.5, 0.95])
    def test_are_the_thresholds_that_are_not_rejected(self, n, level):
        samples = np.random.default_rng(n).permutation(np.arange(1.0, n + 1))
        ranks = stats.sequence_ranks(n, level)
        interval = stats.median_interval(samples, ranks=ranks)
        for height in np.arange(0.5, n + 1, 0.5):
            found = stats.sequential_test(samples, height)
            rejected = max(float(found.log_e_above), float(found.log_e_below)) >= math.log(2 / (1 - level))
            assert rejected == (not interval.low <= height <= interval.high)

    def test_too_few(self):
        with pytest.raises(ValueError, match=r"too few samples .*0\.95 at any time: got 6, at least 7 are needed"):
            stats.sequence_ranks(6)
        assert stats.sequence_ranks(7).low == 1

    def test_cover_at_all_looks_together(self):
        rng = np.random.default_rng(2)
        runs, looks = 4000, [10, 15, 22, 33, 50, 75, 110]
        samples = rng.standard_cauchy((110, runs))
        interval = stats.confidence_sequence(samples, looks)
        missed = ((interval.low > 0) | (interval.high < 0)).mean()
        assert missed <= 0.05 + 3.8 * math.sqrt(0.05 * 0.95 / runs)
        last = stats.median_interval(samples, ranks=stats.sequence_ranks(110))
        assert (interval.low >= last.low).all()
        assert (interval.high <= last.high).all()
        assert (interval.high - interval.low).mean() < (last.high - last.low).mean()

    def test_nothing_in_common_is_told_as_such(self):
        drifting = np.concatenate([np.zeros(30), np.full(300, 9.0)])
        interval = stats.confidence_sequence(drifting, [30, 330])
        assert (float(interval.low), float(interval.high)) == (9.0, 0.0)

    @pytest.mark.parametrize(
        ("looks", "message"),
        [([], "`looks` is empty"), ([30], "`looks` must not exceed the number of samples, 20, got 30")],
    )
    def test_bad_looks(self, looks, message):
        with pytest.raises(ValueError, match=message):
            stats.confidence_sequence(np.arange(20.0), looks)

    def test_a_single_number_is_no_list_of_looks(self):
        with pytest.raises(TypeError, match="`looks` must be a sequence of numbers of samples, got int: 10"):
            stats.confidence_sequence(np.arange(20.0), 10)


class TestEBH:
    def test_against_a_slow_one(self):
        rng = np.random.default_rng(3)
        for m, alpha in itertools.product((1, 7, 40), (0.01, 0.05, 0.3)):
            logs = rng.normal(2, 3, m)
            e_values = np.exp(logs)
            ordered = np.sort(e_values)[::-1]
            rejected = [r for r in range(1, m + 1) if ordered[r - 1] >= m / (alpha * r)]
            expected = e_values >= (ordered[max(rejected) - 1] if rejected else np.inf)
            np.testing.assert_array_equal(stats.e_bh(logs) <= alpha, expected)

    def test_all_libraries_and_dtypes(self, backend):
        logs = np.array([[5.0, 3, -1], [2, 9, 90]])
        given = backend.make(logs)
        found = stats.e_bh(given, axis=1)
        assert type(found) is type(given)
        assert found.shape == given.shape
        if backend.is_floating:
            assert found.dtype == given.dtype
        np.testing.assert_allclose(backend.host(found), [stats.e_bh(row) for row in logs], rtol=1e-2, atol=1e-7)

    @pytest.mark.parametrize(
        ("n", "by_method"),
        [
            (10, {None: 0.732, "bh": 0.732, "by": 0.490, "e-bh": 0.490, "bonferroni": 0}),
            (15, {None: 0.837, "bh": 0.837, "by": 0.630, "e-bh": 0.630, "bonferroni": 0}),
            (20, {None: 0.875, "bh": 0.875, "by": 0.777, "e-bh": 0.777, "bonferroni": 0.336}),
            (50, {None: 0.928, "bh": 0.919, "by": 0.889, "e-bh": 0.877, "bonferroni": 0.789}),
            (200, {None: 0.960, "bh": 0.954, "by": 0.939, "e-bh": 0.928, "bonferroni": 0.908}),
        ],
    )
    def test_what_it_costs_beside_the_others(self, n, by_method):
        """20,000 features, of which most lie clearly on one side; shares decided at .05.

        Here as many have each count as the law says; the table is of one draw, whose error is .003.
        """
        laws = ((0.7, 1, 12), (0.2, 12, 1), (0.1, 8, 8))
        shares = sum(part * scipy_stats.betabinom.pmf(np.arange(n + 1), n, a, b) for part, a, b in laws)
        counts = np.repeat(np.arange(n + 1), np.rint(20_000 * shares).astype(int))
        exact = np.minimum(1, 2 * upper_tail_table(n)[np.maximum(counts, n - counts)])
        both = np.stack([stats.log_e_values(counts, n), stats.log_e_values(n - counts, n)])
        for method, expected in by_method.items():
            if method == "e-bh":
                decided = (stats.e_bh(both) <= 0.05).any(0)
            else:
                decided = stats.correct(exact, method) <= (0.1 if method is None else 0.05)
            assert decided.mean() == pytest.approx(expected, abs=0.009)

    @pytest.mark.parametrize(("value", "count"), [(np.nan, 1), (np.inf, 1)])
    def test_bad_input(self, value, count):
        with pytest.raises(ValueError, match=f"`log_e_values` must be below infinity, got {count}"):
            stats.e_bh([1.0, value])

    def test_is_no_correction_of_pvalues(self):
        with pytest.raises(ValueError, match=re.escape("write metfa.stats.e_bh(log_e_values)")):
            stats.correct([0.1], "e-bh")

    @pytest.mark.slow
    def test_false_discoveries_of_dependent_features_that_are_looked_at(self):
        """Blocks of 16 equal pixels, half of them null, stopped at the look with the most discoveries."""
        rng = np.random.default_rng(4)
        shares = []
        for _ in range(300):
            medians = np.repeat(np.where(np.arange(20) < 10, 0.0, 0.8), 16)
            drawn = np.repeat(rng.normal(0, 1, (60, 20)), 16, axis=1) + medians
            best = (-1, 0.0)
            for n in (8, 12, 20, 35, 60):
                found = stats.sequential_test(drawn[:n], 0)
                both = np.concatenate([found.log_e_above, found.log_e_below])
                rejected = (stats.e_bh(both) <= 0.1).reshape(2, -1)
                false = rejected[:, medians == 0].sum() + rejected[1, medians > 0].sum()
                best = max(best, (int(rejected.sum()), float(false / max(rejected.sum(), 1))))
            shares.append(best[1])
        assert np.mean(shares) <= 0.1 + 3.8 * np.std(shares) / math.sqrt(len(shares))
