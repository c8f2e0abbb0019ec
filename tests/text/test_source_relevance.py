"""Relevance of sources, left-out sources, and other numbers beside those of an answer."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import metfa
from metfa.text import (
    AnswerScorer,
    explain_answer,
    leave_one_out,
    put_beside,
    render_html,
    render_terminal,
    source_relevance,
)
from metfa.text.answers.prompts import Prompts

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

WORDS = ["<bos>", "<eos>", "the", "sky", "is", "blue", ".", "red", "grass", "green", "why", "so"]
SOURCES = ["the sky is blue .", "grass is green .", "red ."]
SETTINGS = {"template": "why {question} {sources} so", "question": "red .", "separator": " "}


@pytest.fixture(scope="module")
def tokenizer():
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, "<bos>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.post_processor = tokenizers.processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 0)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<bos>", eos_token="<eos>")


@pytest.fixture(scope="module")
def model():
    config = transformers.LlamaConfig(
        vocab_size=len(WORDS), hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=40, initializer_range=0.5,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return transformers.LlamaForCausalLM(config).eval()


def by_hand(model, answer, score):
    """Gradient of the score times the vectors, summed over the words of each source; the prompt written out."""
    prompt = ["<bos>", "why", "red", ".", *" ".join(SOURCES).split(), "so"]
    ids = torch.tensor([[WORDS.index(word) for word in [*prompt, *answer.split()]]])
    vectors = model.get_input_embeddings()(ids).detach().requires_grad_()
    logs = model(inputs_embeds=vectors).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
    total = logs[torch.arange(len(logs)), ids[0, len(prompt) :]].sum()
    (gradient,) = torch.autograd.grad(score(total, len(logs)), vectors)
    each = (vectors * gradient)[0].sum(1).detach().numpy()
    return np.array([each[4:9].sum(), each[9:13].sum(), each[13:15].sum()])


SCORES = {
    "logprob": lambda total, n: total,
    "mean": lambda total, n: total / n,
    "logit": lambda total, n: total - torch.log(-torch.expm1(total)),
}


@pytest.mark.parametrize("score", SCORES)
def test_the_gradient_is_that_of_the_score(score, model, tokenizer):
    answers = ["blue .", "grass is green ."]
    scorer = AnswerScorer(model, tokenizer, answers=answers, score=score, **SETTINGS)
    found = source_relevance(scorer, SOURCES, method="gradient-x-input")
    expected = [by_hand(model, answer, SCORES[score]) for answer in answers]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("method", ["attnlrp", "cplrp", "gradient-x-input"])
def test_spans_add_up_groups_are_sums_and_contrasts_are_differences(method, model, tokenizer):
    settings = {"score": "logprob", **SETTINGS}
    whole = AnswerScorer(model, tokenizer, answers="the sky . red is", **settings)
    spans = replace(whole, answers="the sky . red is", spans="sentences")
    found = source_relevance(whole, SOURCES, method=method)
    np.testing.assert_allclose(
        source_relevance(spans, SOURCES, method=method).sum(axis=0), found[0], rtol=1e-4, atol=1e-4
    )
    grouped = source_relevance(whole, SOURCES, method=method, groups={"two": [0, 2]})
    np.testing.assert_allclose(grouped, [[found[0, 0] + found[0, 2], found[0, 1]]], rtol=1e-6)
    contrast = AnswerScorer(model, tokenizer, answers="the sky . red is", contrast="so", **settings)
    other = AnswerScorer(model, tokenizer, answers="so", **settings)
    expected = found - source_relevance(other, SOURCES, method=method)
    np.testing.assert_allclose(source_relevance(contrast, SOURCES, method=method), expected, rtol=1e-4, atol=1e-7)


def test_bad_input_of_relevance(model, tokenizer):
    scorer = AnswerScorer(model, tokenizer, answers="red", **SETTINGS)
    with pytest.raises(TypeError, match=r"must be a metfa\.text\.AnswerScorer, which has the weights"):
        source_relevance(lambda rows: rows, SOURCES)
    with pytest.raises(ValueError, match="`method` must be"):
        source_relevance(scorer, SOURCES, method="ig")
    upper = replace(scorer, template=lambda kept: " ".join(kept).upper(), question="")
    with pytest.raises(ValueError, match="source 0 does not stand in the prompt as it is: 'the sky"):
        source_relevance(upper, SOURCES)
    longer = replace(scorer, template=lambda kept: " ".join([*kept, str(len("".join(kept)))]), question="")
    with pytest.raises(ValueError, match="what stands behind the sources in the prompt depends on them"):
        source_relevance(longer, SOURCES)


def test_a_source_is_found_where_it_goes_and_not_where_else_its_words_stand():
    prompts = Prompts(lambda kept: f"is it so ? {' / '.join(kept)} why is it so", "", " ")
    text, places = prompts.places(["it", "it is", "so"])
    assert text == "is it so ? it / it is / so why is it so"
    assert places == [(11, 13), (16, 21), (24, 26)]
    assert Prompts("{question} {sources}", "so", "").places(["so", "o"]) == ("so soo", [(3, 5), (5, 6)])


@pytest.mark.slow
def test_attnlrp_names_the_fact_that_a_decoder_looks_up():
    if not (Path(__file__).parents[2] / "benchmarks").is_dir():
        pytest.skip("the decoder is in the repository only")
    from benchmarks.key_values import decoder, fact, question
    from benchmarks.key_values import tokenizer as words_of_decoder

    network, words = decoder(), words_of_decoder()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        keys, values = rng.permutation(16)[:8], rng.integers(0, 16, 8)
        settings = {"template": f"<bos> {{sources}} {question(keys[5])}", "separator": " ", "answers": f"v{values[5]}"}
        facts = [fact(*pair) for pair in zip(keys, values, strict=True)]
        assert source_relevance(AnswerScorer(network, words, **settings), facts)[0].argmax() == 5


def scores(rows):
    texts = [" ".join(row) for row in rows]
    return np.array([[3.0 * ("a" in text), 2.0 * ("b" in text) - 1.0 * ("c" in text)] for text in texts])


def test_left_out_one_by_one():
    assert leave_one_out(scores, ["a", "b", "c"]).tolist() == [[3.0, 0.0, 0.0], [0.0, 2.0, -1.0]]
    grouped = leave_one_out(scores, {"x": "a", "y": "b", "z": "c"}, groups={"both": ["y", "z"]})
    assert grouped.tolist() == [[3.0, 0.0], [0.0, 1.0]]
    with pytest.raises(ValueError, match="`scorer` returned nan for prompt 0 of 2"):
        leave_one_out(lambda rows: [np.nan] * len(rows), ["a"])
    with pytest.raises(TypeError, match="`scorer` must be a function"):
        leave_one_out(3, ["a"])


@pytest.mark.slow
def test_other_numbers_stand_beside_those_of_every_view_and_are_saved(tmp_path):
    found = explain_answer(scores, ["a", "b", "c"], delta=math.log(2), n_samples=12, rng=0)
    beside = put_beside(found, {"left out": leave_one_out(scores, ["a", "b", "c"])})
    beside = put_beside(beside, {"<b>mine": np.full((2, 3), 0.25)})
    loaded = metfa.load(beside.save(tmp_path / "saved"))
    for sample in (beside, loaded):
        assert "more       <b>mine 0.25  left out 3" in render_terminal(sample, colour=False, width=120)
        assert "<br>&lt;b&gt;mine 0.25<br>left out -1<" in render_html(sample)
        second = render_terminal(sample.of_input(1), colour=False, width=120)
        assert "left out 2" in second
        assert "left out 3" not in second
    page = beside.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert '["left out",[[3.0,0.0,0.0],[0.0,2.0,-1.0]]]' in page
    for numbers, match in (
        ({"x": np.ones(3)}, r"must be finite, a number for each answer and source \(2, 3\), got \(3,\)"),
        ({"x": np.full((2, 3), np.nan)}, "must be finite"),
        ({"": np.ones((2, 3))}, "must be a dict of names"),
    ):
        with pytest.raises((TypeError, ValueError), match=match):
            put_beside(found, numbers)
    with pytest.raises(ValueError, match=r"`found` must have all answers of its scorer, got those at \[1\]"):
        put_beside(found.of_input(1), {"x": np.ones((1, 3))})
    with pytest.raises(TypeError, match=r"`found` must be a result of metfa\.text\.explain_answer"):
        put_beside(3, {})
