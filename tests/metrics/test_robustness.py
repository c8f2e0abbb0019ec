"""Robust metrics: the same noise for every map, ratios of means, the metric itself without noise."""

import numpy as np
import pytest
import torch

import metfa
from metfa import DegenerateAttributionsWarning, ModelOutputWarning
from metfa.metrics import deletion, insertion, overall, region_score, robust

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
    result = robust(metric, noise=nothing, n_samples=3)(logits, IMAGES, MAPS)
    for name in ("raw", "clean", "score"):
        np.testing.assert_allclose(getattr(result, name), getattr(expected, name), rtol=1e-14)
    np.testing.assert_allclose(result.mean_of_ratios, expected.score, rtol=1e-14)
    np.testing.assert_allclose(result.median_of_ratios, expected.score, rtol=1e-14)


def test_every_map_meets_the_same_noise():
    seen = []

    def metric(model, inputs, attributions, target):
        seen.append(inputs.copy())
        return insertion(model, inputs, attributions, target)

    judge = robust(metric, noise=NOISE, n_samples=4)
    judge(logits, IMAGES, MAPS)
    judge(logits, IMAGES, 1 - MAPS)
    np.testing.assert_array_equal(seen[:4], seen[4:])
    assert np.abs(seen[0] - seen[1]).max() > 0.05
    judge(logits, IMAGES[::-1], MAPS)  # wherever in the batch an input stands
    np.testing.assert_array_equal(seen[0], seen[8][::-1])


def test_means_over_the_draws_by_hand():
    judge = robust(insertion, noise=NOISE, n_samples=5, rng=0)
    result = judge(logits, IMAGES, MAPS, [0, 1, 2], steps=9)
    rows = metfa._rows.Rows(IMAGES)
    raws, cleans = [], []
    for draw in range(5):
        streams = [metfa._streams.stream(0, identity, draw, metfa._streams.Purpose.OUTER) for identity in rows.ids()]
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
    inverted = robust(insertion, noise=lambda x, rng: 1 - x, n_samples=1)
    assert (logits(1 - IMAGES).argmax(axis=1) != best).any()
    np.testing.assert_array_equal(inverted(logits, IMAGES, MAPS).raw, inverted(logits, IMAGES, MAPS, best).raw)


def test_a_noisy_input_without_the_class_does_not_rule_the_score():
    """One of the draws is black, where the class has the score 0."""
    draws = iter([1.0, 0.0, 1.0])
    model = lambda images: np.stack([images[:, 0, 0, 0], 1 - images[:, 0, 0, 0]], axis=1)  # noqa: E731
    judge = robust(insertion, noise=lambda x, rng: x * next(draws), n_samples=3)
    with pytest.warns(ModelOutputWarning, match="clean score below 1e-06"):
        result = judge(model, np.ones((1, 1, 2, 2)), np.array([[[4, 3], [2, 1]]]), 0, softmax=False)
    np.testing.assert_allclose(result.score, [0.875])
    np.testing.assert_allclose(result.mean_of_ratios, [0.875])
    np.testing.assert_array_equal(np.isnan(result.ratios[:, 0]), [False, True, False])


def test_constant_maps_have_no_robust_score():
    with pytest.warns(DegenerateAttributionsWarning, match="3 of 3 inputs have constant attributions"):
        result = robust(overall, noise=NOISE, n_samples=2)(logits, IMAGES, np.ones_like(MAPS))
    assert np.isnan(result.score).all()
    assert np.isnan(result.mean_of_ratios).all()
    assert np.isnan(result.median_of_ratios).all()
    assert result.degenerate == ("constant attributions",) * 3


def test_any_metric_with_a_score():
    class Answer:
        def __init__(self, score):
            self.score = score

    judge = robust(lambda model, inputs, maps, target: Answer(inputs.mean(axis=(1, 2, 3))), noise=nothing, n_samples=2)
    np.testing.assert_allclose(judge(logits, IMAGES, MAPS).score, IMAGES.mean(axis=(1, 2, 3)))
    regions = robust(region_score, noise=nothing, n_samples=2)(logits, IMAGES, MAPS > 0.5)
    np.testing.assert_allclose(regions.score, region_score(logits, IMAGES, MAPS > 0.5).score)


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

    judge = robust(metric, noise=worse, n_samples=20, rng=0)
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

    result = robust(metric, noise=nothing, n_samples=2)(lambda texts: text_model(texts)[:, 1], TEXTS, LENGTHS)
    np.testing.assert_array_equal(result.raw, [1.6, 0.6, 1.6])


def test_torch():
    linear = torch.nn.Linear(*WEIGHTS.shape, bias=False, dtype=torch.float64)
    linear.weight.data.copy_(torch.from_numpy(WEIGHTS.T))
    model = torch.nn.Sequential(torch.nn.Flatten(), linear).eval()
    judge = robust(overall, noise=NOISE, n_samples=2, rng=0)
    expected = judge(logits, IMAGES, MAPS)
    np.testing.assert_allclose(judge(model, torch.from_numpy(IMAGES), torch.from_numpy(MAPS)).score, expected.score)


def test_the_seed():
    first, again, other = (
        robust(insertion, noise=NOISE, n_samples=2, rng=seed)(logits, IMAGES, MAPS).raws for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: robust("insertion", noise=NOISE), TypeError, "`metric` must be callable, got str"),
        (lambda: robust(insertion, noise=0.1), TypeError, r"`noise` must be a function f\(x, rng\) -> x, got float"),
        (lambda: robust(insertion, noise=NOISE, n_samples=0), ValueError, "`n_samples` must be at least 1, got 0"),
        (lambda: robust(insertion, noise=NOISE, rng="a"), TypeError, "`rng` must be None, an int or"),
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
