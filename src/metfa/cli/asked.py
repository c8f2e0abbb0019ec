"""What `metfa explain-answer` is asked for, and what follows from it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from metfa.cli.parsing import criteria_of
from metfa.cli.run import Analysis
from metfa.results.corrections import STATEMENTS, check_alpha
from metfa.results.families import samples_needed
from metfa.results.terms import Terms
from metfa.results.until import Until
from metfa.text import AnswerScorer, leave_one_out
from metfa.text.answers.prompts import Prompts

__all__ = ["TEMPLATE", "Asked", "Beside", "Deeper", "Score", "beside_of", "check_asked", "prompts_of"]

ALPHA = Terms().alpha
TEMPLATE = r"{sources}\n\n{question}\n"


class Deeper(str, enum.Enum):
    """Into what sources that matter are cut."""

    paragraphs = "paragraphs"
    sentences = "sentences"


class Beside(str, enum.Enum):
    """Numbers without error bars, beside those with them."""

    leave_one_out = "leave-one-out"
    attnlrp = "attnlrp"
    cplrp = "cplrp"
    gradient = "gradient-x-input"


class Score(str, enum.Enum):
    """What is explained."""

    logit = "logit"
    logprob = "logprob"
    mean = "mean"


@dataclass(frozen=True)
class Asked:
    """What a result is of, and how it is made."""

    sources: str
    split: str | None
    question: str
    model: str
    template: str
    chat: bool
    separator: str
    given: str | None
    max_tokens: int
    whole: bool
    score: str
    contrast: str | None
    delta: float | None
    groups: tuple[str, ...]
    deeper: tuple[str, ...]
    beside: tuple[str, ...]
    n_samples: int  # with `until` the largest number
    until: str | None
    pilot: int
    seed: int
    precision: str | None  # of the weights; None: their own
    random_weights: bool

    def number(self, analysis: Analysis) -> int | Until:
        """The number of samples, or on the terms of the analysis the rule that says when they are enough."""
        if self.until is None:
            return self.n_samples
        criteria: dict[str, Any] = criteria_of(self.until)
        tests = {name: getattr(analysis, name) for name in ("alpha", "correction")} if "undecided" in criteria else {}
        given = {name: value for name, value in tests.items() if value is not None}
        return Until(**criteria, **given, confidence_level=analysis.confidence, max_samples=self.n_samples)


def check_asked(asked: Asked, analysis: Analysis, n_sources: int) -> None:
    """Refuse settings that can give no answer, before any model runs."""
    if asked.contrast is not None and asked.score == Score.mean.value:
        raise ValueError("`--contrast` compares log-probabilities of whole answers: leave `--score mean` out")
    if asked.deeper and asked.groups:
        raise ValueError("`--group` and `--deeper` cannot be joined: the sources of a group have no order to be cut in")
    if asked.deeper and asked.beside:
        raise ValueError("`--beside` and `--deeper` cannot be joined: leave one out")
    if asked.deeper and analysis.correction not in (None, "holm"):
        raise ValueError("`--correction` with `--deeper` is holm, or bonferroni with --until: leave it out")
    if asked.until is not None:
        return
    level = ALPHA if analysis.alpha is None else analysis.alpha
    check_alpha(level)
    alpha = level / (1 + len(asked.deeper))
    correction = None if analysis.correction == "none" else analysis.correction or "holm"
    needed = samples_needed(Terms(0.0, alpha, correction, families=STATEMENTS), n_sources)
    if asked.n_samples < needed:
        raise ValueError(
            f"`--samples` {asked.n_samples} are too few for {n_sources:,} sources at alpha {alpha:.3g}: nothing could "
            f"be marked; at least {needed} are needed"
        )


def beside_of(asked: Asked, scorer: AnswerScorer, texts: dict[str, str], groups: Any) -> dict[str, Any]:
    """Other numbers of the sources, by their names."""
    found = {}
    for name in asked.beside:
        if name == Beside.leave_one_out.value:
            found[name] = leave_one_out(scorer, texts, groups=groups)
        else:
            from metfa.text import source_relevance  # it loads torch

            method: Any = name
            found[name] = source_relevance(scorer, texts, method=method, groups=groups)
    return found


def prompts_of(asked: Asked) -> Prompts:
    """The prompts, or with a chat template the messages, with line breaks."""
    template, separator = (text.replace(r"\n", "\n") for text in (asked.template, asked.separator))
    return Prompts(template, asked.question, separator)
