"""Explain the context of one object in a scene into a folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.class_names import class_name
from metfa._base.pictures import open_image
from metfa._base.provenance import printable
from metfa._base.validation import did_you_mean
from metfa.by_name.methods import explainer_of
from metfa.by_name.noises import noise_of
from metfa.calls.called import Called
from metfa.cli.run import SAMPLE, Analysis, Sampling, call_of, check_before_sampling, device_of, note
from metfa.regions.segmentations import LOSSY
from metfa.results.files import MANIFEST
from metfa.results.terms import Terms
from metfa.sampling.run import Run

__all__ = ["Scene", "call_of_scene", "explain_scene"]


@dataclass(frozen=True)
class Scene:
    """A picture, and the object in it that is explained."""

    picture: Path
    target: str  # index or name of the object's class
    region: Path | None  # a mask of the object; None: all pixels that the network gives the class
    size: tuple[int, int] | None
    min_pixels: int
    softmax: bool  # whether the network gives logits, not probabilities


def call_of_scene(scene: Scene, sampling: Sampling) -> dict[str, Any]:
    """What must be equal to resume a run."""
    region = "as predicted" if scene.region is None else str(scene.region)
    size = "as it is" if scene.size is None else "x".join(map(str, scene.size))
    return {
        **call_of(str(scene.picture), sampling),
        "target": scene.target,
        "region": region,
        "size": size,
        "softmax": scene.softmax,
    }


def explain_scene(
    scene: Scene, loaded: Any, call: dict[str, Any], sampling: Sampling, analysis: Analysis, folder: Path
) -> tuple[Any, dict[str, Any]]:
    """Sample the context of an object into `folder`; an interrupted run there is resumed."""
    from metfa.models import WholePicture
    from metfa.segmentation import context_faithfulness, explain_context
    from metfa.segmentation.explanation import load_context
    from metfa.segmentation.regions import predicted_region

    device = device_of(sampling.device)
    preprocess = loaded.preprocess if scene.size is None else WholePicture(scene.size)
    image = preprocess(open_image(scene.picture)).to(device)
    called = Called(loaded.module.to(device), softmax=scene.softmax)
    target = class_index(scene.target, loaded.class_names)
    if scene.region is None:
        region = predicted_region(called, image, target)
    else:
        region = region_in(scene.region, image, resized=scene.size is not None)
    if region.all():
        raise ValueError(f"the model finds `--class` {scene.target} in all pixels, which leaves no context to explain")
    check_before_sampling(sampling, analysis, int((~region).sum()))
    folder.mkdir(parents=True, exist_ok=True)
    note(folder, call)
    if (folder / SAMPLE / MANIFEST).exists():  # interrupted between the samples and the figure
        explanation = load_context(folder)
        same = np.array_equal(explanation.sample.inputs[0], image.cpu().numpy())
        if not (same and np.array_equal(explanation.region, region)):
            raise FileExistsError(f"{folder} holds the samples of another object; give another `--out`")
    else:
        explanation = explain_context(
            called,
            image,
            target,
            region=region,
            method=partial(_made, sampling=sampling),
            noise=noise_of(sampling.noise),
            n_samples=sampling.n_samples,
            min_pixels=scene.min_pixels,
            batch_size=sampling.batch_size,
            rng=sampling.seed,
            run=Run(store=folder, progress=True),
        )
    terms = explanation.terms(**analysis.given)
    marked = explanation.significant(**analysis.given)
    shown = {"nothing": np.zeros_like(region), "the significant context": marked}
    found = {
        name: context_faithfulness(called, image[None], pixels, target, region=region).score[0]
        for name, pixels in shown.items()
    }
    left = [f"{score:.3f} with {name}" for name, score in found.items()]
    about = {
        **call,
        "weights": loaded.weights,
        "explained": printable(class_name(target, loaded.class_names)),
        "object": f"{region.sum():,} of {region.size:,} pixels",
        "faithfulness": f"m_f {' and '.join(left)} beside the object, all else black ({_at(explanation, terms)})",
    }
    note(folder, about)
    return explanation, about


def class_index(text: str, class_names: Any) -> int:
    """Index of a class, from a text with its index or name."""
    if text.isdecimal():
        return int(text)
    if text.startswith("-") and text[1:].isdecimal():
        raise ValueError(f"`--class` must be an index from 0 on, or a name, got {text}")
    if class_names is None:
        raise ValueError(f"`--class` must be an index, as the model names no classes, got {text!r}")
    found = [index for index, name in enumerate(class_names) if name == text]
    if len(found) != 1:
        raise ValueError(f"`--class` {text!r} is no class of the model{did_you_mean(text, class_names)}")
    return found[0]


def region_in(path: Path, image: Any, *, resized: bool) -> np.ndarray:
    """Pixels of the object, (height, width) bool, from an image of the scene's size with 0 outside of the object.

    In an image with a palette the index counts, not the colour. If the scene is resized, so is the object.
    """
    height, width = (int(side) for side in image.shape[1:])
    picture = open_image(path)
    if picture.format in LOSSY:
        raise ValueError(
            f"`--region` {path} is a JPEG, which changes pixels beside each edge, so that some outside of the object "
            "are not 0: save the mask as PNG"
        )
    picture = picture if picture.mode in ("P", "1") else picture.convert("L")
    if resized:
        picture = picture.resize((width, height), 0)  # the nearest pixel's
    mask: np.ndarray = np.asarray(picture) != 0
    if mask.shape != (height, width):
        raise ValueError(
            f"`--region` {path} has {mask.shape[1]} x {mask.shape[0]} pixels, the scene {width} x {height}"
        )
    if not mask.any() or mask.all():
        raise ValueError(f"`--region` {path} must be 0 outside of the object and not 0 within it")
    return mask


def _made(regional: Called, sampling: Sampling) -> Any:
    return explainer_of(sampling.method, regional.model, sampling.settings, "scene", bfloat16=sampling.bfloat16)


def _at(explanation: Any, terms: Terms) -> str:
    return f"at threshold {explanation.threshold_on(terms):.3g}, {terms.level}"
