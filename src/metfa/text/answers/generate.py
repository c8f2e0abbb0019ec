"""`generate_answer`: what a causal language model answers to a prompt of sources."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from typing import Any

from metfa._base.validation import positive_int
from metfa._base.warnings import ReproducibilityWarning, warn
from metfa.calls.guard import model_in_evaluation
from metfa.text.answers._sources import checked_sources
from metfa.text.answers.prompts import Prompts, check_language_model, check_tokens, most_tokens

__all__ = ["generate_answer"]

CUT = "\N{REPLACEMENT CHARACTER}"  # at the end: a character of several tokens of which the last were not written


def generate_answer(
    model: Any,
    tokenizer: Any,
    sources: list[str] | Mapping[str, str],
    *,
    template: str | Callable[[list[str]], str] = "{sources}\n\n{question}\n",
    question: str = "",
    separator: str = "\n",
    max_tokens: int = 100,
) -> str:
    """Answer of a causal language model of Hugging Face to a prompt of sources: its likeliest next token each time.

    The prompt is that of `metfa.text.AnswerScorer` with the same settings, so that the answer can be given to it.

    Parameters
    ----------
    model, tokenizer, template, question, separator
        As for `metfa.text.AnswerScorer`.
    sources : list of str, or dict of str -> str
        As for `metfa.text.explain_answer`.
    max_tokens : int
        The answer ends after so many tokens, if the model does not end it before. An answer that was cut in this way is
        as good to explain as any other.

    Returns
    -------
    str
        With the blank in front that the model wrote; without special tokens, and at its end without blanks and without
        the beginning of a character.

    Raises
    ------
    TypeError, ValueError
        For bad arguments; a prompt that, with `max_tokens` more, is longer than the model reads; an empty answer.
    """
    check_language_model(model, tokenizer)
    if not callable(getattr(model, "generate", None)):
        raise ValueError(
            f"`model` must be a causal language model, which writes, and {type(model).__name__} does not: load it by "
            "`AutoModelForCausalLM`, or write the answer that shall be explained"
        )
    prompts = Prompts(template, question, separator)
    row, _ = checked_sources(sources)
    most = positive_int(max_tokens, "max_tokens")
    ids = prompts.tokens(tokenizer, row)
    check_tokens(model, ids)
    limit = most_tokens(model, tokenizer)
    if len(ids) + most > limit:
        left = limit - len(ids)
        instead = f"write `max_tokens={left}`, or " if left > 0 else ""
        raise ValueError(
            f"the prompt has {len(ids):,} tokens and `max_tokens` is {most:,}, and the model reads {limit:,}: "
            f"{instead}leave sources out, or take shorter ones"
        )
    import torch

    given = torch.tensor([ids], device=next(iter(model.parameters())).device)
    settings = {} if tokenizer.eos_token_id is None else {"pad_token_id": tokenizer.eos_token_id}
    with model_in_evaluation(model), torch.no_grad():
        found = model.generate(
            input_ids=given, attention_mask=torch.ones_like(given), max_new_tokens=most, do_sample=False, num_beams=1,
            **settings,
        )  # fmt: skip
    written = found[0, len(ids) :].tolist()
    answer = tokenizer.decode(written, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    answer = answer.rstrip(f"{CUT}{string.whitespace}")
    if not answer:
        raise ValueError("the model ends its answer at once: write the answer that shall be explained")
    again = list(tokenizer(answer, add_special_tokens=False)["input_ids"])
    if again[:-1] != written[: len(again) - 1]:  # the last token may have lost a blank
        warn(
            "the text of the answer is not cut into the tokens that the model wrote, so that its score is that of "
            f"other tokens: {answer!r:.60}",
            ReproducibilityWarning,
        )
    return answer
