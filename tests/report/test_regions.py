"""Regions on the page: their pixels, their terms beside those of single pixels, and what is refused."""

import base64
import json
import re
import zlib

import numpy as np
import pytest
import torch

import metfa
from metfa import report, segmentation
from metfa.results.stopping import Look, Stopping

LABELS = (np.arange(48) // 12).reshape(6, 8)
LOOKS = (Look(12, 0.3, None, None, 1.0),)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def data_of(path):
    page = path.read_text("utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def masks_in(drawn):
    """Masks from the runs that a page holds, by its own description."""
    total = sum(drawn["counts"])
    planes = np.frombuffer(zlib.decompress(base64.b64decode(drawn["runs"])), np.uint8).reshape(2, 4, total)
    gaps, lengths = (planes.astype(np.int64) * (256 ** np.arange(4))[:, None]).sum(axis=1).tolist()
    masks = np.zeros((len(drawn["counts"]), *drawn["shape"]), bool)
    k = 0
    for mask, count in zip(masks, drawn["counts"], strict=True):
        end = 0
        for gap, length in zip(gaps[k : k + count], lengths[k : k + count], strict=True):
            mask.ravel()[end + gap : end + gap + length] = True
            end += gap + length
        k += count
    return masks


def overlapping():
    masks = np.random.default_rng(0).random((5, 6, 8)) < 0.4
    masks[3] = True
    return masks


@pytest.mark.parametrize("masks", [LABELS, np.where(LABELS == 2, -1, LABELS), overlapping(), LABELS[::-1].copy()])
def test_the_page_holds_the_pixels_of_each_region(masks, sample, tmp_path):
    regions = metfa.Regions(masks if masks.dtype == bool else np.where(masks == 3, 2, masks))
    pooled = sample().over(regions)
    (told,) = data_of(pooled.report(tmp_path / "r.html"))["results"]
    np.testing.assert_array_equal(masks_in(told["drawn"]), regions.as_masks())
    assert (told["kind"], told["names"]) == ("regions", list(regions.names))


def test_channels_of_a_pixel_belong_together(sample, tmp_path):
    inputs = np.random.default_rng(0).random((1, 3, 6, 8))
    values = np.random.default_rng(1).random((12, 1, 3, 6, 8))
    colours = sample(values=values, vanilla=values[0], inputs=inputs)
    regions = metfa.Regions(np.broadcast_to(LABELS, (3, 6, 8)).copy(), against="rest")
    (told,) = data_of(colours.over(regions).report(tmp_path / "r.html"))["results"]
    assert told["drawn"]["shape"] == [6, 8]
    np.testing.assert_array_equal(masks_in(told["drawn"]), [i == LABELS for i in range(4)])


def test_regions_that_lie_in_no_picture_are_bars(sample, tmp_path):
    words = sample((3,), inputs=[["good", "film", "bad"]]).over(np.array([[True, True, False], [False, True, True]]))
    (told,) = data_of(words.report(tmp_path / "t.html", threshold=0.5))["results"]
    assert (told["kind"], told["names"], told["noun"]) == ("bars", ["region 0", "region 1"], "region")
    table = sample((6,)).over(metfa.Regions(np.array([0, 0, 1, 1, 1, -1]), ["a", "b"], against="rest"))
    (told,) = data_of(table.report(tmp_path / "r.html"))["results"]
    assert (told["kind"], told["names"]) == ("bars", ["a", "b"])


class TestBesideTheirPixels:
    def test_both_are_shown_and_one_picture(self, sample, tmp_path):
        path = report.write(tmp_path / "r.html", sample(), regions=metfa.Regions(LABELS, against="rest"))
        told = data_of(path)
        regions, pixels = told["results"]
        assert (regions["kind"], pixels["kind"], pixels["beside"]) == ("regions", "maps", 0)
        assert (regions["picture"], pixels["picture"], len(told["pictures"])) == (0, 0, 1)
        page = path.read_text("utf-8")
        assert re.findall(r"<h2.*?>(.*?)</h2>", page) == ["E, class 1: 4 regions", "E, class 1"]
        assert "less the mean of everything else in the same explanation" in page
        assert "A region is said to get more than the rest if its scores lie above 0 more often" in page

    def test_each_input_has_its_own(self, sample, tmp_path):
        rng = np.random.default_rng(1)
        two = sample(
            values=rng.random((12, 2, 6, 8)),
            vanilla=rng.random((2, 6, 8)),
            inputs=rng.random((2, 3, 6, 8)),
            target=(1, 4),
            input_names=("a", "b"),
        )
        other = LABELS[::-1].copy()
        path = report.write(tmp_path / "r.html", two, regions=metfa.Regions([LABELS, other]), threshold=[0.3, 0.4])
        told = data_of(path)["results"]
        assert [one["beside"] for one in told] == [None, 0, None, 2]
        np.testing.assert_array_equal(masks_in(told[2]["drawn"])[0], other == 0)
        assert [one["edges"][one["computed"]] for one in told] == [0.3, 0.3, 0.4, 0.4]

    @pytest.mark.parametrize(
        ("regions", "given", "threshold", "split", "rule"),
        [
            (metfa.Regions(LABELS), {"threshold": 0.5}, 0.5, 0, "as given"),
            (metfa.Regions(LABELS, how="max"), {"threshold": 0.5, "split": 3}, 0.5, 3, "as given"),
            (metfa.Regions(LABELS, against="rest"), {"threshold": 0.5, "split": 3}, 0.0, 0, "default"),
            (metfa.Regions(LABELS, against="rest"), {"split": 3}, 0.0, 0, "default"),
            (metfa.Regions(LABELS, against="rest"), {}, 0.0, 0, "default"),
        ],
    )
    def test_terms_of_regions(self, regions, given, threshold, split, rule, sample, tmp_path):
        told, pixels = data_of(report.write(tmp_path / "r.html", sample(), regions=regions, **given))["results"]
        assert (told["edges"][told["computed"]], told["split"], told["rule"]) == (threshold, split, rule)
        assert pixels["split"] == given.get("split", 0)

    def test_a_function_makes_them_for_each_result(self, sample, tmp_path):
        words = sample((3,), inputs=[["a", "b", "c"]])

        def quarters(found):
            return metfa.regions.grid(found, 2, against="rest") if len(found.feature_shape) == 2 else None

        told = data_of(report.write(tmp_path / "r.html", [sample(), words], regions=quarters))["results"]
        assert [(one["kind"], one["beside"]) for one in told] == [("regions", None), ("maps", 0), ("words", None)]
        assert told[0]["names"][0] == "rows 0-2, columns 0-3"

    def test_a_number_for_pixels_is_none_for_their_sums(self, sample, tmp_path):
        sums = metfa.Regions((np.arange(48) % 3).reshape(6, 8), how="sum")
        regions, _ = data_of(report.write(tmp_path / "r.html", sample(), regions=sums, threshold=0.5))["results"]
        assert regions["edges"][regions["computed"]] == pytest.approx(sample().over(sums).threshold()[0])

    @pytest.mark.parametrize("over", [None, metfa.Regions(LABELS, against="rest")])
    def test_alpha_and_correction_are_those_by_which_sampling_stopped(self, over, sample, tmp_path):
        threshold = (0.5,) if over is None else (0.0,)
        stopping = Stopping("reached", {"undecided": 0.4}, 0.1, "e-bh", 0.95, 0, threshold, LOOKS, over=over)
        found = sample(stopping=stopping)
        asked = metfa.Regions(LABELS, against="rest") if over is None else None  # those of Until need no word
        told = data_of(report.write(tmp_path / "r.html", found, regions=asked))
        assert (told["alpha"], told["correction"], told["correctionOfRegions"]) == (0.1, "e-bh", "e-bh")
        told = data_of(report.write(tmp_path / "s.html", found, regions=asked, alpha=0.2, correction="bonferroni"))
        assert (told["alpha"], told["correction"], told["correctionOfRegions"]) == (0.2, *["bonferroni"] * 2)

    def test_regions_have_a_correction_of_their_own(self, sample, tmp_path):
        found = sample()
        path = report.write(tmp_path / "r.html", found, regions=metfa.Regions(LABELS, against="rest"))
        told = data_of(path)
        assert (told["correction"], told["correctionOfRegions"]) == ("none", "holm")
        assert [one["ofRegions"] for one in told["results"]] == [True, False]
        page = path.read_text("utf-8")
        assert re.findall(r"<label>(Correction[^<]*) <select name=\"([\w-]+)\"", page) == [
            ("Correction of single features", "correction"),
            ("Correction of regions", "correction-of-regions"),
        ]
        alone = report.write(tmp_path / "s.html", found.over(metfa.Regions(LABELS, against="rest")))
        assert data_of(alone)["correctionOfRegions"] is None
        assert re.findall(r"<label>(Correction[^<]*) <select", alone.read_text("utf-8")) == ["Correction"]

    def test_regions_by_heading(self, sample, tmp_path):
        asked = {"first": metfa.Regions(LABELS, against="rest"), "second": None}
        path = report.write(tmp_path / "r.html", {"first": sample(), "second": sample()}, regions=asked)
        assert [one["kind"] for one in data_of(path)["results"]] == ["regions", "maps", "maps"]


def test_names_of_regions_are_texts_of_others(sample, tmp_path):
    regions = metfa.Regions(LABELS, [HOSTILE, "b\u202e", "c", "d"], against="rest")
    path = report.write(tmp_path / "r.html", sample(), regions=regions)
    page = path.read_text("utf-8")
    assert "<img" not in page
    assert page.count("<script") == 2
    assert data_of(path)["results"][0]["names"][:2] == [HOSTILE, "b"]


@pytest.mark.parametrize(
    ("given", "fixed"),
    [({}, False), ({"split": 3}, True), ({"threshold": 0.5}, True), ({"threshold": np.median}, False)],
)
def test_which_thresholds_are_fixed(given, fixed, sample, tmp_path):
    (told,) = data_of(report.write(tmp_path / "r.html", sample(), **given))["results"]
    assert (told["fixed"], told["logs"]) == (fixed, None)


def test_the_advice_of_the_page_works(sample, tmp_path):
    """What it says where nothing is promised: `split`, a number, or a number of times each map's mean."""
    found = sample()
    for number, (one, given) in enumerate([(found, {"split": 10}), (found.scaled("mean"), {"threshold": 2})]):
        (told,) = data_of(one.report(tmp_path / f"{number}.html", **given))["results"]
        assert told["fixed"]
    drawn = LABELS == 2
    assert found.over(drawn[None], against="rest").values.shape == (12, 1, 1)


class TestRefused:
    def test_regions_of_another_shape(self, sample, tmp_path):
        with pytest.raises(ValueError, match=r"shape.*\(6, 8\), got \(8, 6\)"):
            report.write(tmp_path / "r.html", sample(), regions=LABELS.T.copy())

    def test_masks_for_another_number_of_inputs(self, sample, tmp_path):
        with pytest.raises(ValueError, match="masks for all or for each of 1 inputs, got 2"):
            report.write(tmp_path / "r.html", sample(), regions=metfa.Regions([LABELS, LABELS]))

    def test_results_whose_features_are_regions(self, sample, tmp_path):
        with pytest.raises(ValueError, match="leave `regions` out"):
            report.write(tmp_path / "r.html", sample().over(LABELS), regions=LABELS)

    def test_no_regions(self, sample, tmp_path):
        with pytest.raises(TypeError, match="must be an array of labels or of bool, got int: 3"):
            report.write(tmp_path / "r.html", sample(), regions=3)
        assert not list(tmp_path.iterdir())

    @pytest.mark.slow
    def test_regions_of_a_scene_are_without_its_object(self, tmp_path):
        def network(images):
            shore = images[..., :4].mean((1, 2, 3), keepdim=True)
            return torch.cat([0 * images[:, :1], 12 * images[:, :1] * shore - 3], dim=1)

        image = torch.full((1, 24, 32), 0.05)
        image[:, :, :4], image[:, 8:14, 18:26] = 0.9, 0.8
        found = segmentation.explain_context(
            network, image, 1, region=image[0] == 0.8, min_pixels=1, n_samples=14, rng=0
        )
        labels = np.repeat(np.arange(4), 192).reshape(24, 32)
        regions = metfa.Regions(labels, against="rest")
        told = data_of(report.write(tmp_path / "r.html", found, regions=regions))
        assert [(one["kind"], one["beside"]) for one in told["results"]] == [("bars", None), ("maps", None)]
        assert (told["correction"], told["correctionOfRegions"]) == ("none", "holm")
        both = [found, found.sample.over(labels, against="rest")]
        told = data_of(report.write(tmp_path / "s.html", both))["results"]
        assert [one["kind"] for one in told] == ["maps", "regions"]


@pytest.mark.slow
def test_regions_take_little_of_the_page(sample, tmp_path):
    """Fifty blobs of 224 x 224 pixels."""
    rng = np.random.default_rng(0)
    places = np.stack(np.mgrid[:224, :224], axis=-1).reshape(-1, 1, 2)
    labels = ((places - rng.integers(0, 224, (50, 2))) ** 2).sum(axis=-1).argmin(axis=1).reshape(224, 224)
    values = rng.random((8, 1, 224, 224), np.float32)
    found = sample((224, 224), 8, values=values, vanilla=values[0], inputs=rng.random((1, 3, 224, 224)))
    regions = metfa.Regions(labels, against="rest")
    sizes = [
        report.write(tmp_path / f"{name}.html", found, threshold=0.5, regions=given).stat().st_size
        for name, given in (("with", regions), ("without", None))
    ]
    assert sizes[0] - sizes[1] < 40_000
