"""Prompts of sources and a question, as tokens of a causal language model of Hugging Face."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from metfa._base.validation import shown

__all__ = ["Prompts", "check_language_model", "check_tokens", "most_tokens", "n_unknown"]

UNLIMITED = 10**6  # tokenisers without a limit of their own report 1e30


def check_language_model(model: Any, tokenizer: Any) -> None:
    """Raise unless these are a decoder and a tokeniser."""
    if not callable(tokenizer):
        raise TypeError(f"`tokenizer` must be a tokeniser of transformers, got {shown(tokenizer)}")
    config = getattr(model, "config", None)
    if config is None or not callable(model):
        raise TypeError(f"`model` must be a causal language model of transformers, got {shown(model)}")
    if getattr(config, "is_encoder_decoder", False):
        raise ValueError(
            f"`model` must be a causal language model, got {type(model).__name__}, an encoder with a decoder: "
            "write a function (list of lists of sources) -> scores in place of the scorer"
        )


def check_tokens(model: Any, ids: Sequence[int]) -> None:
    """Raise if the model has no vector for one of these tokens, which would end a process on a GPU."""
    table = getattr(model, "get_input_embeddings", lambda: None)()
    known = getattr(getattr(table, "weight", None), "shape", (UNLIMITED,))[0]
    if max(ids) >= known:
        raise ValueError(
            f"`tokenizer` gives token {max(ids):,}, and `model` knows {known:,}: they do not belong together"
        )


def n_unknown(tokenizer: Any, ids: Sequence[int]) -> int:
    """How many tokens stand for text that the tokenizer does not know; none where its sign for it ends texts, too."""
    sign = getattr(tokenizer, "unk_token_id", None)
    return 0 if sign is None or sign == getattr(tokenizer, "eos_token_id", None) else list(ids).count(sign)


def most_tokens(model: Any, tokenizer: Any) -> int:
    """Tokens that the model reads."""
    of_model = getattr(model.config, "max_position_embeddings", None) or UNLIMITED
    of_tokenizer = getattr(tokenizer, "model_max_length", None) or UNLIMITED
    return int(min(of_model, of_tokenizer, UNLIMITED))


@dataclass(frozen=True)
class Prompts:
    """How sources and a question become a prompt; see `metfa.text.AnswerScorer`."""

    template: str | Callable[[list[str]], str]
    question: str
    separator: str

    def __post_init__(self) -> None:
        if not isinstance(self.separator, str):
            raise TypeError(f"`separator` must be a text, got {shown(self.separator)}")
        if not isinstance(self.question, str):
            raise TypeError(f"`question` must be a text, got {shown(self.question)}")
        template = self.template
        if callable(template):
            return
        if not isinstance(template, str):
            raise TypeError(
                f"`template` must be a text with {{sources}} in it, or a function of the kept sources, "
                f"got {shown(template)}"
            )
        if template.count("{sources}") != 1:
            raise ValueError(f"`template` must hold {{sources}} once, got {template!r:.80}")
        if self.question and "{question}" not in template:
            raise ValueError(f"`question` is given, and `template` has no {{question}} for it: {template!r:.80}")

    def text(self, kept: Sequence[str]) -> str:
        """The prompt with these sources."""
        if callable(self.template):
            text = self.template(list(kept))
            if not isinstance(text, str):
                raise TypeError(f"`template` must return the prompt as a text, got {shown(text)}")
            return text
        before, after = (part.replace("{question}", self.question) for part in self.template.split("{sources}"))
        return before + self.separator.join(kept) + after

    def places(self, kept: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
        """The prompt, and from where to where each of its sources goes; raises if one is not found in it.

        The same prompt with marks in place of the sources shows where they go: their words may stand elsewhere too.
        """
        text, end = self.text(kept), 0
        found: list[tuple[int, int]] = []
        marks = [f"\ue000{place}\ue001" for place in range(len(kept))]
        rest = self.text(marks)
        for place, (mark, source) in enumerate(zip(marks, kept, strict=True)):
            before, _, rest = rest.partition(mark)
            start, end = end + len(before), end + len(before) + len(source)
            if text[start - len(before) : end] != before + source:
                raise ValueError(f"`template`: source {place} does not stand in the prompt as it is: {source!r:.60}")
            found.append((start, end))
        if text[end:] != rest:
            raise ValueError("`template`: what stands behind the sources in the prompt depends on them")
        return text, found

    def tokens(self, tokenizer: Any, kept: Sequence[str]) -> list[int]:
        """Its tokens; raises where there are none."""
        return self._tokenised(tokenizer, self.text(kept))["input_ids"]

    def check_of_none(self, tokenizer: Any) -> None:
        """Raise if there is no prompt without any source: where each is kept or dropped at random, there will be."""
        try:
            self.tokens(tokenizer, [])
        except (LookupError, ArithmeticError, AttributeError) as error:  # of a function, such as of `kept[0]`
            raise ValueError(
                f"`template` must make a prompt of no sources too, and raised {type(error).__name__} for an empty "
                f"list: {error}"
            ) from error

    def with_places(self, tokenizer: Any, kept: Sequence[str]) -> tuple[list[int], list[list[int]]]:
        """Tokens of the prompt, and the places of those that end in each source."""
        if not getattr(tokenizer, "is_fast", False):
            raise TypeError("relevance of sources needs a fast tokeniser, which knows where its tokens come from")
        text, ranges = self.places(kept)
        found = self._tokenised(tokenizer, text, return_offsets_mapping=True)
        ids, offsets = found["input_ids"], found["offset_mapping"]
        inside = [[place for place in range(len(ids)) if start < offsets[place][1] <= stop] for start, stop in ranges]
        return ids, inside

    @staticmethod
    def _tokenised(tokenizer: Any, text: str, **settings: Any) -> dict[str, Any]:
        first = getattr(tokenizer, "bos_token", None)
        begun = bool(first) and text.startswith(first)  # as chat templates do
        found = dict(tokenizer(text, add_special_tokens=not begun, **settings))
        ids = list(found["input_ids"])
        if (
            len(ids) > 1
            and ids[-1] == getattr(tokenizer, "eos_token_id", None)
            and not text.endswith(str(tokenizer.eos_token))
        ):
            ids = ids[:-1]  # an end behind the prompt would end it before the answer
        if not ids:
            raise ValueError(
                f"the prompt {text!r:.60} has no tokens, so that the answer has nothing before it: write a question, "
                "or give the tokeniser a token for the beginning"
            )
        return {**found, "input_ids": ids}
