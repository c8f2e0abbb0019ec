"""Log-probabilities of answers behind prompts by a causal language model; what was read once is not read again."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from metfa._base.warnings import ReproducibilityWarning, warn

__all__ = ["Continuations", "Prompt"]

WORTH = 8  # tokens that all prompts of a call begin with, from which on they are read once
ROUNDING = {4: 1e-3, 8: 1e-6}  # of log-probabilities, by bytes of a weight; half precision rounds by more:
COARSE = 0.3
CHECKED = 8  # tokens of the short row that shows whether a model is a decoder
CACHES = ("cache", "past_key_values")  # names of the argument: the second until transformers 5.23


class Prompt(NamedTuple):
    """Tokens of a prompt, and of the answers that are scored behind it."""

    ids: Sequence[int]
    answers: Sequence[Sequence[int]]


@dataclass
class Continuations:
    """How a causal language model of transformers is asked: rows of equal length together, nothing padded.

    Keys and values of tokens that were read (the model's cache) are used again: for the tokens that all prompts of a
    call begin with, and for a prompt with several answers. The first time, one row is read without them too. Where the
    two differ by more than rounding, every row is read from its beginning, and a warning says so. Before anything else
    a short row is read twice, with two last tokens, to see that the model is a decoder.
    """

    model: Any
    batch_size: int
    lower: bool = False  # whether it computes in bfloat16
    reuses: bool | None = None  # whether that gives the same numbers; None: not known yet

    def __post_init__(self) -> None:
        known = inspect.signature(getattr(self.model, "forward", self.model)).parameters
        self._cache = next((name for name in CACHES if name in known), None)
        self._fewer, self._uses = "logits_to_keep" in known, "use_cache" in known
        self._checked = False
        if self._cache is None or not self._uses:
            self.reuses = False

    @property
    def rounding(self) -> float:
        """By how much log-probabilities may differ by rounding alone, for each unit of their size."""
        size = 2 if self.lower else next(iter(self.model.parameters())).dtype.itemsize
        return ROUNDING.get(size, COARSE)

    def log_probabilities(self, prompts: Sequence[Prompt]) -> list[list[np.ndarray]]:
        """Log-probability of each token of each answer of each prompt, in float64; all have equally many answers."""
        self.check([*prompts[0].ids, *prompts[0].answers[0]])
        several = len(prompts[0].answers) > 1
        found: list[list[Any]] = [[None] * len(prompt.answers) for prompt in prompts]
        with torch.no_grad(), self._precision():
            prefix = _common(prompts)
            if self.reuses is None and (prefix or several):
                self.reuses = self._same([*prompts[0].ids, *prompts[0].answers[0]])
            prefix = prefix if self.reuses else 0
            cache = self._asked([prompts[0].ids[:prefix]], 1, keeps=True)[1] if prefix else None
            if several and self.reuses:
                for places in self._together([len(prompt.ids) for prompt in prompts]):
                    for number, logs in self._continued([prompts[place] for place in places], prefix, cache):
                        for place, one in zip(places, logs, strict=True):
                            found[place][number] = one
                return found
            rows = [(place, number) for place, of in enumerate(found) for number in range(len(of))]
            sizes = [len(prompts[place].ids) + len(prompts[place].answers[number]) for place, number in rows]
            for chosen in self._together(sizes):
                asked = [
                    (prompts[place].ids[prefix:], prompts[place].answers[n])
                    for place, n in map(rows.__getitem__, chosen)
                ]
                for one, logs in zip(chosen, self._whole(asked, cache), strict=True):
                    found[rows[one][0]][rows[one][1]] = logs
        return found

    def moved(self, prompt: Prompt, move: Callable[[list[int], Any], Any]) -> list[np.ndarray]:
        """The same for one prompt, whose vectors are ``move(ids, vectors)``; those of the answers are as they are."""
        self.check([*prompt.ids, *prompt.answers[0]])
        table, found = self.model.get_input_embeddings(), []
        with torch.no_grad(), self._precision():
            vectors = move(list(prompt.ids), table(self._tensor([prompt.ids]))[0])[None]
            for answer in prompt.answers:
                rows = [vectors, table(self._tensor([answer[:-1]]))] if len(answer) > 1 else [vectors]
                logits, _ = self._logits(len(answer), inputs_embeds=torch.cat(rows, 1))
                found += _logs(logits, [answer])
        return found

    def check(self, ids: list[int]) -> None:
        """Raise, the first time, unless the model scores words at each place, whatever stands behind this place."""
        if self._checked:
            return
        first = ids[:CHECKED]
        rows = [first, [*first[:-1], first[-1] - 1 if first[-1] else 1]]
        with torch.no_grad(), self._precision():
            both = [self._asked([row], len(first))[0] for row in rows]
        one, other = (logits[0, :-1].double().log_softmax(-1) for logits in both)
        apart = float((one - other).abs().max()) if len(one) else 0.0
        if apart > self.rounding / 10:  # rows of equal length, so that the same is computed
            raise self._unfit(
                f"looks at tokens behind a place (its log-probabilities there move by {apart:.2g}), so that it would "
                "read an answer before it scores it: take a decoder (a BERT is one with `is_decoder=True`)"
            )
        self._checked = True

    def _whole(self, asked: Sequence[tuple[Sequence[int], Sequence[int]]], cache: Any) -> list[np.ndarray]:
        """Log-probabilities of the answer of each of some rows of equal length."""
        keep = max(len(answer) for _, answer in asked)
        logits, _ = self._asked([[*ids, *answer[:-1]] for ids, answer in asked], keep, cache)
        return [_logs(logits[row : row + 1, -len(answer) :], [answer])[0] for row, (_, answer) in enumerate(asked)]

    def _continued(self, prompts: Sequence[Prompt], prefix: int, cache: Any) -> Any:
        """Of prompts of equal length: the number of each answer, and its log-probabilities behind each of them."""
        first, read = self._asked([prompt.ids[prefix:] for prompt in prompts], 1, cache, keeps=True)
        for number, answer in enumerate(prompts[0].answers):
            logits = first
            if len(answer) > 1:
                after, _ = self._asked([answer[:-1]] * len(prompts), len(answer) - 1, read)
                logits = torch.cat([first, after], 1)
            yield number, _logs(logits, [answer] * len(prompts))

    def _asked(self, rows: Sequence[Sequence[int]], keep: int, cache: Any = None, *, keeps: bool = False) -> Any:
        """Logits of the last `keep` places of rows of equal length behind what a cache holds, and the cache if kept."""
        given: dict[str, Any] = {"input_ids": self._tensor(rows)}
        if cache is not None:
            given[str(self._cache)] = _for_rows(cache, len(rows))
        return self._logits(keep, keeps=keeps, **given)

    def _logits(self, keep: int, *, keeps: bool = False, **given: Any) -> tuple[Any, Any]:
        if self._fewer:
            given["logits_to_keep"] = keep
        if self._uses:
            given["use_cache"] = keeps or self._cache in given
        output = self.model(**given)
        logits: Any = getattr(output, "logits", None)
        if getattr(logits, "ndim", None) != 3:
            raise self._unfit("has no `logits` of words at each token: load it by `AutoModelForCausalLM`")
        return logits[:, -keep:], getattr(output, str(self._cache), None) if keeps else None

    def _unfit(self, why: str) -> ValueError:
        return ValueError(f"`model` must be a causal language model, and {type(self.model).__name__} {why}")

    def _same(self, ids: list[int]) -> bool | None:
        """Whether the probabilities behind these tokens are the same by the cache of the first half; None: unknown."""
        if len(ids) < 2:
            return None
        plain, _ = self._asked([ids], 1)
        _, cache = self._asked([ids[: len(ids) // 2]], 1, keeps=True)
        if not hasattr(cache, "batch_repeat_interleave"):
            return False
        reused, _ = self._asked([ids[len(ids) // 2 :]] * 2, 1, cache)
        plain, reused = (one.double().log_softmax(-1) for one in (plain, reused))
        apart = float((plain - reused).abs().max())
        same = apart <= self.rounding * max(1.0, float(plain.abs().max()))
        if not same:
            warn(
                f"`model` gives other log-probabilities (by up to {apart:.2g}) where it goes on behind tokens that it "
                "has read before, so each prompt is read from its beginning",
                ReproducibilityWarning,
            )
        return same

    def _together(self, lengths: Sequence[int]) -> list[list[int]]:
        """Places of rows of equal length, at most `batch_size` together."""
        of_length: dict[int, list[int]] = {}
        for place, length in enumerate(lengths):
            of_length.setdefault(length, []).append(place)
        size = self.batch_size
        return [group[at : at + size] for group in of_length.values() for at in range(0, len(group), size)]

    def _tensor(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        return torch.tensor([list(row) for row in rows], device=next(iter(self.model.parameters())).device)

    def _precision(self) -> Any:
        kind = next(iter(self.model.parameters())).device.type
        return torch.autocast(kind, dtype=torch.bfloat16) if self.lower else nullcontext()


def _common(prompts: Sequence[Prompt]) -> int:
    """Number of tokens that all prompts begin with, and have one more; 0 where that is not worth while."""
    ordered = [list(prompt.ids) for prompt in prompts]
    first, last = min(ordered), max(ordered)
    if first == last:  # of one prompt nothing is read twice
        return 0
    same = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    same = min(same, min(map(len, ordered)) - 1)
    return same if same >= WORTH else 0


def _for_rows(cache: Any, n_rows: int) -> Any:
    """A copy of a cache of one row, or of as many, for so many rows: a pass adds to what it gets."""
    again = copy.deepcopy(cache)
    keys = next((keys for layer in again.layers if (keys := getattr(layer, "keys", None)) is not None), None)
    if keys is not None and len(keys) != n_rows:
        again.batch_repeat_interleave(n_rows)
    return again


def _logs(logits: Any, answers: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """Log-probabilities of the tokens of answers of equal length, by logits (rows, tokens, words)."""
    logits = logits.double()
    targets = torch.tensor([list(answer) for answer in answers], device=logits.device)
    logs = logits.gather(2, targets[:, :, None])[:, :, 0] - logits.logsumexp(2)
    return list(logs.cpu().numpy())
