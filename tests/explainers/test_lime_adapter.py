"""The lime package's explainers through `from_lime`, against the package's own calls with the same random state."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
from lime import lime_image, lime_tabular, lime_text
from skimage.segmentation import slic
from sklearn.datasets import load_diabetes, load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

import metfa
from metfa._base.warnings import DegenerateAttributionsWarning, ModelOutputWarning
from metfa.explainers.lime_adapter import from_lime

IRIS = load_iris()
ROWS = IRIS.data[[0, 60, 133]]
MODEL = LogisticRegression(max_iter=500).fit(IRIS.data, IRIS.target)
TEXTS = ["a good film and a good evening", "a bad film", "a dull evening", "good fun", "bad and dull", "fun and good"]
REVIEWS = make_pipeline(CountVectorizer(token_pattern=r"\w+"), LogisticRegression()).fit(TEXTS, [1, 0, 0, 1, 0, 1])


def table(**settings):
    return lime_tabular.LimeTabularExplainer(IRIS.data, feature_names=list(IRIS.feature_names), **settings)


def states(*explainers):
    owners = [owner for e in explainers for owner in (e, e.base, getattr(e, "discretizer", None))]
    return [(owner.random_state, owner.random_state.get_state()[1].tolist()) for owner in owners if owner]


def same_stream(seed):
    """The random state that a row with the generator `default_rng(seed)` draws from."""
    return np.random.RandomState(np.random.default_rng(seed).integers(0, 2**32, size=8, dtype=np.uint32))


# Tables


@pytest.mark.parametrize("discretised", [True, False])
def test_a_table_is_limes_own_explanation(discretised):
    weights, scores = from_lime(table(discretize_continuous=discretised), MODEL.predict_proba, num_samples=300)(
        ROWS, target=[2, 0, 1], rngs=[np.random.default_rng(seed) for seed in range(3)]
    )
    for row, (seed, label) in enumerate(zip(range(3), [2, 0, 1], strict=True)):
        theirs = table(discretize_continuous=discretised)
        state = same_stream(seed)
        theirs.random_state = theirs.base.random_state = state
        if theirs.discretizer is not None:
            theirs.discretizer.random_state = state
        explanation = theirs.explain_instance(
            ROWS[row], MODEL.predict_proba, labels=(label,), num_features=4, num_samples=300
        )
        np.testing.assert_allclose(weights[row], [w for _, w in sorted(explanation.as_map()[label])])
    np.testing.assert_array_equal(scores, MODEL.predict_proba(ROWS))


@pytest.mark.slow
def test_explain_governs_all_of_limes_randomness():  # bugs.md 25
    made = table(random_state=42)
    explainer = from_lime(made, MODEL.predict_proba, num_samples=200)
    before = states(made)
    samples = [
        metfa.explain(
            explainer,
            ROWS,
            noise=None,
            n_samples=5,
            rng=0,
            batch_size=size,
            run=metfa.Run(feature_names=IRIS.feature_names),
        )
        for size in (1, 4)
    ]
    np.testing.assert_array_equal(samples[0].values, samples[1].values)
    assert (samples[0].std() > 0).any()
    assert samples[0].target == tuple(MODEL.predict(ROWS))
    after = states(made)
    assert all(a[0] is b[0] and a[1] == b[1] for a, b in zip(before, after, strict=True))
    alone = metfa.explain(explainer, ROWS[1:2], noise=None, n_samples=5, rng=0)
    np.testing.assert_array_equal(alone.values[:, 0], samples[0].values[:, 1])


def test_a_constant_column_has_an_interval_of_no_width():  # bugs.md 28
    data = np.column_stack([IRIS.data, np.full(len(IRIS.data), 7.0)])
    made = lime_tabular.LimeTabularExplainer(data)
    explainer = from_lime(made, lambda x: MODEL.predict_proba(x[:, :4]), num_samples=200)
    noise = metfa.noise.per_column(data, 0.1)
    sample = metfa.explain(explainer, data[[60]], noise=noise, n_samples=8, rng=0)
    interval = sample.confidence_interval()
    assert interval.low[0, 4] == interval.high[0, 4] == 0
    assert sample.significance_map(0.0)[0, 4] == 0


@pytest.mark.parametrize(("table", "row"), [("missing", "whole"), ("whole", "missing")])
def test_missing_values_are_refused(table, row):
    """Lime would fail on its own table, and read a missing value of a row as one of the largest."""
    whole = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    tables = {"whole": whole, "missing": whole.assign(b=whole["b"].where(whole.index % 5 > 0))}
    lime = lime_tabular.LimeTabularExplainer(tables[table].to_numpy(), feature_names=["a", "b", "c"])
    explainer = from_lime(lime, lambda frame: np.stack([frame["a"] > 0, frame["a"] <= 0], axis=1) * 1.0)
    with pytest.raises(ValueError, match=r"lime takes no missing values, and column 'b' of the (row|table)"):
        explainer(tables[row][:1], target=0)


def test_a_regression():
    data = load_diabetes()
    model = LinearRegression().fit(data.data, data.target)
    made = lime_tabular.LimeTabularExplainer(data.data, mode="regression", discretize_continuous=False)
    explainer = from_lime(made, model.predict, num_samples=2000, rng=0)
    weights, scores = explainer(data.data[:2])
    np.testing.assert_allclose(weights, np.stack([model.coef_ * made.scaler.scale_] * 2), rtol=0.05, atol=1)
    np.testing.assert_array_equal(scores, model.predict(data.data[:2]))


def test_fewer_features_are_zeros_and_categories_are_kept():
    made = table(categorical_features=[3], categorical_names={3: list(map(str, np.unique(IRIS.data[:, 3])))})
    weights, _ = from_lime(made, MODEL.predict_proba, num_features=2, num_samples=200, rng=0)(ROWS, target=0)
    assert ((weights != 0).sum(axis=1) == 2).all()


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_the_prediction_sees_arrays_like_the_inputs(library):
    seen = set()

    def predict(rows):
        seen.add((type(rows), str(rows.dtype)))
        return MODEL.predict_proba(np.asarray(rows))

    rows = ROWS.astype(np.float32) if library == "numpy" else torch.tensor(ROWS, dtype=torch.float32)
    from_lime(table(), predict, num_samples=50, rng=0)(rows, target=0)
    assert len(seen) == 1


def test_whole_numbers_do_not_cut_the_perturbations():
    whole = []

    def predict(rows):
        whole.append((rows == rows.round()).all())
        return MODEL.predict_proba(rows)

    from_lime(table(), predict, num_samples=50, rng=0)(ROWS.round().astype(int), target=0)
    assert not all(whole)


# Images


def blocks(images):
    """Probability by the brightness of the left half."""
    bright = images[:, :, :, : images.shape[3] // 2].mean(axis=(1, 2, 3))
    return np.stack([1 - bright, bright], axis=1)


def picture(channels=3):
    image = np.random.default_rng(0).random((1, channels, 20, 16)) * 0.3
    image[:, :1, :, :8] += 0.6
    image[:, -1:, :10, 8:] += 0.4
    return image


def halves(image):
    """Segments: left above, left below, right above, right below."""
    return np.kron([[0, 2], [1, 3]], np.ones((10, 8), dtype=int))


@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_is_limes_own_explanation(channels, capsys):  # bugs.md 26
    image = np.kron(picture(channels), np.ones((1, 1, 4, 4)))
    rng = np.random.default_rng(5)
    weights, scores = from_lime(lime_image.LimeImageExplainer(), blocks, num_samples=100, hide_color=0)(
        image, target=1, rngs=[rng]
    )
    theirs = lime_image.LimeImageExplainer()
    theirs.random_state = theirs.base.random_state = same_stream(5)
    picture_of = image[0, 0] if channels == 1 else np.moveaxis(image[0], 0, -1)
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""  # no progress bar
    explanation = theirs.explain_instance(
        picture_of,
        lambda pictures: blocks(np.moveaxis(pictures, -1, 1)[:, :channels]),
        labels=(1,),
        top_labels=None,
        num_samples=100,
        hide_color=0,
    )
    assert capsys.readouterr().err != ""  # theirs is back
    expected = np.zeros((80, 64))
    for segment, weight in explanation.local_exp[1]:
        expected[explanation.segments == segment] = weight
    assert len(np.unique(explanation.segments)) > 1
    np.testing.assert_allclose(weights[0], expected)
    np.testing.assert_array_equal(scores, blocks(image))


def test_the_paper_s_mask_is_get_image_and_mask():
    lime = lime_image.LimeImageExplainer()
    explainer = from_lime(lime, blocks, num_samples=100, hide_color=0, segmentation_fn=halves, n_segments_shown=2)
    sample = metfa.explain(explainer, picture(), 1, noise=None, n_samples=6, rng=0)
    assert set(np.unique(sample.values)) == {0, 1}
    assert (sample.smoothed()[0, :, :8] == 1).all()
    assert (sample.smoothed()[0, :, 8:] == 0).all()


def test_a_network_of_logits():
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(12, 3)).eval()
    images = torch.tensor(picture(), dtype=torch.float32)
    with torch.no_grad():
        net[2].weight.copy_(torch.linspace(-6, 6, 36).reshape(3, 12))  # whatever the global seed
        expected = net(images)
    lime, settings = lime_image.LimeImageExplainer(), {"num_samples": 60, "segmentation_fn": halves, "rng": 0}
    maps, scores = from_lime(lime, net, softmax=True, **settings)(images, target=2)
    by_hand, _ = from_lime(lime, lambda x: net(x).softmax(dim=1), **settings)(images, target=2)
    np.testing.assert_allclose(maps, by_hand, atol=1e-6)
    np.testing.assert_allclose(scores, expected)
    with pytest.warns(ModelOutputWarning, match="LIME fits probabilities, but the model's scores lie between -"):
        from_lime(lime, net, **settings)(images, target=2)
    assert from_lime(lime, net).model is net


def test_one_segment_says_nothing_and_is_refused():
    lime = lime_image.LimeImageExplainer()
    with pytest.raises(ValueError, match=r"two segments, .*`segmentation_fn=skimage\.segmentation\.slic`"):
        from_lime(lime, blocks, num_samples=20, n_segments_shown=5, rng=0)(picture(), target=0)
    maps, _ = from_lime(lime, blocks, num_samples=20, segmentation_fn=slic, rng=0)(picture(), target=0)  # the advice
    assert np.ptp(maps) > 0


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (picture() * 255, r"pixels in \[0, 1\], .* got 0\.01454 to 229\.3"),
        (np.zeros((1, 4, 8, 8)), r"1 or 3 channels for the lime package, got shape \(1, 4, 8, 8\)"),
        (np.zeros((1, 8, 8, 3)), r"of shape \(1, 8, 8, 3\) look like images \(batch, height, width, channels\)"),
    ],
)
def test_images_that_lime_cannot_take(inputs, message):
    with pytest.raises(ValueError, match=message):
        from_lime(lime_image.LimeImageExplainer(), blocks)(inputs, target=0)


def test_the_random_state_and_the_bar_come_back_after_an_exception():
    made = lime_image.LimeImageExplainer(random_state=3)
    before, bar = states(made), lime_image.tqdm

    def fails(images):
        if len(images) > 1:
            raise RuntimeError("no service")
        return blocks(images)

    with pytest.raises(RuntimeError, match="no service"):
        from_lime(made, fails)(picture(), target=0)
    assert lime_image.tqdm is bar
    assert all(a[0] is b[0] and a[1] == b[1] for a, b in zip(before, states(made), strict=True))


# Texts


@pytest.mark.parametrize("text", ["", "...", " "])
def test_a_text_without_words_is_refused(text):
    with pytest.raises(ValueError, match=r"texts with words, but lime finds none in row 1: "):
        from_lime(lime_text.LimeTextExplainer(), lambda texts: np.full((len(texts), 2), 0.5))(
            ["a film", text], target=0
        )


@pytest.mark.parametrize("text", ["good", "good film"])
def test_the_ridge_of_the_package_decides_in_texts_of_one_or_two_words(text):
    def model(texts):
        good = np.array([0.3 + 0.4 * ("good" in row) for row in texts])
        return np.stack([1 - good, good], axis=1)

    explainer = from_lime(lime_text.LimeTextExplainer(), model, rng=0)
    with pytest.warns(DegenerateAttributionsWarning, match=r"ridge penalty decides .*take metfa\.text\.LIME"):
        weights, _ = explainer([text], target=1)
    assert weights[0, 0] < 0.31  # 0.154 and 0.296
    np.testing.assert_allclose(metfa.text.LIME(model, scale=False)([text], 1)[0][0, 0], 0.4)  # the advice


@pytest.mark.parametrize("bow", [True, False])
def test_a_text_has_a_weight_for_each_word(bow):
    lime = lime_text.LimeTextExplainer(bow=bow)
    explainer = from_lime(lime, REVIEWS.predict_proba, num_samples=400)
    words = explainer.words(TEXTS[0])
    assert words == (("a", "good", "film", "and", "evening") if bow else tuple(TEXTS[0].split()))
    sample = metfa.explain(explainer, [TEXTS[0]], noise=None, n_samples=10, rng=0, run=metfa.Run(feature_names=words))
    assert sample.values.shape == (10, 1, len(words))
    assert sample.target == (1,)
    best = words[int(sample.smoothed()[0].argmax())]
    assert best == "good"
    theirs = lime_text.LimeTextExplainer(bow=bow)
    theirs.random_state = theirs.base.random_state = same_stream(3)
    explanation = theirs.explain_instance(
        TEXTS[0], REVIEWS.predict_proba, labels=(1,), num_features=len(words), num_samples=400
    )
    weights, _ = explainer([TEXTS[0]], target=1, rngs=[np.random.default_rng(3)])
    np.testing.assert_allclose(weights[0], [w for _, w in sorted(explanation.as_map()[1])])


def test_a_noise_that_replaces_words_one_by_one_keeps_the_places():
    def dropped(text, rng):
        return " ".join(word if rng.random() < 0.8 else "_" for word in text.split())

    explainer = from_lime(lime_text.LimeTextExplainer(bow=False), REVIEWS.predict_proba, num_samples=200)
    sample = metfa.explain(explainer, [TEXTS[0]], noise=dropped, n_samples=20, rng=0)
    assert sample.values.shape == (20, 1, 7)
    assert set(np.argsort(sample.mean()[0])[-2:]) == {1, 5}  # both of "good"


def test_texts_of_other_lengths_are_refused():
    explainer = from_lime(lime_text.LimeTextExplainer(), REVIEWS.predict_proba, num_samples=50)
    with pytest.raises(ValueError, match="texts of 3 to 5 distinct words, but every row needs as many"):
        explainer([TEXTS[0], TEXTS[1]], target=1)
    with pytest.raises(TypeError, match="`inputs` must be a list of texts, got str"):
        explainer(TEXTS[0], target=1)


# Settings


PREDICT = MODEL.predict_proba


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: from_lime(lime_tabular.LimeTabularExplainer, PREDICT), TypeError, "got LimeTabularExplainer"),
        (lambda: from_lime(MODEL, PREDICT), TypeError, "got LogisticRegression"),
        (lambda: from_lime(table(), 3), TypeError, "`predict` must be a function inputs -> probabilities, got int"),
        (lambda: from_lime(table(), PREDICT, softmax=1), TypeError, "`softmax` must be True or False, got int"),
        (lambda: from_lime(table(), PREDICT, samples=9), ValueError, "has no setting 'samples' here; it has num_"),
        (lambda: from_lime(table(), PREDICT, labels=(1,)), ValueError, "has no setting 'labels' here"),
        (lambda: from_lime(table(), PREDICT, n_segments_shown=5), ValueError, "`n_segments_shown` is for images"),
        (
            lambda: from_lime(lime_image.LimeImageExplainer(), blocks, n_segments_shown=0),
            ValueError,
            "`n_segments_shown` must be at least 1, got 0",
        ),
        (lambda: from_lime(table(), PREDICT)(ROWS[0], 0), ValueError, "(batch, columns), got shape (4,)"),
    ],
)
def test_unfit_arguments(make, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make()
