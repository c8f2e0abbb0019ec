"""Scores of answers by small random language models: against a slow second way, and bad input."""

import math

import numpy as np
import pytest
import torch

import metfa
from metfa.text import AnswerScorer, explain_answer

from .language_models import ROWS, SETTINGS, WORDS, tiny_model, tiny_tokenizer, transformers


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def model(request):
    return tiny_model(request.param)


def by_hand(model, kept, answer):
    """Log-probability of each token of the answer, one forward a token."""
    words = ["<bos>", *" ".join([*kept, "why is it so"]).split()]
    found = []
    for word in answer.split():
        ids = torch.tensor([[WORDS.index(one) for one in words]])
        with torch.no_grad():
            logits = model(ids).logits[0, -1].double()
        found.append(float(logits.log_softmax(0)[WORDS.index(word)]))
        words.append(word)
    return np.array(found)


def test_against_one_forward_a_token(model, tokenizer):
    answers = ["because the sky is blue .", "so"]
    logs = [[by_hand(model, kept, answer) for answer in answers] for kept in ROWS]
    sums = np.array([[one.sum() for one in row] for row in logs])
    made = {
        score: AnswerScorer(model, tokenizer, answers=answers, score=score, batch_size=3, **SETTINGS)
        for score in ("logprob", "mean", "logit")
    }
    np.testing.assert_allclose(made["logprob"](ROWS), sums, rtol=1e-5)
    np.testing.assert_allclose(made["mean"](ROWS), sums / [6, 1], rtol=1e-5)
    np.testing.assert_allclose(made["logit"](ROWS), np.log(np.exp(sums) / (1 - np.exp(sums))), rtol=1e-4)
    for row, kept in enumerate(ROWS):  # alone as beside others
        np.testing.assert_allclose(made["logprob"]([kept])[0], made["logprob"](ROWS)[row], rtol=1e-5)
    contrast = AnswerScorer(model, tokenizer, answers="so", contrast="because", **SETTINGS)
    other = np.array([by_hand(model, kept, "because").sum() for kept in ROWS])
    np.testing.assert_allclose(contrast(ROWS)[:, 0], sums[:, 1] - other, rtol=1e-4, atol=1e-6)
    ended = AnswerScorer(model, tokenizer, answers="so", score="logprob", eos=True, **SETTINGS)
    end = np.array([by_hand(model, kept, "so <eos>").sum() for kept in ROWS])
    np.testing.assert_allclose(ended(ROWS)[:, 0], end, rtol=1e-5)
    assert "its end token counts" in ended.about
    assert "its end token does not count" in contrast.about


def test_spans_are_parts_of_the_same_tokens(model, tokenizer):
    answer = "the sky is blue . grass is green ."
    whole = np.array([by_hand(model, kept, answer) for kept in ROWS])
    scorer = AnswerScorer(model, tokenizer, answers=answer, score="logprob", spans="sentences", **SETTINGS)
    assert scorer.names == ("the sky is blue .", " grass is green .")
    np.testing.assert_allclose(scorer(ROWS), np.stack([whole[:, :5].sum(1), whole[:, 5:].sum(1)], 1), rtol=1e-5)
    ranges = AnswerScorer(model, tokenizer, answers=answer, score="mean", spans=[(4, 7), (8, 15)], **SETTINGS)
    np.testing.assert_allclose(ranges(ROWS), np.stack([whole[:, 1], whole[:, 2:4].mean(1)], 1), rtol=1e-5)
    ended = {"answers": answer, "score": "logprob", "eos": True, **SETTINGS}
    in_any_order = AnswerScorer(model, tokenizer, spans=[(18, 34), (0, 3)], **ended)
    with_end = np.array([by_hand(model, kept, f"{answer} <eos>") for kept in ROWS])
    np.testing.assert_allclose(in_any_order(ROWS), np.stack([with_end[:, 5:].sum(1), whole[:, 0]], 1), rtol=1e-5)
    with pytest.raises(ValueError, match="none of the `spans` ends where the answer does"):
        AnswerScorer(model, tokenizer, spans=[(0, 3)], **ended)
    assert ranges.delta is None  # log 2 / T differs
    assert scorer.delta == math.log(2)


def test_a_chat_template_that_begins_the_text_itself(model, tokenizer):
    plain = AnswerScorer(model, tokenizer, answers="so", **SETTINGS)
    chat = AnswerScorer(
        model, tokenizer, answers="so", template=lambda kept: " ".join(["<bos>", *kept, "why is it so"])
    )
    np.testing.assert_array_equal(chat(ROWS), plain(ROWS))


def test_an_answer_is_explained_and_the_model_left_as_found(model, tokenizer):
    scorer = AnswerScorer(model, tokenizer, answers="because the sky is blue .", score="mean", **SETTINGS)
    assert scorer.delta == pytest.approx(math.log(2) / 6)
    sample = explain_answer(scorer, {"a": "the sky is blue .", "b": "a b c ."}, n_samples=10, pilot=4, rng=0)
    model.train()  # with dropout
    with pytest.warns(metfa.ModelStateWarning, match="training mode"):
        again = explain_answer(
            scorer, {"a": "the sky is blue .", "b": "a b c ."}, n_samples=10, pilot=4, rng=0, batch_size=3
        )
    assert model.training
    model.eval()
    np.testing.assert_allclose(again.values, sample.values, rtol=1e-4, atol=1e-6)
    said = str(sample.summary()[0])
    assert "mean log-probability of the answer's tokens; its end token does not count" in said
    assert "adds more than 0.116 in some context" in said
    assert sample.feature_names == ("a", "b")


def test_confident_models_have_finite_logits(tokenizer):
    class Sure(torch.nn.Module):
        config = transformers.GPT2Config()

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, input_ids):
            logits = torch.zeros(*input_ids.shape, len(WORDS))
            logits[..., WORDS.index("so")] = 300
            return transformers.modeling_outputs.CausalLMOutput(logits=logits)

    score = AnswerScorer(Sure().eval(), tokenizer, answers="so", **SETTINGS)([[]])
    assert score[0, 0] == pytest.approx(36.7, abs=0.1)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"answers": ""}, "has no tokens"),
        ({"answers": []}, "`answers` is empty"),
        ({"answers": ["so", 3]}, "`answers` must be a list of texts"),
        ({"score": "probability"}, "`score` must be"),
        ({"template": "no place"}, "must hold {sources} once"),
        ({"template": "{sources}"}, "no {question} for it"),
        ({"contrast": "because", "score": "mean"}, 'write `score="logprob"`'),
        ({"contrast": ""}, "has no tokens"),
        ({"spans": "words"}, "`spans` must be"),
        ({"spans": [(0, 9)]}, "`spans` must be"),
        ({"spans": [(1, 1)]}, "must not be empty"),
        ({"spans": "sentences", "answers": ["so", "because"]}, "one answer alone"),
        ({"batch_size": 0}, "`batch_size` must be"),
        ({"tokenizer": "gpt2"}, "`tokenizer` must be a tokeniser"),
        ({"model": "gpt2"}, "`model` must be a causal language model"),
    ],
)
def test_bad_settings(model, tokenizer, settings, match):
    with pytest.raises((TypeError, ValueError), match=match):
        AnswerScorer(**{"model": model, "tokenizer": tokenizer, "answers": "so", **SETTINGS, **settings})


def test_prompts_longer_than_the_model_reads(model, tokenizer):
    scorer = AnswerScorer(model, tokenizer, answers="so", **SETTINGS)
    with pytest.raises(
        ValueError, match="the prompt of row 1 has 55 tokens and answer 0 has 1, and the model reads 40"
    ):
        scorer([[], ["a b c d e"] * 10])
    with pytest.raises(ValueError, match="the model reads 40"):
        explain_answer(scorer, ["a b c d e"] * 10, n_samples=metfa.Until(undecided=0.5))


def test_an_encoder_with_a_decoder_is_refused(tokenizer):
    t5 = transformers.T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    with pytest.raises(ValueError, match="an encoder with a decoder"):
        AnswerScorer(transformers.T5ForConditionalGeneration(t5), tokenizer, answers="so", **SETTINGS)
