"""The paper's recurrent network: a bidirectional LSTM over words, and two dense layers."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

__all__ = ["PADDING", "UNKNOWN", "BiLSTM"]

PADDING, UNKNOWN = 0, 1  # ids of the two entries that are no words


class BiLSTM(nn.Module):
    """Word vectors, a bidirectional LSTM, the maximum over the words, two dense layers; with random weights.

    The MeTFA paper explains "a bidirectional LSTM with two dense layers" (toxic comments, IMDb reviews) but gives no
    sizes: the sizes are metfa's.

    Parameters
    ----------
    n_tokens : int
        Entries of the vocabulary, padding (0) and unknown (1) among them.
    n_classes : int
    embedding_size, n_units, n_hidden : int
        Length of a word's vector, units of the LSTM on each side, and width of the first dense layer.
    dropout : float
        Share of entries dropped in training, of the word vectors and of both dense layers' inputs.
    """

    embedding: nn.Embedding
    lstm: nn.LSTM
    hidden: nn.Linear
    output: nn.Linear
    dropout: nn.Dropout

    def __init__(
        self,
        n_tokens: int,
        n_classes: int = 2,
        *,
        embedding_size: int = 64,
        n_units: int = 64,
        n_hidden: int = 32,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, embedding_size, padding_idx=PADDING)
        self.lstm = nn.LSTM(embedding_size, n_units, batch_first=True, bidirectional=True)
        self.hidden = nn.Linear(2 * n_units, n_hidden)
        self.output = nn.Linear(n_hidden, n_classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits (batch, n_classes) of token ids (batch, length), each row filled up with `PADDING`."""
        return self.forward_embedded(self.embedding(ids), ids != PADDING)

    def forward_embedded(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Logits of word vectors (batch, length, embedding_size); `mask` is true for each row's tokens, the first ones.

        Vectors behind a row's tokens are never read. A row without tokens is read as one padding vector.
        """
        lengths = mask.sum(1).clamp(min=1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(embeddings), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        with self._differentiable(embeddings):
            states, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        behind = torch.arange(states.shape[1], device=states.device) >= lengths[:, None]
        pooled = states.masked_fill(behind[..., None], -torch.inf).amax(1)
        return self.output(self.dropout(torch.relu(self.hidden(self.dropout(pooled)))))

    def _differentiable(self, embeddings: torch.Tensor) -> Any:
        """Gradients in evaluation mode: cuDNN's LSTM has no backward pass there; torch's own has one."""
        needed = embeddings.is_cuda and not self.training and torch.is_grad_enabled()
        return torch.backends.cudnn.flags(enabled=False) if needed else nullcontext()
