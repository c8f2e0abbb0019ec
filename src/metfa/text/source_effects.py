"""`SourceEffects`: which sources add to the score of an answer, from random halves of the sources."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metfa._arrays import is_array, to_host
from metfa._base.validation import check_number, positive_int, shown
from metfa.calls.targets import row_targets
from metfa.results.corrections import STATEMENTS
from metfa.results.terms import Terms
from metfa.sampling.randomised import row_generators
from metfa.sampling.streams import Purpose, content_digest, root_entropy, stream
from metfa.text._control import Control
from metfa.text._sources import checked_rows, grouped, kept_sources

__all__ = ["PILOT", "VARIES", "SourceEffects"]

VARIES = (  # what the warning says where the same prompt gets two scores
    "`scorer` gives the same prompt another score each time. This noise is a part of the samples, and the marks are "
    "right if it has one law whatever is kept; `rng` does not govern it, so the numbers cannot be repeated"
)
PILOT = 24  # prompts for the control, as in the benchmark


@dataclass(frozen=True)
class SourceEffects:
    r"""Which sources raise the score of an answer, by one prompt a sample, with an exact test.

    A *source* is a part of a prompt that can be left out: a document, a sentence, an example, a turn. A sample keeps
    each source with probability ½ and asks for the score of the answer once. With :math:`m_{ij}` = 1 where sample i
    keeps source j, and a guess h of the score from the kept sources,

    .. math:: a_{ij} = 2 (2 m_{ij} - 1) (y_i - g_j(m_i)), \quad g_j(m) = \tfrac12 (h(m, m_j = 1) + h(m, m_j = 0)).

    *Exact for: adds at most δ in every context.* If source j raises the score by at most δ whatever other sources are
    kept, then :math:`a_{ij} > \delta` with probability at most ½, whatever the guess, the model and the other sources
    are, and independently over samples (see Notes). So the sign test of metfa at the threshold δ is exact, for a fixed
    number of samples and at any time. A source that it marks **adds more than δ in some context**. The other mark is
    the mirror: it tests "adds at least δ in every context", and says **adds less than δ in some context**. That is not
    "unimportant": a fact that is given twice adds nothing where the other copy is kept. Ask about sources that may say
    the same by `groups`, which are dropped together.

    Parameters
    ----------
    scorer : callable
        A list of rows -> scores of the answer (rows,), or of several answers (rows, answers). Each row is the list of
        the sources that are kept, in their order; it may be empty. Such as `metfa.text.AnswerScorer`, or a function
        that asks a remote service for the log-probability of a given text.
    delta : float, optional
        Smallest rise that matters, above 0, in the units of the score. By default that of the scorer: log 2 for
        log-probabilities, logits and contrasts (the odds of the answer double), log 2 / T for means over T tokens.
        Another scorer has none, and `delta` must be given. There is no useful 0: to remove *any* text changes the score
        of a language model a little, often to one side. At 0 sources that do not matter were marked in .08 of prompts
        with 72 samples, and in .47 with 288.
    groups : dict of str -> list of int, optional
        Sources that are kept or dropped together, by the numbers of their places; the others stay alone.
    pilot : int
        Prompts that fit the guess h, once for each prompt of sources. They are no samples. With more than 200 samples
        48 found more than 24.
    rng : int, numpy.random.Generator or None
        Seed of the pilot's choices, and of direct calls; `metfa.explain` passes its own generators for the samples.

    Raises
    ------
    TypeError, ValueError
        For bad arguments; for a scorer that returns no numbers, too many, or NaN or infinity, naming the row.

    Notes
    -----
    *Proof.* Given all others, g is fixed, and a is 2 (y₁ - g) or 2 (g - y₀), each with probability ½, by the scores y₁
    with source j and y₀ without it. Both exceed δ only if y₁ - y₀ > δ, and this is the rise of the score by j. A scorer
    may be noisy, if its noise has one law whatever is kept. Keeping with another probability than ½ has no such proof,
    so there is no setting for it. And g may be anything that does not look at whether j is kept.

    The mean of a is the mean contribution of the source over random halves of the others (`AttributionSample.mean`);
    its interval `AttributionSample.mean_interval` is asymptotic. The median of a is **not** the median contribution, so
    the exact interval of the median says nothing about contributions.

    *The guess* is a sum over sources, and over pairs or more of which any or all are kept, chosen on the pilot alone.
    It decides how many samples are needed, never whether a mark is right. Where it says that a source adds more than δ
    in some contexts, but not in this one (another copy is kept), g is moved so far that the sign of a - δ is a fair
    coin: with a fact given twice, half of the samples would otherwise vote against each copy. So about ¾ of the samples
    vote for such a copy, and 9/16 for one of four, which stays undecided. ContextCite (Cohen-Wang et al., NeurIPS 2024)
    fits a sum over single sources, by a lasso, and reads its numbers as the result.

    Use it in `metfa.explain` with ``noise=None``: the randomness is that of the choice. An input is a list of sources.
    Or use `metfa.text.explain_answer`. Default terms: the threshold δ, and Holm's correction for each of the two
    statements (Bonferroni's by e-values, where the number of samples was not fixed).

    Examples
    --------
    >>> import numpy as np, metfa
    >>> from metfa.text import SourceEffects
    >>> def scorer(rows):  # the answer is as likely again with the second source
    ...     return np.array([-4 + 3.0 * ("Paris is in France." in kept) for kept in rows])
    >>> sources = ["Bread is baked.", "Paris is in France.", "Rain is wet."]
    >>> effects = SourceEffects(scorer, delta=np.log(2))
    >>> sample = metfa.explain(effects, [sources], noise=None, n_samples=20, rng=0)
    >>> sample.decide(sample.terms()).kinds[1]
    'adds more than 0.693 in some context'
    >>> sample.significance_map()
    array([[-1,  1, -1]], dtype=int8)
    """

    scorer: Callable[[list[list[str]]], Any]
    delta: float | None = field(default=None, kw_only=True)
    groups: Mapping[str, Sequence[int]] | None = field(default=None, kw_only=True)
    pilot: int = field(default=PILOT, kw_only=True)
    rng: Any = field(default=0, kw_only=True, repr=False)
    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    signed = True
    if_it_varies = VARIES
    rows_independent = True  # a prompt is scored by itself

    def __post_init__(self) -> None:
        if isinstance(self.scorer, type) or not callable(self.scorer):
            raise TypeError(
                f"`scorer` must be a function (list of lists of kept sources) -> scores, got {shown(self.scorer)}: "
                "for a network of Hugging Face write `metfa.text.AnswerScorer(model, tokenizer, ...)`"
            )
        object.__setattr__(self, "delta", checked_delta(self.delta, self.scorer))
        object.__setattr__(self, "pilot", positive_int(self.pilot, "pilot", minimum=2))
        if self.groups is not None:
            grouped(self.groups, None)
            kept = {str(name): tuple(map(int, places)) for name, places in self.groups.items()}
            object.__setattr__(self, "groups", kept)
        object.__setattr__(self, "_known", {"root": root_entropy(self.rng), "asked": 0})

    @property
    def n_scored(self) -> int:
        """Prompts that the scorer was asked about so far, by this explainer."""
        return self._known["asked"]

    @property
    def model(self) -> Callable[[Any], Any]:
        """Scores of prompts with all their sources."""
        return self._scored

    @property
    def default_terms(self) -> Terms:
        """Terms of its results: the threshold δ, and what the marks say."""
        delta = float(self.delta or 0)
        at = f"{delta:.3g}"
        sides = (f"adds more than {at} in some context", f"adds less than {at} in some context")
        return Terms(delta, correction="holm", families=STATEMENTS, sides=sides, effects_at=delta)

    @property
    def notes(self) -> dict[str, str]:
        """What a summary of its results must say."""
        at, of = f"{self.delta:.3g}", getattr(self.scorer, "about", None)
        return {
            **({} if of is None else {"score of the answer": str(of)}),
            "exact for": f"adds at most {at} in every context (a source that does is marked as adding more with the "
            "probability below at most)",
            "not said": f'that a source which "adds less than {at} in some context" does not matter: another may say '
            "the same; ask about such sources as one group",
            "one score": "one draw of the source's contribution; the mean of all estimates its mean contribution, and "
            "their median does not",
            "prompts scored": f"{self.n_scored:,} by this explainer, {self.pilot} of them for the control of each "
            "list of sources",
        }

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Any = None) -> np.ndarray:
        """One draw of each source's contribution, (batch, sources); of groups, where there are any.

        Parameters
        ----------
        inputs : list of lists of str
            The sources of each prompt, equally many.
        target : int, sequence or array, optional
            Which answer, where the scorer scores several; None where it scores one.
        rngs : list of numpy.random.Generator, optional
            One generator for each prompt.
        """
        maps = self.of_every_answer(inputs, rngs=rngs)
        chosen = _targets(target, len(maps), maps.shape[1])
        return maps[np.arange(len(maps)), chosen]

    def of_every_answer(self, inputs: Any, *, rngs: Any = None) -> np.ndarray:
        """The same for all answers of the scorer from the same prompts, (batch, answers, sources)."""
        rows = checked_rows(inputs)
        generators = row_generators(rows, rngs, self.rng)
        places: dict[tuple[str, ...], list[int]] = {}  # of samples of one prompt there are many in a call
        for place, row in enumerate(rows):
            places.setdefault(tuple(row), []).append(place)
        parts = {row: grouped(self.groups, len(row))[1] for row in places}
        controls = {row: self._controls(list(row), len(rows)) for row in places}
        masks = [rng.random(len(parts[tuple(row)])) < 0.5 for row, rng in zip(rows, generators, strict=True)]
        kept = [kept_sources(row, parts[tuple(row)], mask) for row, mask in zip(rows, masks, strict=True)]
        scores = self._scored(kept).reshape(len(rows), -1)
        found = np.empty((len(rows), scores.shape[1], len(masks[0])))
        for row, same in places.items():
            chosen = np.array([masks[place] for place in same])
            if len(controls[row]) != scores.shape[1]:
                raise ValueError(f"`scorer` gave {scores.shape[1]} scores a prompt after {len(controls[row])}")
            for answer, control in enumerate(controls[row]):
                found[same, answer] = control.draws(chosen, scores[same, answer], float(self.delta or 0))
        return found

    def _learn(
        self, sources: Sequence[str], scores: Any = None, *, at_a_time: int = PILOT, progress: Any = None
    ) -> Any:
        """Ask for the pilot of a prompt, or go on with the `scores` that there are; returns all scores of the pilot."""
        (row,) = checked_rows([list(sources)])
        _, parts = grouped(self.groups, len(row))
        key = content_digest(row)
        rng = stream(self._known["root"], key, 0, Purpose.PILOT)
        masks = rng.random((self.pilot, len(parts))) < 0.5
        known = [] if scores is None else list(scores)[: self.pilot]
        while len(known) < self.pilot:
            chosen = masks[len(known) : len(known) + at_a_time]
            known += list(self._scored([kept_sources(row, parts, mask) for mask in chosen]).reshape(len(chosen), -1))
            if progress is not None:
                progress(known)
        table = np.array(known, dtype=np.float64).reshape(self.pilot, -1)
        self._known[key] = tuple(Control.fitted(masks, column) for column in table.T)
        return known

    def _controls(self, row: list[str], at_a_time: int) -> tuple[Control, ...]:
        """The controls of a prompt, one for each answer; its pilot is asked for once."""
        key = content_digest(row)
        if key not in self._known:
            self._learn(row, at_a_time=at_a_time)
        return self._known[key]

    def _scored(self, rows: list[list[str]]) -> np.ndarray:
        """Finite scores of prompts, (rows,) or (rows, answers)."""
        self._known["asked"] += len(rows)
        scores = _numbers(self.scorer([list(row) for row in rows]))
        if scores.ndim not in (1, 2) or 0 in scores.shape or len(scores) != len(rows):
            raise ValueError(
                "`scorer` must return one score a prompt, or one for each answer, (prompts,) or (prompts, answers), "
                f"got shape {scores.shape} for {len(rows)} prompt{'s' * (len(rows) > 1)}"
            )
        wrong = ~np.isfinite(scores.reshape(len(rows), -1)).all(axis=1)
        if wrong.any():
            place = int(wrong.argmax())
            raise ValueError(
                f"`scorer` returned {scores[place]} for prompt {place} of {len(rows)}, which keeps {len(rows[place])} "
                "sources: a score must be finite. For a probability of 1 or 0 return a bounded logit"
            )
        return scores


def _numbers(answer: Any) -> np.ndarray:
    """What a scorer returned, in float64, whole numbers too; raises for anything but numbers."""
    try:
        found = np.asarray(to_host(answer) if is_array(answer) else answer)
    except (TypeError, ValueError, RuntimeError):  # rows of unequal length; tensors that NumPy cannot read
        found = np.array(None)
    if found.dtype.kind not in "fiub":
        text = found.dtype.kind in "US"
        got = f"texts such as {str(found.flat[0])!r:.60}" if text and found.size else shown(answer)
        raise TypeError(
            f"`scorer` must return numbers, one score a prompt or one for each answer, got {got}: a score says how "
            "likely the given answer is, such as its log-probability"
        )
    return found.astype(np.float64)


def checked_delta(delta: Any, scorer: Any) -> float:
    """δ as a float, by default the scorer's; raises unless it is above 0."""
    if delta is None:
        delta = getattr(scorer, "delta", None)
    if delta is None:
        raise ValueError(
            "`delta` must be given, as this scorer has none of its own: the smallest rise of its score that matters, "
            "such as `delta=math.log(2)` for log-probabilities (the odds of the answer double)"
        )
    number = check_number(delta, "delta", least=-math.inf)
    if number <= 0:
        raise ValueError(
            f"`delta` must be above 0, got {number:g}: removing any text changes the score of a language model a "
            "little, so that with enough prompts nearly every source would be marked; write the smallest rise that "
            "matters, such as `delta=math.log(2)` for log-probabilities"
        )
    return number


def _targets(target: Any, n_rows: int, n_answers: int) -> list[int]:
    if target is None:
        if n_answers > 1:
            raise ValueError(f"`target` must say which of the {n_answers} answers is explained, got None")
        return [0] * n_rows
    return [_answer(entry) for entry in row_targets(target, np.zeros((n_rows, n_answers)), n_rows)]


def _answer(entry: Any) -> int:
    if not isinstance(entry, int):
        raise TypeError(f"`target` must be the number of an answer, or one for each prompt, got {shown(entry)}")
    return entry
