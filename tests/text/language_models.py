"""Small random language models of two families, and a tokeniser of words."""

import pytest
import torch

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

WORDS = ["<bos>", "<eos>", "the", "sky", "is", "blue", ".", "red", "grass", "green", "why", "because", "so", "it"]
WORDS += ["a", "b", "c", "d", "e"]
ROWS = [
    ["the sky is blue .", "grass is green ."],
    [],
    ["grass is green ."],
    ["it is so .", "a b c .", "the sky is blue ."],
]
SETTINGS = {"template": "{sources} {question}", "question": "why is it so", "separator": " "}


def tiny_tokenizer():
    """A word is a token; a prompt begins with <bos>."""
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, "<bos>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.post_processor = tokenizers.processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 0)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<bos>", eos_token="<eos>")


def tiny_model(family):
    """GPT-2 (learned positions) or Llama (turned positions, grouped queries) with random weights."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if family == "gpt2":
            config = transformers.GPT2Config(
                vocab_size=len(WORDS), n_positions=40, n_embd=16, n_layer=2, n_head=2, initializer_range=0.5
            )
            return transformers.GPT2LMHeadModel(config).eval()
        config = transformers.LlamaConfig(
            vocab_size=len(WORDS), hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=40, initializer_range=0.5,
        )  # fmt: skip
        return transformers.LlamaForCausalLM(config).eval()
