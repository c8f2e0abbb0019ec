"""A language model so small that anybody can train it, which looks facts up in its prompt: ground truth for sources.

A prompt is ``<bos> k3 v7 . k9 v1 . ask k9``, and the answer is ``v1``. So the source that causes an answer is known.
The model is a Llama of two layers and 84,480 parameters; ``python -m benchmarks.key_values`` trains it in two minutes.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

__all__ = ["ASK", "BOS", "FILE", "KEYS", "STOP", "VALUES", "WORDS", "decoder", "fact", "question", "tokenizer"]

FILE = Path(__file__).with_name("decoder.npz")
KEYS = [f"k{number}" for number in range(16)]
VALUES = [f"v{number}" for number in range(16)]
WORDS = ["<bos>", "ask", ".", *KEYS, *VALUES]
BOS, ASK, STOP = range(3)


def untrained() -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=len(WORDS), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=64, initializer_range=0.08,
        tie_word_embeddings=True, bos_token_id=BOS, eos_token_id=None, pad_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def decoder() -> LlamaForCausalLM:
    """The trained model, in evaluation mode."""
    model = untrained()
    with np.load(FILE, allow_pickle=False) as arrays:
        state: dict[str, Any] = {name: torch.from_numpy(arrays[name].astype(np.float32)) for name in arrays.files}
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state)
    return model.eval()


def tokenizer() -> PreTrainedTokenizerFast:
    """One token a word."""
    words = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="<bos>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<bos>")


def fact(key: int, value: int) -> str:
    """A source, as a text."""
    return f"k{key} v{value} ."


def question(key: int) -> str:
    """The end of a prompt."""
    return f"ask k{key}"
