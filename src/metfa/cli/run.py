"""One picture explained into one folder, and such a folder read again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metfa import sampling, stats
from metfa.cli.parsing import explainer_of, noise_of, threshold_of
from metfa.io import load, write_json
from metfa.result import AttributionSample, check_alpha, samples_needed
from metfa.summary import summarise

__all__ = ["Analysis", "Sampling", "check_before_sampling", "explain_picture", "read_folder", "write_views"]

SAMPLE, ABOUT, REPORT, FIGURE = "sample", "about.json", "report.txt", "figure.png"


@dataclass(frozen=True)
class Analysis:
    """How samples are read: everything that can be changed without the model."""

    alpha: float
    confidence: float
    correction: str | None
    threshold: str
    palette: str

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of the significance map."""
        return {"threshold": threshold_of(self.threshold), "alpha": self.alpha, "correction": self.correction}


@dataclass(frozen=True)
class Sampling:
    """How samples are made."""

    model: str
    method: str
    target: int | None
    noise: str
    n_samples: int
    seed: int
    batch_size: int
    device: str
    bfloat16: bool


def check_before_sampling(sampling: Sampling, analysis: Analysis, n_features: int | None) -> None:
    """Refuse settings that could give no answer, before any model runs; the corrections once `n_features` is known."""
    noise_of(sampling.noise)
    threshold_of(analysis.threshold)
    check_alpha(analysis.alpha)
    stats.median_ranks(sampling.n_samples, analysis.confidence)
    needed = samples_needed(analysis.alpha, analysis.correction, n_features or 1)
    if sampling.n_samples < needed:
        tests = (
            f"{analysis.correction} over {n_features:,} pixels" if analysis.correction and n_features else "one test"
        )
        raise ValueError(
            f"`--samples` {sampling.n_samples} are too few for `--alpha` {analysis.alpha} ({tests}): nothing could "
            f"become significant; at least {needed} are needed"
        )


def explain_picture(
    image: Any, loaded: Any, sampling_settings: Sampling, analysis: Analysis, folder: Path, name: str
) -> Any:
    """Sample one picture into `folder`; an interrupted run there is resumed. Returns the sample and its description."""
    import torch

    device = _device(sampling_settings.device)
    pixels = loaded.preprocess(image)[None].to(device)
    check_before_sampling(sampling_settings, analysis, pixels.shape[-1] * pixels.shape[-2])
    module = loaded.module.to(device)
    autocast = torch.bfloat16 if sampling_settings.bfloat16 else None
    explainer = explainer_of(sampling_settings.method, module, autocast)
    sample = sampling.explain(
        explainer,
        pixels,
        sampling_settings.target,
        noise=noise_of(sampling_settings.noise),
        n_samples=sampling_settings.n_samples,
        predict=module,
        batch_size=sampling_settings.batch_size,
        rng=sampling_settings.seed,
        store=folder / SAMPLE,
        progress=True,
    )
    about = {
        "image": name,
        "model": sampling_settings.model,
        "weights": loaded.weights,
        "method": sampling_settings.method,
        "noise": sampling_settings.noise,
        **_prediction(sample, loaded.class_names),
    }
    write_json(folder / ABOUT, about)
    return sample, about


def write_views(sample: AttributionSample, about: dict[str, Any], analysis: Analysis, folder: Path) -> str:
    """Write figure.png and report.txt beside the sample; returns the report's text."""
    from metfa.plot import figure

    text = report(sample, about, analysis)
    (folder / REPORT).write_text(text + "\n", encoding="utf-8")
    drawn = figure(
        sample, title=_title(about), confidence_level=analysis.confidence, palette=analysis.palette, **analysis.settings
    )
    drawn.savefig(folder / FIGURE, dpi=110)
    return text


def read_folder(folder: Path) -> tuple[AttributionSample, dict[str, Any]]:
    """Sample and description of a folder written by `explain_picture`, or of a bare saved sample."""
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    inside = folder / SAMPLE
    if not inside.is_dir():
        nested = sorted(path.parent.name for path in folder.glob(f"*/{SAMPLE}"))
        if nested:
            raise ValueError(f"{folder} holds several results, show one of them: {', '.join(nested)}")
        return load(folder), {}
    sample = load(inside)
    path = folder / ABOUT
    about: Any = {}
    if path.is_file() and not path.is_symlink() and path.stat().st_size < 2**20:
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
    return sample, about if isinstance(about, dict) else {}


def report(sample: AttributionSample, about: dict[str, Any], analysis: Analysis) -> str:
    """The text that a person reads: prediction, what is significant, what it may get wrong, how it was made."""
    summary = summarise(sample, confidence_level=analysis.confidence, **analysis.settings)[0]
    lines = [(name, str(about[name])) for name in ("image", "model", "method", "noise") if name in about]
    if "predicted" in about:
        lines.append(("prediction", str(about["predicted"])))
    if about.get("explained") not in (None, about.get("predicted")):
        lines.append(("explained", str(about["explained"])))
    lines += summary.lines()
    made = sample.provenance
    lines.append(
        ("time", f"{made.get('seconds', 0):.1f} s for the samples, seed {int(str(made.get('rng', '0x0')), 16)}")
    )
    return "\n".join(f"{_plain(name) + ':':<18}{_plain(text)}" for name, text in lines)


def _prediction(sample: AttributionSample, class_names: Any) -> dict[str, str]:
    if sample.scores is None or sample.scores.ndim != 2:
        return {}
    logits = sample.scores[0].astype(np.float64)
    probabilities = np.exp(logits - logits.max())
    probabilities /= probabilities.sum()

    def named(index: int) -> str:
        name = f"class {index}" if class_names is None or index >= len(class_names) else class_names[index]
        return f"{name} ({probabilities[index]:.2f})"

    best = int(probabilities.argmax())
    target = sample.target[0]
    return {"predicted": named(best), "explained": named(target) if isinstance(target, int) else str(target)}


def _title(about: dict[str, Any]) -> str | None:
    if not about:
        return None
    explained = about.get("explained") or about.get("predicted") or ""
    return _plain(
        f"{about.get('image', '')}: why “{explained}”? {about.get('method', '')} of {about.get('model', '')}"
    )[:140]


def _plain(text: str) -> str:
    """Text from outside without control characters, so that it cannot write to the terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _device(name: str) -> Any:
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"`--device` {name!r} is not available: {str(error).splitlines()[0]}") from error
    return device
