"""Batch normalisation folded into the layer before it: the same function up to rounding, in fewer steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from torch.nn.utils.parametrize import is_parametrized

__all__ = ["folded_in_place"]

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def folded_in_place(model: nn.Module, ask: Callable[[], torch.Tensor]) -> tuple[int, float | None]:
    """Fold what can be folded in a module in evaluation mode; returns how many layers are, and None.

    ``ask()`` asks the module about one batch. The first time it shows which layer feeds which other layer, so it does
    not matter how the module is written. The second time it shows whether the scores are the same. If they are not,
    everything is put back, and returned are 0 and the largest difference of the scores.

    A batch normalisation stays if it does not directly follow a convolution or linear layer, if it has no running
    statistics, if the weights of one of the two are computed from others (`torch.nn.utils.parametrize`), or if somebody
    watches one of them by hooks.
    """
    with torch.no_grad():
        expected, pairs = _fed_directly(model, ask)
        before = [(name, model.get_submodule(name)) for pair in pairs for name in pair]
        for layer_name, norm_name in pairs:
            layer, norm = model.get_submodule(layer_name), model.get_submodule(norm_name)
            fuse: Any = fuse_linear_bn_eval if isinstance(layer, nn.Linear) else fuse_conv_bn_eval
            model.set_submodule(layer_name, fuse(layer, norm))
            model.set_submodule(norm_name, nn.Identity().eval())
        error = (ask() - expected).abs().max() if pairs else torch.zeros(())
        if error <= 1e-3 * expected.abs().max():
            return len(pairs), None
        for name, module in before:
            model.set_submodule(name, module)
        return 0, float(error)


def _fed_directly(model: nn.Module, ask: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, list[tuple[str, str]]]:
    """Scores, and pairs (layer, batch normalisation) of names where the layer's output goes straight into the other.

    Only modules that the model calls once are listed.
    """
    made: dict[str, list[torch.Tensor]] = {}
    taken: dict[str, list[torch.Tensor]] = {}
    hooks = []
    for name, module in model.named_modules():
        if is_parametrized(module) or any(getattr(module, kind, None) for kind in HOOKS):
            continue
        if isinstance(module, (*CONVOLUTIONS, nn.Linear)):
            hooks.append(module.register_forward_hook(lambda *a, n=name: made.setdefault(n, []).append(a[2])))
        elif isinstance(module, BATCH_NORMS) and module.running_mean is not None:
            hooks.append(module.register_forward_pre_hook(lambda *a, n=name: taken.setdefault(n, []).append(a[1][0])))
    try:
        scores = ask()
    finally:
        for hook in hooks:
            hook.remove()
    once = {name: outputs[0] for name, outputs in made.items() if len(outputs) == 1}
    return scores, [
        (before, after)
        for after, inputs in taken.items()
        for before, output in once.items()
        if len(inputs) == 1 and inputs[0] is output
    ]
