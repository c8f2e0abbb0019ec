"""Every family of networks alone against batched, against the network's own answer; random weights, tiny sizes."""

import numpy as np
import pytest
import torch

import metfa
from metfa.text import LEMNA, LIME, GradientXInput, Occlusion
from metfa.text.models import from_transformers

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

WORDS = ("a", "dull", "film", "fine", "moving", "not", "so", "very", "story", "!", ",", ".")
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "<sep>", "<cls>")
VOCABULARY = {token: index for index, token in enumerate((*SPECIAL, *WORDS))}
ROWS = ["a fine, moving film!", "", "dull", "so very, very dull. Not a film!", ["a", "fine", "film"], "...", "so dull"]

SIZES = {"vocab_size": len(VOCABULARY), "num_labels": 3}
BERT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
GPT = {"n_embd": 16, "n_layer": 2, "n_head": 2}
LLAMA = {**BERT, "num_key_value_heads": 1, "pad_token_id": 1, "eos_token_id": 2, "bos_token_id": 0}
ENDS = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
SEQ2SEQ = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
           "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "forced_eos_token_id": 2,
           "decoder_start_token_id": 2, **ENDS}  # fmt: skip

ENCODERS = {
    "Bert": (BERT, "<cls> $A <sep>"),
    "Roberta": ({**BERT, **ENDS, "max_position_embeddings": 40}, "<s> $A </s>"),
    "DistilBert": ({"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}, "<cls> $A <sep>"),
    "Albert": ({**BERT, "embedding_size": 8}, "<cls> $A <sep>"),
    "Electra": ({**BERT, "embedding_size": 8}, "<cls> $A <sep>"),
    "Deberta": ({**BERT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, "<cls> $A <sep>"),
    "DebertaV2": ({**BERT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, "<cls> $A <sep>"),
    "MPNet": ({**BERT, **ENDS}, "<s> $A </s>"),
    "FNet": ({"hidden_size": 16, "num_hidden_layers": 2, "intermediate_size": 32, **ENDS}, "<cls> $A <sep>"),
    "XLNet": ({"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}, "$A <sep> <cls>:2"),
}
DECODERS = {
    "GPT2": ({**GPT, "pad_token_id": 1}, "$A"),
    "GPTNeoX": ({**BERT, **ENDS}, "$A"),
    "Llama": (LLAMA, "<s> $A"),
    "Mistral": (LLAMA, "<s> $A"),
    "Qwen2": (LLAMA, "$A"),
    "Gemma": ({**LLAMA, "head_dim": 8}, "<s> $A"),
    "OPT": ({"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 32, "word_embed_proj_dim":
             16, **ENDS}, "</s> $A"),
}  # fmt: skip
NO_VECTORS = {
    "Bart": (SEQ2SEQ, "<s> $A </s>"),
    "T5": ({"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 1,
            "pad_token_id": 1, "eos_token_id": 2}, "$A </s>"),
}  # fmt: skip
FAMILIES = {**ENCODERS, **DECODERS, **NO_VECTORS}


def tokenizer_of(template):
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(VOCABULARY, unk_token="<unk>"))
    inner.normalizer = tokenizers.normalizers.Lowercase()
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if template != "$A":
        pairs = [(name, VOCABULARY[name]) for name in SPECIAL if name in template]
        inner.post_processor = tokenizers.processors.TemplateProcessing(single=template, special_tokens=pairs)
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, model_input_names=inputs, **names)


def network_of(family, **changes):
    settings = {**SIZES, **FAMILIES[family][0], **changes}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = getattr(transformers, f"{family}Config")(**settings)
        network = getattr(transformers, f"{family}ForSequenceClassification")(config)
        for parameter in network.parameters():  # larger than a fresh network's, so that every fault is visible
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.3)
    return network.eval()


def own_answer(network, tokenizer, row):
    """What a user of transformers gets for one text."""
    by_words = not isinstance(row, str)
    given = dict(tokenizer(row, is_split_into_words=by_words, return_tensors="pt"))
    if given["input_ids"].shape[1] == 0:
        given = {"input_ids": torch.tensor([[VOCABULARY["<s>"]]])}
    if "token_type_ids" in given and type(network).__name__[:5] not in ("BertF", "XLNet", "Alber", "Elect", "Deber"):
        del given["token_type_ids"]
    if type(network).__name__.startswith("FNet"):
        del given["attention_mask"]
    with torch.no_grad():
        return network(**given).logits.softmax(1)[0].numpy()


QUICK = ("Bert", "XLNet", "GPT2", "Llama", "T5")
EVERY = [family if family in QUICK else pytest.param(family, marks=pytest.mark.slow) for family in FAMILIES]


@pytest.mark.parametrize("family", EVERY)
def test_alone_and_batched_are_the_networks_own_answer(family):
    network, tokenizer = network_of(family), tokenizer_of(FAMILIES[family][1])
    model = from_transformers(tokenizer, network)
    together = model(ROWS)
    for row, scores in zip(ROWS, together, strict=True):
        np.testing.assert_allclose(model([row])[0], scores, atol=2e-6)
        np.testing.assert_allclose(own_answer(network, tokenizer, row), scores, atol=2e-6)
    assert np.ptp(together[[0, 2, 3]], axis=0).max() > 0.01
    assert not model.alone


@pytest.mark.filterwarnings("ignore:LIME's linear model describes", "ignore:a sum over the words describes")
@pytest.mark.parametrize("family", EVERY)
def test_every_method_explains_it_or_says_which_do(family):
    model = from_transformers(tokenizer_of(FAMILIES[family][1]), network_of(family))
    text = "a fine, moving film!"
    falls, scores = Occlusion(model, scale=False)([text], 1)
    np.testing.assert_allclose(scores[0], model([text])[0], atol=1e-6)
    without = model(["fine, moving film!", "a , moving film!", "a fine, film!", "a fine, moving !"])[:, 1]
    np.testing.assert_allclose(falls[0], scores[0, 1] - without, atol=1e-6)
    for method in (LEMNA, LIME):
        words, _ = method(model, n_perturbations=100, rng=0)([text], 1)
        assert np.isfinite(words).all()
    if family in NO_VECTORS:
        message = r"cannot be entered at its word vectors \(it refuses them: .*LEMNA, metfa.text.LIME or metfa.text."
        with pytest.raises(ValueError, match=message):
            GradientXInput(model)([text], 1)
        return
    rows = [text, "so very dull film"]
    together, scores = GradientXInput(model, scale=False)(rows, 1)
    np.testing.assert_allclose(scores, model(rows), atol=2e-6)
    for row, words in zip(rows, together, strict=True):
        alone, _ = GradientXInput(model, scale=False)([row], 1)
        np.testing.assert_allclose(alone[0], words, rtol=1e-3, atol=1e-5)


def test_vectors_that_are_answered_in_another_way_are_refused():
    """MPNet counts places from 2, but not those of sub-word 1, which here is no padding."""
    network = network_of("MPNet", pad_token_id=0)
    tokenizer = tokenizer_of("<s> $A </s>")
    tokenizer._tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<pad> $A </s>", special_tokens=[("<pad>", 1), ("</s>", 2)]
    )
    with pytest.raises(ValueError, match=r"\(its answer to the vectors is not its answer to the text\)"):
        GradientXInput(from_transformers(tokenizer, network))(["a film"], 1)


def test_rows_that_are_filled_up_are_refused_where_a_caller_makes_them():
    model = from_transformers(tokenizer_of("<s> $A"), network_of("Llama"))
    vectors, mask = model.embed(torch.tensor([[0, 7, 8], [0, 7, 1]])), torch.tensor([[True] * 3, [True, True, False]])
    with pytest.raises(ValueError, match="`mask` must be true everywhere"):
        model.forward_embedded(vectors, mask)


@pytest.mark.parametrize("family", ["GPT2", "Llama"])
def test_a_decoder_without_a_padding_token_gets_one_row_a_call(family):
    network, tokenizer = network_of(family, pad_token_id=None), tokenizer_of(FAMILIES[family][1])
    model = from_transformers(tokenizer, network)
    for row, scores in zip(ROWS, model(ROWS), strict=True):
        np.testing.assert_allclose(own_answer(network, tokenizer, row), scores, atol=2e-6)
    assert model.alone
    assert network.config.pad_token_id is None
    words, _ = GradientXInput(model, scale=False)(["so dull film", "a fine story"], 1)
    assert np.isfinite(words).all()


def test_a_head_that_mixes_rows_gets_one_row_a_call():
    transformer = network_of("Bert").bert

    def head(vectors):
        return (vectors - vectors.mean(0))[:, :2] if len(vectors) > 1 else vectors[:, :2]

    model = from_transformers(tokenizer_of("<cls> $A <sep>"), transformer, head=head)
    together = model(["so dull", "a film"])
    assert model.alone
    np.testing.assert_allclose(together, [model([row])[0] for row in ("so dull", "a film")], atol=1e-6)


def test_special_sub_words_of_their_own_kind_reach_the_network():
    network, tokenizer = network_of("XLNet"), tokenizer_of("$A <sep> <cls>:2")
    assert tokenizer("a film")["token_type_ids"] == [0, 0, 0, 2]
    with torch.no_grad():
        blind = network(input_ids=torch.tensor([tokenizer("a film")["input_ids"]])).logits.softmax(1)[0].numpy()
    assert np.abs(from_transformers(tokenizer, network)(["a film"])[0] - blind).max() > 1e-3


def test_a_tokenizer_with_nothing_to_stand_for_an_empty_text():
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer_of("$A")._tokenizer)
    with pytest.raises(ValueError, match=r"no token to stand for it: set `tokenizer\.bos_token`"):
        from_transformers(tokenizer, network_of("GPT2"))([""])


def test_a_decoder_is_explained_word_by_word():
    model = from_transformers(tokenizer_of("$A"), network_of("GPT2"))
    sample = metfa.text.explain_text(
        model, "a dull, moving film", method=Occlusion, noise=metfa.text.Synonyms(0.9), n_samples=6, rng=0
    )
    assert sample.values.shape == (6, 1, 4)


class TestPipeline:
    """The advice that a message gives is what works."""

    def test_a_pipeline_is_refused_with_what_to_write(self):
        pipe = transformers.pipeline(
            "text-classification", model=network_of("Bert"), tokenizer=tokenizer_of("<cls> $A <sep>"), device="cpu"
        )
        message = (
            r"from a pipeline of transformers: write `metfa\.text\.from_transformers\(pipe\.tokenizer, pipe\.model\)`"
        )
        for model in (pipe, lambda texts: pipe(texts, top_k=None)):
            with pytest.raises(TypeError, match=message):
                Occlusion(model)(["a dull film"], 0)
        _, scores = Occlusion(metfa.text.from_transformers(pipe.tokenizer, pipe.model))(["a dull film"], 0)
        named = {entry["label"]: entry["score"] for entry in pipe("a dull film", top_k=None)}
        np.testing.assert_allclose(scores[0], [named[f"LABEL_{index}"] for index in range(3)], atol=1e-6)


@pytest.mark.parametrize("family", NO_VECTORS)
def test_a_tokenizer_without_an_end_token(family):
    network, tokenizer = network_of(family), tokenizer_of("$A")
    with pytest.raises(ValueError, match="the network reads the class at the end token '</s>', which `tokenizer`") as e:
        from_transformers(tokenizer, network, max_length=20)(["a fine film"])
    exec(str(e.value).split("`")[3], {"tokenizer": tokenizer, "tokenizers": tokenizers})
    found = from_transformers(tokenizer, network, max_length=20)(["a fine film"])
    expected = from_transformers(tokenizer_of("$A </s>"), network, max_length=20)(["a fine film"])
    np.testing.assert_array_equal(found, expected)
