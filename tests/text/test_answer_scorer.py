"""Scores of answers by small random language models: against a slow second way, and bad input."""

import math

import numpy as np
import pytest
import torch

import metfa
from metfa.text import AnswerScorer, PromptNoise, explain_answer, generate_answer, source_relevance

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
        ({"contrast": "so"}, "`contrast` is an answer itself, 'so': the scores would all be 0"),
        ({"answers": ["so", " \n"]}, "is blank, and nobody would see what is explained"),
        ({"spans": "words"}, "`spans` must be"),
        ({"spans": [(0, 9)]}, "`spans` must be"),
        ({"spans": [(1, 1)]}, "must not be empty"),
        ({"spans": "sentences", "answers": ["so", "because"]}, "one answer alone"),
        ({"batch_size": 0}, "`batch_size` must be"),
        ({"tokenizer": "gpt2"}, "`tokenizer` must be a tokeniser"),
        ({"model": "gpt2"}, "`model` must be a causal language model"),
        ({"answers": "so \udc80"}, r"is no text in Unicode \('\\udc80'\): read its file in its own encoding"),
        ({"template": lambda kept: kept[0]}, "`template` must make a prompt of no sources too, and raised IndexError"),
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


def other_network(kind):
    """Networks of transformers that are no decoders."""
    of_bert = {"vocab_size": len(WORDS), "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    of_bert |= {"intermediate_size": 8, "initializer_range": 0.5}
    if kind == "base":
        return tiny_model("llama").model
    if kind == "classifier":
        return transformers.LlamaForSequenceClassification(tiny_model("llama").config).eval()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return getattr(transformers, kind)(transformers.BertConfig(**of_bert)).eval()


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        ("base", "`model` must be a causal language model, and LlamaModel has no `logits` of words at each token"),
        ("classifier", "and LlamaForSequenceClassification has no `logits` of words at each token: load it by"),
        ("BertForMaskedLM", "and BertForMaskedLM looks at tokens behind a place .*, so that it would read an answer"),
        ("BertLMHeadModel", r"take a decoder \(a BERT is one with `is_decoder=True`\)"),
    ],
)
def test_other_networks_are_refused_instead_of_scored_wrongly(tokenizer, kind, match):
    scorer = AnswerScorer(other_network(kind), tokenizer, answers="it is", **SETTINGS)
    asks = [lambda: scorer(ROWS[:1]), lambda: source_relevance(scorer, ROWS[0])]
    asks.append(lambda: PromptNoise(scorer, embeddings=0.1)([ROWS[0]], rngs=[np.random.default_rng(0)]))
    for ask in asks:
        with pytest.raises(ValueError, match=match):
            ask()


def test_a_bert_that_is_a_decoder_is_one(tokenizer):
    config = transformers.BertConfig(vocab_size=len(WORDS), hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
                                     intermediate_size=8, is_decoder=True)  # fmt: skip
    scorer = AnswerScorer(transformers.BertLMHeadModel(config).eval(), tokenizer, answers="it is", **SETTINGS)
    assert scorer(ROWS[:1]).shape == (1, 1)


def test_a_tokeniser_of_another_model_is_refused(tokenizer):
    config = transformers.GPT2Config(vocab_size=13, n_positions=40, n_embd=8, n_layer=1, n_head=2)
    other = transformers.GPT2LMHeadModel(config).eval()
    with pytest.raises(ValueError, match="`tokenizer` gives token 13, and `model` knows 13: they do not belong"):
        AnswerScorer(other, tokenizer, answers="it", **SETTINGS)
    scorer = AnswerScorer(other, tokenizer, answers="so", template="{sources} .")
    for ask in (scorer, lambda rows: source_relevance(scorer, rows[0])):
        with pytest.raises(ValueError, match="`tokenizer` gives token 14, and `model` knows 13"):
            ask([["a ."]])


def test_relevance_refuses_what_the_scorer_refuses_and_asks_in_evaluation_mode(model, tokenizer):
    scorer = AnswerScorer(model, tokenizer, answers="so", **SETTINGS)
    with pytest.raises(ValueError, match=r"has 55 tokens .* the model reads 40"):
        source_relevance(scorer, ["a b c d e"] * 10)
    expected = source_relevance(scorer, ROWS[0], method="gradient-x-input")
    model.train()
    try:
        with pytest.warns(metfa.ModelStateWarning, match="training mode"):
            found = source_relevance(scorer, ROWS[0], method="gradient-x-input")
        assert model.training
    finally:
        model.eval()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore:the text of the answer:metfa.ReproducibilityWarning")  # it wrote <bos> too
def test_what_cannot_be_generated(model, tokenizer):
    with pytest.raises(ValueError, match=r"reads 40: write `max_tokens=26`, or leave sources out"):
        generate_answer(model, tokenizer, ROWS[0], **SETTINGS)
    assert generate_answer(model, tokenizer, ROWS[0], max_tokens=26, **SETTINGS)
    with pytest.raises(ValueError, match="reads 40: leave sources out"):
        generate_answer(model, tokenizer, ["a b c d e"] * 10, **SETTINGS)
    with pytest.raises(ValueError, match="which writes, and LlamaModel does not: load it by `AutoModelForCausalLM`"):
        generate_answer(other_network("base"), tokenizer, ROWS[0], **SETTINGS)


def test_a_generated_answer_that_was_cut_within_a_character_ends_before_it(model, tokenizer, monkeypatch):
    monkeypatch.setattr(type(tokenizer), "decode", lambda self, ids, **settings: " It is \ufffd \ufffd\ufffd\n")
    with pytest.warns(metfa.ReproducibilityWarning, match="is not cut into the tokens that the model wrote"):
        assert generate_answer(model, tokenizer, ROWS[0], max_tokens=2, **SETTINGS) == " It is"


def test_means_of_answers_of_different_lengths_have_no_delta(model, tokenizer):
    scorer = AnswerScorer(model, tokenizer, answers=["so", "it is"], score="mean", **SETTINGS)
    for one in (scorer, PromptNoise(scorer, order=True)):
        with pytest.raises(ValueError, match="the answers have different numbers of tokens T, and log 2 / T differs"):
            explain_answer(one, ROWS[0])


def test_what_the_tokenizer_does_not_know_is_said():
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"unk_token": "a"})  # stands for what is unknown, from here on
    given = {"template": "{sources} {question}", "question": "why is it so", "separator": " "}
    with pytest.raises(ValueError, match="the tokenizer does not know 1 of the 2 tokens of 'blue a'"):
        AnswerScorer(tiny_model("gpt2"), tokenizer, answers="blue a", **given)
    scorer = AnswerScorer(tiny_model("gpt2"), tokenizer, answers="blue", **given)
    scorer([["the sky is blue ."]])
    with pytest.warns(metfa.UnreadWordsWarning, match="does not know 2 tokens of a prompt"):
        scorer([["the sky is blue .", "a a"]])
    scorer([["a"]])  # it was said
