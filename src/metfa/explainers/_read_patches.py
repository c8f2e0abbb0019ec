"""Whether a model reads the patches behind a layer of tokens, or a class token alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from metfa.explainers._layers import Reshaping, Watch, watched

__all__ = ["require_patches_read"]


def require_patches_read(watch: Watch, ask: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor) -> None:
    r"""Raise where a layer gives tokens of which the model reads none that lies in the image.

    Behind the last attention of a model that classifies by a class token, no patch reaches the scores. Gradients there
    are exactly 0, and what the patches hold was never trained to mean anything. So the first row is asked about again
    without the patches of this layer: its scores must change.

    Parameters
    ----------
    watch : Watch
        A forward pass that is over.
    ask : callable
        Batch -> scores.
    inputs : torch.Tensor, (batch, channels, \*axes)
        The inputs of that pass.
    """
    output, module = watch.output, watch.module
    if not isinstance(output, torch.Tensor) or output.ndim != 3 or module is None:
        return
    reshape = watch.reshaping()
    patches = None if reshape is None else _patches(reshape, output)
    if patches is None:
        return

    def hide(_: Any, __: Any, given: torch.Tensor) -> torch.Tensor:
        return given.index_fill(1, patches, 0)

    scores = ask(inputs[:1].clone())
    handle = module.register_forward_hook(hide)
    try:
        without = ask(inputs[:1].clone())
    finally:
        handle.remove()
    if torch.equal(scores, without):
        raise ValueError(
            f"`layer` {watch.name} gives tokens of shape {tuple(output.shape)} of which the model reads no patch: its "
            "scores are those of the tokens without a place in the image, such as a class token, and gradients at the "
            f"patches are exactly 0; {_instead(watch, ask, inputs)}"
        )


def _patches(reshape: Reshaping, output: torch.Tensor) -> torch.Tensor | None:
    """Tokens that lie in the image, those that are in the feature map; None where that cannot be seen."""
    n = output.shape[1]
    numbers = torch.arange(n, device=output.device, dtype=torch.float64)
    kept = reshape(numbers[None, :, None].expand(len(output), -1, output.shape[2])).unique()
    known = bool(((kept == kept.round()) & (kept >= 0) & (kept < n)).all())
    return kept.long() if known else None


def _instead(watch: Watch, ask: Any, inputs: torch.Tensor) -> str:
    with watched(watch.model, size=inputs.shape[2:]) as other:
        ask(inputs[:1].clone())
    try:
        other.feature_map(1)
    except ValueError:
        return "name a layer before the last attention"
    if other.module is watch.module:
        return "name another layer"
    return f"take a layer before the last attention, such as `layer={other.name}`"
