"""The commands and their options."""

from __future__ import annotations

import enum
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from metfa.allocator import keep_freed_memory
from metfa.cli.images import demo_photo, open_image
from metfa.cli.parsing import METHODS, NOISE_FORMS
from metfa.cli.run import (
    FIGURE,
    REPORT,
    Analysis,
    Sampling,
    check_before_sampling,
    explain_picture,
    read_folder,
    write_views,
)

__all__ = ["app"]

app = typer.Typer(
    help="Error bars for feature attributions: what in a picture is significantly important to a network?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


class Correction(str, enum.Enum):
    """Corrections for many features."""

    none = "none"
    bonferroni = "bonferroni"
    holm = "holm"
    bh = "bh"
    by = "by"


class Colours(str, enum.Enum):
    """Colours of the figure."""

    paper = "paper"
    colourblind = "colourblind"


Model = Annotated[
    str, typer.Option(help="efficientnet-lite0|1|2, timm:NAME, torchvision:NAME or package.module:callable.")
]
Method = Annotated[str, typer.Option(help=f"{', '.join(METHODS)}, or package.module:callable (model -> explainer).")]
Target = Annotated[int | None, typer.Option(help="Class index explained; by default the predicted class.")]
Noise = Annotated[str, typer.Option(help=NOISE_FORMS.replace("[", "\\[") + ", on pixels in 0..1.")]
Samples = Annotated[int, typer.Option("--samples", "-n", help="Noisy copies explained, the paper's N.")]
Alpha = Annotated[float, typer.Option(help="Level of the significance tests.")]
Confidence = Annotated[float, typer.Option(help="Level asked of the intervals; the exact one is printed.")]
Corrected = Annotated[Correction, typer.Option(help="Correction for testing many pixels at once.")]
Threshold = Annotated[str, typer.Option(help="'jenks' (natural breaks of all scores) or a number.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same samples.")]
Batch = Annotated[int, typer.Option("--batch-size", min=1, help="Pictures a forward pass; changes speed only.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
BFloat16 = Annotated[bool, typer.Option("--bfloat16", help="Run the model in bfloat16: faster, single maps change.")]
Palette = Annotated[Colours, typer.Option(help="Colours of the significance map.")]


def _reported(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what a user can mend into one line and exit code 2; a fault of ours keeps its traceback."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            err.print("interrupted: the samples so far are kept; repeat the command to resume")
            sys.exit(130)
        except (ValueError, TypeError, OSError, ImportError) as error:
            err.print(Text(f"error: {' '.join(str(error).split())}"), soft_wrap=True)
            sys.exit(2)

    return run


@app.command()
@_reported
def demo(
    photo: Annotated[str, typer.Option(help="coffee, or cat: the one that the network is unsure of.")] = "coffee",
    folder: Annotated[Path | None, typer.Option("--out", help="New folder for the results.")] = None,
    samples: Samples = 50,
    seed: Seed = 0,
    palette: Palette = Colours.paper,
) -> None:
    """Explain a photograph by the gradient of EfficientNet-Lite0, 50 samples under uniform noise of 0.1."""
    image = demo_photo(photo)
    sampling = Sampling(
        "efficientnet-lite0", "gradient", None, "uniform:0.1", samples, seed, 10, "auto", bfloat16=False
    )
    analysis = Analysis(0.05, 0.95, None, "jenks", palette.value)
    _explain({f"scikit-image's {photo}": image}, [folder or _unused(Path("metfa-demo"))], sampling, analysis)


@app.command()
@_reported
def explain(
    images: Annotated[list[Path], typer.Argument(help="Picture files.", show_default=False)],
    model: Model = "efficientnet-lite0",
    method: Method = "gradient",
    target: Target = None,
    noise: Noise = "uniform:0.1",
    samples: Samples = 50,
    alpha: Alpha = 0.05,
    confidence: Confidence = 0.95,
    correction: Corrected = Correction.none,
    threshold: Threshold = "jenks",
    seed: Seed = 0,
    batch_size: Batch = 10,
    device: Device = "auto",
    bfloat16: BFloat16 = False,
    palette: Palette = Colours.paper,
    folder: Annotated[Path, typer.Option("--out", help="Folder for the results; an interrupted run resumes.")] = Path(
        "metfa-out"
    ),
) -> None:
    """Explain pictures: figure.png, report.txt and the samples, in a folder."""
    sampling = Sampling(model, method, target, noise, samples, seed, batch_size, device, bfloat16)
    analysis = Analysis(
        alpha, confidence, None if correction is Correction.none else correction.value, threshold, palette.value
    )
    pictures = {str(path): open_image(path) for path in images}
    folders = [folder] if len(images) == 1 else _folders(folder, images)
    _explain(pictures, folders, sampling, analysis)


@app.command()
@_reported
def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder written by metfa.", show_default=False)],
    alpha: Alpha = 0.05,
    confidence: Confidence = 0.95,
    correction: Corrected = Correction.none,
    threshold: Threshold = "jenks",
    palette: Palette = Colours.paper,
    views: Annotated[
        Path | None, typer.Option("--out", help="Folder for a figure and a report with these settings.")
    ] = None,
) -> None:
    """Read results again, with other levels, without the model."""
    from metfa.cli.run import report

    analysis = Analysis(
        alpha, confidence, None if correction is Correction.none else correction.value, threshold, palette.value
    )
    sample, about = read_folder(folder)
    if views is None:
        out.print(Text(report(sample, about, analysis)), soft_wrap=True)
        return
    views.mkdir(parents=True, exist_ok=True)
    for name in (FIGURE, REPORT):
        if (views / name).exists():
            raise FileExistsError(f"{views / name} exists already: give another folder")
    out.print(Text(write_views(sample, about, analysis, views)), soft_wrap=True)
    out.print(Text(f"\n{views / FIGURE}"), soft_wrap=True)


def _explain(pictures: dict[str, Any], folders: list[Path], sampling: Sampling, analysis: Analysis) -> None:
    check_before_sampling(sampling, analysis, n_features=None)
    for folder in folders:
        if (folder / FIGURE).exists():
            raise FileExistsError(
                f"{folder} holds a finished result: `metfa show {folder}` reads it; give another --out"
            )
        folder.mkdir(parents=True, exist_ok=True)
    if keep_freed_memory():
        err.print(
            "malloc keeps freed memory (glibc thresholds raised): large batches run up to twice as fast", style="dim"
        )
    from metfa.models import load

    loaded = load(sampling.model)
    for (name, image), folder in zip(pictures.items(), folders, strict=True):
        sample, about = explain_picture(image, loaded, sampling, analysis, folder, name)
        out.print(Text(write_views(sample, about, analysis, folder)), soft_wrap=True)
        out.print(Text(f"\nfigure: {folder / FIGURE}"), soft_wrap=True)


def _unused(folder: Path) -> Path:
    numbered = (folder.with_name(f"{folder.name}-{k}") for k in range(2, 1000))
    return folder if not folder.exists() else next(path for path in numbered if not path.exists())


def _folders(folder: Path, images: list[Path]) -> list[Path]:
    """One folder a picture, named by its file; equal names are numbered."""
    names: list[str] = []
    for path in images:
        stem = path.stem or "picture"
        names.append(stem if stem not in names else f"{stem}-{sum(n.startswith(stem) for n in names) + 1}")
    return [folder / name for name in names]
