"""Explain one picture or text into a folder, and read such a folder again."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from metfa import stats
from metfa._base.class_names import class_with_probability
from metfa._base.provenance import printable
from metfa._base.writing import is_temporary
from metfa.by_name.methods import Of, check_method, explainer_of, methods_of
from metfa.by_name.noises import noise_of
from metfa.calls.answers import softmax
from metfa.cli.parsing import criteria_of
from metfa.cli.regions import check_regions_of
from metfa.results.cautions import FLIPS_FROM, check_flips_from
from metfa.results.corrections import check_correction
from metfa.results.families import samples_needed
from metfa.results.files import MANIFEST, load
from metfa.results.manifests import read_json, write_json
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms, filled
from metfa.results.until import Until
from metfa.sampling import explain as sampling
from metfa.sampling.rounds import rounds_of
from metfa.sampling.run import Run
from metfa.sampling.store import RUN
from metfa.segmentation.explanation import CONTEXT, REGION, SAMPLE, load_context

__all__ = [
    "Analysis",
    "Sampling",
    "call_of",
    "check_before_sampling",
    "check_folder",
    "device_of",
    "explain_picture",
    "explain_words",
    "is_finished",
    "note",
    "read_folder",
    "title_of",
]

ABOUT, REPORT, FIGURE, MAPS, WORDS = "about.json", "report.txt", "figure.png", "maps.png", "words.html"
CERTIFIED = "certified.png"
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

    def of_regions(self, sample: AttributionSample) -> dict[str, Any]:
        """Terms of the decisions about regions: by default those by which sampling stopped, else family-wise ones."""
        stopping = sample.stopping
        if stopping is not None and "undecided" in stopping.asked:
            alpha, usual = stopping.alpha, stopping.correction or "none"
        else:
            alpha, usual = None, "e-bh" if sample.any_time else "holm"
        return {"alpha": alpha if self.alpha is None else self.alpha, "correction": self.correction or usual}

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
    bfloat16: bool
    of: Of = "image"
    until: str | None = None
    crop: bool = True

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
    known = methods_of(sampling.of)
    if sampling.bfloat16 and sampling.method not in known:
        raise ValueError(f"`--bfloat16` is for {', '.join(known)}; {sampling.method} runs in the model's own precision")
    terms = filled(Terms(), Terms.threshold, **analysis.given)
    number = sampling.number(analysis)
    if isinstance(number, Until):
        check_correction(terms.correction, any_time=True)
        rounds_of(number, 1)
        return
    try:
        stats.median_ranks(number, analysis.confidence)
    except ValueError as error:
        raise ValueError(f"`--samples` {number}, `--confidence` {analysis.confidence}: {error}") from error
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


def check_folder(folder: Path, call: dict[str, Any]) -> None:
    """Refuse a folder that cannot be made or that holds anything but results of the same call."""
    if (folder / ABOUT).exists():
        kept = _read_about(folder)
        differing = [name for name in call if kept.get(name) != call[name]]
        begun = is_finished(folder) or any((folder / SAMPLE).glob("*"))
        if differing and (begun or not call.keys() <= kept.keys()):
            name = differing[0]
            raise FileExistsError(
                f"{folder} holds results with {name}={kept.get(name)}, not {call[name]}; give another `--out`"
            )
        return
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir():
        raise NotADirectoryError(f"`--out` must be a folder, but {existing} is a file")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(f"`--out`: nothing can be written in {existing}")
    if existing == folder and not all(is_temporary(path.name) for path in folder.iterdir()):
        raise FileExistsError(f"`--out`: {folder} is not empty and holds no results of such a call; give a new folder")


def is_finished(folder: Path) -> bool:
    """Whether `folder` holds a report of its samples, the last of the views to be written."""
    return (folder / REPORT).exists()


def note(folder: Path, about: dict[str, Any]) -> None:
    """Write down what is explained, unless `folder` is finished and so has it."""
    if not is_finished(folder):
        write_json(folder / ABOUT, about)


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


def explain_picture(
    image: Any, call: dict[str, Any], loaded: Any, device: Any, settings: Sampling, analysis: Analysis, folder: Path
) -> tuple[AttributionSample, dict[str, Any]]:
    """Sample one picture into `folder`; an interrupted run there is resumed. Returns the sample and its description."""
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
    explainer = explainer_of(settings.method, module, settings.settings, bfloat16=settings.bfloat16)
    folder.mkdir(parents=True, exist_ok=True)
    note(folder, call)
    if (folder / SAMPLE / MANIFEST).exists():  # interrupted between the samples and the figure
        sample = load(folder / SAMPLE)
        if not np.array_equal(sample.inputs, pixels.cpu().numpy()):
            raise FileExistsError(f"{folder} holds the samples of another picture; give another `--out`")
    else:
        sample = sampling.explain(
            explainer,
            pixels,
            settings.target,
            noise=noise_of(settings.noise),
            n_samples=settings.number(analysis),
            predict=module,
            batch_size=settings.batch_size,
            rng=settings.seed,
            run=Run(store=folder / SAMPLE, progress=True),
        )
    about = {**call, "weights": loaded.weights, **_prediction(sample, loaded.class_names, as_logits=True)}
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
    text: str, call: dict[str, Any], model: Any, settings: Sampling, folder: Path | None
) -> tuple[AttributionSample, dict[str, Any]]:
    """Sample one text, into `folder` if there is one; an interrupted run there is resumed."""
    from metfa.text import explain_text

    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        note(folder, call)
    if folder is not None and (folder / SAMPLE / MANIFEST).exists():  # interrupted between the samples and the page
        sample = load(folder / SAMPLE)
    else:
        sample = explain_text(
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
    about = {**call, **_prediction(sample, getattr(model, "class_names", None), as_logits=False)}
    if folder is not None:
        note(folder, about)
    return sample, about


def read_folder(folder: Path) -> tuple[Any, dict[str, Any]]:
    """Sample (for a scene the context of the object) and description in a folder, or a saved sample alone."""
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    if not (folder / SAMPLE).is_dir():
        nested = sorted(path.parent.name for path in folder.glob(f"*/{SAMPLE}"))
        if nested:
            raise ValueError(f"{folder} holds several results, show one of them: {', '.join(nested)}")
        return load(folder), {}
    sample = _loaded(folder)
    return sample, _read_about(folder) if (folder / ABOUT).exists() else {}


def _loaded(folder: Path) -> Any:
    if (folder / SAMPLE / RUN).exists() and not (folder / SAMPLE / MANIFEST).exists():
        raise ValueError(f"{folder} holds an unfinished run: repeat the command that began it")
    if (folder / CONTEXT).exists():
        return load_context(folder)
    if (folder / REGION).exists():
        raise ValueError(f"{folder} is incomplete: {CONTEXT} is missing, which says what the object is")
    return load(folder / SAMPLE)


def _read_about(folder: Path) -> dict[str, Any]:
    about = read_json(folder / ABOUT)
    if not isinstance(about, dict):
        raise ValueError(f"{folder / ABOUT} is damaged: an object is needed, got {type(about).__name__}")
    return about


def _prediction(sample: AttributionSample, class_names: Any, *, as_logits: bool) -> dict[str, str]:
    if sample.scores is None or sample.scores.ndim != 2:
        return {}
    scores = sample.scores[:1].astype(np.float64)
    probabilities = (softmax(scores) if as_logits else scores)[0]

    def named(index: int) -> str:
        return class_with_probability(index, class_names, probabilities)

    target = sample.target[0]
    explained = named(target) if isinstance(target, int) else str(target)
    return {"predicted": named(int(probabilities.argmax())), "explained": explained}


def title_of(about: dict[str, Any]) -> str | None:
    """Heading of a figure or page: what was predicted and explained, None where nothing is known."""
    if not about:
        return None
    explained = about.get("explained") or about.get("predicted") or "this class"
    if about.get("object"):
        return printable(f"{about.get('image')}: what does “{explained}” need around it? {about.get('model', '')}")[
            :200
        ]
    if about.get("compared"):
        where = f"{about['image']}: what" if about.get("image") else "What"
        return printable(f"{where} changed? {about.get('method', '')}; {about.get('model', '')}")[:200]
    where = f"{about['image']}: why" if about.get("image") else "Why"
    return printable(f"{where} “{explained}”? {about.get('method', '')} of {about.get('model', '')}")[:200]
