"""`explain_answer`: which sources of a prompt raise the score of an answer, or of each of its sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from metfa.results.sample import AttributionSample
from metfa.results.until import Until
from metfa.sampling.run import Run
from metfa.text.answers._asked import OF_RUN, explained_sources
from metfa.text.answers._sources import by_places, checked_sources, grouped, names_of_features
from metfa.text.answers.source_effects import PILOT, SourceEffects

__all__ = ["explain_answer"]


def explain_answer(
    scorer: Callable[[list[list[str]]], Any],
    sources: Any,
    *,
    delta: float | None = None,
    groups: Mapping[str, Sequence[Any]] | None = None,
    answers: Any = None,
    n_samples: int | Until = 48,
    pilot: int = PILOT,
    deterministic: bool | None = None,
    batch_size: int | None = None,
    rng: Any = None,
    run: Run | None = None,
) -> AttributionSample:
    """Find the sources that raise the score of an answer, with error bars and exact tests (`SourceEffects`).

    Parameters
    ----------
    scorer : callable
        `metfa.text.AnswerScorer`, or a list of lists of kept sources -> scores of the answer (rows,) or of several
        answers (rows, answers).
    sources : list of str, or dict of str -> str
        The sources in the order of the prompt; a dict gives them names.
    delta : float, optional
        Smallest rise that matters, in the units of the score. By default log 2 for an `AnswerScorer` (log 2 / T for
        means); another function must be given one.
    groups : dict of str -> list of (int or str), optional
        Sources that are dropped together, by their places or names, such as those that say the same. No group has the
        name of a source.
    answers : str or list of str, optional
        What is scored, as a reader shall see it: one text for each score. By default that of the scorer; a function of
        your own has none.
    n_samples : int or Until
        Prompts with random sources. Or ``metfa.Until(undecided=0.2, max_samples=400)``: until enough is decided.
    pilot : int
        Further prompts that only make the samples less wild.
    deterministic : bool, optional
        Whether the scorer gives a prompt the same score whenever it is asked, so that none is paid for twice; see
        `SourceEffects`.
    batch_size : int, optional
        Prompts in one call of the scorer; 10 by default.
    rng, run
        As in `metfa.explain`. With ``metfa.Run(store=...)`` whatever the scorer has answered is on disk, also that of
        the pilot: a call that failed midway is repeated and goes on.

    Returns
    -------
    AttributionSample
        One input for each answer (or span of the answer), all from the same prompts; its features are the sources, with
        their names. Marks: +1 "adds more than δ in some context", -1 "adds less than δ in some context", 0 undecided.
        `AttributionSample.mean` estimates the mean contribution. The prompts that were scored, and that were planned at
        most, are in `summary` and in ``provenance["prompts"]``.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, before the scorer is asked (only with several answers of different lengths it is asked once);
        for scores that are NaN, or of another number.

    Notes
    -----
    Planned are ``n_samples + pilot + 4`` prompts at most: the whole one; those of the pilot; the samples; one draw for
    `AttributionSample.vanilla`, which has no meaning here; and one prompt again alone, to see that the rows of a call
    do not depend on each other, and once more where its two scores differ. Only where the rows of a call do depend on
    each other, which a warning says, up to three further calls of `batch_size` prompts find out how much. Under
    `PromptNoise` 20 whole prompts more show how often the noise changes the order of the answers; every view says so.

    For documents and their sentences see `metfa.text.explain_answer_tree`.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> def scorer(rows):  # log-odds of "Paris"
    ...     return np.array([-3 + 5.0 * any("Paris" in source for source in kept) for kept in rows])
    >>> sources = {
    ...     "atlas": "The capital is Paris.", "diary": "It rained.", "letter": "I live in Paris, the capital."
    ... }
    >>> capital = {"capital": ["atlas", "letter"]}
    >>> found = metfa.text.explain_answer(scorer, sources, delta=np.log(2), groups=capital, rng=0)
    >>> dict(zip(found.feature_names, found.significance_map()[0].tolist()))
    {'capital': 1, 'diary': -1}
    >>> found.provenance["prompts"]["scored"] <= found.provenance["prompts"]["planned"]
    True
    """
    run = Run.checked(run, OF_RUN)
    row, own_names = checked_sources(sources)
    groups = None if groups is None else by_places(groups, own_names)
    of_groups, parts = grouped(groups, len(row))
    return explained_sources(
        SourceEffects(scorer, delta=delta, groups=groups, pilot=pilot, deterministic=deterministic),
        row,
        names=names_of_features(row, own_names, groups),
        facts={"groups": of_groups, "parts": parts, "names": own_names},
        answers=answers,
        n_samples=n_samples,
        batch_size=batch_size,
        rng=rng,
        run=run,
    )
