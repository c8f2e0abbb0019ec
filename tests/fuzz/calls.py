"""A call that works of every public function, class and method, with inputs so small that it takes milliseconds."""

import functools
import importlib.util
import inspect
import itertools
import shutil
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from sklearn.linear_model import LogisticRegression
from torch import nn
from torchvision.models.vision_transformer import VisionTransformer

import metfa
from metfa import (
    attacks,
    evaluation,
    explainers,
    metrics,
    models,
    noise,
    plot,
    regions,
    report,
    segmentation,
    stats,
    tables,
    text,
)
from metfa.explainers import CAM, Gradient
from metfa.results.differences import difference_of
from metfa.text.models import BiLSTM, TrainedBiLSTM

from .theirs import (
    explain_pixels,
    host_maps,
    linear,
    mean_of,
    of_class,
    of_class_maps,
    pixels_of,
    probable,
    rows_scores,
    scores_of,
    segments,
    text_scores,
)  # fmt: skip
from .values import ANYTHING, COUNT, FLAG, INDEX, NAME, NUMBER, NUMBERS_OR_ONE, Kind, none_or
from .verdicts import Case, Fresh

SMOOTH = noise.Uniform(0.1, bounds=(0, 1))
SMOOTH_TABLE = noise.Gaussian(0.1)
TERMS = {"threshold": 0.5, "alpha": 0.3, "correction": None, "split": None}


def two_heads():
    class TwoHeads(nn.Module):
        def forward(self, images):
            scores = network()(images)
            return {"logits": scores, "depth": scores.mean()}

    return TwoHeads()


def class_maps(pretrained=False):
    return nn.Conv2d(3, 2, 3, padding=1).eval()


@functools.cache
def network(pretrained=False):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
        return nn.Sequential(*layers).eval()


def made(cls, call):
    """A function that makes an object of `cls` and then calls it, so that settings meet the work itself."""

    def make_and_call(**settings):
        return call(cls(**settings))

    make_and_call.__signature__ = inspect.signature(cls)
    return make_and_call


class Folder:
    """A temporary folder, gone with the process, and names in it that are new."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="metfa-fuzz-"))
        self.numbers = itertools.count()

    def new(self, ending=""):
        return Fresh(lambda: self.path / f"new{next(self.numbers)}{ending}")

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


def cases(folder):
    """All of them; files are written to `folder`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            *of_stats(),
            *of_noise(),
            *of_sampling(folder),
            *of_results(folder),
            *of_parts(folder),
            *of_explainers(),
            *of_metrics(),
            *of_attacks(folder),
            *of_segmentation(folder),
            *of_tables(),
            *of_text(folder),
            *of_regions(),
            *of_models(),
            *of_evaluation(folder),
            *of_plot(),
            *of_report(folder),
        ]


def of_stats():
    samples = np.random.default_rng(0).random((12, 3))
    counts = np.array([0, 3, 12])
    pvalues = np.array([0.01, 0.2, 0.6])
    prior = {"prior": (0.5, 0.5)}
    corrected = {"axis": None}
    yield Case("stats.certified_radius", stats.certified_radius, {"counts": counts, "n": 12, "alpha": 0.1})
    yield Case("stats.certified_ranks", stats.certified_ranks, {"n": 40, "radius": 0.1, "confidence_level": 0.9})
    yield Case("stats.confidence_sequence", stats.confidence_sequence,
               {"samples": samples, "looks": [10, 12], "confidence_level": 0.5, "axis": 0, **prior})  # fmt: skip
    for name in ("bh", "bonferroni", "by", "holm"):
        yield Case(f"stats.{name}", getattr(stats, name), {"pvalues": pvalues, **corrected})
    yield Case("stats.correct", stats.correct, {"pvalues": pvalues, "method": "bh", **corrected},
               kinds={"method": Kind(lambda value: value is None or value == "none")})  # fmt: skip
    yield Case("stats.e_bh", stats.e_bh, {"log_e_values": np.array([5.0, 0.1, -1.0]), **corrected})
    yield Case("stats.closed_e_bh", stats.closed_e_bh,
               {"log_e_values": np.array([5.0, 0.1, -1.0]), "alpha": 0.05, **corrected})  # fmt: skip
    yield Case("stats.e_value_bounds", made(stats.e_value_bounds, lambda bounds: bounds.whole),
               {"log_e_values": np.array([5.0, 0.1, -1.0]), "alpha": 0.05})  # fmt: skip
    yield Case("stats.simes_bounds", made(stats.simes_bounds, lambda bounds: bounds.whole),
               {"pvalues": pvalues, "alpha": 0.05, "dependence": "any"})  # fmt: skip
    yield Case("SimesBounds.among", stats.simes_bounds(pvalues).among, {"regions": np.array([True, False, True])})
    yield Case("stats.expected_false_marks", stats.expected_false_marks, {"n": 12, "alpha": 0.05, "n_features": 9})
    yield Case("stats.prominence", stats.prominence, {"samples": samples, "unit": None, "axis": 0})
    for name in ("jenks", "jenks_of_medians", "jenks_of_means"):
        yield Case(f"stats.{name}", getattr(stats, name), {"values": samples})
    yield Case("stats.variance_shares", stats.variance_shares,
               {"values": np.random.default_rng(0).random((4, 3, 2, 5)), "confidence_level": 0.9, "n_resamples": 20,
                "rng": 0})  # fmt: skip
    yield Case("stats.TimesMean", stats.TimesMean, {"factor": 2.0})
    yield Case("stats.jenks_sorted", stats.jenks_sorted, {"sorted_values": np.sort(samples, axis=None)})
    yield Case("stats.log_e_values", stats.log_e_values, {"counts": counts, "n": 12, "probability": 0.5, **prior})
    for name in ("mean_interval", "median_interval", "smoothed_median"):
        good = {"samples": samples, "confidence_level": 0.9, "axis": 0}
        yield Case(f"stats.{name}", getattr(stats, name), good)
    yield Case("stats.median_ranks", stats.median_ranks, {"n": 12, "confidence_level": 0.9, "n_features": 3})
    yield Case("stats.paper_ranks", stats.paper_ranks, {"n": 12, "confidence_level": 0.9})
    yield Case("stats.min_samples", stats.min_samples, {"alpha": 0.05, "alternative": "less", "n_tests": 3})
    yield Case("stats.proportion_bound", stats.proportion_bound, {"counts": counts, "n": 12, "alpha": 0.1})
    yield Case(
        "stats.sequence_ranks", stats.sequence_ranks, {"n": 40, "confidence_level": 0.5, "n_features": 3, **prior}
    )
    for name in ("sequential_test", "sign_test"):
        good = {"samples": samples, "threshold": 0.5, "alternative": "two-sided", "axis": 0}
        nan_too = Kind(lambda value: NUMBERS_OR_ONE.takes(value) or (isinstance(value, float) and value != value))
        yield Case(f"stats.{name}", getattr(stats, name), good, kinds={"threshold": nan_too})  # on neither side of nan


def of_noise():
    row = np.random.default_rng(0).random((3, 8, 8))

    def drawn(made_noise):
        return made_noise(row, np.random.default_rng(0))

    for name, strength in (("Gaussian", "std"), ("Laplace", "scale"), ("Uniform", "radius")):
        yield Case(f"noise.{name}", made(getattr(noise, name), drawn), {strength: 0.1, "bounds": (0, 1)},
                   kinds={strength: NUMBERS_OR_ONE})  # fmt: skip
        yield Case(f"noise.{name}()", getattr(noise, name)(0.1), {"x": row, "rng": np.random.default_rng(0)})
    good = {"low": 0.9, "high": 1.1, "per": "image", "bounds": None, "channel_axis": 0}
    yield Case("noise.Brightness", made(noise.Brightness, drawn), good)

    of_series = {
        "Amplitude": {"low": 0.9, "high": 1.1, "per": "channel", "bounds": None},
        "FilteredGaussian": {"std": 0.1, "low": 0.1, "high": 0.4, "exponent": 1.0, "sampling_rate": 1.0},
        "TimeShift": {"radius": 2.0, "beyond": "repeat", "sampling_rate": None},
        "TimeWarp": {"radius": 0.5, "spacing": 3.0, "sampling_rate": None},
    }
    for name, good in of_series.items():
        kinds = {"std": NUMBERS_OR_ONE} if "std" in good else {}
        yield Case(f"noise.{name}", made(getattr(noise, name), drawn), good, kinds=kinds)
        yield Case(f"noise.{name}()", getattr(noise, name)(**good), {"x": row, "rng": np.random.default_rng(0)})

    def composed(first, second):
        return drawn(noise.Compose(first, second))

    yield Case("noise.Compose", composed, {"first": SMOOTH, "second": noise.Gaussian(0.1)})

    def in_pixels(noise_, mean, std):
        return drawn(noise.in_pixel_space(noise_, mean, std))

    yield Case("noise.in_pixel_space", in_pixels, {"noise_": SMOOTH, "mean": [0.5] * 3, "std": [0.2] * 3})

    def columns(data, fraction, law, categorical, feature_names):
        found = noise.per_column(data, fraction, law=law, categorical=categorical, feature_names=feature_names)
        return found(np.ones(3), np.random.default_rng(0))

    table = np.random.default_rng(0).random((9, 3))
    good = {"data": table, "fraction": 0.1, "law": noise.Gaussian, "categorical": (), "feature_names": None}
    yield Case("noise.per_column", columns, good)

    def near(table, share, neighbours, rng):
        return noise.from_table(table, share, neighbours=neighbours, rng=rng)(np.ones(3), np.random.default_rng(0))

    yield Case("noise.from_table", near, {"table": table, "share": 0.5, "neighbours": 2, "rng": 0})
    good = {"noise_": noise.Gaussian(0.1), "table": np.random.default_rng(0).random((40, 3)), "folds": 2, "rng": 0}
    yield Case("noise.likeness", lambda noise_, **given: noise.likeness(noise_, **given), good)


def of_sampling(folder):
    inputs = np.ones((1, 3))
    good = {"explainer": linear, "inputs": inputs, "target": 0, "noise": SMOOTH, "n_samples": 5, "rng": 0}
    every = {"predict": None, "row_args": None, "batch_size": None, "run": None}
    yield Case("explain", metfa.explain, {**good, "predict": scores_of}, more=tuple(every))
    yield Case("explain of torch", metfa.explain,
               {**good, "explainer": Gradient(network()), "inputs": torch.rand(1, 3, 8, 8)})  # fmt: skip
    parts = {"pixels": np.ones((1, 2, 2)), "table": inputs}
    yield Case("explain of parts", metfa.explain,
               {**good, "explainer": lambda inputs, target: inputs, "inputs": parts,
                "noise": {"pixels": SMOOTH, "table": None}})  # fmt: skip
    yield Case("explain until", metfa.explain, {**good, "n_samples": metfa.Until(undecided=0.5, max_samples=30)})
    words = {"scale": NAME, "draws": NAME, "against": ANYTHING}
    pair = {"before": linear, "after": of_class, **good, "scale": "raw", "draws": "shared"}
    del pair["explainer"]
    yield Case("compare", metfa.compare, {**pair, "names": ["a", "b"]}, kinds=words)
    rule = metfa.Until(undecided=0.9, max_samples=30)
    yield Case("compare until", metfa.compare, {**pair, "n_samples": rule}, kinds=words)
    results = {"before": table_sample(), "after": table_sample(), "scale": "raw", "names": ["a", "b"]}
    yield Case("compare results", metfa.compare, results, kinds=words)
    both = {**good, "explainer": of_class, "target": 1, "against": 0, "scale": "raw"}
    yield Case("contrast", metfa.contrast, {**both, "predict": scores_of}, kinds=words)
    run = {"store": folder.new(), "progress": False, "input_names": ["a"], "feature_names": ["x", "y", "z"]}
    run |= {"class_names": ["a", "b", "c"], "first_sample": 0}
    yield Case("Run", made(metfa.Run, lambda run: metfa.explain(**good, run=run)), run)
    until = {"undecided": 0.5, "alpha": 0.05, "correction": "e-bh", "max_samples": 30, "growth": 1.5, "first": 5}
    yield Case("Until", made(metfa.Until, lambda rule: metfa.explain(**{**good, "n_samples": rule})), until,
               kinds={"width": NUMBER})  # fmt: skip
    yield Case("Until of width", made(metfa.Until, lambda rule: metfa.explain(**{**good, "n_samples": rule})),
               {"width": 0.5, "max_samples": 30, "confidence_level": 0.5}, kinds={"width": NUMBER})  # fmt: skip
    trained = {"models": [np.arange(3.0) + number for number in range(4)], "explainer": lambda _: linear,
               "inputs": inputs, "target": 0, "noise": SMOOTH, "n_samples": 5, "rng": 0}  # fmt: skip
    yield Case("across_models", metfa.across_models, {**trained, "of": "mean"}, ("batch_size", "run"))
    yield Case("spread", metfa.spread, {**trained, "n_draws": 1, "confidence_level": 0.9}, ("batch_size", "run"))
    smoothed = {"explainer": linear, "noise": SMOOTH, "n_samples": 10, "batch_size": 10, "rng": 0}
    yield Case("Smoothed", made(metfa.Smoothed, lambda smooth: smooth(inputs, target=0)), smoothed)
    yield Case("Smoothed()", metfa.Smoothed(linear, noise=SMOOTH, rng=0), {"inputs": inputs, "target": 0})
    yield Case("seeded", made(metfa.seeded, lambda seeded: seeded(inputs, 0)), {"explainer": linear, "rng": 0})
    own = metfa.randomised(lambda inputs, target, rngs: np.stack([rng.random(3) for rng in rngs]), rng=0)
    yield Case("randomised()", own, {"inputs": inputs, "target": 0, "rngs": None})
    called = {"batch_size": 2, "softmax": True, "fast": None, "memory_format": None}
    pictures = torch.rand(2, 3, 8, 8)
    yield Case(
        "Called", made(metfa.Called, lambda asked: asked.probabilities(pictures)), {"model": network(), **called}
    )
    rows = np.random.default_rng(0).random((5, 3))
    frame = pd.DataFrame(rows[:, :2]).assign(town=list("abaab"))
    yield Case("Coded", made(metfa.Coded, lambda coded: coded.codes(frame)), {"model": len, "table": frame})
    yield Case("Coded()", metfa.Coded(lambda table: np.nan_to_num(table[[0, 1]].to_numpy()), frame), {"codes": rows})
    yield Case("FixedBatch", made(metfa.FixedBatch, lambda model: model(rows)), {"model": scores_of, "size": 2})
    asked = metfa.Called(network())
    for name in ("scores", "probabilities"):
        yield Case(f"Called.{name}", getattr(asked, name), {"inputs": pictures})
    for name in ("target_probabilities", "gradient"):
        yield Case(f"Called.{name}", getattr(asked, name), {"inputs": pictures, "target": 1})


def table_sample(n=12, **settings):
    good = {"noise": noise.Gaussian(0.1), "n_samples": n, "rng": 0, "predict": scores_of, **settings}
    return metfa.explain(linear, np.ones((2, 3)), 0, **good)


def picture_sample(n=8, made_noise=SMOOTH):
    return metfa.explain(CAM(network()), torch.rand(1, 3, 8, 8), noise=made_noise, n_samples=n, rng=0)


def series_sample():
    waves = np.random.default_rng(0).normal(size=(1, 2, 12))
    return metfa.explain(explain_pixels(None), waves, 0, noise=noise.Gaussian(0.1), n_samples=8, rng=0)


def volume_sample():
    inputs = np.random.default_rng(0).random((1, 1, 3, 4, 5))
    return metfa.explain(explain_pixels(None), inputs, 0, noise=noise.Gaussian(0.1), n_samples=8, rng=0)


def parts_sample(n=12, **settings):
    inputs = {"pixels": np.ones((2, 4, 4)), "table": np.ones((2, 3))}
    both = {"pixels": SMOOTH, "table": noise.Gaussian(0.1)}
    good = {"noise": both, "n_samples": n, "rng": 0, "predict": lambda inputs: scores_of(inputs["table"]), **settings}
    return metfa.explain(lambda inputs, target: inputs, inputs, 0, **good)


def of_parts(folder):
    parts, shown = parts_sample(), {"title": "Title", "threshold": 0.5, "alpha": 0.3, "confidence_level": 0.9}
    for name in ("terms", "significance_map", "summary"):
        yield Case(f"parts.{name}", getattr(parts, name), {**TERMS, "threshold": {"table": 0.5}})
    yield Case("parts.of_input", parts.of_input, {"index": 1})
    yield Case("parts.concat", parts.concat, {"other": parts_sample(3, run=metfa.Run(first_sample=12))})
    yield Case("parts.save", parts.save, {"path": folder.new(), "overwrite": False})
    yield Case("parts.report", parts.report, {"path": folder.new(".html"), **shown})
    yield Case("parts.plot", parts.plot, {"index": 0, **shown}, ("palette",))
    yield Case("plot.side_by_side", plot.side_by_side, {"parts": parts, "index": 0, "palette": "paper", **shown})


def of_results(folder):
    sample = table_sample()
    for name in ("terms", "certified_radius", "significance_map", "summary"):
        yield Case(f"sample.{name}", getattr(sample, name), TERMS)
    for name in ("mean_interval", "confidence_interval", "smoothed"):
        yield Case(f"sample.{name}", getattr(sample, name), {"confidence_level": 0.9})
    yield Case("sample.to_dataframe", sample.to_dataframe, {**TERMS, "confidence_level": 0.9})
    yield Case("sample.certified_interval", sample.certified_interval, {"radius": 0.01, "confidence_level": 0.5})
    yield Case("sample.guarantee", sample.guarantee, {
        "region": np.array([True, False, True]), "threshold": 0.5, "alpha": 0.3, "dependence": "any", "split": None,
    })  # fmt: skip
    yield Case("sample.scaled", sample.scaled, {"scale": "mean"})
    rows = table_sample(run=metfa.Run(input_names=["a", "b"]))
    yield Case("sample.across_inputs", rows.across_inputs, {"of": "mean", "absolute": True})
    yield Case("sample.ranking", sample.ranking, {"index": 1, "alpha": 0.3, "correction": "holm"})
    yield Case("sample.test", sample.test, {"threshold": 0.5, "alternative": "less", "split": None})
    yield Case("sample.threshold", sample.threshold, {"rule": stats.jenks, "split": None})
    yield Case("sample.plan", sample.plan, {"undecided": 0.5, "threshold": 0.5, "alpha": 0.3, "max_samples": 30})
    yield Case("sample.of_input", sample.of_input, {"index": 1})
    later = metfa.explain(linear, np.ones((2, 3)), 0, noise=noise.Gaussian(0.1), n_samples=3, rng=0,
                          predict=scores_of, run=metfa.Run(first_sample=12))  # fmt: skip
    yield Case("sample.concat", sample.concat, {"other": later})
    yield Case("sample.decide", sample.decide, {"terms": sample.terms(0.5)})
    yield Case("sample.too_few_for", sample.too_few_for, {"confidence_level": 0.9})
    yield Case("sample.save", sample.save, {"path": folder.new(), "overwrite": True})
    shown = {"title": "Title", "threshold": 0.5, "alpha": 0.3, "confidence_level": 0.9}
    yield Case("sample.report", sample.report, {"path": folder.new(".html"), **shown})
    if importlib.util.find_spec("anywidget") is not None:
        other = metfa.explain(of_class, np.ones((2, 3)), 0, noise=noise.Gaussian(0.1), n_samples=12, rng=0)
        shown = {"other": other, "more": None, "threshold": 0.5, "alpha": 0.3, "regions": None}
        yield Case("sample.explore", sample.explore, shown)
        yield Case("explore.explored", metfa.explore.explored, {"sample": sample, "threshold": 0.5, "kind": None})
    yield Case("Terms", metfa.Terms, {**TERMS, "split": 0})
    yield Case(
        "Terms of a rule", lambda threshold: sample.significance_map(threshold, alpha=0.3), {"threshold": stats.jenks}
    )
    saved = folder.path / "saved"
    sample.save(saved)
    yield Case("load", metfa.load, {"path": saved})


def of_explainers():
    model, images = network(), torch.rand(1, 3, 8, 8)
    host = images.double().numpy()

    def shown(explainer):
        return explainer(images, target=0)

    def shown_host(explainer):
        return explainer(host, target=0)

    def case(name, **good):
        cls = getattr(explainers, name)
        call = shown_host if name in ("RISE", "LIME") else shown
        asked = pixels_of if name in ("RISE", "LIME") else model
        yield Case(f"explainers.{name}", made(cls, call), {"called": asked, **good})
        explainer = cls(asked, **good)
        yield Case(f"explainers.{name}()", explainer, {"inputs": host if asked is pixels_of else images, "target": 0})

    yield from case("Gradient", channel_axis=1, scale=True)
    yield from case("SmoothGrad", n_perturbations=2, std=0.1, average="signed", scale=True, rng=0)
    yield from case("RISE", n_masks=4, grid=2, keep=0.5, baseline=0.0, scale=True, rng=0)
    yield from case("LIME", n_perturbations=8, segmentation=segments, n_segments_shown=2, hide="mean", rng=0)
    yield from case("IGOS", n_iterations=2, grid=2, n_steps=2, baseline=0.0, rng=0)
    yield from case("ScoreCAM", layer="1", variant="original", baseline=0.0, scale=True)
    yield from case("CAM", upsample=True, scale=True)
    yield from case("MASK", n_iterations=2, grid=2, baseline=0.0, jitter=1, rng=0)
    yield from case("LRP", composite="zbox-alpha1beta0", bounds=(0.0, 1.0), channel_axis=1, scale=True)
    relevance = explainers.LRP(model, composite="attnlrp")
    yield Case("explainers.LRP() of attention", relevance, {"inputs": images, "target": 0})
    yield Case("explainers.LRP.shares", relevance.shares, {"inputs": images, "target": 0})

    sizes = {"image_size": 32, "patch_size": 8, "num_layers": 2, "num_heads": 2, "hidden_dim": 12, "mlp_dim": 24}
    tokens, pictures = VisionTransformer(**sizes, num_classes=3).eval(), torch.rand(1, 3, 32, 32)
    nn.init.normal_(tokens.heads.head.weight)  # torchvision begins with zeros
    for name in ("AttentionRollout", "GradientRollout", "LeGrad"):
        explainer = getattr(explainers, name)
        call = made(explainer, lambda one: one(pictures, target=0))
        yield Case(f"explainers.{name}", call, {"called": tokens, "patch_grid": (4, 4), "scale": True})
        yield Case(f"explainers.{name}()", explainer(tokens), {"inputs": pictures, "target": 0})

    def blurred(sigma, kernel, border):
        return explainers.Blur(sigma, kernel=kernel, border=border)(images)

    yield Case("explainers.Blur", blurred, {"sigma": 1.0, "kernel": 3, "border": "replicate"})

    def blocked(grid, size):
        return explainers.Blocks(grid, size=size)(np.zeros((8, 8, 1)))

    yield Case("explainers.Blocks", blocked, {"grid": (2, 3), "size": None})
    yield Case("explainers.Blocks()", explainers.Blocks(2), {"values": np.zeros((8, 8, 1))})
    series = np.random.default_rng(0).random((2, 3, 8))
    found = explainers.RISE(lambda x: x.mean(-1), n_masks=4, grid=2, rng=0)
    yield Case("explainers.RISE() of series", found, {"inputs": series, "target": 0})
    yield Case("explainers.mean_colour", explainers.mean_colour, {"images": images})

    def heat(explainer, channel_axis, sign):
        return explainers.heatmap(explainer, channel_axis=channel_axis, sign=sign)(host, target=0)

    yield Case(
        "explainers.heatmap", heat, {"explainer": lambda x, target: x - 0.5, "channel_axis": 1, "sign": "absolute"}
    )

    def captum(model, name, channel_axis, sign):
        return explainers.from_captum(model, name, channel_axis=channel_axis, sign=sign)(images, target=0)

    yield Case("explainers.from_captum", captum,
               {"model": model, "name": "Saliency", "channel_axis": 1, "sign": "absolute"})  # fmt: skip
    from captum.attr import InputXGradient
    from pytorch_grad_cam import GradCAM

    def reduced(method, target):
        return explainers.heatmap(method)(images, target=target)

    yield Case("heatmap of Captum's object", reduced, {"method": InputXGradient(model).attribute, "target": 0})

    def gradcam(method, model, layer, target_of):
        return explainers.from_gradcam(method, model, layer, target_of=target_of)(images, target=0)

    yield Case("explainers.from_gradcam", gradcam,
               {"method": GradCAM, "model": model, "layer": "1", "target_of": None},
               kinds={"method": ANYTHING})  # fmt: skip
    from lime.lime_tabular import LimeTabularExplainer

    table = np.random.default_rng(0).random((30, 3))

    def limed(explainer, predict, softmax, n_segments_shown, rng, num_samples):
        adapted = explainers.from_lime(
            explainer, predict, softmax=softmax, n_segments_shown=n_segments_shown, rng=rng, num_samples=num_samples
        )
        return adapted(np.ones((1, 3)), target=0)

    good = {"explainer": LimeTabularExplainer(table, random_state=0), "predict": probable, "softmax": False}
    yield Case("explainers.from_lime", limed, {**good, "n_segments_shown": None, "rng": 0, "num_samples": 20})
    import shap

    def shapped(explainer, predict):
        return explainers.from_shap(explainer, predict)(np.ones((1, 3)), target=0)

    kernel = shap.KernelExplainer(scores_of, table[:4], silent=True)
    yield Case("explainers.from_shap", shapped, {"explainer": kernel, "predict": scores_of},
               kinds={"predict": Kind(none_or(callable))})  # fmt: skip


def of_metrics():
    images = np.random.default_rng(0).random((2, 3, 8, 8))
    maps = np.random.default_rng(1).random((2, 8, 8))
    judged = {"model": pixels_of, "inputs": images, "attributions": maps, "target": 0}
    for name in ("insertion", "deletion", "overall"):
        yield Case(f"metrics.{name}", getattr(metrics, name), {**judged, "baseline": "black", "steps": 4, "rng": 0})
    yield Case("metrics.region_score", metrics.region_score,
               {"model": pixels_of, "inputs": images, "regions": maps > 0.5, "target": 0,
                "baseline": "black"})  # fmt: skip
    pictures = torch.from_numpy(images).float()
    yield Case("metrics.infidelity", metrics.infidelity,
               {"model": network(), "inputs": pictures, "attributions": torch.rand(2, 8, 8), "target": 0,
                "noise": noise.Gaussian(0.1), "n_perturbations": 2, "normalise": True, "rng": 0})  # fmt: skip

    def robustly(metric, noise, n_outer, rng):
        return metrics.robust(metric, noise=noise, n_outer=n_outer, rng=rng)(pixels_of, images, maps, 0)

    yield Case("metrics.robust", robustly, {"metric": mean_of, "noise": SMOOTH, "n_outer": 2, "rng": 0},
               kinds={"metric": Kind(callable)})  # fmt: skip
    yield Case("metrics.robust()", metrics.robust(mean_of, noise=SMOOTH, n_outer=2, rng=0), judged)
    sample = table_sample()
    for name in ("max_sensitivity", "mstd"):
        yield Case(f"metrics.{name}", getattr(metrics, name), {"sample": sample})
    yield Case("metrics.prediction_agreement", metrics.prediction_agreement, {"sample": picture_sample()})
    yield Case("metrics.interval_width", metrics.interval_width, {"sample": sample, "confidence_level": 0.9})
    yield Case("metrics.top_k_overlap", metrics.top_k_overlap, {"sample": sample, "k": 2})
    yield Case("metrics.certified_radius", metrics.certified_radius, {"sample": sample, **TERMS})
    yield Case("metrics.certified_share", metrics.certified_share, {"sample": sample, "radius": 0.1, **TERMS})
    yield Case("metrics.undecided", metrics.undecided, {"sample": sample, **TERMS})


def of_attacks(folder):
    model, images = network(), torch.rand(1, 3, 8, 8)
    drawn = torch.zeros(8, 8)
    drawn[:4, :4] = 1
    attacked = {"model": model, "explainer": Gradient(model), "inputs": images, "target": 0, "target_map": drawn}
    smooth = metfa.Smoothed(Gradient(model), noise=SMOOTH, n_samples=6)
    quick = {"n_steps": 2, "check_every": 1, "rng": 0, "batch_size": 2}
    more = ("step_size", "epsilon", "beta", "softening", "schedule", "unrolled", "n_restarts", "map_weight", "margin")
    kinds = {"settings": ANYTHING, "softening": ANYTHING}
    yield Case("attacks.manipulate", attacks.manipulate, {**attacked, **quick}, more, kinds)
    yield Case("attacks.manipulate the defence", attacks.manipulate,
               {**attacked, **quick, "defence": smooth, "knows": "defence"}, (), kinds)  # fmt: skip
    yield Case("attacks.targeted", attacks.targeted,
               {**attacked, **quick, "target": 1, "settings": "dombrowski", "explainer": CAM(model)},
               more, kinds)  # fmt: skip
    good = {"n_steps": 2, "step": "adam", "step_size": 0.01, "prediction_loss": "probabilities", "map_weight": 1.0}
    kinds = {name: Kind(lambda value: value is None or NUMBERS_OR_ONE.takes(value)) for name in
             ("map_weight", "prediction_weight", "distance_weight", "defence_weight", "epsilon")}  # fmt: skip
    first_steps = Kind(INDEX.takes)
    kinds["n_first_steps"] = first_steps

    def run(settings):
        return attacks.manipulate(**attacked, settings=settings, rng=0)

    yield Case("attacks.AttackSettings", made(attacks.AttackSettings, run), good, kinds=kinds)
    yield Case("attacks.drawn", attacks.drawn, {"shape": "frame", "height": 8, "width": 8})
    result = attacks.manipulate(**attacked, **quick)
    saved = folder.path / "attack"
    result.save(saved)
    yield Case("attacks.load_attack", attacks.load_attack, {"path": saved})
    yield Case("attack.save", result.save, {"path": folder.new(), "overwrite": False})
    yield Case("attack.budget", result.budget, {"rounded": False})
    yield Case("plot.attack", plot.attack, {"result": result, "index": 0, "title": None})
    clean, moved = picture_sample(), picture_sample()
    yield Case("attacks.detect", attacks.detect, {"clean": clean, "attacked": moved, "confidence_level": 0.9})
    detection = attacks.detect(clean, moved, confidence_level=0.9)
    for name in ("roc", "auc"):
        yield Case(f"detection.{name}", getattr(detection, name), {"sign": next(iter(detection.clean))})


def of_segmentation(folder):
    image = torch.rand(3, 8, 8)
    region = np.zeros((8, 8), dtype=bool)
    region[2:5, 2:5] = True
    quick = functools.partial(segmentation.GridSaliency, n_iterations=2)
    good = {"model": of_class_maps, "image": image, "target": 1, "region": region, "method": quick, "noise": SMOOTH,
            "n_samples": 6, "min_pixels": 1, "batch_size": 2, "rng": 0}  # fmt: skip
    yield Case("segmentation.explain_context", segmentation.explain_context, good, ("run",))
    network = segmentation.RegionModel(nn.Conv2d(3, 2, 3, padding=1).eval(), region)
    settings = {"n_iterations": 2, "grid": 2, "learning_rate": 0.05, "baseline": 0.0, "scale": False}
    yield Case("segmentation.GridSaliency", made(segmentation.GridSaliency, lambda e: e(image[None])),
               {"called": of_class_maps, "target_class": 1, "region": region, **settings})  # fmt: skip
    yield Case("segmentation.GridSaliency()", segmentation.GridSaliency(network, **settings),
               {"inputs": image[None], "target": None})  # fmt: skip

    def on_region(network, region, softmax, shown):
        return segmentation.RegionModel(network, region, softmax=softmax, shown=shown)(image[None])

    good = {"network": nn.Conv2d(3, 2, 3, padding=1).eval(), "region": region, "softmax": True, "shown": None}
    yield Case("segmentation.RegionModel", on_region, good)
    yield Case("segmentation.predicted_region", segmentation.predicted_region,
               {"model": of_class_maps, "image": image, "target": 1})  # fmt: skip
    images = image[None].double().numpy()
    context = np.random.default_rng(0).random((1, 8, 8)) > 0.5

    yield Case("segmentation.context_faithfulness", segmentation.context_faithfulness,
               {"model": host_maps, "inputs": images, "context": context, "target": 1, "region": region,
                "baseline": "black"})  # fmt: skip
    found = segmentation.explain_context(of_class_maps, image, 1, region=region, method=quick, n_samples=8,
                                         min_pixels=1, rng=0)  # fmt: skip
    yield Case("segmentation.context_table", segmentation.context_table,
               {"model": of_class_maps, "explanations": [found], "class_names": None, "threshold": 0.5, "alpha": 0.3,
                "noise": SMOOTH, "n_outer": 2, "rng": 0, "baseline": "black"})  # fmt: skip
    context_terms = {"threshold": 0.5, "alpha": 0.3}
    for name in ("terms", "significance_map", "significant", "area_ratio", "summary"):
        yield Case(f"context.{name}", getattr(found, name), context_terms, ("split", "correction"))
    yield Case("context.above", found.above, {"threshold": 0.5, "split": None})
    yield Case("context.threshold", found.threshold, {"rule": stats.jenks, "split": None})
    for name in ("smoothed", "confidence_interval"):
        yield Case(f"context.{name}", getattr(found, name), {"confidence_level": 0.9})
    yield Case("context.save", found.save, {"path": folder.new(), "overwrite": False})
    yield Case("context.over", found.over, {"regions": None, "how": None, "against": "rest"})
    yield Case("context.report", found.report, {"path": folder.new(".html"), "alpha": 0.3}, ("title", "threshold"))
    saved = folder.path / "context"
    found.save(saved)
    yield Case("segmentation.load_context", segmentation.load_context, {"path": saved})
    yield Case("plot.context", plot.context, {"explanation": found, "title": None, **context_terms, "palette": "paper"})


def of_text(folder):
    texts = ["a good film", "a dull film"]

    def shown(explainer):
        return explainer(texts[:1], target=0)

    def case(name, **good):
        cls = getattr(text, name)
        yield Case(f"text.{name}", made(cls, shown), {"called": text_scores, **good})
        yield Case(f"text.{name}()", cls(text_scores, **good), {"inputs": texts, "target": 0})

    yield from case("Occlusion", scale=True)
    yield from case("LIME", scale=True, n_perturbations=20, rng=0, kernel_width=25.0, regularization=1.0)
    yield from case("LEMNA", scale=True, n_perturbations=20, rng=0, n_components=1, fused=0.1)
    reader = TrainedBiLSTM(
        BiLSTM(5, 2, embedding_size=3, n_units=2, n_hidden=2).eval(), ("a", "good", "film"), ("no", "yes")
    )
    yield Case("text.GradientXInput", made(text.GradientXInput, shown), {"model": reader, "scale": True})
    yield Case("text.GradientXInput()", text.GradientXInput(reader), {"inputs": texts, "target": 0})
    yield Case("text.save_model", text.save_model, {"model": reader, "path": folder.new(".npz"), "overwrite": False})
    saved = text.save_model(reader, folder.path / "reader.npz")
    yield Case("text.load_model", text.load_model, {"name_or_path": saved})
    synonyms = text.Synonyms(0.5)

    def spoken(made_noise):
        return made_noise("a good film", np.random.default_rng(0))

    good = {"p": 0.5, "part_of_speech": None, "multi_word": False, "wordnet": None}
    yield Case("text.Synonyms", made(text.Synonyms, spoken), good)
    yield Case("text.Synonyms()", synonyms, {"row": "a good film", "rng": np.random.default_rng(0)})
    for name in ("candidates", "coverage"):
        yield Case(f"text.Synonyms.{name}", getattr(synonyms, name), {"row": "a good film"})
    good = {"p": 0.5, "share": 0.5, "part_of_speech": "counts", "wordnet": None}
    yield Case("text.SenseSynonyms", made(text.SenseSynonyms, spoken), good)

    def encoder(rows):
        return np.array([[row.count(letter) for letter in "adfglmou"] for row in rows], dtype=float)

    good = {"noise": synonyms, "encoder": encoder, "similarity": 0.5, "tries": 5}
    yield Case("text.OnlyClose", made(text.OnlyClose, spoken), good)
    quick = functools.partial(text.LIME, n_perturbations=20)
    good = {"model": text_scores, "text": "a good film", "target": 0, "method": quick, "noise": synonyms,
            "n_samples": 6, "batch_size": None, "rng": 0}  # fmt: skip
    yield Case("text.explain_text", text.explain_text, good, ("run",))
    sources = ["a good film", "a dull film"]
    answered = {"scorer": rows_scores, "delta": 0.5, "groups": None, "pilot": 4}
    asked = {"sources": sources, "n_samples": 6, "batch_size": None, "rng": 0}
    yield Case("text.explain_answer", text.explain_answer, {**answered, **asked}, ("run",))
    yield Case("text.leave_one_out", text.leave_one_out, {"scorer": rows_scores, "sources": sources, "groups": None})
    found = text.explain_answer(rows_scores, sources, delta=0.5, pilot=4, n_samples=6, rng=0)
    yield Case("text.put_beside", text.put_beside, {"found": found, "numbers": {"left out": [[0.5, 1.0]]}})
    yield Case("text.PromptNoise",
               made(text.PromptNoise, lambda noise: noise([sources], rngs=[np.random.default_rng(0)])),
               {"scorer": rows_scores, "order": True, "templates": None, "embeddings": 0.0})  # fmt: skip
    yield Case("text.explain_answer_tree", text.explain_answer_tree,
               {"scorer": rows_scores, "documents": ["a good film. It is old.", "a dull film"], "levels": "sentences",
                "delta": 0.5, "alpha": 0.1, "answers": None, "n_samples": 12, "pilot": 4, "batch_size": None,
                "rng": 0}, ("run",))  # fmt: skip
    yield Case("text.SourceEffects", made(text.SourceEffects, lambda effects: effects([sources])),
               {**answered, "rng": 0})  # fmt: skip
    effects = text.SourceEffects(rows_scores, delta=0.5, pilot=4)
    yield Case("text.SourceEffects()", effects, {"inputs": [sources], "target": 0, "rngs": None})
    yield Case("SourceEffects.of_every_answer", effects.of_every_answer, {"inputs": [sources], "rngs": None})
    judged = {"model": text_scores, "inputs": texts, "attributions": [[1.0, 2, 3], [1, 2, 0.5]], "target": 0, "n": 2}
    for name in ("fdt", "st"):
        yield Case(f"text.{name}", getattr(text, name), {**judged, "rng": 0})
    yield Case("text.fat", text.fat, {**judged, "others": ["the ship was good and old"], "rng": 0})
    sample = text.explain_text(text_scores, "a good film", 0, method=quick, noise=synonyms, n_samples=8, rng=0)
    html = {"title": None, "threshold": 0.5, "alpha": 0.3, "confidence_level": 0.9}
    yield Case("text.render_html", text.render_html, {"sample": sample, **html, "page": False})
    yield Case("text.render_terminal", text.render_terminal, {"sample": sample, **html, "width": 80, "colour": False})
    yield Case("text.words_from_tokens", text.words_from_tokens,
               {"attributions": [9.0, 1.0, 2.0], "word_index": [None, 0, 1], "n_words": 2})  # fmt: skip


def of_regions():
    picture = np.random.default_rng(0).random((3, 12, 12))
    pooling = {"how": "mean", "against": None}
    kinds = {"shape": ANYTHING, "against": ANYTHING, "n_segments": COUNT}
    found = {"method": "slic", "shape": None, **pooling}
    halves = {"names": ["left", "right"], "how": "mean", "against": "rest"}
    yield Case("Regions", metfa.Regions, {"masks": np.array([0, 0, 1, 1]), **halves}, kinds=kinds)
    sample = table_sample()
    yield Case("sample.over", sample.over, {"regions": np.array([0, 1, 1]), **pooling}, kinds=kinds)
    yield Case("regions.superpixels", regions.superpixels, {"image": picture, "n_segments": 5, **found}, kinds=kinds)
    tree = {"image": picture, "n_segments": (3, 9), **found}
    yield Case("regions.tree", regions.tree, tree, kinds={**kinds, "n_segments": ANYTHING})
    levels = regions.tree(picture, (3, 9))
    opened = {"region": INDEX, "level": INDEX, "against": ANYTHING}
    yield Case("tree.inside", levels.inside, {"region": 1, "level": 0, "against": None}, kinds=opened)
    yield Case("tree.children", levels.children, {"region": 1, "level": 0}, kinds=opened)
    yield Case("tree.alpha_inside", levels.alpha_inside, {"region": 1, "level": 0, "alpha": 0.05}, kinds=opened)
    yield Case("regions.grid", regions.grid, {"of": (8, 8), "cells": 2, **pooling}, kinds=kinds)
    yield Case("regions.blocks", regions.blocks, {"of": (8, 8, 8), "cells": 2, **pooling}, kinds=kinds)
    windows = {"of": (2, 20), "length": 5, "axis": -1, "together": True, **pooling}
    yield Case("regions.windows", regions.windows, windows, kinds={**kinds, "length": COUNT, "together": FLAG})
    boxes = {"of": (8, 8), "corners": [(0, 0, 3, 3)], "names": None, **pooling}
    yield Case("regions.boxes", regions.boxes, boxes, kinds=kinds)
    labels = {"segmentation": np.array([[0, 1], [2, 2]]), "names": None, "of": (4, 4), "ignore": 0, **pooling}
    yield Case("regions.objects", regions.objects, labels, kinds=kinds)
    yield Case("regions.sentences", regions.sentences, {"of": "One. Two.", "split": None, **pooling}, kinds=kinds)
    yield Case("regions.phrases", regions.phrases, {"of": "One, two.", **pooling}, kinds=kinds)
    columns = {"of": ["a=1", "a=2", "b"], "variables": None, "how": "sum", "against": None}
    yield Case("regions.variables", regions.variables, columns, kinds=kinds)


def of_models():
    image = Image.fromarray(np.full((16, 16, 3), 128, np.uint8))
    for name, loaded in (("load", network), ("load_segmentation", class_maps)):
        found = f"{__name__}:{loaded.__name__}"
        yield Case(f"models.{name}", getattr(models, name), {"name": found, "pretrained": False})
    yield Case("models.CentreCrop", made(models.CentreCrop, lambda crop: crop(image)), {"size": 8, "fraction": 0.875})
    yield Case("models.WholePicture", made(models.WholePicture, lambda whole: whole(image)), {"size": (8, 8)},
               kinds={"size": ANYTHING})  # fmt: skip
    yield Case("models.CentreCrop()", models.CentreCrop(8), {"image": image})
    pictures = torch.rand(1, 3, 8, 8)
    yield Case("models.Normalised", made(models.Normalised, lambda model: model(pictures)),
               {"model": network(), "mean": [0.5] * 3, "std": [0.2] * 3})  # fmt: skip
    yield Case("models.Selected", made(models.Selected, lambda model: model(pictures)),
               {"model": two_heads(), "output": "logits"})  # fmt: skip
    yield Case("models.TwoClasses", made(models.TwoClasses, lambda model: model(pictures)),
               {"model": nn.Sequential(network(), nn.Linear(2, 1))})  # fmt: skip
    yield Case("models.fold_batch_norm", models.fold_batch_norm, {"model": network(), "example": pictures})


def of_evaluation(folder):
    settings = {
        "model": pixels_of,
        "inputs": np.random.default_rng(0).random((2, 3, 8, 8)),
        "explainers": {"own": explain_pixels},
        "metrics": ["mstd", "faithfulness"],
        "sampling": {"u": SMOOTH},
        "outer": {"u": SMOOTH},
        "n_samples": 6,
        "n_outer": 2,
        "batch_size": 8,
    }
    whole = {"limit": None, "targets": None, "seed": 0, "confidence_level": 0.9, "device": "cpu", "version": "1"}
    more = {"aggregates": ("mean",)}
    several = Kind(lambda value: value is not None and not isinstance(value, str | bool | bytes))
    kinds = {"n_samples": several, "confidence_level": several}
    yield Case("Study", metfa.Study, {**settings, **whole, **more}, kinds=kinds)

    def evaluated(study):
        store = folder.path / f"store{next(folder.numbers)}"
        return evaluation.evaluate(study, store=store).to_dataframe()

    yield Case("Study, evaluated", made(metfa.Study, evaluated), {**settings, **whole, **more}, kinds=kinds)
    yield Case("Study, regions", made(metfa.Study, evaluated),
               {**settings, "metrics": ["mstd"], "over": metfa.regions.grid((8, 8), 2), "version": "1"},
               kinds=kinds)  # fmt: skip
    settings = {**settings, "n_samples": (6, 8)}
    study = metfa.Study(**settings, aggregates=("vanilla", "smoothed"), version="1")
    runs = {"study": study, "store": folder.new(), "store_options": None, "executor": "local", "workers": 1}
    yield Case("evaluate", evaluation.evaluate, runs, ("progress",))
    yield Case("evaluation.prepare", evaluation.prepare, {"study": study, "store": folder.new(), "store_options": None})
    done = evaluation.evaluate(study, store=folder.path / "store")
    yield Case("evaluation.table", done.table, {"metric": "mstd", "against": "vanilla", "n_samples": 8},
               ("explainer", "sampling", "confidence_level", "correction"),
               kinds={"explainer": NAME, "metric": NAME, "against": NAME})  # fmt: skip
    yield Case("plot.study_differences", plot.study_differences, {"tables": done.tables(against="vanilla")},
               ("title",))  # fmt: skip
    yield Case(
        "evaluation.write_tables",
        evaluation.write_tables,
        {"evaluation": done, "folder": folder.new(), "overwrite": False},
    )
    written = folder.path / "study.toml"
    Image.fromarray(np.full((8, 8, 3), 128, np.uint8)).save(folder.path / "picture.png")
    lines = ('[model]\nname = "efficientnet-lite0"', '[data]\ninputs = "."', '[explainers]\nown = "gradient"',
             "[metrics.mstd]", '[outer]\nu = "uniform:0.1"')  # fmt: skip
    written.write_text("\n".join(lines), encoding="utf-8")
    yield Case("evaluation.read_study", evaluation.read_study,
               {"path": written, "allow_import": False, "allow_download": False})  # fmt: skip
    yield Case("plot.mstd_ratio", plot.mstd_ratio, {"evaluation": done, "against": "n_samples", "to": "vanilla"},
               ("explainer", "sampling", "n_samples", "confidence_level", "title"),
               kinds={"explainer": NAME})  # fmt: skip
    yield Case("plot.stability_and_faithfulness", plot.stability_and_faithfulness,
               {"evaluation": done, "faithfulness": "overall", "relative": True},
               ("explainer", "sampling", "n_samples", "confidence_level", "title"),
               kinds={"explainer": NAME, "faithfulness": NAME})  # fmt: skip


def of_tables():
    table = np.random.default_rng(0).normal(size=(30, 2))
    model = LogisticRegression().fit(table, table[:, 0] > 0)
    yield Case("tables.explain", tables.explain,
               {"model": model, "inputs": table[:2], "target": 1, "background": table, "noise": SMOOTH_TABLE,
                "method": "linear", "output": "margin", "n_samples": 2, "batch_size": 4, "rng": 0,
                "run": None})  # fmt: skip


def of_plot():
    table, picture, gaussian = table_sample(), picture_sample(), picture_sample(12, noise.Gaussian(0.1))
    terms = {"threshold": 0.5, "alpha": 0.3, "confidence_level": 0.9}
    yield Case("plot.bars", plot.bars,
               {"sample": table, "index": 0, "feature_names": None, "title": None, "max_features": 3,
                "palette": "paper", **terms})  # fmt: skip
    yield Case("plot.beeswarm", plot.beeswarm,
               {"sample": table, "values": None, "index": 0, "feature_names": None, "title": None, "max_features": 3,
                "palette": "paper", **terms})  # fmt: skip
    yield Case("plot.ranking", plot.ranking,
               {"sample": table, "index": 0, "title": None, "alpha": 0.3, "correction": "holm", "max_features": 3,
                "palette": "paper"})  # fmt: skip
    yield Case("plot.table", plot.table,
               {"sample": table, "rows": [1, 0], "title": None, "max_features": 3, "palette": "paper",
                **terms})  # fmt: skip
    yield Case("plot.figure", plot.figure,
               {"sample": picture, "index": 0, "picture": None, "title": None, "palette": "paper",
                "kind": None, **terms})  # fmt: skip
    inverted = replace(picture, values=1 - picture.values, vanilla=1 - picture.vanilla)
    yield Case("plot.comparison", plot.comparison,
               {"sample": difference_of(picture, inverted), "index": 0, "picture": None, "title": None,
                "palette": "paper", "delta": 0.1, **terms})  # fmt: skip
    yield Case("plot.regions", plot.regions,
               {"sample": picture.over(np.arange(2).repeat(32).reshape(8, 8)), "index": 0, "pixels": picture,
                "picture": None, "title": None, "palette": "paper", **terms})  # fmt: skip
    settings = {"index": 0, "title": None, "palette": "paper", **terms}
    series = {"sampling_rate": 10, "times": None, "unit": "s", "channels": ["I", "II"], "axis": -1}
    of_kinds = {"axis": ANYTHING, "at": ANYTHING}
    yield Case("plot.Series", plot.Series, series, kinds=of_kinds)
    yield Case("plot.series", plot.series,
               {"sample": series_sample(), "kind": plot.Series(sampling_rate=10), **settings})  # fmt: skip
    volume = {"spacing": (3, 1, 1), "unit": "mm", "at": (0, 1, 1), "axis": 0}
    yield Case("plot.Volume", plot.Volume, volume, kinds=of_kinds)
    yield Case("plot.volume", plot.volume,
               {"sample": volume_sample(), "kind": plot.Volume(at=(0, 1, 1)), **settings})  # fmt: skip
    yield Case("plot.Image", plot.Image, {"rows": ("Hz", 0, 1), "columns": None})
    yield Case("plot.certificate", plot.certificate, {"sample": gaussian, "threshold": 0.5, "index": 0, "alpha": 0.3})
    curve = metrics.insertion(
        pixels_of, np.random.default_rng(0).random((2, 3, 8, 8)), np.random.default_rng(1).random((2, 8, 8)), 0
    )
    yield Case("plot.curves", plot.curves, {"named": {"own": curve}, "normalised": True, "index": None, "title": None})
    yield Case("plot.drawing_of", plot.drawing_of, {"sample": table, "kind": None})
    yield Case("plot.notebook_html", plot.notebook_html, {"sample": table})
    yield Case(
        "sample.plot", table.plot, {"kind": None, "index": 0, "title": None, "threshold": 0.5}, ("alpha", "palette")
    )


def of_report(folder):
    sample = table_sample()
    good = {"path": folder.new(".html"), "results": sample, "title": "Title", "threshold": 0.5, "alpha": 0.3,
            "regions": np.array([0, 0, 1]), "kind": None, "overwrite": False}  # fmt: skip
    yield Case("report.write", report.write, good)
    yield Case("report.write of several", report.write, {**good, "results": {"one": sample, "two": sample}})
