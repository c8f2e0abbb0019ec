"""What a summary and a shown text say of differences: whose they are, and that medians of differences are tested."""

import re
from typing import Any

import numpy as np
import pytest

import metfa
from metfa import text
from metfa._base.percents import percent
from metfa.results.differences import difference_of
from metfa.results.in_words import regions_in_words

WEIGHTS = np.array([1.0, 2.0, 1.0, 0.5, 1.0 + 1e-9])


def explained(weights: Any = 1.0, n=20, rng=0):
    """With scores of two classes: the first falls below the second in some copies."""

    def explainer(x, target):
        return weights * x, np.stack([x[:, 0], np.full(len(x), 1.0)], axis=1)

    inputs = np.full((2, 5), [[1.3], [1.05]])
    return metfa.explain(explainer, inputs, 0, noise=metfa.noise.Gaussian(0.2), n_samples=n, rng=rng)


@pytest.fixture(scope="module")
def sample():
    return difference_of(explained(), explained(WEIGHTS))


def lines_of(summary):
    return dict(summary.lines())


class TestSummary:
    @pytest.mark.parametrize("row", [0, 1])
    def test_every_number(self, sample, row):
        said = lines_of(sample.summary()[row])
        marks, interval = sample.significance_map()[row], sample.confidence_interval()
        for name, mark, words in (
            ("more than before", 1, " (median difference above 0)"),
            ("less than before", -1, " (median difference below it)"),
            ("undecided", 0, " (not shown to differ)"),
        ):
            assert said[name].strip() == percent((marks == mark).mean(), 2) + words
        beyond = ((sample.vanilla < interval.low) | (sample.vanilla > interval.high))[row].sum()
        share = percent(beyond / 5, 1)
        assert said["contradicted"] == (
            f"the difference without noise lies outside the interval of {beyond} of 5 features ({share})"
        )
        assert said["samples"] == "20 of each feature's difference; 5 features"
        assert (
            said["smoothed map"]
            == "mean of the 10 middle ones of 20 differences of each feature, 5 left out on each side"
        )
        width = (interval.high - interval.low)[row].mean()
        assert said["intervals"] == (
            "each holds its median difference with probability 95.86%, more where differences tie; mean width "
            f"{width:.3g}"
        )
        assert said["difference"] == (
            "after minus before in the same noisy copy (attribution score); marks and intervals are about the median "
            "of the differences, not the difference of the medians"
        )
        flips = [percent(part.flip_rate[row], 0) for part in sample.pair]
        assert said["prediction flips"] == f"before {flips[0]}, after {flips[1]} of the noisy inputs"

    def test_differences_that_count_as_rounding(self, sample):
        near = lines_of(sample.summary()[0])["no sign"]
        found = re.fullmatch(r"most differences of (3) features lie within (\S+) of 0, which counts as rounding", near)
        assert found is not None
        assert float(found[2]) == pytest.approx(1e-4 * float(sample.unit[0]), rel=0.1)
        none = difference_of(explained(), explained()).summary()[0]
        assert none.nothing == "most differences of each are 0 to rounding"

    def test_a_threshold_of_ones_own(self, sample):
        said = lines_of(sample.summary(0.1)[0])
        assert said["above 0.1"].endswith("(median difference above the threshold, 0.1)")
        assert "not shown to differ" not in said["undecided"]

    def test_both_classes(self):
        first, second = explained(), explained(WEIGHTS)
        assert difference_of(first, second).summary()[0].explained == "class 0, as predicted"
        other = metfa.explain(
            lambda x, target: (x, np.stack([x[:, 0], np.full(len(x), 1.0)], axis=1)), np.full((2, 5), [[1.3], [1.05]]),
            1, noise=metfa.noise.Gaussian(0.2), n_samples=20, rng=0,
        )  # fmt: skip
        explained_as = difference_of(first, other, names=("a", "b")).summary()[0].explained
        assert explained_as == "a: class 0, as predicted; b: class 1 (predicted: class 0)"
        by_class = difference_of(first, other, names=("class 0", "class 1"))  # as `metfa.contrast` names them
        assert by_class.summary()[0].explained == "class 0, as predicted; class 1 (predicted: class 0)"

    def test_scores_are_no_differences(self):
        plain = explained()
        said = str(plain.summary(0)[0])
        assert "difference" not in said
        assert plain.summary(0)[0].compared is None

    def test_regions(self, sample):
        pooled = sample.over(np.array([0, 0, 1, 1, 1]), against="rest")
        said = lines_of(pooled.summary()[0])
        assert said["samples"] == "20 of each region's difference; 2 regions"
        marks = pooled.significance_map()[0]
        words = regions_in_words(pooled, pooled.decide(pooled.terms()), whole="row")
        assert words.startswith(
            f"{(marks == 1).sum()} of 2 regions (40% of the row) gets significantly more than before"
        )


def of_text(line, weights, **named):
    def explainer(texts, target):
        return [[weights.get(word.strip(",.!"), 0.0) + 0.001 * len(one) for word in one.split()] for one in texts]

    def noise(one, rng):
        return one.replace("film", rng.choice(("film", "movie", "flick")))

    run = metfa.Run(input_names=["review"], **named)
    return metfa.explain(explainer, [line], 1, noise=noise, n_samples=20, rng=0, run=run)


GOOD, BAD = "A good film, with fine acting.", "A bad film, with awful acting."
BEFORE, MORE = {"good": 2.0, "acting": 0.5, "bad": -2.0, "awful": -1.0}, {"good": 3.0, "acting": 0.1}


class TestTexts:
    def test_words_that_grew_or_shrank(self):
        both = difference_of(of_text(GOOD, BEFORE), of_text(GOOD, MORE))
        shown = text.render_terminal(both, colour=False, width=200)
        assert shown.splitlines()[0] == "(A) *good* (film), (with) (fine) ~acting~."
        assert "*more than before*: median difference significantly above 0, 1 word\n" in shown
        assert "~less than before~: median difference significantly below 0, 1 word\n" in shown
        assert "difference: smoothed over 20 samples, 5 left out on each side; in brackets the 95.86% interval" in shown
        assert "interval of its median difference" in shown
        assert "compared: after minus before in the same noisy copy (attribution score); marks and intervals" in shown
        assert "the difference without noise lies outside the interval of 0 of 6 words (0.0%)" in shown
        figures = f"good    {both.smoothed()[0, 1]:.3g} [{both.confidence_interval().low[0, 1]:.3g}, "
        assert figures in shown

    @pytest.mark.parametrize("named", [True, False])
    def test_both_readings_of_an_edited_word(self, named):
        names = [{"feature_names": line.replace(",", "").strip(".").split()} if named else {} for line in (GOOD, BAD)]
        both = difference_of(of_text(GOOD, BEFORE, **names[0]), of_text(BAD, BEFORE, **names[1]))
        shown = text.render_terminal(both, colour=False, width=200)
        assert shown.splitlines()[0] == "(A) ~good → bad~ (film), (with) ~fine → awful~ (acting)."
        assert "of changed inputs" in shown
        page = text.render_html(both, title="Edited")
        assert ">good → bad</span> <span" in page
        assert "difference of a word, orange above 0, blue below" in page
        assert "more than before" in page

    def test_explainers_and_flips_of_both(self):
        both = difference_of(of_text(GOOD, BEFORE), of_text(GOOD, MORE), names=("old", "new"))
        shown = text.render_terminal(both, colour=False, width=300)
        assert "class 1; explained by of_text.explainer; N = 20 samples" in shown
        assert "more in new than in old" in shown
