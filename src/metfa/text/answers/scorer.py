"""`AnswerScorer`: how well a causal language model of Hugging Face likes given answers to a prompt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from metfa._base.percents import counted
from metfa._base.validation import as_names, check_flag, one_of, positive_int, shown
from metfa._base.warnings import UnreadWordsWarning, warn
from metfa.calls.called import Called
from metfa.calls.guard import model_in_evaluation
from metfa.text.answers._sources import check_unicode
from metfa.text.answers._spans import checked_spans, tokens_of_spans
from metfa.text.answers.prompts import Prompts, check_language_model, check_tokens, most_tokens, n_unknown

__all__ = ["AnswerScorer"]

SCORES = ("logit", "logprob", "mean")
NEARLY_ONE = 2.0**-53  # the least probability of all other answers that a sum in float64 can show


@dataclass(frozen=True)
class AnswerScorer:
    r"""Scores of given answers to a prompt of sources, by a causal language model of Hugging Face's transformers.

    Called with a list of rows, each the list of the sources that are kept; returns float64 (rows, answers), for
    `metfa.text.SourceEffects` and `metfa.text.explain_answer`. Nothing is generated and nothing is downloaded.

    Parameters
    ----------
    model : transformers.PreTrainedModel or metfa.Called
        A causal language model (decoder), on any device and in any precision; or a ``metfa.Called(model,
        fast="bfloat16")``, which asks a copy of it in that precision. (One that is loaded in bfloat16 needs no copy.)
    tokenizer : PreTrainedTokenizerBase
    template : str or callable
        The prompt: a text with ``{sources}`` and ``{question}``, or a function (list of kept sources) -> prompt, for an
        empty list too, such as one that calls
        ``tokenizer.apply_chat_template(..., tokenize=False, add_generation_prompt=True)``.
    question : str
        What the template's ``{question}`` stands for.
    answers : str or sequence of str
        The answers that are scored, as the model would write them: with the blank in front that its tokeniser needs.
    score : {"logit", "logprob", "mean"}
        With S the sum of the log-probabilities of the answer's tokens: the logit S - log(1 - exp S), S itself, or the
        mean S / T over the T tokens.
    contrast : str, optional
        Another answer; the score is then S(answer) - S(contrast).
    separator : str
        What stands between two sources. Without a blank or a line break in it, tokens may reach over the border, and to
        drop a source changes its neighbour.
    spans : {"sentences"} or sequence of (int, int), optional
        Parts of one answer that are scored apart, given all before them, as if each were an answer: its sentences, or
        ranges of characters. Needs a fast tokeniser.
    eos : bool
        Whether the end of the answer counts: the end token is added to each answer, and to the spans that end there.
    batch_size : int
        Prompts in one pass. It changes speed and memory only.

    Raises
    ------
    TypeError, ValueError
        For bad settings, answers that are blank or without tokens, and prompts longer than the model reads; when it is
        first called, for a network that is no decoder.

    Notes
    -----
    Prompt and answer are cut into tokens apart, and their tokens joined, so that the answer's tokens are the same in
    every context. Rows of equal length share a pass, and nothing is padded: left padding without positions moves the
    log-probability of GPT-2 by 11.6 nats. What all prompts of a call begin with (from 8 tokens on) is read once, and so
    is a prompt with several answers; the first time, a row is read without this too, and compared. Logits of any
    precision are summed in float64. Where the model is surer of an answer than float64 can tell from 1, its logit is
    36.7.

    The default `delta` of `metfa.text.SourceEffects` is ``log 2`` (the odds of the answer double), and ``log 2 / T``
    for means of answers of equally many tokens.
    """

    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    template: str | Callable[[list[str]], str] = field(default="{sources}\n\n{question}\n", kw_only=True)
    question: str = field(default="", kw_only=True)
    answers: Any = field(kw_only=True)
    score: str = field(default="logit", kw_only=True)
    contrast: str | None = field(default=None, kw_only=True)
    separator: str = field(default="\n", kw_only=True)
    spans: Any = field(default=None, kw_only=True)
    eos: bool = field(default=False, kw_only=True)
    batch_size: int = field(default=16, kw_only=True)

    deterministic = True  # a prompt has one score, up to rounding,
    rounding = None  # which the logit of a probability near 1 enlarges without limit
    rows_apart = True  # nothing is padded
    _unknown = 0  # tokens of a prompt, as somebody was warned

    def __post_init__(self) -> None:
        check_language_model(self.network, self.tokenizer)
        if isinstance(self.model, Called) and self.model.batch_size is not None:
            raise ValueError(
                "`model` is a Called with `batch_size`, and only its `fast` is used here: write `AnswerScorer(..., "
                f"batch_size={self.model.batch_size})`"
            )
        self._prompts  # noqa: B018 - bad templates fail here
        answers = (self.answers,) if isinstance(self.answers, str) else as_names(self.answers, "answers")
        object.__setattr__(self, "answers", answers)
        if not answers:
            raise ValueError("`answers` is empty: there is nothing to score")
        for text in (*answers, self.contrast, self.question):
            check_unicode(str(text or ""), f"{text!r:.60}")
        blank = [answer for answer in answers if answer and not answer.strip()]
        if blank:
            raise ValueError(f"`answers`: {blank[0]!r:.60} is blank, and nobody would see what is explained")
        if self.contrast in answers:
            raise ValueError(f"`contrast` is an answer itself, {self.contrast!r:.60}: the scores would all be 0")
        one_of(self.score, "score", SCORES)
        if self.contrast is not None and not isinstance(self.contrast, str):
            raise TypeError(f"`contrast` must be a text, another answer, got {shown(self.contrast)}")
        if self.contrast is not None and self.score == "mean":
            raise ValueError('`contrast` compares log-probabilities of whole answers: write `score="logprob"`')
        check_flag(self.eos, "eos")
        positive_int(self.batch_size, "batch_size")
        if self.spans is not None and (len(answers) > 1 or self.contrast is not None):
            raise ValueError("`spans` are parts of one answer, without a `contrast`: give one answer alone")
        if self.spans is not None:
            spans = checked_spans(self.spans, "".join(answers))
            object.__setattr__(self, "spans", spans)
        for ids in (ids for ids, _ in self.tokens):  # answers without tokens fail here
            check_tokens(self.network, ids)
        self._prompts.check_of_none(self.tokenizer)

    @property
    def names(self) -> tuple[str, ...]:
        """The answers, or the spans of the one answer, as they are written."""
        if self.spans is None:
            return self.answers
        return tuple(self.answers[0][start:stop] for start, stop in self.spans)

    @property
    def delta(self) -> float | None:
        """Smallest rise that matters; None where answers of different lengths have different ones."""
        if self.score != "mean":
            return math.log(2)
        lengths = {end - start for _, pieces in self.tokens for start, end in pieces}
        return math.log(2) / lengths.pop() if len(lengths) == 1 else None

    @property
    def about(self) -> str:
        """What the score is, in words."""
        what = {
            "logit": "logit of the probability of the answer",
            "logprob": "log-probability of the answer, summed over its tokens",
            "mean": "mean log-probability of the answer's tokens",
        }[self.score]
        if self.contrast is not None:
            what = f"log-probability of the answer less that of {self.contrast!r:.60}"
        return f"{what}; its end token {'counts' if self.eos else 'does not count'}"

    @property
    def network(self) -> Any:
        """The language model itself."""
        return self.model.model if isinstance(self.model, Called) else self.model

    def __call__(self, rows: Sequence[Sequence[str]]) -> np.ndarray:
        """Scores (rows, answers), or (rows, spans), of prompts with these sources."""
        return self.of_prompts([self.prompt(row) for row in rows])

    def of_prompts(self, prompts: Sequence[Sequence[int]], move: Any = None) -> np.ndarray:
        """The same of prompts as tokens.

        ``move(row, ids, vectors)`` changes the vectors of the tokens of a prompt, for noise on them.
        """
        self._check(prompts)
        from metfa.text.answers._continuations import Prompt

        answers = [ids for ids, _ in self.tokens]
        asked = [Prompt(prompt, answers) for prompt in prompts]
        with self.model.asked() if isinstance(self.model, Called) else model_in_evaluation(self.network):
            if move is None:
                logs = self._continuations.log_probabilities(asked)
            else:
                logs = [self._continuations.moved(one, partial(move, row)) for row, one in enumerate(asked)]
        found = np.array([self._of_pieces(of_answers) for of_answers in logs])
        return found if self.contrast is None else found[:, :-1] - found[:, -1:]

    def _check(self, prompts: Sequence[Sequence[int]]) -> None:
        """Raise if the model cannot read one of these prompts with an answer behind it."""
        limit = most_tokens(self.network, self.tokenizer)
        unknown = max((n_unknown(self.tokenizer, prompt) for prompt in prompts), default=0)
        if unknown > self._unknown:
            object.__setattr__(self, "_unknown", unknown)  # more than was said before
            warn(
                f"the tokenizer does not know {counted(unknown, 'token')} of a prompt, and the model does not read "
                "what stands there",
                UnreadWordsWarning,
            )
        for row, prompt in enumerate(prompts):
            check_tokens(self.network, prompt)
            for answer, (ids, _) in enumerate(self.tokens):
                if len(prompt) + len(ids) > limit:
                    raise ValueError(
                        f"the prompt of row {row} has {len(prompt):,} tokens and answer {answer} has {len(ids):,}, and "
                        f"the model reads {limit:,}: leave sources out, or take shorter ones"
                    )

    def _of_pieces(self, logs: list[np.ndarray]) -> np.ndarray:
        """Scores of the answers, or of the spans, by the log-probabilities of their tokens."""
        pieces = [of[start:stop] for of, (_, ranges) in zip(logs, self.tokens, strict=True) for start, stop in ranges]
        return self._scores(np.array([piece.sum() for piece in pieces]), np.array(list(map(len, pieces))))

    @cached_property
    def _continuations(self) -> Any:
        from metfa.text.answers._continuations import Continuations  # which needs torch

        lower = isinstance(self.model, Called) and self.model.fast == "bfloat16"
        return Continuations(self.network, self.batch_size, lower=lower)

    def _scores(self, sums: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        if self.score == "mean":
            return sums / lengths
        if self.score == "logprob" or self.contrast is not None:
            return sums
        return sums - np.log(np.maximum(-np.expm1(sums), NEARLY_ONE))

    @cached_property
    def tokens(self) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Tokens of each answer, and of the contrast, with the ranges of those that are summed."""
        return list(map(self._tokens_of, [*self.answers, *([] if self.contrast is None else [self.contrast])]))

    def _tokens_of(self, answer: str) -> tuple[list[int], list[tuple[int, int]]]:
        ids = list(self.tokenizer(answer, add_special_tokens=False)["input_ids"])
        if not ids:
            raise ValueError(f"`answers`: {answer!r:.80} has no tokens, so that it has no probability")
        if n_unknown(self.tokenizer, ids):
            raise ValueError(
                f"`answers`: the tokenizer does not know {n_unknown(self.tokenizer, ids)} of the {len(ids)} tokens of "
                f"{answer!r:.80}, so that another text would be scored"
            )
        pieces = [(0, len(ids))]
        if self.spans is not None:
            pieces = tokens_of_spans(self.tokenizer, answer, self.spans)
        if self.eos:
            end = self.tokenizer.eos_token_id
            if end is None:
                raise ValueError("`eos` is True, and `tokenizer` has no end token: leave it out")
            n = len(ids)
            if all(stop < n for _, stop in pieces):
                raise ValueError("`eos` is True, and none of the `spans` ends where the answer does: leave it out")
            ids, pieces = [*ids, end], [(start, stop + (stop == n)) for start, stop in pieces]
        return ids, pieces

    def prompt(self, kept: Sequence[str]) -> list[int]:
        """Tokens of the prompt with these sources."""
        return self._prompts.tokens(self.tokenizer, kept)

    def prompt_with_places(self, kept: Sequence[str]) -> tuple[list[int], list[list[int]]]:
        """Tokens of the prompt with these sources, and the places of those that belong to each of them.

        Raises where the prompt could not be scored.
        """
        ids, places = self._prompts.with_places(self.tokenizer, kept)
        self._check([ids])
        self._continuations.check([*ids, *self.tokens[0][0]])
        return ids, places

    @property
    def _prompts(self) -> Prompts:
        return Prompts(self.template, self.question, self.separator)
