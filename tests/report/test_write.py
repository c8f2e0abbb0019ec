"""The file: everything in it, nothing run that is not ours, bad arguments refused."""

import base64
import hashlib
import json
import re

import numpy as np
import pytest

import metfa
from metfa import report

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\"'\u2028"


def told_in(page):
    return json.loads(re.search(r'<script type="application/json" id="told">(.*?)</script>', page, re.DOTALL)[1])


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
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy


def test_texts_of_others_are_escaped(sample, tmp_path):
    made = {"explainer": HOSTILE, "noise": HOSTILE, "rng": HOSTILE, "versions": {HOSTILE: HOSTILE}, "device": HOSTILE}
    words = sample((3,), inputs=[[HOSTILE, "b", "c"]], feature_names=(HOSTILE, "b", "c"), provenance=made)
    table = sample((3,), feature_names=(HOSTILE, "b", "c"), provenance=made)
    page = report.write(tmp_path / "r.html", {HOSTILE: words, "t": table}, title=HOSTILE).read_text("utf-8")
    assert "<img" not in page
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert told_in(page)["results"][0]["names"][0] == HOSTILE


def test_a_batch_is_shown_input_by_input(sample, tmp_path):
    rng = np.random.default_rng(1)
    two = sample(
        values=rng.random((12, 2, 6, 8)),
        vanilla=rng.random((2, 6, 8)),
        inputs=rng.random((2, 3, 6, 8)),
        target=(1, 4),
        input_ids=("a", "b"),
    )
    page = report.write(tmp_path / "r.html", two).read_text("utf-8")
    assert "E, class 1, input 0</h2>" in page
    assert "input 1</h2>" in page
    told = told_in(page)["results"]
    assert [one["edges"][one["computed"]] for one in told] == list(two.threshold())


def test_what_it_says_in_words(sample, tmp_path):
    page = report.write(tmp_path / "r.html", sample(), correction="by", alpha=0.1).read_text("utf-8")
    assert "The model was asked 12 times about the same input" in page
    assert "the method E told each time how much every pixel mattered" in page
    assert "corrected for looking at 48 pixels at once: by at 10%" in page
    assert "rng=0x7" in page
    assert "at most 10% of the marks on average under any dependence (by)" in page


def test_too_few_samples_and_constant_scores_are_said(sample, tmp_path):
    page = report.write(tmp_path / "few.html", sample(n=3)).read_text("utf-8")
    assert "3 samples are too few, 95% needs 6" in page
    same = np.full((8, 1, 6, 8), 0.5)
    with pytest.warns(metfa.DegenerateAttributionsWarning):
        path = report.write(tmp_path / "same.html", sample(n=8, values=same, vanilla=same[0]))
    page = path.read_text("utf-8")
    assert "All scores are equal" in page
    assert told_in(page)["results"][0]["computed"] is None


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"path": "r.txt"}, ValueError, "must end with .html, got 'r.txt'"),
        ({"results": []}, ValueError, "at least one"),
        ({"results": [3]}, TypeError, "got int"),
        ({"shape": (2, 3, 4)}, ValueError, r"got features \(2, 3, 4\)"),
        ({"title": 3}, TypeError, "got int: 3"),
        ({"alpha": 0.7}, ValueError, "between 0 and 0.5"),
        ({"correction": "fdr"}, ValueError, "'fdr'"),
        ({"confidence_level": 2}, ValueError, "confidence_level"),
        ({"threshold": "jenks"}, TypeError, "write metfa.stats.jenks"),
        ({"threshold": float("nan")}, ValueError, "finite, got nan"),
        ({"threshold": np.zeros((6, 8))}, TypeError, "got ndarray"),
    ],
)
def test_bad_arguments(settings, error, said, sample, tmp_path):
    arguments = {"path": "r.html", "results": sample(), **settings}
    if "shape" in arguments:
        arguments["results"] = sample(arguments.pop("shape"))
    arguments["path"] = tmp_path / arguments["path"]
    with pytest.raises(error, match=said):
        report.write(**arguments)
    assert list(tmp_path.iterdir()) == []


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
    assert report.write(tmp_path / "r.html", big).stat().st_size < 3e6
