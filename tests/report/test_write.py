"""The file: everything in it, nothing run that is not ours, bad arguments refused."""

import base64
import hashlib
import json
import re

import numpy as np
import pytest

import metfa
from metfa import report
from metfa.results.stopping import Look, Stopping

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\"'\u2028"


def told_in(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_one_file_with_all_in_it(sample, tmp_path):
    path = sample().report(tmp_path / "new" / "report.html", title="a & b")
    page = path.read_text("utf-8")
    assert path == tmp_path / "new" / "report.html"
    assert [found.name for found in path.parent.iterdir()] == ["report.html"]
    assert "<title>a &amp; b</title>" in page
    assert not re.search(r"""(src|href)=["'](?!#|data:)""", page.partition("<script>")[0])
    assert "http" not in re.sub(r"http-equiv|http://www.w3.org/2000/svg", "", page)
    told = told_in(page)["results"][0]
    assert told["edges"][told["computed"]] == sample().threshold()[0]
    assert told["tails"][12] == 2.0**-12


def test_only_our_script_and_style_may_run(sample, tmp_path):
    page = report.write(tmp_path / "r.html", sample()).read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1].replace("&#39;", "'")
    style, script = (
        re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1],
        re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1],
    )
    for text in (style, script):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_texts_of_others_are_escaped(sample, tmp_path):
    made = {"explainer": HOSTILE, "noise": HOSTILE, "rng": HOSTILE, "versions": {HOSTILE: HOSTILE}, "device": HOSTILE}
    words = sample((3,), inputs=[[HOSTILE, "b", "c"]], feature_names=(HOSTILE, "b", "c"), provenance=made)
    table = sample((3,), feature_names=(HOSTILE, "b", "c"), provenance=made)
    page = report.write(tmp_path / "r.html", {HOSTILE: words, "t": table}, title=HOSTILE).read_text("utf-8")
    assert "<img" not in page
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert told_in(page)["results"][0]["names"][0] == HOSTILE.replace("\u2028", "\n")


def test_a_batch_is_shown_input_by_input(sample, tmp_path):
    rng = np.random.default_rng(1)
    two = sample(
        values=rng.random((12, 2, 6, 8)) + 2.0 * (np.arange(48) % 3 == 0).reshape(6, 8),
        vanilla=rng.random((2, 6, 8)),
        inputs=rng.random((2, 3, 6, 8)),
        target=(1, 4),
        input_names=("a", "b"),
    )
    page = report.write(tmp_path / "r.html", two).read_text("utf-8")
    assert "E, class 1, input 0 (a)</h2>" in page
    assert "E, class 4, input 1 (b)</h2>" in page
    assert "how much it matters for the class that is explained (class 4" in page
    told = told_in(page)["results"]
    assert [one["edges"][one["computed"]] for one in told] == list(two.threshold())


def test_what_it_says_in_words(sample, tmp_path):
    page = report.write(tmp_path / "r.html", sample(), correction="by", alpha=0.1).read_text("utf-8")
    assert "The method E explained the same input 12 times" in page
    assert (
        "corrected for looking at 48 pixels at once: of those called important, at most 10% on average are false"
        in page
    )
    assert (
        "noise=metfa.noise.Uniform(radius=0.1), n_samples=12, rng=0x7, run=metfa.Run(input_names=[&#39;a&#39;]))"
        in page
    )
    assert "the same for those called unimportant (alpha 0.1 a side, by)" in page


def test_too_few_samples_and_constant_scores_are_said(sample, tmp_path):
    page = report.write(tmp_path / "few.html", sample(n=3)).read_text("utf-8")
    assert "3 samples are too few, 95% needs 6" in page
    same = np.full((8, 1, 6, 8), 0.5)
    with pytest.warns(metfa.DegenerateAttributionsWarning):
        path = report.write(tmp_path / "same.html", sample(n=8, values=same, vanilla=same[0]))
    page = path.read_text("utf-8")
    assert "stands out, so none is decided: all scores are equal." in page
    assert told_in(page)["results"][0]["computed"] is None


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"path": "r.txt"}, ValueError, "must end with .html, got 'r.txt'"),
        ({"results": []}, ValueError, "at least one"),
        ({"results": [3]}, TypeError, "got int"),
        ({"shape": (2, 3, 4)}, ValueError, r"two readings fit inputs \(2, 3, 4\)"),
        ({"title": 3}, TypeError, "`title` must be a text, got int"),
        ({"results": None}, TypeError, "got NoneType: None"),
        ({"results": 3}, TypeError, "got int: 3"),
        ({"path": 3}, TypeError, "must be a path, a str or pathlib.Path, got int"),
        ({"path": "file/r.html"}, NotADirectoryError, "file is no folder"),
        ({"alpha": 0.7}, ValueError, "between 0 and 0.5"),
        ({"correction": "fdr"}, ValueError, "'fdr'"),
        ({"confidence_level": 2}, ValueError, "confidence_level"),
        ({"threshold": "jenks"}, TypeError, "write a rule such as metfa.stats.jenks_of_medians"),
        ({"threshold": float("nan")}, ValueError, "a number or a rule, got nan"),
        (
            {"threshold": np.zeros((6, 8))},
            ValueError,
            r"for each of the 1 inputs shown, got an array of shape \(6, 8\)",
        ),
        ({"threshold": np.array([np.nan])}, ValueError, "a number or a rule, got nan"),
        ({"split": -1}, ValueError, "`split` must be at least 0, got -1"),
        ({"split": 12}, ValueError, "`split` must leave samples to test, got 12 of 12"),
    ],
)
def test_bad_arguments(settings, error, said, sample, tmp_path):
    arguments = {"path": "r.html", "results": sample(), **settings}
    if "shape" in arguments:
        arguments["results"] = sample(arguments.pop("shape"))
    (tmp_path / "file").write_text("no folder")
    if isinstance(arguments["path"], str):
        arguments["path"] = tmp_path / arguments["path"]
    with pytest.raises(error, match=said):
        report.write(**arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_split_leaves_out_samples_of_signed_features_where_zero_is_given(sample, tmp_path):
    values = np.random.default_rng(0).normal(0.2, 1, (12, 1, 5))
    found = sample((5,), values=values, vanilla=values[0])
    with pytest.raises(ValueError, match="`split` is for choosing a threshold"):
        report.write(tmp_path / "r.html", found, split=4)
    page = report.write(tmp_path / "r.html", found, threshold=0.0, split=4).read_text("utf-8")
    (one,) = told_in(page)["results"]
    assert (one["split"], one["edges"][one["computed"]], one["rule"]) == (4, 0.0, "as given")
    assert "The first 4 of these explanations were used for the threshold alone." in page
    page = report.write(tmp_path / "usual.html", found).read_text("utf-8")
    (one,) = told_in(page)["results"]
    assert (one["split"], one["edges"][one["computed"]], one["rule"]) == (0, 0.0, "default")


def test_whose_threshold_it_is(sample, tmp_path):
    looks = (Look(12, 0.3, None, None, 1.0),)
    rules = {}
    for split in (0, 5):
        stopped = Stopping("reached", {"undecided": 0.4}, 0.05, "e-bh", 0.95, split, (0.5,), looks)
        path = tmp_path / f"{split}.html"
        report.write(path, sample(stopping=stopped))
        rules[split] = told_in(path.read_text("utf-8"))["results"][0]["rule"]
    assert rules == {0: "as given to Until", 5: "fixed by the first 5 samples"}


def test_an_input_without_a_threshold_beside_one_that_has_one(sample, tmp_path):
    looks, nothing = (Look(12, 0.3, None, None, 1.0),), (None, "all scores are equal")
    stopped = Stopping("reached", {"undecided": 0.4}, 0.05, "e-bh", 0.95, 5, (0.5, np.nan), looks, 2, nothing=nothing)
    values = np.repeat(sample().values, 2, axis=1)
    values[:, 1] = 0.3
    found = sample(
        values=values,
        vanilla=values[0],
        inputs=np.zeros((2, 6, 8)),
        target=(1, 1),
        input_names=("a", "b"),
        stopping=stopped,
    )
    page = report.write(tmp_path / "r.html", found).read_text("utf-8")
    assert [one["edges"][one["computed"]] if one["edges"] else None for one in told_in(page)["results"]] == [0.5, None]
    assert [one.threshold for one in found.summary()] == pytest.approx([0.5, np.nan], nan_ok=True)
    assert page.count("No pixel stands out, so none is decided: all scores are equal.") == 1


def test_nothing_is_overwritten(sample, tmp_path):
    (tmp_path / "r.html").write_text("mine")
    with pytest.raises(FileExistsError, match=r"r\.html; choose a new file"):
        report.write(tmp_path / "r.html", sample())
    assert (tmp_path / "r.html").read_text() == "mine"


def test_size_at_the_usual_setting(sample, tmp_path):
    """Noise is the worst to pack: real maps take less."""
    rng = np.random.default_rng(0)
    maps = rng.random((50, 1, 224, 224)).astype(np.float32) ** 3
    big = sample((224, 224), 50, values=maps, vanilla=maps[0], inputs=rng.random((1, 3, 224, 224)))
    assert report.write(tmp_path / "r.html", big, threshold=0.3).stat().st_size < 3e6


def test_equal_and_empty_headings_are_told_apart(sample, tmp_path):
    page = report.write(tmp_path / "r.html", [sample(), sample()]).read_text("utf-8")
    assert re.findall(r"<h2.*?>(.*?)</h2>", page) == ["E, class 1", "E, class 1 (2)"]
    assert ">unnamed</h2>" in report.write(tmp_path / "s.html", {"": sample()}).read_text("utf-8")


def test_the_usual_level_is_the_same_for_all(sample, tmp_path):
    words = sample((3,), inputs=[["a", "b", "c"]])
    for name, results, settings, expected in (
        ("a", [words], {}, 0.05),
        ("b", [words], {"correction": "bh", "confidence_level": 0.9}, 0.05),
        ("c", [words, sample()], {}, 0.05),
    ):
        page = report.write(tmp_path / f"{name}.html", results, **settings).read_text("utf-8")
        assert told_in(page)["alpha"] == expected


@pytest.mark.parametrize(
    ("noise", "said"),
    [
        ("Synonyms(0.3)", "noise=Synonyms(0.3), "),
        ("None", "noise=None, "),
        ("Gaussian(std=0.1)", "noise=metfa.noise.Gaussian(std=0.1), "),
    ],
)
def test_how_to_repeat_it(noise, said, sample, tmp_path):
    made = {"explainer": "E", "noise": noise, "rng": "0x7"}
    page = report.write(tmp_path / "r.html", sample(provenance=made)).read_text("utf-8")
    assert said in page


def test_texts_that_turn_or_cannot_be_written(sample, tmp_path):
    names = ("abc\u202egnp.exe", "\ud800", "b")
    page = report.write(tmp_path / "r.html", sample((3,), feature_names=names), title="x\u2066\ud800").read_text(
        "utf-8"
    )
    assert "\u202e" not in page
    assert "\\u202e" not in page
    assert told_in(page)["results"][0]["names"][:2] == ["abcgnp.exe", "\ufffd"]


def test_sizes_that_floats_can_hold_and_not(sample, tmp_path):
    rng = np.random.default_rng(0)
    pattern = 3.0 * (np.arange(48) % 3 == 0).reshape(6, 8)
    for scale in (1e-310, 1e-30, 1e30, 1e299):
        values = (rng.random((8, 1, 6, 8)) + pattern) * scale
        report.write(tmp_path / f"{scale}.html", sample(n=8, values=values, vanilla=values[0]))
    values = rng.normal(size=(50, 1, 6, 8)) * 3e307
    with pytest.raises(ValueError, match="too large to be drawn: divide them"):
        report.write(tmp_path / "r.html", sample(n=50, values=values, vanilla=values[0]))


def test_a_scene_is_drawn_by_its_context(tmp_path):
    """What the explainer says within the object has no say in colours and stops."""
    import torch

    from metfa.segmentation import explain_context

    def network(images):
        return torch.cat([0 * images[:, :1], images[:, :1] - 0.5], dim=1)

    region = np.zeros((8, 10), dtype=bool)
    region[2:5, 3:6] = True

    def explainer(model):
        inside = torch.as_tensor(region)
        return lambda inputs, target: torch.where(inside, 5e4, inputs[:, 0])

    image = torch.rand(1, 8, 10, generator=torch.Generator().manual_seed(0))
    image[:, 2:5, 3:6] = 0.9
    found = explain_context(network, image, 1, region=region, method=explainer, min_pixels=1, n_samples=8, rng=0)
    told = told_in(found.report(tmp_path / "r.html").read_text("utf-8"))["results"][0]
    assert told["layers"]["high"] < 1.2
    assert max(told["edges"]) < 1.2
