"""The views of an answer: its text, the texts of its sources, and what is never said."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import metfa
from metfa.text import explain_answer, render_html, render_terminal
from metfa.text.answers.answered import Answered, is_answer
from metfa.text.answers.findings import Findings

LOG2 = math.log(2)
TEXT = " It opened in 1932. It is in Sydney. <script>alert(1)</script> \x1b[31m\u202eend"
SPANS = ((0, 19), (19, 36), (36, 62))
SOURCES = {
    "chronicle": "The bridge was opened in 1932.",
    "recipe": "Whisk <b>two</b> eggs. " * 30,
    "plaque": "OPENED 1932",
    "map": "Sydney lies \x1b[31mon the coast.",
    "<img src=x>": "It rained.",
}


class Scorer:
    """As `AnswerScorer` with spans: it knows the year from two sources, and the place from one."""

    answers, spans, about = (TEXT,), SPANS, "logit"
    names = tuple(TEXT[start:stop] for start, stop in SPANS)

    def __call__(self, rows):
        texts = [" ".join(row) for row in rows]
        return np.array([[5.0 * ("1932" in t), 2.0 * ("Sydney" in t), 0.1 * len(t) / 100] for t in texts])


@pytest.fixture(scope="module")
def found():
    year = {"the year": ["chronicle", "plaque"]}
    return explain_answer(Scorer(), SOURCES, delta=LOG2, groups=year, n_samples=40, rng=0)


def test_the_pieces_are_the_text_and_each_span_is_the_input_of_its_score(found):
    answered = Answered.of(found)
    assert answered.one_text
    assert answered.noun == "sentence"
    assert [k for _, k in answered.pieces] == [0, 1, 2, None]
    assert "".join(text for text, _ in answered.pieces) == TEXT.replace("\x1b", "\ufffd").replace("\u202e", "")
    second = Answered.of(found.of_input(1))
    assert [(text, k) for text, k in second.pieces if k is not None] == [(" It is in Sydney.", 0)]
    assert [source.name for source in answered.sources] == ["the year", "recipe", "map", "<img src=x>"]
    assert [name for name, _ in answered.sources[0].members] == ["chronicle", "plaque"]


def test_answers_without_an_order_stand_one_after_the_other(found):
    crossed = replace(found, provenance=changed(found, spans=[[0, 19], [10, 36], [36, 60]]))
    assert not Answered.of(crossed).one_text
    assert [k for _, k in Answered.of(crossed).pieces] == [0, 1, 2]


def changed(sample, **facts):
    return {**sample.provenance, "answer": {**sample.provenance["answer"], **facts}}


@pytest.mark.parametrize(
    "facts", [{"parts": [[0]]}, {"parts": 3}, {"groups": None}, {"parts": [[9], [1], [3], [4]]}, {"answers": ["one"]}]
)
def test_what_somebody_wrote_into_a_file_is_no_answer_if_it_does_not_fit(found, facts):
    assert not is_answer(replace(found, provenance=changed(found, **facts)))
    assert not is_answer(replace(found, provenance={}))


def test_every_view_says_the_same_after_it_was_saved(found, tmp_path):
    loaded = metfa.load(found.save(tmp_path / "saved"))
    assert render_terminal(loaded, colour=False, width=100) == render_terminal(found, colour=False, width=100)
    assert loaded._repr_html_() == found._repr_html_()


def test_the_terminal_lists_the_sources_of_each_sentence_with_error_bars(found):
    shown = render_terminal(found, colour=False, width=100)
    mean, ends = found.mean()[0], found.mean_interval()
    first, *rows = shown.splitlines()[:5]
    assert first == "It opened in 1932. [the year]"
    assert rows[0].startswith(f"  the year     {mean[0]:.2f} [{ends.low[0, 0]:.2f}, {ends.high[0, 0]:.2f}]")
    assert rows[0].endswith("more")
    assert all(row.endswith("less") for row in rows[1:])
    assert all("●" in row and "│" in row for row in rows)
    assert "the year: kept or dropped together: chronicle, plaque" in shown
    assert "[none is found]" in shown
    narrow = render_terminal(found, colour=False, width=50)
    assert "●" not in narrow.split("kept or dropped")[0]
    assert max(map(len, narrow.splitlines())) <= 50
    assert "\x1b[1;4mmore\x1b[0m" in render_terminal(found, colour=True, width=100)


@pytest.mark.parametrize("view", [lambda s: render_terminal(s, colour=False), render_html, lambda s: s._repr_html_()])
def test_hostile_texts_are_harmless_and_less_is_never_called_unimportant(found, view):
    shown = view(found)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "important" not in shown
    assert "adds less than 0.693 in some context" in " ".join(shown.split())
    assert "does not say that it does not matter" in " ".join(shown.split())
    if "<div" in shown:
        tags = set(re.findall(r"<(\w+)", shown))
        plain = "div details summary bdi small span table tr th td br b pre"
        assert tags <= {*plain.split(), "svg", "path", "circle", "rect"}
        assert "&lt;script&gt;" in shown
        assert shown.count("<b>") == 6  # the names of those in a group, in each sentence
        assert shown.count("<details name=") == 3


def test_marks_have_a_shape_of_their_own_and_numbers_stand_beside_them(found):
    shown = render_html(found.of_input(0), title="<why>")
    assert shown.count("<circle") == 1
    assert shown.count("<rect x=") == 3
    assert "&lt;why&gt;" in shown
    few = explain_answer(Scorer(), SOURCES, delta=LOG2, n_samples=3, rng=0)
    assert "no source can be marked" in render_html(few)
    assert "no source can be marked" in render_terminal(few, colour=False)


def test_a_function_may_be_given_the_texts_of_its_answers():
    def scorer(rows):
        return np.array([[3.0 * ("Paris" in " ".join(row)), 0.0] for row in rows])

    sources = ["Paris is the capital.", "It rained."]
    said = ["Paris", "Rome"]
    sample = explain_answer(scorer, sources, delta=LOG2, answers=said, n_samples=12, rng=0)
    assert render_terminal(sample, colour=False).startswith("Paris [0]\n  0: Paris is the capital.  3")
    assert "answer 1: Rome" in str(sample.summary()[0])
    with pytest.raises(ValueError, match="`answers` must be one text for each of the 2 scores, got 1"):
        explain_answer(scorer, sources, delta=LOG2, answers="Paris", n_samples=12, rng=0)
    with pytest.raises(TypeError, match="`answers`"):
        explain_answer(scorer, sources, delta=LOG2, answers=[3, 4], n_samples=12, rng=0)


def test_thresholds_of_each_source_are_refused(found):
    with pytest.raises(ValueError, match="one number for each answer"):
        Findings.of(found, found.terms(np.ones((3, 4))), 0.95)
