"""How a transformer has to be asked, found out by asking it about two short rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

__all__ = ["HowAsked", "probed"]


class HowAsked(NamedTuple):
    """How a network has to be asked.

    Attributes
    ----------
    alone : bool
        Whether it gets one row a call: it refuses more, or a row's answer depends on the other rows.
    no_vectors : str or None
        Why it cannot be entered at its word vectors; None if it can.
    """

    alone: bool
    no_vectors: str | None


def probed(network: Any, rows: torch.Tensor, answer: Callable[..., torch.Tensor]) -> HowAsked:
    """Ask a network about two rows of equal length, together, alone, and by their word vectors.

    Parameters
    ----------
    network : torch.nn.Module
        Of transformers.
    rows : torch.Tensor, (2, length)
        Ids of sub-words.
    answer : callable
        ``answer(input_ids=...)`` or ``answer(inputs_embeds=...)`` -> what the network says to each row.
    """
    alone = torch.cat([answer(input_ids=rows[:1]), answer(input_ids=rows[1:])])
    try:
        together = _same(answer(input_ids=rows), alone)
    except (ValueError, RuntimeError):  # "Cannot handle batch sizes > 1 if no padding token is defined."
        together = False
    return HowAsked(not together, _no_vectors(network, rows[:1], answer, alone[:1]))


def _no_vectors(
    network: Any, row: torch.Tensor, answer: Callable[..., torch.Tensor], expected: torch.Tensor
) -> str | None:
    if "inputs_embeds" not in inspect.signature(network.forward).parameters:
        return "it takes no `inputs_embeds`"
    try:
        found = answer(inputs_embeds=network.get_input_embeddings()(row))
    except (NotImplementedError, ValueError, TypeError, RuntimeError) as error:
        return f"it refuses them: {error!s:.120}"
    return None if _same(found, expected) else "its answer to the vectors is not its answer to the text"


def _same(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two answers differ by no more than kernels' rounding; strict, because a false alarm only costs time.

    It is 256 steps of the precision (3e-5 in float32), relative to the largest answer. In half precision it is the root
    of the step, where 256 steps would be more than the answer itself.
    """
    step = torch.finfo(expected.dtype).eps
    allowed = min(256 * step, step**0.5) * expected.abs().max()
    return found.shape == expected.shape and bool((found - expected).abs().max() <= allowed)
