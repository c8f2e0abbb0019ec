"""A small decoder that looks facts up in its prompt: the fact that it reads is found, and no other is marked."""

from pathlib import Path

import numpy as np
import pytest

from metfa.text import AnswerScorer, explain_answer

if not (Path(__file__).parents[2] / "benchmarks").is_dir():  # it is in the repository only
    pytest.skip("the decoder is in the repository only", allow_module_level=True)

N_PROMPTS = 12


@pytest.mark.slow
@pytest.mark.parametrize("copies", [1, 2])
def test_the_fact_that_is_asked_for_is_found_and_no_other(copies):
    from benchmarks.key_values import decoder, fact, question, tokenizer

    model, words = decoder(), tokenizer()
    assert sum(parameter.numel() for parameter in model.parameters()) == 84_480
    found, false, never_less = 0, 0, True
    for seed in range(N_PROMPTS):
        rng = np.random.default_rng(seed)
        keys, values = rng.permutation(16)[: 9 - copies], rng.integers(0, 16, 9 - copies)
        sources = [fact(*pair) for pair in zip(keys, values, strict=True)]
        sources += [sources[0]] * (copies - 1)
        scorer = AnswerScorer(
            model,
            words,
            template=f"<bos> {{sources}} {question(keys[0])}",
            separator=" ",
            answers=f"v{values[0]}",
            batch_size=64,
        )
        groups = {"the fact": [0, 7]} if copies == 2 else None
        sample = explain_answer(scorer, sources, groups=groups, n_samples=45, batch_size=45, rng=seed)
        marks = sample.significance_map()[0]
        found += marks[0] == 1
        never_less &= marks[0] != -1
        false += (marks[1:] == 1).any()
    assert found == N_PROMPTS
    assert never_less
    assert false <= 3  # of 12 at most .05 each: more than 3 in .002 of runs
