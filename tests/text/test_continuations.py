"""What was read once is not read again, and the numbers are those of a row alone."""

import numpy as np
import pytest
import torch

import metfa
from metfa.text import AnswerScorer
from metfa.text.answers._continuations import Continuations, Prompt

from .language_models import ROWS, SETTINGS, WORDS, tiny_model, tiny_tokenizer

BEGIN = [0, *(WORDS.index(word) for word in ["the", "sky", "is", "blue", ".", "grass", "is", "green", ".", "so"])]
PROMPTS = [[*BEGIN, 3, 4], [*BEGIN, 5], [*BEGIN, 7, 8, 9, 10], [*BEGIN, 5, 6], BEGIN]
ANSWERS = [[12, 13, 2], [11], [12, 4]]


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def model(request):
    return tiny_model(request.param)


def alone(model, ids, answer):
    """Log-probabilities of an answer, by one pass over the whole row."""
    with torch.no_grad():
        logits = model(torch.tensor([[*ids, *answer]])).logits[0].double().log_softmax(-1)
    return np.array([float(logits[len(ids) - 1 + place, token]) for place, token in enumerate(answer)])


@pytest.mark.parametrize("answers", [ANSWERS, ANSWERS[:1]])
def test_numbers_are_those_of_a_row_alone(model, answers):
    asked = Continuations(model, 3)
    found = asked.log_probabilities([Prompt(ids, answers) for ids in PROMPTS])
    assert asked.reuses is True
    for ids, of_prompt in zip(PROMPTS, found, strict=True):
        for answer, logs in zip(answers, of_prompt, strict=True):
            np.testing.assert_allclose(logs, alone(model, ids, answer), rtol=1e-5, atol=1e-6)


def padded(model, ids, answer, *, left):
    """The same from a row that is filled up with zeros, on either side, with its positions."""
    row, fill = [*ids, *answer], [0] * 5
    mask = [0] * 5 + [1] * len(row) if left else [1] * len(row) + [0] * 5
    rows, masks = torch.tensor([fill + row if left else row + fill]), torch.tensor([mask])
    positions = (masks.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        logits = model(rows, attention_mask=masks, position_ids=positions).logits[0].double().log_softmax(-1)
    first = (5 if left else 0) + len(ids) - 1
    return np.array([float(logits[first + place, token]) for place, token in enumerate(answer)])


@pytest.mark.parametrize("left", [True, False])
def test_and_those_of_rows_padded_on_either_side(model, left):
    (found,) = Continuations(model, 3).log_probabilities([Prompt(PROMPTS[0], ANSWERS)])
    for answer, logs in zip(ANSWERS, found, strict=True):
        np.testing.assert_allclose(logs, padded(model, PROMPTS[0], answer, left=left), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("answers", "share"), [(ANSWERS, 0.4), (ANSWERS[:1], 0.55)])
def test_fewer_tokens_are_read(model, answers, share):
    read = []
    hook = model.get_input_embeddings().register_forward_hook(lambda _, given, out: read.append(given[0].numel()))
    try:
        asked = Continuations(model, 16, reuses=True)
        asked.check(BEGIN)
        assert sum(read) == 2 * 8
        read.clear()
        asked.log_probabilities([Prompt(ids, answers) for ids in PROMPTS])
        reused = sum(read)
        read.clear()
        asked.reuses = False
        asked.log_probabilities([Prompt(ids, answers) for ids in PROMPTS])
        assert reused < share * sum(read)
    finally:
        hook.remove()


def test_a_model_that_goes_on_wrongly_is_read_from_the_beginning(model):
    class Wrong(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, input_ids, past_key_values=None, use_cache=None):
            return self.inner(input_ids, use_cache=use_cache)  # whatever was read before

    asked = Continuations(Wrong(), 4)
    with pytest.warns(metfa.ReproducibilityWarning, match="goes on behind tokens that it has read before, so each"):
        found = asked.log_probabilities([Prompt(ids, ANSWERS) for ids in PROMPTS])
    np.testing.assert_allclose(found[2][0], alone(model, PROMPTS[2], ANSWERS[0]), rtol=1e-5)


def test_lower_precision_by_called(model):
    plain = AnswerScorer(model, tiny_tokenizer(), answers="so it is", score="logprob", **SETTINGS)
    called = metfa.Called(model, fast="bfloat16")
    lower = AnswerScorer(called, tiny_tokenizer(), answers="so it is", score="logprob", **SETTINGS)
    assert 0 < abs(lower(ROWS) - plain(ROWS)).max() < 0.5
    assert lower(ROWS).dtype == np.float64
    with pytest.raises(ValueError, match="only its `fast` is used here"):
        AnswerScorer(metfa.Called(model, batch_size=3), tiny_tokenizer(), answers="so", **SETTINGS)


def test_short_prompts_and_one_token():
    model = tiny_model("llama")
    ((logs, one),) = Continuations(model, 4).log_probabilities([Prompt([0], [[12, 13], [12]])])
    np.testing.assert_allclose(logs, alone(model, [0], [12, 13]), rtol=1e-5)
    np.testing.assert_allclose(one, alone(model, [0], [12]), rtol=1e-5)
    ((logs, other),) = Continuations(model, 4).log_probabilities([Prompt([0], [[12], [13]])])
    assert (len(logs), len(other)) == (1, 1)
