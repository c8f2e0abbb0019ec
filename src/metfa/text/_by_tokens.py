"""What explainers at the vectors of tokens share: their model, their targets, and the sum over each word's tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from metfa._arrays import first_not_finite
from metfa.calls.differentiation import weights_frozen
from metfa.calls.targets import row_targets
from metfa.text._scaling import scaled_words
from metfa.text._text_model import words_of_rows
from metfa.text.models.embedded import EmbeddedTextModel, TokenBatch, token_batches, torch_module
from metfa.text.subwords import words_from_tokens

__all__ = ["check_embedded", "summed_to_words", "targets_of_rows"]


def check_embedded(model: Any) -> None:
    """Raise unless a text model can be entered at its word vectors."""
    if not isinstance(model, EmbeddedTextModel):
        missing = [name for name in ("tokenize", "embed", "forward_embedded") if not hasattr(model, name)]
        raise TypeError(
            f"`model` must be a text model in torch with methods tokenize, embed and forward_embedded, but "
            f"{type(model).__name__} has no {', '.join(missing)}: see metfa.text.models.from_transformers, or "
            "explain any function with metfa.text.LIME"
        )


def summed_to_words(
    model: EmbeddedTextModel,
    inputs: list[Any],
    explained: Callable[[TokenBatch], tuple[np.ndarray, np.ndarray]],
    *,
    scale: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Attributions (batch, words) and probabilities of texts.

    ``explained(batch)`` gives the attributions of the tokens of some rows, (rows, length), and their probabilities.
    """
    n_words = len(words_of_rows(inputs)[0])
    words = np.empty((len(inputs), n_words))
    read = np.zeros(words.shape, dtype=bool)
    scores: list[Any] = [None] * len(inputs)
    with torch.inference_mode(False), torch.enable_grad(), weights_frozen(torch_module(model)):
        for batch in token_batches(model, inputs):
            tokens, found = explained(batch)
            for place, row in enumerate(batch.rows):
                index = batch.word_index[place]
                words[row] = words_from_tokens(tokens[place, : len(index)], index, n_words)
                read[row, [word for word in index if word is not None]] = True
                scores[row] = found[place]
    bad = first_not_finite(words)
    if bad is not None:
        raise ValueError(f"the attributions of input {bad} are not finite: the model's scores or gradients are not")
    return (scaled_words(words, read) if scale else words), np.stack(scores)


def targets_of_rows(target: Any, scores: Any, rows: list[int], n_rows: int) -> list[Any]:
    """The targets of some rows of a call; given targets are checked against the number of all rows."""
    if target is None:
        return row_targets(None, scores, len(rows))
    targets = row_targets(target, np.broadcast_to(scores[:1], (n_rows, *scores.shape[1:])), n_rows)
    chosen = [targets[row][0] if isinstance(targets[row], tuple) else targets[row] for row in rows]
    if not all(isinstance(entry, int) for entry in chosen):
        raise TypeError("`target` must be a class index, or one for each row")
    return chosen
