"""The parts of a model that relevance can pass, and the error that names all others."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn.modules import batchnorm, dropout, padding

__all__ = ["MOVING_FUNCTIONS", "check_layers", "distributes", "linear_types", "refuse", "refuse_functions"]

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)
# Relevance follows the gradient through what only selects, moves or copies values; batch normalisation passes it on.
MOVING = (
    nn.Identity, nn.ReLU, nn.Flatten, nn.Unflatten, nn.PixelShuffle, nn.PixelUnshuffle, nn.ChannelShuffle,
    nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d,
    batchnorm._BatchNorm, dropout._DropoutNd,
    padding._ConstantPadNd, padding._ReflectionPadNd, padding._ReplicationPadNd,
)  # fmt: skip
MOVING_FUNCTIONS = {
    "relu", "reshape", "view", "view_as", "reshape_as", "flatten", "unflatten", "ravel", "permute", "transpose",
    "swapaxes", "swapdims", "movedim", "moveaxis", "t", "squeeze", "unsqueeze", "cat", "concat", "concatenate", "stack",
    "hstack", "vstack", "chunk", "split", "split_with_sizes", "tensor_split", "unbind", "getitem", "narrow", "select",
    "index_select", "pad", "contiguous", "clone", "to", "type", "type_as", "float", "double", "get", "expand",
    "expand_as", "broadcast_to", "broadcast_tensors", "flip", "roll", "pixel_shuffle", "pixel_unshuffle",
    "channel_shuffle", "max", "amax", "maximum", "max_pool1d", "max_pool2d", "max_pool3d", "max_pool1d_with_indices",
    "max_pool2d_with_indices", "max_pool3d_with_indices", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout",
}  # fmt: skip
TRANSFORMERS = ("attention", "layernorm", "layer_norm", "rmsnorm", "rms_norm", "gelu", "softmax")
SILU = "write `x * torch.sigmoid(x)` as `torch.nn.functional.silu(x)`"
POWER = "write `x**2` as `x * x`, and `(x + eps)**-0.5` as `torch.rsqrt(x + eps)`"
ROOT = "write a division by a root, not a product with its inverse"
INSTEAD = {  # of "attnlrp" and "cplrp": how to write what has no rule so that it has one
    "sigmoid": SILU, "glu": "`glu` has a sigmoid, which is not 0 at 0", "pow": POWER,
    "square": POWER, "sqrt": ROOT, "exp": "write an attention's weights by `torch.softmax`",
    "batch_norm": "give batch normalisation its running statistics",
    "instance_norm": "write `instance_norm` by `group_norm`",
    "log_softmax": "LRP starts at logits: give the model without it",
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), "metfa.text.GradientXInput works on recurrent networks"),
    "setitem": "write `x[...] = y` by `torch.where` or `torch.cat`",
}  # fmt: skip


def distributes(composite: Any) -> bool:
    """Whether a composite has rules that pass relevance through layers; some only change the gradient at ReLUs."""
    return composite.module_map({}, "", nn.Linear(1, 1, device="meta")) is not None


def check_layers(model: nn.Module, composite: Any) -> None:
    """Raise if relevance cannot pass some layers; the error names each."""
    if not distributes(composite):
        return
    context: dict[Any, Any] = {}
    found = []
    for name, module in model.named_modules():
        kind = type(module).__name__
        ruled = composite.module_map(context, name, module) is not None
        if isinstance(module, linear_types()) and "weight" not in module._parameters:
            found.append((f"{kind} with a computed weight (remove the parametrisation)", name))
        elif not ruled and _is_of_torch(module) and not isinstance(module, (*CONTAINERS, *MOVING)):
            found.append((kind, name))
    refuse(found)


def refuse(found: list[tuple[str, str]]) -> None:
    """Raise if there is any (kind, dotted name of the place) that has no rule."""
    if not found:
        return
    shown = _shown(found)
    hint = " (LRP starts at logits: give the model without its softmax)" if "softmax" in shown.lower() else ""
    of_transformers = any(part in shown.lower() for part in TRANSFORMERS)
    other = ', or for a transformer write `composite="cplrp"` or `composite="attnlrp"`' if of_transformers else ""
    raise ValueError(
        f"`model` has parts for which the composite has no rule: {shown}{hint}. Convolutions, linear layers, batch "
        "normalisation, monotone activations such as ReLU, pooling, dropout, padding, reshaping and additions work; "
        f"for others pass a zennit composite that has a rule for them{other}"
    )


def refuse_functions(found: list[tuple[str, str]]) -> None:
    """Raise if there is any (function, dotted name of the place) that has no rule in "attnlrp" and "cplrp"."""
    if not found:
        return
    instead = "; ".join(dict.fromkeys(INSTEAD[name] for name, _ in found if name in INSTEAD))
    shown = _shown([(f"function {name}", place) for name, place in found])
    raise ValueError(
        f'`model` has steps for which "attnlrp" and "cplrp" have no rule: {shown}'
        + (f". {instead if instead[:5] == 'metfa' else instead[:1].upper() + instead[1:]}" if instead else "")
        + ". Linear layers, convolutions, attention, softmax, normalisations, activations that are 0 at 0 (ReLU, GELU, "
        "SiLU, tanh), products, sums, pooling and reshaping work; explainers that only ask the model (RISE, LIME, "
        "Occlusion) or its gradient (Gradient, GradientXInput) need no rules"
    )


def _shown(found: list[tuple[str, str]]) -> str:
    """Each kind with its places."""
    places: dict[str, list[str]] = {}
    for kind, name in dict.fromkeys(found):
        places.setdefault(kind, []).append(repr(name) if name else "the model itself")
    return "; ".join(f"{kind} in {_shortened(names)}" for kind, names in places.items())


def _shortened(names: list[str], shown: int = 8) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def linear_types() -> Any:
    """Zennit's type of convolutions and linear layers."""
    from zennit.types import Linear

    return Linear


def _is_of_torch(module: nn.Module) -> bool:
    """Whether a class of torch itself does the work; other modules are searched for such classes."""
    return any(kind.__module__.startswith("torch.nn.") and kind is not nn.Module for kind in type(module).__mro__)
