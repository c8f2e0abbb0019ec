"""Regions: what they refuse, and that pooled samples are those of pooling by hand."""

import dataclasses
import re

import numpy as np
import pytest
import torch

import metfa

INPUTS = np.abs(np.random.default_rng(0).normal(size=(2, 6, 8)))
LABELS = (np.arange(48) // 12).reshape(6, 8)
OTHER = LABELS.T.reshape(6, 8).copy()


def explainer(inputs, target):
    return inputs**2


explainer.rows_independent = True


def sampled(**settings):
    arguments = {"noise": metfa.noise.Uniform(0.2), "n_samples": 30, "rng": 0}
    return metfa.explain(explainer, INPUTS, 0, **{**arguments, **settings})


@pytest.fixture(scope="module")
def sample():
    return sampled()


def by_hand(maps, mask, how="mean", against=None):
    values = getattr(maps[..., mask], how)(axis=-1)
    if against is None:
        return values
    rest = ~mask if isinstance(against, str) else against
    return values - maps[..., rest].mean(axis=-1)


@pytest.mark.parametrize("how", ["mean", "sum", "max"])
@pytest.mark.parametrize("form", ["labels", "masks", "torch", "one for each input"])
def test_pooling_is_that_by_hand(sample, how, form):
    labels = {"labels": LABELS, "masks": np.stack([i == LABELS for i in range(4)]), "torch": torch.tensor(LABELS)}
    regions = metfa.Regions([LABELS, OTHER] if form == "one for each input" else labels[form], how=how)
    pooled = sample.over(regions)
    for row, used in enumerate([LABELS, OTHER if form == "one for each input" else LABELS]):
        for i in range(4):
            np.testing.assert_allclose(pooled.values[:, row, i], by_hand(sample.values[:, row], used == i, how))
            np.testing.assert_allclose(pooled.vanilla[row, i], by_hand(sample.vanilla[row], used == i, how))
    assert pooled.feature_names == ("region 0", "region 1", "region 2", "region 3")
    assert (pooled.n_samples, pooled.noun, pooled.regions) == (30, "region", regions)


def test_overlap_and_features_in_no_region(sample):
    masks = np.zeros((2, 6, 8), bool)
    masks[0, :4], masks[1, 2:5] = True, True
    pooled = sample.over(masks, against="rest")
    for i in range(2):
        np.testing.assert_allclose(pooled.values[:, :, i], by_hand(sample.values, masks[i], against="rest"))
    labels = np.where(LABELS == 3, -1, LABELS)
    np.testing.assert_array_equal(sample.over(labels).values, sample.over(LABELS).values[:, :, :3])


def test_against_another_region(sample):
    other = LABELS == 2
    pooled = sample.over(LABELS, against=other)
    np.testing.assert_allclose(pooled.values[:, :, 0], by_hand(sample.values, LABELS == 0, against=other))
    assert pooled.significance_map()[:, 2].tolist() == [0, 0]  # against itself
    assert pooled.terms().sides == ("more than the other region", "less than the other region")


class TestDifferences:
    def test_their_threshold_is_0_and_their_words_are_relative(self, sample):
        pooled = sample.over(LABELS, against="rest")
        assert pooled.terms().threshold == 0.0
        decision = pooled.decide(pooled.terms(correction="holm"))
        assert decision.kinds == {1: "more than the rest", 0: "undecided", -1: "less than the rest"}
        text = str(pooled.summary()[0])
        assert "more than the rest:" in text
        assert "4 regions" in text
        assert "important" not in text
        assert pooled.decide(pooled.terms(0.1)).kinds[1] == "above 0.1"

    def test_marks_are_those_of_the_sign_test_by_hand(self, sample):
        pooled = sample.over(LABELS, against="rest")
        differences = by_hand(sample.values[:, 0], LABELS == 1, against="rest")
        assert pooled.test().above[0, 1] == (differences > 0).sum()
        assert pooled.test().pvalue[0, 1] == metfa.stats.sign_test(differences, 0.0).pvalue

    def test_rounding_is_no_difference(self):
        def constant(inputs, target):
            noisy = inputs.reshape(len(inputs), -1).mean(axis=1)[:, None, None]
            return (np.zeros_like(inputs) + 0.1 * noisy + 5.1).astype(np.float32)

        with pytest.warns(metfa.DegenerateAttributionsWarning, match="constant"):
            flat = metfa.explain(constant, INPUTS, 0, noise=metfa.noise.Uniform(0.2), n_samples=30, rng=0)
        pooled = flat.over(LABELS, against="rest")
        assert not pooled.values.any()
        assert not pooled.significance_map().any()

    def test_a_tiny_difference_beside_large_scores_has_no_sign(self):
        def nearly(inputs, target):
            return np.where(LABELS == 0, 1 + 1e-5, 1.0) + 0 * inputs + np.abs(inputs - INPUTS[:1]) * 1e-7

        flat = metfa.explain(nearly, INPUTS[:1], 0, noise=metfa.noise.Uniform(0.2), n_samples=30, rng=0)
        assert not flat.over(LABELS, against="rest").significance_map().any()

    def test_with_a_row_alone_as_in_the_batch(self, sample):
        pooled = sample.over([LABELS, OTHER], against="rest")
        alone = sample.of_input(1).over(OTHER, against="rest")
        np.testing.assert_array_equal(pooled.of_input(1).significance_map(), alone.significance_map())
        np.testing.assert_array_equal(pooled.of_input(1).terms().unit, alone.terms().unit)
        assert pooled.of_input(1).regions == alone.regions


@pytest.mark.parametrize("against", [None, "rest"])
@pytest.mark.parametrize("where", ["memory", "store"])
def test_pooled_while_sampling_as_afterwards(sample, against, where, tmp_path):
    regions = metfa.Regions([LABELS, OTHER], list("abcd"), against=against)
    run = metfa.Run(store=tmp_path / "s") if where == "store" else None
    while_sampling, afterwards = sampled(over=regions, run=run, batch_size=7), sample.over(regions)
    for name in ("values", "vanilla", "flip_rate"):
        np.testing.assert_array_equal(getattr(while_sampling, name), getattr(afterwards, name))
    assert while_sampling.terms() == afterwards.terms()
    assert (while_sampling.regions, while_sampling.feature_names) == (regions, tuple("abcd"))


def test_a_store_of_other_regions_is_refused(tmp_path):
    sampled(over=LABELS, run=metfa.Run(store=tmp_path / "s"))
    with pytest.raises(FileExistsError, match=r"with over=Regions\(4 regions, mean\)"):
        sampled(over=OTHER, run=metfa.Run(store=tmp_path / "s"))


@pytest.mark.parametrize("against", [None, "rest"])
def test_saved_and_read(sample, against, tmp_path):
    pooled = sample.over(metfa.Regions([LABELS, OTHER], list("abcd"), against=against))
    again = metfa.load(pooled.save(tmp_path / "s"))
    assert (again.regions, again.terms(), again.noun) == (pooled.regions, pooled.terms(), "region")
    np.testing.assert_array_equal(again.significance_map(), pooled.significance_map())
    mask = sample.over(LABELS, against=LABELS == 1)
    assert metfa.load(mask.save(tmp_path / "m")).regions == mask.regions


def test_a_damaged_region_is_named(sample, tmp_path):
    folder = sample.over(LABELS).save(tmp_path / "s")
    np.save(folder / "regions_masks_0.npy", OTHER.astype(np.int32))
    with pytest.raises(ValueError, match=r"regions_masks_0.npy.*changed"):
        metfa.load(folder)


def test_parts_with_other_regions_do_not_join(sample):
    more = sampled(run=metfa.Run(first_sample=30))
    assert sample.over(LABELS).concat(more.over(LABELS)).n_samples == 60
    with pytest.raises(ValueError, match=r"other `regions`"):
        sample.over(LABELS).concat(more.over(OTHER))


RULE = {"undecided": 0.3, "max_samples": 200}


class TestUntil:
    def test_stops_when_the_regions_are_decided(self):
        regions = metfa.Regions(LABELS, against="rest")
        kept = sampled(n_samples=metfa.Until(**RULE, over=regions))
        pooled = kept.over()
        assert (kept.feature_shape, pooled.feature_shape, pooled.regions) == ((6, 8), (4,), regions)
        assert "of the regions undecided" in str(kept.stopping)
        assert (pooled.significance_map() == 0).mean() <= 0.3
        assert pooled.terms().correction == kept.stopping.correction
        assert kept.terms().threshold is metfa.stats.jenks_of_medians  # what was asked of the regions decides no pixel
        only = sampled(n_samples=metfa.Until(**RULE), over=regions)
        np.testing.assert_array_equal(only.values, pooled.values)
        np.testing.assert_array_equal(only.significance_map(), pooled.significance_map())
        assert only.stopping.noun == "region"

    def test_saved_and_read(self, tmp_path):
        kept = sampled(n_samples=metfa.Until(**RULE, over=metfa.Regions(LABELS)))
        again = metfa.load(kept.save(tmp_path / "s"))
        assert again.stopping == kept.stopping
        np.testing.assert_array_equal(again.over().significance_map(), kept.over().significance_map())

    def test_regions_of_other_maps_are_neither_saved_nor_read(self, tmp_path):
        kept = sampled(n_samples=metfa.Until(**RULE, over=LABELS))
        over = metfa.Regions(LABELS.reshape(8, 6))
        wrong = dataclasses.replace(kept, stopping=dataclasses.replace(kept.stopping, over=over))
        with pytest.raises(ValueError, match="`stopping` does not fit values of shape"):
            wrong.save(tmp_path / "s")
        pooled = kept.over()
        assert metfa.load(pooled.save(tmp_path / "p")).stopping == pooled.stopping

    def test_other_regions_have_other_thresholds(self):
        kept = sampled(n_samples=metfa.Until(**RULE, threshold=1.0))
        pooled = kept.over(LABELS, against="rest")
        assert pooled.any_time
        assert pooled.terms().threshold == 0.0
        assert "of the single features undecided" in str(pooled.stopping)

    def test_both_at_once_are_refused(self):
        with pytest.raises(ValueError, match="both given"):
            sampled(n_samples=metfa.Until(**RULE, over=LABELS), over=LABELS)

    def test_regions_of_another_shape_are_refused_before_sampling(self):
        with pytest.raises(ValueError, match="must have the shape of one map"):
            sampled(n_samples=metfa.Until(**RULE, over=LABELS[:2]))


def empty_third():
    masks = np.stack([i == LABELS for i in range(4)])
    masks[2] = False
    return masks


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"masks": None}, "must be an array of labels or of bool, got None"),
        ({"masks": "superpixels"}, "must be an array of labels"),
        ({"masks": LABELS.astype(float)}, r"must hold integers \(labels\) or bool"),
        ({"masks": np.full((6, 8), np.nan)}, r"must hold integers \(labels\) or bool"),
        ({"masks": LABELS - 2}, "from -2 to 1"),
        ({"masks": np.full((6, 8), -1)}, "from -1 to -1"),
        ({"masks": LABELS + 10**6}, "number its regions"),
        ({"masks": np.where(LABELS == 1, 2, LABELS)}, "'region 1' has no features"),
        ({"masks": empty_third()}, "'region 2' has no features"),
        ({"masks": np.zeros((0, 6, 8), bool)}, "stack of masks"),
        ({"masks": np.ones(8, bool)}, "stack of masks"),
        ({"masks": [LABELS, np.minimum(LABELS, 2)]}, "equally many regions for each input, got 4, 3"),
        ({"masks": np.ones((1, 6, 8), bool), "against": "rest"}, "covers everything and has no rest"),
        ({"names": ["a"]}, "each of the 4 regions, got 1"),
        ({"names": "abcd"}, "names"),
        ({"how": "median"}, "must be one of 'mean', 'sum', 'max', got 'median'"),
        ({"how": "max", "against": "rest"}, "compares means, got how='max'"),
        ({"against": "all"}, "must be None, 'rest' or a mask"),
        ({"against": LABELS}, "mask of bool"),
        ({"against": np.zeros((6, 8), bool)}, "True somewhere"),
        ({"against": np.ones(8, bool)}, r"must have the features' shape \(6, 8\), got \(8,\)"),
    ],
)
def test_bad_regions_are_refused(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        metfa.Regions(**{"masks": LABELS, **settings})


def test_of_another_shape_or_batch(sample):
    with pytest.raises(ValueError, match=r"shape of one map, \(6, 8\), got \(8, 6\)"):
        sample.over(LABELS.T)
    with pytest.raises(ValueError, match="each of 2 inputs, got 3"):
        sample.over([LABELS] * 3)
    with pytest.raises(TypeError, match=r"must be a metfa.Regions, labels or masks, got None"):
        sample.over()
    with pytest.raises(ValueError, match=r"metfa.Regions\(masks, names"):
        sampled(over=LABELS, run=metfa.Run(feature_names=list("abcd")))


@pytest.mark.parametrize(
    "over", [LABELS.reshape(8, 6), LABELS.ravel(), np.ones((6, 8), bool), [LABELS] * 3, np.ones((1, 6, 9), bool)]
)
def test_of_another_shape_while_sampling(over):
    """Maps of another shape may have as many features: the numbers would be those of other regions."""
    with pytest.raises(ValueError, match="`regions` must h"):
        sampled(over=over)
    with pytest.raises(ValueError, match="`regions` must h"):
        sampled(over=over, n_samples=metfa.Until(undecided=0.3, max_samples=50))


def test_pooling_itself_asks_for_the_shape():
    with pytest.raises(ValueError, match=r"shape of one map, \(6, 8\), got \(8, 6\)"):
        metfa.Regions(LABELS.reshape(8, 6)).pooled(INPUTS)


@pytest.mark.parametrize("against", [None, "rest", LABELS != 3])
def test_sums_beyond_float64_are_refused(against):
    def huge(inputs, target):
        return np.full_like(inputs, 1.7e308)

    with pytest.warns(metfa.DegenerateAttributionsWarning):
        large = metfa.explain(huge, INPUTS, 0, noise=metfa.noise.Uniform(0.2), n_samples=5, predict=None, rng=0)
    with pytest.raises(ValueError, match="too large for sums"):
        large.over(metfa.Regions((LABELS == 3)[None], against=against))
    assert np.isfinite(large.over(LABELS, how="max").values).all()


def test_whether_scores_are_signed_is_the_same_while_sampling_and_afterwards():
    """Means of signed scores may all lie above 0."""

    def signed(inputs, target):
        return inputs * np.where(np.arange(8) % 4 == 0, -1.0, 1.0)

    noise = metfa.noise.Uniform(0.05)
    kept = metfa.explain(signed, INPUTS, 0, noise=noise, n_samples=10, predict=None, rng=0)
    only = metfa.explain(signed, INPUTS, 0, noise=noise, n_samples=10, predict=None, rng=0, over=LABELS)
    assert kept.over(LABELS).values.min() > 0
    assert only.terms() == kept.over(LABELS).terms()
    assert only.terms().threshold == 0.0


def test_a_unit_of_the_users_is_kept_for_means():
    own = sampled().with_unit(1.0)
    assert own.over(LABELS).terms().unit == 1.0
    assert np.shape(own.over(LABELS, how="sum").terms().unit) == (2,)  # of the sums themselves, for each input
    assert own.over(LABELS).terms().threshold is own.usual_rule


def test_parts_join_though_the_clean_maps_differ_by_rounding():
    one = sampled(over=metfa.Regions(LABELS, against="rest"))
    other = sampled(over=metfa.Regions(LABELS, against="rest"), run=metfa.Run(first_sample=30))
    terms = dataclasses.replace(other.default_terms, unit=other.default_terms.unit * (1 + 1e-7))
    assert one.concat(dataclasses.replace(other, default_terms=terms)).n_samples == 60
    terms = dataclasses.replace(other.default_terms, unit=other.default_terms.unit * 2)
    with pytest.raises(ValueError, match="other `default_terms`"):
        one.concat(dataclasses.replace(other, default_terms=terms))


def test_a_certificate_holds_for_regions():
    normal = sampled(noise=metfa.noise.Gaussian(0.1), n_samples=60)
    pooled = normal.over(LABELS, against="rest")
    assert (pooled.certified_radius() > 0).any()


def test_signed_scores_stay_signed(sample):
    signed = metfa.explain(
        lambda inputs, target: np.where(LABELS < 2, 1, -1) * inputs, INPUTS, 0, noise=metfa.noise.Uniform(0.2), rng=0
    )
    assert signed.over(LABELS).terms().threshold == 0.0
    assert sample.over(LABELS).terms().threshold is metfa.stats.jenks_of_medians


class TestWhatIsAsked:
    def test_one_mask_and_a_list_of_masks(self, sample):
        cup, spoon = LABELS == 1, LABELS == 3
        np.testing.assert_array_equal(sample.over(cup).values[..., 0], sample.over(LABELS).values[..., 1])
        np.testing.assert_array_equal(sample.over([cup, spoon]).values, sample.over(LABELS).values[..., [1, 3]])
        alone = sample.over(cup, against=spoon)
        assert alone.feature_shape == (1,)
        np.testing.assert_allclose(alone.values[:, :, 0], by_hand(sample.values, cup, against=spoon))
        np.testing.assert_array_equal(sample.over(torch.tensor(cup)).values, sample.over(cup).values)

    def test_differences_are_pooled_no_further(self, sample):
        """Half of the regions of one kind and half of the other could both get "less than the rest"."""
        pooled = sample.over(LABELS, against="rest")
        with pytest.raises(ValueError, match=r"differences already \('more than the rest'\)"):
            pooled.over(np.array([0, 0, 1, 1]))
        np.testing.assert_allclose(
            sample.over(LABELS).over(np.array([0, 0, 1, 1])).values, sample.over(LABELS // 2).values
        )

    def test_a_threshold_of_single_features_is_none_of_regions(self, sample):
        ranks = sample.scaled("rank")
        assert ranks.terms().threshold == 0.95
        assert callable(ranks.over(LABELS).terms().threshold)  # a mean of ranks has another range

    def test_labels_from_1(self, sample):
        with pytest.raises(ValueError, match="labels begin at 0: subtract 1"):
            sample.over(LABELS + 1)

    @pytest.mark.parametrize("labels", [[10, 10, 20, 20], [[10, 10], [20, 20]], [-1, 7, 9, 9], [0, 2, 2, 2]])
    def test_labels_with_gaps_get_a_remedy_that_works(self, labels):
        labels = np.array(labels)
        with pytest.raises(ValueError, match=r"write `numpy.unique") as refused:
            metfa.Regions(labels)
        advice = re.search(r"write `(.*?)`", str(refused.value))[1]
        numbered = eval(advice, {"numpy": np, "labels": labels})
        assert metfa.Regions(numbered).names == ("region 0", "region 1")
        np.testing.assert_array_equal(numbered == -1, labels == -1)

    def test_equal_skewed_features_are_equal_by_ranks(self):
        skewed = metfa.explain(
            lambda inputs, target: np.exp(2 * inputs), np.zeros((1, 60)), 0, noise=metfa.noise.Gaussian(1.0),
            n_samples=60, predict=None, rng=0,
        )  # fmt: skip
        pairs = np.arange(60) // 2
        less = skewed.over(pairs, against="rest").significance_map(correction="holm")
        assert (less == -1).mean() > 0.9  # true of medians of differences of means, and said in the docstring
        ranks = skewed.scaled("rank").over(pairs, against="rest").significance_map(correction="holm")
        assert not ranks.any()
