"""Gradient times input for texts: how far the vector of each word moves the model's log-odds, to first order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch

from metfa._arrays import first_not_finite, to_host
from metfa._base.validation import check_flag, keep
from metfa.calls.differentiation import weights_frozen
from metfa.calls.targets import row_targets
from metfa.text._scaling import scaled_words
from metfa.text._text_model import words_of_rows
from metfa.text.models.embedded import (
    EmbeddedTextModel,
    TokenBatch,
    checked_logits,
    has_several_labels,
    probabilities,
    token_batches,
    torch_module,
)
from metfa.text.subwords import words_from_tokens

__all__ = ["GradientXInput"]


@dataclass(frozen=True)
class GradientXInput:
    r"""Gradient x input of a text model in torch: one signed number a word.

    .. math:: a_w = \sum_{t \in w} e_t \cdot \nabla_{e_t} \log \frac{p_c}{1 - p_c}

    with the vectors :math:`e_t` of the tokens that word w is made of, and the probability :math:`p_c` of the target.
    Tokens of no word (punctuation, special tokens) are dropped.

    The method is that of [1]_. The log-odds is differentiated, not the probability. Both gradients have the same
    direction, but the probability's is p (1 - p) times as long and vanishes in float32 where the model is sure. To get
    the probability's gradient, multiply by p (1 - p); scaled maps are the same. For two classes the log-odds is the
    difference of the logits; for classes that do not exclude each other it is the logit of the class itself.

    A word that the model does not read (see `from_transformers`, ``truncate``) has the score 0, scaled or not.

    Parameters
    ----------
    model : EmbeddedTextModel
        A model from ``metfa.text.load_model`` or ``metfa.text.models.from_transformers``, or your own object with
        `tokenize`, `embed` and `forward_embedded`. If the model gives one score a row, the score itself is
        differentiated.
    scale : bool
        True scales each map to [0, 1] by its smallest and largest value, so evidence against the target is near 0.
        False returns the sums with their signs.

    References
    ----------
    .. [1] Shrikumar, Greenside, Shcherbina, Kundaje, "Not Just a Black Box: Learning Important Features Through
       Propagating Activation Differences", 2016, arXiv:1605.01713.

    Examples
    --------
    >>> from metfa.text import GradientXInput, load_model
    >>> model = load_model("sentiment")
    >>> words, probabilities = GradientXInput(model, scale=False)(["a dull, lifeless film"], target=0)
    >>> words.shape, bool(words[0, 1] > words[0, 3])  # "dull" speaks more for "negative" than "film"
    ((1, 4), True)
    """

    model: Any
    scale: bool = field(default=True, kw_only=True)
    rows_independent: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.model, EmbeddedTextModel):
            missing = [name for name in ("tokenize", "embed", "forward_embedded") if not hasattr(self.model, name)]
            raise TypeError(
                f"`model` must be a text model in torch with methods tokenize, embed and forward_embedded, but "
                f"{type(self.model).__name__} has no {', '.join(missing)}: see metfa.text.models.from_transformers, or "
                "explain any function with metfa.text.LIME"
            )
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
            float64, in [0, 1] with `scale`.
        probabilities : numpy.ndarray, (batch, classes)
            The model's probabilities of the texts; (batch,) for a model with one score a row.
        """
        n_words = len(words_of_rows(inputs)[0])
        words = np.empty((len(inputs), n_words))
        read = np.zeros(words.shape, dtype=bool)
        scores: list[Any] = [None] * len(inputs)
        with torch.inference_mode(False), torch.enable_grad(), weights_frozen(torch_module(self.model)):
            for batch in token_batches(self.model, inputs):
                products, found = self._signed(batch, target, len(inputs))
                for place, row in enumerate(batch.rows):
                    index = batch.word_index[place]
                    words[row] = words_from_tokens(products[place, : len(index)], index, n_words)
                    read[row, [word for word in index if word is not None]] = True
                    scores[row] = found[place]
        bad = first_not_finite(words)
        if bad is not None:
            raise ValueError(f"the attributions of input {bad} are not finite: the model's scores or gradients are not")
        return (scaled_words(words, read) if self.scale else words), np.stack(scores)

    def _signed(self, batch: TokenBatch, target: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Gradient times vector of each token, (rows, length), and the probabilities, both on the host."""
        embeddings = self.model.embed(batch.ids).detach().requires_grad_()
        logits = checked_logits(self.model.forward_embedded(embeddings, batch.mask), len(batch.rows))
        several = has_several_labels(self.model)
        scores = to_host(probabilities(logits, several))
        chosen = _log_odds(logits, _targets(target, scores, batch.rows, n_rows), several)
        if not chosen.requires_grad:
            raise ValueError("`model.forward_embedded` returns logits without a graph: no gradient passes through it")
        (gradient,) = torch.autograd.grad(chosen.sum(), embeddings)
        return to_host((embeddings * gradient).sum(2)), scores


def _targets(target: Any, scores: np.ndarray, rows: list[int], n_rows: int) -> list[Any]:
    """The targets of some rows of a call; given targets are checked against the number of all rows."""
    if target is None:
        return row_targets(None, scores, len(rows))
    targets = row_targets(target, np.broadcast_to(scores[:1], (n_rows, *scores.shape[1:])), n_rows)
    chosen = [targets[row][0] if isinstance(targets[row], tuple) else targets[row] for row in rows]
    if not all(isinstance(entry, int) for entry in chosen):
        raise TypeError("`target` must be a class index, or one for each row")
    return chosen


def _log_odds(logits: torch.Tensor, targets: list[Any], several: bool) -> torch.Tensor:
    """Log-odds of each row's target. It is the logit if `several` labels may hold, or the only score of a row."""
    if logits.ndim == 1:
        return logits
    chosen = torch.nn.functional.one_hot(torch.tensor(targets, device=logits.device), logits.shape[1]).bool()
    if several:
        return logits[chosen]
    return logits[chosen] - logits.masked_fill(chosen, -torch.inf).logsumexp(1)
