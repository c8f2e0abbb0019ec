"""LeGrad: in each layer, how much more attention to a patch would raise the class score read from that layer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import nn

from metfa._arrays import to_host, widen
from metfa._base.validation import check_flag, keep
from metfa.calls.answers import answered, checked_scores
from metfa.calls.attention_pass import AttentionPass, first_of
from metfa.calls.differentiation import index_of, of_indices
from metfa.calls.held import asks_a_model, hold, model_itself, rows_as_the_model
from metfa.calls.row_dependence import distance, explained_by_rounding
from metfa.calls.targets import row_targets
from metfa.explainers._attended import INSTEAD, Attended, check_patch_grid, explained, with_heads

__all__ = ["LeGrad"]


@asks_a_model
@dataclass(frozen=True)
class LeGrad:
    r"""LeGrad (Bousselham et al. 2025): the gradient of each layer's own class score by its attention weights.

    Behind block l the model's last steps (its final normalisation and its classifier) read a class score
    :math:`s^l` from the mean of all tokens. The map is the mean over the layers of
    :math:`\mathrm{mean}_{h,q} (\partial s^l / \partial A^l)^+`, for each patch as a key: heads and queries are
    averaged, and tokens without a place are left out.

    Parameters
    ----------
    called : torch.nn.Module or Called
        As for `AttentionRollout`, a module whose blocks follow one another, each with one attention.
    patch_grid : pair of int, optional
        As for `AttentionRollout`.
    scale : bool
        Scale each map to [0, 1] by its smallest and largest value (the authors' convention). False: the mean itself.

    Notes
    -----
    The mean of *all* tokens is read, also in models that classify by a class token, as in torch-cam's code
    (``torchcam/methods/gradient.py``, 0.5.0). The last steps are the model's own: the model runs once more on one row,
    with the means of all layers in place of the last block's output. Whether they depend on that output alone is
    checked in the same pass by the model's own scores; a model in which they do not is refused.

    References
    ----------
    W. Bousselham, A. Boggust, S. Chaybouti, H. Strobelt and H. Kuehne, "LeGrad: An Explainability Method for Vision
    Transformers via Feature Formation Sensitivity", ICCV 2025, section 3.

    Examples
    --------
    >>> import torch
    >>> from torchvision.models import VisionTransformer
    >>> from metfa.explainers import LeGrad
    >>> model = VisionTransformer(32, 8, 2, 2, 8, 16, num_classes=4).eval()
    >>> head = torch.nn.init.normal_(model.heads.head.weight)  # torchvision makes it 0
    >>> maps, scores = LeGrad(model)(torch.rand(2, 3, 32, 32), target=1)
    >>> maps.shape, scores.shape
    (torch.Size([2, 32, 32]), torch.Size([2, 4]))
    """

    called: Any
    patch_grid: tuple[int, int] | None = field(default=None, kw_only=True)
    scale: bool = field(default=True, kw_only=True)

    model: ClassVar[property] = model_itself
    rows_independent: ClassVar[property] = rows_as_the_model
    differentiable = True

    def __post_init__(self) -> None:
        hold(self, at_layers="LeGrad")
        if not isinstance(self.model, nn.Module):
            raise TypeError(
                f"`model` must be a torch.nn.Module, got {type(self.model).__name__}: LeGrad looks at its blocks"
            )
        keep(self, patch_grid=check_patch_grid(self.patch_grid), scale=check_flag(self.scale, "scale"))

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Maps and scores of a batch.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, channels, height, width)
            Floating point. Where they require a gradient, the maps are differentiable in them.
        target : int, sequence or tensor, optional
            Class of each row; None: the predicted one.

        Returns
        -------
        maps : torch.Tensor, (batch, height, width)
            float32 (or wider), in [0, 1] with `scale`.
        scores : torch.Tensor, (batch, classes)
            The model's scores, detached.

        Raises
        ------
        ValueError
            If no attention is seen, if it is not of all tokens to all tokens, if the grid of patches is not found, or
            if the model is no sequence of blocks.
        """
        return explained(self, inputs, target, _sensitivities)


def _sensitivities(seen: Attended) -> torch.Tensor:
    names = block_names(seen.forward)
    blocks = [_output_of(seen, name) for name in names]
    means = [block.mean(1) for block in blocks]
    by_mean = _gradient_of_last_steps(seen, names[-1], torch.stack(means), blocks[-1])
    layers = []
    for mean, upstream, weights in zip(means, by_mean, seen.weights, strict=True):
        (gradient,) = torch.autograd.grad(mean, weights, upstream, retain_graph=True, create_graph=seen.differentiable)
        layers.append(with_heads(gradient).clamp(min=0).mean((1, 2)))
    return torch.stack(layers).mean(0)


def block_names(forward: AttentionPass) -> list[str]:
    """Names of the modules that hold one attention each and lie beside one another."""
    paths = [call.place.split(".") for call in forward.calls]
    same = 0
    while len(paths) > 1 and all(len(path) > same + 1 and path[same] == paths[0][same] for path in paths):
        same += 1
    if len(paths) == 1:
        same = _depth_of_a_list(forward.model, paths[0])
    names = [".".join(path[: same + 1]) for path in paths]
    if len(set(names)) < len(names) or any(len(forward.outputs.get(name, ())) != 1 for name in names):
        raise ValueError(
            "LeGrad needs blocks that follow one another, each with one attention and called once, that give (batch, "
            f"tokens, features); attention was seen in {', '.join(map(str, forward.calls))}; use "
            f"`GradientRollout(model)`, or {INSTEAD}"
        )
    return names


def _depth_of_a_list(model: nn.Module, path: list[str]) -> int:
    """How deep a block lies if there is only one: it is an entry of a list."""
    for depth in range(len(path)):
        if isinstance(model.get_submodule(".".join(path[:depth])), nn.ModuleList | nn.Sequential):
            return depth
    return 0


def _output_of(seen: Attended, name: str) -> torch.Tensor:
    (output,) = seen.forward.outputs[name]
    expected = len(seen.scores), seen.weights[0].shape[-1]
    if tuple(output.shape[:2]) != expected:
        raise ValueError(
            f"LeGrad: the block {name!r} gives shape {tuple(output.shape)}, and not one vector for each of the "
            f"{expected[1]} tokens of {expected[0]} inputs; use `GradientRollout(model)`"
        )
    return output


def _gradient_of_last_steps(seen: Attended, last: str, means: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Gradient of each layer's class score by the mean of its tokens, (layers, batch, features)."""
    layers, rows, _ = means.shape
    n_tokens = tokens.shape[1]
    repeated = means.flatten(0, 1)[:, None].expand(-1, n_tokens, -1)
    block = seen.called.model.get_submodule(last)
    other = seen.inputs[:1].detach().flip(-1) / 2  # another image: nothing of it may reach the scores
    with _output_replaced(block, torch.cat([repeated, tokens[-1:].detach()])), _last_steps_alone(last):
        n = layers * rows + 1
        scores = checked_scores(answered(seen.called.model, seen.called.laid_out(other)), n, seen.called.model)
        again, known = (to_host(widen(one.detach())) for one in (scores[-1], seen.scores[-1]))
        if distance(again, known) > explained_by_rounding(seen.called) / 20:  # these kernels saw the same numbers
            raise ValueError("other scores")
    targets = row_targets(seen.target, to_host(widen(seen.scores.detach())), rows)
    chosen = scores[:-1]
    if scores.ndim > 1:
        chosen = of_indices(chosen, index_of(targets, scores.device).repeat(layers, 1))
    (gradient,) = torch.autograd.grad(chosen.sum(), means, retain_graph=True, create_graph=seen.differentiable)
    return gradient


@contextmanager
def _last_steps_alone(last: str) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError) as error:
        if "out of memory" in str(error):
            raise
        raise ValueError(
            f"LeGrad: the scores of the model do not depend on the output of its last block {last!r} alone, so no "
            f"class score can be read from the other blocks ({error}); use `GradientRollout(model)`"
        ) from error


@contextmanager
def _output_replaced(module: nn.Module, output: torch.Tensor) -> Iterator[None]:
    """A module that gives this tensor, or has it as the first of several things that it gives."""

    def replace(_: nn.Module, __: Any, given: Any) -> Any:
        return output if first_of(given) is given else type(given)([output, *given[1:]])

    handle = module.register_forward_hook(replace)
    try:
        yield
    finally:
        handle.remove()
