"""Sources of answers: the exactness of the test, what is found, what is never said, and bad input."""

import base64
import math
import re
import zlib
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.stats

import metfa
from metfa.report._layers import layers_of
from metfa.text import SourceEffects, explain_answer, render_terminal
from metfa.text.answers._control import Control

LOG2 = math.log(2)
SOURCES = [f"source {number}" for number in range(6)]


def masks_of(rows, sources=SOURCES):
    return np.array([[source in row for source in sources] for row in rows]).reshape(len(rows), len(sources))


def scorer_of(function, noise=0.0, sources=SOURCES):
    """Scores by the choice; noise is a fixed number of each choice, so that every batch size gives the same."""

    def scorer(rows):
        masks = masks_of(rows, sources)
        codes = masks @ (1 << np.arange(len(sources)))
        return function(masks) + noise * np.array([np.random.default_rng(int(code)).normal() for code in codes])

    return scorer


SCORERS = {
    "linear": (lambda m: 3.0 * m[:, 0] + 1.5 * m[:, 1], [1, 1, -1, -1, -1, -1]),
    "or": (lambda m: 4.0 * (m[:, 0] | m[:, 1]), [1, 1, -1, -1, -1, -1]),
    "and": (lambda m: 4.0 * (m[:, 0] & m[:, 1]), [1, 1, -1, -1, -1, -1]),
    "harms": (lambda m: 3.0 * m[:, 0] - 3.0 * m[:, 1], [1, -1, -1, -1, -1, -1]),
}


@pytest.mark.parametrize("name", SCORERS)
def test_the_sources_that_matter_are_found(name):
    function, expected = SCORERS[name]
    sample = explain_answer(scorer_of(function, 0.2), SOURCES, delta=LOG2, n_samples=100, rng=0)
    assert sample.significance_map().tolist() == [expected]
    assert sample.terms().correction == "holm"


def test_draws_by_hand():
    function = SCORERS["linear"][0]
    effects = SourceEffects(scorer_of(function), delta=LOG2, pilot=4, rng=3)
    rng = np.random.default_rng(5)
    (draws,) = effects([SOURCES], rngs=[rng])
    mask = np.random.default_rng(5).random(6) < 0.5
    ((control,),) = effects._controls_of.values()
    for part in range(6):
        with_it, without = mask.copy(), mask.copy()
        with_it[part], without[part] = True, False
        guess = control.scores(np.array([with_it, without])).mean()
        sign = 1 if mask[part] else -1
        assert draws[part] == pytest.approx(2 * sign * (function(mask[None])[0] - guess))


@pytest.mark.parametrize("function", [SCORERS["or"][0], SCORERS["and"][0], lambda m: m.sum(axis=1) * 0.1])
def test_no_more_than_half_of_the_draws_exceed_what_a_source_adds_at_most(function):
    """By enumeration, for each context: the theorem itself, whatever the control is, right or wrong."""
    choices = np.array(list(product([False, True], repeat=6)))
    scores, wrong = function(choices), np.random.default_rng(0)
    fits = [Control.fitted(choices[wrong.permutation(64)[:16]], wrong.normal(size=16) * 5) for _ in range(3)]
    fits.append(Control.fitted(choices, scores))
    for control, part in product(fits, range(6)):
        with_it = choices[choices[:, part]]
        without = with_it.copy()
        without[:, part] = False
        most = float((function(with_it) - function(without)).max())
        for delta in (most + 1e-9, most + 1):
            above = [control.draws(m, function(m), delta)[:, part] > delta for m in (with_it, without)]
            assert not (above[0] & above[1]).any()


@pytest.mark.slow
def test_where_nothing_adds_the_level_is_kept():
    """Cauchy noise and a parity that no control fits: 150 prompts of the attainable level; false alarm below 1e-4."""
    n, level = 30, scipy.stats.binom.sf(19, 30, 0.5)
    rejected = 0
    for prompt in range(150):
        rng = np.random.default_rng(prompt)

        def scorer(rows, rng=rng):
            return masks_of(rows)[:, 1:4].sum(axis=1) % 2 * 5.0 + rng.standard_cauchy(len(rows))

        effects = SourceEffects(scorer, delta=1e-9, pilot=8, rng=prompt)
        draws = effects([SOURCES] * n, rngs=rng.spawn(n))
        rejected += (draws[:, 0] > 1e-9).sum() >= 20
    assert rejected <= scipy.stats.binom.isf(1e-4, 150, level)


@pytest.mark.parametrize("copies", [2, 3, 4])
def test_a_fact_that_is_given_several_times_is_found_as_a_group_and_never_called_unimportant(copies):
    scorer = scorer_of(lambda m: 5.0 * m[:, :copies].any(axis=1), 0.2)
    group = {"fact": list(range(copies))}
    found = explain_answer(scorer, SOURCES, delta=LOG2, groups=group, n_samples=40, rng=0)
    assert found.feature_names[0] == "fact"
    assert found.significance_map()[0].tolist() == [1, *[-1] * (6 - copies)]
    alone = explain_answer(scorer, SOURCES, delta=LOG2, n_samples=60, rng=0)
    until = explain_answer(scorer, SOURCES, delta=LOG2, n_samples=metfa.Until(undecided=0.1, max_samples=80), rng=0)
    for sample in (found, alone, until):
        said = f"{sample.summary()[0]} {render_terminal(sample, colour=False)}"
        said += sample.decide(sample.terms()).question("source") + str(
            sample.guarantee(np.ones(sample.n_features, bool))
        )
        assert "important" not in said
        assert "adds less than 0.693 in some context" in said


def test_all_of_three_are_found_together():
    scorer = scorer_of(lambda m: 6.0 * m[:, :3].all(axis=1), 0.2)
    sample = explain_answer(scorer, SOURCES, delta=LOG2, groups={"chain": [0, 1, 2]}, n_samples=40, rng=0)
    assert sample.significance_map()[0].tolist() == [1, -1, -1, -1]


def test_every_batch_size_gives_the_same_numbers():
    scorer = scorer_of(SCORERS["or"][0], 0.5)
    explained = [
        metfa.explain(
            SourceEffects(scorer, delta=LOG2), [SOURCES, SOURCES[::-1]], noise=None, n_samples=9, rng=0, batch_size=size
        )
        for size in (1, 4, 20)
    ]
    for sample in explained[1:]:
        np.testing.assert_array_equal(sample.values, explained[0].values)
    answers = [explain_answer(scorer, SOURCES, delta=LOG2, n_samples=9, rng=0, batch_size=size) for size in (1, 7)]
    np.testing.assert_array_equal(answers[0].values, answers[1].values)


def test_several_answers_share_their_prompts():
    asked = []

    def scorer(rows):
        asked.extend(rows)
        masks = masks_of(rows)
        return np.stack([4.0 * masks[:, 0], 4.0 * masks[:, 1]], axis=1)

    sample = explain_answer(scorer, SOURCES, delta=LOG2, n_samples=20, rng=0)
    assert sample.significance_map().tolist() == [[1, -1, -1, -1, -1, -1], [-1, 1, -1, -1, -1, -1]]
    assert sample.target == (0, 1)
    assert len(asked) == sample.provenance["prompts"]["scored"] == 20 + 24 + 3
    assert sample.provenance["prompts"]["planned"] == 48
    said = str(sample.summary()[1])
    assert "47 in this call, 48 planned at most" in said
    assert re.search(r"^explained: +answer 1$", said, re.MULTILINE)
    assert re.search(r"^whole prompt: +score 4 of answer 0, 4 of answer 1$", said, re.MULTILINE)
    assert "class" not in said
    assert render_terminal(sample.of_input(1), colour=False).startswith("answer 1 [1]\n")
    plain = replace(sample, provenance={name: sample.provenance[name] for name in ("notes", "prompts")})
    with pytest.raises(ValueError, match=r"write `sample.of_input\(0\)`"):  # as results from before had no texts
        render_terminal(plain, colour=False)
    one = explain_answer(lambda rows: scorer(rows)[:, 1], SOURCES, delta=LOG2, n_samples=20, rng=0)
    np.testing.assert_array_equal(one.values[:, 0], sample.values[:, 1])


def test_until_enough_is_decided_and_saved(tmp_path):
    rule = metfa.Until(undecided=0.2, max_samples=200)
    sample = explain_answer(scorer_of(SCORERS["linear"][0], 0.2), SOURCES, delta=LOG2, n_samples=rule, rng=0)
    assert sample.stopping.reason == "reached"
    assert sample.terms().threshold == LOG2
    found = metfa.load(sample.save(tmp_path / "answer"))
    assert found.terms() == sample.terms()
    np.testing.assert_array_equal(found.significance_map(), sample.significance_map())
    assert str(found.summary()[0]) == str(sample.summary()[0])


def test_what_a_service_has_answered_is_kept(tmp_path):
    asked, fails = [], {"after": 3}
    right = scorer_of(SCORERS["linear"][0])

    def service(rows):
        if len(asked) >= fails["after"]:
            raise ConnectionError("no answer")
        asked.append(len(rows))
        return right(rows)

    settings = {"delta": LOG2, "n_samples": 20, "batch_size": 5, "run": metfa.Run(store=tmp_path / "answers")}
    for fails["after"] in (3, 8):  # in the pilot, and in the samples
        with pytest.raises(ConnectionError):
            explain_answer(service, SOURCES, **settings)
        with pytest.raises(ValueError, match="holds an unfinished run: to resume it, repeat the call"):
            metfa.load(tmp_path / "answers")
    fails["after"] = 100
    sample = explain_answer(service, SOURCES, **settings)
    loaded = metfa.load(tmp_path / "answers")
    np.testing.assert_array_equal(loaded.values, sample.values)
    assert str(loaded.summary()[0]) == str(sample.summary()[0])
    assert render_terminal(loaded, colour=False) == render_terminal(sample, colour=False)
    assert sum(asked) <= 1 + 24 + 20 + 3 * 8
    assert sample.significance_map().tolist() == [[1, 1, -1, -1, -1, -1]]
    again = explain_answer(service, SOURCES, **settings)
    np.testing.assert_array_equal(again.values, sample.values)
    with pytest.raises(ValueError, match="holds answers to other sources"):
        explain_answer(service, SOURCES[:4], **settings)
    (tmp_path / "answers" / "learned.json").write_text('{"rng": "0x1", "scores": [[1], "a"], "whole": 1}')
    with pytest.raises(ValueError, match=r"learned\.json is damaged"):
        explain_answer(service, SOURCES, **settings)


@pytest.mark.slow
def test_the_page_says_what_the_marks_mean(tmp_path):
    scorer = scorer_of(lambda m: 5.0 * m[:, :3].any(axis=1), 0.2)
    sample = explain_answer(scorer, SOURCES, delta=LOG2, groups={"fact": [0, 1, 2]}, n_samples=40, rng=0)
    page = sample.report(tmp_path / "page.html").read_text(encoding="utf-8")
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert "unimportant" not in shown
    assert "marked “adds more than 0.693 in some context”" in shown
    assert "does not say that it does not matter, as another source may say the same" in shown
    assert '"calledAt": 0.693' in page or '"calledAt":0.693' in page


def test_differences_sums_and_pairs_have_no_such_meaning():
    sample = explain_answer(scorer_of(SCORERS["or"][0]), SOURCES, delta=LOG2, n_samples=20, rng=0)
    for ask in (lambda: sample.over(np.array([0, 0, 1, 1, 1, 1])), sample.pairwise):
        with pytest.raises(ValueError, match=r"meaning of their own.*SourceEffects\(groups="):
            ask()


ONE = scorer_of(SCORERS["or"][0])


@pytest.mark.parametrize(
    ("scorer", "settings", "match"),
    [
        (ONE, {"delta": None}, "`delta` must be given"),
        (ONE, {"delta": 0}, "`delta` must be above 0, got 0: removing any text"),
        (ONE, {"delta": -1.0}, "`delta` must be above 0, got -1"),
        (ONE, {"delta": "1"}, "`delta` must be a number"),
        (ONE, {"pilot": 1}, "`pilot` must be"),
        ("gpt2", {}, "`scorer` must be a function"),
        (ONE, {"sources": []}, "`sources` is empty"),
        (ONE, {"sources": "one text"}, "cut the prompt into parts"),
        (ONE, {"sources": ["a", "  "]}, "source 1 is empty"),
        (ONE, {"sources": ["a", 3]}, "`sources` must be a list of texts"),
        (ONE, {"groups": {"a": [0, 9]}}, "`groups` must be"),
        (ONE, {"groups": {"a": [0, 1], "b": [1]}}, "source 1 is in 'a' and 'b'"),
        (ONE, {"groups": {"a": ["nowhere"]}}, "no source named 'nowhere'"),
        (ONE, {"groups": [[0, 1]]}, "`groups` must be a dict"),
        (ONE, {"groups": {"a": []}}, "`groups`: 'a' holds no source: leave the group out"),
        (ONE, {"groups": {"a": 1}}, "`groups`: 'a' must be a list of sources such as .*, got int: 1"),
        (ONE, {"groups": {1: [0]}}, "the name of a group must be a text such as 'weather', got int: 1"),
        (ONE, {"groups": {"0: source 0": [1]}}, "'0: source 0' is the name of a source: give the group another name"),
        (ONE, {"sources": {"p": "A", "r": "C"}, "groups": {"r": ["p"]}}, "'r' is the name of a source"),
        (ONE, {"sources": {"p": "A", "r": "C"}, "groups": {"r": ["p", "r"]}}, "'r' is the name of a source"),
        (ONE, {"sources": {1: "A"}}, r"the name of a source must be a text, got int: 1: write str\(1\)"),
        (ONE, {"sources": {"a": 1}}, "source 'a' must be a text, got int: 1"),
        (lambda rows: ["yes"] * len(rows), {}, "must return numbers, .*, got texts such as 'yes'"),
        (lambda rows: {"scores": [1.0]}, {}, "must return numbers, .*, got dict"),
        (lambda rows: [[1.0], [1.0, 2.0]], {}, "must return numbers, .*, got list"),
        (ONE, {"n_samples": metfa.Until(undecided=0.1, threshold=1.0)}, "the threshold of the rule is `delta`"),
        (lambda rows: np.full(len(rows), np.nan), {}, "returned nan for prompt 0 of 1, which keeps 6 sources"),
        (lambda rows: [-np.inf] * len(rows), {}, "a score must be finite"),
        (lambda rows: [1e300] * len(rows), {}, "must be finite and at most 1e\\+100"),
        (
            ONE,
            {"sources": {"p": "A", "r": "C \ud800"}},
            r"source 'r' is no text in Unicode \('\\ud800'\): read",
        ),
        (ONE, {"sources": {"p\ud800": "A"}}, r"is no text in Unicode \('\\ud800'\)"),
        (ONE, {"sources": np.array(["A", "C"])}, r"got ndarray: .*: write `list\(sources\)`"),
        (lambda rows: np.zeros(len(rows) + 1), {}, r"for each answer, .*, got shape \(2,\) for 1 prompt$"),
        (lambda rows: np.zeros((len(rows), 2, 2)), {}, "one score a prompt, or one for each answer"),
        (lambda rows: np.zeros((len(rows), 1 + (len(rows) > 1))), {}, "scores a prompt"),
    ],
)
def test_bad_input(scorer, settings, match):
    given = {"sources": SOURCES, "delta": LOG2, "n_samples": 10, "rng": 0, **settings}
    with pytest.raises((TypeError, ValueError), match=match):
        explain_answer(scorer, **given)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"n_samples": 0}, "`n_samples` must be"),
        ({"n_samples": "many"}, "`n_samples` must be"),
        ({"n_samples": metfa.Until(undecided=0.1, max_samples=3)}, "can decide nothing: at least"),
        ({"n_samples": metfa.Until(width=0.5)}, r"`width` of Until is about medians, .*: write metfa.Until\(undecided"),
        ({"n_samples": metfa.Until(undecided=0.2, change=0.5)}, "`change` of Until is about medians"),
        ({"batch_size": 0}, "`batch_size` must be"),
        ({"run": metfa.Run(feature_names=["a"])}, "takes only store"),
    ],
)
def test_nothing_is_paid_for_before_the_arguments_are_right(settings, match):
    def scorer(rows):
        raise AssertionError("asked")

    with pytest.raises((TypeError, ValueError), match=match):
        explain_answer(scorer, SOURCES, **{"delta": LOG2, "rng": 0, **settings})


def test_bad_input_of_the_explainer():
    effects = SourceEffects(ONE, delta=LOG2)
    for inputs, match in (
        ("text", "list of lists of sources"),
        (["text"], "as prompt 0"),
        ([[]], "it has no sources"),
        ([["a"], ["a", "b"]], "equally many sources"),
    ):
        with pytest.raises((TypeError, ValueError), match=match):
            effects(inputs)
    two = SourceEffects(lambda rows: np.zeros((len(rows), 2)), delta=LOG2)
    with pytest.raises(ValueError, match="which of the 2 answers"):
        two([SOURCES])


def test_rounds_ask_no_prompt_twice():
    asked = []

    def scorer(rows):
        asked.extend(rows)
        return scorer_of(SCORERS["or"][0], 0.3)(rows)

    rule = metfa.Until(undecided=0.0, max_samples=60)
    sample = explain_answer(scorer, SOURCES, delta=LOG2, n_samples=rule, batch_size=60, rng=0)
    assert len(asked) <= sample.provenance["prompts"]["planned"] == 60 + 24 + 4


@pytest.mark.parametrize("sources", [["b", "c"], ["b"], ["A"]])
def test_a_scorer_that_repeats_itself_pays_no_more_than_planned(sources):
    sample = explain_answer(lambda rows: [int("A" in kept) for kept in rows], sources, delta=0.5, n_samples=10, rng=0)
    assert sample.provenance["prompts"] == {"scored": 37, "planned": 38}  # whole numbers are scores too, as lists are


@pytest.mark.parametrize("own", [True, False])
def test_the_noise_of_a_scorer_belongs_to_its_samples(own):
    """Of a generator of its own, or of the global one: no advice for explainers, and no more prompts than planned."""
    draws = np.random.default_rng(0).normal if own else np.random.normal
    with pytest.warns(metfa.ReproducibilityWarning, match="noise is a part of the samples") as warned:
        sample = explain_answer(lambda rows: draws(size=len(rows)), ["A"], delta=LOG2, n_samples=10, rng=0)
    assert not [one for one in warned if "randomised" in str(one.message) or "seeded" in str(one.message)]
    assert sample.provenance["prompts"]["scored"] <= sample.provenance["prompts"]["planned"] == 38
    assert np.unique(sample.values).size == 10


@pytest.fixture(scope="module")
def copies():
    """A fact that two of two sources hold: no noise, means that differ from trimmed means."""
    return explain_answer(
        lambda rows: [-3 + 5.0 * ("A" in " ".join(kept)) for kept in rows],
        ["A here", "A there"],
        delta=LOG2,
        n_samples=60,
        rng=0,
    )


def test_every_view_shows_the_mean_contribution_of_a_source(copies, tmp_path):
    mean, interval = copies.mean()[0], copies.mean_interval()
    assert not np.allclose(mean, copies.smoothed(0.95)[0])
    shown = f"{mean[0]:.2f} [{interval.low[0, 0]:.2f}, {interval.high[0, 0]:.2f}]"
    assert f"0: A here   {shown}" in render_terminal(copies, colour=False)
    layers = layers_of(copies, 0.95, np.asarray)
    assert set(layers["maps"]) == {"mean", "lower", "upper"}
    assert layers["level"] == 0.95
    held = np.frombuffer(zlib.decompress(base64.b64decode(layers["maps"]["lower"])), "<f8")
    np.testing.assert_array_equal(held, interval.low[0])
    width = (interval.high - interval.low).mean()
    assert f"of the mean contribution, 95.00%, asymptotic; mean width {width:.3g}" in str(copies.summary()[0])
    page = copies.report(tmp_path / "page.html").read_text(encoding="utf-8")
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    wrong = r"under (this )?noise|smoothed|(\d|A|every|the) (word|feature)s?\b|median (significantly )?above"
    for said in (shown, str(copies.summary()[0]), render_terminal(copies, colour=False, width=999)):
        assert not re.search(wrong, said.replace("each side of each feature", ""))
        assert "source" in said
    assert "does not say that the answer is right" in shown


def test_without_a_correction_and_at_another_threshold_nothing_is_said_of_medians(copies):
    alone = str(copies.summary(correction="none")[0])
    assert "each source is called" in alone
    assert "falsely with probability at most 5%" in alone
    assert "do more draws of a source lie above, or below, 0.5 than" in copies.decide(copies.terms(0.5)).question(
        copies.noun
    )
    assert "median" not in str(copies.guarantee(np.array([True, True])))


def test_a_constant_draw_is_no_fault(copies, recwarn):
    assert (np.ptp(copies.values[:, 0], axis=1) == 0).any()
    explain_answer(ONE, SOURCES[:1], delta=LOG2, n_samples=10, rng=0)
    assert not recwarn.list


def test_a_rule_looks_at_each_answer_by_itself():
    """The first answer is decided at once, the second never: what sampling says of its end is what the marks show."""

    def scorer(rows):
        return np.array([[4.0 * len(row), 1.0 * len(row)] for row in rows])

    rule = metfa.Until(undecided=0.5, max_samples=60)
    found = metfa.text.explain_answer(scorer, [f"s{k}" for k in range(6)], delta=1.0, n_samples=rule, rng=0)
    undecided = (found.significance_map() == 0).mean(axis=1)
    assert undecided.tolist() == [0, 1]
    assert found.stopping.reason == "max_samples"
    assert found.stopping.looks[-1].undecided == 1
    assert "the worst of 2 inputs" in str(found.stopping)
