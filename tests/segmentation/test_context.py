"""`explain_context`: one object's surroundings under noise, and the statistics of the context alone."""

import functools
import html
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

import metfa
from metfa import stats
from metfa.explainers import IGOS, MASK, RISE, Gradient
from metfa.segmentation import ContextExplanation, GridSaliency, RegionModel, explain_context, load_context

NOISE = metfa.noise.Uniform(0.1, bounds=(0, 1))


def network(images):
    """Class 1 is a bright pixel in an image whose left edge is bright."""
    left = images[:, :, :, :2].mean((1, 2, 3), keepdim=True)
    return torch.cat([0 * images, 12 * images * left - 3], dim=1)


def scene():
    image = torch.full((1, 12, 16), 0.05)
    image[:, :, :2] = 0.9
    image[:, 4:7, 9:13] = 0.8
    return image


REGION = (scene()[0] == 0.8).numpy()


def explained(store=None, first_sample=0, **settings):
    if store is None and not first_sample and settings.keys() == {"n_samples"}:
        return of_samples(**settings)
    run = metfa.Run(store=store, first_sample=first_sample)
    return explain_context(network, scene(), 1, **{"region": REGION, "min_pixels": 1, "rng": 0, "run": run, **settings})


@functools.cache
def of_samples(n_samples):
    return explain_context(network, scene(), 1, region=REGION, min_pixels=1, rng=0, n_samples=n_samples)


@pytest.mark.slow
def test_it_is_explain_with_the_region_held_fixed():
    found = explained(n_samples=6)
    expected = metfa.explain(
        GridSaliency(RegionModel(network, REGION)), scene()[None], 1, noise=NOISE, n_samples=6, rng=0
    )
    assert np.array_equal(found.sample.values, expected.values)
    assert np.array_equal(found.region, REGION)
    assert found.target == 1
    assert found.n_samples == 6
    assert repr(found) == "ContextExplanation(6 samples, class 1, an object of 12 of 12 x 16 pixels)"
    assert found.flip_rate == 0


def test_the_region_is_predicted_on_the_clean_image():
    with torch.no_grad():
        predicted = network(scene()[None]).argmax(1)[0].numpy() == 1
    assert np.array_equal(explained(region=None, n_samples=6).region, predicted)


def test_the_needed_context_is_found_and_nothing_else():
    found = explained(n_samples=20, method=partial(GridSaliency, grid=(3, 8), l1_weight=0.1, baseline=0.0))
    marks = found.significance_map()
    assert (marks[:, :2] == 1).all()
    assert (marks[:, 4:][~REGION[:, 4:]] == -1).all()
    assert (marks[REGION] == 0).all()


@pytest.mark.slow
def test_a_page_promises_in_its_own_words(tmp_path):
    """In a scene the marks are called needed and not needed, also where a rate says of which marks it is."""
    page = explained(n_samples=12).report(tmp_path / "r.html", alpha=0.1, correction="by").read_text("utf-8")
    said = "of those called needed, at most 10% on average are false, under any dependence; the same for those called "
    assert html.unescape(page).count(said + '"not needed"') == 2  # in the figures and in plain words
    assert "called important" not in html.unescape(page)


@pytest.mark.slow
def test_statistics_are_of_the_context_alone():
    found = explained(n_samples=12)
    outside = found.sample.values[:, 0][:, ~REGION]
    assert found.threshold() == stats.jenks_of_medians(outside)
    assert found.threshold(stats.jenks) == stats.jenks(outside)
    assert found.of_context.n_features == (~REGION).sum()
    height = found.threshold()
    expected = np.zeros(REGION.shape, int)
    for side, alternative in ((1, "greater"), (-1, "less")):
        pvalues = stats.sign_test(outside, height, alternative=alternative).pvalue
        expected[~REGION] += side * (stats.correct(pvalues, "bonferroni") <= 0.3)
    assert np.array_equal(found.significance_map(alpha=0.3, correction="bonferroni"), expected)
    assert np.array_equal(found.smoothed()[~REGION], stats.smoothed_median(outside))
    interval = found.confidence_interval(0.9)
    assert np.array_equal(interval.low[~REGION], stats.median_interval(outside, 0.9).low)
    assert np.array_equal(found.vanilla[~REGION], found.sample.vanilla[0][~REGION])
    for pixels in (found.smoothed(), interval.low, interval.high, found.vanilla):
        assert pixels.shape == REGION.shape
        assert (pixels[REGION] == 0).all()
    assert found.summary()[0].n_features == (~REGION).sum()
    assert found.provenance == found.sample.provenance


@pytest.mark.slow
def test_areas_are_cut_at_the_same_threshold():
    found = explained(n_samples=12)
    height = found.threshold()
    assert np.array_equal(found.above(), (found.vanilla > height) & ~REGION)
    assert np.array_equal(found.significant(), found.significance_map() == 1)
    assert found.area_ratio() == found.significant().sum() / found.above().sum()
    assert np.isnan(found.area_ratio(2.0))


@pytest.mark.parametrize("explainer", [Gradient, lambda model: RISE(model, n_masks=60)], ids=["Gradient", "RISE"])
def test_explainers_of_classifiers(explainer):
    found = explained(method=explainer, n_samples=6)
    assert found.vanilla.shape == REGION.shape
    assert (found.significance_map(0.5)[REGION] == 0).all()


def test_no_needed_context_is_an_answer_without_a_warning():
    own = lambda images: torch.cat([0 * images, 9 * images - 3], dim=1)  # noqa: E731 - sees single pixels
    found = explain_context(own, scene(), 1, region=REGION, min_pixels=1, rng=0, n_samples=6)
    assert (found.sample.values == 0).all()
    assert not found.significant(0.2).any()
    assert (found.significance_map(0.2)[~REGION] == -1).all()


def test_small_objects_warn():
    with pytest.warns(metfa.SmallRegionWarning, match="12 px, fewer than 600"):
        explain_context(network, scene(), 1, region=REGION, n_samples=2, rng=0)


def test_the_model_is_left_as_found():
    net = torch.nn.Conv2d(1, 2, 5, padding=2).eval()
    torch.nn.init.constant_(net.bias[1:], 9.0)  # class 1 is found
    before = net.weight.clone()
    explain_context(net, scene(), 1, region=REGION, min_pixels=1, rng=0, n_samples=2)
    assert not net.training
    assert net.weight.requires_grad
    assert net.weight.grad is None
    assert torch.equal(net.weight, before)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_samples_for_every_batch_size():
    one, other = explained(batch_size=1, n_samples=5), explained(batch_size=4, n_samples=5)
    assert np.allclose(one.sample.values, other.sample.values, atol=1e-6)
    later = explained(n_samples=2, first_sample=4)
    assert np.allclose(explained(n_samples=6).sample.values[4:], later.sample.values, atol=1e-6)


def never(images):
    raise AssertionError("the model was asked")


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"image": scene().numpy()}, TypeError, "got ndarray"),
        ({"image": torch.stack([scene()] * 2)}, ValueError, "one image, got 2"),
        ({"target": "car"}, TypeError, "'car'"),
        ({"target": -1}, ValueError, "got -1"),
        ({"min_pixels": 0}, ValueError, "got 0"),
        ({"n_samples": metfa.Until(undecided=0.1)}, TypeError, "`n_samples` must be an integer, got Until"),
        ({"region": REGION[:4]}, ValueError, "no pixel"),
        ({"region": REGION[:5]}, ValueError, r"\(12, 16\), got \(5, 16\)"),
        ({"region": ~REGION & False}, ValueError, "no pixel"),
        ({"method": 3}, TypeError, "got 3"),
        ({"method": GridSaliency(network, 1, region=REGION)}, TypeError, "function of a RegionModel"),
        ({"noise": "uniform"}, TypeError, "uniform"),
        ({"n_samples": 0}, ValueError, "got 0"),
    ],
)
def test_bad_arguments_before_the_model_is_asked(changed, error, said):
    arguments = {"image": scene(), "target": 1, "region": REGION, "min_pixels": 1, **changed}
    with pytest.raises(error, match=said):
        explain_context(never, **arguments)


def test_a_class_that_is_nowhere_or_everywhere():
    with pytest.raises(ValueError, match="class 0 nowhere"):
        explain_context(lambda images: torch.cat([0 * images, 0 * images + 3], 1), scene(), 0)
    with pytest.raises(ValueError, match="class 1 in all pixels"):
        explain_context(lambda images: torch.cat([0 * images, 0 * images + 3], 1), scene(), 1)


@pytest.mark.slow
def test_saved_and_read_again(tmp_path):
    found = explained(n_samples=6)
    assert found.save(tmp_path / "kept") == tmp_path / "kept"
    again = load_context(tmp_path / "kept")
    assert np.array_equal(again.region, REGION)
    assert np.array_equal(again.significance_map(), found.significance_map())
    with pytest.raises(FileExistsError):
        found.save(tmp_path / "kept")


@pytest.mark.slow
def test_damaged_folders(tmp_path):
    explained(n_samples=6).save(tmp_path / "kept")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_context(tmp_path / "nowhere")
    cut = tmp_path / "cut"
    shutil.copytree(tmp_path / "kept", cut)
    with (cut / "region.npy").open("r+b") as file:
        file.truncate(200)
    with pytest.raises(ValueError, match=r"region\.npy is truncated"):
        load_context(cut)
    np.save(cut / "region.npy", REGION.astype(object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"region\.npy"):
        load_context(cut)
    np.save(cut / "region.npy", REGION.astype(np.uint8) * 7)
    with pytest.raises(ValueError, match=r"expected bool"):
        load_context(cut)
    (cut / "region.npy").unlink()
    (cut / "region.npy").symlink_to(tmp_path / "kept" / "region.npy")
    with pytest.raises(ValueError, match="link"):
        load_context(cut)


@pytest.mark.slow
def test_parts_must_fit():
    sample = explained(n_samples=6).sample
    with pytest.raises(ValueError, match=r"\(5, 16\), got maps \(1, 12, 16\)"):
        ContextExplanation(sample, np.eye(5, 16, dtype=bool))
    with pytest.raises(ValueError, match=r"got maps \(1, 1, 12, 16\); `metfa.explainers.heatmap"):
        explained(method=lambda model: metfa.randomised(lambda inputs, target, rngs: inputs), n_samples=2)
    with pytest.raises(TypeError, match="got ndarray"):
        ContextExplanation(sample.values, REGION)
    with pytest.raises(ValueError, match="read-only"):
        explained(n_samples=6).region[0, 0] = True


@pytest.mark.slow
def test_a_store_is_a_saved_explanation(tmp_path):
    found = explained(n_samples=6, store=tmp_path / "kept")
    again = load_context(tmp_path / "kept")
    assert np.array_equal(again.region, REGION)
    assert np.array_equal(again.sample.values, found.sample.values)
    with pytest.raises(ValueError, match=r"read it with `metfa\.segmentation\.load_context`"):
        metfa.load(tmp_path / "kept")
    with pytest.raises(ValueError, match=r"no context\.json: it holds samples alone, which `metfa\.load` reads"):
        load_context(tmp_path / "kept" / "sample")


@pytest.mark.slow
def test_a_store_is_of_one_object(tmp_path):
    first = explained(n_samples=2, store=tmp_path / "kept")
    other = np.roll(REGION, 1, axis=0)
    again = explained(n_samples=2, store=tmp_path / "kept")
    assert np.array_equal(again.sample.values, first.sample.values)
    with pytest.raises(FileExistsError, match="of another object"):
        explained(n_samples=2, store=tmp_path / "kept", region=other)
    shutil.copytree(tmp_path / "kept", tmp_path / "unfinished")
    (tmp_path / "unfinished" / "sample" / "manifest.json").rename(tmp_path / "unfinished" / "sample" / "run.json")
    with pytest.raises(FileExistsError, match="samples of another object"):
        explained(n_samples=2, store=tmp_path / "unfinished", region=other)
    with pytest.raises(
        ValueError, match=r"unfinished run: repeat the call with `run=metfa.Run\(store='.*unfinished'\)` to resume it"
    ):
        load_context(tmp_path / "unfinished")
    with pytest.raises(ValueError, match="`store` must be a path, got a text that is empty"):
        explained(n_samples=2, store="")
    assert np.array_equal(load_context(tmp_path / "kept").region, REGION)


@pytest.mark.slow
def test_a_region_that_was_changed_is_noticed(tmp_path):
    explained(n_samples=6).save(tmp_path / "kept")
    path = tmp_path / "kept" / "region.npy"
    np.save(path, np.roll(REGION, 1, axis=0))
    with pytest.raises(ValueError, match=r"region\.npy"):
        load_context(tmp_path / "kept")
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=r"region\.npy"):
        load_context(tmp_path / "kept")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("about", "said"),
    [
        ("[]", "is damaged: an object is needed, got list"),
        ("{}", "has schema version None; this metfa reads version 1"),
        ('{"schema_version": 1}', "is damaged: KeyError at 'region'"),
        ('{"schema_version": 1, "region": []}', "is damaged: TypeError at region, whose shape must be a list"),
        ('{"schema_version": 2, "region": {}}', "has schema version 2; this metfa reads version 1"),
    ],
)
def test_a_damaged_description_is_named(about, said, tmp_path):
    explained(n_samples=6).save(tmp_path / "kept")
    (tmp_path / "kept" / "context.json").write_text(about)
    with pytest.raises(ValueError, match=rf"context\.json {said}"):
        load_context(tmp_path / "kept")


@pytest.mark.slow
def test_an_object_that_the_model_takes_for_another_class():
    elsewhere = np.zeros_like(REGION)
    elsewhere[8:10, 5:8] = True
    with pytest.warns(metfa.MissedObjectWarning, match="takes the object for class 0, not 1"):
        explained(region=elsewhere, n_samples=2)


@pytest.mark.slow
def test_all_that_is_asked_takes_the_same_softmax():
    def probabilities(images):
        return network(images).softmax(1)

    found = explain_context(
        metfa.Called(probabilities, softmax=False), scene(), 1, region=REGION, min_pixels=1, rng=0, n_samples=6
    )
    assert np.allclose(found.sample.values, explained(n_samples=6).sample.values, atol=1e-5)
    called, own = metfa.Called(probabilities, softmax=False), lambda called: RISE(called.model)
    with pytest.raises(ValueError, match=r"asks with `softmax=True`: let it take .* `lambda called: RISE\(called\)`"):
        explain_context(called, scene(), 1, region=REGION, min_pixels=1, method=own)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("threshold", "error", "said"),
    [
        ("jenks", TypeError, "write a rule such as metfa.stats.jenks_of_medians"),
        (True, TypeError, "a number or a rule, got bool"),
        (np.zeros(REGION.shape), TypeError, "one number or a rule for a context, got an array"),
        (float("nan"), ValueError, "a number or a rule, got nan"),
    ],
)
@pytest.mark.parametrize("ask", ["above", "significance_map", "significant", "area_ratio", "summary", "plot"])
def test_bad_thresholds(ask, threshold, error, said):
    found = explained(n_samples=6)
    with pytest.raises(error, match=said):
        getattr(found, ask)(threshold=threshold)


def test_the_area_ratio_cuts_both_at_one_threshold():
    found = explained(n_samples=16)
    height = found.threshold(split=8)
    expected = found.significant(split=8).sum() / (found.vanilla > height).sum()
    assert found.area_ratio(split=8) == expected


@pytest.mark.filterwarnings("error")
def test_where_no_sample_needs_anything_all_is_marked_so():
    def alone(images):
        return torch.cat([0 * images, 50 * images - 10], 1)

    found = explain_context(alone, scene(), 1, region=REGION, min_pixels=1, rng=0)
    assert not found.sample.values.any()
    assert found.threshold() == 0.5
    assert (found.significance_map()[~REGION] == -1).all()
    assert found.summary()[0].below == 1
    assert not found.above().any()
    with pytest.warns(metfa.DegenerateAttributionsWarning, match="no threshold separates"):
        assert np.isnan(replace(found, sample=replace(found.sample, values=found.sample.values + 0.5)).threshold())


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
@pytest.mark.parametrize(
    "explainer",
    [
        partial(MASK, n_iterations=30, grid=6, baseline=0.0, rng=0),
        partial(IGOS, n_iterations=5, n_steps=5, grid=6, baseline=0.0, rng=0),
        partial(RISE, n_masks=60, rng=0),
        Gradient,
    ],
)
def test_explainers_that_hide_parts_leave_the_object(explainer):
    """A network that looks at single pixels needs no context, whatever hides it."""

    def alone(images):
        return torch.cat([0 * images, 12 * images - 6], 1)

    found = explain_context(alone, scene(), 1, region=REGION, min_pixels=1, rng=0, n_samples=8, method=explainer)
    assert not found.significant(correction="by", alpha=0.2).any()
    needs = explained(method=explainer, n_samples=8)
    assert needs.smoothed()[:, :2].mean() > needs.smoothed()[:, 3:][~REGION[:, 3:]].mean()


def test_nearly_equal_scores_have_no_break():
    found = explained(n_samples=8)
    rng = np.random.default_rng(0)
    for level, expected in ((0.0, -1), (0.23, 0)):
        values = (level + 1e-6 * rng.random(found.sample.values.shape)).astype(np.float32)
        flat = replace(found, sample=replace(found.sample, values=values))
        if expected:
            assert (flat.significance_map()[~REGION] == expected).all()
        else:
            with pytest.warns(metfa.DegenerateAttributionsWarning, match="all 0.23 to rounding"):
                assert not flat.significance_map().any()


def test_sigmoids_of_several_classes_are_no_logits():
    def several(images):
        return network(images).sigmoid()

    with pytest.warns(metfa.ModelOutputWarning, match="look like sigmoids of a multi-label network"):
        explained_by = explain_context(several, scene(), 1, region=REGION, min_pixels=1, rng=0, n_samples=2)
    assert explained_by.n_samples == 2


def test_instances_are_no_functions_of_a_model():
    with pytest.raises(TypeError, match=r"must be a function of a RegionModel.*got RISE"):
        explained(method=RISE(RegionModel(network, REGION)))
