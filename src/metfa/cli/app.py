"""The commands and their options."""

from __future__ import annotations

import enum
import functools
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from metfa._lazy import needs_extra
from metfa._pictures import open_image
from metfa._provenance import printable
from metfa.allocator import keep_freed_memory
from metfa.by_name.methods import check_settings, method_forms
from metfa.by_name.noises import NOISE_FORMS, TEXT_NOISE_FORMS
from metfa.cli.demo_photo import demo_photo
from metfa.cli.parsing import settings_of, size_of
from metfa.cli.run import (
    Analysis,
    Sampling,
    call_of,
    check_before_sampling,
    check_folder,
    device_of,
    explain_picture,
    explain_words,
    is_finished,
    is_of_text,
    read_folder,
    report,
    title_of,
    write_views,
)
from metfa.cli.scenes import Scene, call_of_scene, explain_scene
from metfa.text._words import words_of

__all__ = ["app", "run"]

LONGEST_TEXT = 1_000_000  # characters

app = typer.Typer(
    help="Error bars for feature attributions: what in a picture or a text is significantly important to a network?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
Method = Annotated[str, typer.Option(help=f"{method_forms()}.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the method, such as n_masks=500; may be repeated."),
]
Target = Annotated[int | None, typer.Option(help="Class index explained; by default the predicted class.")]
Noise = Annotated[str, typer.Option(help=NOISE_FORMS.replace("[", "\\[") + ", on pixels in 0..1.")]
Samples = Annotated[int, typer.Option("--samples", "-n", help="Noisy copies explained, the paper's N.")]
Alpha = Annotated[float, typer.Option(help="Level of the significance tests.")]
Confidence = Annotated[float, typer.Option(help="Level asked of the intervals; the exact one is printed.")]
Corrected = Annotated[Correction, typer.Option(help="Correction for testing many pixels at once.")]
Threshold = Annotated[str, typer.Option(help="'jenks' (natural breaks of all scores) or a number.")]
AlphaOrOwn = Annotated[
    float | None,
    typer.Option(help="Level of the tests. By default: texts, (1 - confidence) / 2, as the intervals; pictures, 0.05."),
]
ThresholdOrOwn = Annotated[
    str | None,
    typer.Option(help="'jenks' (natural breaks of all scores) or a number. By default jenks, or 0 for signed scores."),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same samples.")]
Batch = Annotated[int, typer.Option("--batch-size", min=1, help="Pictures a forward pass; changes speed only.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
BFloat16 = Annotated[bool, typer.Option("--bfloat16", help="Run the model in bfloat16: faster, single maps change.")]
Palette = Annotated[Colours, typer.Option(help="Colours of the significance map.")]


def run() -> NoReturn:
    """Run the command line, with typer's own complaints in the form of ours."""
    if len(sys.argv) == 1:
        app()  # shows the help
    try:
        code = app(standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's exceptions have it, and no public base class
            raise
        _complain(error.format_message())  # pyright: ignore[reportAttributeAccessIssue]
        code = 2
    sys.exit(code)


def _complain(text: str) -> None:
    typer.echo(f"error: {printable(text)}", err=True)


def _reported(command: Callable[..., None]) -> Callable[..., None]:
    """Turn warnings, and what a user can mend, into one line (and exit code 2); faults of ours keep their traceback."""

    def show_warning(message: Warning | str, *_: Any) -> None:
        typer.echo(f"warning: {printable(str(message))}", err=True)

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = show_warning
                command(*args, **kwargs)
        except BrokenPipeError:  # nobody reads on, as after `| head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nor may Python's own flush complain
            raise typer.Exit(1) from None
        except KeyboardInterrupt as interrupt:
            typer.echo(f"interrupted{interrupt}", err=True)
            raise typer.Exit(130) from None
        except (ValueError, TypeError, OSError, ImportError) as error:
            system = isinstance(error, OSError) and error.strerror and error.filename
            _complain(f"{error.filename}: {error.strerror}" if system else str(error))  # pyright: ignore[reportAttributeAccessIssue]
            raise typer.Exit(2) from None

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
        "efficientnet-lite0", "gradient", {}, None, "uniform:0.1", samples, seed, 10, "auto", bfloat16=False
    )
    analysis = Analysis(0.05, 0.95, None, "jenks", palette.value)
    name = f"scikit-image's {photo}"
    _explain([(name, lambda: image)], [folder or _demo_folder(name, sampling)], sampling, analysis)


@app.command()
@_reported
def explain(
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE", help="Picture files.", show_default=False)],
    model: Model = "efficientnet-lite0",
    method: Method = "gradient",
    settings: Settings = None,
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
    chosen = settings_of(settings or [])
    sampling = Sampling(model, method, chosen, target, noise, samples, seed, batch_size, device, bfloat16)
    analysis = _analysis(alpha, confidence, correction, threshold, palette)
    for path in images:
        open_image(path)  # before the model is loaded; opened again when its turn comes, to hold one at a time
    folders = [folder] if len(images) == 1 else _folders(folder, images)
    _explain([(str(path), functools.partial(open_image, path)) for path in images], folders, sampling, analysis)


@app.command("explain-text")
@_reported
def explain_text(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="The text; - reads it from the input.", show_default=False)
    ],
    model: Annotated[str, typer.Option(help="sentiment, a .npz file, or package.module:callable.")] = "sentiment",
    method: Annotated[str, typer.Option(help=f"{method_forms('text')}.")] = "lemna",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the method, such as n_perturbations=2000, softmax=true or scale=false; may be repeated.",
        ),
    ] = None,
    target: Target = None,
    noise: Annotated[str, typer.Option(help=TEXT_NOISE_FORMS.replace("[", "\\[") + ".")] = "synonyms:0.3",
    samples: Samples = 20,
    alpha: AlphaOrOwn = None,
    confidence: Confidence = 0.95,
    correction: Annotated[Correction, typer.Option(help="Correction for testing all words.")] = Correction.none,
    threshold: ThresholdOrOwn = None,
    seed: Seed = 0,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Noisy copies a call of the method; changes speed only.")
    ] = 10,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder for a page and the samples; an interrupted run resumes.")
    ] = None,
) -> None:
    """Explain a text word by word: shown here, and in words.html and report.txt if there is a folder."""
    chosen = settings_of(settings or [])
    text = sys.stdin.read(LONGEST_TEXT + 1) if text == "-" else text
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"the text is longer than {LONGEST_TEXT:,} characters: explain a part of it")
    analysis = _analysis(alpha, confidence, correction, threshold, Colours.paper)
    sampling = Sampling(
        model, method, chosen, target, noise, samples, seed, batch_size, "cpu", bfloat16=False, of="text"
    )
    check_before_sampling(sampling, analysis, len(words_of(text)))
    check_settings(method, chosen, "text")
    call = call_of(text, sampling)
    if folder is not None:
        check_folder(folder, call)
        if is_finished(folder):
            raise FileExistsError(
                f"{folder} holds a finished result: `metfa show {folder}` reads it; give another `--out`"
            )
    from metfa.text import load_model

    try:
        sample, about = explain_words(text, call, load_model(model), sampling, folder)
    except KeyboardInterrupt:
        kept = ": the samples so far are kept; repeat the command to resume" if folder is not None else ""
        raise KeyboardInterrupt(kept) from None
    analysis = analysis.filled("text", signed=sample.signed)
    _print_words(sample, about, analysis)
    if folder is None:
        typer.echo(report(sample, about, analysis))
    else:
        _print_views(*write_views(sample, about, analysis, folder))


@app.command("explain-segmentation")
@_reported
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
        typer.Option(help="Picture of the object, 0 outside; by default the pixels that the network gives the class."),
    ] = None,
    size: Annotated[
        str | None, typer.Option(metavar="HEIGHTxWIDTH", help="Resize the picture; by default as it is.")
    ] = None,
    min_pixels: Annotated[int, typer.Option(min=1, help="Warn of smaller objects.")] = 600,
    noise: Noise = "uniform:0.1",
    samples: Samples = 10,
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
    """Explain an object in a scene: which of its surroundings does a segmentation network need?"""
    chosen = settings_of(settings or [])
    sampling = Sampling(model, method, chosen, None, noise, samples, seed, batch_size, device, bfloat16, of="scene")
    analysis = _analysis(alpha, confidence, correction, threshold, palette)
    scene = Scene(image, target, region, size_of(size), min_pixels)
    for path in (image, region):
        if path is not None:
            open_image(path)  # before the model is loaded
    check_before_sampling(sampling, analysis)
    call = call_of_scene(scene, sampling)
    check_folder(folder, call)
    if is_finished(folder):
        raise FileExistsError(f"{folder} holds a finished result: `metfa show {folder}` reads it; give another `--out`")
    check_settings(method, chosen, "scene")
    if keep_freed_memory():
        typer.echo("malloc keeps freed memory (glibc's thresholds raised): large batches run faster", err=True)
    try:
        from metfa.models import load_segmentation

        explanation, about = explain_scene(scene, load_segmentation(model), call, sampling, analysis, folder)
        _print_views(*write_views(explanation, about, analysis, folder))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(": the samples so far are kept; repeat the command to resume") from None


@app.command()
@_reported
def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder written by metfa.", show_default=False)],
    alpha: AlphaOrOwn = None,
    confidence: Confidence = 0.95,
    correction: Corrected = Correction.none,
    threshold: ThresholdOrOwn = None,
    palette: Palette = Colours.paper,
    views: Annotated[
        Path | None, typer.Option("--out", help="Folder for a figure and a report with these settings.")
    ] = None,
) -> None:
    """Read results again, with other levels, without the model."""
    analysis = _analysis(alpha, confidence, correction, threshold, palette)
    sample, about = read_folder(folder)
    of_text = is_of_text(sample)
    analysis = analysis.filled("text" if of_text else "image", signed=of_text and sample.signed)
    if is_of_text(sample):
        _print_words(sample, about, analysis)
    if views is None:
        typer.echo(report(sample, about, analysis))
        return
    _print_views(*write_views(sample, about, analysis, views))


@app.command()
@_reported
def evaluate(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="What to measure.", show_default=False)],
    store: Annotated[str, typer.Option(help="Folder or URL (s3://bucket/folder, ...) of the results; a run resumes.")],
    executor: Annotated[str, typer.Option(help="local, or ray: actors on this machine or a cluster.")] = "local",
    workers: Annotated[int, typer.Option(min=1, help="Actors of Ray.")] = 1,
    tables: Annotated[Path | None, typer.Option("--out", help="New folder for the tables.")] = None,
    only_estimate: Annotated[bool, typer.Option("--estimate", help="Say what it will cost, and stop.")] = False,
    allow_import: Annotated[bool, typer.Option("--allow-import", help="Run code that the study names.")] = False,
    allow_download: Annotated[bool, typer.Option("--allow-download", help="Download weights that it names.")] = False,
) -> None:
    """Measure explainers over a data set: stability, faithfulness, robust faithfulness, with standard errors."""
    from metfa.evaluation import prepare, read_study
    from metfa.evaluation.run import check_executor
    from metfa.evaluation.written import write_tables

    check_executor(executor, workers)
    if store.startswith("memory:"):
        raise ValueError(f"`--store` {store!r} is this process's memory, which keeps nothing: give a folder or a URL")
    if tables is not None:
        with needs_extra("`--out`", "study"):
            import pandas as pd  # noqa: F401 - which the tables need in the end, hours later perhaps
    described = read_study(study, allow_import=allow_import, allow_download=allow_download)
    keep_freed_memory()
    try:
        prepared = prepare(described, store=store)
        if prepared.todo and tables is not None and tables.exists():
            raise FileExistsError(f"{tables} exists already: give another `--out`")
        typer.echo(
            f"{len(prepared.done):,} of {len({unit.address for unit in prepared.units}):,} units are in the store",
            err=True,
        )
        if prepared.todo:
            typer.echo(str(prepared.estimate()), err=True)
        if only_estimate:
            return
        result = prepared.run(executor, workers, progress=True)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(": the units so far are kept; repeat the command to resume") from None
    for table in result.tables():
        typer.echo(f"\n{table}")
    if tables is not None:
        write_tables(result, tables)
        typer.echo(f"tables: {printable(str(tables))}")
    if result.failures:
        raise typer.Exit(1)


def _analysis(
    alpha: float | None, confidence: float, correction: Correction, threshold: str | None, palette: Colours
) -> Analysis:
    corrected = None if correction is Correction.none else correction.value
    return Analysis(alpha, confidence, corrected, threshold, palette.value)


def _explain(
    pictures: list[tuple[str, Callable[[], Any]]], folders: list[Path], sampling: Sampling, analysis: Analysis
) -> None:
    check_before_sampling(sampling, analysis)
    for (name, _), folder in zip(pictures, folders, strict=True):
        check_folder(folder, call_of(name, sampling))
    todo = [(*picture, folder) for picture, folder in zip(pictures, folders, strict=True) if not is_finished(folder)]
    if not todo:
        raise FileExistsError(
            f"{folders[0]} holds a finished result: `metfa show {folders[0]}` reads it; give another `--out`"
        )
    check_settings(sampling.method, sampling.settings)
    if keep_freed_memory():
        typer.echo("malloc keeps freed memory (glibc's thresholds raised): large batches run faster", err=True)
    try:
        from metfa.models import load

        device = device_of(sampling.device)
        loaded = load(sampling.model)
        for name, image, folder in todo:
            call = call_of(name, sampling)
            sample, about = explain_picture(image(), call, loaded, device, sampling, analysis, folder)
            _print_views(*write_views(sample, about, analysis, folder))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(": the samples so far are kept; repeat the command to resume") from None


def _print_words(sample: Any, about: dict[str, Any], analysis: Analysis) -> None:
    from metfa.text import render_terminal

    typer.echo(f"{render_terminal(sample, title=title_of(about), **analysis.settings)}\n")


def _print_views(text: str, figures: list[Path]) -> None:
    typer.echo(f"{text}\n")
    for path in figures:
        typer.echo(f"{'page' if path.suffix == '.html' else 'figure'}: {printable(str(path))}")


def _demo_folder(name: str, sampling: Sampling) -> Path:
    """First of metfa-demo, metfa-demo-2, ... that is free or holds an unfinished run of the same call."""
    for folder in (Path(f"metfa-demo-{k}" if k > 1 else "metfa-demo") for k in range(1, 10_000)):
        try:
            check_folder(folder, call_of(name, sampling))
        except (FileExistsError, NotADirectoryError, ValueError):
            continue
        if not is_finished(folder):
            return folder
    raise FileExistsError("metfa-demo, metfa-demo-2, ... are all taken: give `--out`")


def _folders(folder: Path, images: list[Path]) -> list[Path]:
    """One folder a picture, named by its file; equal names (also for file systems that ignore case) are numbered."""
    taken: set[str] = set()
    folders = []
    for path in images:
        stem = path.stem.strip(".") or "picture"
        names = (f"{stem}-{k}" if k > 1 else stem for k in range(1, len(images) + 2))
        name = next(name for name in names if name.casefold() not in taken)
        taken.add(name.casefold())
        folders.append(folder / name)
    return folders
