"""Text models that gradients can pass through: what such a model must have, and how its rows are batched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from metfa._arrays import to_host
from metfa.calls.answers import checked_scores
from metfa.calls.guard import model_in_evaluation

__all__ = [
    "EmbeddedTextModel",
    "TokenBatch",
    "checked_logits",
    "has_several_labels",
    "probabilities",
    "probabilities_of_rows",
    "row_by_row",
    "token_batches",
    "torch_module",
]

# Rows of a batch times its longest row. This limits the memory of a pass for any texts, also of backward passes of
# large encoders. Larger batches gained little on a CPU.
TOKENS_AT_ONCE = 2**12


@runtime_checkable
class EmbeddedTextModel(Protocol):
    """A text classifier in torch that can be entered at its word vectors; any object with these three methods.

    If it is callable too, list of rows -> probabilities, it is a text model for everything else in `metfa.text`.
    ``load_model`` and ``from_transformers`` return such models. If the object is not a `torch.nn.Module` itself, its
    attribute ``module`` must hold its network, which is put into evaluation mode and put back. If it has an attribute
    ``multi_label`` that is true, classes do not exclude each other: probabilities are then sigmoids of the logits, not
    their softmax.

    Rows of one call have equally many tokens, so that nothing depends on how a network treats what fills up short rows.
    An attribute ``padded`` that is true allows rows of other lengths in one call, where the network does not read
    what is behind a row's tokens. An attribute ``alone`` that is true means one row a call.
    """

    def tokenize(self, row: Any) -> tuple[Sequence[int], Sequence[int | None]]:
        """Token ids of a row (a text, or a list of tokens), and for each the index of its word in the row.

        The index counts the words of the row as ``metfa.text`` cuts them; None for a token that belongs to no word,
        such as punctuation or a special token. The model does not read a word without tokens.
        """
        ...

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Word vectors (batch, length, size) of token ids (batch, length)."""
        ...

    def forward_embedded(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Logits (batch, classes) of word vectors, or one score a row, (batch,).

        `mask` (batch, length) is true for a row's tokens, which come first. It is true everywhere if rows are not
        `padded`; otherwise the vectors behind a row's tokens (of id 0) must not change the result.
        """
        ...


@dataclass(frozen=True)
class TokenBatch:
    """Some rows of a call, filled up to one length.

    Attributes
    ----------
    rows : list of int
        Which rows of the call they are.
    ids, mask : torch.Tensor, (batch, length)
    word_index : list of list of (int or None)
        The word of each token; fill tokens are not listed.
    """

    rows: list[int]
    ids: torch.Tensor
    mask: torch.Tensor
    word_index: list[Sequence[int | None]]


def torch_module(model: Any) -> Any:
    """The network of a text model: its `module`, or itself."""
    return getattr(model, "module", model)


def token_batches(model: EmbeddedTextModel, rows: Sequence[Any]) -> Iterator[TokenBatch]:
    """All rows, in batches on the model's device of at most `TOKENS_AT_ONCE` tokens or one row.

    Rows of a batch have equal lengths, or similar ones if the model's rows may be `padded`.
    """
    tokenized = [model.tokenize(row) for row in rows]
    sizes = [len(ids) for ids, _ in tokenized]
    device = _device(torch_module(model))
    alone, padded = bool(getattr(model, "alone", False)), bool(getattr(model, "padded", False))
    chosen: list[int] = []
    for row in sorted(range(len(rows)), key=sizes.__getitem__):
        apart = alone or not (padded or sizes[row] == sizes[chosen[-1]]) if chosen else False
        if apart or (chosen and (len(chosen) + 1) * sizes[row] > TOKENS_AT_ONCE):
            yield _batch(chosen, tokenized, device)
            chosen = []
        chosen.append(row)
    yield _batch(chosen, tokenized, device)


def _batch(chosen: list[int], tokenized: list[Any], device: Any) -> TokenBatch:
    ids = np.zeros((len(chosen), max(len(tokenized[chosen[-1]][0]), 1)), dtype=np.int64)
    mask = np.zeros(ids.shape, dtype=bool)
    for place, row in enumerate(chosen):
        tokens = tokenized[row][0]
        ids[place, : len(tokens)] = tokens
        mask[place, : len(tokens)] = True
    return TokenBatch(
        chosen,
        torch.from_numpy(ids).to(device),
        torch.from_numpy(mask).to(device),
        [tokenized[row][1] for row in chosen],
    )


def _device(module: Any) -> Any:
    parameter = next(module.parameters(), None) if isinstance(module, torch.nn.Module) else None
    return None if parameter is None else parameter.device


def checked_logits(logits: Any, n_rows: int) -> torch.Tensor:
    """What `forward_embedded` returned, if it is logits of several classes, or one score a row; raises otherwise."""
    if not isinstance(logits, torch.Tensor):
        raise TypeError(f"`model.forward_embedded` must return a torch.Tensor, got {type(logits).__name__}")
    checked_scores(logits, n_rows)
    if logits.ndim != 1 and (logits.ndim != 2 or logits.shape[1] < 2):
        raise ValueError(
            "`model.forward_embedded` must return logits (batch, classes) of at least two classes, or one score a "
            f"row, (batch,), got shape {tuple(logits.shape)}"
        )
    return logits


def has_several_labels(model: Any) -> bool:
    """Whether the classes of a text model do not exclude each other."""
    return bool(getattr(model, "multi_label", False))


def probabilities(logits: torch.Tensor, several: bool = False) -> torch.Tensor:
    """Probabilities of logits (batch, classes) or (batch,): sigmoids if `several` labels may hold, else the softmax.

    Without `several`, one score a row stays as it is.
    """
    if several:
        return logits.sigmoid()
    return logits if logits.ndim == 1 else logits.softmax(1)


def probabilities_of_rows(model: EmbeddedTextModel, rows: Any) -> np.ndarray:
    """Probabilities (batch, classes) of a list of rows, on the host."""

    def asked(batch: TokenBatch) -> torch.Tensor:
        logits = model.forward_embedded(model.embed(batch.ids), batch.mask)
        return probabilities(checked_logits(logits, len(batch.rows)), has_several_labels(model))

    return row_by_row(model, rows, asked)


def row_by_row(model: EmbeddedTextModel, rows: Any, function: Callable[[TokenBatch], torch.Tensor]) -> np.ndarray:
    """Results of `function` for each row, in the rows' order, on the host; the model is in evaluation mode."""
    if not isinstance(rows, list | tuple):
        raise TypeError(f"a list of rows (texts, or lists of tokens) is needed, got {type(rows).__name__}")
    if not rows:
        raise ValueError("the list of rows is empty")
    found: list[Any] = [None] * len(rows)
    with torch.no_grad(), model_in_evaluation(torch_module(model)):
        for batch in token_batches(model, rows):
            for row, value in zip(batch.rows, to_host(function(batch)), strict=True):
                found[row] = value
    return np.stack(found)
