"""`metfa explain-segmentation`: the context of an object in a scene, explained into a folder."""

import functools
import json

import numpy as np
import pytest
from PIL import Image

import metfa
from metfa._base.own_files import foreign_in
from metfa.cli import scenes
from metfa.models import WholePicture
from metfa.segmentation import ContextExplanation, load_context


@pytest.fixture
def scene(tmp_path):
    levels = np.zeros((32, 40, 3), np.uint8)
    levels[:, :4, 1] = 230
    levels[10:20, 22:34, 0] = 220
    path = tmp_path / "scene.png"
    Image.fromarray(levels).save(path)
    return path


@pytest.fixture
def explain_segmentation(metfa_command, tiny, scene):
    def run(*arguments, model="tiny:named_scenes", samples=6, of="object"):
        defaults = ("--model", model, "--class", of, "--samples", samples, "--min-pixels", 1)
        return metfa_command("explain-segmentation", scene, *defaults, *arguments)

    return run


def mistake(done):
    """The line that a mistake is answered by, after what was said of the process."""
    assert done.code == 2, done
    assert done.out == ""
    *before, last = done.err.splitlines()
    assert all(line.startswith("malloc keeps") for line in before)
    assert last.startswith("error: ")
    return last


@pytest.mark.slow
def test_figure_report_and_samples(explain_segmentation, metfa_command, scene, tmp_path, whole_figures):
    done = explain_segmentation("--out", "out")
    assert done.code == 0
    found = {path.name for path in (tmp_path / "out").iterdir()}
    assert found == {
        *("figure.png", "report.html", "report.txt", "about.json", "sample"),
        *("region.npy", "classes.npy", "context.json"),
    }
    explanation = load_context(tmp_path / "out")
    assert explanation.region.sum() == 120
    marks = explanation.significance_map()
    assert (marks[:, :4] == 1).all()
    for line in (
        "explained:        object",
        "object:           120 of 1,280 pixels",
        "method:           grid-saliency",
    ):
        assert line in done.out
    assert "with nothing and 1.000 with the significant context beside the object" in done.out
    assert "1,160 features" in done.out
    shown = metfa_command("show", "out")
    assert shown.code == 0
    assert shown.out.strip() == done.out.partition("\n\n")[0].strip()
    assert metfa_command("show", "out", "--threshold", 0.9, "--out", "views").code == 0
    assert (tmp_path / "views" / "figure.png").stat().st_size > 10_000
    again = explain_segmentation("--out", "out")
    assert again.code == 0
    assert "out holds the finished result of this command: nothing is written" in again.err
    other = explain_segmentation("--out", "out", of="ground")
    assert "target=object, not ground" in other.error


@pytest.mark.slow
def test_it_is_what_python_gives(explain_segmentation, scene, tmp_path):
    assert explain_segmentation("--set", "grid=(4, 5)", "--noise", "gaussian:0.05", "--seed", 3).code == 0
    import tiny

    pixels = WholePicture()(Image.open(scene))
    expected = metfa.segmentation.explain_context(
        tiny.scenes(),
        pixels,
        1,
        method=lambda model: metfa.segmentation.GridSaliency(model, grid=(4, 5)),
        noise=metfa.noise.Gaussian(0.05, bounds=(0, 1)),
        n_samples=6,
        min_pixels=1,
        rng=3,
    )
    found = load_context(tmp_path / "metfa-out")
    assert np.allclose(found.sample.values, expected.sample.values, atol=1e-5)


@pytest.mark.slow
def test_a_region_of_ones_own_and_another_size(explain_segmentation, tmp_path):
    mask = np.zeros((16, 20), np.uint8)
    mask[6:9, 12:16] = 255
    Image.fromarray(mask).save(tmp_path / "mask.png")
    done = explain_segmentation("--size", "16x20", "--region", "mask.png", "--out", "out", "--method", "gradient")
    assert done.code == 0
    assert np.array_equal(load_context(tmp_path / "out").region, mask > 0)
    assert "12 of 320 pixels" in done.out


@pytest.mark.slow
def test_classes_by_index(explain_segmentation):
    done = explain_segmentation(model="tiny:scenes", of=1)
    assert done.code == 0
    assert "explained:        class 1" in done.out


@pytest.mark.slow
@pytest.mark.parametrize("method", ["grid-saliency", "gradient", "rise"])
def test_networks_that_give_probabilities(method, explain_segmentation, tmp_path):
    """All that asks the network is told: the region, the explainer and the faithfulness."""
    explain = functools.partial(
        explain_segmentation, "--method", method, *(("--set", "n_masks=50", "--threshold", 0.1) * (method == "rise"))
    )
    assert explain("--out", "logits").code == 0
    done = explain("--out", "out", "--probabilities", model="tiny:likely_scenes")
    assert done.code == 0
    assert "warning" not in done.err
    found, of_logits = load_context(tmp_path / "out"), load_context(tmp_path / "logits")
    assert np.array_equal(found.region, of_logits.region)
    if method == "grid-saliency":
        assert np.allclose(found.sample.values, of_logits.sample.values, atol=1e-5)
        assert "with nothing and 1.000 with the significant context" in done.out


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_small_objects_warn(explain_segmentation):
    done = explain_segmentation("--min-pixels", 600)
    assert done.code == 0
    assert "warning: the object is of 120 px, fewer than 600" in done.err


@pytest.mark.parametrize(
    ("arguments", "settings", "said"),
    [
        ((), {"of": "objekt"}, "`--class` 'objekt' is no class of the model, did you mean 'object'?"),
        ((), {"of": "nothing"}, "the model finds class 2 nowhere in the image; it finds 0 (1,160 pixels), 1"),
        ((), {"of": 7}, "0..2, the classes of the model, got 7"),
        ((), {"of": "object", "model": "tiny:scenes"}, "must be an index, as the model names no classes"),
        ((), {"model": "tiny:model", "of": 1}, "class scores (batch, classes, height, width), got shape (1, 3)"),
        ((), {"model": "deeplab"}, "must be torchvision:NAME or package.module:callable"),
        ((), {"model": "torchvision:deeplabv3_resnet51"}, "did you mean 'deeplabv3_resnet50'"),
        ((), {"samples": 3}, "got 3, at least 6 are needed"),
        (("--size", "large"), {}, "HEIGHTxWIDTH in pixels, such as 240x320, got 'large'"),
        (("--method", "grid-salience"), {}, "did you mean 'grid-saliency'"),
        (("--set", "grids=4"), {}, "grid-saliency has no setting 'grids', did you mean 'grid'?"),
        (("--set", "momentum=2"), {}, "below 1, otherwise steps never end, got 2"),
        (("--region", "none.png"), {}, "no such image: none.png"),
        (("--noise", "synonyms:.3"), {}, "'synonyms:.3'"),
        (("--noise", "none"), {}, "`noise` is None"),
        (("--set", "softmax=false"), {}, "write --probabilities"),
        (("--probabilities",), {}, "`softmax=False` is for networks that give probabilities"),
        ((), {"of": "-1"}, "`--class` must be an index from 0 on, or a name, got -1"),
    ],
)
def test_mistakes_are_one_line(arguments, settings, said, explain_segmentation):
    assert said in mistake(explain_segmentation(*arguments, **settings))


@pytest.mark.parametrize(
    ("size", "level", "said"),
    [((32, 40), 0, "0 outside of the object and not 0 within"), ((9, 9), 255, "9 x 9 pixels, the scene 40 x 32")],
)
def test_unfit_regions_are_one_line(size, level, said, explain_segmentation, tmp_path):
    Image.fromarray(np.full(size, level, np.uint8)).save(tmp_path / "mask.png")
    assert said in mistake(explain_segmentation("--region", "mask.png"))


def test_a_region_from_a_jpeg_is_refused(explain_segmentation, tmp_path):
    mask = np.zeros((32, 40), np.uint8)
    mask[11:17, 13:19] = 255
    Image.fromarray(mask).save(tmp_path / "mask.jpg")
    with Image.open(tmp_path / "mask.jpg") as changed:
        assert (np.asarray(changed) > 0).sum() > (mask > 0).sum()  # so another object would be explained
    said = "`--region` mask.jpg is a JPEG, which changes the levels beside each edge: save it as PNG"
    assert said in mistake(explain_segmentation("--region", "mask.jpg"))
    Image.fromarray(mask).save(tmp_path / "mask.png")
    assert np.array_equal(scenes.region_in(tmp_path / "mask.png", np.zeros((3, 32, 40)), resized=False), mask > 0)


@pytest.mark.slow
def test_an_interrupted_run_is_resumed(explain_segmentation, tmp_path):
    assert explain_segmentation("--out", "out").code == 0
    before = load_context(tmp_path / "out").sample.values.copy()
    for name in ("report.txt", "figure.png"):
        (tmp_path / "out" / name).unlink()
    assert explain_segmentation("--out", "out").code == 0
    assert np.array_equal(load_context(tmp_path / "out").sample.values, before)
    about = json.loads((tmp_path / "out" / "about.json").read_text())
    assert about["explained"] == "object"


@pytest.mark.slow
def test_a_damaged_region_is_one_line(explain_segmentation, metfa_command, tmp_path):
    assert explain_segmentation("--out", "out").code == 0
    (tmp_path / "out" / "region.npy").write_bytes(b"no array")
    assert "region.npy is no array file" in metfa_command("show", "out").error


def test_regions_around_the_object(explain_segmentation, metfa_command, scene, tmp_path, whole_figures):
    """In the report, the figure and the page; the object's own pixels are in no region, and in no rest."""
    done = explain_segmentation("--regions", "grid:4", "--out", "out", samples=10)
    assert done.code == 0
    line = next(line for line in done.out.splitlines() if line.startswith("regions:"))
    assert "of 16 regions (" in line
    assert "of the surroundings) get" in line
    assert foreign_in(tmp_path / "out") is None
    explanation = load_context(tmp_path / "out")
    asked = metfa.regions.grid((32, 40), 4, against="rest")
    marks = explanation.over(asked).significance_map(correction="holm")[0]
    context = ~explanation.region
    masks = [mask & context for mask in asked.as_masks()]
    values = explanation.sample.values[:, 0]
    by_hand = np.array([values[:, mask].mean(1) - values[:, context & ~mask].mean(1) for mask in masks]).T
    np.testing.assert_allclose(explanation.over(asked).values[:, 0], by_hand, atol=1e-6)
    assert line.startswith(f"regions:          {(marks == 1).sum()} of 16 regions")
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert ": 16 regions</h2>" in page
    assert (tmp_path / "out" / "regions.png").stat().st_size > 5_000
    assert "regions:" not in metfa_command("show", "out", "--regions", "none").out
    assert "`--regions` must be superpixels[:NUMBER], grid[:ROWS], objects, none" in mistake(
        metfa_command("show", "out", "--regions", "phrases")
    )


def test_objects_around_are_what_the_network_finds(tmp_path):
    classes = np.array([[0, 0, 7, 7], [0, 5, 5, 7]])
    region = classes == 5
    sample = metfa.explain(
        lambda inputs, target: inputs[:, 0], np.arange(8.0).reshape(1, 1, 2, 4), 5, noise=metfa.noise.Uniform(0.1),
        n_samples=8, rng=0,
    )  # fmt: skip
    found = ContextExplanation(sample, region, classes)
    pooled = found.over(against="rest")
    assert pooled.feature_names == ("class 0", "class 7")
    zero, seven = (sample.values[:, 0, classes == index].mean(1) for index in (0, 7))
    np.testing.assert_allclose(pooled.values[:, 0], np.stack([zero - seven, seven - zero], axis=1), atol=1e-6)
    found.save(tmp_path / "kept")
    np.testing.assert_array_equal(load_context(tmp_path / "kept").classes, classes)
    with pytest.raises(ValueError, match="`regions` must be given: this result does not know the network's classes"):
        ContextExplanation(sample, region).over()
    with pytest.raises(ValueError, match="these hold none: they lie within it"):
        found.over(metfa.Regions(region[None]))


def test_random_weights_are_loud(metfa_command, scene, tmp_path):
    pytest.importorskip("torchvision")
    refused = metfa_command("explain", scene, "--model", "tiny:model", "--random-weights")
    assert "`--random-weights` is for models by name, and tiny:model makes its own model" in refused.error
