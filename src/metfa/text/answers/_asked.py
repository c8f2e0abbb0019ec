"""All answers of a scorer explained from the same prompts: the pilot, the samples, and what a reader needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from metfa._base.provenance import describe
from metfa._base.validation import MOST_CALLS, as_names, positive_int
from metfa.calls.guard import left_as_found
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms
from metfa.results.until import Until
from metfa.sampling.explain import explain
from metfa.sampling.explainer_attributes import with_own_threshold
from metfa.sampling.rounds import rounds_of
from metfa.sampling.run import Run
from metfa.sampling.streams import content_digest
from metfa.text._lines import cut
from metfa.text.answers._store import AnswerStore
from metfa.text.answers._under_noise import noisy_whole, with_noise_said
from metfa.text.answers.answered import facts_of_answer
from metfa.text.answers.source_effects import VARIES, SourceEffects

__all__ = ["ALPHA", "OF_RUN", "check_number", "explained_sources"]

ALPHA = Terms().alpha
OF_RUN = ("store", "progress", "input_names", "first_sample")  # settings of a run that an answer has


def explained_sources(
    effects: SourceEffects,
    row: list[str],
    *,
    names: tuple[str, ...],
    facts: dict[str, Any],
    answers: Any,
    n_samples: int | Until,
    batch_size: int | None,
    rng: Any,
    run: Run,
    texts: list[str] | None = None,
    asked: tuple[int, ...] | None = None,
    alpha: float = ALPHA,
) -> AttributionSample:
    """Sample the effects of the parts of a row on each answer.

    The `effects` get their seed here. `names` are those of the features; `facts` hold "groups", "parts" and "names" of
    the sources, for `facts_of_answer`. `row` is what the scorer gets, and `texts` what a reader sees of it, if it is
    not the same. `asked` are the parts that become features; the others are kept or dropped at random, too.
    `alpha` is the level of the result's own terms.
    """
    if answers is not None:
        answers = as_names([answers] if isinstance(answers, str) else answers, "answers")
    at_a_time = 10 if batch_size is None else positive_int(batch_size, "batch_size")
    check_number(n_samples, effects)
    with AnswerStore.opened(run.store) as store:
        root = store.root(rng)
        effects = replace(effects, rng=root)
        known = store.begun({
            "sources": content_digest(row), "explainer": describe(effects), "rng": hex(root), "alpha": alpha,
            "n_samples": describe(n_samples) if isinstance(n_samples, Until) else int(n_samples),
            "shown": content_digest([list(names), list(answers or ())]),
            "inputs": content_digest([list(run.input_names or ()), run.first_sample]),
        })  # fmt: skip
        if (finished := store.result()) is not None:
            return finished

        def written(scores: list[Any], name: str = "scores") -> None:
            known[name] = [np.asarray(one).tolist() for one in scores]
            store.write(known)

        with left_as_found(effects):
            if known["whole"] is None:
                known["whole"] = np.asarray(effects.model([row])[0]).tolist()
                written([])
            n_answers = np.size(known["whole"])
            if answers is not None and len(answers) != n_answers:
                raise ValueError(f"`answers` must be one text for each of the {n_answers} scores, got {len(answers)}")
            noisy = noisy_whole(effects, row, known.get("noisy", []), at_a_time, partial(written, name="noisy"))
            effects._learn(row, known["scores"], at_a_time=at_a_time, progress=written)
            sample = explain(
                _EveryAnswer(effects, asked, alpha, n_answers), [row], 0, noise=None, n_samples=n_samples,
                batch_size=batch_size, rng=root, run=replace(run, store=store.of_samples),
            )  # fmt: skip
        most = n_samples.max_samples if isinstance(n_samples, Until) else n_samples
        about = {
            "prompts": {"scored": effects.n_scored, "planned": most + effects.pilot + len(noisy) + 4},
            "answer": facts_of_answer(effects.scorer, answers, n_answers, **facts),
        }
        sample = with_noise_said(sample, effects.scorer, known["whole"], noisy)
        found = _apart(sample, names, effects, texts or row, known["whole"], about)
        store.finish(found)
        return found


@dataclass(frozen=True)
class _EveryAnswer:
    """Explains all answers of a scorer from the same prompts: maps (batch, answers, sources)."""

    effects: SourceEffects
    asked: tuple[int, ...] | None  # the parts that are explained; None: all
    alpha: float
    inputs_within: int  # the answers, each of which is decided by itself

    signed = True
    if_it_varies = VARIES
    rows_independent = True

    @property
    def default_terms(self) -> Terms:
        return replace(self.effects.default_terms, alpha=self.alpha)

    @property
    def notes(self) -> dict[str, str]:
        return self.effects.notes

    @property
    def rows_apart(self) -> bool:
        return self.effects.rows_apart

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Any = None) -> np.ndarray:  # noqa: ARG002
        found = self.effects.of_every_answer(inputs, rngs=rngs)
        return found if self.asked is None else found[..., list(self.asked)]


def _apart(
    sample: AttributionSample,
    names: tuple[str, ...],
    effects: SourceEffects,
    texts: list[str],
    whole: Any,
    facts: dict[str, Any],
) -> AttributionSample:
    """The answers as inputs of their own, with names and texts for the sources."""
    n_answers, prompts, answers = sample.values.shape[2], facts["prompts"], facts["answer"]["answers"]
    scores = np.atleast_1d(np.asarray(whole, dtype=np.float64))
    stopping = sample.stopping
    if stopping is not None:
        stopping = replace(stopping, nothing=())
    of_each = [f"{score:.3g}{f' of answer {place}' * (n_answers > 1)}" for place, score in enumerate(scores)]
    notes = [["whole prompt", f"score {', '.join(of_each)}"]]
    notes += [note for note in sample.provenance["notes"] if note[0] != "prompts scored"]
    more = prompts["scored"] - prompts["planned"]
    why = f", and {more} to see how the rows of a call depend on each other" if more > 0 else ""
    notes += [["prompts scored", f"{prompts['scored']:,} in this call, {prompts['planned']:,} planned at most{why}"]]
    if answers is not None and n_answers > 1:
        listed = "; ".join(f"answer {i}: {cut(answer.strip(), 60)}" for i, answer in enumerate(answers))
        notes.insert(0, ["answers", listed])
    same = sample.input_names[0]
    return replace(
        sample,
        values=sample.values[:, 0],
        vanilla=sample.vanilla[0],
        inputs=[texts] * n_answers,
        target=tuple(range(n_answers)) if n_answers > 1 else (None,),
        input_names=(same,) if n_answers == 1 else tuple(f"{same}, answer {place}" for place in range(n_answers)),
        feature_names=names,
        stopping=stopping,
        provenance={**sample.provenance, "explainer": describe(effects), "notes": notes, **facts},
    )


def check_number(n_samples: Any, effects: SourceEffects) -> None:
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
