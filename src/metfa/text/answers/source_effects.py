"""`SourceEffects`: which sources add to the score of an answer, from random halves of the sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metfa._base.validation import positive_int, shown
from metfa.calls.targets import row_targets
from metfa.results.corrections import STATEMENTS
from metfa.results.terms import Terms
from metfa.sampling.randomised import row_generators
from metfa.sampling.streams import Purpose, content_digest, root_entropy, stream
from metfa.text.answers._asked_scorer import AskedScorer, check_scorer, checked_delta
from metfa.text.answers._control import Control
from metfa.text.answers._sources import checked_rows, grouped, kept_sources

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
    deterministic : bool, optional
        Whether the scorer gives a prompt the same score whenever it is asked. Then no prompt is paid for twice; the
        first that would be is asked for again, to see whether it is true. None: as the scorer says by an attribute of
        that name (`metfa.text.AnswerScorer` does), else False. A cache of a *noisy* scorer's answers gave false marks
        in a third of the prompts, where fresh answers gave .001.
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
    statements. After `metfa.Until` those of the rule hold: closed e-BH, which keeps the share of false marks small, or
    with ``correction="bonferroni"`` the probability of any.

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
    deterministic: bool | None = field(default=None, kw_only=True, repr=False)
    rng: Any = field(default=0, kw_only=True, repr=False)
    _controls_of: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    _asked: AskedScorer = field(init=False, repr=False, compare=False)
    _root: int = field(init=False, repr=False, compare=False)

    signed = True
    if_it_varies = VARIES
    rows_independent = True  # a prompt is scored by itself

    def __post_init__(self) -> None:
        check_scorer(self.scorer)
        object.__setattr__(self, "delta", checked_delta(self.delta, self.scorer))
        object.__setattr__(self, "pilot", positive_int(self.pilot, "pilot", minimum=2))
        if self.groups is not None:
            grouped(self.groups, None)
            kept = {str(name): tuple(map(int, places)) for name, places in self.groups.items()}
            object.__setattr__(self, "groups", kept)
        object.__setattr__(self, "_asked", AskedScorer(self.scorer, self.deterministic))
        object.__setattr__(self, "deterministic", self._asked.deterministic)
        object.__setattr__(self, "_root", root_entropy(self.rng))

    @property
    def n_scored(self) -> int:
        """Prompts that the scorer was asked about so far, by this explainer."""
        return self._asked.n

    @property
    def rows_apart(self) -> bool:
        """Whether the scorer promises that it never reads two prompts together."""
        return bool(getattr(self.scorer, "rows_apart", False))

    @property
    def model(self) -> Callable[[Any], Any]:
        """Scores of prompts with all their sources."""
        return self._asked.scores

    @property
    def default_terms(self) -> Terms:
        """Terms of its results: the threshold δ, and what the marks say."""
        delta = float(self.delta or 0)
        at = f"{delta:.3g} in some {self._asked.contexts}"
        sides = (f"adds more than {at}", f"adds less than {at}")
        return Terms(delta, correction="holm", families=STATEMENTS, sides=sides, effects_at=delta)

    @property
    def notes(self) -> dict[str, str]:
        """What a summary of its results must say."""
        at, of, contexts = f"{self.delta:.3g}", getattr(self.scorer, "about", None), self._asked.contexts
        law = self._asked.law
        return {
            **({} if of is None else {"score of the answer": str(of)}),
            **({"noise on prompts": f"{law}; every statement is under this law"} if law else {}),
            "exact for": f"adds at most {at} in every {contexts}: a source that does is marked as adding more no more "
            "often than “false marks” says",
            "not said": f'that a source which "adds less than {at} in some {contexts}" does not matter: another may '
            "say the same; ask about such sources as one group",
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
        scores = self._asked.scores(kept, generators).reshape(len(rows), -1)
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
        rng = stream(self._root, key, 0, Purpose.PILOT)
        masks = rng.random((self.pilot, len(parts))) < 0.5
        known = [] if scores is None else list(scores)[: self.pilot]
        while len(known) < self.pilot:
            chosen = masks[len(known) : len(known) + at_a_time]
            rngs = [self._noise_of(key, 1 + len(known) + place) for place in range(len(chosen))]
            known += list(
                self._asked.scores([kept_sources(row, parts, mask) for mask in chosen], rngs).reshape(len(chosen), -1)
            )
            if progress is not None:
                progress(known)
        table = np.array(known, dtype=np.float64).reshape(self.pilot, -1)
        self._controls_of[key] = tuple(Control.fitted(masks, column) for column in table.T)
        return known

    def _controls(self, row: list[str], at_a_time: int) -> tuple[Control, ...]:
        """The controls of a prompt, one for each answer; its pilot is asked for once."""
        key = content_digest(row)
        if key not in self._controls_of:
            self._learn(row, at_a_time=at_a_time)
        return self._controls_of[key]

    @property
    def noisy(self) -> bool:
        """Whether the scorer's prompts are noisy, by generators of their own."""
        return self._asked.noisy

    def noisy_scores(self, row: list[str], start: int, stop: int) -> np.ndarray:
        """Scores (stop - start, answers) of the whole prompt under the scorer's noise."""
        key = content_digest(row)
        rngs = [self._noise_of(key, 1 + self.pilot + number) for number in range(start, stop)]
        return self._asked.scores([row] * len(rngs), rngs).reshape(len(rngs), -1)

    def _noise_of(self, key: str, number: int) -> np.random.Generator:
        """Generator of the noise on a prompt that is no sample, by the digest of its sources and a number above 0."""
        return stream(self._root, key, number, Purpose.PILOT)


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
