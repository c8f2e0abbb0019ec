"""Methods of other libraries that are no explainers yet, and the adapter that makes one of each."""

from __future__ import annotations

import inspect
from typing import Any

from metfa.calls.behind import owner_of
from metfa.calls.plain import hidden_layers

__all__ = ["adapter_for"]

# The library's name, and what to write for an object or a method of one of its classes.
ADAPTERS = {
    "shap": "metfa.explainers.from_shap({given}, predict)",
    "lime": "metfa.explainers.from_lime({given}, predict)",
    "pytorch_grad_cam": "metfa.explainers.from_gradcam({given})",
    "zennit": "`lambda inputs, target: attributor(inputs, lambda scores: scores * "
    "torch.nn.functional.one_hot(target, scores.shape[1]))[::-1]`, or metfa.explainers.LRP(model, composite=...)",
}
OBJECTS = {"shap": "explainer", "lime": "explainer", "pytorch_grad_cam": "cam", "zennit": "attributor"}


def adapter_for(explainer: Any) -> str | None:
    """What an explainer is and what to write instead, if it is another library's and cannot be used as it is."""
    owner = owner_of(explainer)
    if inspect.isclass(owner):
        return None
    kinds = {kind.__module__.partition(".")[0]: kind for kind in reversed(type(owner).__mro__)}
    for library, advice in ADAPTERS.items():
        if library in kinds:
            advice = advice.format(given=OBJECTS[library])
            return f"{type(owner).__name__} of {library}, which takes its arguments in another way: write {advice}"
    if "captum" in kinds and owner is not explainer:
        return _hidden_from_captum(owner)
    return None


def _hidden_from_captum(method: Any) -> str | None:
    """Captum's methods that look at layers keep the module as `model`; hooks on a compiled one are not called."""
    hidden = hidden_layers(getattr(method, "model", None))
    if hidden is None:
        return None
    return f"{type(method).__name__} of captum, which works at the layers of its model, and {hidden}"
