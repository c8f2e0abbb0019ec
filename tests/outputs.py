"""Digests of what the public interface returns, for a change of the code that must change no output, bit for bit.

    python tests/outputs.py record BEFORE.json
    python tests/outputs.py record AFTER.json [--only attacks]
    python tests/outputs.py compare BEFORE.json AFTER.json [--only attacks]

Each run has a name, and each array, number or text of what it returns a digest. Digests are of one machine and one set
of libraries: elsewhere the kernels of torch and NumPy round otherwise.
"""

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import io
import itertools
import json
import random
import re
import sys
import tempfile
import time
import warnings
from copy import deepcopy
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

import metfa
from metfa import attacks, explainers, metrics, models, noise, segmentation, stats, text

# Names that may change
#
# What is likely to get another name, or another order of arguments, is written here once and used below.

PIXEL_NOISE = noise.Uniform(0.1, bounds=(0, 1))
STRONG_NOISE = noise.Uniform(0.6, bounds=(0, 1))
FIXED, ANY_TIME = stats.sign_test, stats.sequential_test
CORRECTIONS = (None, "bonferroni", "holm", "bh", "by", "e-bh")
ANY_TIME_CORRECTIONS = (None, "bonferroni", "e-bh")
CERTIFIED_CORRECTIONS = (None, "bonferroni", "bh", "e-bh")
COMPOSITES = (
    "zbox-alpha1beta0", "epsilon_plus", "epsilon_plus_flat", "epsilon_alpha2_beta1", "epsilon_alpha2_beta1_flat",
    "epsilon_gamma_box", "guided_backprop", "excitation_backprop", "deconvnet", "beta_smooth",
)  # fmt: skip

# What is shown of a result. Of classes that are not named here: all public fields and properties but LEFT_OUT.
SHOWN = {
    "AttributionSample": (
        "values", "vanilla", "scores", "predictions", "target", "sample_ids", "input_names", "feature_names", "signed",
        "flip_rate", "inputs", "stopping",
    ),
    "ContextExplanation": ("sample", "region", "vanilla", "of_context"),
}  # fmt: skip
LEFT_OUT = ("seconds", "provenance", "draws")
MADE_WITH = (
    "explainer", "noise", "rng", "streams", "signed", "gaussian_std", "batch_size", "n_samples", "first_sample",
    "maps_made",
)  # fmt: skip


def explained(explainer, inputs, target=None, *, noise=PIXEL_NOISE, n=4, per_row=None, **settings):
    run, settings = run_of(settings)
    return metfa.explain(
        explainer, inputs, target, noise=noise, n_samples=n, row_args=per_row, run=run, **{"rng": 0, **settings}
    )


def run_of(settings):
    """The settings that go into a `metfa.Run`, and the others."""
    named = {"ids": "input_names", "start": "first_sample", "store": "store", "feature_names": "feature_names"}
    run = metfa.Run(**{name: settings[key] for key, name in named.items() if key in settings})
    return run, {key: value for key, value in settings.items() if key not in named}


def explained_text(model, words, target=None, *, n=6, **settings):
    run, settings = run_of(settings)
    settings = {"rng": 0, "noise": text.Synonyms(0.3), **settings}
    return text.explain_text(model, words, target, n_samples=n, run=run, **settings)


def explained_scene(model, image, target, *, n=6, **settings):
    run, settings = run_of(settings)
    return segmentation.explain_context(
        model, image, target, n_samples=n, run=run, **{"rng": 0, "min_pixels": 1, **settings}
    )  # fmt: skip


def smoothed(explainer, *, n=6, noise=PIXEL_NOISE, **settings):
    return metfa.Smoothed(explainer, noise=noise, n_samples=n, **{"rng": 0, **settings})


def robust(metric, noise=PIXEL_NOISE, n=3):
    return metrics.robust(metric, noise=noise, n_outer=n, rng=0)


def manipulated(explainer, images, drawn, target=None, *, model=None, **settings):
    settings = {"settings": "dombrowski", "n_steps": 10, "step_size": 0.02, "check_every": 3, "rng": 0, **settings}
    run, settings = run_of(settings)
    settings["run"] = run
    return attacks.manipulate(model or explainer.model, explainer, images, target_map=drawn, target=target, **settings)


def flipped(explainer, images, target, drawn=None, **settings):
    settings = {"n_first_steps": 8, "n_steps": 8, "check_every": 3, "step_size": 0.02, "rng": 0, **settings}
    settings = {"first_step_size": 0.04, "epsilon": 0.4, **settings}
    run, settings = run_of(settings)
    settings["run"] = run
    return attacks.targeted(explainer.model, explainer, images, target, target_map=drawn, **settings)


def made_with(sample, *more):
    """How a sample says that it was made, without times and versions."""
    return {name: sample.provenance.get(name) for name in (*MADE_WITH, *more)}


# Digests


def digested(value):
    """Digest of an array, a number or a text, and what a person sees of it."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        about = f"{value.dtype} {value.shape}"
        content = np.ascontiguousarray(value).tobytes()
        shown = f"{about}{_mean_shown(value)}" if value.dtype.kind in "fiub" else about
    else:
        about, content = type(value).__name__, repr(_plain(value)).encode()
        shown = content.decode()
    digest = hashlib.blake2b(f"{about}|".encode() + content, digest_size=16).hexdigest()
    return {"digest": digest, "shown": shown if len(shown) < 160 else f"{shown[:150]}..."}


def _mean_shown(values):
    """Mean of what is finite, and how much is not."""
    finite = values[np.isfinite(values)]
    mean = f" mean {finite.mean(dtype=np.float64):.9g}" if finite.size else ""
    return mean + (f", {values.size - finite.size} not finite" if finite.size < values.size else "")


def _plain(value):
    """The value itself, if its text is the same in every process."""
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    if not isinstance(value, str | bytes | int | float | complex | np.generic | None):
        raise TypeError(f"there is no digest of a {type(value).__name__}")
    return value


def parts(value, path=()):
    """Arrays, numbers and texts in what a run returned, with the names that lead to them."""
    names = SHOWN.get(type(value).__name__)
    if names is None and dataclasses.is_dataclass(value):
        names = [name for name in _names(value) if name not in LEFT_OUT]
    if names is not None:
        for name in names:
            yield from parts(_asked(value, name), (*path, name))
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from parts(part, (*path, str(name)))
    elif isinstance(value, tuple | list) and not all(isinstance(part, str | int | float | None) for part in value):
        for index, part in enumerate(value):
            yield from parts(part, (*path, str(index)))
    elif value is not None or not path:
        yield ".".join(path), value


def _names(value):
    """Public fields and properties."""
    fields = [field.name for field in dataclasses.fields(value)]
    members = {name: member for kind in reversed(type(value).__mro__) for name, member in vars(kind).items()}
    properties = [name for name, member in members.items() if isinstance(member, property | cached_property)]
    return [name for name in dict.fromkeys([*fields, *properties]) if not name.startswith("_")]


def _asked(value, name):
    try:
        return getattr(value, name)
    except (AttributeError, ValueError) as error:  # a name that is gone; a property that says why there is no answer
        return f"{type(error).__name__}: {error}"


def digests_of(name, run):
    """Digests of all that a run returns, and of what metfa warns of meanwhile; of its error, where it fails."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    bars = io.StringIO()  # grad-cam draws some
    with contextlib.redirect_stderr(bars), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = {": ".join(filter(None, (name, path))): digested(value) for path, value in parts(run())}
        except Exception as error:  # the other runs go on
            return {f"{name}: error": {**digested(f"{type(error).__name__}: {error}"), "failed": True}}
    ours = sorted({f"{w.category.__name__}: {w.message}" for w in caught if issubclass(w.category, metfa.MetfaWarning)})
    return {**found, **({f"{name}: warnings": digested(ours)} if ours else {})}


# Models and inputs


def kept(make):
    """The same result for all runs that ask, without warnings, which would be those of whichever run asks first."""

    @functools.cache
    def made():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make()

    return made


def seeded(make, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make()


COLOURED = torch.tensor([[1.0, 0.1, 0.1], [0.1, 1.0, 0.1], [0.1, 0.1, 1.0]])


def images(n=3, side=32, seed=1):
    """Grey grain in [0, 1] with a red, a green or a blue square, in turn; every fourth one has none."""
    generator = torch.Generator().manual_seed(seed)
    pictures = 0.5 + 0.2 * (torch.rand(n, 1, side, side, generator=generator) - 0.5).expand(n, 3, side, side)
    pictures = pictures + 0.1 * (torch.rand(n, 3, side, side, generator=generator) - 0.5)
    size = side * 3 // 8
    places = torch.randint(0, side - size + 1, (n, 2), generator=generator).tolist()
    for index, (down, right) in enumerate(places):
        if index % 4 < 3:
            square = pictures[index, :, down : down + size, right : right + size]
            square.mul_(0.4).add_(0.6 * COLOURED[index % 4][:, None, None])
    return pictures.clamp(0, 1)


def trained(model, side=16):
    """The model, after a little training to tell the colour of the square; maps of one at random are all alike."""
    model.train()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    pictures, classes = images(32, side, seed=0), torch.arange(32) % 4
    for _ in range(50):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(pictures), classes).backward()
        optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return model.eval()


@functools.cache
def network(activation=nn.ReLU, dtype=torch.float32, pooled=True):
    """Four classes of images; without a common pooling it takes images of one size."""

    def make():
        chain = [nn.Conv2d(3, 8, 3, padding=1), activation(), nn.Conv2d(8, 12, 3, padding=1), activation()]
        pooling, size = (nn.AdaptiveAvgPool2d(1), 12) if pooled else (nn.AvgPool2d(8), 12 * 16)
        return trained(nn.Sequential(*chain, pooling, nn.Flatten(), nn.Linear(size, 4)), 16 if pooled else 32)

    return seeded(make).to(dtype)


class Residual(nn.Module):
    """A network as they are written: normalisations, functions, a sum, and a feature map in the middle."""

    def __init__(self):
        super().__init__()
        self.stem, self.inner = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norm, self.inner_norm, self.last = nn.BatchNorm2d(8), nn.BatchNorm2d(8), nn.ReLU()
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = torch.relu(self.norm(self.stem(x)))
        x = self.last(x + self.inner_norm(self.inner(x)))
        return self.head(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


@kept
def residual():
    return seeded(lambda: trained(Residual()))


@kept
def table_network():
    return seeded(lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))).eval()


IMAGES = images()
SMALL = images(2, 12)
WIDE = images(3, 48)  # quickshift makes one segment of smaller ones
TARGETS = [0, 1, 3]
QUARTERS = np.kron([[0, 1], [2, 3]], np.ones((16, 16), dtype=int))
COLOURS = (0.485, 0.456, 0.406)
ROWS = np.random.default_rng(1).normal(size=(4, 6))
WEIGHTS = np.random.default_rng(2).normal(size=(6, 3))
COLUMN_NOISE = noise.Gaussian(0.3)


def linear(rows):
    return np.tanh(rows) @ WEIGHTS


def slope(inputs, target):
    return np.abs((1 - np.tanh(inputs) ** 2) * WEIGHTS[:, target].T)


def signed_slope(inputs, target):
    return (1 - np.tanh(inputs) ** 2) * WEIGHTS[:, target].T, linear(inputs)


def slopes(model):
    return slope


def bright_corners(pictures):
    """Probabilities of three classes of NumPy images, by the brightness of corners."""
    corners = [pictures[:, :, :16, :16], pictures[:, :, :16, 16:], pictures[:, :, 16:, :16]]
    powers = np.exp(np.stack([6 * corner.mean(axis=(1, 2, 3)) for corner in corners], axis=1))
    return powers / powers.sum(axis=1, keepdims=True)


# Statistics


def of_stats():
    rng = np.random.default_rng(0)
    doubles = rng.normal(size=(40, 3, 5))
    arrays = {
        "float64": doubles,
        "float32 with ties": doubles.round(1).astype(np.float32),
        "integers": (4 * doubles).astype(np.int64),
        "torch": torch.from_numpy(doubles.astype(np.float32)),
        "few": doubles[:7],
    }
    pvalues = rng.random((3, 20)) ** 4
    log_e = stats.log_e_values(rng.integers(0, 41, (3, 20)), 40)
    runs = {}
    for name, values in arrays.items():
        runs |= {
            f"intervals of {name}": partial(stats.median_interval, values, 0.9),
            f"smoothed {name}": partial(stats.smoothed_median, values, 0.9),
            f"mean interval of {name}": partial(stats.mean_interval, values),
        }
        for kind, test in (("fixed", FIXED), ("any time", ANY_TIME)):
            for alternative in ("two-sided", "greater", "less"):
                runs[f"{kind} test of {name}, {alternative}"] = partial(test, values, 0.1, alternative=alternative)
    runs |= {
        "test along another axis": partial(FIXED, np.moveaxis(doubles, 0, -1), np.arange(5) / 10, axis=-1),
        "any-time test with a prior": partial(ANY_TIME, doubles, 0.2, prior=(2.0, 3.0)),
        "interval by the paper's ranks": lambda: stats.median_interval(doubles, ranks=stats.paper_ranks(40)),
        "interval along an axis": partial(stats.median_interval, np.moveaxis(doubles, 0, 1), 0.99, axis=1),
        "smoothed by the paper's ranks": lambda: stats.smoothed_median(doubles, ranks=stats.paper_ranks(40, 0.9)),
        "log e-values": lambda: [stats.log_e_values(np.arange(n + 1), n) for n in (1, 7, 40, 300)],
        "log e-values of another law": partial(
            stats.log_e_values, np.arange(41), 40, probability=0.3, prior=(1.0, 2.0)
        ),
        "sequence of intervals": partial(stats.confidence_sequence, doubles, [12, 25, 40], 0.9),
        "ranks": lambda: {n: (stats.median_ranks(n), stats.median_ranks(n, 0.8)) for n in (6, 10, 50, 333)},
        "paper's ranks": lambda: {n: stats.paper_ranks(n) for n in (10, 50, 333)},
        "ranks of a sequence": lambda: {n: stats.sequence_ranks(n, 0.9) for n in (12, 50, 333)},
        "certified ranks": lambda: [
            stats.certified_ranks(80, radius, 0.9, sequential=sequential)
            for radius in (0.0, 0.2, 0.5)
            for sequential in (False, True)
        ],
        "smallest N": lambda: [
            stats.min_samples(alpha, alternative, tests)
            for alpha in (0.05, 0.001)
            for alternative in ("two-sided", "greater")
            for tests in (1, 50176)
        ],
        "expected false marks": lambda: [stats.expected_false_marks(n, 0.05, 1000) for n in (5, 10, 50)],
        "natural breaks": lambda: [
            stats.jenks(doubles), stats.jenks(doubles.astype(np.float16)), stats.jenks(arrays["integers"]),
            stats.jenks_sorted(np.sort(doubles, axis=None)), stats.jenks(np.ones(4)),
        ],
        "e-BH": lambda: [stats.e_bh(log_e), stats.e_bh(log_e, axis=1)],
        "closed e-BH": lambda: [stats.closed_e_bh(log_e), stats.closed_e_bh(log_e, axis=1)],
    }  # fmt: skip
    for sequential in (False, True):
        at = {"sequential": sequential}
        counts = np.arange(41)
        runs |= {
            f"bounds of proportions, {at}": partial(stats.proportion_bound, counts, 40, 0.05, **at),
            f"certified radii, {at}": partial(stats.certified_radius, counts, 40, 0.05, **at),
        }
    for name, method in (("bonferroni", stats.bonferroni), ("holm", stats.holm), ("bh", stats.bh), ("by", stats.by)):
        runs[f"{name} alone"] = lambda method=method: [method(pvalues), method(pvalues, axis=1)]
        runs[f"corrected by {name}"] = partial(stats.correct, pvalues, name, axis=1)
    return runs | {"uncorrected": partial(stats.correct, pvalues, None), "jax": _stats_of_jax}


def _stats_of_jax():
    import jax

    values = jax.numpy.asarray(np.random.default_rng(3).normal(size=(20, 4)).astype(np.float32))
    results = FIXED(values, 0.1), ANY_TIME(values, 0.1), stats.median_interval(values), stats.smoothed_median(values)
    return [{name: np.asarray(part) for name, part in parts(result)} for result in results[:3]], np.asarray(results[3])


# Noise


def of_noises():
    laws = {
        "uniform": noise.Uniform(0.1),
        "clamped uniform": PIXEL_NOISE,
        "normal": noise.Gaussian(0.2),
        "clamped normal": noise.Gaussian(0.1, bounds=(0, 1)),
        "Laplace": noise.Laplace(0.1, bounds=(0, 1)),
        "brightness": noise.Brightness(0.9, 1.1, bounds=(0, 1)),
        "brightness of pixels": noise.Brightness(0.8, 1.2, per="pixel"),
        "composed": noise.Compose(noise.Brightness(0.9, 1.1), noise.Gaussian(0.05)),
    }
    image = IMAGES[0]
    inputs = {"float32": image.numpy(), "float64": image.double().numpy(), "torch": image, "half": image.half().numpy()}
    runs = {
        f"{law} of {kind}": partial(of_law, x, np.random.default_rng(5))
        for (law, of_law), (kind, x) in itertools.product(laws.items(), inputs.items())
    }
    data = np.abs(ROWS) * np.arange(1, 7)
    columns = {
        "columns": noise.per_column(data, 0.25, categorical=[1, 4]),
        "columns by another law": noise.per_column(data, 0.5, law=noise.Laplace),
        "pixels of a normalised image": noise.in_pixel_space(noise.Gaussian(0.1), COLOURS, (0.229, 0.224, 0.225)),
    }
    normalised = (image - torch.tensor(COLOURS)[:, None, None]) / torch.tensor([0.229, 0.224, 0.225])[:, None, None]
    for name, law in columns.items():
        x = data[0] if "columns" in name else normalised.numpy()
        runs[name] = lambda law=law, x=x: [repr(law), law(x, np.random.default_rng(6))]
    return runs


# Explainers


def of_explainers():
    """Each called directly, with classes and without, and sampled."""
    net, chain, deep = network(), network(pooled=False), residual()
    quick = {"n_iterations": 4, "grid": 7, "rng": 0}
    rise, lime = {"n_masks": 12, "grid": 4, "rng": 0}, {"n_perturbations": 40, "rng": 0}
    made = {
        "gradient": explainers.Gradient(net),
        "gradient, unscaled": explainers.Gradient(net, scale=False),
        "gradient, channels last": explainers.Gradient(metfa.Called(net, memory_format=torch.channels_last)),
        "gradient, bfloat16": explainers.Gradient(metfa.Called(net, fast="bfloat16")),
        "gradient of a residual network": explainers.Gradient(deep),
        "smoothed gradient": explainers.SmoothGrad(net, n_perturbations=5, rng=0),
        "smoothed gradient, absolute": explainers.SmoothGrad(metfa.Called(net, batch_size=2), n_perturbations=5,
            std=0.3, average="absolute", scale=False, rng=0),
        "RISE": explainers.RISE(net, **rise),
        "RISE with other settings": explainers.RISE(metfa.Called(net, batch_size=4), n_masks=9, grid=(3, 5), keep=0.3,
            baseline=COLOURS, scale=False, rng=1),
        "RISE without a softmax": explainers.RISE(metfa.Called(net, softmax=False), **rise),
        "RISE, bfloat16, channels last": explainers.RISE(metfa.Called(net, fast="bfloat16",
            memory_format=torch.channels_last), **rise),
        "LIME by slic": explainers.LIME(net, segmentation="slic", n_segments_shown=None, hide=0, **lime),
        "LIME by own labels": explainers.LIME(
            net, segmentation=QUARTERS, n_segments_shown=None, scale=False, hide=COLOURS, regularization=0.1, **lime
        ),
        "LIME by a function": explainers.LIME(metfa.Called(net, softmax=False, batch_size=7),
            segmentation=lambda image: (image[..., 0] * 5).astype(int), **lime),
        "CAM": explainers.CAM(net),
        "CAM, coarse and unscaled": explainers.CAM(net, upsample=False, scale=False),
        "CAM of a residual network": explainers.CAM(deep),
        "I-GOS": explainers.IGOS(net, n_steps=4, **quick),
        "I-GOS with other settings": explainers.IGOS(metfa.Called(net, batch_size=2, softmax=False), n_steps=3,
            baseline=explainers.mean_colour, noise_std=(0.1, 0, 0.05), tv_weight=1.0, first_step=50.0, scale=False,
            **quick),
        "MASK": explainers.MASK(net, **quick),
        "MASK with other settings": explainers.MASK(metfa.Called(net, batch_size=1, softmax=False), jitter=0,
            init=0.7, enlargement="centres", mask_blur=None, baseline=COLOURS, l1_reduction="mean",
            tv_reduction="mean", tv_beta=2.0, scale=False, **quick),
        "MASK, bfloat16": explainers.MASK(metfa.Called(net, fast="bfloat16"), **quick),
        "MASK as in explain.py": explainers.MASK.gildenblat(net, **quick),
        "MASK as in ADV2": explainers.MASK.adv2(net, **quick),
        "MASK as in ADV2, second": explainers.MASK.adv2_v2(net, **quick),
        "LRP of a residual network": explainers.LRP(deep),
        "LRP, unscaled": explainers.LRP(chain, scale=False, bounds=((-0.1, 0, 0), 1.0), channel_axis=1),
        "LRP, bfloat16": explainers.LRP(metfa.Called(chain, fast="bfloat16")),
    }  # fmt: skip
    made |= {f"LRP by {name}": explainers.LRP(chain, composite=name) for name in COMPOSITES}
    for variant in ("original", "metfa", "grad-cam", "torch-cam"):
        made[f"Score-CAM, {variant}"] = explainers.ScoreCAM(net, variant=variant)
    made["Score-CAM of a layer"] = explainers.ScoreCAM(
        metfa.Called(net, batch_size=5), layer="1", baseline=COLOURS, scale=False
    )
    made["Score-CAM without a softmax"] = explainers.ScoreCAM(metfa.Called(net, softmax=False))
    wide = {"LIME": explainers.LIME(net, **lime)}
    return {**_called(made), **_called(wide, WIDE), **_more_of_explainers({**made, **wide})}


def _called(made, inputs=IMAGES, targets=TARGETS, **settings):
    """Runs of explainers: called with classes, called without, and sampled in batches across inputs."""
    runs = {}
    for name, explainer in made.items():
        runs |= {
            f"{name}, called": partial(explainer, inputs, targets),
            f"{name}, called without classes": partial(explainer, inputs),
            f"{name}, sampled": partial(explained, explainer, inputs[:2], n=3, batch_size=3, **settings),
        }
    return runs


def _more_of_explainers(made):
    pictures = IMAGES.numpy()
    black_boxes = {
        "RISE of a function": explainers.RISE(metfa.Called(bright_corners, softmax=False), n_masks=12, grid=4, rng=0),
        "LIME of a function": explainers.LIME(
            metfa.Called(bright_corners, softmax=False),
            n_perturbations=30,
            segmentation=QUARTERS,
            n_segments_shown=2,
            hide=0,
            rng=0,
        ),
    }
    rows = torch.from_numpy(ROWS.astype(np.float32))
    table = {
        "gradient of a table": explainers.Gradient(table_network(), channel_axis=None),
        "smoothed gradient of a table": explainers.SmoothGrad(
            table_network(), channel_axis=None, n_perturbations=4, scale=False, rng=0
        ),
        "LRP of a table": explainers.LRP(
            table_network(), composite="epsilon_plus", channel_axis=None, scale=False, bounds=(-4.0, 4.0)
        ),
    }
    double = explainers.Gradient(network(dtype=torch.float64))
    return {
        **_called(black_boxes, pictures, [0, 1, 2]),
        **_called(table, rows, [0, 1, 2, 0], noise=COLUMN_NOISE),
        "gradient, double": partial(double, IMAGES.double(), TARGETS),
        "gradient, differentiable": lambda: _backward(explainers.Gradient(network(nn.Softplus))),
        "smoothed gradient, differentiable": lambda: _backward(
            explainers.SmoothGrad(network(nn.Softplus), n_perturbations=3, scale=False, rng=0)
        ),
        "CAM, differentiable": lambda: _backward(made["CAM"]),
        "LRP, differentiable": lambda: _backward(explainers.LRP(network(pooled=False))),
        "LIME, fitted": partial(made["LIME"].fit, WIDE, TARGETS),
        "LIME, strongest segments": lambda: [fit.strongest(3) for fit in made["LIME"].fit(WIDE, TARGETS)[0]],
        "Score-CAM, weights": partial(made["Score-CAM, original"].channel_weights, IMAGES, TARGETS),
        "MASK, steps": lambda: _steps(made["MASK"]),
        "MASK, steps without jitter": lambda: _steps(made["MASK with other settings"], create_graph=True),
        "blurs": lambda: [
            explainers.Blur(3.0)(IMAGES), explainers.Blur(2.0, kernel=9, border="reflect")(IMAGES.double()),
            explainers.Blur(1.0).matrix(10), explainers.mean_colour(IMAGES), explainers.mean_colour(pictures),
        ],
        "normalisations folded": lambda: models.fold_batch_norm(deepcopy(residual()), IMAGES)(IMAGES),
        "normalised": lambda: models.Normalised(network(), COLOURS, COLOURS)(IMAGES),
    }  # fmt: skip


def _backward(explainer):
    """Maps and the gradient of a sum of them by the images."""
    inputs = IMAGES.clone().requires_grad_()
    maps, _ = explainer(inputs, TARGETS)
    (maps**2).sum().backward()
    return maps, inputs.grad


def _steps(mask, **settings):
    state = mask.start(IMAGES, TARGETS)
    for _ in range(3):
        state = mask.step(IMAGES, TARGETS, state, **settings)
    shifts = np.full((3, 2), mask.jitter)
    return state, mask.step(IMAGES, TARGETS, state, shifts=shifts)


# Explainers of other libraries


def of_other_libraries():
    return {
        **_of_captum(), **_of_gradcam(), **_of_zennit(),
        **{f"SHAP's {name}": partial(_of_shap, name) for name in SHAP},
        **{f"lime's {name}": run for name, run in _of_lime().items()},
    }  # fmt: skip


def _of_captum():
    quarters = {"feature_mask": torch.from_numpy(QUARTERS)[None, None]}
    methods = {
        "Saliency": {},
        "InputXGradient": {"sign": "positive"},
        "IntegratedGradients": {"n_steps": 5},
        "DeepLift": {},
        "GuidedBackprop": {},
        "Deconvolution": {},
        "FeatureAblation": quarters,
        "Occlusion": {"sliding_window_shapes": (3, 8, 8), "strides": (3, 8, 8), "baselines": 0.5},
        "ShapleyValues": quarters,
        "GradientShap": {"baselines": torch.zeros(1, 3, 32, 32), "n_samples": 3, "stdevs": 0.1},
        "ShapleyValueSampling": {"n_samples": 3, **quarters},
        "Lime": {"n_samples": 20, **quarters},
        "KernelShap": {"n_samples": 20, **quarters},
    }
    runs = {}
    for name, settings in methods.items():
        explainer = explainers.from_captum(network(pooled=False), name, **settings)
        runs |= {
            f"Captum's {name}, called": partial(_seeded_call, explainer),
            f"Captum's {name}, sampled": partial(explained, explainer, IMAGES[:2], n=3, batch_size=3),
        }
    return runs | {"Captum's own objects": _captums_own}


def _seeded_call(explainer):
    """A direct call; one that draws random numbers takes them from generators of ours."""
    rngs = {"rngs": [np.random.default_rng(row) for row in range(3)]}
    try:
        return explainer(IMAGES, TARGETS, **rngs)
    except TypeError:
        return explainer(IMAGES, TARGETS)


def _captums_own():
    from captum.attr import LayerGradCam, Saliency

    net = network()
    own = explainers.heatmap(Saliency(net).attribute), explainers.heatmap(LayerGradCam(net, net[2]).attribute)
    sampled = [explained(explainer, IMAGES, predict=net, n=3) for explainer in own]
    return [*sampled, explained(Saliency(net).attribute, IMAGES, n=3)]


def _of_gradcam():
    names = (
        "GradCAM", "GradCAMPlusPlus", "HiResCAM", "LayerCAM", "XGradCAM", "EigenCAM", "EigenGradCAM", "AblationCAM",
        "ScoreCAM", "RandomCAM", "FullGrad",
    )  # fmt: skip
    runs = {}
    for name in names:
        explainer = explainers.from_gradcam(name, residual())
        runs |= {
            f"grad-cam's {name}, called": partial(_seeded_call, explainer),
            f"grad-cam's {name}, sampled": partial(explained, explainer, IMAGES[:2], n=3, batch_size=3),
        }
    return runs | {"grad-cam's objects": _gradcams_own}


def _gradcams_own():
    import pytorch_grad_cam as library
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    net = deepcopy(residual())
    own = explainers.from_gradcam(library.GradCAM(net, [net.inner]))
    of_layers = explainers.from_gradcam("LayerCAM", residual(), ["stem", "inner"], eigen_smooth=True)
    of_targets = explainers.from_gradcam(
        "GradCAM", residual(), "inner", target_of=lambda index: ClassifierOutputTarget((index + 1) % 4)
    )
    return [own(IMAGES, TARGETS), explained(of_layers, IMAGES, n=3), of_targets(IMAGES, TARGETS)]


def _of_zennit():
    from zennit.attribution import Gradient, IntegratedGradients, SmoothGrad
    from zennit.composites import EpsilonPlusFlat

    net = network(pooled=False)

    def explainer_of(attributor):
        def explainer(inputs, target):
            chosen = nn.functional.one_hot(target, 4)
            scores, relevance = attributor(inputs, lambda scores: scores * chosen)
            return relevance, scores

        return explainer

    made = {
        "gradient": explainer_of(Gradient(net, EpsilonPlusFlat())),
        "integrated gradients": explainers.heatmap(explainer_of(IntegratedGradients(net, n_iter=4))),
        "smoothed gradient": metfa.seeded(explainer_of(SmoothGrad(net, EpsilonPlusFlat(), n_iter=3))),
    }
    runs = {f"zennit's {name}": partial(explained, made[name], IMAGES, predict=net, n=3) for name in made}
    composite = explainers.LRP(net, composite=EpsilonPlusFlat(), scale=False)
    return runs | {"a composite of zennit's": partial(composite, IMAGES, TARGETS)}


SHAP = ("TreeExplainer", "LinearExplainer", "KernelExplainer", "DeepExplainer", "GradientExplainer")


@kept
def forest():
    from sklearn.ensemble import RandomForestClassifier

    data = np.random.default_rng(4).normal(size=(60, 6))
    return RandomForestClassifier(5, max_depth=3, random_state=0).fit(data, linear(data).argmax(axis=1)), data


@kept
def logistic():
    from sklearn.linear_model import LogisticRegression

    data = forest()[1]
    return LogisticRegression().fit(data, linear(data).argmax(axis=1) == 1)


def _of_shap(name):
    import shap

    model, data = forest()
    background, kind = data[:5], getattr(shap, name)
    predict, rows, settings = model.predict_proba, ROWS, {}
    if name == "TreeExplainer":
        own = kind(model)
    elif name == "LinearExplainer":
        own, predict = kind(logistic(), background), logistic().predict_proba
    elif name == "KernelExplainer":
        own, settings = kind(predict, background), {"nsamples": 30}
    else:
        predict, rows = table_network(), torch.from_numpy(ROWS.astype(np.float32))
        own = kind(predict, torch.from_numpy(background.astype(np.float32)))
    explainer = explainers.from_shap(own, predict, **settings)
    return explained(explainer, rows, noise=COLUMN_NOISE, n=3), explained(explainer, rows, 1, noise=COLUMN_NOISE, n=3)


def _of_lime():
    return {"table": _limes_table, "image": _limes_image, "text": _limes_text}


def _limes_table():
    from lime.lime_tabular import LimeTabularExplainer

    model, data = forest()
    explainer = explainers.from_lime(LimeTabularExplainer(data), model.predict_proba, num_samples=60, rng=0)
    return explainer(ROWS, [0, 1, 2, 0]), explained(explainer, ROWS, noise=None, n=3)


def _limes_image():
    from lime.lime_image import LimeImageExplainer

    settings = {"softmax": True, "num_samples": 30, "rng": 0}
    found = []
    for shown in (None, 3):
        explainer = explainers.from_lime(LimeImageExplainer(), network(), n_segments_shown=shown, **settings)
        found += [explainer(WIDE[:2], [0, 2]), explained(explainer, WIDE[:1], n=2)]
    return found


def _limes_text():
    from lime.lime_text import LimeTextExplainer

    explainer = explainers.from_lime(LimeTextExplainer(bow=False), counting, num_samples=40, rng=0)
    return explainer(TEXTS, [1, 0, 1]), explained(explainer, TEXTS, noise=None, n=3), explainer.words(TEXTS[0])


# Sampling


def of_sampling():
    net = network()
    gradient = explainers.Gradient(net)
    rise = explainers.RISE(net, n_masks=10, grid=4)
    runs = {
        f"batches of {size}": partial(explained, gradient, IMAGES, batch_size=size) for size in (1, 3, 10)
    }  # fmt: skip
    runs |= {
        f"a random explainer, batches of {size}": partial(explained, rise, IMAGES, batch_size=size) for size in (1, 3)
    }
    pictured = explainers.LIME(net, n_perturbations=30, segmentation=QUARTERS)
    forms = {
        "one class": partial(explained, gradient, IMAGES, 2),
        "classes": partial(explained, gradient, IMAGES, TARGETS),
        "classes as an array": partial(explained, gradient, IMAGES, torch.tensor(TARGETS)),
        "pairs of indices": lambda: explained(_of_pairs, ROWS, [(0, 1)] * 4, noise=COLUMN_NOISE),
        "own ids": partial(explained, gradient, IMAGES, ids=["a", "b", "c"]),
        "equal inputs": lambda: explained(gradient, torch.cat([IMAGES[:1], IMAGES[:1]])),
        "later samples": partial(explained, gradient, IMAGES, start=4),
        "joined": lambda: explained(rise, IMAGES).concat(explained(rise, IMAGES, start=4, n=3)),
        "joined the other way": lambda: explained(rise, IMAGES, start=4, n=3).concat(explained(rise, IMAGES)),
        "no noise": partial(explained, rise, IMAGES, noise=None),
        "a generator": lambda: explained(gradient, IMAGES, rng=np.random.default_rng(3)),
        "another seed": partial(explained, pictured, IMAGES, rng=2**70),
        "own noise": partial(explained, gradient, IMAGES, noise=_mirrored),
        "composed noise": lambda: explained(
            gradient, IMAGES, noise=noise.Compose(noise.Brightness(0.9, 1.1, bounds=(0, 1)), PIXEL_NOISE)
        ),
        "brightness": partial(explained, gradient, IMAGES, noise=noise.Brightness(0.9, 1.1, bounds=(0, 1))),
        "normal noise": partial(explained, gradient, IMAGES, noise=noise.Gaussian(0.1, bounds=(0, 1))),
        "Laplace noise": partial(explained, gradient, IMAGES, noise=noise.Laplace(0.05)),
        "double": lambda: explained(explainers.Gradient(network(dtype=torch.float64)), IMAGES.double()),
        "heat map of a function": lambda: explained(explainers.heatmap(_raw), IMAGES.numpy(), 1),
        "positive heat map": lambda: explained(explainers.heatmap(_raw, sign="positive"), IMAGES.numpy(), 1),
        "a table": partial(explained, slope, ROWS, 1, noise=COLUMN_NOISE),
        "a table with predictions": partial(explained, slope, ROWS, predict=linear, noise=COLUMN_NOISE),
        "a data frame": lambda: explained(_of_frame, _frame(), 1, noise=COLUMN_NOISE),
        "names of features": lambda: explained(
            slope, ROWS, 1, noise=COLUMN_NOISE, feature_names=list("abcdef")
        ),
        "a tuple of inputs": partial(explained, _of_two, (ROWS, ROWS[:, :2]), 1, noise=(COLUMN_NOISE, None)),
        "a dict of inputs": partial(
            explained, _of_named, {"x": ROWS, "z": ROWS[:, :2]}, 1, noise={"x": COLUMN_NOISE, "z": noise.Laplace(0.1)}
        ),
        "arguments by row": partial(
            explained, _from_baseline, ROWS, 1, noise=COLUMN_NOISE, per_row={"baselines": ROWS[::-1] / 2}
        ),
        "randomised": partial(explained, _randomised(), ROWS, 1, noise=COLUMN_NOISE),
        "seeded": partial(explained, metfa.seeded(_global), ROWS, 1, noise=COLUMN_NOISE),
        "randomised, called": lambda: [_randomised()(ROWS, 1), metfa.seeded(_global, rng=3)(ROWS, 1)],
        "rows that depend on each other": partial(explained, _centred, ROWS, 1, noise=COLUMN_NOISE),
        "constant maps": lambda: explained(lambda x, target: 0 * x + x[:, :1].round(), ROWS, 1, noise=COLUMN_NOISE),
        "half precision": lambda: explained(
            lambda x, target: slope(x, target).astype(np.float16), ROWS, 1, noise=COLUMN_NOISE
        ),
        "jax": _jax_sample,
        "texts": lambda: explained(_lengths, TEXTS, 1, noise=text.Synonyms(0.5), batch_size=2),
        "stored": lambda: _stored(rise, IMAGES),
        "resumed": lambda: _resumed(_raw, IMAGES.numpy(), 1),
        "resumed until": lambda: _resumed(
            slope, ROWS, 1, noise=COLUMN_NOISE, n=metfa.Until(undecided=0.2, threshold=0.5, max_samples=60)
        ),
        "made with": lambda: [
            made_with(explained(one, IMAGES[:2], noise=law)) for one, law in (
                (gradient, PIXEL_NOISE), (rise, noise.Gaussian(0.1)), (pictured, None),
                (explainers.heatmap(gradient, channel_axis=None), noise.in_pixel_space(PIXEL_NOISE, COLOURS, COLOURS)),
            )
        ],
    }  # fmt: skip
    return runs | forms


def _raw(inputs, target):
    return inputs * np.linspace(-1, 1, 32) + 0.1 * target.reshape(-1, 1, 1, 1)


def _of_pairs(inputs, target):
    pairs = np.array(target)
    return inputs * (1 + pairs[:, :1]) - pairs[:, 1:]


def _mirrored(x, rng):
    return x[..., ::-1] if rng.random() < 0.5 else x


def _frame():
    import pandas as pd

    return pd.DataFrame(ROWS, columns=[f"column {index}" for index in range(6)])


def _of_frame(inputs, target):
    return slope(np.asarray(inputs), target)


def _of_two(inputs, target):
    return slope(inputs[0], target) + inputs[1].mean(axis=1, keepdims=True)


def _of_named(inputs, target):
    return slope(inputs["x"], target) * inputs["z"].mean(axis=1, keepdims=True)


def _from_baseline(inputs, target, baselines):
    return (inputs - baselines) * WEIGHTS[:, target].T


def _randomised():
    return metfa.randomised(
        lambda inputs, target, *, rngs: np.stack(
            [row * rng.random(row.shape) for row, rng in zip(inputs, rngs, strict=True)]
        ),
        rng=2,
    )


def _global(inputs, target):
    return inputs * np.random.random(inputs.shape) + torch.rand(1).numpy() + random.random()


def _centred(inputs, target):
    return inputs**2 - inputs.mean(axis=0)


def _lengths(texts, target):
    return np.array([[len(word) for word in row.split()] for row in texts], dtype=float)


def _jax_sample():
    import jax

    rows = jax.numpy.asarray(ROWS.astype(np.float32))
    return explained(lambda x, target: jax.numpy.tanh(x) ** 2, rows, 1, noise=COLUMN_NOISE)


@contextlib.contextmanager
def new_folder():
    """A path where nothing is yet."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "new"


def _stored(explainer, inputs):
    """A run that is streamed to a folder, and that folder read again; the files may go, the memory maps stay."""
    with new_folder() as folder:
        sample = explained(explainer, inputs, store=folder)
        return sample, metfa.load(folder), _arrays_in(folder)


def _arrays_in(folder):
    """Content of the files of arrays."""
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.npy"))}


def _resumed(explainer, inputs, target, **settings):
    """A run that its explainer stops once, and that is then repeated."""
    calls = itertools.count()

    def stopped_once(inputs, target):
        if next(calls) == 9:
            raise InterruptedError
        return explainer(inputs, target)

    with new_folder() as folder:
        return _run_twice(
            partial(explained, stopped_once, inputs, target, store=folder, batch_size=2, **{"n": 8, **settings})
        )


def _run_twice(run):
    """A run that is stopped the first time."""
    try:
        run()
    except InterruptedError:
        return run()
    raise AssertionError("the run was not stopped")


# Until enough is known


RULES = {
    "number": {"undecided": 0.2, "threshold": 0.5},
    "natural breaks": {"undecided": 0.2},
    "number an input": {"undecided": 0.1, "threshold": np.array([0.3, 0.5, 0.7, 0.4])},
    "own rule": {"undecided": 0.2, "threshold": np.mean, "first": 15},
    "bonferroni": {"undecided": 0.2, "threshold": 0.5, "correction": "bonferroni", "alpha": 0.1},
    "uncorrected": {"undecided": 0.1, "threshold": 0.5, "correction": None},
    "width": {"width": 0.2},
    "change": {"change": 0.01, "confidence_level": 0.9},
    "all of them": {"undecided": 0.3, "width": 0.3, "change": 0.02, "growth": 1.5, "first": 20},
    "out of reach": {"undecided": 0.0, "max_samples": 40},
}


def until(name, explainer=signed_slope, inputs=ROWS, noise=COLUMN_NOISE, **settings):
    asked = {"threshold": stats.jenks} if "undecided" in RULES[name] else {}
    rule = metfa.Until(**{"max_samples": 120, **asked, **RULES[name]})
    return explained(explainer, inputs, 1, noise=noise, n=rule, **settings)


def of_until():
    runs = {f"{name}: samples and looks": partial(until, name) for name in RULES}
    runs |= {f"{name}: in words": lambda name=name: [str(until(name).stopping)] for name in RULES}
    rows = partial(until, "number")
    return runs | {
        "of images": lambda: until("natural breaks", explainers.Gradient(network()), IMAGES, PIXEL_NOISE),
        "one input of it": lambda: rows().of_input(2),
        "more samples": lambda: rows().concat(
            explained(signed_slope, ROWS, 1, noise=COLUMN_NOISE, n=10, start=rows().n_samples)
        ),
        "saved": lambda: _saved(rows()),
        "its own decisions": lambda: (lambda sample: sample.significance_map())(rows()),
        "its own plan": lambda: (lambda sample: sample.plan(0.01))(until("natural breaks")),
        "its own summary": lambda: (lambda sample: sample.summary())(until("natural breaks")),
        "stored": lambda: _stored_until(),
        "looks of a table": lambda: [
            metrics.undecided(rows()), metrics.certified_radius(rows()), metrics.certified_share(rows(), 0.1),
        ],
    }  # fmt: skip


def _stored_until():
    with new_folder() as folder:
        return until("natural breaks", store=folder), metfa.load(folder)


def _saved(sample):
    """A result that is written, and read again."""
    with new_folder() as folder:
        sample.save(folder)
        return metfa.load(folder), _arrays_in(folder)


# Questions on results


@kept
def picture_sample():
    return explained(explainers.Gradient(network()), IMAGES, n=40)


@kept
def normal_sample():
    return explained(explainers.Gradient(network()), IMAGES[:2], TARGETS[:2], noise=noise.Gaussian(0.1), n=40)


@kept
def table_sample():
    return explained(signed_slope, ROWS, 1, noise=COLUMN_NOISE, n=40, feature_names=list("abcdef"))


@kept
def until_sample():
    return until("out of reach")


def of_results():
    of_feature = np.linspace(-0.5, 0.8, 24).reshape(4, 6)
    return {
        **_asked_of("images", picture_sample, 0.3, np.array([0.2, 0.3, 0.4]), CORRECTIONS),
        **_asked_of("normal noise", normal_sample, 0.25, np.array([0.2, 0.3]), CORRECTIONS, certified=True),
        **_asked_of("a table", table_sample, 0.2, np.array([0.1, 0.2, 0.3, 0.4]), CORRECTIONS, certified=True),
        **_asked_of(
            "until", until_sample, 0.2, np.array([0.1, 0.2, 0.3, 0.4]), ANY_TIME_CORRECTIONS, certified=True
        ),
        "a table: test with a number a feature": lambda: table_sample().test(of_feature),
        "a table: marks with a number a feature": lambda: table_sample().significance_map(of_feature, alpha=0.1),
        "a table: summary with a number a feature": lambda: table_sample().summary(
            of_feature, alpha=0.1, correction=None, confidence_level=0.9
        ),
        "a table: marks of a share, split": lambda: table_sample().significance_map(
            lambda values: np.quantile(values, 0.7), alpha=0.05, correction="bh", split=12
        ),
        "until: certified radii of its own": lambda: until_sample().certified_radius(),
        "a table: interval by the paper's ranks": lambda: table_sample().confidence_interval(
            ranks=stats.paper_ranks(40)
        ),
        "a table: smoothed by the paper's ranks": lambda: table_sample().smoothed(ranks=stats.paper_ranks(40)),
        "a table: mean interval": lambda: [table_sample().mean_interval(), table_sample().mean_interval(0.8)],
        "images: mean interval": lambda: picture_sample().mean_interval(0.9),
        "too few": lambda: [explained(slope, ROWS, 1, noise=COLUMN_NOISE).too_few_for(level) for level in (0.8, 0.99)],
    }  # fmt: skip


def _asked_of(name, of, number, of_inputs, corrections, certified=False):
    """Each question, on explicit terms, of the sample that `of` returns."""
    terms = {"number": (number, None), "natural breaks": (stats.jenks, None), "split": (stats.jenks, 12)}
    asked = {
        "statistics": lambda sample: [sample.median(), sample.mean(), sample.std()],
        "smoothed": lambda sample: [sample.smoothed(0.95), sample.smoothed(0.8)],
        "intervals": lambda sample: [sample.confidence_interval(0.95), sample.confidence_interval(0.8)],
        "thresholds": lambda sample: [
            sample.threshold(), sample.threshold(stats.jenks, split=12), sample.threshold(np.mean),
        ],
        "one input": lambda sample: sample.of_input(1),
        "in a line": lambda sample: [repr(sample)],
        "saved": _saved,
        "plan": lambda sample: [
            sample.plan(0.05, number, alpha=0.05, correction=None, max_samples=400),
            sample.plan(0.2, stats.jenks, alpha=0.05, correction="e-bh", split=12, max_samples=200),
        ],
    }  # fmt: skip
    for alternative in ("two-sided", "greater", "less"):
        asked[f"test, {alternative}"] = lambda sample, alternative=alternative: [
            sample.test(number, alternative=alternative), sample.test(of_inputs, alternative=alternative),
            sample.test(stats.jenks, alternative=alternative, split=12),
        ]  # fmt: skip
    for correction in corrections:
        for kind, (threshold, split) in terms.items():
            on = {"alpha": 0.05, "correction": correction, "split": split}
            asked[f"marks by {correction}, {kind}"] = lambda sample, threshold=threshold, on=on: (
                sample.significance_map(threshold, **on)
            )
            asked[f"summary by {correction}, {kind}"] = lambda sample, threshold=threshold, on=on: [
                (line, str(line)) for line in sample.summary(threshold, confidence_level=0.9, **on)
            ]
    if certified:
        for correction in CERTIFIED_CORRECTIONS if None in corrections and "bh" in corrections else corrections:
            asked[f"certified radii by {correction}"] = lambda sample, correction=correction: [
                sample.certified_radius(number, alpha=0.05, correction=correction),
                sample.certified_radius(stats.jenks, alpha=0.05, correction=correction, split=12),
            ]
        asked["certified intervals"] = lambda sample: [sample.certified_interval(radius, 0.9) for radius in (0.0, 0.02)]
    return {f"{name}: {question}": lambda ask=ask: ask(of()) for question, ask in asked.items()}


# Smoothed maps as explainers


def of_smoothing():
    soft = network(nn.Softplus)
    gradient, rise = explainers.Gradient(soft), explainers.RISE(network(), n_masks=8, grid=4)
    return {
        "called": partial(smoothed(gradient), IMAGES, TARGETS),
        "called without classes": partial(smoothed(gradient, n=12, confidence_level=0.8), IMAGES),
        "small batches": partial(smoothed(gradient, batch_size=2), IMAGES, TARGETS),
        "as Captum calls it": partial(smoothed(gradient).attribute, IMAGES, TARGETS),
        "of a random explainer": partial(smoothed(rise), IMAGES, TARGETS),
        "of a table": partial(smoothed(slope, noise=COLUMN_NOISE), ROWS, 1),
        "of texts": lambda: smoothed(text.Occlusion(counting), noise=text.Synonyms(0.5))(TEXTS, [1, 0, 1]),
        "sampled": lambda: explained(smoothed(gradient), IMAGES, n=3),
        "of a smoothed one": lambda: smoothed(smoothed(gradient, rng=None), n=6)(SMALL, 1),
        "differentiable": lambda: _backward_of_smoothed(smoothed(gradient)),
        "pulled back": lambda: _pulled_back(smoothed(gradient, batch_size=4)),
        "pulled back in one": lambda: _pulled_back(smoothed(gradient, batch_size=50), target=None),
        "pulled back by given generators": lambda: _pulled_back(
            smoothed(explainers.SmoothGrad(soft, n_perturbations=2)),
            rngs=[np.random.default_rng(row) for row in range(3)],
        ),
    }


def _backward_of_smoothed(smooth):
    inputs = IMAGES.clone().requires_grad_()
    maps = smooth(inputs, TARGETS)
    (maps**2).sum().backward()
    return maps, inputs.grad


def _pulled_back(smooth, target=TARGETS, **settings):
    maps, pull_back = smooth.vjp(IMAGES, target, **settings)
    return maps, pull_back(maps * torch.linspace(-1, 1, 32))


# Metrics


def of_metrics():
    net = network()
    maps, _ = explainers.Gradient(net)(IMAGES, TARGETS)
    broken = maps.clone()
    broken[0], broken[1, 0, 0] = 0.5, torch.nan
    regions = maps > 0.4
    curves = {"insertion": metrics.insertion, "deletion": metrics.deletion, "overall": metrics.overall}
    runs = {}
    for name, metric in curves.items():
        runs |= {
            name: partial(metric, net, IMAGES, maps, TARGETS, steps=10),
            f"{name} without classes": partial(metric, metfa.Called(net, batch_size=4), IMAGES, maps, steps=7),
            f"{name} of constant and broken maps": partial(metric, net, IMAGES, broken, TARGETS, steps=5),
            f"{name} without a softmax": partial(
                metric, metfa.Called(_probabilities, softmax=False), IMAGES, maps, TARGETS, steps=5
            ),
            f"{name} of logits without a softmax": partial(
                metric, metfa.Called(net, softmax=False), IMAGES, maps, TARGETS, steps=5
            ),
            f"{name}, bfloat16": partial(
                metric, metfa.Called(net, fast="bfloat16", memory_format=torch.channels_last), IMAGES, maps,
                TARGETS, steps=5
            ),
            f"{name} of NumPy images": partial(
                metric, metfa.Called(bright_corners, softmax=False), IMAGES.numpy(), maps.numpy(), steps=8
            ),
            f"{name} of a table": partial(metric, linear, ROWS, np.abs(ROWS), 1, baseline=ROWS.mean(axis=0)),
            f"robust {name}": partial(robust(metric), net, IMAGES, maps, TARGETS, steps=5),
            f"robust {name} without classes": partial(robust(metric), net, IMAGES, maps, steps=5),
        }  # fmt: skip
        for kind, baseline in {
            "mean": "mean",
            "blur": "blur",
            "colours": COLOURS,
            "function": torch.zeros_like,
        }.items():
            runs[f"{name}, baseline: {kind}"] = partial(metric, net, IMAGES, maps, TARGETS, steps=4, baseline=baseline)
    rows = partial(explained, signed_slope, ROWS, 1, noise=COLUMN_NOISE, n=12)
    return runs | {
        "regions": partial(metrics.region_score, net, IMAGES, regions, TARGETS),
        "regions, one of them empty": lambda: metrics.region_score(metfa.Called(net, batch_size=2), IMAGES,
            regions & (torch.arange(3) > 0)[:, None, None], baseline="mean"),
        "robust regions": partial(robust(metrics.region_score), net, IMAGES, regions, TARGETS),
        "infidelity": partial(metrics.infidelity, net, IMAGES, maps, TARGETS, noise=PIXEL_NOISE, n_perturbations=4),
        "infidelity, not normalised": partial(
            metrics.infidelity, metfa.Called(net, batch_size=2), IMAGES, maps, noise=PIXEL_NOISE, n_perturbations=4,
            normalise=False
        ),
        "own metric, robust": lambda: robust(lambda model, inputs, maps, target: inputs.sum(dim=(1, 2, 3)))(
            net, IMAGES, maps, TARGETS
        ),
        "mstd": lambda: [metrics.mstd(picture_sample()), metrics.mstd(rows())],
        "interval width": lambda: [metrics.interval_width(picture_sample(), 0.9), metrics.interval_width(rows())],
        "top k": lambda: [metrics.top_k_overlap(picture_sample(), 30), metrics.top_k_overlap(rows(), 2)],
        "top k of too few": lambda: metrics.top_k_overlap(rows(), 9),
        "sensitivity": lambda: [metrics.max_sensitivity(picture_sample()), metrics.max_sensitivity(rows())],
        "agreement": lambda: [metrics.prediction_agreement(picture_sample()), metrics.prediction_agreement(rows())],
        "undecided": lambda: [
            metrics.undecided(picture_sample(), 0.3), metrics.undecided(table_sample(), stats.jenks, split=10),
            metrics.undecided(table_sample(), 0.2, alpha=0.1, correction="by"),
        ],
        "certified radius": lambda: [
            metrics.certified_radius(normal_sample(), 0.25),
            metrics.certified_radius(table_sample(), stats.jenks, split=10),
        ],
        "certified share": lambda: metrics.certified_share(normal_sample(), 0.02, 0.25, correction="bonferroni"),
    }  # fmt: skip


def _probabilities(pictures):
    return network()(pictures).softmax(1)


# Attacks


def of_attacks():
    net, soft = network(), network(nn.Softplus)
    gradient, cam, chain = explainers.Gradient(net), explainers.CAM(net), explainers.CAM(soft)
    corner = torch.from_numpy(attacks.drawn("corner", 12, 12))
    strong = {"settings": "strong", "n_steps": 5, "step_size": 0.02}
    defended = smoothed(gradient, n=6, batch_size=4)
    wanted = ((net(SMALL).argmax(1) + 1) % 4).tolist()
    mask = explainers.MASK.adv2_v2(
        net, grid=(4, 4), n_iterations=8, jitter=2, mask_blur=None, baseline=0.4, l1_weight=0.001, rng=0
    )
    runs = {
        f"drawn {shape}": partial(attacks.drawn, shape, 9, 14)
        for shape in ("circle", "square", "cross", "frame", "left", "corner")
    }
    runs |= {
        "manipulated gradient": partial(manipulated, gradient, SMALL, corner),
        "manipulated gradient of a class": partial(manipulated, gradient, SMALL, corner, [1, 2], batch_size=1),
        "manipulated, double": lambda: manipulated(
            explainers.Gradient(network(dtype=torch.float64)), SMALL.double(), corner
        ),
        "manipulated, strong": partial(manipulated, gradient, SMALL, corner, **strong),
        "manipulated, restarts": partial(manipulated, gradient, SMALL, corner, n_restarts=2, **strong),
        "manipulated, soft backward": partial(
            manipulated, gradient, SMALL, corner, softening="backward", schedule="cosine", distance_weight=0.5,
            map_weight=(1.0, 3.0), prediction_loss="margin",
        ),
        "manipulated smoothed gradient": lambda: manipulated(
            explainers.SmoothGrad(soft, n_perturbations=2, rng=0), SMALL, corner
        ),
        "manipulated CAM": partial(manipulated, cam, SMALL, corner),
        "manipulated LRP": lambda: manipulated(explainers.LRP(net), SMALL, corner),
        "manipulated Captum": lambda: manipulated(
            explainers.from_captum(soft, "IntegratedGradients", n_steps=3), SMALL, corner
        ),
        "manipulated MASK": partial(
            manipulated, mask, SMALL, corner, settings="adv2-mask", unrolled=(1, 2), n_first_steps=2
        ),
        "unaware of a defence": partial(manipulated, gradient, SMALL, corner, defence=defended, knows="nothing"),
        "aware of a defence": partial(manipulated, gradient, SMALL, corner, defence=defended),
        "aware of a defence, draws": partial(
            manipulated, gradient, SMALL, corner, defence=defended, knows="defence", n_draws=2, defence_weight=2.0,
            noise_derivative="identity", **strong,
        ),
        "aware of the seed": partial(manipulated, gradient, SMALL, corner, defence=defended, knows="seed"),
        "aware of a defence of MASK": lambda: manipulated(
            mask, SMALL, corner, defence=smoothed(mask, rng=None), settings="adv2-mask", unrolled=(1, 1), n_steps=2,
            n_first_steps=1,
        ),
        "flipped CAM": partial(flipped, cam, SMALL, wanted),
        "flipped CAM with a map": partial(flipped, cam, SMALL, wanted, corner, prediction_loss="margin"),
        "flipped CAM of another network": lambda: flipped(
            chain, SMALL, ((soft(SMALL).argmax(1) + 2) % 4).tolist(), map_scale="mean"
        ),
        "flipped gradient": partial(flipped, gradient, SMALL, wanted, defence=defended, n_steps=3),
        "flipped MASK": partial(flipped, mask, SMALL, wanted, settings="adv2-mask", unrolled=(2, 2), refresh_every=3),
        "kept": lambda: _kept_attack(gradient, corner),
        "resumed": lambda: _resumed_attack(corner),
        "budgets": lambda: [
            (lambda found: [found.budget(), found.budget(rounded=True)])(manipulated(gradient, SMALL, corner, **strong))
        ],
        "detected": lambda: _detected(gradient, corner, strong),
    }  # fmt: skip
    return runs


def _kept_attack(explainer, drawn):
    with new_folder() as folder:
        manipulated(explainer, SMALL, drawn, store=folder)
        return attacks.load_attack(folder), _arrays_in(folder)


def _resumed_attack(drawn):
    """An attack that its explainer stops once, and that is then repeated; one image a batch."""
    net, calls = network(), itertools.count()

    def gradient(inputs, target):
        if next(calls) == 24:
            raise InterruptedError
        return explainers.Gradient(net)(inputs, target)

    with new_folder() as folder:
        return _run_twice(partial(
            manipulated, gradient, SMALL, drawn, model=net, n_steps=6, step_size=0.01, check_every=2,
            refresh_every=2, softening="softplus", batch_size=1, store=folder,
        ))  # fmt: skip


def _detected(explainer, drawn, settings):
    found = manipulated(explainer, SMALL, drawn, **settings)
    clean, attacked = (
        explained(explainer, torch.from_numpy(part.inputs), found.asked, n=8)
        for part in (found.clean, found.adversarial)
    )
    detection = attacks.detect(clean, attacked, confidence_level=0.9)
    signs = list(detection.clean)
    return (
        detection,
        [detection.roc(sign) for sign in signs],
        [(detection.auc(sign), detection.auc_interval(sign)) for sign in signs],
        [str(detection)],
    )


# Texts


TEXTS = [
    "a dull , lifeless film with one good joke",
    "warm and funny : the best picture I saw",
    "nobody should see this long , bad movie twice",
]
LONGER = [*TEXTS, "a great movie", "it is the best picture of the year , for children and for those who were once"]
GOOD, BAD = {"good", "best", "warm", "funny", "great", "estimable"}, {"dull", "lifeless", "bad", "long"}


def counting(texts):
    """Probability of a favourable text by its words, by their places and their lengths."""
    rows = [row.split() if isinstance(row, str) else row for row in texts]
    sums = [sum((w in GOOD) - (w in BAD) + 0.03 * len(w) / (1 + i) for i, w in enumerate(row)) for row in rows]
    positive = 1 / (1 + np.exp(-np.array(sums, dtype=float)))
    return np.stack([1 - positive, positive], axis=1)


@kept
def sentiment():
    return text.load_model("sentiment")


def _logits(texts):
    return np.log(counting(texts))


def _one_score(texts):
    return counting(texts)[:, 1]


def of_texts():
    made = {"counting": counting, "sentiment": sentiment()}
    quick = {"n_perturbations": 60, "rng": 0}
    runs = {}
    for name, model in made.items():
        explains = {
            "LEMNA": text.LEMNA(model, **quick),
            "LEMNA of two components": text.LEMNA(model, n_components=2, fused=0.02, scale=False, **quick),
            "LEMNA without fusion": text.LEMNA(metfa.Called(model, softmax=False, batch_size=16), fused=0.0, **quick),
            "LIME": text.LIME(model, **quick),
            "LIME with other settings": text.LIME(model, kernel_width=0.5, regularization=0.1, scale=False, **quick),
            "occlusion": text.Occlusion(model),
            "occlusion, unscaled": text.Occlusion(model, scale=False),
        }
        if name == "sentiment":
            explains |= {
                "gradient x input": text.GradientXInput(model),
                "gradient x input, unscaled": text.GradientXInput(model, scale=False),
            }
        for kind, explainer in explains.items():
            runs |= {
                f"{kind} of {name}, called": partial(explainer, TEXTS, [1, 0, 1]),
                f"{kind} of {name}, called without classes": partial(explainer, TEXTS),
                f"{kind} of {name}, explained": partial(
                    _text_explained, model, TEXTS[0], method=lambda model, one=explainer: one
                ),
            }
        runs |= _word_metrics(name, model)
    runs |= {
        "LEMNA, fitted": partial(text.LEMNA(counting, n_components=2, **quick).fit, TEXTS, [1, 0, 1]),
        "LIME, fitted": partial(text.LIME(counting, **quick).fit, TEXTS),
        "LEMNA of logits": partial(text.LEMNA(metfa.Called(_logits, softmax=True), **quick), TEXTS),
        "LIME of one score": partial(text.LIME(_one_score, **quick), TEXTS),
        "explained by default": lambda: _text_explained(counting, TEXTS[1]),
        "explained for a class": lambda: _text_explained(counting, TEXTS[1], 0, method=text.Occlusion, n=3),
        "explained without noise": lambda: _text_explained(
            counting, TEXTS[1], method=partial(text.LEMNA, n_perturbations=40), noise=None
        ),
        "explained tokens": lambda: _text_explained(counting, TEXTS[0].split(), method=text.Occlusion),
        "explained until": lambda: _text_explained(
            counting, TEXTS[0], method=text.Occlusion, n=metfa.Until(undecided=0.3, max_samples=40)
        ),
        "explained in two calls": lambda: explained_text(counting, TEXTS[0], method=text.Occlusion).concat(
            explained_text(counting, TEXTS[0], method=text.Occlusion, start=6)
        ),
        "explained and stored": _stored_text,
        "synonyms": _synonyms,
        "overlap": lambda: [metrics.top_k_overlap(_text_sample(), 3), metrics.top_k_overlap(_text_sample(), 20)],
        "rendered": lambda: [
            text.render_html(_text_sample()), text.render_html(_signed_text(), title="Title", page=True),
        ],
        "rendered for a terminal": lambda: [
            text.render_terminal(_text_sample(), width=70, colour=True),
            text.render_terminal(_signed_text(), width=60, colour=False, threshold=0.0, alpha=0.1, correction="bh"),
        ],
        "words of tokens": lambda: text.words_from_tokens(np.arange(10.0).reshape(5, 2), [None, 0, 0, 1, None], 3),
        "the sentiment model": lambda: [sentiment()(LONGER), sentiment().tokenize(LONGER[0])],
        "the sentiment model, written and read": _written_model,
        "a transformer": _transformer,
    }  # fmt: skip
    return runs


def _text_explained(model, words, target=None, **settings):
    sample = explained_text(model, words, target, **settings)
    return sample, made_with(sample, "text")["text"]


@kept
def _text_sample():
    return explained_text(sentiment(), TEXTS[0], method=text.Occlusion, n=12)


@kept
def _signed_text():
    return explained_text(
        sentiment(), TEXTS[1], method=partial(text.GradientXInput, scale=False), n=12, noise=text.Synonyms(0.6)
    )


def _word_metrics(name, model):
    maps = [scores[0] for scores, _ in (text.Occlusion(model)([row]) for row in LONGER)]
    of_texts = {"FDT": text.fdt, "ST": text.st, "FAT": partial(text.fat, others=LONGER)}
    runs = {}
    for kind, metric in of_texts.items():
        runs |= {
            f"{kind} of {name}": partial(metric, model, LONGER, maps),
            f"{kind} of {name} for a class": partial(
                metric, metfa.Called(model, softmax=False, batch_size=4), LONGER, maps, 1, n=3
            ),
            f"robust {kind} of {name}": partial(robust(metric, text.Synonyms(0.5)), model, LONGER, maps, n=3),
        }
    return runs


def _stored_text():
    with new_folder() as folder:
        return explained_text(counting, TEXTS[0], method=text.Occlusion, store=folder), metfa.load(folder)


def _synonyms():
    laws = [text.Synonyms(0.3), text.Synonyms(1.0, part_of_speech="noun"), text.Synonyms(1.0, multi_word=True)]
    drawn = [law(row, np.random.default_rng(7)) for law in laws for row in [*LONGER, LONGER[0].split()]]
    return drawn, laws[0].candidates(TEXTS[1]), laws[1].coverage(TEXTS[1])


def _written_model():
    with new_folder() as folder:
        text.save_model(sentiment(), folder)
        return text.load_model(folder)(TEXTS)


def _transformer():
    """A small one with random weights; no pretrained one is needed for digests."""
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    words = sorted({word for row in LONGER for word in row.lower().split()})
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, "##s"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text("\n".join(tokens), encoding="utf-8")
        tokenizer = BertTokenizer(str(path))
    config = BertConfig(
        vocab_size=len(tokens), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    model = text.from_transformers(
        tokenizer, seeded(lambda: BertForSequenceClassification(config)).eval(), max_length=32
    )  # fmt: skip
    sample = explained_text(model, TEXTS[0], method=text.GradientXInput, n=3)
    return sample, model(LONGER), model.tokenize(TEXTS[0]), text.Occlusion(model)(TEXTS)


# Segmentation


def bright_edge(pictures):
    """Class 1 is a bright pixel in an image whose left edge is bright."""
    left = pictures[:, :, :, :2].mean((1, 2, 3), keepdim=True)
    return torch.cat([0 * pictures, 12 * pictures * left - 3], dim=1)


def scene(height=12, width=16, object_at=(4, 9)):
    image = torch.full((1, height, width), 0.05)
    down, right = object_at
    image[:, :, :2] = 0.9
    image[:, down : down + 3, right : right + 4] = 0.8
    return image


def region_of(image):
    return (image[0] == 0.8).numpy()


class Coarse(nn.Module):
    """Class maps at half the resolution, in a dict as torchvision gives them."""

    def __init__(self):
        super().__init__()
        self.chain = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1, stride=2), nn.ReLU(), nn.Conv2d(6, 3, 3, padding=1))

    def forward(self, pictures):
        return {"out": 10 * self.chain(pictures)}


@kept
def coarse():
    return seeded(Coarse).eval()


def of_segmentation():
    image, region = scene(), region_of(scene())
    square = np.zeros((32, 32), dtype=bool)
    square[10:20, 12:22] = True
    regional = segmentation.RegionModel(coarse(), square)
    shown = segmentation.RegionModel(coarse(), square, shown=IMAGES[0])
    quick = partial(segmentation.GridSaliency, n_iterations=15)
    context = ~square & (np.arange(32) < 20)
    best = int(regional(IMAGES[:1]).argmax())
    grid = segmentation.GridSaliency(coarse(), region=square, n_iterations=10, grid=(3, 5), baseline=COLOURS)
    made = {
        "grid saliency": grid,
        "grid saliency of a region": segmentation.GridSaliency(
            metfa.Called(regional, batch_size=2),
            n_iterations=10,
            learning_rate=0.1,
            momentum=0.0,
            l1_weight=0.1,
            scale=True,
        ),
        "gradient of a region": explainers.Gradient(regional),
        "RISE of a region": explainers.RISE(regional, n_masks=10, grid=4, rng=0),
        "MASK of a region": explainers.MASK(shown, n_iterations=3, grid=6, rng=0),
        "Score-CAM of a region": explainers.ScoreCAM(regional, layer="network.chain.1"),
    }
    found = partial(explained_scene, bright_edge, image, 1, region=region, method=quick, n=12, noise=STRONG_NOISE)
    runs = {
        **_called(made, targets=[0, 1, 2]),
        "regions": lambda: [regional(IMAGES), shown(IMAGES)],
        "predicted regions": lambda: [
            segmentation.predicted_region(bright_edge, image, 1),
            segmentation.predicted_region(coarse(), IMAGES[0], best),
        ],
        "explained": found,
        "explained with a predicted region": partial(
            explained_scene, bright_edge, image, 1, method=partial(quick, grid=(3, 8), l1_weight=0.1, baseline=0.0)
        ),
        "explained probabilities": lambda: explained_scene(
            metfa.Called(lambda pictures: bright_edge(pictures).softmax(1), softmax=False), image, 1, region=region,
            method=quick
        ),
        "explained by a gradient": partial(
            explained_scene, coarse(), IMAGES[0], best, region=square, method=explainers.Gradient
        ),
        "explained by RISE": partial(
            explained_scene, coarse(), IMAGES[0], best, region=square,
            method=partial(explainers.RISE, n_masks=12, grid=4),
        ),
        "stored": lambda: _stored_scene(image, region, quick),
        "faithfulness": partial(
            segmentation.context_faithfulness, coarse(), IMAGES, context, [best, 0, 1], region=square
        ),
        "faithfulness, other settings": partial(
            segmentation.context_faithfulness,
            metfa.Called(coarse(), batch_size=2, memory_format=torch.channels_last), IMAGES, context, best,
            region=square, baseline="blur",
        ),
        "robust faithfulness": partial(
            robust(segmentation.context_faithfulness), coarse(), IMAGES, context, best, region=square
        ),
        "table": _context_table,
    }  # fmt: skip
    for name, threshold, settings in (
        ("number", 0.3, {"alpha": 0.1, "correction": None}),
        ("natural breaks", stats.jenks, {"alpha": 0.05, "correction": "bh"}),
        ("split", stats.jenks, {"alpha": 0.1, "correction": None, "split": 4}),
    ):
        runs[f"asked, {name}"] = lambda threshold=threshold, settings=settings: _asked_of_scene(
            found(), threshold, settings
        )
    return runs


def _asked_of_scene(explanation, threshold, settings):
    split = {"split": settings["split"]} if "split" in settings else {}
    return {
        "marks": explanation.significance_map(threshold, **settings),
        "significant": explanation.significant(threshold, **settings),
        "above": explanation.above(threshold, **split),
        "area ratio": explanation.area_ratio(threshold, **settings),
        "summary": explanation.summary(threshold, confidence_level=0.9, **settings),
        "smoothed": explanation.smoothed(0.9),
        "interval": explanation.confidence_interval(0.9),
        "threshold": explanation.threshold(stats.jenks, **split),
    }


def _stored_scene(image, region, explainer):
    with new_folder() as folder:
        stored = explained_scene(bright_edge, image, 1, region=region, method=explainer, store=folder)
        stored.save(folder.with_name("saved"))
        return stored, segmentation.load_context(folder), segmentation.load_context(folder.with_name("saved"))


def _context_table():
    places = [(4, 9), (2, 5), (7, 10)]
    explanations = [
        explained_scene(
            bright_edge, scene(object_at=place), 1, region=region_of(scene(object_at=place)),
            method=partial(segmentation.GridSaliency, n_iterations=15), noise=STRONG_NOISE, n=8,
        )
        for place in places
    ]  # fmt: skip
    table = segmentation.context_table(
        bright_edge, explanations, class_names=["nothing", "thing"], threshold=0.3, alpha=0.1, n_outer=3
    )
    clean = segmentation.context_table(bright_edge, explanations, noise=None, correction="bh")
    return table, [str(table)], clean


# Studies


def evaluated(**settings):
    """Figures and tables of a study; a store of its own, so that all is computed."""
    with new_folder() as folder:
        found = metfa.evaluate(metfa.Study(version="1", **settings), store=folder)
        frame = found.to_dataframe()
    columns = {name: _column(frame[name]) for name in frame.columns}
    tables = {table.title: [table.to_csv(), table.to_markdown(), table.to_latex()] for table in found.tables()}
    return columns, tables, [repr(found)]


def estimated(**settings):
    """What a study will likely cost, without seconds."""
    with new_folder() as folder:
        estimate = metfa.evaluation.prepare(metfa.Study(version="1", **settings), store=folder).estimate()
    return {name: getattr(estimate, name) for name in ("units", "explanations", "forwards", "backwards", "at_most")}


def _column(values):
    return values.to_numpy() if values.dtype.kind == "f" else [str(value) for value in values]


def brightness(model):
    return _bright


def _bright(inputs, target):
    return inputs.mean(axis=1)


def _mean_of_map(model, inputs, maps, target):
    return np.asarray(maps).reshape(len(maps), -1).mean(axis=1)


STABILITY = {"mstd": {}, "top_k_overlap": {"k": 5}, "max_sensitivity": {}}
OF_SAMPLES = {"interval_width": {}, "undecided": {"threshold": 0.4, "correction": None}}
OF_CERTIFICATES = {
    "certified_radius": {"threshold": 0.4, "correction": None},
    "certified_share": {"threshold": 0.4, "radius": 0.02, "correction": None},
}
OF_IMAGES = {
    **STABILITY, **OF_SAMPLES, "prediction_agreement": {}, "faithfulness": {"steps": 5},
    "robust_faithfulness": {"steps": 4, "baseline": "mean"}, "infidelity": {"noise": PIXEL_NOISE, "n_perturbations": 3},
    "region_score": {}, "own": _mean_of_map,
}  # fmt: skip
OF_TEXTS = {**STABILITY, "interval_width": {}, "word_faithfulness": {"n": 3}, "robust_word_faithfulness": {"n": 3}}


def of_studies():
    networks = {
        "model": network(), "inputs": images(2, 16, seed=3), "sampling": {"uniform": PIXEL_NOISE},
        "outer": {"uniform": PIXEL_NOISE, "normal": noise.Gaussian(0.1, bounds=(0, 1))}, "n_samples": 6, "n_outer": 2,
        "explainers": {"gradient": "gradient", "RISE": partial(explainers.RISE, n_masks=8, grid=4)},
    }  # fmt: skip
    tables = {
        "model": linear, "inputs": ROWS, "explainers": {"slopes": slopes}, "sampling": {"normal": COLUMN_NOISE},
        "outer": {"normal": COLUMN_NOISE, "none": None}, "n_outer": 3,
    }  # fmt: skip
    texts = {
        "model": counting, "inputs": TEXTS, "sampling": {"synonyms": text.Synonyms(0.3)},
        "outer": {"synonyms": text.Synonyms(0.5)}, "n_samples": 6, "n_outer": 2,
        "explainers": {"occlusion": "occlusion", "LEMNA": partial(text.LEMNA, n_perturbations=30)},
    }  # fmt: skip
    rule = metfa.Until(undecided=0.3, threshold=0.4, max_samples=60)
    return {
        "images": partial(evaluated, metrics=OF_IMAGES, **networks),
        "images, estimated": partial(estimated, metrics=OF_IMAGES, **networks),
        "texts, estimated": partial(estimated, metrics=OF_TEXTS, **texts),
        "images, two sizes and levels": partial(
            evaluated, **{**networks, "n_samples": (6, 9), "confidence_level": (0.8, 0.95)},
            metrics={**STABILITY, "faithfulness": {"steps": 4}, "interval_width": {}}, targets=[1, None], seed=3,
        ),
        "tables": partial(evaluated, metrics={**STABILITY, **OF_SAMPLES, **OF_CERTIFICATES}, n_samples=12, **tables),
        "tables until": partial(
            evaluated, n_samples=rule, **tables,
            metrics={**STABILITY, "sample_size": {}, "rule_met": {}, "undecided": {}, "certified_radius": {}},
        ),
        "texts": partial(evaluated, metrics=OF_TEXTS, **texts),
        "texts of the sentiment model": lambda: evaluated(
            **{**texts, "model": sentiment(), "explainers": {"gradient": "gradient-x-input"}},
            metrics={"mstd": {}, "word_faithfulness": {"n": 3}},
        ),
        "NumPy images": partial(
            evaluated, model=bright_corners, inputs=IMAGES.numpy(), explainers={"bright": brightness},
            metrics={"faithfulness": {"steps": 5, "softmax": False}, "mstd": {}}, n_samples=6, n_outer=2,
            sampling={"uniform": PIXEL_NOISE}, outer={"uniform": PIXEL_NOISE},
        ),
    }  # fmt: skip


# Reports and figures


def reported(results, **settings):
    """What a report's script reads: counts, decisions and layers. Times and versions stand elsewhere in the page."""
    with tempfile.TemporaryDirectory() as folder:
        page = metfa.report.write(Path(folder) / "report.html", results, **settings).read_text(encoding="utf-8")
    (payload,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    payload = json.loads(payload)
    cells = payload.pop("results")
    return payload, [{name: [json.dumps(part, sort_keys=True)] for name, part in cell.items()} for cell in cells]


def drawn_figure(figure):
    """Pixels of a figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(50)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba()).copy()


def of_reports():
    explicit = {"threshold": 0.3, "alpha": 0.05, "correction": "bh", "confidence_level": 0.9}
    return {
        "images": lambda: reported(picture_sample(), **explicit),
        "images, split": lambda: reported(picture_sample(), threshold=stats.jenks, alpha=0.05, split=10),
        "normal noise": lambda: reported(normal_sample(), threshold=0.25, alpha=0.05),
        "a table": lambda: reported({"rows": table_sample()}, **explicit),
        "until": lambda: reported(until_sample(), threshold=0.2, alpha=0.05, correction="e-bh"),
        "texts": lambda: reported([_text_sample(), _signed_text()], threshold=0.1, alpha=0.1),
        "a scene": lambda: reported(_scene_explanation(), threshold=0.3, alpha=0.1),
    }


@kept
def _scene_explanation():
    quick = partial(segmentation.GridSaliency, n_iterations=15)
    return explained_scene(bright_edge, scene(), 1, region=region_of(scene()), method=quick)


def of_figures():
    plot = metfa.plot
    terms = {"threshold": 0.3, "alpha": 0.05, "correction": "bh"}
    made = {
        "images": lambda: picture_sample().plot(index=1, confidence_level=0.9, **terms),
        "a table": lambda: table_sample().plot(index=1, confidence_level=0.9, **terms),
        "certificate": lambda: plot.certificate(normal_sample(), 0.25, alpha=0.05, correction=None),
        "a scene": lambda: _scene_explanation().plot(threshold=0.3, alpha=0.1, correction=None),
        "curves": lambda: plot.curves({"insertion": metrics.insertion(network(), IMAGES, IMAGES.mean(1), 1, steps=6)}),
        "an attack": lambda: manipulated(
            explainers.Gradient(network()), SMALL, attacks.drawn("circle", 12, 12), settings="strong", n_steps=4
        ).plot(),
    }
    return {name: lambda make=make: drawn_figure(make()) for name, make in made.items()}


TOPICS = {
    "stats": of_stats,
    "noise": of_noises,
    "explainers": of_explainers,
    "other libraries": of_other_libraries,
    "sampling": of_sampling,
    "until": of_until,
    "results": of_results,
    "smoothed": of_smoothing,
    "metrics": of_metrics,
    "attacks": of_attacks,
    "texts": of_texts,
    "segmentation": of_segmentation,
    "studies": of_studies,
    "reports": of_reports,
    "figures": of_figures,
}


# Recording and comparing


def runs(prefix=""):
    """All runs whose name begins so, by name."""
    found = {}
    for topic, make in TOPICS.items():
        if topic.startswith(prefix) or prefix.startswith(f"{topic}/"):
            found |= {f"{topic}/{name}": run for name, run in _made(make).items()}
    return {name: run for name, run in found.items() if name.startswith(prefix)}


def _made(make):
    """Runs of a topic; where they cannot be made, as without a name that they use, one run that says so."""
    try:
        return make()
    except Exception as error:
        return {"none of its runs": partial(_raise, error)}


def _raise(error):
    raise error


def record(path, prefix):
    """Write digests of all runs; the exit status tells whether one failed."""
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)  # sums over threads round by their number
    started, found, seconds = time.perf_counter(), {}, {}
    with threadpool_limits(1):
        for name, run in runs(prefix).items():
            clock = time.perf_counter()
            found |= digests_of(name, run)
            topic = name.partition("/")[0]
            seconds[topic] = seconds.get(topic, 0) + time.perf_counter() - clock
    Path(path).write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
    failed = {name: entry["shown"] for name, entry in found.items() if "failed" in entry}
    say([f"{name}: {shown}" for name, shown in failed.items()])
    say([f"{topic}: {spent:.1f} s" for topic, spent in seconds.items()])
    say([f"{len(found)} digests in {time.perf_counter() - started:.0f} s, {len(failed)} runs failed; {path}"])
    return int(bool(failed))


def compare(before, after, prefix):
    """Tell what differs; the exit status tells whether anything does."""
    old, new = (_read(path, prefix) for path in (before, after))
    changed = [name for name in old.keys() & new.keys() if old[name]["digest"] != new[name]["digest"]]
    gone, come = old.keys() - new.keys(), new.keys() - old.keys()
    say([f"{name}\n    before {old[name]['shown']}\n    after  {new[name]['shown']}" for name in sorted(changed)])
    say([f"only before: {name}: {old[name]['shown']}{_same_as(name, old, new, come)}" for name in sorted(gone)])
    say([f"only after: {name}: {new[name]['shown']}" for name in sorted(come)])
    equal = len(old.keys() & new.keys()) - len(changed)
    say([f"{equal} equal, {len(changed)} changed, {len(gone)} only before, {len(come)} only after"])
    return int(bool(changed or gone or come))


def _read(path, prefix):
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return {name: entry for name, entry in found.items() if name.startswith(prefix)}


def _same_as(name, old, new, come):
    """Which new name of the same run has the same digest, as where a field was renamed."""
    run = name.partition(": ")[0]
    twins = [one for one in sorted(come) if one.startswith(run) and new[one]["digest"] == old[name]["digest"]]
    return f" (now {twins[0]})" if twins else ""


def say(lines):
    sys.stdout.writelines(f"{line}\n" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="write digests of all runs")
    recording.add_argument("file")
    comparing = commands.add_parser("compare", help="tell what differs")
    comparing.add_argument("before")
    comparing.add_argument("after")
    for command in (recording, comparing):
        command.add_argument("--only", metavar="PREFIX", default="", help="runs whose names begin so")
    arguments = parser.parse_args()
    if arguments.command == "record":
        return record(arguments.file, arguments.only)
    return compare(arguments.before, arguments.after, arguments.only)


if __name__ == "__main__":
    sys.exit(main())
