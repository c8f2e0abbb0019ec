"""An `AnswerScorer` reads what prompts have in common once: against the same passes over whole rows.

A decoder of the shape of GPT-2 with random weights; prompts of 8 random sources of 40 tokens each, behind instructions
of 150 tokens, each kept with probability 1/2, as `SourceEffects` asks for them. With one answer of 20 tokens the
instructions are read once; with three, each prompt is too. The numbers must be equal.
"""

import argparse
from functools import partial

import numpy as np
import torch

from benchmarks.measuring import compare
from metfa.text.answers._continuations import Continuations, Prompt


def main(rounds: int, layers: int, width: int) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=8000, n_layer=layers, n_embd=width, n_head=width // 64, bos_token_id=0, eos_token_id=0
            )
        ).eval()
    rng = np.random.default_rng(0)
    instructions, *sources = (rng.integers(8000, size=n).tolist() for n in (150, *[40] * 8))
    answers = rng.integers(8000, size=(3, 20)).tolist()
    kept = rng.random((16, 8)) < 0.5
    rows = [sum((source for source, on in zip(sources, row, strict=True) if on), instructions) for row in kept]
    for n in (1, 3):
        prompts = [Prompt(row, answers[:n]) for row in rows]
        once, whole = Continuations(model, 16, reuses=True), Continuations(model, 16, reuses=False)
        first, second = (np.array(one.log_probabilities(prompts)) for one in (once, whole))
        print(f"{n} answers, log-probabilities differ by at most {abs(first - second).max():.2g}")
        compare(
            ("read once", "whole rows"), partial(once.log_probabilities, prompts),
            partial(whole.log_probabilities, prompts), rounds=rounds, target=None,
        )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=384)
    options = parser.parse_args()
    print(f"torch {torch.__version__}")
    main(options.rounds, options.layers, options.width)
