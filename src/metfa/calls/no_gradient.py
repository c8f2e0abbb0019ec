"""Models without a gradient by their input: found in the graph, and named where another library fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from metfa.calls.behind import loaded_torch
from metfa.calls.guard import model_in_evaluation
from metfa.calls.parts import answered_by_parts, formed, named

__all__ = ["gradient_expected", "reaches", "why_no_gradient"]

NO_GRADIENT = (
    "the model's scores have no gradient by its input: it detaches them, runs under `torch.no_grad()`, returns labels, "
    "or computes with integers (int8); explain it without gradients, such as by metfa.explainers.RISE"
)
MADE_IN_INFERENCE_MODE = (
    "the model's weights were made in inference mode, so there is no gradient by its input: write "
    "`model = copy.deepcopy(model)` outside of `torch.inference_mode()`"
)

IN_INFERENCE_MODE = (
    "`torch.inference_mode()` is on around this call, so there is no gradient by the model's input: call the explainer "
    "outside of it (`metfa.explain` works inside)"
)


def why_no_gradient() -> str:
    """What to say where scores have no gradient."""
    torch = loaded_torch()
    return IN_INFERENCE_MODE if torch is not None and torch.is_inference_mode_enabled() else NO_GRADIENT


def reaches(node: Any, tensor: Any) -> bool:
    """Whether a gradient gets from this node of torch's graph back to `tensor`."""
    wanted, seen, waiting = tensor.grad_fn, set(), [node]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        if node is wanted if wanted is not None else getattr(node, "variable", None) is tensor:
            return True
        seen.add(node)
        if "NotImplemented" in node.name():  # torch puts such a node where a kernel has no derivative, as of int8
            continue
        waiting += [before for before, _ in node.next_functions]
    return False


@contextmanager
def gradient_expected(model: Any, inputs: Any = None) -> Iterator[None]:
    """Turn an error inside that comes of a model without gradients into a ValueError that says so.

    With `inputs`, a tensor or several, the model is asked once more after an error of any other text: libraries that
    take the gradient fail in many ways where there is none.
    """
    if why_no_gradient() is IN_INFERENCE_MODE:
        raise ValueError(IN_INFERENCE_MODE)
    try:
        yield
    except (RuntimeError, AttributeError) as error:
        if "out of memory" in str(error):
            raise
        if "nference tensor" in str(error):
            raise ValueError(MADE_IN_INFERENCE_MODE) from error
        if callable(model) and _lacks_gradient(model, inputs):
            raise ValueError(NO_GRADIENT) from error
        raise


def _lacks_gradient(model: Any, inputs: Any) -> bool:
    """Whether the model gives scores, and these have no gradient by the inputs."""
    torch = loaded_torch()
    parts = named(inputs)
    if torch is None or not all(isinstance(part, torch.Tensor) for part in parts.values()):
        return False
    copies = {name: part.detach().clone() for name, part in parts.items()}
    leaves = [copy.requires_grad_() for copy in copies.values() if copy.is_floating_point()]
    try:
        with torch.enable_grad(), model_in_evaluation(model):
            scores = answered_by_parts(model, formed(copies, inputs))
    except Exception:  # its own fault, which the caller sees
        return False
    if not leaves or not isinstance(scores, torch.Tensor):
        return False
    return not scores.requires_grad or not any(reaches(scores.grad_fn, leaf) for leaf in leaves)
