"""`explain_answer`: which sources of a prompt raise the score of an answer, or of each of its sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from metfa._base.provenance import describe
from metfa._base.validation import MOST_CALLS, as_names, as_path, is_text, positive_int, shown
from metfa._base.writing import kept_after
from metfa.calls.guard import left_as_found
from metfa.results.manifests import read_json, write_json
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms
from metfa.results.until import Until
from metfa.sampling.explain import explain
from metfa.sampling.folder import LEARNED
from metfa.sampling.rounds import rounds_of
from metfa.sampling.run import Run
from metfa.sampling.said import with_own_threshold
from metfa.sampling.streams import content_digest, root_entropy
from metfa.text._answers_under_noise import noisy_whole, with_noise_said
from metfa.text._lines import cut
from metfa.text._sources import grouped
from metfa.text.source_effects import PILOT, VARIES, SourceEffects

__all__ = ["explain_answer"]

LONGEST_NAME = 48  # letters of a source without a name of its own, in figures and tables


def explain_answer(
    scorer: Callable[[list[list[str]]], Any],
    sources: Any,
    *,
    delta: float | None = None,
    groups: Mapping[str, Sequence[Any]] | None = None,
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

    For documents and their sentences, ask about the documents first, as groups of sentences, and then about the
    sentences of those that matter.

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
    run = Run.checked(run, ("store", "progress", "input_names", "first_sample"))
    row, own_names = _checked_sources(sources)
    groups = None if groups is None else _by_places(groups, own_names)
    at_a_time = 10 if batch_size is None else positive_int(batch_size, "batch_size")
    root, learned = _begun(run, rng)
    effects = SourceEffects(scorer, delta=delta, groups=groups, pilot=pilot, deterministic=deterministic, rng=root)
    _check_number(n_samples, effects)
    names = _names(row, own_names, groups)
    asked = {"sources": content_digest(row), "explainer": describe(effects), "rng": hex(root)}
    if learned is not None and {name: learned.get(name) for name in asked} != asked:
        raise ValueError(f"`store` holds answers to other sources or settings: {run.store}; give another folder")
    path = None if run.store is None else _folder(run) / LEARNED
    known: dict[str, Any] = {**asked, "whole": None, "scores": []} if learned is None else learned

    def written(scores: list[Any], name: str = "scores") -> None:
        known[name] = [np.asarray(one).tolist() for one in scores]
        if path is not None:
            with kept_after("the answers so far are kept: mend it, and repeat the call to go on"):
                write_json(path, known)

    with left_as_found(effects):
        if known["whole"] is None:
            known["whole"] = np.asarray(effects.model([row])[0]).tolist()
            written([])
        noisy = noisy_whole(effects, row, known.get("noisy", []), at_a_time, partial(written, name="noisy"))
        effects._learn(row, known["scores"], at_a_time=at_a_time, progress=written)
        sample = explain(
            _EveryAnswer(effects), [row], 0, noise=None, n_samples=n_samples, batch_size=batch_size, rng=root, run=run
        )
    most = n_samples.max_samples if isinstance(n_samples, Until) else n_samples
    prompts = {"scored": effects.n_scored, "planned": most + effects.pilot + len(noisy) + 4}
    sample = with_noise_said(sample, scorer, known["whole"], noisy)
    return _apart(sample, names, effects, known["whole"], prompts)


@dataclass(frozen=True)
class _EveryAnswer:
    """Explains all answers of a scorer from the same prompts: maps (batch, answers, sources)."""

    effects: SourceEffects

    signed = True
    if_it_varies = VARIES
    rows_independent = True

    @property
    def default_terms(self) -> Terms:
        return self.effects.default_terms

    @property
    def notes(self) -> dict[str, str]:
        return self.effects.notes

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Any = None) -> np.ndarray:  # noqa: ARG002
        return self.effects.of_every_answer(inputs, rngs=rngs)


def _apart(
    sample: AttributionSample, names: tuple[str, ...], effects: SourceEffects, whole: Any, prompts: dict[str, int]
) -> AttributionSample:
    """The answers as inputs of their own, with names for the sources."""
    n_answers = sample.values.shape[2]
    answers = getattr(effects.scorer, "names", None)
    scores = np.atleast_1d(np.asarray(whole, dtype=np.float64))
    stopping = sample.stopping
    if stopping is not None:
        thresholds = None if stopping.thresholds is None else stopping.thresholds * n_answers
        stopping = replace(stopping, thresholds=thresholds, nothing=(), n_inputs=n_answers)
    of_each = [f"{score:.3g}{f' of answer {place}' * (n_answers > 1)}" for place, score in enumerate(scores)]
    notes = [["whole prompt", f"score {', '.join(of_each)}"]]
    notes += [note for note in sample.provenance["notes"] if note[0] != "prompts scored"]
    more = prompts["scored"] - prompts["planned"]
    why = f", and {more} to see how the rows of a call depend on each other" if more > 0 else ""
    notes += [["prompts scored", f"{prompts['scored']:,} in this call, {prompts['planned']:,} planned at most{why}"]]
    if n_answers == len(answers or ()) > 1:
        listed = "; ".join(f"answer {i}: {cut(answer.strip(), 60)}" for i, answer in enumerate(answers or ()))
        notes.insert(0, ["answers", listed])
    same = sample.input_names[0]
    return replace(
        sample,
        values=sample.values[:, 0],
        vanilla=sample.vanilla[0],
        inputs=sample.inputs * n_answers,
        target=tuple(range(n_answers)) if n_answers > 1 else (None,),
        input_names=(same,) if n_answers == 1 else tuple(f"{same}, answer {place}" for place in range(n_answers)),
        feature_names=names,
        stopping=stopping,
        provenance={**sample.provenance, "explainer": describe(effects), "notes": notes, "prompts": prompts},
    )


def _checked_sources(sources: Any) -> tuple[list[str], tuple[str, ...] | None]:
    """The sources, and their own names."""
    if isinstance(sources, str) or not isinstance(sources, Mapping | list | tuple):
        raise TypeError(
            f"`sources` must be a list of texts, or a dict of names and texts, got {shown(sources)}: cut the prompt "
            "into parts that can be left out"
        )
    names = None
    if isinstance(sources, Mapping):
        for name, text in sources.items():
            if not isinstance(name, str):
                raise TypeError(
                    f"`sources`: the name of a source must be a text, got {shown(name)}: write str({name!r})"
                )
            if not isinstance(text, str):
                raise TypeError(f"`sources`: source {name!r} must be a text, got {shown(text)}")
        names, sources = tuple(map(str, sources)), list(sources.values())
    row = list(as_names(list(sources), "sources"))
    if not row:
        raise ValueError("`sources` is empty: there is nothing to leave out")
    for place, source in enumerate(row):
        if not is_text(source) or not source.strip():
            raise ValueError(f"`sources`: source {place if names is None else names[place]!r} is empty: leave it out")
    return row, names


def _by_places(groups: Any, names: tuple[str, ...] | None) -> Any:
    """Groups with places where they have names of sources."""
    if not isinstance(groups, Mapping):
        return groups
    known = {} if names is None else {name: place for place, name in enumerate(names)}
    found = {}
    for group, members in groups.items():
        if isinstance(members, str) or not isinstance(members, Sequence):
            found[group] = members
            continue
        unknown = [one for one in members if isinstance(one, str) and one not in known]
        if unknown:
            raise ValueError(f"`groups`: there is no source named {unknown[0]!r} in {list(known)!r:.80}")
        found[group] = [known[one] if isinstance(one, str) else one for one in members]
    return found


def _names(row: list[str], names: tuple[str, ...] | None, groups: Any) -> tuple[str, ...]:
    """A name for each feature: of its group, its own, or its place and its first letters."""
    of_groups, parts = grouped(groups, len(row))
    own = names or tuple(f"{place}: {cut(' '.join(text.split()), LONGEST_NAME)}" for place, text in enumerate(row))
    same = [group for group in of_groups if group in own]
    if same:
        raise ValueError(f"`groups`: {same[0]!r} is the name of a source: give the group another name")
    return tuple(own[part[0]] if group is None else group for group, part in zip(of_groups, parts, strict=True))


def _check_number(n_samples: Any, effects: SourceEffects) -> None:
    """Raise, before anything is paid for, if the number of samples is none, or the rule can never be met."""
    if not isinstance(n_samples, Until):
        positive_int(n_samples, "n_samples", maximum=MOST_CALLS)
    if isinstance(n_samples, Until) and n_samples.threshold is not None:
        raise ValueError(
            "`n_samples`: the threshold of the rule is `delta`: write metfa.Until(undecided=...) without one"
        )
    if isinstance(n_samples, Until) and n_samples.over is not None:
        raise ValueError("`n_samples`: `over` is for scores of features; drop sources together by `groups`")
    rounds_of(with_own_threshold(n_samples, effects), 1, signed=True)


def _folder(run: Run) -> Any:
    folder = as_path(run.store, "store")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _begun(run: Run, rng: Any) -> tuple[int, dict[str, Any] | None]:
    """Root of all streams, and what an earlier call has left in the store; its seed counts where none is given."""
    if run.store is None:
        return root_entropy(rng), None
    path = _folder(run) / LEARNED
    if not path.exists():
        return root_entropy(rng), None
    learned = read_json(path)
    try:
        known = np.array(learned["scores"], dtype=np.float64)
        own, fits = (
            int(learned["rng"], 16),
            known.ndim <= 2 and np.isfinite(known).all() and learned["whole"] is not None,
        )
        np.array(learned["whole"], dtype=np.float64)
    except (KeyError, TypeError, ValueError, AttributeError):
        own, fits = 0, False
    if not fits:
        raise ValueError(f"{path} is damaged: give another folder")
    return (own if rng is None else root_entropy(rng)), learned
