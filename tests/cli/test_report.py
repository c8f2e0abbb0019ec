"""`metfa report`: folders of results into one page."""

import json
import re
import shutil

import numpy as np
import pytest
from PIL import Image

import metfa


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def results(metfa_command, tiny, tmp_path, kept):
    """A picture's folder, and that of another method: made once, and copied for each test."""
    if any(kept.iterdir()):
        shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
        return [tmp_path / "one", tmp_path / "two"]
    levels = np.random.default_rng(0).integers(0, 256, (24, 30, 3), np.uint8)
    Image.fromarray(levels).save(tmp_path / "photo.png")
    for method, folder in (("gradient", "one"), ("smoothgrad", "two")):
        done = metfa_command(
            "explain", "photo.png", "--model", "tiny:model", "--method", method, "--samples", 6, "--out", folder
        )
        assert done.code == 0
    shutil.copytree(tmp_path, kept, dirs_exist_ok=True)
    return [tmp_path / "one", tmp_path / "two"]


def test_a_page_of_several_folders(metfa_command, results, tmp_path):
    done = metfa_command(
        "report", *results, "--out", "all.html", "--title", "Both <b>", "--alpha", 0.1, "--regions", "none"
    )
    assert done.out == "report: all.html\n"
    page = (tmp_path / "all.html").read_text("utf-8")
    assert "<h1>Both &lt;b&gt;</h1>" in page
    headings = re.findall(r"<h2.*?>(.*?)</h2>", page)
    assert [("gradient" in headings[0]), ("smoothgrad" in headings[1])] == [True, True]
    assert headings[0].startswith("photo.png: why “")
    assert '"alpha":0.1' in page


def test_regions_beside_pictures(metfa_command, results, tmp_path):
    done = metfa_command("report", *results, "--out", "all.html", "--regions", "grid:3", "--correction", "holm")
    assert done.code == 0
    page = (tmp_path / "all.html").read_text("utf-8")
    assert [": 9 regions" in found for found in re.findall(r"<h2.*?>(.*?)</h2>", page)] == [True, False, True, False]
    done = metfa_command("report", *results, "--out", "none.html", "--regions", "squares")
    assert done.code != 0
    assert "`--regions` must be superpixels" in done.err


def test_equal_names_and_bare_samples(metfa_command, results, tmp_path):
    sample = metfa.load(results[0] / "sample")
    sample.save(tmp_path / "bare")
    done = metfa_command("report", results[0], results[0], "bare", "--regions", "none")
    assert done.code == 0
    headings = re.findall(r"<h2.*?>(.*?)</h2>", (tmp_path / "metfa-report.html").read_text("utf-8"))
    assert headings[1:] == [f"{headings[0]} (2)", "bare"]


def test_texts_and_scenes(metfa_command, tiny, tmp_path):
    assert metfa_command("explain-text", "a dull film with one good joke", "--samples", 6, "--out", "text").code == 0
    levels = np.zeros((24, 30, 3), np.uint8)
    levels[:, :4, 1], levels[8:15, 16:25, 0] = 230, 220
    Image.fromarray(levels).save(tmp_path / "scene.png")
    done = metfa_command(
        *("explain-segmentation", "scene.png", "--model", "tiny:named_scenes", "--class", "object"),
        *("--samples", 6, "--min-pixels", 1, "--out", "scene"),
    )
    assert done.code == 0
    assert metfa_command("report", "text", "scene").code == 0
    page = (tmp_path / "metfa-report.html").read_text("utf-8")
    assert '"kind":"words"' in page
    assert '"kind":"maps"' in page
    assert "only its surroundings are judged" in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "no such folder: nowhere"),
        (("one", "--out", "page.txt"), "`path` must end with .html, got 'page.txt'"),
        (("one", "--out", "one/report.txt"), "must end with .html"),
        (("one", "--alpha", 0.9), "between 0 and 0.5, got 0.9"),
        (("one", "--threshold", "high"), "'jenks' (of all scores) or a number, got 'high'"),
        ((".",), "holds several results, name one of them"),
    ],
)
def test_mistakes_are_one_line(arguments, said, metfa_command, results, tmp_path):
    assert said in metfa_command("report", *arguments).error
    assert not (tmp_path / "metfa-report.html").exists()


def test_nothing_is_overwritten_unless_asked(metfa_command, results, tmp_path):
    assert metfa_command("report", results[0]).code == 0
    before = (tmp_path / "metfa-report.html").read_bytes()
    refused = metfa_command("report", results[1]).error
    assert refused == "error: metfa-report.html exists already: give another `--out`, or --overwrite"
    assert (tmp_path / "metfa-report.html").read_bytes() == before
    assert metfa_command("report", results[1], "--overwrite").code == 0
    assert (tmp_path / "metfa-report.html").read_bytes() != before


def test_regions_that_a_result_cannot_have_are_an_error_that_names_it(metfa_command, results, tiny, tmp_path):
    text = "A dull film. One good joke, a brilliant end."
    assert metfa_command("explain-text", text, "--method", "occlusion", "--samples", 8, "--out", "text").code == 0
    for regions in ("phrases", "sentences"):
        assert metfa_command("report", "text", "--out", f"{regions}.html", "--regions", regions).code == 0
        page = (tmp_path / f"{regions}.html").read_text("utf-8")
        found = re.findall(r"<h2.*?>(.*?)</h2>", page)
        assert [": 3 regions" in name if regions == "phrases" else ": 2 regions" in name for name in found] == [
            True,
            False,
        ]
    refused = metfa_command("report", results[0], "text", "--regions", "superpixels:9").error
    assert refused == "error: text: `--regions` must be sentences, phrases, or none, got 'superpixels:9'"
    refused = metfa_command("report", results[0], "text", "--regions", "sentences").error
    assert refused.startswith(f"error: {results[0]}: `--regions` must be superpixels[:NUMBER], grid[:ROWS], none")
    assert metfa_command("report", "text", results[0], "--regions", "none").code == 0
    page = (tmp_path / "metfa-report.html").read_text("utf-8")
    assert len(re.findall(r"<h2.*?>(.*?)</h2>", page)) == 2


def told_in(path):
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)[1])


@pytest.mark.slow
def test_a_result_of_until_starts_as_it_was_decided(metfa_command, results, tmp_path):
    rule = ("--until", "undecided=0.6", "--max-samples", "30", "--noise", "gaussian:0.1", "--alpha", "0.1")
    assert metfa_command("explain", "photo.png", "--model", "tiny:model", *rule, "--out", "until").code == 0
    stopping = metfa.load(tmp_path / "until" / "sample").stopping
    assert metfa_command("report", "until", "--out", "a.html", "--regions", "none").code == 0
    told = told_in(tmp_path / "a.html")
    (one,) = told["results"]
    assert (told["alpha"], told["correction"], one["split"]) == (0.1, "closed-e-bh", 10)
    assert one["edges"][one["computed"]] == stopping.thresholds[0]
    assert one["certificate"]["correction"] == "closed-e-bh"
    assert metfa_command("report", "until", "--out", "b.html", "--correction", "none", "--alpha", "0.2").code == 0
    told = told_in(tmp_path / "b.html")
    assert (told["alpha"], told["correction"]) == (0.2, "none")
    refused = metfa_command("report", "until", "one", "--out", "c.html")  # decided in different ways
    assert refused.code == 2
    assert "at alpha 0.1 a side, closed-e-bh, " in refused.err
    levels = ("--alpha", "0.05", "--correction", "none")
    assert metfa_command("report", "until", "one", "--out", "c.html", *levels).code == 0
    told = told_in(tmp_path / "c.html")
    assert (told["alpha"], told["correction"]) == (0.05, "none")


def test_samples_left_out_for_the_threshold(metfa_command, results, tmp_path):
    assert metfa_command("report", "one", "--out", "a.html", "--split", "2", "--regions", "none").code == 0
    (one,) = told_in(tmp_path / "a.html")["results"]
    threshold = metfa.load(results[0] / "sample").threshold(split=2)[0]
    assert (one["split"], one["samples"]["n"], one["edges"][one["computed"]]) == (2, 4, threshold)
    done = metfa_command("report", "one", "--out", "b.html", "--split", "6")
    assert done.code == 2
    assert "`split` must leave samples to test, got 6 of 6" in done.err
