"""LRP of texts: against relevance of the vectors written out, log-odds, padding-free batches, and what it refuses."""

from functools import partial

import numpy as np
import pytest
import torch

import metfa
from metfa.explainers import lrp
from metfa.text import LRP, Synonyms, explain_text, from_transformers, load_model

from .test_transformer_families import FAMILIES, NO_VECTORS, network_of, tokenizer_of

ROWS = ["a fine, moving film!", "so very dull film", "not a moving story"]
BOTH = pytest.mark.parametrize("composite", ["attnlrp", "cplrp"])


def model_of(family, dtype=torch.float64, **changes):
    network = network_of(family, **changes).to(dtype)
    return from_transformers(tokenizer_of(FAMILIES[family][1]), network)


def parts(shares):
    return shares.inputs + shares.tokens + shares.positions + shares.biases + shares.softmax


class OfVectors(torch.nn.Module):
    """The model from its word vectors on; one column, the difference that is explained."""

    def __init__(self, model, difference):
        super().__init__()
        self.network, self.model, self.difference = model.encoder, model, difference

    def forward(self, vectors):
        logits = self.model.forward_embedded(vectors, torch.ones(vectors.shape[:2], dtype=torch.bool))
        return self.difference(logits)[:, None].expand(-1, 2)


def words_by_hand(model, row, difference, composite):
    ids, word_index = model.tokenize(row)
    explainer = lrp.LRP(OfVectors(model, difference).eval(), composite=composite, scale=False, channel_axis=2)
    tokens, scores = explainer(model.embed(torch.tensor([ids])).detach(), 0)
    words = np.zeros(4)
    for place, word in enumerate(word_index):
        if word is not None:
            words[word] += float(tokens[0, place])
    return words, float(scores[0, 0])


@BOTH
@pytest.mark.parametrize("family", ["Bert", pytest.param("GPT2", marks=pytest.mark.slow)])
def test_words_are_the_sums_over_their_vectors_for_the_log_odds_of_two_classes(family, composite):
    model = model_of(family, num_labels=2)
    words, probabilities = LRP(model, composite=composite, scale=False)(ROWS, 1)
    shares = LRP(model, composite=composite).shares(ROWS, 1)
    for row, text in enumerate(ROWS):
        expected, score = words_by_hand(model, text, lambda z: z[:, 1] - z[:, 0], composite)
        np.testing.assert_allclose(words[row], expected, atol=1e-13)
        p = probabilities[row, 1]
        np.testing.assert_allclose([shares.scores[row], score], np.log(p / (1 - p)), atol=1e-12)
    np.testing.assert_allclose(parts(shares), shares.scores, atol=1e-12)
    np.testing.assert_allclose(probabilities, model(ROWS), atol=1e-14)


def test_three_classes_have_the_gradient_of_the_log_odds_or_one_class_against_another():
    model = model_of("Bert")
    logits = torch.log(torch.tensor(model(ROWS[:1])))
    rest = logits[0, [0, 2]].softmax(0)
    words, _ = LRP(model, scale=False)(ROWS[:1], 1)
    expected, _ = words_by_hand(model, ROWS[0], lambda z: z[:, 1] - z[:, [0, 2]] @ rest, "attnlrp")
    np.testing.assert_allclose(words[0], expected, atol=1e-13)
    words, _ = LRP(model, scale=False, against=2)(ROWS[:1], 1)
    expected, _ = words_by_hand(model, ROWS[0], lambda z: z[:, 1] - z[:, 2], "attnlrp")
    np.testing.assert_allclose(words[0], expected, atol=1e-13)


@BOTH
def test_a_number_that_is_added_to_all_logits_changes_nothing(composite):
    model = model_of("Bert")
    moved = model_of("Bert")
    moved.encoder.classifier.bias.data += 7
    moved.encoder.classifier.weight.data += 3
    np.testing.assert_allclose(
        LRP(moved, composite=composite, scale=False)(ROWS, 1)[0],
        LRP(model, composite=composite, scale=False)(ROWS, 1)[0],
        atol=1e-12,
    )


FEW = ("Bert", "T5")


@pytest.mark.parametrize("family", [f if f in FEW else pytest.param(f, marks=pytest.mark.slow) for f in FAMILIES])
def test_every_family_alone_and_in_a_batch(family):
    if family in NO_VECTORS:
        with pytest.raises(ValueError, match=r"so GradientXInput, LRP and Captum's methods do not work: take metfa"):
            LRP(model_of(family))(ROWS, 1)
        return
    model, rows = model_of(family), [*ROWS, ["so", "dull", "a", "story"], "unread, unheard words here"]
    for composite in ("attnlrp", "cplrp"):
        explainer = LRP(model, composite=composite, scale=False)
        together, scores = explainer(rows, [0, 1, 2, 1, 0])
        assert np.abs(together).max() > 1e-5
        np.testing.assert_allclose(scores, model(rows), atol=1e-6)
        for row, target in enumerate([0, 1, 2, 1, 0]):
            alone, _ = explainer([rows[row]], target)
            np.testing.assert_allclose(alone[0], together[row], atol=2e-6)
        shares = explainer.shares(rows[:2], [0, 1])
        np.testing.assert_allclose(parts(shares), shares.scores, atol=2e-6)


def test_classes_that_do_not_exclude_each_other_and_one_score():
    several = model_of("Bert", problem_type="multi_label_classification")
    words, scores = LRP(several, scale=False)(ROWS[:1], 2)
    expected, _ = words_by_hand(several, ROWS[0], lambda z: z[:, 2], "attnlrp")
    np.testing.assert_allclose(words[0], expected, atol=1e-13)
    np.testing.assert_allclose(scores, several(ROWS[:1]), atol=1e-14)
    one = model_of("Bert", num_labels=1)
    words, scores = LRP(one, scale=False)(ROWS[:1])
    assert scores.shape == (1,)
    expected, _ = words_by_hand(one, ROWS[0], lambda z: z, "attnlrp")
    np.testing.assert_allclose(words[0], expected, atol=1e-13)


def test_target_is_the_predicted_class_and_maps_are_scaled():
    model = model_of("Bert")
    best = model(ROWS).argmax(1).tolist()
    words, _ = LRP(model, scale=False)(ROWS)
    np.testing.assert_array_equal(words, LRP(model, scale=False)(ROWS, best)[0])
    scaled, _ = LRP(model)(ROWS)
    low, high = words.min(1, keepdims=True), words.max(1, keepdims=True)
    np.testing.assert_allclose(scaled, (words - low) / (high - low), atol=1e-12)


def test_a_text_of_one_token_leaves_its_position_apart():
    model = model_of("GPT2")
    shares = LRP(model).shares(["film"], 1)
    assert abs(shares.positions[0]) + abs(shares.biases[0]) > 1e-3
    words, _ = LRP(model, scale=False)(["film"], 1)
    vector = model.embed(torch.tensor([model.tokenize("film")[0]])).detach()
    moved = model_of("GPT2")
    moved.encoder.transformer.wpe.weight.data[0] += vector[0, 0]
    moved.encoder.transformer.wte.weight.data.zero_()  # the same sum, all of it position
    np.testing.assert_allclose(moved(["film"]), model(["film"]), atol=1e-14)
    np.testing.assert_allclose(LRP(moved, scale=False)(["film"], 1)[0], 0, atol=1e-14)
    assert abs(words[0, 0]) > 1e-3


def test_half_precision_and_a_head_of_its_own():
    halved = model_of("Bert", torch.bfloat16)
    words, _ = LRP(halved, scale=False)(ROWS, 1)
    assert next(halved.encoder.parameters()).dtype == torch.bfloat16
    exact = from_transformers(halved.tokenizer, network_of("Bert").to(torch.bfloat16).float())
    np.testing.assert_allclose(words, LRP(exact, scale=False)(ROWS, 1)[0], atol=1e-6)
    linear = torch.nn.Linear(16, 2).double().eval()
    headed = from_transformers(tokenizer_of("<cls> $A <sep>"), network_of("Bert").bert.double(), head=linear)
    shares = LRP(headed).shares(ROWS, 1)
    np.testing.assert_allclose(parts(shares), shares.scores, atol=1e-12)


def test_the_model_is_left_as_found():
    model = model_of("Bert")
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.encoder.modules()]
    model.encoder.train()
    with pytest.warns(metfa.ModelStateWarning, match="training mode"):
        words, _ = LRP(model, scale=False)(ROWS, 1)
    assert all(module.training for module in model.encoder.modules())
    assert [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.encoder.modules()] == hooks
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.encoder.parameters())
    np.testing.assert_array_equal(words, LRP(model_of("Bert"), scale=False)(ROWS, 1)[0])


def test_under_noise_and_by_name():
    model = model_of("Bert", torch.float32)
    sample = explain_text(
        model, "a dull, moving film", 1, method=partial(LRP, composite="cplrp"), noise=Synonyms(0.9), n_samples=6, rng=0
    )
    assert sample.values.shape == (6, 1, 4)
    assert "unscaled" in sample.provenance["text"]
    from metfa.by_name.methods import check_settings, explainer_of

    check_settings("lrp", {"composite": "cplrp", "against": 0}, "text")
    assert explainer_of("lrp", model, {"composite": "cplrp"}, "text") == LRP(model, composite="cplrp")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: LRP(lambda rows: rows), TypeError, "function has no tokenize, embed, forward_embedded"),
        (lambda: LRP(model_of("Bert"), composite="epsilon_plus"), ValueError, "`composite` must be .*attnlrp"),
        (lambda: LRP(model_of("Bert"), against=-1), ValueError, "`against` must be at least 0, got -1"),
        (lambda: LRP(model_of("Bert"), against=3)(ROWS, 1), ValueError, r"`against` must be in 0\.\.2, got 3"),
        (lambda: LRP(model_of("Bert"), against=1)(ROWS, 1), ValueError, "another class than the target, got 1 for"),
        (lambda: LRP(model_of("Bert"), scale="no"), TypeError, "`scale` must be True or False, got str: 'no'"),
        (lambda: LRP(model_of("Bert"))("a film"), TypeError, r"must be a list of texts, got str"),
        (lambda: LRP(model_of("Bert"))(ROWS, 7), ValueError, "got 7 for input 0"),
        (lambda: LRP(model_of("Bert")).shares([]), ValueError, "`inputs` is empty"),
        (lambda: LRP(model_of("Bert")).shares("a film"), TypeError, "must be a list of texts, got str"),
        (
            lambda: LRP(load_model("sentiment"))(["a dull film"], 1),
            ValueError,
            r"function lstm in 'network\.lstm'.*metfa\.text\.GradientXInput works on recurrent networks",
        ),
    ],
)
def test_unfit(make, error, message):
    with pytest.raises(error, match=message):
        make()
