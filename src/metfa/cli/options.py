"""Options that several commands share, with their texts for `--help`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from metfa.by_name.methods import method_forms
from metfa.by_name.noises import NOISE_FORMS
from metfa.cli.regions import FORMS

__all__ = [
    "Alpha",
    "BFloat16",
    "Batch",
    "Colours",
    "Confidence",
    "Corrected",
    "Correction",
    "Device",
    "FlipsFrom",
    "Method",
    "Model",
    "Noise",
    "Out",
    "Palette",
    "RegionsOf",
    "Samples",
    "Seed",
    "Settings",
    "Target",
    "Threshold",
    "UsualRegions",
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
_REGIONS = f"Regions that are asked about: {FORMS.replace('[', chr(92) + '[')}; each against the rest."
RegionsOf = Annotated[str, typer.Option("--regions", help=_REGIONS)]
UsualRegions = Annotated[
    str | None,
    typer.Option("--regions", help=f"{_REGIONS} By default those that sampling asked about, else superpixels:50."),
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
BFloat16 = Annotated[bool, typer.Option("--bfloat16", help="Run the model in bfloat16: often faster, maps change.")]
Palette = Annotated[Colours, typer.Option(help="Colours of the significance map.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the results; an interrupted run resumes.")]
