"""Noise that changes nothing: a warning, and no decision from one explanation N times; no alarm for other noise."""

import numpy as np
import pytest

import metfa
import metfa.plot
from metfa import DegenerateAttributionsWarning
from metfa.text import LEMNA, LIME, Occlusion, explain_text

ROWS = np.random.default_rng(0).random((3, 6))
NOTHING = r"the noisy copies are all the same for 3 of 3 inputs \(20 copies each\), and so are the maps"


def square(inputs, target):
    return inputs**2


def sloped(inputs, target):
    return inputs**2 + np.linspace(0, 0.05, 6)


def draws(inputs, target, *, rngs=None):
    return inputs + np.stack([rng.random(6) for rng in rngs])


@pytest.mark.parametrize(
    "noise",
    [
        metfa.noise.Gaussian(0.0),
        metfa.noise.Uniform(0.0, bounds=(0, 1)),
        metfa.noise.Brightness(1.0, 1.0),
        lambda x, rng: x + 1e-20 * rng.random(x.shape),
    ],
)
@pytest.mark.parametrize("threshold", [None, 0.1])
def test_all_copies_are_the_input(noise, threshold):
    with pytest.warns(DegenerateAttributionsWarning, match=NOTHING):
        sample = metfa.explain(square, ROWS, 0, noise=noise, n_samples=20, rng=0)
    assert sample.provenance["unmoved"] == list(sample.input_names)
    assert not sample.significance_map(threshold).any()
    assert [one.undecided for one in sample.summary(threshold)] == [1, 1, 1]
    assert sample.decide(sample.terms(threshold)).nothing == ("all samples are the same",) * 3


def test_every_view_says_it_in_one_way(tmp_path):
    with pytest.warns(DegenerateAttributionsWarning, match=NOTHING):
        sample = metfa.explain(square, ROWS, 0, noise=metfa.noise.Gaussian(0.0), n_samples=20, rng=0)
    why = "all samples are the same"
    for threshold in (None, 0.1, ROWS**2 / 2):
        test = sample.test(threshold)
        assert (test.pvalue == 1).all()
        assert not test.sign.any()
    assert np.isnan(sample.decide(sample.terms(0.1)).thresholds).all()
    assert sample.plan(0.05, 0.1).n_samples is None
    with pytest.warns(DegenerateAttributionsWarning, match=r"intervals of width 0 say nothing: all samples .* \(3\)"):
        sample.confidence_interval()
    one = sample.of_input(0)
    lines = dict(one.summary()[0].lines())
    assert lines["intervals"] == f"none: {why}"
    assert lines["nothing is decided"] == why
    assert "contradicted" not in lines
    figure = metfa.plot.bars(one, threshold=0.1)
    shown = [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
    assert any(f"no error bars: {why}" in text for text in shown)
    assert any(f"Nothing is decided: {why}" in text.replace("\n", " ") for text in shown)
    page = one.report(tmp_path / "page.html", threshold=0.1).read_text()
    assert f"Nothing is decided: {why}." in page
    assert '"edges":[]' in page.replace(" ", "")


def test_of_a_batch_only_the_rows_that_the_noise_changes_are_decided():
    rows = np.stack([np.zeros(6), np.full(6, 0.5)])
    noise = metfa.noise.Brightness(0.9, 1.1)
    until = metfa.Until(undecided=0.05, threshold=0.1, first=12, max_samples=200)  # enough for intervals too
    with pytest.warns(DegenerateAttributionsWarning, match="for 1 of 2 inputs"):
        sample = metfa.explain(sloped, rows, 0, noise=noise, n_samples=until, rng=0)
    assert sample.stopping.reason == "reached"
    assert not sample.significance_map()[0].any()
    assert sample.significance_map()[1].all()
    with pytest.warns(DegenerateAttributionsWarning, match=r"\(1\)"):
        assert [one.too_few is None for one in sample.summary()] == [False, True]


def test_a_black_image_under_a_multiplicative_noise():
    images = np.stack([np.zeros((1, 4, 4)), np.full((1, 4, 4), 0.5)])
    noise = metfa.noise.Brightness(0.9, 1.1)
    with pytest.warns(DegenerateAttributionsWarning, match="for 1 of 2 inputs"):
        sample = metfa.explain(lambda x, target: x[:, 0] + np.eye(4), images, 0, noise=noise, n_samples=20, rng=0)
    assert sample.provenance["unmoved"] == [sample.input_names[0]]
    marks = sample.significance_map(0.75)
    assert not marks[0].any()
    assert set(np.unique(marks[1])) == {-1, 1}
    assert not sample.of_input(0).significance_map(0.75).any()
    np.testing.assert_array_equal(sample.of_input(1).significance_map(0.75)[0], marks[1])


def test_own_randomness_is_told_and_decided():
    with pytest.warns(
        DegenerateAttributionsWarning, match="only the explainer's own randomness.* or write `noise=None`"
    ):
        sample = metfa.explain(draws, ROWS, 0, noise=metfa.noise.Gaussian(0.0), n_samples=20, rng=0)
    assert sample.provenance["unmoved"] == []
    assert sample.significance_map(-1.0).all()
    again = metfa.explain(draws, ROWS, 0, noise=None, n_samples=20, rng=0)  # the advice: no warning
    assert again.significance_map(-1.0).all()


def test_noise_that_changes_something_now_and_then_is_no_case():
    def rare(x, rng):
        return x + (rng.random() < 0.2)

    sample = metfa.explain(square, ROWS, 0, noise=rare, n_samples=40, rng=0)
    assert sample.provenance["unmoved"] == []


def test_parts_are_looked_at_one_by_one():
    inputs = {"a": ROWS, "b": ROWS}
    noise = {"a": None, "b": metfa.noise.Gaussian(0.1)}
    sample = metfa.explain(lambda x, target: x["a"], inputs, 0, noise=noise, n_samples=20, rng=0)
    assert sample.provenance["unmoved"] == []  # the copies differ, though this explainer does not look
    with pytest.warns(DegenerateAttributionsWarning, match=NOTHING):
        metfa.explain(lambda x, target: x["a"], inputs, 0, noise={"a": None, "b": None}, n_samples=20, rng=0)


def test_it_is_kept_and_ends_where_other_samples_move(tmp_path):
    def late(x, rng):
        return x + (rng.random() < 0.02)

    with pytest.warns(DegenerateAttributionsWarning, match=NOTHING.replace("20", "5")):
        first = metfa.explain(square, ROWS, 0, noise=late, n_samples=5, rng=0)
    assert metfa.load(first.save(tmp_path / "first")).provenance["unmoved"] == list(first.input_names)
    run = metfa.Run(first_sample=5)
    more = metfa.explain(square, ROWS, 0, noise=late, n_samples=400, rng=0, run=run)
    joined = first.concat(more)
    assert joined.provenance["unmoved"] == more.provenance["unmoved"] == []
    assert joined.significance_map(0.1).any()


class TestTexts:
    text = "the of and with"

    def model(self, texts):
        return np.array([0.3 + 0.4 * ("of" in text.split()) for text in texts])

    def test_no_word_has_a_synonym(self):
        assert not any(metfa.text.SenseSynonyms(0.5).coverage(self.text))
        with pytest.warns(DegenerateAttributionsWarning, match=r"all the same .*`coverage` of `metfa"):
            sample = explain_text(self.model, self.text, method=Occlusion, n_samples=20, rng=0)
        assert not sample.significance_map().any()
        shown = metfa.text.render_terminal(sample, colour=False, width=75)
        assert "Nothing is decided: all samples are the same" in shown

    def test_lime_of_a_short_text_is_not_random(self):
        with pytest.warns(DegenerateAttributionsWarning, match="and so are the maps"):
            sample = explain_text(self.model, self.text, method=LIME, n_samples=20, rng=0)
        assert not sample.significance_map().any()

    @pytest.mark.filterwarnings("ignore:a sum over the words")
    def test_the_randomness_of_lemna_is_told(self):
        def together(texts):
            found = np.array([[word in text.split() for word in self.text.split()] for text in texts], dtype=float)
            return 1 / (1 + np.exp(-found @ [1.0, -2.0, 3.0, 0.5] - found[:, 0] * found[:, 2]))

        with pytest.warns(DegenerateAttributionsWarning, match="only the explainer's own randomness"):
            explain_text(together, self.text, method=lambda m: LEMNA(m, n_perturbations=50), n_samples=6, rng=0)
