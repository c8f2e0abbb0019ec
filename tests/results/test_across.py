"""Rows of a data set as samples: coverage over a population, which rows are units, and what every view says."""

import re
from dataclasses import replace

import numpy as np
import pytest

import metfa
from metfa import stats

FEATURES = ("age", "income", "tenure")
WEIGHTS = np.array([3.0, 1.0, 0.0])


def linear(inputs, target):
    return inputs * WEIGHTS


linear.rows_independent = True
linear.signed = True


def data(n_rows=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, 3)) + 0.2


def explained(inputs=None, *, target=0, names=FEATURES, rows=None, **settings):
    given = {"noise": metfa.noise.Gaussian(0.3), "n_samples": 8, "rng": 0, **settings}
    run = metfa.Run(feature_names=names, input_names=rows)
    return metfa.explain(given.pop("explainer", linear), data() if inputs is None else inputs, target, run=run, **given)


@pytest.fixture(scope="module")
def sample():
    return explained()


@pytest.fixture(scope="module")
def population(sample):
    return sample.across_inputs()


NUMBERS = {
    "vanilla": lambda sample: sample.vanilla,
    "mean": lambda sample: sample.values.mean(axis=0),
    "smoothed": lambda sample: sample.smoothed(),
    "median": lambda sample: np.median(sample.values, axis=0),
}


@pytest.mark.parametrize("of", NUMBERS)
@pytest.mark.parametrize("absolute", [True, False])
def test_one_number_of_each_row(sample, of, absolute):
    found = sample.across_inputs(of, absolute=absolute)
    by_hand = NUMBERS[of](sample)
    np.testing.assert_allclose(found.values[:, 0], np.abs(by_hand) if absolute else by_hand)
    assert found.values.shape == (40, 1, 3)
    assert found.population.names == sample.input_names
    assert found.feature_names == FEATURES
    assert found.signed is not absolute
    np.testing.assert_array_equal(found.inputs[0], sample.inputs)


def test_absolute_by_default_where_scores_are_signed(sample):
    assert sample.across_inputs().population.absolute
    unsigned = replace(sample, values=np.abs(sample.values), provenance={**sample.provenance, "signed": False})
    assert not unsigned.across_inputs().population.absolute
    against = sample.over(metfa.Regions(np.array([0, 1, 1]), against="rest"))
    found = against.across_inputs()
    assert not found.population.absolute
    assert found.terms().threshold == 0
    assert found.terms().sides == ("more than the rest", "less than the rest")
    assert against.across_inputs(absolute=True).terms().sides is None


def test_differences_of_the_rows_of_a_comparison(tmp_path):
    def other(inputs, target):
        return inputs * WEIGHTS + np.array([0.0, 0.0, 0.5])

    noise = metfa.noise.Gaussian(0.3)
    compared = metfa.compare(linear, other, data(), 0, noise=noise, n_samples=8, rng=0)
    found = compared.across_inputs("mean")
    assert found.pair is None
    assert not found.population.absolute
    np.testing.assert_allclose(found.values[:, 0], compared.values.mean(axis=0))
    assert found.significance_map()[0].tolist() == [0, 0, 1]
    assert found.terms().sides == ("more than before", "less than before")
    text = str(found.summary()[0])
    assert "its mean difference over 8 noisy copies" in text
    assert "ranking" not in text
    assert "mean difference of a row" in texts_of(found.plot())
    found.save(tmp_path / "kept")
    assert str(metfa.load(tmp_path / "kept").summary()[0]) == text
    one, two = (explained(explainer=explainer).across_inputs() for explainer in (linear, other))
    with pytest.raises(ValueError, match=r"holds rows and not noisy copies.*compare\(before, after\)\.across_inputs"):
        metfa.compare(one, two)
    with pytest.raises(ValueError, match="differences of features"):
        metfa.compare(explained().pairwise(), explained().pairwise())


def test_regions_against_the_rest_over_rows(sample):
    found = sample.over(np.array([0, 1, 1]), against="rest").across_inputs()
    assert "ranking" not in str(found.summary()[0])
    assert "less that of the rest" in texts_of(found.plot())


def test_terms(sample):
    assert callable(sample.across_inputs().terms().threshold)
    assert sample.across_inputs(absolute=False).terms().threshold == 0
    own = replace(sample, default_terms=metfa.Terms(0.0, alpha=0.01, correction="holm", unit=np.arange(1.0, 41)))
    terms = own.across_inputs(absolute=False).terms()
    assert (terms.threshold, terms.alpha, terms.correction, terms.unit) == (0.0, 0.01, "holm", 20.5)
    assert callable(own.across_inputs().terms().threshold)
    ranks = sample.scaled("rank").across_inputs()
    assert ranks.terms().threshold == 0.95
    assert not ranks.population.absolute


def intervals_hold(make, median, seeds):
    """Share of the data sets in which the interval of the one feature holds the population's median."""
    held = []
    for seed in seeds:
        interval = make(seed).confidence_interval(0.95)
        held.append(bool(((interval.low <= median) & (median <= interval.high)).all()))
    return np.mean(held)


def nested(seed, n_rows=20, n_copies=20):
    """Rows whose means are normal about 1, each with copies about its mean that differ little."""
    rng = np.random.default_rng(seed)
    means = rng.normal(1, 1, size=(n_rows, 1))
    values = means + rng.normal(0, 0.2, size=(n_copies, n_rows, 1))
    return metfa.AttributionSample(
        values, means, (0,) * n_rows, means, None, None, tuple(range(n_copies)), tuple(map(str, range(n_rows)))
    )


@pytest.mark.parametrize("of", ["vanilla", "mean", "smoothed", "median"])
def test_intervals_hold_the_median_of_the_population_and_those_of_all_copies_do_not(of):
    seeds = range(200)
    covered = intervals_hold(lambda seed: nested(seed).across_inputs(of, absolute=False), 1.0, seeds)
    assert covered >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / len(seeds))

    def flattened(seed):
        sample = nested(seed)
        return replace(sample.across_inputs(absolute=False), values=sample.values.reshape(-1, 1, 1))

    assert intervals_hold(flattened, 1.0, seeds) < 0.7


def test_false_marks_of_a_population_are_at_most_alpha():
    def marks(seed):
        return nested(seed).across_inputs(absolute=False).significance_map(1.0)[0, 0]

    found = np.array([marks(seed) for seed in range(200)])
    assert (found == 1).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert (found == -1).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_rows_with_the_same_content_are_no_new_units():
    inputs = data()[[0, 1, 2, 1, 0, 3]]
    with pytest.raises(ValueError, match=r"rows 3 \(as 1\), 4 \(as 0\)\. .*input_names"):
        explained(inputs).across_inputs()
    named = explained(inputs, rows=list("abcdef"))
    assert named.across_inputs().n_samples == 6  # as the message advises


def test_many_copies_are_counted():
    with pytest.raises(ValueError, match=r"rows 1 \(as 0\), 2 \(as 0\), 3 \(as 0\) and 4 more"):
        explained(data()[[0] * 8]).across_inputs()


def test_nothing_of_one_input_is_inherited(sample):
    found = sample.across_inputs("mean")
    assert sample.certified_radius(0.0).shape == (40, 3)  # Gaussian noise
    assert "gaussian_std" not in found.provenance
    for certificate in (lambda: found.certified_radius(0.0), lambda: found.certified_interval(0.1)):
        with pytest.raises(ValueError, match=r"changes of one input, .* rows"):
            certificate()
    assert found.vanilla is None
    assert found.scores is None
    assert found.predictions is None


def test_after_until_rows_are_a_fixed_number():
    sample = explained(n_samples=metfa.Until(undecided=0.9, first=20, max_samples=40))
    assert sample.any_time
    found = sample.across_inputs("mean")
    assert not found.any_time
    assert found.stopping is None
    assert found.population.copies == sample.n_samples
    assert isinstance(found.decide(found.terms()).test, stats.SignTestResult)
    assert not isinstance(found.decide(found.terms()).test, stats.SequentialTestResult)


def test_rows_that_no_noise_moves_are_rows(sample):
    still = replace(sample, provenance={**sample.provenance, "unmoved": list(sample.input_names)})
    assert still.unmoved.all()
    found = still.across_inputs()
    assert not found.unmoved.any()
    np.testing.assert_array_equal(found.significance_map(), sample.across_inputs().significance_map())


def test_regions_that_differ_by_row_need_names():
    inputs = data()
    masks = [np.array([0, 0, 1]), np.array([0, 1, 1])] * 20
    sample = explained(inputs, names=None)
    with pytest.raises(ValueError, match="'region 0' of one row is not that of another"):
        sample.over(metfa.Regions(masks)).across_inputs()
    found = sample.over(metfa.Regions(masks, names=["left", "right"])).across_inputs()
    assert found.feature_names == ("left", "right")
    assert found.noun == "region"
    assert found.population.short == "absolute score without noise of a row: mean score of a region"
    by_hand = [np.abs([row[mask == k].mean() for k in (0, 1)]) for row, mask in zip(sample.vanilla, masks, strict=True)]
    np.testing.assert_allclose(found.values[:, 0], by_hand)
    assert "2 regions" in str(found.summary()[0])
    assert sample.over(metfa.Regions(masks[0])).across_inputs().n_samples == 40  # the same in every row


def test_regions_of_a_population_are_pooled_in_each_row(population):
    found = population.over(np.array([0, 0, 1]))
    np.testing.assert_allclose(found.values[:, 0, 0], population.values[:, 0, :2].mean(axis=1))
    assert found.sample_noun == "row"
    assert found.score_name == "mean score of a region: absolute score without noise of a row"
    rest = population.over(np.array([0, 0, 1]), against="rest")
    assert rest.significance_map()[0].tolist() == [1, -1]
    assert population.scaled("share").values.sum(axis=2) == pytest.approx(1)


def of_text(line):
    def explainer(texts, target):
        return np.array([[float(len(word)) for word in text.split()] for text in texts])

    def noise(text, rng):
        return " ".join(word + "s" * int(rng.integers(3)) for word in text.split())

    return metfa.explain(explainer, [line], 0, noise=noise, n_samples=8, rng=0)


def test_words_of_texts_are_no_features_of_a_population():
    with pytest.raises(ValueError, match="words of texts stand at places"):
        of_text("a good film").across_inputs()


def test_texts_by_regions_are_joined_to_a_population(tmp_path):
    lines = ["a good film", "some bad films here", "one really nice afternoon", "it was not that good"]
    parts = []
    for line in lines:
        labels = np.array([0, *[1] * (len(line.split()) - 1)])
        parts.append(of_text(line).over(metfa.Regions(labels, names=["first word", "others"])).across_inputs())
    found = parts[0]
    for part in parts[1:]:
        found = found.concat(part)
    assert found.values.shape == (4, 1, 2)
    assert found.inputs == [lines]
    found.save(tmp_path / "texts")
    assert metfa.load(tmp_path / "texts").inputs == [lines]
    with pytest.raises(ValueError, match="a text shows noisy copies"):
        metfa.text.render_html(found)
    unnamed = [of_text(line).over(np.arange(len(line.split())) // 2).across_inputs() for line in lines[:2]]
    with pytest.raises(ValueError, match="layout="):
        unnamed[0].concat(unnamed[1])


def test_parts_of_a_data_set_are_joined(sample):
    first, second = explained(data()[:15]), explained(data()[15:])
    joined = first.across_inputs("mean").concat(second.across_inputs("mean"))
    whole = sample.across_inputs("mean")
    np.testing.assert_array_equal(joined.values, whole.values)
    np.testing.assert_array_equal(joined.inputs, whole.inputs)
    assert joined.population == whole.population
    np.testing.assert_array_equal(joined.significance_map(), whole.significance_map())


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"inputs": data()[:15]}, r"rows 15 \(as 0\)"),
        ({"explainer": lambda inputs, target: inputs, "n_samples": 8}, "explainer"),
        ({"noise": metfa.noise.Gaussian(0.1)}, "noise"),
        ({"names": ("a", "b", "c")}, "feature names"),
        ({"n_samples": 9}, "copies=9"),
        ({"inputs": data()[:15, :2], "names": None, "explainer": lambda inputs, target: inputs}, "features"),
    ],
)
def test_parts_that_do_not_fit(other, says):
    first = explained(data()[:15]).across_inputs("mean", absolute=True)
    other = explained(**{"inputs": data()[15:], **other})
    with pytest.raises(ValueError, match=says):
        first.concat(other.across_inputs("mean", absolute=True))


def test_other_numbers_and_samples_are_not_joined(sample, population):
    rest = explained(data(9, seed=5))
    with pytest.raises(ValueError, match="of='vanilla' against 'mean'"):
        sample.across_inputs("mean").concat(rest.across_inputs())
    with pytest.raises(ValueError, match="absolute=False against True"):
        population.concat(rest.across_inputs(absolute=False))
    with pytest.raises(ValueError, match="holds samples, and this result rows"):
        population.concat(rest)
    with pytest.raises(ValueError, match="holds rows, and this result samples"):
        sample.concat(population)
    narrow = replace(rest, inputs=rest.inputs.astype(np.float16)).across_inputs()
    with pytest.raises(ValueError, match=r"has other dtype of the inputs: dtype\('float16'\) against"):
        population.concat(narrow)


def test_a_look_at_the_first_rows_is_remembered():
    first, second = explained(data()[:15]), explained(data()[15:])
    first.across_inputs().significance_map()
    joined = first.across_inputs().concat(second.across_inputs())
    assert joined.any_time
    assert joined.grown == "joined from parts after looks at 15 rows"
    assert "15 rows" in str(joined.summary()[0])


def test_a_look_at_one_row_is_none_at_all_rows():
    sample = explained()
    sample.across_inputs()
    with pytest.raises(metfa.TooFewSamplesError):
        sample.of_input(0).across_inputs(absolute=True).significance_map()
    assert not sample.across_inputs().any_time


def test_each_row_may_have_a_class_of_its_own():
    found = explained(target=[0] * 30 + [1] * 10).across_inputs()
    assert found.target == (None,)
    assert "each row's own: class 0 for 30 rows, class 1 for 10 rows" in str(found.summary()[0])
    assert explained(target=[1] * 40).across_inputs().target == (1,)
    sample = explained(target=[0] * 30 + [1] * 10)
    named = replace(sample, provenance={**sample.provenance, "class_names": ("cat", "dog")}).across_inputs()
    assert "each row's own: class 0 (cat) for 30 rows, class 1 (dog) for 10 rows" in str(named.summary()[0])


def test_flips_of_the_copies_are_said_where_the_number_is_of_copies(sample):
    scores = np.tile([1.0, 0.0], (40, 1))
    flipping = replace(sample, scores=scores, predictions=np.tile([0, 1], (4, 40)).reshape(8, 40).astype(int))
    assert flipping.flip_rate.mean() == 0.5
    found = flipping.across_inputs("mean")
    assert found.flip_rate == 0.5
    assert "changed the prediction in 50% of the noisy copies" in str(found.summary()[0])
    assert flipping.across_inputs().flip_rate is None


def texts_of(figure):
    from matplotlib.text import Text

    return "\n".join(part.get_text() for part in figure.findobj(Text))


def test_every_view_says_rows(population):
    said = {
        "summary": str(population.summary()[0]),
        "repr": repr(population),
        "plot": texts_of(population.plot()),
        "pairs": str(population.pairwise().summary()[0]),
        "plan": str(population.plan(0.0)),
        "guarantee": str(population.guarantee(np.array([True, True, False]), 1.0)),
        "too few": texts_of(explained(data(4)).across_inputs().plot()),
    }
    for view, text in said.items():
        assert "rows" in text, view
        assert not re.search(r"\bsamples\b", text.replace("AttributionSample", "")), (view, text)
    assert population._repr_html_().startswith("<img")
    with pytest.raises(metfa.TooFewSamplesError, match=r"too few rows .*got 4, at least 5 are needed"):
        explained(data(4)).across_inputs().significance_map()
    with pytest.raises(ValueError, match="too few rows"):
        explained(data(4)).across_inputs().guarantee(np.array([True, True, False]), 1.0)


def test_views_of_one_input_are_refused(population):
    with pytest.raises(ValueError, match="rows"):
        metfa.metrics.mstd(population)
    with pytest.raises(ValueError, match="rows already"):
        population.across_inputs()


@pytest.mark.filterwarnings("ignore:`across_inputs` takes each of the")  # each column is the same in all pictures
def test_maps_of_a_population_are_drawn():
    images = np.random.default_rng(0).random((12, 4, 5)) + np.arange(5)
    sample = metfa.explain(lambda x, target: x**2, images, 0, noise=metfa.noise.Uniform(0.1), n_samples=5, rng=0)
    text = texts_of(sample.across_inputs().plot())
    assert "no picture" in text
    assert "median\nof 12 rows" in text
    assert "smoothed\n12 rows" in text


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_small_floats(sample, dtype):
    small = replace(sample, values=sample.values.astype(dtype), vanilla=sample.vanilla.astype(dtype))
    for of in NUMBERS:
        found = small.across_inputs(of)
        assert found.values.dtype.itemsize >= 4
        np.testing.assert_allclose(found.values, sample.across_inputs(of).values, rtol=1e-2, atol=1e-2)
    np.testing.assert_array_equal(small.across_inputs().ranking().marks, sample.across_inputs().ranking().marks)


def test_of_a_store(tmp_path):
    run = metfa.Run(store=tmp_path / "store", feature_names=FEATURES)
    stored = metfa.explain(linear, data(), 0, noise=metfa.noise.Gaussian(0.3), n_samples=8, rng=0, run=run)
    for of in NUMBERS:
        np.testing.assert_allclose(stored.across_inputs(of).values, explained().across_inputs(of).values)


@pytest.mark.parametrize(
    "make", [lambda one: one, lambda one: one.pairwise(), lambda one: one.over(np.array([0, 0, 1]))]
)
def test_saved_and_read(sample, make, tmp_path):
    kept = make(sample.across_inputs("mean"))
    kept.save(tmp_path / "kept")
    read = metfa.load(tmp_path / "kept")
    np.testing.assert_array_equal(read.values, kept.values)
    assert (read.population, read.pairs_of, read.target) == (kept.population, kept.pairs_of, kept.target)
    assert str(read.summary()[0]) == str(kept.summary()[0])
    assert repr(read) == repr(kept)


def test_a_manifest_whose_population_does_not_fit_is_refused(population, tmp_path):
    import json

    population.save(tmp_path / "kept")
    manifest = json.loads((tmp_path / "kept" / "manifest.json").read_text())
    for change in ({"noun": "sample"}, {"names": ["a"]}, {"of": 3}, {"targets": [0.5] * 40}, {"flips": [2.0]}):
        changed = {**manifest, "population": {**manifest["population"], **change}}
        (tmp_path / "kept" / "manifest.json").write_text(json.dumps(changed))
        with pytest.raises(ValueError, match="population"):
            metfa.load(tmp_path / "kept")


def test_pixels_are_warned_of():
    pictures = np.random.default_rng(0).random((6, 4, 5))
    sample = metfa.explain(linear_in_pixels, pictures, 0, noise=metfa.noise.Gaussian(0.1), n_samples=6, rng=0)
    with pytest.warns(metfa.MetfaWarning, match="each of the 4×5 features as the same in every row, which pixels of"):
        assert sample.across_inputs().values.shape == (6, 1, 4, 5)
    halves = metfa.Regions(np.repeat([[0, 1]], 4, 0).repeat([2, 3], 1), names=["left", "right"])
    assert sample.over(halves).across_inputs().n_features == 2


def linear_in_pixels(inputs, target):
    return inputs * np.linspace(1, 2, 20).reshape(4, 5)


def test_too_few_rows_say_how_many():
    few = explained(data(3)).across_inputs()
    with pytest.raises(metfa.TooFewSamplesError, match=r"too few rows .*got 3, at least 5 are needed"):
        few.significance_map()


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"of": "max"}, ValueError, "'vanilla', 'mean', 'smoothed', 'median'"),
        ({"of": None}, TypeError, "`of`"),
        ({"absolute": 1}, TypeError, "`absolute`"),
    ],
)
def test_bad_arguments(sample, settings, error, says):
    with pytest.raises(error, match=says):
        sample.across_inputs(**settings)
