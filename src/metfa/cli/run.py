"""Explain one picture or text into a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from metfa import stats
from metfa._base.class_names import class_with_probability
from metfa._base.warnings import ModelStateWarning, warn
from metfa.by_name.methods import GRADCAM, Of, check_method, explainer_of, methods_of
from metfa.by_name.noises import noise_of
from metfa.calls.answers import softmax
from metfa.cli.folders import note, sampled_in
from metfa.cli.parsing import criteria_of
from metfa.cli.regions import check_regions_of
from metfa.cli.reported import as_options, naming
from metfa.plot.kinds import Kind
from metfa.results.cautions import FLIPS_FROM, check_flips_from
from metfa.results.corrections import check_correction
from metfa.results.families import samples_needed
from metfa.results.regional import levels_of_regions
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms, filled
from metfa.results.until import Until
from metfa.sampling import explain as sampling
from metfa.sampling.rounds import rounds_of
from metfa.sampling.run import Run
from metfa.segmentation.kept import SAMPLE

__all__ = [
    "Analysis",
    "Sampling",
    "call_of",
    "check_before_sampling",
    "device_of",
    "explain_picture",
    "explain_words",
    "loaded_model",
    "weights_of",
]

RANDOM = "random: THE NETWORK IS UNTRAINED, so what it answers and what explains it are arbitrary"
FEATURES = {"image": "pixels", "text": "words", "scene": "pixels"}
PARTS = {"image": ("regions", 50), "text": ("sentences", 2)}  # that are tested beside them, and how many usually


@dataclass(frozen=True)
class Analysis:
    """How samples are read: all that can change without the model; None where nothing is given."""

    alpha: float | None
    confidence: float
    correction: str | None
    threshold: Any
    palette: str
    certify: bool = False
    flips_from: float = FLIPS_FROM
    regions: str | None = None
    split: int | None = None
    kinds: Mapping[str | None, Kind] = field(default_factory=dict)

    def of_regions(self, sample: AttributionSample) -> dict[str, Any]:
        """Terms of the decisions about regions: by default those by which sampling stopped, else family-wise ones."""
        return levels_of_regions(sample, self.alpha, self.correction)

    @property
    def given(self) -> dict[str, Any]:
        """Terms of the decisions, as the library takes them."""
        terms = {"threshold": self.threshold, "alpha": self.alpha, "correction": self.correction}
        return terms if self.split is None else {**terms, "split": self.split}

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that figure and summary share."""
        return {**self.given, "confidence_level": self.confidence, "flips_from": self.flips_from}

    def of_what_was_sampled(self, sampling: Sampling) -> Analysis:
        """The same, but without terms if sampling already decided on them: then the result has its own terms."""
        if not sampling.decides:
            return self
        return replace(self, threshold=None, alpha=None, correction=None)


@dataclass(frozen=True)
class Sampling:
    """How samples are made."""

    model: str
    method: str
    settings: dict[str, Any]
    target: int | None
    noise: str
    n_samples: int  # with `until` the largest number
    seed: int
    batch_size: int
    device: str
    fast: str | None = None
    of: Of = "image"
    until: str | None = None
    crop: bool = True
    random_weights: bool | None = None  # None, as in older folders: no

    @property
    def decides(self) -> bool:
        """Whether features are decided during sampling, to know when to stop."""
        return self.until is not None and "undecided" in criteria_of(self.until)

    def number(self, analysis: Analysis) -> int | Until:
        """The number of samples, or on the terms of the analysis the rule that says when they are enough."""
        if self.until is None:
            return self.n_samples
        criteria: dict[str, Any] = criteria_of(self.until)
        tests: dict[str, Any] = {}
        if self.decides:
            tests = {name: value for name, value in analysis.given.items() if value is not None}
        return Until(
            **criteria,
            **tests,
            confidence_level=analysis.confidence,
            max_samples=self.n_samples,
        )


def check_before_sampling(sampling: Sampling, analysis: Analysis, n_features: int | None = None) -> None:
    """Refuse settings that can give no answer, before any model runs; a correction, once `n_features` is known."""
    check_flips_from(analysis.flips_from)
    noise_of(sampling.noise, sampling.of)
    check_method(sampling.method, sampling.of)
    source, colon, _ = sampling.model.partition(":")
    if sampling.random_weights and colon and source not in ("timm", "torchvision"):
        raise ValueError(
            f"`--random-weights` is for models by name, and {sampling.model} makes its own model: leave it out"
        )
    known = methods_of(sampling.of)
    if sampling.fast and sampling.method not in known and sampling.method.partition(":")[0] not in ("captum", GRADCAM):
        names = f"{', '.join(known)}, captum:NAME and gradcam:NAME"
        raise ValueError(f"`--fast` is for {names}; {sampling.method} makes its explainer itself")
    terms = filled(Terms(), Terms.threshold, **analysis.given)
    number = sampling.number(analysis)
    if isinstance(number, Until):
        check_correction(terms.correction, any_time=True)
        rounds_of(number, 1)
        return
    try:
        stats.median_ranks(number, analysis.confidence)
    except ValueError as error:
        raise ValueError(
            f"`--samples` {number}, `--confidence` {analysis.confidence}: {as_options(str(error))}"
        ) from error
    needed = samples_needed(terms, n_features or 1)
    if number < needed:
        over = f"{terms.correction} over {n_features or 1:,} {FEATURES[sampling.of]}, " if terms.correction else ""
        parts, usual = PARTS.get(sampling.of, (None, 1))
        enough = terms.correction and number >= samples_needed(replace(terms, correction="holm"), usual)
        instead = ""
        if parts is not None and enough and analysis.regions != "none":
            instead = (
                f"; without `--correction`, {usual} {parts} are still tested by holm, and {FEATURES[sampling.of]} each "
                "alone"
            )
        raise ValueError(
            f"`--samples` {number} are too few for `--alpha` {terms.alpha:g} ({over}each side): nothing could become "
            f"significant; at least {needed} are needed{instead}"
        )


def call_of(name: str, sampling: Sampling) -> dict[str, Any]:
    """What must be equal to resume a run: the name of the picture, or the text, and how samples are made."""
    call = {key: value for key, value in asdict(sampling).items() if key not in ("batch_size", "device", "of")}
    settings = ", ".join(f"{key}={value!r}" for key, value in sorted(sampling.settings.items()))
    return {"image" if sampling.of == "scene" else sampling.of: name, **call, "settings": settings}


def device_of(name: str) -> Any:
    """The torch device of that name; auto is the GPU if there is one."""
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"`--device` {name!r} is not available: {str(error).splitlines()[0]}") from error
    return device


def loaded_model(load: Callable[..., Any], sampling: Sampling) -> Any:
    """The model of `load`, with its weights or with random ones, which the seed decides."""
    if not sampling.random_weights:
        with naming("--model", "name"):
            return load(sampling.model)
    import torch

    warn(
        "`--random-weights`: the network is untrained, so its explanations show nothing but how metfa works",
        ModelStateWarning,
    )
    with torch.random.fork_rng(devices=[]), naming("--model", "name"):
        torch.manual_seed(sampling.seed)
        return load(sampling.model, pretrained=False)


def weights_of(loaded: Any, sampling: Sampling) -> str | None:
    """Where the weights of a model come from, for a reader."""
    return RANDOM if sampling.random_weights else loaded.weights


def explain_picture(
    image: Any,
    call: dict[str, Any],
    loaded: Any,
    settings: Sampling,
    analysis: Analysis,
    folder: Path,
    *,
    overwrite: bool = False,
) -> tuple[AttributionSample, dict[str, Any]]:
    """Sample one picture into `folder`; an interrupted run there is resumed. Returns the sample and its description."""
    device = device_of(settings.device)
    try:
        preprocess = loaded.preprocess if settings.crop else _uncropped(loaded.preprocess)
        pixels = preprocess(image)[None].to(device)
    except ValueError as error:
        raise ValueError(f"{call['image']}: {error}") from error
    height, width = pixels.shape[-2:]
    check_before_sampling(settings, analysis, height * width)
    if settings.method in methods_of(settings.of):  # their maps lie on the pixels
        check_regions_of(analysis.regions, (height, width))
    module = loaded.module.to(device)
    explainer = explainer_of(settings.method, module, settings.settings, fast=settings.fast)

    def made() -> AttributionSample:
        return sampling.explain(
            explainer,
            pixels,
            settings.target,
            noise=noise_of(settings.noise),
            n_samples=settings.number(analysis),
            predict=module,
            batch_size=settings.batch_size,
            rng=settings.seed,
            run=Run(store=folder / SAMPLE, progress=True, class_names=loaded.class_names),
        )

    sample = sampled_in(folder, call, made, overwrite=overwrite)
    about = {**call, "weights": weights_of(loaded, settings), **_prediction(sample, as_logits=True)}
    note(folder, about)
    return sample, about


def _uncropped(preprocess: Any) -> Any:
    """A preprocessing that takes the whole central square, so every pixel of a picture in the network's size."""
    if not hasattr(preprocess, "fraction"):
        raise ValueError(
            f"`--no-crop` is for models whose pictures are cropped, and {type(preprocess).__name__} is not"
        )
    return replace(preprocess, fraction=1.0)


def explain_words(
    text: str, call: dict[str, Any], model: Any, settings: Sampling, folder: Path | None, *, overwrite: bool = False
) -> tuple[AttributionSample, dict[str, Any]]:
    """Sample one text, into `folder` if there is one; an interrupted run there is resumed."""
    from metfa.text import explain_text

    def made() -> AttributionSample:
        return explain_text(
            model,
            text,
            settings.target,
            method=lambda model: explainer_of(settings.method, model, settings.settings, "text"),
            noise=noise_of(settings.noise, "text"),
            n_samples=settings.n_samples,
            batch_size=settings.batch_size,
            rng=settings.seed,
            run=Run(store=None if folder is None else folder / SAMPLE, progress=True),
        )

    sample = made() if folder is None else sampled_in(folder, call, made, overwrite=overwrite)
    about = {**call, **_prediction(sample, as_logits=False)}
    if folder is not None:
        note(folder, about)
    return sample, about


def _prediction(sample: AttributionSample, *, as_logits: bool) -> dict[str, str]:
    if sample.scores is None or sample.scores.ndim != 2:
        return {}
    scores = sample.scores[:1].astype(np.float64)
    probabilities = (softmax(scores) if as_logits else scores)[0]

    def named(index: int) -> str:
        return class_with_probability(index, sample.provenance.get("class_names"), probabilities)

    target = sample.target[0]
    explained = named(target) if isinstance(target, int) else str(target)
    return {"predicted": named(int(probabilities.argmax())), "explained": explained}
