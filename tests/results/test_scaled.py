"""Maps that are scaled each by itself: against a slow implementation, and what carries over from the result."""

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

import metfa
from metfa import stats

INPUTS = np.abs(np.random.default_rng(0).normal(size=(2, 5, 4))) + 0.1
MASK = np.arange(4) < np.full((5, 4), 2)


def maps(inputs, target):
    return np.round(inputs**2, 1)  # with ties


maps.rows_independent = True


def sampled(explainer=maps, inputs=INPUTS, **settings):
    given = {"noise": metfa.noise.Gaussian(0.2), "n_samples": 20, "rng": 0, **settings}
    return metfa.explain(explainer, inputs, 0, **given)


@pytest.fixture(scope="module")
def sample():
    return sampled()


def by_hand(scores, scale):
    flat = scores.astype(np.float64).ravel()
    found = {
        "mean": lambda: flat / np.mean(np.abs(flat)),
        "share": lambda: flat / np.sum(np.abs(flat)),
        "rank": lambda: scipy.stats.rankdata(flat) / flat.size,
    }[scale]()
    return found.reshape(scores.shape)


@pytest.mark.parametrize("scale", ["mean", "share", "rank"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int32])
def test_maps_are_those_by_hand(sample, scale, dtype):
    made = (lambda values: values.astype(dtype))(sample.values * 3 - 2)
    vanilla = (sample.vanilla * 3 - 2).astype(dtype)
    scaled = replace(sample, values=made, vanilla=vanilla).scaled(scale)
    assert scaled.values.dtype == scaled.vanilla.dtype == np.float64
    for row in range(2):
        np.testing.assert_allclose(scaled.vanilla[row], by_hand(vanilla[row], scale))
        for number in range(20):
            np.testing.assert_allclose(scaled.values[number, row], by_hand(made[number, row], scale))


def test_the_scale_of_the_maps_makes_no_difference(sample):
    for factor in (1e-300, 1e-3, 1e300):
        other = replace(sample, values=sample.values * factor, vanilla=sample.vanilla * factor)
        for scale in ("mean", "share"):
            np.testing.assert_allclose(other.scaled(scale).values, sample.scaled(scale).values, rtol=1e-9)


def test_ranks_and_their_threshold(sample):
    ranks = sampled(lambda inputs, target: inputs, np.linspace(0, 60, 100)[None]).scaled("rank")
    assert ranks.terms().threshold == 0.95
    assert ranks.unit == 1.0
    assert not ranks.signed
    assert np.count_nonzero(ranks.vanilla > 0.95) == 5  # the top 5 %
    assert ranks.vanilla.max() == 1
    assert np.flatnonzero(ranks.significance_map()[0] > 0).tolist() == [95, 96, 97, 98, 99]
    assert ranks.guarantee(np.arange(100) >= 98).important.tolist() == [2]
    zeros = replace(sample, values=np.zeros_like(sample.values), vanilla=np.zeros_like(sample.vanilla))
    assert (zeros.scaled("rank").values == 10.5 / 20).all()  # all features share one rank


def test_what_carries_over(sample):
    scaled = sample.scaled("mean")
    assert repr(scaled) == repr(sample).replace("explainer=", "explainer=multiples of the mean, ")
    for name in ("inputs", "target", "sample_ids", "input_names", "scores"):
        assert getattr(scaled, name) is getattr(sample, name) or np.array_equal(
            getattr(scaled, name), getattr(sample, name)
        )
    assert scaled.looks is sample.looks  # of the same samples
    assert scaled.provenance["rng"] == sample.provenance["rng"]
    assert (
        scaled.of_input(1).scaled("share").provenance["explainer"].startswith("shares of the sum, multiples of the m")
    )


def test_certificates_hold_for_the_scaled_maps(sample):
    radius = sample.scaled("mean").certified_radius(1.0)
    assert (radius > 0).any()
    ones = replace(sample, values=sample.scaled("mean").values)
    np.testing.assert_array_equal(radius, ones.certified_radius(1.0))


def test_a_signed_map_is_scaled_by_its_absolute_scores():
    signed = sampled(lambda inputs, target: inputs - 1)
    scaled = signed.scaled("mean")
    assert scaled.signed
    assert scaled.terms().threshold == 0
    np.testing.assert_allclose(np.abs(scaled.values).mean(axis=(2, 3)), 1)
    np.testing.assert_array_equal(np.sign(scaled.values), np.sign(signed.values))
    np.testing.assert_allclose(np.abs(signed.scaled("share").values).sum(axis=(2, 3)), 1)


def test_units_and_default_terms_are_of_the_scaled_maps():
    def explainer(inputs, target):
        return inputs

    explainer.unit = 7.0
    sample = sampled(explainer)
    assert sample.unit == 7.0
    assert (sample.scaled("mean").unit < 5).all()
    given = replace(sample, default_terms=metfa.Terms(0.3, alpha=0.01, unit=2.0))
    assert given.scaled("mean").default_terms is None  # 0.3 was a number of the other scale
    zero = replace(sample, default_terms=metfa.Terms(0.0, alpha=0.01, unit=2.0)).scaled("mean").terms()
    assert (zero.threshold, zero.alpha) == (0.0, 0.01)
    assert (zero.unit < 5).all()
    rule = replace(sample, default_terms=metfa.Terms(stats.jenks, alpha=0.01)).scaled("share").default_terms
    assert rule.threshold is stats.jenks
    assert rule.alpha == 0.01


def test_after_until_tests_hold_at_any_time_but_its_thresholds_are_dropped(tmp_path):
    until = sampled(n_samples=metfa.Until(undecided=0.5, width=5.0, max_samples=60))
    scaled = until.scaled("mean")
    assert scaled.any_time
    assert scaled.terms().split == 0
    assert until.terms().split > 0
    assert isinstance(scaled.test(1.0), stats.SequentialTestResult)
    with pytest.raises(ValueError, match="'holm' is for a number of samples that was fixed beforehand"):
        scaled.significance_map(1.0, correction="holm")
    assert re.search(r"of the unscaled features undecided.*intervals of the unscaled features", str(scaled.stopping))
    back = metfa.load(scaled.save(tmp_path / "scaled"))
    assert back.stopping == scaled.stopping
    assert back.terms(1.0) == scaled.terms(1.0)
    np.testing.assert_array_equal(back.scaled("rank").values, until.scaled("rank").values)


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
def test_after_a_rule_that_found_no_threshold(tmp_path):
    flat = sampled(lambda inputs, target: 1 + 0 * inputs, n_samples=metfa.Until(undecided=0.5, max_samples=30))
    assert flat.stopping.reason == "no_threshold"
    for other, noun in (
        (flat.scaled("rank"), "unscaled feature"),
        (flat.over(np.arange(20).reshape(5, 4) // 10), "single"),
    ):
        assert f"the rule found no threshold for the {noun}" in str(other.stopping)
        assert metfa.load(other.save(tmp_path / noun)).stopping == other.stopping


def test_of_a_store(tmp_path, sample):
    stored = sampled(run=metfa.Run(store=tmp_path / "store"))
    assert isinstance(stored.values, np.memmap)
    np.testing.assert_array_equal(stored.scaled("rank").values, sample.scaled("rank").values)


def test_before_and_after_pooling(sample):
    halves = metfa.Regions(MASK * 1)
    shares = sample.scaled("share").over(halves, how="sum")
    np.testing.assert_allclose(shares.values.sum(axis=2), 1)
    pooled = sample.over(halves).scaled("mean")
    np.testing.assert_allclose(pooled.values.mean(axis=2), 1)
    with pytest.raises(ValueError, match=r"differences between regions: write `sample.scaled\(...\).over\(regions\)`"):
        sample.over(halves, against="rest").scaled("mean")
    sample.scaled("mean").over(halves, against="rest")  # as advised


def test_joined_parts_have_one_scale(sample):
    later = sampled(run=metfa.Run(first_sample=20))
    both = sample.concat(later).scaled("mean")
    np.testing.assert_array_equal(sample.scaled("mean").concat(later.scaled("mean")).values, both.values)
    with pytest.raises(ValueError, match="`other` was made with explainer="):
        sample.scaled("mean").concat(later)


@pytest.mark.parametrize("scale", ["mean", "share"])
def test_maps_of_zeros_are_refused_by_name(sample, scale):
    values, vanilla = sample.values.copy(), sample.vanilla.copy()
    values[7, 1] = 0
    broken = replace(sample, values=values)
    message = f"`scale` '{scale}': sample 7 of input 1 ({sample.input_names[1]}) is 0 everywhere"
    with pytest.raises(ValueError, match=re.escape(message)):
        broken.scaled(scale)
    broken.scaled("rank")  # as advised
    broken.of_input(0).scaled(scale)
    vanilla[0] = 0
    with pytest.raises(ValueError, match="the map without noise of input 0"):
        replace(sample, vanilla=vanilla).scaled(scale)


def test_other_scales_are_refused(sample):
    with pytest.raises(ValueError, match="`scale` must be one of 'mean', 'share', 'rank', got 'ranks', did you mean"):
        sample.scaled("ranks")
    with pytest.raises(TypeError, match="`scale` must be one of 'mean', 'share', 'rank', got int: 2"):
        sample.scaled(2)


class TestRounding:
    """Scores that differ by rounding share a rank; a smooth map keeps its ranks."""

    def ranks(self, scores):
        scores = np.asarray(scores)
        made = sampled(lambda inputs, target: np.broadcast_to(scores, (len(inputs), *scores.shape)), INPUTS[:1])
        return made.scaled("rank").vanilla[0]

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_dust_about_a_score_is_one_rank(self, dtype):
        dust = 1e-7 * np.random.default_rng(0).uniform(-1, 1, 5)
        scores = np.concatenate([[3.0, 2.0, 1.0], dust]).astype(dtype)
        np.testing.assert_array_equal(self.ranks(scores), np.array([8, 7, 6, 3, 3, 3, 3, 3]) / 8)
        np.testing.assert_array_equal(self.ranks(1e-20 * scores), self.ranks(scores))
        assert len(set(self.ranks((0.1 + dust).astype(dtype)))) == 1

    def test_the_order_of_the_features_makes_no_difference(self):
        rng = np.random.default_rng(0)
        scores = np.round(rng.normal(size=1000), 4) + 1e-6 * rng.normal(size=1000)
        shuffled = rng.permutation(1000)
        np.testing.assert_array_equal(self.ranks(scores)[shuffled], self.ranks(scores[shuffled]))

    @pytest.mark.parametrize("law", ["uniform", "normal", "lognormal"])
    def test_a_smooth_map_keeps_its_order(self, law):
        drawn = getattr(np.random.default_rng(0), law)(size=60_000).astype(np.float32)
        scores = np.unique(drawn)[::-1][:50_176]
        assert len(scores) == 50_176
        found, plain = self.ranks(scores), scipy.stats.rankdata(scores) / scores.size
        assert np.diff(found).max() <= 0
        assert np.corrcoef(found, plain)[0, 1] > 0.99999
        assert np.abs(found - plain).max() < 1e-3

    def test_dust_makes_no_change(self):
        place = np.arange(8)
        settings = {"noise": metfa.noise.Gaussian(0.1), "n_samples": 20, "rng": 0, "scale": "rank"}

        def with_dust(size):
            return lambda inputs, target: np.array([3.0, 2, 1, 0, 0, 0, 0, 0]) + size * place + 0 * inputs

        dust = metfa.compare(with_dust(1e-12), with_dust(-1e-12), np.ones((1, 8)), 0, **settings)
        assert not dust.significance_map().any()
        assert not dust.changed(delta=0.0).any()
        real = metfa.compare(with_dust(1e-2), with_dust(-1e-2), np.ones((1, 8)), 0, **settings)
        assert real.significance_map().any()
