"""`metfa attack`: can a map be drawn on this model's explanation of a picture, and does the defence stop it?"""

from __future__ import annotations

import enum
import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from metfa._base.class_names import class_with_probability
from metfa._base.pictures import open_image
from metfa._base.provenance import printable
from metfa.attacks.drawing import SHAPES, drawn
from metfa.attacks.settings import PRESETS
from metfa.attacks.settings import settings_of as attack_settings
from metfa.by_name.methods import check_method, check_settings, explainer_of
from metfa.by_name.noises import noise_of
from metfa.calls.answers import softmax
from metfa.cli.options import Confidence, Device, Model, Noise, Samples, Seed, Settings
from metfa.cli.parsing import settings_of
from metfa.cli.reported import naming, resumable
from metfa.cli.run import device_of
from metfa.cli.views import check_finished, write_files
from metfa.sampling.run import Run

__all__ = ["attack_picture"]

METHODS = "gradient, smoothgrad, cam, lrp, mask, captum:NAME (of gradients), or package.module:callable"
UNTESTED = "not tested: an attack that does not know it shows nothing about one that does (--knows defence)"


class Knows(str, enum.Enum):
    """What the attacker knows of the defence."""

    nothing = "nothing"
    defence = "defence"
    seed = "seed"


def attack_picture(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="Picture file.", show_default=False)],
    target_map: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(SHAPES)}, or a picture (bright: important). With --to-class by default the present map."
        ),
    ] = None,
    model: Model = "efficientnet-lite0",
    method: Annotated[str, typer.Option(help=f"{METHODS}.")] = "cam",
    settings: Settings = None,
    to_class: Annotated[
        int | None, typer.Option("--to-class", help="Class to be predicted (ADV²); by default the present one.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help=f"{', '.join(PRESETS)}; by default strong, or adv2-cam with --to-class.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=0, help="Steps, instead of the preset's.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(min=0, help="Largest change of a pixel value in 0..1, instead of the preset's.")
    ] = None,
    step_size: Annotated[
        float | None,
        typer.Option(min=0, help="Change of a pixel value in one step; by default a quarter of --epsilon if given."),
    ] = None,
    restarts: Annotated[int, typer.Option(min=1, help="Starts of the attack; more than one needs a limit.")] = 1,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="The attacker knows the defence: short for --knows defence, the default.")
    ] = False,
    knows: Annotated[
        Knows | None,
        typer.Option(
            help="What the attacker knows: the defence (the default), also the seed of its noise, or nothing, which is "
            "faster and does not test the defence.",
            show_default=False,
        ),
    ] = None,
    noise: Noise = "uniform:0.1",
    samples: Samples = 10,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Noisy copies in memory at once; changes speed only.")
    ] = 5,
    device: Device = "auto",
    folder: Annotated[Path, typer.Option("--out", help="New folder; an interrupted attack goes on.")] = Path(
        "metfa-attack"
    ),
) -> None:
    """Attack an explanation: change a picture a little to change its map, and see what the smoothed map shows."""
    known = _known(knows, adaptive=adaptive)
    check_method(method)
    chosen = settings_of(settings or [])
    picture = open_image(image)
    shape = None if target_map is None or target_map in SHAPES else _picture_of(target_map)
    if to_class is None and target_map is None:
        raise ValueError(f"`--target-map` is needed: {', '.join(SHAPES)}, or a picture")
    check_settings(method, chosen)
    if step_size is None and epsilon and preset is None:
        step_size = epsilon / 4
    given = {"n_steps": steps, "epsilon": epsilon, "step_size": step_size, "n_restarts": restarts}
    overrides = {name: value for name, value in given.items() if value is not None}
    preset = preset or ("strong" if to_class is None else "adv2-cam")
    attack_settings(preset, overrides)  # before the model is loaded
    with resumable("steps"):
        from metfa import attacks
        from metfa.models import load
        from metfa.sampling.smoothed import Smoothed

        place = device_of(device)
        with naming("--model", "name"):
            loaded = load(model)
        pixels = loaded.preprocess(picture)[None].to(place)
        network = loaded.module.to(place)
        explainer = explainer_of(method, network, chosen)
        defence = Smoothed(
            explainer,
            noise=noise_of(noise),
            n_samples=samples,
            confidence_level=confidence,
            batch_size=batch_size,
            rng=seed,
        )
        wanted = None if target_map is None else _map(target_map, shape, explainer, pixels)
        arguments: dict[str, Any] = {
            "settings": preset,
            "defence": defence,
            "knows": known.value,
            "rng": seed,
            "run": Run(store=folder / "attack", progress=True),
            **overrides,
        }
        if to_class is None:
            result = attacks.manipulate(network, explainer, pixels, target_map=wanted, **arguments)
        else:
            result = attacks.targeted(network, explainer, pixels, to_class, target_map=wanted, **arguments)
    text = _report(result, loaded.class_names, str(image), model, method)
    if (folder / "report.txt").exists():
        check_finished(folder, text)
    else:
        write_files(folder, {"adversarial.png": _picture(result.rounded.inputs[0]), "figure.png": _drawn(result)}, text)
    typer.echo(text)
    for kind, name in (("picture", "adversarial.png"), ("figure", "figure.png")):
        typer.echo(f"{kind}: {printable(str(folder / name))}")


def _picture_of(target_map: str) -> Any:
    try:
        return open_image(Path(target_map))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"`--target-map` must be {', '.join(SHAPES)}, or a picture: {error}") from error


def _known(knows: Knows | None, *, adaptive: bool) -> Knows:
    """What the attacker knows, from `--knows` or `--adaptive`, which must agree."""
    if adaptive and knows not in (None, Knows.defence):
        raise ValueError(
            f"`--adaptive` is short for `--knows defence`, which `--knows {knows.value}` contradicts: give one of them"
        )
    return knows or Knows.defence


def _map(target_map: str, shape: Any, explainer: Any, pixels: Any) -> np.ndarray:
    """The map to draw, in the size of the explainer's maps."""
    maps = explainer(pixels)
    height, width = (maps[0] if isinstance(maps, tuple) else maps).shape[-2:]
    if shape is None:
        return drawn(target_map, height, width)
    levels = np.asarray(shape.convert("L").resize((width, height)), np.float32) / 255
    if levels.min() == levels.max():
        raise ValueError(f"`--target-map` {target_map} is the same everywhere: there is nothing to draw")
    return levels


def _picture(image: np.ndarray) -> bytes:
    from PIL import Image

    levels = np.rint(255 * image).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(np.moveaxis(levels, 0, -1) if len(levels) == 3 else levels[0]).save(buffer, "PNG")
    return buffer.getvalue()


def _drawn(result: Any) -> bytes:
    buffer = io.BytesIO()
    result.plot().savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def _report(result: Any, class_names: Any, image: str, model: str, method: str) -> str:
    """The outcome, line by line."""

    def named(part: Any) -> str:
        probabilities = softmax(part.scores[:1].astype(np.float64))[0]
        return class_with_probability(int(part.predictions[0]), class_names, probabilities)

    found, budget = result.distances, result.budget()
    knows = {
        "nothing": "nothing about the defence",
        "defence": "the defence, not its noise",
        "seed": "the defence and the noise that it is measured under",
    }[result.knows]
    lines = [
        ("image", image),
        ("attacked", f"{result.kind} of {method} of {model}"),
        ("attacker knows", knows),
        (
            "outcome",
            f"{_outcome(result.missed())}; in 8 bits: {_outcome(result.missed(rounded=True))}",
        ),
        ("prediction", f"{named(result.clean)} before, {named(result.adversarial)} after"),
        (
            "explanation",
            f"{found['clean'][0]:.4f} from the target map before, {found['adversarial'][0]:.4f} after",
        ),
        (
            "smoothed",
            f"{found['clean defended'][0]:.4f} before, {found['adversarial defended'][0]:.4f} after",
        ),
        *([("defence", UNTESTED)] if result.knows == "nothing" else []),
        ("change", f"at most {255 * budget['linf'][0]:.1f} levels of 255, {255 * budget['mean'][0]:.2f} on average"),
        ("picture", "adversarial.png has the network's pixels, in 8 bits: explain it by metfa explain --no-crop"),
        ("time", f"{result.provenance['seconds']:.1f} s, seed {int(result.provenance['rng'], 16)}"),
    ]
    return "\n".join(f"{name + ':':<17} {printable(text)}" for name, text in lines)


def _outcome(missed: dict[str, np.ndarray]) -> str:
    """Whether the attack of the one image reached its goal, and what it missed."""
    why = [text for text, of in missed.items() if of[0]]
    return f"the attack failed ({' and '.join(why)})" if why else "the attack succeeded"
