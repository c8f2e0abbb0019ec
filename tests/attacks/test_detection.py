"""Signs of an attack, and how well they tell attacked images from clean ones."""

import math
from statistics import NormalDist

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
    zone = 1e-4 * sample.unit[:, None, None]  # what counts as rounding: steep scores are all but 1
    outside = (sample.vanilla < interval.low - zone) | (sample.vanilla > interval.high + zone)
    assert found["outside"] == pytest.approx(outside.mean((1, 2)))


def test_the_curve_and_its_area():
    rng = np.random.default_rng(1)
    clean, attacked = rng.normal(0, 1, 30).round(1), rng.normal(0.7, 1, 20).round(1)  # with ties
    found = Detection({"sign": clean}, {"sign": attacked})
    truth, scores = np.repeat([0, 1], [30, 20]), np.concatenate([clean, attacked])
    area = found.auc("sign")
    assert area == pytest.approx(roc_auc_score(truth, scores))
    false, true = found.roc("sign")
    expected = roc_curve(truth, scores, drop_intermediate=False)
    assert false == pytest.approx(expected[0])
    assert true == pytest.approx(expected[1])
    low, high = found.auc_interval("sign")
    assert area - 0.25 < low < area - 0.1
    assert area + 0.05 < high < area + 0.15
    wider = found.auc_interval("sign", 0.99)
    assert wider[0] < low < high < wider[1] < 1


@pytest.mark.parametrize(("n", "truth"), [(4, 0.5), (6, 0.9), (20, 0.76)])
def test_the_limits_hold_the_area(n, truth):
    rng, shift = np.random.default_rng(2), math.sqrt(2) * NormalDist().inv_cdf(truth)
    limits = [
        Detection({"s": rng.normal(0, 1, n)}, {"s": rng.normal(shift, 1, n)}).auc_interval("s", 0.9) for _ in range(400)
    ]
    held = np.mean([low <= truth <= high for low, high in limits])
    assert 0.85 < held < 0.97


@pytest.mark.parametrize(("n", "low"), [(1, 0.21), (2, 0.39), (6, 0.69), (50, 0.96)])
def test_few_images_that_agree_say_little(n, low):
    zeros, ones = {"s": np.zeros(n)}, {"s": np.ones(n)}
    found = Detection(zeros, ones).auc_interval("s")
    assert found == (pytest.approx(low, abs=0.01), 1.0)
    assert Detection(ones, zeros).auc_interval("s") == (0.0, pytest.approx(1 - low, abs=0.01))
    assert f"| 1.000 ({found[0]:.3f} to 1.000)" in str(Detection(zeros, ones))
    with pytest.raises(ValueError, match="`confidence_level`"):
        Detection(zeros, ones).auc_interval("s", 95)


def test_attacked_images_are_where_the_map_is_steep():
    rng = np.random.default_rng(3)
    clean = sampled(rng.choice([-1.0, 1.0], (6, 5, 5)))
    attacked = sampled(rng.normal(0, 0.02, (6, 5, 5)))
    found = attacks.detect(clean, attacked)
    for sign in ("difference", "width"):
        assert found.auc(sign) == 1
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
