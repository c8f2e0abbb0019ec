"""Studies of regions: figures equal those of explainers pooled by hand, and what does not fit is refused by name."""

import functools
from dataclasses import replace

import numpy as np
import pytest

import metfa
from metfa import Regions, Study, evaluate, metrics, regions
from metfa._base.warnings import FailedUnitsWarning
from metfa.by_name.regions import KINDS, region_named
from metfa.evaluation import prepare, read_study
from metfa.evaluation.units import units_of
from metfa.noise import Gaussian, Uniform
from metfa.text import Synonyms

IMAGES = np.random.default_rng(0).random((3, 3, 8, 8))
WEIGHTS = np.random.default_rng(1).normal(size=(3 * 8 * 8, 4))
QUARTERS = regions.grid((8, 8), 2)
METRICS = {"mstd": {}, "top_k_overlap": {"k": 2}, "max_sensitivity": {}, "interval_width": {}, "undecided": {},
           "sample_size": {}}  # fmt: skip


def linear(images):
    return images.reshape(len(images), -1) @ WEIGHTS


def rough(model):
    return lambda inputs, target: np.sin(20 * inputs[:, 0]) + inputs[:, 1]


def quarters_of(one):
    """Quarters of a picture; the largest score of each."""
    return replace(QUARTERS, how="max")


def smallest(one):
    if one.max() < 0.97:
        raise ValueError("too dark")
    return QUARTERS


STUDY = Study(
    model=linear, inputs=IMAGES, explainers={"rough": rough}, metrics=METRICS, sampling={"u": Uniform(0.1)},
    outer={"n": Gaussian(0.1)}, n_samples=12, n_outer=3, version="1",
)  # fmt: skip


def pooled_by(made):
    """The same explainer, whose maps are pooled by hand."""
    return lambda model: lambda inputs, target: made.pooled(rough(model)(inputs, target))


KEYS = ("input", "metric", "aggregate", "sampling", "n_samples", "reason", "score", "level")


def figures(result):
    return [[row[name] for name in KEYS] for row in result.rows]


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [12, metfa.Until(undecided=0.3, threshold=0.5, max_samples=40, first=7)])
@pytest.mark.parametrize("how", ["mean", "max"])
def test_figures_are_those_of_maps_that_are_pooled_in_each_sample(how, n_samples):
    made = replace(QUARTERS, how=how)
    of_maps = {**METRICS, "undecided": {"threshold": 0.5}}
    over = evaluate(replace(STUDY, over=made, n_samples=n_samples, metrics=of_maps), store="memory://over")
    by_hand = evaluate(
        replace(STUDY, explainers={"rough": pooled_by(made)}, n_samples=n_samples, metrics=of_maps, version=how),
        store="memory://hand",
    )
    assert len(over.rows) == 3 * 12
    for found, expected in zip(figures(over), figures(by_hand), strict=True):
        assert found[:-2] == expected[:-2]
        np.testing.assert_allclose(*(np.array(one[-2:], dtype=float) for one in (found, expected)), rtol=1e-9)


def test_figures_equal_the_public_interface():
    against = replace(QUARTERS, against="rest")
    result = evaluate(replace(STUDY, over=against), store="memory://over")
    unit = result.units[1]
    sample = metfa.explain(
        rough(linear), IMAGES[1:2], noise=Uniform(0.1), n_samples=12, over=against, predict=linear, rng=0,
        run=metfa.Run(input_names=[unit.digest]),
    )  # fmt: skip
    found = {
        row["metric"]: row["score"] for row in result.rows if row["input"] == "1" and row["aggregate"] == "samples"
    }
    assert found["undecided"] == metrics.undecided(sample).score[0]
    assert found["interval_width"] == metrics.interval_width(sample, 0.95).score[0]
    assert found["sample_size"] == 12
    record = next(iter(result.results.values()))["record"]
    assert record["over"] == f"Regions(4 regions, mean, against the rest) {against.digest}"
    assert result.table("undecided").title == (
        "undecided (3 inputs), N = 12, 95% (96.1% reached), threshold 0, no correction, Regions(4 regions, mean, "
        "against the rest), ±: 95% interval by Student's t"
    )


def test_a_rule_asks_about_the_regions():
    rule = metfa.Until(undecided=0.3, max_samples=60)
    study = replace(STUDY, over="grid:2", n_samples=rule, metrics=["sample_size", "rule_met", "undecided"])
    result = evaluate(study, store="memory://over")
    assert not result.failures
    scores = {metric: [row["score"] for row in result.rows if row["metric"] == metric] for metric in study.metrics}
    met = [undecided <= 0.3 for undecided in scores["undecided"]]
    assert [bool(value) for value in scores["rule_met"]] == met
    assert all(n < 60 for n, reached in zip(scores["sample_size"], met, strict=True) if reached)
    assert "grid:2, each against the rest" in result.table("sample_size").title


def test_certificates_of_regions():
    study = replace(
        STUDY, over=QUARTERS, sampling={"g": Gaussian(0.05)}, n_samples=60,
        metrics={"certified_share": {"radius": 0.02, "threshold": 0.0}, "certified_radius": {"threshold": 0.0}},
    )  # fmt: skip
    result = evaluate(study, store="memory://over")
    unit = result.units[0]
    sample = metfa.explain(
        rough(linear), IMAGES[:1], noise=Gaussian(0.05), n_samples=60, over=QUARTERS, predict=linear, rng=0,
        run=metfa.Run(input_names=[unit.digest]),
    )  # fmt: skip
    share, radius = (next(row["score"] for row in result.rows if row["metric"] == name) for name in study.metrics)
    assert share == metrics.certified_share(sample, 0.02, 0.0).score[0]
    assert radius == metrics.certified_radius(sample, 0.0).score[0] > 0


def bright(model):
    return lambda inputs, target: inputs.mean(axis=1)


def means(images):
    mean = images.mean(axis=(1, 2, 3))
    return np.stack([4 * mean, 1 - mean], axis=1)


def test_the_score_of_the_important_regions_alone():
    image = np.full((1, 3, 8, 8), 0.2)
    image[:, :, :4, :4] = 0.9
    study = replace(
        STUDY, model=means, inputs=image, explainers={"bright": bright}, over="grid:2", metrics=["region_score"],
        outer={}, targets=[0],
    )  # fmt: skip
    result = evaluate(study, store="memory://over")
    kept = np.zeros((1, 8, 8), dtype=bool)
    kept[:, :4, :4] = True
    assert result.rows[0]["score"] == metrics.region_score(means, image, kept, 0).score[0]


# What a unit's address holds


def addresses(study):
    return {unit.address for unit in units_of(study, linear)}


def test_addresses_cover_the_regions():
    several = [
        STUDY, replace(STUDY, over=QUARTERS), replace(STUDY, over=replace(QUARTERS, how="max")),
        replace(STUDY, over=replace(QUARTERS, against="rest")), replace(STUDY, over=regions.grid((8, 8), 4)),
        replace(STUDY, over="grid:2"), replace(STUDY, over="grid:4"), replace(STUDY, over=quarters_of),
        replace(STUDY, over=functools.partial(regions.superpixels, n_segments=4)),
        replace(STUDY, over=functools.partial(regions.superpixels, n_segments=5)),
    ]  # fmt: skip
    found = [addresses(study) for study in several]
    assert len(set.union(*found)) == sum(map(len, found)) == 3 * len(several)
    assert addresses(replace(STUDY, over=regions.grid((8, 8), 2))) == found[1]
    with pytest.raises(ValueError, match="`over` has no import path"):
        addresses(replace(STUDY, over=lambda one: QUARTERS, explainers={"rise": "rise"}, version=None, model=linear))


# Refusals


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"metrics": ["mstd", "faithfulness"]},
            ValueError,
            "`metrics`: with `over` there are only the scores of regions, .* needed for faithfulness: measure",
        ),
        (
            {"metrics": {"own": len}},
            ValueError,
            "single features' are needed for own: measure this in a study without `over`",
        ),
        (
            {"metrics": ["robust_faithfulness", "mstd"]},
            ValueError,
            "single features' are needed for robust_faithfulness: ",
        ),
        ({"over": 3}, TypeError, "`over` must be a function of an input, a metfa.Regions or a name, got "),
        ({"over": Regions}, TypeError, "`over` must be a function of an input, a metfa.Regions or a name"),
        ({"over": "gird:4"}, ValueError, r"`over` must be superpixels\[:NUMBER\] or grid\[:ROWS\], got 'gird:4'"),
        ({"over": "sentences"}, ValueError, r"`over` must be superpixels\[:NUMBER\] or grid\[:ROWS\], got 'sentences'"),
        ({"over": "grid:1"}, ValueError, "`over` must be at least grid:2, so that a region has a rest, got grid:1"),
        ({"over": Regions((QUARTERS.masks[0],) * 2)}, ValueError, "`over` holds masks for 2 inputs"),
        (
            {"n_samples": metfa.Until(undecided=0.1, max_samples=50, over=QUARTERS)},
            ValueError,
            r"`over` and `Until\(over=\)` are both given",
        ),
    ],
)
def test_refused_before_anything_is_loaded(changes, error, message):
    with pytest.raises(error, match=message):
        replace(STUDY, **{"over": QUARTERS, "model": "efficientnet-lite0", **changes})


@pytest.mark.parametrize(
    ("over", "error", "message"),
    [
        (len, TypeError, "`over` must return a metfa.Regions of an input, got "),
        (lambda one: Regions((QUARTERS.masks[0],) * 2), ValueError, "`over` must return the regions of one input"),
        (smallest, ValueError, "too dark"),
        ("grid:9", ValueError, "`cells` must be at most the number of rows, 8, got 9"),
    ],
)
def test_refused_before_the_first_unit(over, error, message):
    dark = IMAGES * 0.5
    with pytest.raises(error, match=message):
        prepare(replace(STUDY, inputs=dark, over=over), store="memory://none")


@pytest.mark.filterwarnings("always::metfa._base.warnings.FailedUnitsWarning")
def test_an_input_without_regions_fails_alone():
    images = IMAGES.copy()
    images[2] *= 0.5
    study = replace(STUDY, inputs=images, over=smallest, metrics=["interval_width"], outer={})
    with pytest.warns(FailedUnitsWarning, match="1 of 3 units failed, the first with ValueError: too dark"):
        result = evaluate(study, store="memory://over")
    assert result.table("interval_width").cells[0][0][0].n == 2


def test_maps_of_another_shape_fail_by_name():
    study = replace(STUDY, over=regions.grid((4, 4), 2), metrics=["interval_width"], outer={})
    with pytest.warns(FailedUnitsWarning, match=r"`regions` must have the shape of one map, \(8, 8\), got \(4, 4\)"):
        evaluate(study, store="memory://over")


# Names, texts and files


def test_names_make_regions_against_the_rest():
    pytest.importorskip("skimage")
    superpixels = region_named("superpixels:5", "over", KINDS["image"])(IMAGES[0])
    assert superpixels == regions.superpixels(IMAGES[0], 5, against="rest")
    assert region_named("grid:3", "over", KINDS["image"])(IMAGES[0]) == regions.grid((8, 8), 3, against="rest")
    assert len(region_named("grid", "over", KINDS["image"])(np.zeros((3, 20, 30)))) == 14**2
    with pytest.raises(ValueError, match=r"`over` 'grid' is for pictures, got an input of shape \(8,\)"):
        region_named("grid:3", "over", KINDS["image"])(np.zeros(8))
    text = "It was long. It was dull, and loud."
    assert region_named("sentences", "over", KINDS["text"])(text) == regions.sentences(text, against="rest")
    assert region_named("phrases", "over", KINDS["text"])(text) == regions.phrases(text, against="rest")


def counted(texts):
    good = np.array([str(row).count("good") / 9 for row in texts])
    return np.stack([good, 1 - good], axis=1)


def test_sentences_of_texts():
    texts = ["It was good. It was long and dull.", "A good film. Nobody liked it! I did."]
    study = Study(
        model=counted, inputs=texts, explainers={"occlusion": "occlusion"}, over="sentences",
        metrics=["undecided", "mstd"], sampling={"s": Synonyms(0.3)}, outer={"s": Synonyms(0.3)}, n_samples=8,
        n_outer=2, version="1", aggregates=["vanilla"],
    )  # fmt: skip
    result = evaluate(study, store="memory://over")
    assert not result.failures
    records = [found["record"]["over"].partition(" against")[0] for found in result.results.values()]
    assert [record.partition(",")[0] for record in records] == ["Regions(2 regions", "Regions(3 regions"]
    with pytest.raises(ValueError, match="`over` must be sentences or phrases, got 'grid:2'"):
        replace(study, over="grid:2")


def test_a_file_names_regions(tmp_path):
    from PIL import Image

    Image.fromarray(np.zeros((8, 8, 3), dtype=np.uint8)).save(tmp_path / "a.png")
    lines = """
    [study]
    over = "superpixels:50"
    n_samples = 20
    [model]
    name = "efficientnet-lite0"
    [data]
    inputs = "."
    [explainers]
    gradient = "gradient"
    [sampling]
    normal = "gaussian:0.1"
    [metrics.undecided]
    """
    (tmp_path / "study.toml").write_text(lines)
    study = read_study(tmp_path / "study.toml")
    assert study.parts == region_named("superpixels:50", "over", KINDS["image"])
    (tmp_path / "study.toml").write_text(lines.replace("[metrics.undecided]", "[metrics.faithfulness]"))
    with pytest.raises(ValueError, match="single features' are needed for faithfulness"):
        read_study(tmp_path / "study.toml")
    (tmp_path / "study.toml").write_text(lines.replace('"superpixels:50"', "50"))
    with pytest.raises(TypeError, match=r"`over` must be a function of an input, a metfa\.Regions or a name"):
        read_study(tmp_path / "study.toml")


def test_differences_of_regions_between_explainers():
    study = replace(
        STUDY, explainers={"rough": rough, "bright": bright}, over="grid:2", metrics=["undecided"], outer={}
    )
    table = evaluate(study, store="memory://over").table("undecided", against="rough")
    assert "threshold 0, no correction" in table.title
    assert table.cells[0][0][0].n == 3
