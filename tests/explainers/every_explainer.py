"""Every explainer on one line: its name, how it is made of a small model, which inputs it takes.

A new explainer or adapter gets a line here, and `test_every_explainer.py` runs all common trials on it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import shap
import timm
import torch
from captum.attr import InputXGradient
from lime import lime_image, lime_tabular
from torch import nn

from metfa import text
from metfa.explainers import (
    CAM,
    IGOS,
    LIME,
    LRP,
    MASK,
    RISE,
    AttentionRollout,
    Blocks,
    Gradient,
    GradientRollout,
    LeGrad,
    ScoreCAM,
    SmoothGrad,
    from_captum,
    from_gradcam,
    from_lime,
    from_shap,
    heatmap,
)  # fmt: skip
from metfa.segmentation import GridSaliency, RegionModel
from metfa.text.models import BiLSTM, TrainedBiLSTM
from metfa.text.models.embedded import probabilities_of_rows

DTYPE = torch.float64
QUARTERS = np.kron([[0, 1], [2, 3]], np.ones((6, 8), dtype=int))
WORDS = ("a", "dull", "film", "fine", "moving", "not", "so", "very")
REGION = np.zeros((12, 16), dtype=bool)
REGION[4:7, 9:13] = True
TABLE = torch.rand(30, 4, dtype=torch.float32, generator=torch.Generator().manual_seed(3))


def seeded_network(make, gain=20.0):
    """Layers with the same weights each time, in evaluation mode; the last one's are large, so that scores differ."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = make()
    with torch.no_grad():
        network[-1].weight *= gain
    return network.eval()


def classifier_of_pictures():
    def layers():
        convolutions = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 5, 3, padding=1)
        return nn.Sequential(*convolutions, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 4))

    return seeded_network(layers).to(DTYPE)


def classifier_of_series():
    def layers():
        convolutions = nn.Conv1d(2, 4, 3, padding=1), nn.BatchNorm1d(4), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(4, 5, 3)
        return nn.Sequential(*convolutions, nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(5, 4))

    return seeded_network(layers).to(DTYPE)


def classifier_of_volumes():
    def layers():
        convolutions = nn.Conv3d(1, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.AvgPool3d(2), nn.Conv3d(4, 5, 2)
        return nn.Sequential(*convolutions, nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(5, 4))

    return seeded_network(layers).to(DTYPE)


def transformer_of_pictures():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        sizes = {"img_size": (12, 16), "patch_size": 4, "embed_dim": 8, "depth": 2, "num_heads": 2, "num_classes": 4}
        network = timm.create_model("vit_tiny_patch16_224", **sizes)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter *= 10 if parameter.ndim == 2 else 1
    return network.to(DTYPE).eval()


def classifier_of_rows():
    return seeded_network(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)), gain=3.0)


def segmenter():
    def layers():
        return nn.Sequential(nn.Conv2d(3, 4, 5, padding=2), nn.BatchNorm2d(4), nn.Tanh(), nn.Conv2d(4, 4, 7, padding=3))

    return seeded_network(layers, gain=6.0).to(DTYPE)


def classifier_of_texts():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return BiLSTM(len(WORDS) + 2, 4, embedding_size=5, n_units=4, n_hidden=6).to(DTYPE).eval()


def reader(module):
    return TrainedBiLSTM(module, WORDS, tuple("abcd"))


class Mean(nn.Module):
    def forward(self, tokens):
        return tokens.mean(1)


def attending_to_texts():
    def layers():
        layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=True)
        return nn.Sequential(nn.Embedding(len(WORDS) + 1, 8), layer, Mean(), nn.Linear(8, 4))

    return seeded_network(layers, gain=5.0).to(DTYPE)


class AttendingReader:
    """The smallest text model with attention: a word is a token."""

    def __init__(self, module):
        self.module = module

    def __call__(self, rows):
        return probabilities_of_rows(self, rows)

    def tokenize(self, row):
        words = row.split()
        return [1 + WORDS.index(word) if word in WORDS else 0 for word in words], list(range(len(words)))

    def embed(self, ids):
        return self.module[0](ids)

    def forward_embedded(self, embeddings, mask):
        return self.module[1:](embeddings)


@dataclass(frozen=True)
class Inputs:
    """A small torch module, and four rows that it can take; `map_shape` is that of one row's map."""

    module: Callable[[], nn.Module]
    rows: Callable[[], torch.Tensor | list[str]]
    map_shape: tuple[int, ...]


PICTURES = Inputs(
    classifier_of_pictures,
    lambda: torch.rand(4, 3, 12, 16, dtype=DTYPE, generator=torch.Generator().manual_seed(1)),
    (12, 16),
)
SERIES = Inputs(
    classifier_of_series,
    lambda: torch.rand(4, 2, 20, dtype=DTYPE, generator=torch.Generator().manual_seed(1)),
    (20,),
)
VOLUMES = Inputs(
    classifier_of_volumes,
    lambda: torch.rand(4, 1, 5, 6, 8, dtype=DTYPE, generator=torch.Generator().manual_seed(1)),
    (5, 6, 8),
)
PATCHES = Inputs(transformer_of_pictures, PICTURES.rows, (12, 16))
SCENES = Inputs(segmenter, PICTURES.rows, (12, 16))
ROWS = Inputs(classifier_of_rows, lambda: TABLE[:4].clone(), (4,))
TEXTS = Inputs(
    classifier_of_texts,
    lambda: ["a very fine film", "a dull dull film", "so not moving film", "not so fine film"],
    (4,),
)
ATTENDED_TEXTS = Inputs(attending_to_texts, TEXTS.rows, (4,))


@dataclass(frozen=True)
class Case:
    """An explainer of `inputs.module()`."""

    make: Callable[[nn.Module], Callable]
    inputs: Inputs
    random: bool = False  # draws from the generators of its rows
    takes_nan: bool = False  # which stands for a missing value in a table
    guarded: bool = True  # False: somebody else's function, which checks and restores what its author wanted


def of_text(kind, **settings):
    return lambda module: kind(reader(module), **settings)


def deep_shap(module):
    return from_shap(shap.DeepExplainer(module, TABLE))


def gradient_shap(module):
    return from_shap(shap.GradientExplainer(module, TABLE), nsamples=10)


def lime_of_the_package(module):
    settings = {"num_samples": 20, "hide_color": 0, "segmentation_fn": lambda image: QUARTERS}
    return from_lime(lime_image.LimeImageExplainer(), module, softmax=True, **settings)


def lime_of_a_table(module):
    return from_lime(lime_tabular.LimeTabularExplainer(TABLE.numpy()), module, softmax=True, num_samples=20)


CASES = {
    "Gradient": Case(Gradient, PICTURES),
    "SmoothGrad": Case(lambda model: SmoothGrad(model, n_perturbations=3), PICTURES, random=True),
    "RISE": Case(lambda model: RISE(model, n_masks=20, grid=4), PICTURES, random=True),
    "LIME": Case(
        lambda model: LIME(model, n_perturbations=20, segmentation=QUARTERS, n_segments_shown=None),
        PICTURES, random=True,
    ),
    "IGOS": Case(lambda model: IGOS(model, n_iterations=2, n_steps=3, grid=4), PICTURES, random=True),
    "MASK": Case(lambda model: MASK(model, n_iterations=4, grid=(4, 6)), PICTURES, random=True),
    "ScoreCAM": Case(ScoreCAM, PICTURES),
    "ScoreCAM on tokens": Case(ScoreCAM, PATCHES),
    "CAM": Case(CAM, PICTURES),
    "LRP": Case(LRP, PICTURES),
    "RISE of series": Case(lambda model: RISE(model, n_masks=20, grid=4), SERIES, random=True),
    "LIME of volumes": Case(
        lambda model: LIME(model, n_perturbations=20, segmentation=Blocks(2), n_segments_shown=None),
        VOLUMES, random=True,
    ),
    "IGOS of series": Case(  # a descent that moves: of masks that stay within 1e-8 of 1 a scaled map shows the rounding
        lambda model: IGOS(model, n_iterations=1, n_steps=2, grid=3, baseline=1, l1_weight=0.001, tv_weight=0.1),
        SERIES, random=True,
    ),
    "MASK of series": Case(lambda model: MASK(model, n_iterations=3, grid=6), SERIES, random=True),
    "ScoreCAM of series": Case(ScoreCAM, SERIES),
    "CAM of volumes": Case(CAM, VOLUMES),
    "grad-cam's GradCAM of series": Case(lambda model: from_gradcam("GradCAM", model), SERIES),
    "LRP by AttnLRP": Case(lambda model: LRP(model, composite="attnlrp"), PATCHES),
    "LRP by CP-LRP": Case(lambda model: LRP(model, composite="cplrp"), PATCHES),
    "AttentionRollout": Case(AttentionRollout, PATCHES),
    "GradientRollout": Case(GradientRollout, PATCHES),
    "LeGrad": Case(LeGrad, PATCHES),
    "GridSaliency": Case(
        lambda model: GridSaliency(RegionModel(model, REGION), n_iterations=4, grid=(3, 4)), SCENES
    ),
    "heatmap of a Captum object": Case(
        lambda model: heatmap(InputXGradient(model).attribute), PICTURES, guarded=False
    ),
    "Captum's Saliency": Case(lambda model: from_captum(model, "Saliency"), PICTURES),
    "Captum's GuidedBackprop": Case(lambda model: from_captum(model, "GuidedBackprop"), PICTURES),
    "Captum's KernelShap": Case(
        lambda model: from_captum(
            model, "KernelShap", n_samples=20, feature_mask=torch.from_numpy(QUARTERS)[None, None]
        ), PICTURES, random=True,
    ),
    "grad-cam's GradCAM": Case(lambda model: from_gradcam("GradCAM", model), PICTURES),
    "grad-cam's GradCAM on tokens": Case(lambda model: from_gradcam("GradCAM", model), PATCHES),
    "grad-cam's AblationCAM": Case(lambda model: from_gradcam("AblationCAM", model), PICTURES),
    "SHAP's DeepExplainer": Case(deep_shap, ROWS, takes_nan=True),
    "SHAP's GradientExplainer": Case(gradient_shap, ROWS, random=True, takes_nan=True),
    "lime's LimeImageExplainer": Case(lime_of_the_package, PICTURES, random=True),
    "lime's LimeTabularExplainer": Case(lime_of_a_table, ROWS, random=True, takes_nan=True),
    "LEMNA": Case(of_text(text.LEMNA, n_perturbations=30), TEXTS, random=True),
    "LIME of texts": Case(of_text(text.LIME, n_perturbations=15), TEXTS, random=True),  # fewer than all copies
    "Occlusion": Case(of_text(text.Occlusion), TEXTS),
    "GradientXInput": Case(of_text(text.GradientXInput), TEXTS),
    "LRP of texts": Case(lambda module: text.LRP(AttendingReader(module)), ATTENDED_TEXTS),
}  # fmt: skip
