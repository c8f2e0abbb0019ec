"""Signs of an attack, and how well they tell attacked images from clean ones."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

import metfa
from metfa import attacks
from metfa.attacks.detection import Detection

NOISE = metfa.noise.Uniform(0.2)


def steep(x, target):
    return np.tanh(20 * x)


def sampled(images, explainer=steep, **settings):
    return metfa.explain(explainer, images, 0, **{"noise": NOISE, "n_samples": 12, "rng": 0, **settings})


def test_signs_are_means_over_the_features():
    images = np.random.default_rng(0).normal(0, 0.2, (3, 5, 4))
    sample = sampled(images)
    found = attacks.detect(sample, sample).clean
    interval, smoothed = sample.confidence_interval(), sample.smoothed()
    assert found["difference"] == pytest.approx(np.abs(sample.vanilla - smoothed).mean((1, 2)))
    assert found["width"] == pytest.approx((interval.high - interval.low).mean((1, 2)))
    outside = (sample.vanilla < interval.low) | (sample.vanilla > interval.high)
    assert found["outside"] == pytest.approx(outside.mean((1, 2)))


def test_the_curve_and_its_area():
    rng = np.random.default_rng(1)
    clean, attacked = rng.normal(0, 1, 30).round(1), rng.normal(0.7, 1, 20).round(1)  # with ties
    found = Detection({"sign": clean}, {"sign": attacked})
    truth, scores = np.repeat([0, 1], [30, 20]), np.concatenate([clean, attacked])
    area, error = found.auc("sign")
    assert area == pytest.approx(roc_auc_score(truth, scores))
    false, true = found.roc("sign")
    expected = roc_curve(truth, scores, drop_intermediate=False)
    assert false == pytest.approx(expected[0])
    assert true == pytest.approx(expected[1])
    assert 0.02 < error < 0.12


def test_the_error_is_the_spread_of_the_area():
    rng = np.random.default_rng(2)
    found = [Detection({"s": rng.normal(0, 1, 25)}, {"s": rng.normal(1, 1, 25)}).auc("s") for _ in range(400)]
    areas, errors = np.array(found).T
    assert np.mean(errors) == pytest.approx(np.std(areas), rel=0.15)


def test_attacked_images_are_where_the_map_is_steep():
    rng = np.random.default_rng(3)
    clean = sampled(rng.choice([-1.0, 1.0], (6, 5, 5)))
    attacked = sampled(rng.normal(0, 0.02, (6, 5, 5)))
    found = attacks.detect(clean, attacked)
    for sign in ("difference", "width"):
        assert found.auc(sign)[0] == 1
    assert str(found).splitlines()[2].startswith("| difference | 0.0000 | ")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_samples": 14}, "got n_samples 12 and 14"),
        ({"noise": metfa.noise.Uniform(0.3)}, r"got noise Uniform\(radius=0.2"),
        ({"explainer": lambda x, target: x}, "got explainer steep and"),
    ],
)
def test_samples_that_were_made_otherwise(change, said):
    images = np.random.default_rng(0).normal(size=(2, 3))
    with pytest.raises(ValueError, match=said):
        attacks.detect(sampled(images), sampled(images, **change))


def test_too_few_samples_and_other_kinds():
    few = sampled(np.random.default_rng(0).normal(size=(2, 3)), n_samples=4)
    with pytest.raises(ValueError, match="at least 6"):
        attacks.detect(few, few)
    with pytest.raises(TypeError, match="`attacked` must be an AttributionSample, got int"):
        attacks.detect(few, 3)
