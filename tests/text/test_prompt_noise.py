"""Noise on prompts: the order of sources, templates, vectors; the law in words, and the share of changed orders."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import metfa
from metfa.results.cautions import cautions
from metfa.text import AnswerScorer, PromptNoise, SourceEffects, explain_answer

from .language_models import ROWS, SETTINGS, WORDS, tiny_model, tiny_tokenizer


@pytest.fixture(scope="module")
def scorer():
    return AnswerScorer(
        tiny_model("llama"), tiny_tokenizer(), answers=["so", "because it is"], score="logprob", **SETTINGS
    )


def rngs(n, seed=0):
    return [np.random.default_rng((seed, k)) for k in range(n)]


class TestOrder:
    def test_every_order_of_the_kept_sources_comes_as_often(self):
        seen = []

        def score(rows):
            seen.extend(map(tuple, rows))
            return np.zeros(len(rows))

        PromptNoise(score, order=True)([["a", "b", "c"]] * 600, rngs=rngs(600))
        _, counts = np.unique(["".join(row) for row in seen], return_counts=True)
        assert len(counts) == 6
        assert counts.min() > 60  # 100 on average
        seen.clear()
        PromptNoise(score, order=True)([["a", "b", "c"]] * 3)  # clean
        assert seen == [("a", "b", "c")] * 3

    def test_a_source_is_explained_wherever_it_stands(self):
        """Only the first place counts, so each of two facts adds 3 in some order; its mean contribution is half."""

        def score(rows):
            return np.array([3.0 * ("fact" in row[0]) if row else 0.0 for row in rows])

        noisy = PromptNoise(score, order=True)
        sources = {"a": "a fact", "b": "rain"}
        found = explain_answer(noisy, sources, delta=np.log(2), n_samples=400, rng=0)
        assert found.mean()[0] == pytest.approx([3 * 0.75, -0.75], abs=0.3)
        assert found.significance_map()[0].tolist() == [1, -1]
        said = str(found.summary()[0])
        assert "adds more than 0.693 in some context and order" in said
        assert "adds at most 0.693 in every context and order" in said
        assert "an order of the sources drawn anew for each prompt; every statement is under this law" in said
        assert "score of the whole prompt 0 to 3 in 20 noisy prompts" in said
        plain = explain_answer(score, sources, delta=np.log(2), n_samples=400, rng=0)
        assert plain.mean()[0] == pytest.approx([3, 0], abs=0.3)

    def test_marks_stay_exact_under_the_null(self):
        """No source adds more than δ in any context and order: the share of false marks is at most alpha."""

        def score(rows):  # what stands first moves the score by .3 either way
            return np.array([0.3 * (row[0] < row[-1]) if row else 0.0 for row in rows])

        false = 0
        for seed in range(20):
            effects = SourceEffects(PromptNoise(score, order=True), delta=0.6, pilot=4, rng=seed)
            sample = metfa.explain(effects, [["a", "b", "c"]], noise=None, n_samples=12, rng=seed)
            false += bool((sample.significance_map() == 1).any())
        assert false <= 4  # more with probability .003 at 5 %


class TestTemplates:
    def test_each_is_taken_as_often_and_gives_its_own_score(self, scorer):
        other = "why is it so {question} {sources}"
        noisy = PromptNoise(scorer, templates=[other])
        own = scorer(ROWS[:1])[0]
        moved = AnswerScorer(
            scorer.model, scorer.tokenizer, answers=scorer.answers, score="logprob", **{**SETTINGS, "template": other}
        )(ROWS[:1])[0]
        assert abs(own - moved).min() > 1e-2
        found = noisy([ROWS[0]] * 40, rngs=rngs(40))
        is_own = np.isclose(found, own, rtol=1e-4).all(axis=1)
        assert (is_own | np.isclose(found, moved, rtol=1e-4).all(axis=1)).all()
        assert 8 < is_own.sum() < 32
        np.testing.assert_array_equal(noisy(ROWS), scorer(ROWS))
        assert (noisy.law, noisy.varied) == ("one of 2 templates", ("template",))


class TestVectors:
    def test_the_size_of_the_noise_and_where_there_is_none(self, scorer, monkeypatch):
        seen = []
        given = scorer.network.get_input_embeddings()
        plain = type(scorer.network).forward

        def spy(self, **arguments):
            seen.append(arguments["inputs_embeds"][0].double())
            return plain(self, **arguments)

        monkeypatch.setattr(type(scorer.network), "forward", spy)
        PromptNoise(scorer, embeddings=0.5)([ROWS[0]] * 30, rngs=rngs(30))
        ids = scorer.prompt(ROWS[0])
        clean = given(torch.tensor(ids)).detach().double()
        draws = torch.stack([vectors[: len(ids)] - clean for vectors in seen[::2]])
        assert (draws[:, 0] == 0).all()  # <bos>
        answer = given(torch.tensor([WORDS.index("because"), WORDS.index("it")])).detach().double()
        assert (seen[1][len(ids) :] == answer).all()
        assert (seen[0][: len(ids)] == seen[1][: len(ids)]).all()  # both answers behind the same noisy prompt
        table = given.weight.detach().double()[2:]  # without <bos> and <eos>
        spread = (table - table.mean(0)).square().mean().sqrt()
        assert float(draws[:, 1:].std()) == pytest.approx(0.5 * float(spread), rel=0.03)
        assert torch.corrcoef(draws[:, 1:3].flatten(2).transpose(0, 1).flatten(1))[0, 1].abs() < 0.15

    def test_without_noise_on_them_the_vectors_give_the_score(self, scorer):
        tiny = PromptNoise(scorer, embeddings=1e-9)(ROWS, rngs=rngs(len(ROWS)))
        np.testing.assert_allclose(tiny, scorer(ROWS), rtol=1e-4)
        assert abs(PromptNoise(scorer, embeddings=1.0)(ROWS, rngs=rngs(len(ROWS))) - scorer(ROWS)).max() > 0.1


def test_a_change_of_the_answers_order_is_said_in_every_view():
    def score(rows):  # of two answers, of which the first is likelier where "a" stands first
        return np.array([[1.0 * (row[:1] == ["a"]), 0.5] for row in rows])

    noisy = PromptNoise(score, order=True)
    settings = {"delta": 0.4, "n_samples": 10, "pilot": 4, "rng": 0}
    found = explain_answer(noisy, ["a", "b", "c"], **settings)
    facts = found.provenance["noisy_prompts"]
    assert facts["what"] == "the order of the answers"
    assert facts["prompts"] == 20
    assert 0.3 < facts["changed"] < 0.95  # 2/3
    (said,) = cautions(found, 1)
    assert said == f"The noise changed the order of the answers in {facts['changed']:.0%} of 20 noisy prompts"
    assert said in metfa.text.render_terminal(found.of_input(0), colour=False, width=200)
    assert said in str(found.summary()[1])
    assert found.summary()[1].place == "input 1 of 2 (answer 1)"
    assert str(found.summary()[1]).count(noisy.law) == 1
    assert cautions(found, 0, flips_from=1.0) == []
    assert found.provenance["prompts"]["planned"] == 10 + 4 + 20 + 4
    assert found.provenance["prompts"]["scored"] <= found.provenance["prompts"]["planned"]
    again = explain_answer(noisy, ["a", "b", "c"], batch_size=3, **settings)
    np.testing.assert_allclose(again.values, found.values)
    for wrong in ("much", True, None, {"what": "x"}, {"what": 3, "changed": "all"}):  # as anybody may write into a file
        provenance = {**found.provenance, "noisy_prompts": wrong}
        assert cautions(replace(found, provenance=provenance), 0) == []


def test_a_contrast_that_turns(scorer):
    contrast = AnswerScorer(scorer.model, scorer.tokenizer, answers="so", contrast="because", **SETTINGS)
    found = explain_answer(PromptNoise(contrast, embeddings=3.0), ["a b .", "c ."], n_samples=8, pilot=4, rng=0)
    assert found.provenance["noisy_prompts"]["what"] == "which is likelier, the answer or its contrast"
    assert 0 <= found.provenance["noisy_prompts"]["changed"] <= 1


def test_a_service_that_fails_between_is_not_asked_again(tmp_path):
    asked = []

    def score(rows):
        if len(asked) == 3:
            asked.append(None)
            raise ConnectionError("out of money")
        asked.append(len(rows))
        return np.array([float("b" in row) for row in rows])

    settings = {"delta": 0.5, "n_samples": 8, "pilot": 4, "batch_size": 8, "run": metfa.Run(store=tmp_path / "kept")}
    noisy = PromptNoise(score, order=True)
    with pytest.raises(ConnectionError):
        explain_answer(noisy, ["a", "b"], rng=0, **settings)
    explain_answer(noisy, ["a", "b"], **settings)
    assert asked[:4] == [1, 8, 8, None]
    assert asked[4] == 4  # the rest of the 20 noisy prompts


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({}, ValueError, "no noise is asked for"),
        ({"order": 1}, TypeError, "`order` must be True or False"),
        ({"embeddings": -1}, ValueError, "`embeddings` must be"),
        (
            {"templates": "{sources}"},
            TypeError,
            r"`templates` must be a list of templates, got str.*write `\[template\]`",
        ),
        ({"templates": ["no place"]}, ValueError, "must hold {sources} once"),
        ({"scorer": len, "templates": ["{sources}"]}, ValueError, "`templates` need a metfa.text.AnswerScorer"),
        ({"scorer": len, "embeddings": 0.1}, ValueError, "only `order=True` is possible"),
        ({"scorer": 3, "order": True}, TypeError, "`scorer` must be a metfa.text.AnswerScorer or a function"),
    ],
)
def test_bad_arguments(scorer, settings, error, match):
    with pytest.raises(error, match=match):
        PromptNoise(**{"scorer": scorer, **settings})
