"""One result says one thing: every view of it has the same threshold, alpha, correction, marks and share undecided."""

import json
import re
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from typer.testing import CliRunner

import metfa
from metfa import metrics
from metfa.cli.app import app
from metfa.evaluation._of_samples import undecided as measured
from metfa.plot import PALETTES
from metfa.results.terms import Terms
from metfa.segmentation.explanation import ContextExplanation
from metfa.text import render_html, render_terminal

mpl.use("Agg")
NOISE = metfa.noise.Gaussian(0.5)
ONE_SIGN = np.linspace(0, 3, 60)
BOTH_SIGNS = np.linspace(-2, 3, 60)
BY_NUMBER = metfa.Until(undecided=0.4, threshold=1.2, alpha=0.1, correction="bonferroni", max_samples=300)
BY_RULE = metfa.Until(undecided=0.4, threshold=lambda values: float(np.mean(values)), max_samples=300)


def sample_of(weights, n_samples, shape):
    """Of one input of this shape, whose scores are at least 0 where no weight is negative."""
    moved = float(weights.min() < 0)

    def explainer(x, target):
        return weights.reshape(shape) * np.abs(x) + moved * (x - 1)

    return metfa.explain(explainer, np.ones((1, *shape)), 0, noise=NOISE, n_samples=n_samples, rng=0)


RESULTS = {
    "fixed": lambda shape: sample_of(ONE_SIGN, 20, shape),
    "signed": lambda shape: sample_of(BOTH_SIGNS, 20, shape),
    "until a number": lambda shape: sample_of(ONE_SIGN, BY_NUMBER, shape),
    "until a rule": lambda shape: sample_of(ONE_SIGN, BY_RULE, shape),
    "signed, until a number": lambda shape: sample_of(
        BOTH_SIGNS, metfa.Until(undecided=0.5, threshold=0.0, max_samples=300), shape
    ),
    "terms of its own": lambda shape: replace(sample_of(ONE_SIGN, 30, shape), default_terms=Terms(1.0, 0.01, "bh")),
}
EXPECTED = {  # threshold (None: computed), alpha, correction, words above and below
    "fixed": (None, 0.05, None, "important", "unimportant"),
    "signed": (0.0, 0.05, None, "positive", "negative"),
    "until a number": (1.2, 0.1, "bonferroni", "important", "unimportant"),
    "until a rule": (None, 0.05, "closed-e-bh", "important", "unimportant"),
    "signed, until a number": (0.0, 0.05, "closed-e-bh", "positive", "negative"),
    "terms of its own": (1.0, 0.01, "bh", "important", "unimportant"),
}
MAPS, ROW = (6, 10), (60,)


@pytest.fixture(scope="module", params=RESULTS)
def case(request):
    """A result of maps and one of a row, the decision of each, and what is expected of both."""
    made = {shape: RESULTS[request.param](shape) for shape in (MAPS, ROW)}
    decisions = {shape: sample.decide(sample.terms()) for shape, sample in made.items()}
    threshold, alpha, correction, above, below = EXPECTED[request.param]
    for decision in decisions.values():
        assert (decision.terms.alpha, decision.terms.correction) == (alpha, correction)
        assert threshold in (None, decision.threshold)
        assert decision.kinds == {1: above, 0: "undecided", -1: below}
        assert set(np.unique(decision.marks)) >= {1, 0}
    return made, decisions


def shares_of(decision):
    return {mark: float(np.mean(decision.marks == mark)) for mark in (1, 0, -1)}


def level_of(terms):
    return f"alpha {terms.alpha:g} a side, {terms.correction or 'uncorrected'}"


def texts_of(figure):
    return "\n".join(text.get_text() for text in figure.findobj(Text))


def test_methods(case):
    made, decisions = case
    for shape, sample in made.items():
        decision = decisions[shape]
        np.testing.assert_array_equal(sample.significance_map(), decision.marks)
        np.testing.assert_array_equal(sample.test().above, decision.test.above)
        assert sample.plan(0.5).undecided[0] == (sample.n_samples, decision.undecided.max())
        if not callable(decision.terms.threshold):
            certified = sample.certified_radius() > 0
            assert not certified[decision.marks == 0].any()
            if decision.terms.correction != "closed-e-bh":  # which rejects sets, with members that have no bound alone
                assert certified[decision.marks != 0].all()
        if sample.stopping is not None:
            assert f"threshold {decision.threshold:.3g}" in str(sample.stopping)
            assert sample.stopping.looks[-1].undecided == pytest.approx(decision.undecided.max())


def test_summary(case):
    made, decisions = case
    for shape, sample in made.items():
        decision, summary = decisions[shape], sample.summary()[0]
        assert summary.threshold == decision.threshold
        assert (summary.alpha, summary.correction) == (decision.terms.alpha, decision.terms.correction)
        assert summary.split == decision.terms.split
        assert {1: summary.above, 0: summary.undecided, -1: summary.below} == shares_of(decision)
        names = [name for name, _ in summary.lines()]
        words = names[names.index("samples") + 1 :][:3]
        assert words == [decision.kinds[mark] for mark in (1, -1, 0)]
        assert f"(median above the threshold, {decision.threshold:.4g})" in str(summary)


def test_metrics_and_measures(case):
    made, decisions = case
    for shape, sample in made.items():
        decision = decisions[shape]
        np.testing.assert_array_equal(metrics.undecided(sample).score, decision.undecided)
        level = 1 - decision.terms.alpha  # of a study, which sets alpha
        assert measured(None, None, sample, level)[0]["score"] == decision.undecided[0]
        if not callable(decision.terms.threshold):
            radii = sample.certified_radius()
            np.testing.assert_array_equal(metrics.certified_radius(sample).score, [radii.mean()])
            np.testing.assert_array_equal(metrics.certified_share(sample, 0.1).score, [(radii >= 0.1).mean()])


def test_maps(case):
    made, decisions = case
    sample, decision = made[MAPS], decisions[MAPS]
    shown = texts_of(metfa.plot.figure(sample))
    for mark, share in shares_of(decision).items():
        assert f"{decision.kinds[mark]} {share:.1%}" in shown.split("\n")
    assert f"above or below {decision.threshold:.3g}? ({level_of(decision.terms)}; 60 pixels)" in shown
    assert ("important" in shown) == (decision.threshold != 0)
    if not callable(decision.terms.threshold):
        certified = texts_of(metfa.plot.certificate(sample))
        for mark in (1, -1):
            assert f"{decision.kinds[mark]}, {shares_of(decision)[mark]:.1%}" in certified
        assert level_of(decision.terms) in certified


def test_bars(case):
    made, decisions = case
    decision = decisions[ROW]
    figure = metfa.plot.bars(made[ROW], max_features=60)
    shown = texts_of(figure)
    for mark, share in shares_of(decision).items():
        assert f"{decision.kinds[mark]}: {round(share * 60)}" in shown.split("\n")
    assert f"above or below {decision.threshold:.3g}? ({level_of(decision.terms)}; 60 features)" in shown
    assert shown.count("alpha") == 1
    assert "error bars have a level of their own" in " ".join(shown.split())
    named = {
        to_rgb(getattr(PALETTES["colourblind"], name if name != "undecided" or decision.threshold else "no_sign")): mark
        for mark, name in decision.kinds.items()
    }
    order = [int(text.get_text().split()[1]) for text in figure.axes[0].get_yticklabels() if text.get_text()]
    drawn = [named[to_rgb(bar.get_facecolor())] for bar in figure.axes[0].patches[: len(order)]]
    order = [int(re.match(r"feature (\d+)", text.get_text())[1]) for text in figure.axes[0].get_yticklabels()]
    assert drawn == decision.marks[0, order].tolist()


def test_texts(case):
    made, decisions = case
    decision = decisions[ROW]
    words = tuple(f"w{place}" for place in range(60))
    of_text = replace(made[ROW], inputs=[" ".join(words)], feature_names=words)
    counts = {mark: int(np.sum(decision.marks == mark)) for mark in (1, 0, -1)}
    for shown in (
        re.sub(r"<[^>]+>", "", render_html(of_text)),
        re.sub(r"[*~()]", "", render_terminal(of_text, colour=False, width=10_000)),
    ):
        for mark, side in ((1, "above"), (-1, "below")):
            told = "1 word" if counts[mark] == 1 else f"{counts[mark]} words"
            assert f"{decision.kinds[mark]}: median significantly {side} {decision.threshold:.3g}, {told}" in shown
        assert f"decided at {level_of(decision.terms)}" in shown
        assert "brackets have their own level" in shown


@pytest.mark.parametrize("shape", [MAPS, ROW])
def test_reports(case, shape, tmp_path):
    made, decisions = case
    sample, decision = made[shape], decisions[shape]
    page = sample.report(tmp_path / "report.html").read_text("utf-8")
    told = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    one = told["results"][0]
    assert (told["alpha"], told["correction"]) == (decision.terms.alpha, decision.terms.correction or "none")
    assert (one["edges"][one["computed"]], one["split"]) == (decision.threshold, decision.terms.split)
    for mark, share in shares_of(decision).items():
        assert re.search(rf"{decision.kinds[mark]}</dt>\s*<dd>\s*{share:.2%}", page), page[page.index("</script>") :]


def test_commands(case, tmp_path, quick_figures):
    made, decisions = case
    sample, decision = made[MAPS], decisions[MAPS]
    folder = sample.save(tmp_path / "saved")
    done = CliRunner().invoke(app, ["show", str(folder), "--out", str(tmp_path / "views")])
    assert done.exit_code == 0, done.output
    for mark, share in shares_of(decision).items():
        assert re.search(rf"^{decision.kinds[mark]}: +{share:.2%}", done.output, re.MULTILINE)
    assert f"(median above the threshold, {decision.threshold:.4g})" in done.output
    done = CliRunner().invoke(app, ["report", str(folder), "--regions", "none", "--out", str(tmp_path / "report.html")])
    assert done.exit_code == 0, done.output
    ours = sample.report(tmp_path / "ours.html").read_text("utf-8")
    theirs = (tmp_path / "report.html").read_text("utf-8")
    told = [json.loads(re.search(r'id="data">(.*?)</script>', page)[1]) for page in (ours, theirs)]
    assert told[0] == told[1]


def test_contexts(case, tmp_path):
    made, _ = case
    region = np.zeros(MAPS, bool)
    region[2:4, 3:6] = True
    explanation = ContextExplanation(made[MAPS], region)
    decision = explanation.decide(explanation.terms())
    outside = explanation.of_context
    np.testing.assert_array_equal(explanation.significance_map()[~region], decision.marks[0])
    np.testing.assert_array_equal(outside.significance_map(), decision.marks)
    summary = explanation.summary()[0]
    assert (summary.threshold, summary.undecided) == (decision.threshold, decision.undecided[0])
    shown = texts_of(explanation.plot())
    assert f"threshold {decision.threshold:.2g}" in shown
    assert f"undecided {decision.undecided[0]:.1%}" in shown
    np.testing.assert_array_equal(explanation.above()[~region], outside.vanilla[0] > decision.threshold)
    page = explanation.report(tmp_path / "report.html").read_text("utf-8")
    told = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    one = told["results"][0]
    assert (one["edges"][one["computed"]], one["split"]) == (decision.threshold, decision.terms.split)


def test_results_of_different_terms_need_common_ones(tmp_path):
    """A page has one alpha and one correction."""
    results = {"fixed": RESULTS["fixed"](MAPS), "rule": RESULTS["until a rule"](MAPS)}
    with pytest.raises(
        ValueError,
        match=r"'fixed' at alpha 0\.05 a side, uncorrected, 'rule' at alpha 0.05 a side, closed-e-bh, and a page has",
    ):
        metfa.report.write(tmp_path / "page.html", results)
    page = metfa.report.write(tmp_path / "page.html", results, correction="none").read_text("utf-8")
    told = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    assert (told["alpha"], told["correction"]) == (0.05, "none")
    assert [one["split"] for one in told["results"]] == [0, 10]


def test_help_says_the_default():
    shown = CliRunner().invoke(app, ["show", "--help"], env={"COLUMNS": "300", "TERM": "dumb"}).output
    shown = " ".join(re.sub(r"[│╭╰─╮╯]", " ", shown).split())
    assert "By default that of --until if it tested, else 0.05." in shown
    assert "else 0 for signed scores and jenks_of_medians for others." in shown
