"""A model of texts asked for probabilities: its batches, its state, and what it may return."""

import numpy as np
import pytest
import torch

from metfa import Called, ModelOutputWarning, ModelStateWarning
from metfa.text._text_model import TextModel, words_of_rows

TEXTS = ["a fine film", "dull", "", "a long , long film with a good joke", "so 😀 much fun"]


def lengths(texts):
    """Logits of three classes, a function of each text alone."""
    return np.stack([[len(text) / 10, text.count("a"), 0.5] for text in texts])


def by_hand(texts):
    weights = np.exp(np.stack([lengths([text])[0] for text in texts]))
    return weights / weights.sum(axis=1, keepdims=True)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, texts):
        assert not self.training
        assert not torch.is_grad_enabled()
        if "break" in texts:
            raise RuntimeError("broken on purpose")
        return self.dropout(self.linear(torch.from_numpy(lengths(texts)).float())).softmax(1)


@pytest.mark.parametrize("batch_size", [None, 1, 2, 100])
def test_every_batch_size_gives_the_same(batch_size):
    sizes = []

    def model(texts):
        sizes.append(len(texts))
        return lengths(texts)

    asked = TextModel.of(Called(model, softmax=True, batch_size=batch_size))
    np.testing.assert_allclose(asked.probabilities(TEXTS), by_hand(TEXTS), rtol=1e-12)
    np.testing.assert_array_equal(asked.scores(TEXTS), lengths(TEXTS))
    assert max(sizes) == min(batch_size or 256, len(TEXTS))


def test_tokens_come_as_lists_of_the_models_own():
    rows = [("a", "film"), ["dull"]]

    def model(texts):
        assert texts == [["a", "film"], ["dull"]]
        texts[1].append("changed")
        texts.clear()
        return np.full((2, 2), 0.5)

    TextModel.of(model).probabilities(rows)
    assert rows == [("a", "film"), ["dull"]]


def test_nested_lists_of_numbers_are_arrays():
    asked = TextModel.of(lambda texts: lengths(texts).tolist())
    np.testing.assert_array_equal(asked.scores(TEXTS), lengths(TEXTS))


def test_one_score_a_text():
    asked = TextModel.of(lambda texts: np.array([float(len(text)) for text in texts]))
    scores = asked.scores(TEXTS)
    assert asked.targets(scores, None) == [None] * 5
    np.testing.assert_array_equal(asked.chosen(scores, [None] * 5), [11, 4, 0, 35, 13])


def test_targets_and_their_probabilities():
    asked = TextModel.of(Called(lengths, softmax=True))
    probabilities = asked.probabilities(TEXTS)
    targets = asked.targets(asked.scores(TEXTS), None)
    assert targets == by_hand(TEXTS).argmax(axis=1).tolist()
    np.testing.assert_allclose(asked.chosen(probabilities, targets), by_hand(TEXTS).max(axis=1))
    np.testing.assert_allclose(asked.chosen(probabilities, asked.targets(asked.scores(TEXTS), [(2,)] * 5)),
                               by_hand(TEXTS)[:, 2])  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_torch_scores_come_to_the_host_in_double_precision(dtype):
    scores = TextModel.of(lambda texts: torch.full((len(texts), 2), 0.5, dtype=dtype, requires_grad=True)).scores(TEXTS)
    assert scores.dtype == np.float64
    np.testing.assert_array_equal(scores, np.full((5, 2), 0.5))


def test_a_module_is_put_back():
    net = Net().train()
    net.dropout.eval()
    with pytest.warns(ModelStateWarning, match="training mode"):
        TextModel.of(net).probabilities(TEXTS)
    assert net.training
    assert not net.dropout.training
    with pytest.warns(ModelStateWarning), pytest.raises(RuntimeError, match="on purpose"):
        TextModel.of(net).probabilities(["break"])
    assert net.training
    assert not net.dropout.training


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ([{"label": "good", "score": 0.5}] * 5, TypeError, r"`metfa\.text\.from_transformers\(pipe\.tokenizer, "),
        ([[{"label": "good", "score": 0.5}]] * 5, TypeError, r"`metfa\.text\.from_transformers\(pipe\.tokenizer, "),
        (None, TypeError, "got NoneType"),
        ({"logits": np.ones((5, 2))}, TypeError, r"got dict with 'logits': .*\['logits'\]"),
        ((np.ones((5, 2)), 0), TypeError, r"got tuple of 2: .*\[0\]"),
        (np.ones((4, 2)), ValueError, r"got shape \(4, 2\) for 5 inputs"),
        (np.array(0.5), ValueError, r"got shape \(\) for 5 inputs"),
        (np.ones((5, 2, 3)), ValueError, r"got shape \(5, 2, 3\) for 5 texts"),
        (np.ones((5, 0)), ValueError, r"got shape \(5, 0\) for 5 texts"),
        (np.array([[0.5, 0.5]] * 3 + [[np.nan, 0.5]] * 2), ValueError, "NaN for row 3 of 5"),
        (np.array([[0.5, 0.5]] * 3 + [[np.inf, 0.5]] * 2), ValueError, "not finite for the text 'a long , long film"),
        (np.array(["pos"] * 5), TypeError, "got text such as .pos."),
    ],
)
def test_what_a_model_must_not_return(answer, error, message):
    with pytest.raises(error, match=message):
        TextModel.of(lambda texts: answer).scores(TEXTS)


def test_the_number_of_classes_must_not_change():
    with pytest.raises(ValueError, match=r"got \(3,\) and then \(2,\)"):
        TextModel.of(Called(lambda texts: np.ones((len(texts), 1 + len(texts))), softmax=False, batch_size=2)).scores(
            TEXTS
        )


def test_scores_that_are_not_what_the_settings_say():
    with pytest.warns(
        ModelOutputWarning, match=r"no probabilities \(from 0 to 3\.5\): write `metfa.Called\(model, softmax=True\)`"
    ):
        TextModel.of(lengths).targets(lengths(TEXTS), None)
    with pytest.warns(ModelOutputWarning, match="second softmax"):
        TextModel.of(Called(lengths, softmax=True)).targets(by_hand(TEXTS), None)
    with pytest.raises(ValueError, match=r"shape \(5,\).*softmax=False\)`"):
        TextModel.of(Called(lambda texts: np.ones(5), softmax=True)).probabilities(TEXTS)


def test_bad_targets():
    asked = TextModel.of(Called(lengths, softmax=True))
    with pytest.raises(ValueError, match=r"must lie in 0\.\.2 .*got 3 for input 0"):
        asked.targets(lengths(TEXTS), 3)
    with pytest.raises(TypeError, match="class index for each text, got ndarray"):
        asked.targets(lengths(TEXTS), [np.ones(2)] * 5)


def test_bad_settings_and_texts():
    with pytest.raises(TypeError, match="`model` must be a function list of texts -> probabilities, got str"):
        TextModel.of("model")
    with pytest.raises(TypeError, match="`softmax` must be True or False, got int: 1"):
        TextModel.of(Called(lengths, softmax=1))
    with pytest.raises(ValueError, match="`batch_size` must be at least 1, got 0"):
        TextModel.of(Called(lengths, batch_size=0))
    with pytest.raises(TypeError, match=r"got str: write `\[text\]`"):
        TextModel.of(lengths).scores("a film")
    with pytest.raises(ValueError, match="the list is empty"):
        TextModel.of(lengths).scores([])


def test_rows_of_one_call_have_equally_many_words():
    assert [row.words for row in words_of_rows(["a film", ["two", "tokens"]])] == [("a", "film"), ("two", "tokens")]
    with pytest.raises(ValueError, match=r"got 2 in input 0 and 3 in input 2: .*`metfa\.text\.explain_text`"):
        words_of_rows(["a film", "good one", "a good one"])
    with pytest.raises(TypeError, match=r"got str: write `\[text\]`"):
        words_of_rows("a film")
    with pytest.raises(ValueError, match="`inputs` is empty"):
        words_of_rows([])
    with pytest.raises(ValueError, match=r"'\.\.\.' holds no words"):
        words_of_rows(["..."])
