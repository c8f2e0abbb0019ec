"""The plain torch module inside a compiled or parallel one, and modules whose layers cannot be watched."""

from __future__ import annotations

from typing import Any

from metfa.calls.behind import loaded_torch, owner_of

__all__ = ["hidden_layers", "plain_module", "unwrapped"]


def unwrapped(model: Any) -> Any:
    """`model` without ``torch.compile``, DataParallel and DistributedDataParallel around it: the same scores."""
    torch = loaded_torch()
    while torch is not None and isinstance(model, torch.nn.Module):
        compiled = _compiled(model)
        if compiled is not None:
            model = compiled
        elif isinstance(model, torch.nn.DataParallel | torch.nn.parallel.DistributedDataParallel):
            model = model.module
        else:
            break
    return model


def plain_module(model: Any, who: str) -> Any:
    """`model` unwrapped, for methods that put hooks on its layers.

    Raises
    ------
    ValueError
        If parts of it are compiled, scripted, traced or exported: hooks on their layers are not called, so that a
        method would silently find other layers, or none. `who` names the method.
    """
    hidden = hidden_layers(unwrapped(owner_of(model)))
    if hidden is not None:
        raise ValueError(f"{who} works at the layers of `model`, and {hidden}")
    return unwrapped(model)


def hidden_layers(model: Any) -> str | None:
    """Which part of a module runs without calling its layers, and what to give instead; None where there is none."""
    torch = loaded_torch()
    if torch is None or not isinstance(model, torch.nn.Module):
        return None
    for name, part in model.named_modules():
        where = f"its part {name!r}" if name else "the model"
        if isinstance(part, torch.jit.ScriptModule):
            return f"{where} is scripted or traced, so that its layers are not called one by one: give {PLAIN}"
        if _compiled(part) is not None:
            return f"{where} is compiled, so that hooks on its layers may not be called: give {PLAIN} (uncompiled)"
        if isinstance(part, torch.fx.GraphModule) and _flat(part):
            return f"{where} is an exported program, whose layers are functions: give {PLAIN}"
    return None


PLAIN = "the torch.nn.Module that it was made from"


def _compiled(module: Any) -> Any:
    """The module inside one that ``torch.compile`` returned."""
    return dict(module.named_children()).get("_orig_mod")


def _flat(graph_module: Any) -> bool:
    """Whether a graph uses weights by itself, and calls no module that has any."""
    nodes = list(graph_module.graph.nodes)
    called = [graph_module.get_submodule(node.target) for node in nodes if node.op == "call_module"]
    weights = any(node.op == "get_attr" for node in nodes)
    return weights and not any(True for module in called for _ in module.parameters())
