"""Robust metrics: the same noise for every map, ratios of means, the metric itself without noise."""

import inspect
import warnings
from functools import partial

import numpy as np
import pytest
import torch

import metfa
from metfa import DegenerateAttributionsWarning, ModelOutputWarning
from metfa.metrics import deletion, insertion, mstd, overall, region_score, robust, top_k_overlap
from metfa.sampling.streams import Purpose, stream

WEIGHTS = np.random.default_rng(1).normal(size=(3 * 9 * 9, 4)) / 4
IMAGES = np.random.default_rng(0).random((3, 3, 9, 9))
MAPS = np.random.default_rng(2).random((3, 9, 9))
NOISE = metfa.noise.Gaussian(0.1, bounds=(0, 1))


def logits(images):
    return images.reshape(len(images), -1) @ WEIGHTS


def nothing(x, rng):
    return x


@pytest.mark.parametrize("metric", [insertion, deletion, overall])
def test_no_noise_is_the_metric(metric):
    expected = metric(logits, IMAGES, MAPS)
    result = robust(metric, noise=nothing, n_outer=3)(logits, IMAGES, MAPS)
    for name in ("raw", "clean", "score"):
        np.testing.assert_allclose(getattr(result, name), getattr(expected, name), rtol=1e-14)
    np.testing.assert_allclose(result.mean_of_ratios, expected.score, rtol=1e-14)
    np.testing.assert_allclose(result.median_of_ratios, expected.score, rtol=1e-14)


def test_every_map_meets_the_same_noise():
    seen = []

    def metric(model, inputs, attributions, target):
        seen.append(inputs.copy())
        return insertion(model, inputs, attributions, target)

    judge = robust(metric, noise=NOISE, n_outer=4)
    judge(logits, IMAGES, MAPS)
    judge(logits, IMAGES, 1 - MAPS)
    np.testing.assert_array_equal(seen[:4], seen[4:])
    assert np.abs(seen[0] - seen[1]).max() > 0.05
    judge(logits, IMAGES[::-1], MAPS)  # wherever in the batch an input stands
    np.testing.assert_array_equal(seen[0], seen[8][::-1])


def test_means_over_the_draws_by_hand():
    judge = robust(insertion, noise=NOISE, n_outer=5, rng=0)
    result = judge(logits, IMAGES, MAPS, [0, 1, 2], steps=9)
    rows = metfa.sampling.rows.Rows(IMAGES)
    raws, cleans = [], []
    for draw in range(5):
        streams = [stream(0, identity, draw, Purpose.OUTER) for identity in rows.ids()]
        noisy = np.stack([NOISE(image, rng) for image, rng in zip(IMAGES, streams, strict=True)])
        curve = insertion(logits, noisy, MAPS, [0, 1, 2], steps=9)
        raws.append(curve.raw)
        cleans.append(curve.clean)
    np.testing.assert_allclose(result.raw, np.mean(raws, axis=0))
    np.testing.assert_allclose(result.score, np.mean(raws, axis=0) / np.mean(cleans, axis=0))
    np.testing.assert_allclose(result.mean_of_ratios, np.mean(np.divide(raws, cleans), axis=0))
    np.testing.assert_allclose(result.median_of_ratios, np.median(np.divide(raws, cleans), axis=0))


def test_the_target_is_that_of_the_clean_input():
    """Noise that inverts the image changes the prediction, not what is judged."""
    best = logits(IMAGES).argmax(axis=1)
    inverted = robust(insertion, noise=lambda x, rng: 1 - x, n_outer=1)
    assert (logits(1 - IMAGES).argmax(axis=1) != best).any()
    np.testing.assert_array_equal(inverted(logits, IMAGES, MAPS).raw, inverted(logits, IMAGES, MAPS, best).raw)


def test_a_noisy_input_without_the_class_does_not_rule_the_score():
    """One of the draws is black, where the class has the score 0."""
    draws = iter([1.0, 0.0, 1.0])
    model = lambda images: np.stack([images[:, 0, 0, 0], 1 - images[:, 0, 0, 0]], axis=1)  # noqa: E731
    judge = robust(insertion, noise=lambda x, rng: x * next(draws), n_outer=3)
    with pytest.warns(ModelOutputWarning, match="clean score below 1e-06"):
        result = judge(metfa.Called(model, softmax=False), np.ones((1, 1, 2, 2)), np.array([[[4, 3], [2, 1]]]), 0)
    np.testing.assert_allclose(result.score, [0.875])
    np.testing.assert_allclose(result.mean_of_ratios, [0.875])
    np.testing.assert_array_equal(np.isnan(result.ratios[:, 0]), [False, True, False])


def test_constant_maps_have_no_robust_score():
    with pytest.warns(DegenerateAttributionsWarning, match="3 of 3 inputs have constant attributions"):
        result = robust(overall, noise=NOISE, n_outer=2)(logits, IMAGES, np.ones_like(MAPS))
    assert np.isnan(result.score).all()
    assert np.isnan(result.mean_of_ratios).all()
    assert np.isnan(result.median_of_ratios).all()
    assert result.degenerate == ("constant attributions",) * 3


def test_any_metric_with_a_score():
    class Answer:
        def __init__(self, score):
            self.score = score

    judge = robust(lambda model, inputs, maps, target: Answer(inputs.mean(axis=(1, 2, 3))), noise=nothing, n_outer=2)
    np.testing.assert_allclose(judge(logits, IMAGES, MAPS).score, IMAGES.mean(axis=(1, 2, 3)))
    regions = robust(region_score, noise=nothing, n_outer=2)(logits, IMAGES, MAPS > 0.5)
    np.testing.assert_allclose(regions.score, region_score(logits, IMAGES, MAPS > 0.5).score)


@pytest.mark.parametrize("form", [np.asarray, torch.from_numpy, list, np.ndarray.tolist])
def test_any_metric_of_plain_numbers(form):
    judge = robust(lambda model, inputs, maps, target: form(inputs.mean(axis=(1, 2, 3))), noise=NOISE, n_outer=2)
    result = judge(logits, IMAGES, MAPS)
    assert result.raws.shape == (2, 3)
    np.testing.assert_allclose(result.score, IMAGES.mean(axis=(1, 2, 3)), atol=0.05)


@pytest.mark.parametrize("number", [0.5, np.float32(0.5), torch.tensor(0.5), [0.5], np.array([[0.5]])], ids=repr)
def test_a_number_for_a_batch_of_one(number):
    """As a study takes it, which asks for one input after the other."""

    class Answer:
        score = number

    for found in (number, Answer()):
        judge = robust(lambda model, inputs, maps, target, found=found: found, noise=NOISE, n_outer=2)
        np.testing.assert_array_equal(judge(logits, IMAGES[:1], MAPS[:1]).raws, [[0.5], [0.5]])


@pytest.mark.parametrize(
    ("found", "error", "message"),
    [
        (0.5, ValueError, "`metric` must return one number for each of the 3 inputs, got 1"),
        (np.ones(7), ValueError, "`metric` must return one number for each of the 3 inputs, got 7"),
        (np.ones((3, 7)), ValueError, r"one number for each of the 3 inputs, got an array of shape \(3, 7\)"),
        (np.ones((3, 1)), ValueError, r"one number for each of the 3 inputs, got an array of shape \(3, 1\)"),
        (
            metfa.metrics.Scores(np.ones(2), np.ones(3), (None,) * 3),
            ValueError,
            "number for each of the 3 inputs, got 2",
        ),
        (
            metfa.metrics.Scores(np.ones(3), np.ones(2), (None,) * 3),
            ValueError,
            "clean score for each of the 3 inputs, got 2",
        ),
        (None, TypeError, "an array with one number for each input, or an object with `score`, got NoneType"),
        ("good", TypeError, "an array with one number for each input, or an object with `score`, got str"),
        (np.ones(3) * 1j, TypeError, "or an object with `score`, got an array of complex128"),
    ],
)
def test_what_is_no_score_of_each_input(found, error, message):
    seen = []

    def metric(model, inputs, maps, target):
        seen.append(inputs)
        return found

    with pytest.raises(error, match=message):
        robust(metric, noise=NOISE, n_outer=5)(logits, IMAGES, MAPS)
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("metric", "named"),
    [
        (mstd, r"mstd\(sample\)"),
        (partial(top_k_overlap, k=3), r"top_k_overlap\(k=3\)\(sample, k\)"),
        (lambda sample: 1, r"<lambda>\(sample\)"),
    ],
)
def test_metrics_of_a_sample_are_under_noise_already(metric, named):
    with pytest.raises(
        TypeError,
        match=rf"`metric` must take \(model, inputs, attributions, target\), got {named}: a metric of a "
        r"sample is under noise already, call it on `metfa\.explain\(explainer, inputs, target, noise=",
    ):
        robust(metric, noise=NOISE)


def test_warnings_come_once_a_call():
    maps = np.where(np.arange(3)[:, None, None] == 1, 0.5, MAPS)
    judge = robust(overall, noise=NOISE, n_outer=4)
    line = inspect.currentframe().f_lineno + 2
    with pytest.warns() as warned:
        judge(lambda images: np.full((len(images), 2), 0.5), IMAGES, maps, 0)
    assert [(one.category, str(one.message)[:45]) for one in warned] == [
        (ModelOutputWarning, "the model's scores look like probabilities, a"),
        (DegenerateAttributionsWarning, "1 of 3 inputs have constant attributions: 1"),
    ]
    assert {(one.filename, one.lineno) for one in warned} == {(__file__, line)}
    with pytest.warns(DegenerateAttributionsWarning) as warned:  # in the next call again
        judge(logits, IMAGES, maps, 0)
    assert len(warned) == 1


def test_warnings_before_an_error_are_given():
    def metric(model, inputs, maps, target):
        warnings.warn("take care", stacklevel=1)
        raise ValueError("no score")

    with pytest.warns(UserWarning, match="take care"), pytest.raises(ValueError, match="no score"):
        robust(metric, noise=NOISE)(logits, IMAGES, MAPS, 0)


def test_a_reason_in_any_draw_is_kept():
    class Sometimes:
        def __init__(self, missing):
            self.score = np.where(missing, np.nan, np.ones(3))
            self.degenerate = tuple("nothing there" if flag else None for flag in missing)

    draws = iter([[False, False, False], [False, True, False]])
    judge = robust(lambda model, inputs, maps, target: Sometimes(next(draws)), noise=NOISE, n_outer=2)
    result = judge(logits, IMAGES, MAPS)
    assert result.degenerate == (None, "nothing there", None)
    assert np.isnan(result.score).tolist() == [False, True, False]


def test_a_graph_is_let_go():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(len(WEIGHTS), 4, dtype=torch.float64)).eval()
    images, maps = torch.from_numpy(IMAGES).requires_grad_(), torch.from_numpy(MAPS).requires_grad_()
    judge = robust(overall, noise=NOISE, n_outer=2)
    torch.set_warn_always(True)
    try:
        result = judge(model, images, maps)
    finally:
        torch.set_warn_always(False)
    np.testing.assert_array_equal(result.score, judge(model, images.detach(), maps.detach()).score)


TEXTS = ["a good film", "bad", "good but bad"]
LENGTHS = [np.arange(3.0), np.arange(1.0), np.arange(3.0)]


def text_model(texts):
    texts = [" ".join(text) if isinstance(text, list) else text for text in texts]
    return np.array([[text.count("bad") + 0.5, text.count("good") + 0.6] for text in texts])


@pytest.mark.parametrize("texts", [TEXTS, [text.split() for text in TEXTS]])
def test_texts(texts):
    """Each under its own draws, which meet it wherever it stands; the target is that of the clean text."""
    seen = []

    def metric(model, inputs, attributions, target, *, batch_size):
        seen.append((list(inputs), target))
        scores = model(inputs)[np.arange(len(inputs)), target]
        assert [len(scores) for scores in attributions] == [3, 1, 3]
        return metfa.metrics.Scores(scores, np.ones(len(inputs)), (None,) * len(inputs))

    def worse(text, rng):
        words = text.split() if isinstance(text, str) else text
        noisy = [word if rng.random() < 0.5 else "bad" for word in words]
        return " ".join(noisy) if isinstance(text, str) else noisy

    judge = robust(metric, noise=worse, n_outer=20, rng=0)
    result = judge(text_model, texts, LENGTHS, batch_size=2)
    assert {tuple(target) for _, target in seen} == {(1, 0, 1)}
    np.testing.assert_array_equal(result.raws[7], text_model(seen[7][0])[np.arange(3), [1, 0, 1]])
    assert len({str(noisy) for noisy, _ in seen}) > 5
    judge(text_model, texts[::-1], LENGTHS[::-1], batch_size=2)
    assert [noisy[::-1] for noisy, _ in seen[20:]] == [noisy for noisy, _ in seen[:20]]


def test_texts_with_one_score_have_no_target():
    def metric(model, inputs, attributions, target):
        assert target is None
        return metfa.metrics.Scores(model(inputs), np.ones(len(inputs)), (None,) * len(inputs))

    result = robust(metric, noise=nothing, n_outer=2)(lambda texts: text_model(texts)[:, 1], TEXTS, LENGTHS)
    np.testing.assert_array_equal(result.raw, [1.6, 0.6, 1.6])


def test_torch():
    linear = torch.nn.Linear(*WEIGHTS.shape, bias=False, dtype=torch.float64)
    linear.weight.data.copy_(torch.from_numpy(WEIGHTS.T))
    model = torch.nn.Sequential(torch.nn.Flatten(), linear).eval()
    judge = robust(overall, noise=NOISE, n_outer=2, rng=0)
    expected = judge(logits, IMAGES, MAPS)
    np.testing.assert_allclose(judge(model, torch.from_numpy(IMAGES), torch.from_numpy(MAPS)).score, expected.score)


def test_the_seed():
    first, again, other = (
        robust(insertion, noise=NOISE, n_outer=2, rng=seed)(logits, IMAGES, MAPS).raws for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: robust("insertion", noise=NOISE), TypeError, "`metric` must be callable, got str"),
        (
            lambda: robust(insertion, noise=0.1),
            TypeError,
            r"`noise` must be a function, called as noise\(x, rng\), got float",
        ),
        (lambda: robust(insertion, noise=NOISE, n_outer=0), ValueError, "`n_outer` must be at least 1, got 0"),
        (lambda: robust(insertion, noise=NOISE, rng="a"), TypeError, "`rng` must be None, an int or"),
        (lambda: robust(insertion, noise=NOISE)(logits, IMAGES, MAPS * 1j, 0), TypeError, "got complex128"),
        (
            lambda: robust(insertion, noise=lambda x, rng: x[0])(logits, IMAGES, MAPS, 0),
            ValueError,
            "`noise` changed the shape of input 0, draw 0",
        ),
    ],
)
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()
