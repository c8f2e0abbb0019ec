"""Options that several commands share, with their texts for `--help`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from metfa.by_name.methods import method_forms
from metfa.by_name.noises import NOISE_FORMS
from metfa.cli.regions import ANY, PICTURES, SCENES, TEXTS, forms

__all__ = [
    "Alpha",
    "Batch",
    "Colours",
    "Confidence",
    "Corrected",
    "Correction",
    "Device",
    "Fast",
    "Faster",
    "FlipsFrom",
    "Method",
    "Model",
    "Noise",
    "Out",
    "Overwrite",
    "Palette",
    "RandomWeights",
    "RegionsOfAny",
    "RegionsOfPicture",
    "RegionsOfScene",
    "RegionsOfText",
    "Samples",
    "Seed",
    "Settings",
    "Target",
    "Threshold",
]


class Correction(str, enum.Enum):
    """Corrections for many features."""

    none = "none"
    bonferroni = "bonferroni"
    holm = "holm"
    bh = "bh"
    by = "by"
    e_bh = "e-bh"
    closed_e_bh = "closed-e-bh"


class Faster(str, enum.Enum):
    """Faster copies of a model."""

    exact = "exact"
    bfloat16 = "bfloat16"


class Colours(str, enum.Enum):
    """Colours of the figure."""

    paper = "paper"
    colourblind = "colourblind"


Model = Annotated[
    str, typer.Option(help="efficientnet-lite0|1|2, timm:NAME, torchvision:NAME or package.module:callable.")
]
Method = Annotated[str, typer.Option(help=f"{method_forms()}.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the method, such as n_masks=500; may be repeated."),
]
Target = Annotated[int | None, typer.Option(help="Class index explained; by default the predicted class.")]
Noise = Annotated[str, typer.Option(help=NOISE_FORMS.replace("[", "\\[") + ", on pixels in 0..1.")]


def _regions(kinds: Sequence[str], usual: str) -> Any:
    about = f"Regions that are asked about: {forms(kinds)}; each against the rest. By default {usual}."
    return typer.Option("--regions", help=about)


RegionsOfPicture = Annotated[str | None, _regions(PICTURES, "those that sampling asked about, else superpixels:50")]
RegionsOfText = Annotated[str | None, _regions(TEXTS, "sentences, if there are several")]
RegionsOfScene = Annotated[str | None, _regions(SCENES, "objects, the classes that the network finds around")]
RegionsOfAny = Annotated[
    str | None,
    _regions(ANY, "those that sampling asked about, else superpixels:50, sentences or objects"),
]
Samples = Annotated[int, typer.Option("--samples", "-n", help="Noisy copies explained, the paper's N.")]
Alpha = Annotated[
    float | None, typer.Option(help="Level of the tests. By default that of --until if it tested, else 0.05.")
]
Confidence = Annotated[float, typer.Option(help="Level wanted for the intervals; the exact level is printed.")]
FlipsFrom = Annotated[
    float,
    typer.Option(
        "--flips-from",
        help="Share of noisy copies with another prediction, from which on titles warn and marks are faint.",
    ),
]
Corrected = Annotated[
    Correction | None,
    typer.Option(help="Correction for testing many features. By default that of --until if it tested, else none."),
]
Threshold = Annotated[
    str | None,
    typer.Option(
        help="'jenks_of_medians' (natural break of the medians), 'jenks_of_means', 'jenks' (of all scores, as in the "
        "paper), or a number. By default that of --until if it tested, else 0 for signed scores and jenks_of_medians "
        "for others."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same samples.")]
Batch = Annotated[int, typer.Option("--batch-size", min=1, help="Pictures in one forward pass; changes speed only.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
Fast = Annotated[
    Faster | None,
    typer.Option(
        "--fast",
        help="Ask a faster copy of the model: exact (the same maps up to rounding), or bfloat16 (single maps change).",
    ),
]
Palette = Annotated[Colours, typer.Option(help="Colours of the significance map.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the results; an interrupted run resumes.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace what metfa wrote there before, with other settings.")
]
RandomWeights = Annotated[
    bool,
    typer.Option("--random-weights", help="An UNTRAINED network, to try a command where no weights can be downloaded."),
]
