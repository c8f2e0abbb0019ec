"""Gradient times input for texts: how far the vector of each word moves the model's log-odds, to first order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch

from metfa._arrays import to_host
from metfa._base.one_line import one_line
from metfa._base.other_words import our_words
from metfa._base.validation import check_flag, keep
from metfa.text._by_tokens import check_embedded, summed_to_words, targets_of_rows
from metfa.text.models.embedded import TokenBatch, checked_logits, has_several_labels, probabilities

__all__ = ["GradientXInput"]


@our_words
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

    def __repr__(self) -> str:
        return one_line(self)

    def __post_init__(self) -> None:
        check_embedded(self.model)
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
        return summed_to_words(
            self.model, inputs, lambda batch: self._signed(batch, target, len(inputs)), scale=self.scale
        )

    def _signed(self, batch: TokenBatch, target: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Gradient times vector of each token, (rows, length), and the probabilities, both on the host."""
        embeddings = self.model.embed(batch.ids).detach().requires_grad_()
        logits = checked_logits(self.model.forward_embedded(embeddings, batch.mask), len(batch.rows))
        several = has_several_labels(self.model)
        scores = to_host(probabilities(logits, several))
        chosen = _log_odds(logits, targets_of_rows(target, scores, batch.rows, n_rows), several)
        if not chosen.requires_grad:
            raise ValueError("`model.forward_embedded` returns logits without a graph: no gradient passes through it")
        (gradient,) = torch.autograd.grad(chosen.sum(), embeddings)
        return to_host((embeddings * gradient).sum(2)), scores


def _log_odds(logits: torch.Tensor, targets: list[Any], several: bool) -> torch.Tensor:
    """Log-odds of each row's target. It is the logit if `several` labels may hold, or the only score of a row."""
    if logits.ndim == 1:
        return logits
    chosen = torch.nn.functional.one_hot(torch.tensor(targets, device=logits.device), logits.shape[1]).bool()
    if several:
        return logits[chosen]
    return logits[chosen] - logits.masked_fill(chosen, -torch.inf).logsumexp(1)
