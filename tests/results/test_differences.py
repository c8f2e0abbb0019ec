"""Paired differences: numbers against NumPy, what carries over, what is saved, and every wrong pairing."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

import metfa
from metfa.results.differences import difference_of

INPUTS = np.random.default_rng(0).normal(size=(3, 4)) + 3
OLD, NEW = np.array([3.0, 0.0, -2.0, 1.0]), np.array([3.0, 0.0, -2.0, 5.0])
HALVES = np.array([0, 0, 1, 1])


def by(weights):
    def explainer(inputs, target):
        return inputs * weights

    explainer.rows_independent = True
    return explainer


def sampled(weights=OLD, inputs=INPUTS, target=0, **settings):
    given = {"noise": metfa.noise.Gaussian(0.1), "n_samples": 20, "rng": 0, **settings}
    return metfa.explain(by(weights), inputs, target, **given)


@pytest.fixture(scope="module")
def pair():
    return sampled(), sampled(NEW)


@pytest.fixture(scope="module")
def found(pair):
    return difference_of(*pair)


class TestNumbers:
    def test_they_are_after_minus_before_copy_by_copy(self, pair, found):
        before, after = pair
        assert np.array_equal(found.values, after.values - before.values)
        assert np.array_equal(found.vanilla, after.vanilla - before.vanilla)
        assert found.pair[0] is before
        assert found.pair[1].values is after.values or np.array_equal(found.pair[1].values, after.values)

    def test_only_the_feature_that_changed_is_marked(self, found):
        assert found.significance_map(correction="holm").tolist() == [[0, 0, 0, 1]] * 3
        assert difference_of(*reversed(found.pair)).significance_map().tolist() == [[0, 0, 0, -1]] * 3

    def test_the_test_is_the_sign_test_of_the_differences(self, found):
        rng = np.random.default_rng(1)
        noisy = replace(found.pair[1], values=found.pair[0].values + rng.normal(0.05, 0.2, found.values.shape))
        sample = difference_of(found.pair[0], noisy)
        test = sample.test(0)
        difference = noisy.values - found.pair[0].values
        for place in np.ndindex(difference.shape[1:]):
            above = int((difference[(slice(None), *place)] > test.n * 0 + sample.unit[place[0]] * 1e-4).sum())
            below = int((difference[(slice(None), *place)] < -sample.unit[place[0]] * 1e-4).sum())
            assert (test.above[place], test.below[place]) == (above, below)
            exact = scipy.stats.binom.sf(max(above, below) - 1, 20, 0.5) * 2
            assert test.pvalue[place] == pytest.approx(min(1, exact))

    @pytest.mark.parametrize("scale", ["mean", "share", "rank"])
    def test_each_map_is_scaled_before_anything_is_subtracted(self, pair, scale):
        found = difference_of(*pair, scale=scale)
        before, after = (part.scaled(scale) for part in pair)
        assert np.array_equal(found.values, after.values - before.values)
        assert found.provenance["compared"]["scale"] == scale

    def test_float16_is_not_rounded_to_equal(self, pair):
        before, after = (replace(part, values=part.values.astype(np.float16)) for part in pair)
        found = difference_of(before, after)
        assert found.values.dtype == np.float32
        assert np.array_equal(found.values, after.values.astype(np.float32) - before.values.astype(np.float32))

    def test_scores_too_large_to_be_subtracted_are_refused(self, pair):
        huge = np.full(pair[0].values.shape, 3e38, np.float32)
        with pytest.raises(ValueError, match="too large to be subtracted"):
            difference_of(replace(pair[0], values=-huge), replace(pair[1], values=huge))


class TestFacts:
    def test_the_terms_are_those_of_differences(self, found):
        terms = found.terms()
        assert (terms.threshold, terms.correction, terms.split) == (0, None, 0)
        assert terms.sides == ("more than before", "less than before")
        assert np.array_equal(terms.unit, np.maximum(*(part.unit for part in found.pair)))
        assert found.signed
        assert found.scores is found.predictions is None

    def test_names_are_in_the_words(self, pair):
        found = difference_of(*pair, names=("v1", "v2"))
        assert found.terms().sides == ("more in v2 than in v1", "less in v2 than in v1")
        assert "more in v2 than in v1" in str(found.summary()[0])

    def test_other_targets_are_shown_with_their_part(self):
        found = difference_of(sampled(target=0), sampled(NEW, target=1))
        assert found.target == ((0, 1),) * 3
        assert found.summary()[0].explained == "before: class 0; after: class 1"

    def test_flips_of_either_part_are_a_caution(self, pair):
        before, after = pair
        flipped = np.ones((20, 3), np.int64)
        after = replace(after, predictions=flipped, scores=np.array([[1.0, 0.0]] * 3))
        assert difference_of(before, after).summary()[0].cautions == (
            "after: The noise changed the prediction in 100% of the noisy copies",
        )

    def test_the_certificate_stays_for_the_same_inputs_alone(self, found):
        assert found.certified_radius().max() > 0
        names = metfa.Run(input_names=list("abc"))
        changed = difference_of(sampled(run=names), sampled(inputs=INPUTS + 1, run=names))
        assert changed.provenance["compared"]["inputs"] == "changed"
        with pytest.raises(ValueError, match="certificate needs Gaussian noise"):
            changed.certified_radius()

    def test_inputs_that_no_noise_moves_stay_undecided(self):
        settings = {"noise": lambda x, rng: x, "n_samples": 20}
        with pytest.warns(metfa.DegenerateAttributionsWarning):
            parts = [sampled(weights, **settings) for weights in (OLD, NEW)]
        found = difference_of(*parts)
        assert found.unmoved.all()
        assert not found.significance_map().any()
        assert not found.changed().any()
        assert not found.unchanged(100.0).any()

    def test_a_look_is_one_at_both_parts(self):
        found = difference_of(sampled(n_samples=8), sampled(NEW, n_samples=8))
        found.significance_map()
        more = metfa.Run(first_sample=8)
        parts = [
            part.concat(sampled(weights, n_samples=12, run=more))
            for part, weights in zip(found.pair, (OLD, NEW), strict=True)
        ]
        assert all(part.any_time for part in parts)
        assert difference_of(*parts).any_time

    def test_a_look_at_one_part_counts_for_the_differences(self):
        first, second = sampled(n_samples=8), sampled(NEW, n_samples=8)
        second.confidence_interval()
        more = metfa.Run(first_sample=8)
        first = first.concat(sampled(n_samples=12, run=more))
        second = second.concat(sampled(NEW, n_samples=12, run=more))
        assert not first.any_time
        assert difference_of(first, second).any_time

    def test_after_until_it_holds_at_any_time_and_does_not_take_its_threshold(self):
        rule = metfa.Until(undecided=0.9, threshold=1.0, max_samples=40)
        before = sampled(n_samples=rule)
        found = difference_of(before, sampled(NEW, n_samples=before.n_samples))
        assert found.any_time
        assert found.terms().threshold == 0
        assert "uncompared features" in found.summary()[0].stopped


class TestDerived:
    @pytest.mark.parametrize("how", ["mean", "sum", "max"])
    def test_regions_are_pooled_in_both_parts(self, found, how):
        regions = found.over(HALVES, how=how)
        before, after = (part.over(HALVES, how=how) for part in found.pair)
        assert np.array_equal(regions.values, after.values - before.values)
        assert regions.feature_names == ("region 0", "region 1")
        assert regions.significance_map().tolist() == [[0, 1]] * 3
        assert regions.looks is found.looks

    def test_regions_against_the_rest_say_so(self, found):
        regions = found.over(HALVES, against="rest")
        assert regions.terms().sides == ("more than before, against the rest", "less than before, against the rest")
        assert regions.significance_map().tolist() == [[-1, 1]] * 3

    def test_scaled_maps_are_pooled_after_scaling(self, pair):
        regions = difference_of(*pair, scale="share").over(HALVES)
        before, after = (part.scaled("share").over(HALVES) for part in pair)
        assert np.array_equal(regions.values, after.values - before.values)

    def test_one_input(self, found):
        one = found.of_input(1)
        assert np.array_equal(one.values, found.values[:, 1:2])
        assert np.array_equal(one.values, one.pair[1].values - one.pair[0].values)
        assert np.array_equal(one.terms().unit, found.terms().unit[1:2])

    def test_joined(self):
        more = metfa.Run(first_sample=20)
        parts = [difference_of(sampled(run=run), sampled(NEW, run=run)) for run in (None, more)]
        whole = difference_of(sampled(n_samples=40), sampled(NEW, n_samples=40))
        joined = parts[0].concat(parts[1])
        assert np.array_equal(joined.values, whole.values)
        assert np.array_equal(joined.values, joined.pair[1].values - joined.pair[0].values)

    def test_other_differences_are_not_joined(self, found):
        more = metfa.Run(first_sample=20)
        other = difference_of(sampled(run=more), sampled(NEW, run=more), scale="share")
        with pytest.raises(ValueError, match="other"):
            found.concat(other)

    def test_scaling_comes_first(self, found):
        with pytest.raises(ValueError, match=r"metfa.compare\(..., scale='share'\)"):
            found.scaled("share")


class TestOrder:
    def test_inputs_in_another_order_are_paired_by_their_ids(self, found):
        other = sampled(NEW, inputs=INPUTS[[2, 0, 1]])
        assert other.input_names != found.input_names
        assert np.array_equal(difference_of(found.pair[0], other).values, found.values)

    def test_regions_follow_their_inputs(self):
        masks = (HALVES, HALVES[::-1].copy(), np.array([0, 1, 1, 0]))
        order = [2, 0, 1]
        before = sampled().over(metfa.Regions(masks))
        after = sampled(NEW, inputs=INPUTS[order]).over(metfa.Regions(tuple(masks[i] for i in order)))
        expected = difference_of(sampled(), sampled(NEW)).over(metfa.Regions(masks))
        assert np.array_equal(difference_of(before, after).values, expected.values)

    def test_samples_in_another_order_are_paired_by_their_ids(self, found):
        order = np.random.default_rng(0).permutation(20)
        other = found.pair[1]
        other = replace(other, values=other.values[order], sample_ids=tuple(order.tolist()))
        assert np.array_equal(difference_of(found.pair[0], other).values, found.values)


class TestSaved:
    @pytest.mark.parametrize("scale", ["raw", "share", "rank"])
    @pytest.mark.parametrize("pooled", [False, True])
    def test_they_come_back(self, pair, tmp_path, scale, pooled):
        found = difference_of(*pair, scale=scale, names=("v1", "v2"))
        found = found.over(HALVES, against="rest") if pooled else found
        found.significance_map()
        found.save(tmp_path / "saved")
        loaded = metfa.load(tmp_path / "saved")
        assert np.array_equal(loaded.values, found.values)
        assert np.array_equal(loaded.vanilla, found.vanilla)
        assert loaded.terms() == found.terms()
        assert loaded.provenance == found.provenance
        assert loaded.regions == found.regions
        assert str(loaded.summary()[0]) == str(found.summary()[0])
        assert all(np.array_equal(a.values, b.values) for a, b in zip(loaded.pair, found.pair, strict=True))
        metfa.load(tmp_path / "saved" / "after").terms()

    def test_a_unit_of_its_own_comes_back(self, found, tmp_path):
        found.with_unit(2.0).save(tmp_path / "saved")
        assert metfa.load(tmp_path / "saved").terms().unit == 2.0

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"compared": {"scale": "cubic", "names": None}}, "scale"),
            ({"compared": {"scale": "raw", "names": ["a", "a"]}}, "names"),
            ({"compared": 3}, "compared"),
            ({"scale": "share"}, "scale"),
            ({"scale": 7}, "scale"),
            ({"looks": ["many"]}, "looks"),
            ({"default_terms": {"threshold": "none"}}, "none"),
        ],
    )
    def test_a_damaged_manifest_is_refused_by_name(self, found, tmp_path, change, said):
        found.save(tmp_path / "saved")
        file = tmp_path / "saved" / "manifest.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
        with pytest.raises(ValueError, match=rf"manifest.json is damaged.*{said}"):
            metfa.load(tmp_path / "saved")

    def test_parts_of_another_pair_are_refused(self, found, tmp_path):
        found.save(tmp_path / "saved")
        (tmp_path / "saved" / "after").rename(tmp_path / "gone")
        sampled(NEW, rng=1).save(tmp_path / "saved" / "after")
        with pytest.raises(ValueError, match=r"does not fit its parts.*the same seed"):
            metfa.load(tmp_path / "saved")

    def test_a_linked_part_is_not_followed(self, found, tmp_path):
        found.save(tmp_path / "saved")
        (tmp_path / "saved" / "after").rename(tmp_path / "elsewhere")
        (tmp_path / "saved" / "after").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(ValueError, match="is a link"):
            metfa.load(tmp_path / "saved")

    def test_a_missing_part_is_named(self, found, tmp_path):
        found.save(tmp_path / "saved")
        (tmp_path / "saved" / "after").rename(tmp_path / "elsewhere")
        with pytest.raises(ValueError, match=r"after/manifest.json is missing"):
            metfa.load(tmp_path / "saved")


class TestWrongPairs:
    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"rng": 1}, "the same seed"),
            ({"noise": metfa.noise.Gaussian(0.2)}, "the same noise"),
            ({"n_samples": 10}, r"the same samples, got 0 to 19 \(20 samples\) against 0 to 9 \(10 samples\)"),
            ({"run": metfa.Run(first_sample=5)}, "the same samples"),
            ({"inputs": INPUTS + 1}, "the same inputs, but 6 are in one alone"),
            ({"inputs": INPUTS[:2]}, "the same inputs, but 1 are in one alone"),
            ({"run": metfa.Run(feature_names=list("abcd"))}, None),
        ],
    )
    def test_it_is_refused_by_name(self, pair, settings, said):
        other = sampled(NEW, **settings)
        if said is None:  # names of one alone are kept
            assert difference_of(pair[0], other).feature_names == tuple("abcd")
            return
        with pytest.raises(ValueError, match=said):
            difference_of(pair[0], other)

    def test_other_features(self, pair):
        def squares(inputs, target):
            return np.stack([inputs, inputs], axis=2)

        other = metfa.explain(squares, INPUTS, 0, noise=metfa.noise.Gaussian(0.1), n_samples=20, rng=0)
        with pytest.raises(ValueError, match=r"the same features, got maps of \(4,\) against \(4, 2\)"):
            difference_of(pair[0], other)

    def test_other_names_of_features(self):
        runs = [metfa.Run(feature_names=list(names)) for names in ("abcd", "abcx")]
        with pytest.raises(ValueError, match="other `feature_names`"):
            difference_of(*(sampled(run=run) for run in runs))

    def test_other_regions(self, pair):
        with pytest.raises(ValueError, match="other `regions`"):
            difference_of(pair[0].over(HALVES), pair[1].over(HALVES[::-1].copy()))

    def test_differences_of_differences(self, pair, found):
        with pytest.raises(ValueError, match="holds differences already"):
            difference_of(found, pair[1])

    def test_a_result_that_does_not_say_its_seed(self, pair):
        unknown = replace(pair[1], provenance={})
        with pytest.raises(ValueError, match="does not say which noise its samples had"):
            difference_of(pair[0], unknown)

    @pytest.mark.parametrize("other", [None, "after", np.ones((20, 3, 4))])
    def test_what_is_no_result(self, pair, other):
        with pytest.raises(TypeError, match="`after` must be an AttributionSample"):
            difference_of(pair[0], other)

    @pytest.mark.parametrize("names", ["ab", ("a",), ("a", "a"), ("a", "b", "c"), (1, 2), ("a", 41 * "b"), ("", "b")])
    def test_names(self, pair, names):
        with pytest.raises((TypeError, ValueError), match="`names`"):
            difference_of(*pair, names=names)

    def test_regions_are_not_scaled_after_they_were_pooled(self, pair):
        pooled = [part.over(HALVES) for part in pair]
        with pytest.raises(ValueError, match=r"metfa.compare\(before, after, scale='share'\).over\(regions\)"):
            difference_of(*pooled, scale="share")

    def test_a_map_of_zeros_has_no_share(self, pair):
        zeros = replace(pair[1], values=np.zeros_like(pair[1].values))
        with pytest.raises(ValueError, match="is 0 everywhere"):
            difference_of(pair[0], zeros, scale="share")


class TestTexts:
    def test_edited_words_are_both_named(self):
        def lengths(texts, target):
            return np.array([[float(len(word)) for word in text] for text in texts])

        def noise(words, rng):
            return [word * int(rng.integers(1, 3)) for word in words]

        words = [["a", "good", "film"], ["a", "dreadful", "film"]]
        before, after = (
            metfa.explain(
                lengths, [text], 0, noise=noise, n_samples=20, rng=0,
                run=metfa.Run(input_names=["one"], feature_names=text),
            )
            for text in words
        )  # fmt: skip
        found = difference_of(before, after)
        assert found.feature_names == ("a", "good \N{RIGHTWARDS ARROW} dreadful", "film")
        assert found.significance_map().tolist() == [[0, 1, 0]]
