"""Families of tests: each statement on its own, by histograms as by sorting; older results keep one family for both."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import metfa
from metfa import stats
from metfa.results.decisions import any_time_undecided
from metfa.results.families import histograms, least_counts, samples_needed, undecided_share
from metfa.results.outlook import SidesLaw
from metfa.results.terms import Terms
from metfa.stats.sequential import log_e_table, reciprocal_table
from metfa.stats.sign_null import upper_tail_table

FIXED = (None, "bonferroni", "holm", "bh", "by", "e-bh", "closed-e-bh")
ANY_TIME = (None, "bonferroni", "e-bh", "closed-e-bh")
CASES = [*product([False], FIXED), *product([True], ANY_TIME)]


def slow_marks(above, below, n, terms, *, any_time):
    """Marks of one input by `stats.correct` and `stats.closed_e_bh`, which sort all features of a family."""
    if terms.correction == "closed-e-bh":
        logs = log_e_table(n)
        if terms.families == "both":
            larger = np.maximum(above, below)
            rejected = stats.closed_e_bh(np.where(2 * larger > n, logs[larger], logs[0]) - np.log(2), terms.alpha)
            return np.where(rejected & (logs[larger] > np.log(2)), np.sign(above - below), 0)
        up, down = (stats.closed_e_bh(logs[counts], terms.alpha) & (logs[counts] > 0) for counts in (above, below))
        return up.astype(int) - down
    e_values = any_time or terms.correction == "e-bh"
    tails = reciprocal_table(n) if e_values else upper_tail_table(n)
    method = "bh" if terms.correction == "e-bh" else terms.correction
    if terms.families == "both" and method is not None:
        adjusted = stats.correct(np.minimum(1, 2 * tails[np.maximum(above, below)]), method)
        return np.where(adjusted <= terms.alpha, np.sign(above - below), 0)
    up, down = (stats.correct(tails[counts], method) <= terms.alpha for counts in (above, below))
    assert not (up & down).any()
    return up.astype(int) - down


def drawn(rng, n, m):
    """Counts with ties, of features on one side, on both and on neither."""
    chances = rng.choice([0.02, 0.3, 0.5, 0.7, 0.98], m)
    untied = rng.binomial(n, rng.choice([1.0, 0.9], m))
    above = rng.binomial(untied, chances)
    return above, untied - above


@pytest.mark.parametrize("families", ["statements", "both"])
@pytest.mark.parametrize(("any_time", "correction"), CASES)
def test_histograms_decide_as_sorting_does(any_time, correction, families):
    rng = np.random.default_rng(5)
    for n, m, alpha in product((6, 13, 40), (1, 7, 300), (0.01, 0.05, 0.3, 0.499)):
        above, below = drawn(rng, n, m)
        terms = Terms(0.0, alpha, correction, families=families)
        up, down = histograms(above, below, n)
        assert (up.sum(), down.sum()) == (m, m)
        least = least_counts(up, down, terms, any_time=any_time)
        marks = (above >= least[0]).astype(int) - (below >= least[1])
        expected = slow_marks(above, below, n, terms, any_time=any_time)
        np.testing.assert_array_equal(marks, expected)
        share = undecided_share(up, down, terms, any_time=any_time)
        assert share == pytest.approx((expected == 0).mean(), abs=1e-12)
        if any_time:
            assert any_time_undecided(above[None], below[None], n, terms) == [share]


@pytest.mark.parametrize(("any_time", "correction"), CASES)
@pytest.mark.parametrize("families", ["statements", "both"])
def test_the_least_number_of_samples_is_that_of_the_rule(any_time, correction, families):
    """With one less nothing is marked, even if all samples of all features agree; with it something may be."""
    for m, alpha in product((1, 3, 50), (0.05, 0.2)):
        terms = Terms(0.0, alpha, correction, families=families)
        needed = samples_needed(terms, m, any_time=any_time)
        for n, marked in ((needed - 1, False), (needed, True)):
            up, down = histograms(np.full(m, n), np.zeros(m, int), n)
            assert (undecided_share(up, down, terms, any_time=any_time) == 0) == marked, (m, alpha, n)


@pytest.mark.parametrize(
    ("correction", "m", "needed"),
    [
        ("holm", 50, 10),
        ("bonferroni", 50_176, 20),
        (None, 50_176, 5),
        ("bh", 50_176, 5),
        ("e-bh", 50_176, 6),
        ("closed-e-bh", 50_176, 6),
    ],
)
def test_least_numbers_that_the_documentation_names(correction, m, needed):
    assert samples_needed(Terms(correction=correction), m) == needed
    old = {"holm": 11, "bonferroni": 21, None: 5, "bh": 6, "e-bh": 7, "closed-e-bh": 7}[correction]
    assert samples_needed(Terms(correction=correction, families="both"), m) == old


@pytest.mark.parametrize(("correction", "alone", "together"), [("bh", 0.003, 0.45), ("by", 0, 0.06), ("e-bh", 0, 0.02)])
def test_the_rate_is_that_of_the_important_marks(correction, alone, together):
    """90 % of the features lie clearly below the threshold, 9.8 % at it, .2 % one standard deviation above.

    With one family for both statements, at most 5 % of all marks are false, but of the few important ones nearly half.
    """
    rng, n = np.random.default_rng(0), 50
    groups = (0.0013, 9000), (0.5, 980), (0.8413, 20)  # normal laws 3 deviations below, at, and 1 above
    rates = {"statements": [], "both": []}
    for _ in range(150):
        counts = np.concatenate([rng.binomial(n, chance, size) for chance, size in groups])
        for families, found in rates.items():
            terms = Terms(0.0, 0.05, correction, families=families)
            least, _ = least_counts(*histograms(counts, n - counts, n), terms, any_time=False)
            important = counts >= least
            found.append(important[:9980].sum() / max(important.sum(), 1))
    assert np.mean(rates["statements"]) == pytest.approx(alone, abs=0.01)
    assert np.mean(rates["both"]) == pytest.approx(together, abs=0.02)


def test_no_statement_is_false_more_often_than_its_level():
    """Family-wise: each statement in at most alpha of the runs, both together in at most 2 alpha; all medians tie."""
    rng, n, runs = np.random.default_rng(1), 30, 4000
    above = rng.binomial(n, 0.5, (runs, 20))
    false = np.zeros((runs, 2), bool)
    terms = Terms(0.0, 0.1, "holm")
    for run, counts in enumerate(above):
        up, down = least_counts(*histograms(counts, n - counts, n), terms, any_time=False)
        false[run] = (counts >= up).any(), (n - counts >= down).any()
    error = 3.5 * np.sqrt(0.1 * 0.9 / runs)
    assert (false.mean(0) <= 0.1 + error).all()
    assert false.any(1).mean() <= 0.2 + error


def linear(x, target):
    return np.linspace(-2, 3, 30) * x


def sample_of(n_samples=40, first_sample=0):
    noise, kept = metfa.noise.Gaussian(0.8), metfa.Run(first_sample=first_sample)
    return metfa.explain(linear, np.ones((2, 30)), 0, noise=noise, n_samples=n_samples, rng=0, run=kept)


def aged(folder):
    """The file as it was written before results said which tests are corrected together."""
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["provenance"].pop("families") == "statements"
    if manifest["default_terms"] is not None:
        del manifest["default_terms"]["families"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return metfa.load(folder)


class TestOnFile:
    @pytest.mark.parametrize("own", [None, Terms(1.0, correction="bh")])
    def test_a_result_from_before_keeps_one_family_and_says_so(self, own, tmp_path):
        sample = replace(sample_of(), default_terms=own)
        old = aged(sample.save(tmp_path / "old"))
        assert (sample.families, old.families) == ("statements", "both")
        for correction in ("bonferroni", "holm", "bh", "by", "e-bh"):
            marks = old.significance_map(1.0, correction=correction)
            for row in range(2):
                above, below = ((old.values[:, row] > 1).sum(0), (old.values[:, row] < 1).sum(0))
                terms = Terms(1.0, correction=correction, families="both")
                np.testing.assert_array_equal(marks[row], slow_marks(above, below, 40, terms, any_time=False))
        assert (old.significance_map(1.0, correction="bh") != sample.significance_map(1.0, correction="bh")).any()
        said = str(old.summary(1.0, correction="bh")[0])
        assert "on average at most 5% of all marks together (important and unimportant) are false" in said
        assert "(alpha 0.05, bh over both sides together)" in said
        assert "over both sides together" not in str(sample.summary(1.0, correction="bh")[0])

    def test_it_stays_so_when_it_is_saved_cut_joined_and_given_terms(self, tmp_path):
        old = aged(sample_of().save(tmp_path / "old"))
        again = metfa.load(old.save(tmp_path / "again"))
        more = sample_of(5, first_sample=40)
        for kept in (
            again,
            old.of_input(1),
            old.with_unit(2.0),
            replace(old, default_terms=Terms(1.0)),
            old.concat(more),
        ):
            assert kept.families == kept.terms(1.0).families == "both"
        assert old.decide(Terms(1.0, correction="bh")).terms.families == "both"
        new = replace(old.terms(1.0, correction="bh"), families="statements")
        np.testing.assert_array_equal(old.decide(new).marks, sample_of().significance_map(1.0, correction="bh"))

    def test_a_new_result_says_it(self, tmp_path):
        for sample in (sample_of(), sample_of(metfa.Until(undecided=0.5, threshold=1.0))):
            folder = sample.save(tmp_path / str(sample.n_samples))
            assert json.loads((folder / "manifest.json").read_text())["provenance"]["families"] == "statements"
            assert metfa.load(folder).families == "statements"

    def test_another_word_is_refused(self, tmp_path):
        folder = sample_of().save(tmp_path / "saved")
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["provenance"]["families"] = "each"
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(ValueError, match=r"manifest\.json is damaged: .*must be 'statements' or 'both', got str"):
            metfa.load(folder)
        with pytest.raises(ValueError, match=r"`families` must be 'statements' .*got 'statement', did you mean"):
            Terms(families="statement")


def test_expected_counts_of_more_samples_are_those_of_the_law():
    """As many features as there are, on either side, and no more above than there are samples."""
    rng = np.random.default_rng(2)
    above, below = drawn(rng, 30, 500)
    up, down = SidesLaw.of(above, below).counts(30, 25, afresh=False)
    assert len(up) == len(down) == 56
    assert (up.sum(), down.sum()) == pytest.approx((500, 500))
    drawn_up = np.bincount(above, minlength=56)
    assert up.cumsum()[:30].max() <= drawn_up.cumsum()[29] + 1e-9
    fresh = SidesLaw.of(above, below).counts(30, 30, afresh=True)
    for expected, counts in zip(fresh, (above, below), strict=True):
        assert expected @ np.arange(31) == pytest.approx(counts.sum(), rel=0.05)


class TestClosed:
    def test_marks_no_fewer_than_e_bh(self):
        rng, more = np.random.default_rng(3), 0
        for _ in range(40):
            above, below = drawn(rng, 30, 200)
            up, down = histograms(above, below, 30)
            closed, plain = (
                least_counts(up, down, Terms(0.0, correction=name), any_time=True) for name in ANY_TIME[:1:-1]
            )
            assert np.less_equal(closed, plain).all()
            assert min(closed) > 15
            more += closed != plain
        assert more > 10

    def test_a_threshold_from_the_tested_samples_is_decided_by_e_bh_and_says_so(self, tmp_path):
        sample = sample_of()
        rule = np.median
        closed, plain = (sample.decide(sample.terms(rule, correction=name)) for name in ("closed-e-bh", "e-bh"))
        np.testing.assert_array_equal(closed.marks, plain.marks)
        assert (closed.terms.in_effect, closed.terms.unproven) == ("e-bh", True)
        said = "alpha 0.05 a side, closed-e-bh, unproven with a threshold from the same samples and so decided by e-bh"
        assert closed.terms.level == said
        assert said in str(sample.summary(rule, correction="closed-e-bh")[0])
        page = (
            sample.of_input(0).report(tmp_path / "r.html", threshold=rule, correction="closed-e-bh").read_text("utf-8")
        )
        assert f"{said})" in page
        assert "under any dependence and whenever sampling stops; the same for those called unimportant)." in page
        for fixed in ({"threshold": rule, "split": 5}, {"threshold": 1.0}):
            found = sample.terms(**fixed, correction="closed-e-bh")
            assert (found.in_effect, found.unproven) == ("closed-e-bh", False)
        assert "(threshold given; assumed chosen without these samples)" in str(
            sample.summary(1.0, correction="closed-e-bh")[0]
        )
        assert "assumed" not in str(sample.summary(rule, split=5, correction="closed-e-bh")[0])

    def test_until_decides_by_it(self):
        found = sample_of(metfa.Until(undecided=0.2, max_samples=200))
        assert found.stopping.correction == found.terms().in_effect == "closed-e-bh"
        assert (found.significance_map() == 0).mean(1).max() == found.stopping.looks[-1].undecided <= 0.2
        radius, marks = found.certified_radius(), found.significance_map()
        assert not radius[marks == 0].any()
        assert (radius[found.significance_map(correction="e-bh") != 0] > 0).all()

    def test_the_rate_of_dependent_features_that_are_looked_at(self):
        """Blocks of 8 equal features, half of them null, stopped at the look with the most important ones."""
        rng, shares = np.random.default_rng(4), []
        terms = Terms(0.0, 0.1, "closed-e-bh")
        for _ in range(400):
            chances = np.where(np.arange(20) < 10, 0.5, 0.8)
            samples, best = np.repeat(rng.random((60, 20)) < chances, 8, axis=1), (-1, 0.0)
            for n in (8, 12, 20, 35, 60):
                above = samples[:n].sum(0)
                least, _ = least_counts(*histograms(above, n - above, n), terms, any_time=True)
                marked = above >= least
                best = max(best, (int(marked.sum()), float(marked[:80].sum() / max(marked.sum(), 1))))
            shares.append(best[1])
        assert np.mean(shares) <= 0.1 + 3.8 * np.std(shares) / np.sqrt(len(shares))
