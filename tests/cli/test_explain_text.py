"""`metfa explain-text`: a text explained on the terminal and in a page."""

import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import metfa
from metfa import text
from metfa._base.own_files import foreign_in

TEXT = "a dull, lifeless film with one good joke"


@pytest.fixture
def explain_text(metfa_command, tiny):
    def run(*arguments, said=TEXT, method="occlusion", samples=8):
        return metfa_command("explain-text", said, "--method", method, "--samples", samples, *arguments)

    return run


def test_the_words_are_shown_with_their_marks_and_figures(explain_text, tmp_path):
    done = explain_text()
    assert done.code == 0
    assert done.out.startswith("Why “negative (")
    sample = text.explain_text(
        text.load_model("sentiment"), TEXT, method=text.Occlusion, noise=text.SenseSynonyms(0.5), n_samples=8, rng=0
    )
    for line in text.render_terminal(sample, colour=False, width=60).splitlines()[:6]:  # the words and their figures
        assert line in done.out
    assert "alpha 0.05 a side" in done.out
    assert "the text itself:  scores from -0." in done.out
    for line in (f"text:             {TEXT}", "model:            sentiment", "noise:            sense-synonyms:0.5"):
        assert line in done.out
    assert not list(tmp_path.iterdir())


def test_a_folder_holds_page_report_and_samples(explain_text, metfa_command, tmp_path):
    done = explain_text("--out", "out", "--target", 1)
    assert done.code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("words.html", "report.html", "report.txt", "about.json", "sample")
    }
    assert foreign_in(tmp_path / "out") is None
    sample = metfa.load(tmp_path / "out/sample")
    assert sample.inputs == [TEXT]
    assert sample.words == ("a", "dull", "lifeless", "film", "with", "one", "good", "joke")
    assert sample.target == (1,)
    page = (tmp_path / "out/words.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "lifeless" in page
    about = json.loads((tmp_path / "out/about.json").read_text())
    assert (about["text"], about["model"]) == (TEXT, "sentiment")
    assert "positive (< 0.01)" in about["explained"]
    shown = metfa_command("show", "out")
    assert shown.code == 0
    assert shown.out.splitlines()[0] == done.out.splitlines()[0]
    again = explain_text("--out", "out", "--target", 1)
    assert again.code == 0
    assert again.out == done.out
    assert "out holds the finished result of this command: nothing is written" in again.err
    assert explain_text("--out", "out", "--target", 0).error.startswith("error: out holds results with target=1, not 0")


def test_views_with_other_levels_without_the_model(explain_text, metfa_command, tmp_path):
    assert explain_text("--out", "out").code == 0
    assert metfa_command("show", "out", "--alpha", 0.01, "--out", "views").code == 0
    assert {path.name for path in (tmp_path / "views").iterdir()} == {"words.html", "report.html", "report.txt"}
    assert "alpha 0.01" in (tmp_path / "views/report.txt").read_text()


def test_a_text_sampled_until_decided_is_shown_as_it_was(metfa_command, tmp_path):
    @metfa.randomised
    def explainer(texts, target, *, rngs):
        return np.stack([np.array([0.1, 0.9, 0.2]) + 0.05 * rng.random(3) for rng in rngs])

    def run(name, **budget):
        rule = metfa.Until(undecided=0.4, **budget)
        names = ("a", "dull", "film")
        sample = metfa.explain(
            explainer, ["a dull film"], 1, noise=None, n_samples=rule, rng=0, run=metfa.Run(feature_names=names)
        )
        sample.save(tmp_path / name)
        return sample

    sample = run("decided")
    shown = metfa_command("show", "decided", "--alpha", 0.05)
    assert shown.code == 0
    assert "10 of them for the threshold alone" in shown.out
    assert f"{sample.stopping.thresholds[0]:.3g}, 1 word" in shown.out
    run("first-round", max_seconds=1e-9)  # nothing was tested: by the natural break of all samples
    shown = metfa_command("show", "first-round", "--alpha", 0.05)
    assert shown.code == 0
    assert "nothing tested: the first 10 samples gave the threshold" in shown.out


def test_signed_scores(explain_text, metfa_command):
    done = explain_text("--set", "scale=false", "--out", "out")
    assert done.code == 0
    assert "positive" in done.out
    assert "(median above the threshold, 0)" in done.out
    assert "(median above the threshold, 0)" in metfa_command("show", "out").out
    assert "(median above the threshold, 0.1)" in metfa_command("show", "out", "--threshold", 0.1).out


def test_a_text_from_the_input_is_escaped_in_the_page(explain_text, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("<script>alert(1)</script> & a \x1b[31mred film\n"))
    done = explain_text("--out", "out", said="-")
    assert done.code == 0
    page = (tmp_path / "out/words.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in done.out + page


def test_an_interrupted_run_is_resumed(explain_text, tmp_path):
    assert explain_text("--out", "out").code == 0
    before = metfa.load(tmp_path / "out/sample").values.copy()
    (tmp_path / "out/report.txt").unlink()
    (tmp_path / "out/words.html").unlink()
    done = explain_text("--out", "out")
    assert done.code == 0
    np.testing.assert_array_equal(metfa.load(tmp_path / "out/sample").values, before)
    assert explain_text("--out", "out", said="another text").error.startswith("error: out holds results with text=")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "gradient"], "the method must be one of lemna, .*, got 'gradient'"),
        (["--noise", "uniform:0.1"], "the noise must be sense-synonyms:P.*, got 'uniform:0.1'"),
        (["--noise", "none"], "`noise` is None"),
        (["--set", "words=3"], "occlusion has no setting 'words'"),
        (["--samples", "4"], "too few samples for `confidence_level`=0.95: got 4, at least 6 are needed"),
        (
            ["--correction", "bonferroni", "--samples", "7"],
            r"bonferroni over 8 words, each side.*at least 8 are needed",
        ),
        (["--model", "sentimental"], "is not a known model, did you mean 'sentiment'"),
        (["--model", "nowhere.npz"], "nowhere.npz"),
        (["--model", "tiny:nothing"], "^error: `--model` 'tiny:nothing' cannot be imported as package.module:callable"),
        (["--model", "sentimental"], "^error: `--model` 'sentimental' "),
        (["--target", "2"], r"`target`.* must .*\b1\b.*, got 2"),
    ],
)
def test_bad_settings_are_one_line(arguments, message, explain_text):
    done = explain_text(*arguments)
    assert (done.code, done.out) == (2, "")
    assert re.search(message, done.error), done.error


@pytest.mark.parametrize("said", ["", "...", " \n"])
def test_no_words(explain_text, said):
    assert "holds no words" in explain_text(said=said).error


def test_too_much_text(explain_text):
    assert "longer than 1,000,000 characters" in explain_text(said="word " * 200_001).error


@pytest.mark.slow
def test_nobody_reads_on(tmp_path):
    command = f"{sys.executable} -m metfa explain-text 'a good film' --method occlusion --samples 8 | true"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "explaining: 100%" in done.stderr
    assert "error" not in done.stderr
    assert "Error" not in done.stderr
