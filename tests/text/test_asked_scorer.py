"""Prompts of deterministic scorers are paid for once; a scorer that is none is found out."""

import numpy as np
import pytest

import metfa
from metfa.text import AnswerScorer, PromptNoise, SourceEffects, explain_answer

from .language_models import SETTINGS, tiny_model, tiny_tokenizer

SOURCES = ["a", "b", "c"]  # 8 prompts


class Paid:
    """Scores prompts, and keeps what it was asked."""

    money = 10**6  # prompts

    def __init__(self, noise=0.0):
        self.rng, self.noise, self.asked = np.random.default_rng(0), noise, []

    def __call__(self, rows):
        if len(self.asked) >= self.money:
            raise ConnectionError("out of money")
        self.asked += map(tuple, rows)
        return np.array([2.0 * ("b" in row) for row in rows]) + self.noise * self.rng.normal(size=len(rows))


def test_no_prompt_is_paid_for_twice_but_one():
    often, once = Paid(), Paid()
    settings = {"delta": 0.5, "n_samples": 60, "rng": 0}
    plain = explain_answer(often, SOURCES, **settings)
    found = explain_answer(once, SOURCES, deterministic=True, **settings)
    np.testing.assert_array_equal(found.values, plain.values)
    assert len(often.asked) > 80
    assert len(once.asked) == 9  # one was asked for again
    assert len(set(once.asked)) == 8
    assert found.provenance["prompts"]["scored"] == 9
    assert found.provenance["explainer"] == plain.provenance["explainer"]


def test_an_answer_scorer_says_so_itself():
    scorer = AnswerScorer(tiny_model("llama"), tiny_tokenizer(), answers="so", **SETTINGS)
    assert SourceEffects(scorer).deterministic
    assert not SourceEffects(scorer, deterministic=False).deterministic
    assert not SourceEffects(PromptNoise(scorer, order=True)).deterministic
    assert not SourceEffects(Paid(), delta=1).deterministic
    found = explain_answer(scorer, ["the sky is blue .", "a b c ."], n_samples=30, rng=0)
    assert found.provenance["prompts"]["scored"] == 4
    often = explain_answer(scorer, ["the sky is blue .", "a b c ."], n_samples=30, deterministic=False, rng=0)
    assert often.provenance["batch_size"] == 10  # passes of other sizes round otherwise, which is no dependence
    np.testing.assert_allclose(found.values, often.values, rtol=1e-4, atol=1e-5)


def test_a_noisy_scorer_that_is_declared_deterministic_is_found_out():
    with pytest.raises(ValueError, match=r"is declared deterministic, and gave a prompt with \d sources"):
        explain_answer(Paid(noise=0.1), SOURCES, delta=0.5, deterministic=True, rng=0)
    with pytest.raises(ValueError, match="and `scorer` takes `rngs`, so that its prompts are noisy"):
        SourceEffects(PromptNoise(Paid(), order=True), delta=1, deterministic=True)
    with pytest.raises(TypeError, match="`deterministic` must be True or False"):
        SourceEffects(Paid(), delta=1, deterministic="yes")


def test_what_was_paid_for_is_kept(tmp_path):
    poor, run = Paid(), metfa.Run(store=tmp_path / "kept")
    poor.money = 6
    settings = {"delta": 0.5, "n_samples": 20, "pilot": 4, "batch_size": 2, "rng": 0, "run": run}
    with pytest.raises(ConnectionError):
        explain_answer(poor, SOURCES, **settings)
    rest = Paid()
    found = explain_answer(rest, SOURCES, **settings)
    whole = explain_answer(Paid(), SOURCES, **{**settings, "run": None})
    np.testing.assert_array_equal(found.values, whole.values)
    assert len(rest.asked) < 20 + 4 + 4
