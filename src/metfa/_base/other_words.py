"""Words of other libraries for our arguments: who writes one is shown ours."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from metfa._base.validation import did_you_mean

__all__ = ["our_word", "our_words", "refuse_unknown"]

COUNTS = ("n", "N", "samples", "n_samples", "nsamples", "num_samples", "nt_samples", "n_iter", "npermutations")
STEPS = ("steps", "n_steps", "num_steps", "max_iter", "iterations", "num_iterations", "epochs")
THEIRS = {  # of Captum, SHAP, LIME, pytorch-grad-cam, Quantus, scikit-learn
    "n_samples": COUNTS,
    "n_masks": (*COUNTS, "num_masks"),
    "n_perturbations": (*COUNTS, "num_perturbations", "n_perturb_samples", "perturbations"),
    "n_iterations": (*STEPS, *COUNTS),
    "rng": ("seed", "random_state", "random_seed", "generator"),
    "target": ("targets", "label", "labels", "class_idx", "class_index", "target_class", "output_index", "y"),
    "inputs": ("x", "X", "input", "input_tensor", "image", "images", "data", "rows", "df", "frame"),
    "background": ("X_train", "train", "training_data", "masker", "baseline", "reference", "table"),
    "batch_size": ("internal_batch_size", "perturbations_per_eval", "nt_samples_batch_size", "bs"),
    "noise": ("stdevs", "stdev", "sigma", "std", "noise_level", "perturb_func", "perturbation"),
    "std": ("stdevs", "stdev", "sigma", "noise_level", "noise"),
    "layer": ("target_layers", "target_layer", "layers", "layer_name", "conv_layer"),
    "baseline": ("baselines", "background", "reference", "hide_color", "fill", "perturb_baseline"),
    "hide": ("hide_color", "baseline", "baselines", "background", "reference"),
    "called": ("model", "forward_func", "net", "network", "f", "predict_fn", "classifier_fn"),
    "explainer": ("method", "explain_func", "attribution", "attr_method"),
    "run": (
        "store",
        "progress",
        "show_progress",
        "verbose",
        "cache",
        "input_names",
        "feature_names",
        "class_names",
        "first_sample",
    ),
    "n_segments_shown": ("num_features", "top_labels", "positive_only"),
    "reshape_transform": ("reshape",),
    "fast": ("autocast", "amp", "precision", "compile", "fold"),
    "memory_format": ("layout", "channels_last"),
    "keep": ("p", "p1", "probability"),
    "grid": ("s", "mask_size", "sliding_window_shapes", "cell_size"),
}
WRITTEN = {"run": "`run=metfa.Run(...)`", "noise": "`noise`, such as metfa.noise.Gaussian(0.1)"}
OF_A_LAYER = "ScoreCAM(model, layer=...) or from_gradcam('GradCAM', model, layer=...)"
Call = TypeVar("Call", bound=Callable[..., Any])


def our_word(name: str, allowed: Collection[str]) -> str:
    """End of a message about an unknown setting: the one of `allowed` that it means elsewhere, or the nearest one."""
    meant = [ours for ours in allowed if name in THEIRS.get(ours, ())]
    if meant:
        return f", here it is {WRITTEN.get(meant[0], repr(meant[0]))}"
    if name in THEIRS["layer"] and "layer" not in allowed:
        return did_you_mean(name, allowed) or f", for a layer take {OF_A_LAYER}"
    return did_you_mean(name, allowed)


def refuse_unknown(what: str, given: Collection[str], allowed: Collection[str]) -> None:
    """Raise a TypeError for an argument that there is not, and say what ours is called; `what` has the arguments."""
    for name in given:
        if name not in allowed:
            raise TypeError(
                f"{what} has no argument `{name}`{our_word(name, allowed)}; it has {', '.join(sorted(allowed))}"
            )


def our_words(call: Call) -> Call:
    """Decorate a function or a class: unknown arguments are refused with what ours are called."""
    allowed, made = list(inspect.signature(call).parameters), call.__init__ if isinstance(call, type) else call

    @functools.wraps(made)
    def checked(*args: Any, **given: Any) -> Any:
        refuse_unknown(call.__name__, given, allowed)
        return made(*args, **given)

    if not isinstance(call, type):
        return checked  # pyright: ignore[reportReturnType]
    call.__init__ = checked
    return call  # pyright: ignore[reportReturnType]
