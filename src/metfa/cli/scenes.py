"""`metfa explain-segmentation`: which surroundings of one object in a scene does a network need?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from metfa._base.class_names import class_name
from metfa._base.pictures import of_exact_levels, open_image
from metfa._base.provenance import printable
from metfa._base.validation import did_you_mean
from metfa.allocator import keep_freed_memory
from metfa.by_name.methods import check_settings, explainer_of, method_forms
from metfa.by_name.noises import noise_of
from metfa.calls.called import Called
from metfa.cli.folders import check_folder, note, sampled_in
from metfa.cli.options import (
    Alpha,
    Batch,
    Colours,
    Confidence,
    Corrected,
    Device,
    Fast,
    FlipsFrom,
    Noise,
    Out,
    Overwrite,
    Palette,
    RandomWeights,
    RegionsOfScene,
    Samples,
    Seed,
    Settings,
    Threshold,
)
from metfa.cli.parsing import settings_of, size_of, threshold_of
from metfa.cli.regions import SCENES, check_regions, check_regions_of
from metfa.cli.reported import resumable
from metfa.cli.run import (
    Analysis,
    Sampling,
    call_of,
    check_before_sampling,
    device_of,
    loaded_model,
    weights_of,
)
from metfa.cli.views import print_views, views_of_call
from metfa.results.cautions import FLIPS_FROM
from metfa.results.terms import Terms
from metfa.sampling.run import Run

__all__ = ["explain_segmentation"]


@dataclass(frozen=True)
class Scene:
    """A picture, and the object in it that is explained."""

    picture: Path
    target: str  # index or name of the object's class
    region: Path | None  # a mask of the object; None: all pixels that the network gives the class
    size: tuple[int, int] | None
    min_pixels: int
    softmax: bool  # whether the network gives logits, not probabilities


def explain_segmentation(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="Picture file.", show_default=False)],
    model: Annotated[
        str,
        typer.Option(help="torchvision:NAME or package.module:callable, a segmentation network.", show_default=False),
    ],
    target: Annotated[str, typer.Option("--class", help="Class of the object, its index or name.", show_default=False)],
    method: Annotated[str, typer.Option(help=f"{method_forms('scene')}.")] = "grid-saliency",
    settings: Settings = None,
    region: Annotated[
        Path | None,
        typer.Option(help="Picture of the object, 0 outside; by default all pixels where the network finds the class."),
    ] = None,
    size: Annotated[
        str | None, typer.Option(metavar="HEIGHTxWIDTH", help="Resize the picture; by default as it is.")
    ] = None,
    min_pixels: Annotated[int, typer.Option(min=1, help="Warn of smaller objects.")] = 600,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="The network gives probabilities, not logits.")
    ] = False,
    noise: Noise = "uniform:0.1",
    samples: Samples = 10,
    alpha: Alpha = None,
    confidence: Confidence = 0.95,
    correction: Corrected = None,
    threshold: Threshold = None,
    flips_from: FlipsFrom = FLIPS_FROM,
    regions: RegionsOfScene = None,
    seed: Seed = 0,
    batch_size: Batch = 10,
    device: Device = "auto",
    fast: Fast = None,
    random_weights: RandomWeights = False,
    palette: Palette = Colours.colourblind,
    folder: Out = Path("metfa-out"),
    overwrite: Overwrite = False,
) -> None:
    """Explain an object in a scene: which of its surroundings does a segmentation network need to find it?"""
    chosen = settings_of(settings or [])
    if "softmax" in chosen:
        raise ValueError("`--set softmax` is not for scenes: write --probabilities if the network gives probabilities")
    sampling = Sampling(
        model, method, chosen, None, noise, samples, seed, batch_size, device, fast and fast.value, of="scene",
        random_weights=random_weights or None,
    )  # fmt: skip
    check_regions(regions, SCENES)
    given, rule = None if correction is None else correction.value, threshold_of(threshold)
    analysis = Analysis(alpha, confidence, given, rule, palette.value, flips_from=flips_from, regions=regions)
    scene = Scene(image, target, region, size_of(size), min_pixels, not probabilities)
    for path in (image, region):
        if path is not None:
            open_image(path)  # before the model is loaded
    check_before_sampling(sampling, analysis)
    call = call_of_scene(scene, sampling)
    check_folder(folder, call, overwrite=overwrite)
    check_settings(method, chosen, "scene")
    keep_freed_memory()
    with resumable("samples"):
        from metfa.models import load_segmentation

        loaded = loaded_model(load_segmentation, sampling)
        explanation, about = explain_scene(scene, loaded, call, sampling, analysis, folder, overwrite=overwrite)
        print_views(*views_of_call(explanation, about, analysis, folder, overwrite=overwrite))


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
    scene: Scene,
    loaded: Any,
    call: dict[str, Any],
    sampling: Sampling,
    analysis: Analysis,
    folder: Path,
    *,
    overwrite: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Sample the context of an object into `folder`; an interrupted run there is resumed."""
    from metfa.models import WholePicture
    from metfa.segmentation import context_faithfulness, explain_context
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
    if analysis.regions != "objects":
        check_regions_of(analysis.regions, region.shape)

    def made() -> Any:
        return explain_context(
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

    explanation = sampled_in(folder, call, made, overwrite=overwrite)
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
        "weights": weights_of(loaded, sampling),
        "classes": _names_of(explanation.classes, loaded.class_names),
        "explained": printable(class_name(target, loaded.class_names)),
        "object": f"{region.sum():,} of {region.size:,} pixels",
        "faithfulness": f"m_f {' and '.join(left)} beside the object, all else black ({_at(explanation, terms)})",
    }
    note(folder, about)
    return explanation, about


def _names_of(classes: np.ndarray | None, class_names: Any) -> dict[str, str]:
    """Names of the classes that are in the picture, by their indices."""
    there = [] if classes is None or class_names is None else np.unique(classes).tolist()
    return {str(index): printable(class_name(index, class_names)) for index in there}


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
    picture = of_exact_levels(open_image(path), f"`--region` {path}")
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
    return explainer_of(sampling.method, regional.model, sampling.settings, "scene", fast=sampling.fast)


def _at(explanation: Any, terms: Terms) -> str:
    return f"at threshold {explanation.threshold_on(terms):.3g}, {terms.level}"
