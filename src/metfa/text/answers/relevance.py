"""`source_relevance`: LRP, or gradient times input, from an answer back to the sources of its prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from metfa._arrays import to_host
from metfa._base.validation import one_of, shown
from metfa.calls.differentiation import weights_frozen
from metfa.calls.guard import model_in_evaluation
from metfa.explainers import lrp
from metfa.text.answers._sources import by_places, checked_sources, grouped
from metfa.text.answers.scorer import NEARLY_ONE, AnswerScorer

__all__ = ["source_relevance"]

GRADIENT = "gradient-x-input"
METHODS = ("attnlrp", "cplrp", GRADIENT)


def source_relevance(
    scorer: AnswerScorer,
    sources: Any,
    *,
    method: Literal["attnlrp", "cplrp", "gradient-x-input"] = "attnlrp",
    groups: Mapping[str, Sequence[Any]] | None = None,
) -> np.ndarray:
    r"""How much of an answer's score one pass back through the model gives to each source of the whole prompt.

    The relevance of a source is the sum over the vectors of its tokens. It needs the weights, and one pass back for
    each answer or span. It has no error bars and says nothing about prompts without some of the sources; see
    `metfa.text.explain_answer` for both. The question, the template, the answer's own tokens and the model's constants
    keep their parts, so that the sources do not add up to the score.

    Parameters
    ----------
    scorer : AnswerScorer
        With a fast tokeniser, which knows where its tokens come from.
    sources : list of str, or dict of str -> str
        The sources, as for `metfa.text.explain_answer`.
    method : {"attnlrp", "cplrp", "gradient-x-input"}
        Rules of `metfa.explainers.LRP`, or the gradient of the score times the vectors. Of a decoder that looks facts
        up, both named the right one of eight in all of 200 prompts, and the gradient in .52.
    groups : dict of str -> list of (int or str), optional
        As for `metfa.text.explain_answer`; the relevance of a group is the sum over its sources.

    Returns
    -------
    ndarray, (answers, sources)
        float64, in the order of the features of `metfa.text.explain_answer`.

    Raises
    ------
    TypeError, ValueError
        For another scorer, a template in whose prompt a source is not found, and models with steps without a rule.

    Notes
    -----
    What is passed back is, for the tokens :math:`y_t` of the answer, :math:`\sum_t z_{y_t} - \sum_k p_{tk} z_{tk}`,
    with the logits z and the probabilities p as constants; its gradient is that of the answer's log-probability S. For
    the score "logit" it is divided by :math:`1 - e^S`, for "mean" by the number of tokens; of a contrast, the relevance
    of the other answer is subtracted.
    """
    if not isinstance(scorer, AnswerScorer):
        raise TypeError(f"`scorer` must be a metfa.text.AnswerScorer, which has the weights, got {shown(scorer)}")
    one_of(method, "method", METHODS)
    row, names = checked_sources(sources)
    of_groups = None if groups is None else by_places(groups, names)
    _, parts = grouped(of_groups, len(row))
    with model_in_evaluation(scorer.network):
        prompt, tokens_of = scorer.prompt_with_places(row)
        found = []
        for ids, pieces in scorer.tokens:
            relevance, sums = _of_tokens(scorer.network, prompt, ids, pieces, method)
            scale = np.ones(len(pieces))
            if scorer.score == "mean":
                scale = np.array([stop - start for start, stop in pieces], dtype=np.float64)
            elif scorer.score == "logit" and scorer.contrast is None:
                scale = np.maximum(-np.expm1(sums), NEARLY_ONE)
            of_sources = np.stack([relevance[:, places].sum(axis=1) for places in tokens_of], axis=1)
            found.append(of_sources / scale[:, None])
    each = np.concatenate(found)
    if scorer.contrast is not None:
        each = each[:-1] - each[-1:]
    return np.stack([each[:, part].sum(axis=1) for part in parts], axis=1)


def _of_tokens(
    model: Any, prompt: list[int], answer: list[int], pieces: list[tuple[int, int]], method: str
) -> tuple[np.ndarray, np.ndarray]:
    """Relevance of each token for each piece of the answer, (pieces, tokens), and the log-probabilities, (pieces,)."""
    ids = torch.tensor([[*prompt, *answer]], device=next(iter(model.parameters())).device)
    network = _Differences(model, ids, len(prompt), pieces)
    with torch.inference_mode(False), torch.enable_grad(), weights_frozen(model):
        vectors = model.get_input_embeddings()(ids).detach()
        sums = network.log_probabilities(vectors)
        if method == GRADIENT:
            entered = vectors.requires_grad_()
            scores = network(entered)[0]
            last = len(pieces) - 1
            gradients = [
                torch.autograd.grad(score, entered, retain_graph=k < last)[0] for k, score in enumerate(scores)
            ]
            relevance = torch.stack([(vectors * gradient).sum(2)[0] for gradient in gradients])
        else:
            explainer = lrp.LRP(network, composite=method, scale=False, channel_axis=2)
            relevance = torch.stack([explainer(vectors, [k])[0][0] for k in range(len(pieces))])
    return to_host(relevance.detach()).astype(np.float64), sums


class _Differences(nn.Module):
    """Vectors of a prompt and an answer -> what is passed back for each piece of the answer, (1, pieces)."""

    def __init__(self, model: Any, ids: torch.Tensor, start: int, pieces: list[tuple[int, int]]) -> None:
        super().__init__()
        self.network, self.ids, self.start, self.pieces = model, ids, start, pieces
        self.training = False

    def _logits(self, vectors: torch.Tensor) -> torch.Tensor:
        """Of the places before the answer's tokens, (1, tokens, words)."""
        return self.network(inputs_embeds=vectors).logits[:, self.start - 1 : -1]

    def log_probabilities(self, vectors: torch.Tensor) -> np.ndarray:
        with torch.no_grad():
            logits = self._logits(vectors).double()
            chosen = logits.gather(2, self.ids[:, self.start :, None])[:, :, 0] - logits.logsumexp(2)
        logs = to_host(chosen[0])
        return np.array([logs[start:stop].sum() for start, stop in self.pieces])

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        vectors = torch.cat([vectors])  # here relevance ends: what is added to vectors is no normalisation of inputs
        logits = self._logits(vectors)
        own = torch.nn.functional.one_hot(self.ids[:, self.start :], logits.shape[2]).to(logits.dtype)
        weights = own - logits.detach().softmax(-1)
        each = (weights[:, :, None] @ logits[:, :, :, None])[:, :, 0, 0]
        return torch.stack([each[:, start:stop].sum(1) for start, stop in self.pieces], 1)
