"""`PromptNoise`: a scorer of answers under noise on its prompts: order of the sources, template, vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from metfa._arrays import to_host
from metfa._base.percents import counted
from metfa._base.validation import check_flag, check_number, keep, shown
from metfa.sampling.randomised import row_generators
from metfa.text.answers.scorer import AnswerScorer

__all__ = ["PromptNoise"]

COLUMNS = 64  # of the table of vectors


@dataclass(frozen=True)
class PromptNoise:
    """A scorer of answers whose prompts are noisy: each score is that of a prompt drawn anew.

    `SourceEffects` and `explain_answer` take it as any scorer, and give each prompt a generator of its own. The prompt
    with all sources, to which nothing is done, gives the clean score.

    **The law.** The noise is drawn apart from which sources are kept, so the test of `SourceEffects` stays exact, for a
    stronger null hypothesis: "adds at most δ in every context, *and for every draw of the noise*" (in every order,
    template, ...). A mark says "adds more than δ in some context and order" and so on; the mean contribution is one
    over random halves of the sources and over the noise.

    Parameters
    ----------
    scorer : AnswerScorer or callable
        What scores the prompts. A function of yours can have noise on the order alone.
    order : bool
        The kept sources stand in an order drawn anew for each prompt, all orders with the same probability. What is
        explained is still each source, wherever it stands.
    templates : sequence, optional
        Further templates, as `AnswerScorer` takes them. Each prompt is made by one of these or by the scorer's own, all
        with the same probability.
    embeddings : float
        Standard deviation of Gaussian noise on the vectors of the prompt's tokens, as a multiple of the *spread* of the
        model's table of vectors: the root mean square of its entries about the mean vector. Special tokens (of the
        beginning, of roles) and the answers get none. Each prompt then takes a pass of its own.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, and where none of the three noises is asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa.text import PromptNoise, explain_answer
    >>> def scorer(rows):  # reads the first source alone
    ...     return np.array([3.0 * ("Paris" in kept[0]) if kept else 0.0 for kept in rows])
    >>> noisy = PromptNoise(scorer, order=True)
    >>> noisy.law
    'an order of the sources drawn anew for each prompt'
    >>> sources = {"atlas": "The capital is Paris.", "diary": "It rained."}
    >>> found = explain_answer(noisy, sources, delta=np.log(2), rng=0)
    >>> found.default_terms.sides[0]
    'adds more than 0.693 in some context and order'
    """

    scorer: Callable[..., Any]
    order: bool = field(default=False, kw_only=True)
    templates: Any = field(default=None, kw_only=True)
    embeddings: float = field(default=0.0, kw_only=True)

    deterministic = False

    def __post_init__(self) -> None:
        if isinstance(self.scorer, type | PromptNoise) or not callable(self.scorer):
            raise TypeError(
                "`scorer` must be a metfa.text.AnswerScorer or a function of lists of sources, got "
                f"{shown(self.scorer)}"
            )
        check_flag(self.order, "order")
        keep(self, embeddings=check_number(self.embeddings, "embeddings"))
        given = () if self.templates is None else self.templates
        if isinstance(given, str) or callable(given) or not isinstance(given, Sequence):
            raise TypeError(f"`templates` must be a list of templates, got {shown(given)}: write `[template]` for one")
        object.__setattr__(self, "templates", tuple(given))
        if not (self.order or self.templates or self.embeddings):
            raise ValueError(
                "no noise is asked for: write `order=True`, `templates=[...]` or `embeddings=0.1`, or leave "
                "PromptNoise out"
            )
        if (self.templates or self.embeddings) and not isinstance(self.scorer, AnswerScorer):
            name = "templates" if self.templates else "embeddings"
            raise ValueError(
                f"`{name}` need a metfa.text.AnswerScorer, which makes prompts and knows their tokens, got "
                f"{shown(self.scorer)}: for a function, only `order=True` is possible"
            )
        if self.embeddings and not hasattr(getattr(self.scorer, "network", None), "get_input_embeddings"):
            raise ValueError(
                "`embeddings`: the model of `scorer` has no `get_input_embeddings`, so no table of vectors"
            )
        object.__setattr__(self, "_scorers", self._of_templates())

    def __call__(self, rows: Sequence[Sequence[str]], *, rngs: Any = None) -> np.ndarray:
        """Scores of prompts with these sources, each under noise from its own generator; without any, clean scores."""
        if rngs is None:
            return self.scorer(list(map(list, rows)))
        generators = row_generators(list(rows), rngs, None)
        keys = [rng.random(len(row)) for row, rng in zip(rows, generators, strict=True)]
        ordered = [
            [str(row[place]) for place in np.argsort(key)] if self.order else list(row)
            for row, key in zip(rows, keys, strict=True)
        ]
        if not isinstance(self.scorer, AnswerScorer) or not (self.templates or self.embeddings):
            return self.scorer(ordered)
        scorers = self.__dict__["_scorers"]
        chosen = [scorers[int(rng.integers(len(scorers)))] for rng in generators]
        prompts = [scorer.prompt(row) for scorer, row in zip(chosen, ordered, strict=True)]
        return self.scorer.of_prompts(prompts, self._mover(generators) if self.embeddings else None)

    @property
    def law(self) -> str:
        """The noise, in words."""
        parts = []
        if self.order:
            parts.append("an order of the sources drawn anew for each prompt")
        if self.templates:
            parts.append(f"one of {counted(len(self.templates) + 1, 'template')}")
        if self.embeddings:
            parts.append(
                f"Gaussian noise of {self.embeddings:g} times the spread of the model's vectors on each token of the "
                "prompt but special ones"
            )
        return "; ".join(parts)

    @property
    def varied(self) -> tuple[str, ...]:
        """What varies beside the context: "order", "template", "noise of the vectors"."""
        named = {"order": self.order, "template": self.templates, "noise of the vectors": self.embeddings}
        return tuple(name for name, asked in named.items() if asked)

    @property
    def rows_apart(self) -> bool:
        """Whether the scorer promises that it never reads two prompts together."""
        return bool(getattr(self.scorer, "rows_apart", False))

    @property
    def names(self) -> tuple[str, ...] | None:
        """The answers, where the scorer says them."""
        return getattr(self.scorer, "names", None)

    @property
    def answers(self) -> tuple[str, ...] | None:
        """The answers of which these are parts, where the scorer says them."""
        return getattr(self.scorer, "answers", None)

    @property
    def spans(self) -> Any:
        """Ranges of the one answer that are scored apart, where there are any."""
        return getattr(self.scorer, "spans", None)

    @property
    def delta(self) -> float | None:
        """Smallest rise that matters, where the scorer has one."""
        return getattr(self.scorer, "delta", None)

    @property
    def about(self) -> str | None:
        """What the score is, where the scorer says it."""
        return getattr(self.scorer, "about", None)

    def _of_templates(self) -> tuple[Any, ...]:
        """The scorer with each template; bad ones fail here."""
        if not isinstance(self.scorer, AnswerScorer):
            return (self.scorer,)
        return (self.scorer, *(replace(self.scorer, template=template) for template in self.templates))

    @cached_property
    def _special(self) -> set[int]:
        return set(self.scorer.tokenizer.all_special_ids)  # pyright: ignore[reportFunctionMemberAccess]

    @cached_property
    def _std(self) -> float:
        """Standard deviation of the noise on vectors; of a large table a few columns at a time are in float64."""
        weights = self.scorer.network.get_input_embeddings().weight.detach()  # pyright: ignore[reportFunctionMemberAccess]
        ordinary = [row for row in range(len(weights)) if row not in self._special]
        columns = (part[ordinary].double().var(0, correction=0) for part in weights.split(COLUMNS, dim=1))
        return self.embeddings * math.sqrt(float(np.concatenate([to_host(each) for each in columns]).mean()))

    def _mover(self, generators: Sequence[np.random.Generator]) -> Callable[[int, list[int], Any], Any]:
        """Function that adds noise to the vectors of a prompt."""
        import torch

        def move(row: int, ids: list[int], vectors: Any) -> Any:
            draws = generators[row].normal(scale=self._std, size=tuple(vectors.shape))
            draws[[token in self._special for token in ids]] = 0
            return vectors + torch.from_numpy(draws).to(vectors)

        return move
