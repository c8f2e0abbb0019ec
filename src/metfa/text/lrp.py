"""LRP of texts: relevance is passed back to the vectors of the tokens, and summed to words."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from metfa._arrays import to_host
from metfa._base.one_line import one_line
from metfa._base.other_words import our_words
from metfa._base.validation import check_flag, keep, one_of, positive_int
from metfa.calls.differentiation import weights_frozen
from metfa.explainers import lrp
from metfa.explainers.shares import Shares
from metfa.text._by_tokens import check_embedded, summed_to_words, targets_of_rows
from metfa.text._text_model import words_of_rows
from metfa.text.models.embedded import (
    TokenBatch,
    checked_logits,
    has_several_labels,
    probabilities,
    token_batches,
    torch_module,
)

__all__ = ["LRP"]


@our_words
@dataclass(frozen=True)
class LRP:
    r"""Layer-wise relevance propagation through a transformer to the words of a text: one signed number a word.

    The rules are those of `metfa.explainers.LRP`. The relevance of a word is the sum over the vectors of its tokens.
    Tokens of no word (punctuation, special tokens) keep theirs, and so do positions, biases and, in "attnlrp", the
    softmax of attention: the words do not add up to the score. `shares` says what each gets.

    What is explained is a difference of logits, because a number that is added to all of them changes no probability:

    .. math:: z_c - \sum_{k \neq c} w_k z_k

    with the target's logit :math:`z_c`. The weights :math:`w_k` are the probabilities of the other classes among
    themselves, as constants. So the gradient is that of the log-odds :math:`\log (p_c / (1 - p_c))`, and for two
    classes the difference is the log-odds itself. `against` names one other class instead. For classes that do not
    exclude each other it is the logit of the class, and for a model with one score a row the score.

    Parameters
    ----------
    model : EmbeddedTextModel
        A model from `metfa.text.from_transformers`: an encoder or a decoder with a classifier. Recurrent networks are
        refused; `GradientXInput` works there.
    composite : {"attnlrp", "cplrp"}
        "attnlrp" is its authors' choice for decoders of language. "cplrp" gives the weights of attention no relevance.
    against : int, optional
        Class to which the target is compared. None: all others, as in the log-odds.
    scale : bool
        True scales each map to [0, 1] by its smallest and largest value, so evidence against the target is near 0.
        False returns the sums with their signs.

    References
    ----------
    .. [1] Achtibat et al., "AttnLRP: Attention-Aware Layer-Wise Relevance Propagation for Transformers", 2024,
       arXiv:2402.05602.
    .. [2] Ali et al., "XAI for Transformers: Better Explanations through Conservative Propagation", 2022,
       arXiv:2202.07304.
    """

    model: Any
    composite: Literal["attnlrp", "cplrp"] = field(default="attnlrp", kw_only=True)
    against: int | None = field(default=None, kw_only=True)
    scale: bool = field(default=True, kw_only=True)
    rows_independent: ClassVar[bool] = True

    def __repr__(self) -> str:
        return one_line(self)

    def __post_init__(self) -> None:
        check_embedded(self.model)
        one_of(self.composite, "composite", ("attnlrp", "cplrp"))
        if self.against is not None:
            keep(self, against=positive_int(self.against, "against", 0))
        keep(self, scale=check_flag(self.scale, "scale"))

    @property
    def signed(self) -> bool:
        """Whether scores keep their signs: a score above 0 speaks for the class."""
        return not self.scale

    def __call__(self, inputs: list[Any], target: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Attributions and probabilities of a batch of texts.

        Parameters
        ----------
        inputs : list of str, or of lists of str
            Texts or lists of tokens, all with equally many words.
        target : int or sequence, optional
            Class of each row; None: the predicted one.

        Returns
        -------
        attributions : numpy.ndarray, (batch, words)
            float64, in [0, 1] with `scale`. A word that the model does not read has 0.
        probabilities : numpy.ndarray, (batch, classes)
            The model's probabilities of the texts; (batch,) for a model with one score a row.

        Raises
        ------
        ValueError
            If the model cannot be entered at its word vectors (BART, T5), or has steps without a rule (each is named).
        """

        def explained(batch: TokenBatch) -> tuple[np.ndarray, np.ndarray]:
            vectors, scores, chosen = self._asked(batch, target, len(inputs))
            relevance, _ = self._of_vectors(vectors, chosen)
            return to_host(relevance).astype(np.float64), scores

        return summed_to_words(self._in_equal_rows, inputs, explained, scale=self.scale)

    def shares(self, inputs: list[Any], target: Any = None) -> Shares:
        """What the vectors of all tokens, and the model's own constants, contribute to the difference of each row.

        Parameters
        ----------
        inputs, target
            As in a call.

        Returns
        -------
        Shares
            Of all rows. Its ``inputs`` include the tokens of no word.
        """
        words_of_rows(inputs)  # checks them
        found: list[Any] = [None] * len(inputs)
        with torch.inference_mode(False), torch.enable_grad(), weights_frozen(torch_module(self.model)):
            for batch in token_batches(self._in_equal_rows, inputs):
                vectors, _, chosen = self._asked(batch, target, len(inputs))
                for place, row in enumerate(batch.rows):
                    one = chosen if chosen is None else chosen[place]
                    found[row] = self._of_vectors.shares(vectors[place : place + 1], one)
        return Shares.joined(found)

    def _asked(self, batch: TokenBatch, target: Any, n_rows: int) -> tuple[torch.Tensor, np.ndarray, Any]:
        """Vectors of the tokens, the texts' probabilities, and the column of the difference for each row."""
        self._of_vectors.model.training = torch_module(self.model).training
        vectors = self.model.embed(batch.ids).detach()
        with torch.no_grad():
            logits = checked_logits(self.model.forward_embedded(vectors, batch.mask), len(batch.rows))
        scores = to_host(probabilities(logits, has_several_labels(self.model)))
        targets = targets_of_rows(target, scores, batch.rows, n_rows)
        if logits.ndim == 1:
            return vectors, scores, None
        if self.against is not None and self.against >= logits.shape[1]:
            raise ValueError(f"`against` must be in 0..{logits.shape[1] - 1}, got {self.against}")
        if self.against in targets:
            raise ValueError(f"`against` must be another class than the target, got {self.against} for both")
        return vectors, scores, targets

    @cached_property
    def _in_equal_rows(self) -> Any:
        """The model as it is asked here: rows of one call are equally long."""
        model = self.model
        return SimpleNamespace(
            tokenize=model.tokenize,
            embed=model.embed,
            forward_embedded=model.forward_embedded,
            module=torch_module(model),
            alone=getattr(model, "alone", False),
        )

    @cached_property
    def _of_vectors(self) -> lrp.LRP:
        """The explainer of word vectors (batch, length, size)."""
        network = _Differences(self.model, self.against)
        return lrp.LRP(network, composite=self.composite, scale=False, channel_axis=2)


class _Differences(nn.Module):
    """Word vectors -> the difference of each class's logit and those of the others, (batch, classes)."""

    def __init__(self, model: Any, against: int | None) -> None:
        super().__init__()
        self.network, self.text_model, self.against = torch_module(model), model, against
        self.training = False

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        vectors = torch.cat([vectors])  # here relevance ends: what is added to vectors is no normalisation of inputs
        mask = torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device)
        logits = checked_logits(self.text_model.forward_embedded(vectors, mask), len(vectors))
        if logits.ndim == 1 or has_several_labels(self.text_model):
            return logits
        if self.against is not None:
            return logits - logits[:, self.against : self.against + 1]
        others = logits.detach()[:, None].expand(-1, logits.shape[1], -1)
        own = torch.eye(logits.shape[1], dtype=torch.bool, device=logits.device)
        weights = others.masked_fill(own, -torch.inf).softmax(-1)
        return logits - (weights @ logits[:, :, None])[:, :, 0]
