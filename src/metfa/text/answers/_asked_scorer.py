"""How a scorer of answers is asked: its answers checked, counted, and kept where it is declared deterministic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from metfa._arrays import is_array, to_host
from metfa._base.validation import check_flag, check_number, shown
from metfa.sampling.protocol import takes_rngs

__all__ = ["AskedScorer", "check_scorer", "checked_delta"]

LARGEST = 1e100  # of a score: squares and sums of larger ones overflow
SAME = 1e-3  # by which two scores of one prompt may differ, for each unit of their size


class AskedScorer:
    """A scorer, a list of rows of sources -> scores, and what it was asked.

    Parameters
    ----------
    scorer : callable
        It may take `rngs`, one generator for each row: its prompts are then `noisy`, and clean without them. Such a
        scorer may say the `law` of the noise in words, and what it `varied` beside the sources that are kept.
    deterministic : bool or None
        Whether no prompt is asked for twice; None: as the scorer says itself. The first prompt that comes again is
        asked for again, to see whether it is true; by how much its scores may differ, for each unit of their size, the
        scorer may say as its `rounding`, where None means that it need not be asked.

    Attributes
    ----------
    n : int
        Number of prompts that were asked for.
    """

    def __init__(self, scorer: Any, deterministic: bool | None) -> None:
        self.scorer, self.n = scorer, 0
        self.noisy = takes_rngs(scorer)
        said = getattr(scorer, "deterministic", False) if deterministic is None else deterministic
        self.deterministic = check_flag(said, "deterministic")
        if self.deterministic and self.noisy:
            raise ValueError(
                "`deterministic` is True, and `scorer` takes `rngs`, so that its prompts are noisy: leave it out"
            )
        self._kept: dict[tuple[str, ...], np.ndarray] = {}
        self._within = getattr(scorer, "rounding", SAME)
        self._looked = self._within is None

    @property
    def law(self) -> str:
        """The noise on prompts in words; empty where none is known."""
        return str(getattr(self.scorer, "law", ""))

    @property
    def contexts(self) -> str:
        """What statements are about: a context, and an order and so on where these vary, too."""
        names = ["context", *getattr(self.scorer, "varied", ())]
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

    def scores(self, rows: list[list[str]], rngs: Any = None) -> np.ndarray:
        """Finite scores of prompts, (rows,) or (rows, answers); clean ones without generators."""
        if not self.deterministic:
            return self._anew(rows, rngs)
        keys = [tuple(row) for row in rows]
        new = list(dict.fromkeys(key for key in keys if key not in self._kept))
        again = [] if self._looked else [key for key in keys if key in self._kept][:1]
        if new or again:
            found = self._anew([list(key) for key in [*new, *again]])
            self._compare(again, found[len(new) :])
            self._kept.update(zip(new, found, strict=False))
        return np.stack([self._kept[key] for key in keys])

    def _compare(self, again: list[tuple[str, ...]], scores: np.ndarray) -> None:
        within = float(self._within or 0)
        for key, score in zip(again, scores, strict=True):
            before = self._kept[key]
            if not np.allclose(before, score, rtol=within, atol=within):
                raise ValueError(
                    f"`scorer` is declared deterministic, and gave a prompt with {len(key)} sources {before} and then "
                    f"{score}: answers of a noisy scorer must not be kept, write `deterministic=False`"
                )
            self._looked = True

    def _anew(self, rows: list[list[str]], rngs: Any = None) -> np.ndarray:
        self.n += len(rows)
        given = {"rngs": rngs} if rngs is not None and self.noisy else {}
        scores = _numbers(self.scorer([list(row) for row in rows], **given))
        if scores.ndim not in (1, 2) or 0 in scores.shape or len(scores) != len(rows):
            raise ValueError(
                "`scorer` must return one score a prompt, or one for each answer, (prompts,) or (prompts, answers), "
                f"got shape {scores.shape} for {len(rows)} prompt{'s' * (len(rows) > 1)}"
            )
        wrong = ~(np.abs(scores.reshape(len(rows), -1)) <= LARGEST).all(axis=1)
        if wrong.any():
            place = int(wrong.argmax())
            raise ValueError(
                f"`scorer` returned {scores[place]} for prompt {place} of {len(rows)}, which keeps {len(rows[place])} "
                f"sources: a score must be finite and at most {LARGEST:g}. For a probability of 1 or 0 return a "
                "bounded logit"
            )
        return scores


def check_scorer(scorer: Any) -> None:
    """Raise unless it is a function."""
    if isinstance(scorer, type) or not callable(scorer):
        raise TypeError(
            f"`scorer` must be a function (list of lists of kept sources) -> scores, got {shown(scorer)}: for a "
            "network of Hugging Face write `metfa.text.AnswerScorer(model, tokenizer, ...)`"
        )


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
    if delta is None and getattr(getattr(scorer, "scorer", scorer), "score", None) == "mean":
        raise ValueError(
            "`delta` must be given, as the answers have different numbers of tokens T, and log 2 / T differs: write "
            'such as `delta=math.log(2) / 8`, or `score="logit"` for the scorer'
        )
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
