"""The commands and their options."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from metfa._base.pictures import open_image
from metfa.allocator import keep_freed_memory
from metfa.by_name.methods import check_settings, method_forms
from metfa.by_name.noises import TEXT_NOISE_FORMS
from metfa.cli.answers import explain_answer_of_sources
from metfa.cli.attack import attack_picture
from metfa.cli.certificates import check_certificate
from metfa.cli.comparing import compare
from metfa.cli.demo import demo_folder, demo_photo
from metfa.cli.folders import check_folder
from metfa.cli.options import (
    Alpha,
    Batch,
    Colours,
    Confidence,
    Corrected,
    Correction,
    Device,
    Fast,
    FlipsFrom,
    Method,
    Model,
    Noise,
    Out,
    Overwrite,
    Palette,
    RandomWeights,
    RegionsOfPicture,
    RegionsOfText,
    Samples,
    Seed,
    Settings,
    Target,
    Threshold,
)
from metfa.cli.pages import write_page
from metfa.cli.parsing import folders_of, our_option, settings_of
from metfa.cli.regions import PICTURES, TEXTS, check_regions, parts_of
from metfa.cli.regression import regression
from metfa.cli.report import report
from metfa.cli.reported import complain, naming, reported, resumable
from metfa.cli.run import (
    Analysis,
    Sampling,
    call_of,
    check_before_sampling,
    device_of,
    explain_picture,
    explain_words,
    loaded_model,
)
from metfa.cli.scenes import explain_segmentation
from metfa.cli.show import analysis_of, show
from metfa.cli.studies import evaluate
from metfa.cli.version import options_of_all
from metfa.cli.views import print_views, print_words, views_of_call
from metfa.results.cautions import FLIPS_FROM
from metfa.text.words import words_of

__all__ = ["app", "run"]

ABOUT = "Error bars for feature attributions: what in a picture or a text is significantly important to a network?"
LONGEST_TEXT = 1_000_000  # characters

app: typer.Typer = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


app.callback(help=ABOUT)(options_of_all)


def run() -> NoReturn:
    """Run the command line; typer's own errors get the form of ours."""
    if len(sys.argv) == 1:
        app()  # shows the help
    try:
        code = app(standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's exceptions have it, and no public base class
            raise
        message: str = error.format_message()  # pyright: ignore[reportAttributeAccessIssue]
        complain(message + our_option(getattr(error, "option_name", None)))
        code = 2
    sys.exit(code)


@app.command()
@reported
def demo(
    photo: Annotated[str, typer.Option(help="coffee, or cat, where the network is unsure.")] = "coffee",
    folder: Annotated[Path | None, typer.Option("--out", help="New folder for the results.")] = None,
    samples: Samples = 50,
    seed: Seed = 0,
    regions: RegionsOfPicture = "superpixels:50",
    palette: Palette = Colours.colourblind,
) -> None:
    """Explain a photograph by the gradient of EfficientNet-Lite0, 50 samples under uniform noise of 0.1."""
    image = demo_photo(photo)
    sampling = Sampling("efficientnet-lite0", "gradient", {}, None, "uniform:0.1", samples, seed, 10, "auto")
    check_regions(regions, PICTURES)
    enough = samples >= 30  # to keep ten for the threshold, so that the page can promise something of a drawn region
    split, correction = (10, Correction.holm) if enough else (None, None)
    given = None if correction is None else correction.value
    analysis = Analysis(None, 0.95, given, None, palette.value, regions=regions, split=split)
    name = f"scikit-image's {photo}"
    folder = folder or demo_folder(name, sampling)
    _explain([(name, lambda: image)], [folder], sampling, analysis)


@app.command()
@reported
def explain(
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE", help="Picture files.", show_default=False)],
    model: Model = "efficientnet-lite0",
    method: Method = "gradient",
    settings: Settings = None,
    target: Target = None,
    noise: Noise = "uniform:0.1",
    samples: Annotated[
        int | None, typer.Option("--samples", "-n", help="Noisy copies explained, the paper's N; by default 50.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="undecided=SHARE",
            help="Instead of --samples: until at most this share of the pixels is undecided (or width=, change=).",
        ),
    ] = None,
    max_samples: Annotated[int | None, typer.Option(min=1, help="Most samples with --until; by default 500.")] = None,
    certify: Annotated[
        bool, typer.Option("--certify", help="How far may the picture change? Needs --noise gaussian:STD.")
    ] = False,
    no_crop: Annotated[
        bool,
        typer.Option("--no-crop", help="Take the whole central square; pictures of metfa attack keep their pixels."),
    ] = False,
    alpha: Alpha = None,
    confidence: Confidence = 0.95,
    correction: Annotated[
        Correction | None,
        typer.Option(help="Correction for testing many pixels. By default closed-e-bh with --until, else none."),
    ] = None,
    threshold: Threshold = None,
    flips_from: FlipsFrom = FLIPS_FROM,
    regions: RegionsOfPicture = None,
    seed: Seed = 0,
    batch_size: Batch = 10,
    device: Device = "auto",
    fast: Fast = None,
    random_weights: RandomWeights = False,
    palette: Palette = Colours.colourblind,
    folder: Out = Path("metfa-out"),
    overwrite: Overwrite = False,
) -> None:
    """Explain pictures: figures, report.html, report.txt and the samples, in a folder."""
    chosen = settings_of(settings or [])
    if until is not None and samples is not None:
        raise ValueError(f"`--samples` {samples} and `--until` contradict each other: write --max-samples {samples}")
    if until is None and max_samples is not None:
        raise ValueError(f"`--max-samples` {max_samples} is only for --until: write --samples {max_samples}")
    given, usual = (samples, 50) if until is None else (max_samples, 500)
    most = usual if given is None else given
    sampling = Sampling(
        model, method, chosen, target, noise, most, seed, batch_size, device, fast and fast.value,
        until=until, crop=not no_crop, random_weights=random_weights or None,
    )  # fmt: skip
    check_regions(regions, PICTURES)
    analysis = analysis_of(alpha, confidence, correction, threshold, palette, flips_from, regions)
    analysis = replace(analysis, certify=certify)
    if certify:
        check_certificate(sampling, analysis)
    for path in images:
        open_image(path)  # before the model is loaded; each is opened again later, so that only one is in memory
    folders = [folder] if len(images) == 1 else folders_of(folder, images)
    _explain(
        [(str(path), functools.partial(open_image, path)) for path in images],
        folders,
        sampling,
        analysis,
        overwrite=overwrite,
    )


@app.command("explain-text")
@reported
def explain_text(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="The text; - reads it from standard input.", show_default=False)
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
    noise: Annotated[str, typer.Option(help=TEXT_NOISE_FORMS.replace("[", "\\[") + ".")] = "sense-synonyms:0.5",
    samples: Samples = 20,
    alpha: Alpha = None,
    confidence: Confidence = 0.95,
    correction: Corrected = None,
    threshold: Threshold = None,
    flips_from: FlipsFrom = FLIPS_FROM,
    regions: RegionsOfText = None,
    seed: Seed = 0,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Noisy copies in one call of the method; changes speed only.")
    ] = 10,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder for a page and the samples; an interrupted run resumes.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Explain a text word by word, in the terminal, and with --out also in words.html, report.html and report.txt."""
    chosen = settings_of(settings or [])
    text = sys.stdin.read(LONGEST_TEXT + 1) if text == "-" else text
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"the text is longer than {LONGEST_TEXT:,} characters: explain a part of it")
    check_regions(regions, TEXTS)
    analysis = analysis_of(alpha, confidence, correction, threshold, Colours.colourblind, flips_from, regions)
    sampling = Sampling(model, method, chosen, target, noise, samples, seed, batch_size, "cpu", of="text")
    check_before_sampling(sampling, analysis, len(words_of(text)))
    check_settings(method, chosen, "text")
    call = call_of(text, sampling)
    if folder is not None:
        check_folder(folder, call, overwrite=overwrite)
    from metfa.text import load_model

    with resumable("samples") if folder is not None else nullcontext():
        with naming("--model", "name_or_path"):
            loaded = load_model(model)
        sample, about = explain_words(text, call, loaded, sampling, folder, overwrite=overwrite)
    print_words(sample, about, analysis)
    if folder is None:
        typer.echo(report(sample, about, analysis, parts_of(sample, analysis, about)))
    else:
        print_views(*views_of_call(sample, about, analysis, folder, overwrite=overwrite))


app.command("show")(reported(show))
app.command("explain-answer")(reported(explain_answer_of_sources))
app.command("explain-segmentation")(reported(explain_segmentation))
app.command("attack")(reported(attack_picture))
app.command("compare")(reported(compare))
app.command("evaluate")(reported(evaluate))
app.command("report")(reported(write_page))
app.add_typer(regression, name="regression")


def _explain(
    pictures: list[tuple[str, Callable[[], Any]]],
    folders: list[Path],
    sampling: Sampling,
    analysis: Analysis,
    *,
    overwrite: bool = False,
) -> None:
    check_before_sampling(sampling, analysis)
    for (name, _), folder in zip(pictures, folders, strict=True):
        check_folder(folder, call_of(name, sampling), overwrite=overwrite)
    check_settings(sampling.method, sampling.settings)
    keep_freed_memory()
    with resumable("samples"):
        from metfa.models import load

        device_of(sampling.device)  # before the model is loaded
        loaded = loaded_model(load, sampling)
        for (name, image), folder in zip(pictures, folders, strict=True):
            call = call_of(name, sampling)
            sample, about = explain_picture(image(), call, loaded, sampling, analysis, folder, overwrite=overwrite)
            read = analysis.of_what_was_sampled(sampling)
            print_views(*views_of_call(sample, about, read, folder, overwrite=overwrite))
