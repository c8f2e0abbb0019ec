"""m_f by hand on tiny maps, its robust form, and the table of classes."""

import functools

import numpy as np
import pytest
import torch

import metfa
from metfa import metrics
from metfa.metrics import robust
from metfa.segmentation import context_faithfulness, context_table, explain_context

REGION = np.array([[True, True, False, False]])
NONE = np.zeros((1, 4), dtype=bool)


def network(images):
    """Probability of class 1 in a pixel: its brightness times that of the last pixel; NumPy and torch alike."""
    found = images * images[:, :, :, -1:]
    return metfa._arrays.namespace(images).concat([1 - found, found], axis=1)


IMAGE = np.array([[[[0.5, 1.0, 0.3, 0.8]]]])


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (NONE, 1 - (0.5 * 0.8 + 1.0 * 0.8) / 2),  # without the last pixel nothing is left
        (np.array([[False, False, False, True]]), 1.0),
        (np.array([[False, False, True, False]]), 1 - (0.5 * 0.8 + 1.0 * 0.8) / 2),
        (np.array([[False, False, True, True]]), 1.0),
    ],
)
def test_by_hand(context, expected):
    scores = context_faithfulness(metfa.Called(network, softmax=False), IMAGE, context, 1, region=REGION)
    assert scores.score == pytest.approx([expected])
    assert scores.raw == pytest.approx([expected])


def test_by_hand_with_another_baseline():
    scores = context_faithfulness(metfa.Called(network, softmax=False), IMAGE, NONE, 1, region=REGION, baseline=0.6)
    assert scores.score == pytest.approx([1 - (0.5 * 0.2 + 1.0 * 0.2) / 2])


def test_what_gains_does_not_make_up_for_what_loses():
    def other(images):  # hiding the last pixel lowers the first by .8 and lifts the second by .8
        last = images[:, :, :, -1:]
        found = np.concatenate([last, 1 - last, last, last], axis=3)
        return np.concatenate([1 - found, found], axis=1)

    scores = context_faithfulness(metfa.Called(other, softmax=False), IMAGE, NONE, 1, region=REGION)
    assert scores.score == pytest.approx([1 - 0.8 / 2])


def test_logits_are_turned_into_probabilities():
    def logits(images):
        return np.log(np.clip(network(images), 1e-30, None))

    scores = context_faithfulness(logits, IMAGE, NONE, 1, region=REGION)
    assert scores.score == pytest.approx([1 - (0.5 * 0.8 + 1.0 * 0.8) / 2])


@pytest.mark.parametrize("batch_size", [1, 2, None])
def test_each_image_has_its_own_region_context_and_class(batch_size):
    images = np.concatenate([IMAGE, 1 - IMAGE, IMAGE / 2])
    regions, contexts = np.array([REGION, ~REGION, REGION]), np.array([NONE, NONE, ~REGION])
    targets = [1, 0, 1]
    together = context_faithfulness(
        metfa.Called(network, softmax=False, batch_size=batch_size), images, contexts, targets, region=regions
    ).score
    alone = [
        context_faithfulness(
            metfa.Called(network, softmax=False), images[k : k + 1], contexts[k], targets[k], region=regions[k]
        ).score[0]
        for k in range(3)
    ]
    assert together == pytest.approx(alone)
    assert together[2] == 1


def test_torch_images_give_the_same():
    scores = context_faithfulness(metfa.Called(network, softmax=False), torch.tensor(IMAGE), NONE, 1, region=REGION)
    assert scores.score == pytest.approx([0.4])


def test_the_robust_form_is_the_mean_over_noisy_images():
    noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
    found = robust(context_faithfulness, noise=noise, n_outer=5, rng=0)(
        metfa.Called(network, softmax=False), IMAGE, NONE, 1, region=REGION
    )
    assert found.score == pytest.approx([np.mean([draw.score[0] for draw in found.draws])])
    assert len({float(draw.score[0]) for draw in found.draws}) == 5
    still = robust(context_faithfulness, noise=metfa.noise.Uniform(0.0), n_outer=2, rng=0)
    assert still(metfa.Called(network, softmax=False), IMAGE, NONE, 1, region=REGION).score == pytest.approx([0.4])


def never(images):
    raise AssertionError("the model was asked")


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"target": None}, TypeError, "got None"),
        ({"target": -1}, ValueError, "got -1"),
        ({"target": [1, 1]}, ValueError, "got 2 entries"),
        ({"region": NONE}, ValueError, "it holds none of input 0"),
        ({"region": REGION.astype(float)}, TypeError, "`region` must be boolean, got float64"),
        ({"region": REGION[:, :2]}, ValueError, r"\(1, 4\), got shape \(1, 2\)"),
        ({"context": NONE.astype(int)}, TypeError, "`context` must be boolean, got int64"),
        ({"context": NONE[0]}, ValueError, r"got shape \(4,\)"),
        ({"inputs": IMAGE[0]}, ValueError, r"got shape \(1, 1, 4\)"),
        ({"inputs": IMAGE * np.nan}, ValueError, "input 0 holds NaN"),
        ({"baseline": "grey"}, ValueError, "'grey'"),
    ],
)
def test_bad_arguments_before_the_model_is_asked(changed, error, said):
    arguments = {"inputs": IMAGE, "context": NONE, "target": 1, "region": REGION, **changed}
    with pytest.raises(error, match=said):
        context_faithfulness(never, **arguments)


def test_a_class_that_the_model_does_not_have():
    with pytest.raises(ValueError, match=r"0\.\.1, the classes of the model, got 2 for input 0"):
        context_faithfulness(network, IMAGE, NONE, 2, region=REGION)


def test_the_metric_of_classifiers_gives_the_other_view():
    """With a region's model, metrics of classifiers work as they are."""
    from metfa.segmentation import RegionModel

    regional = RegionModel(network, REGION)
    kept = np.array([[[True, True, False, True]]])
    scores = metrics.region_score(metfa.Called(regional, softmax=False), torch.tensor(IMAGE), kept, 1)
    assert scores.raw == pytest.approx([0.6])


def left_matters(images):
    left = images[:, :, :, :2].mean((1, 2, 3), keepdim=True)
    return torch.cat([0 * images[:, :1], 10 * images[:, :1] * left - 3, 0 * images[:, :1] - 9], dim=1)


@functools.cache
def explanations():
    found = []
    for seed, target in ((0, 1), (1, 1), (2, 0)):
        image = torch.zeros(1, 10, 12)
        image[:, :, :2] = 0.9
        level = 0.8 if target == 1 else 0.2
        image[:, 3:6, 5 + seed : 8 + seed] = level
        region = (image[0] == level).numpy()
        found.append(explain_context(left_matters, image, target, region=region, min_pixels=1, rng=seed, n_samples=6))
    return found


@pytest.mark.slow
def test_the_table_is_made_of_the_parts():
    found = explanations()
    noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
    table = context_table(left_matters, found, class_names=["background", "a|b"], noise=noise, n_outer=3, threshold=0.3)
    assert [row.name for row in table.rows] == ["background", "a|b"]
    assert [row.n for row in table.rows] == [1, 2]
    row, of_class = table.rows[1], found[:2]
    assert row.object_pixels == np.mean([one.region.sum() for one in of_class])
    shares = [one.significant(0.3)[~one.region].mean() for one in of_class]
    assert row.significant_share == pytest.approx(np.mean(shares))
    areas = [(one.significant(0.3).sum(), one.above(0.3).sum()) for one in of_class]
    assert row.area_ratio == pytest.approx(np.sum(areas, axis=0)[0] / np.sum(areas, axis=0)[1])
    judged = robust(context_faithfulness, noise=noise, n_outer=3, rng=0)
    m = [
        judged(left_matters, torch.tensor(one.sample.inputs), one.significant(0.3), 1, region=one.region).score[0]
        for one in of_class
    ]
    assert row.faithfulness == pytest.approx(np.mean(m))
    assert np.isfinite(row.faithfulness_ratio_error)
    assert np.isnan(table.rows[0].faithfulness_ratio_error)  # a single object
    assert "a\\|b" in str(table)
    assert len(str(table).splitlines()) == 4
    assert list(table.to_dataframe()["n"]) == [1, 2]


@pytest.mark.slow
def test_the_table_on_the_clean_images():
    found = explanations()[:1]
    row = context_table(left_matters, found, noise=None, threshold=0.3).rows[0]
    image = torch.tensor(found[0].sample.inputs)
    expected = context_faithfulness(left_matters, image, found[0].above(0.3), 1, region=found[0].region).score[0]
    assert row.vanilla_faithfulness == pytest.approx(expected)
    assert row.name == "class 1"


def test_bad_tables():
    with pytest.raises(ValueError, match="at least one"):
        context_table(left_matters, [])
    with pytest.raises(TypeError, match="got int"):
        context_table(left_matters, [3])


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"class_names": "ab"}, TypeError, "`class_names` must be a list of texts, got str: 'ab'"),
        ({"class_names": ["background"]}, ValueError, "got 1 names, and an explanation of class 1"),
        ({"threshold": "jenks"}, TypeError, "write a rule such as metfa.stats.jenks_of_medians"),
        ({"threshold": float("nan")}, ValueError, "a number or a rule, got nan"),
    ],
)
@pytest.mark.slow
def test_bad_settings_of_a_table(settings, error, said):
    with pytest.raises(error, match=said):
        context_table(left_matters, explanations()[:1], **settings)


@pytest.mark.slow
def test_a_table_of_a_single_explanation():
    with pytest.raises(TypeError, match=r"write `\[explanation\]`"):
        context_table(left_matters, explanations()[0])


def test_probabilities_are_not_taken_for_logits():
    with pytest.warns(metfa.ModelOutputWarning, match="look like probabilities"):
        context_faithfulness(network, IMAGE, NONE, 1, region=REGION)
    with pytest.raises(ValueError, match="for networks that give probabilities, but this one's scores reach from"):
        context_faithfulness(
            metfa.Called(lambda images: 9 * network(images), softmax=False), IMAGE, NONE, 1, region=REGION
        )
