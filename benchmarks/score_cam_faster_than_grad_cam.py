"""Score-CAM against grad-cam's ScoreCAM: same layer, same definition ("grad-cam"), same batch of 16.

grad-cam enlarges all channels at once and runs every channel; metfa enlarges one batch at a time and runs all flat
channels only once. Both are timed with glibc's default malloc thresholds and, in a second process, with raised
thresholds. grad-cam is timed as its users call it (float32, contiguous), metfa as its users get it, and with `fast=`.

``--vit vit_tiny_patch16_224`` times a vision transformer instead, and the bare forwards of as many images: no channel
of normalised tokens is flat, and behind a masked image no layer can be shared, so that they are the least that
Score-CAM costs in one precision.
"""

import argparse
import contextlib
import importlib.metadata
import io
import subprocess
import sys
from functools import partial

import numpy as np
import pytorch_grad_cam
import torch
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

from benchmarks.measuring import bare_forwards, compare, networks, peak_during, raise_thresholds, ways
from metfa import Called
from metfa.explainers import ScoreCAM

LAYERS = {"EfficientNet-Lite0": "head.act", "ResNet-18, random weights": "layer4"}


def theirs(cam: pytorch_grad_cam.ScoreCAM, pixels: torch.Tensor, target: int) -> np.ndarray:
    """The map of grad-cam, without its progress bar."""
    with contextlib.redirect_stderr(io.StringIO()):
        return cam(pixels, [ClassifierOutputTarget(target)])[0]


def differences(explainers: dict, reference: np.ndarray, pixels: torch.Tensor, target: int) -> None:
    maps = {name: explainer(pixels, target)[0][0].numpy() for name, explainer in explainers.items()}
    print(
        "largest (mean) difference of the maps in [0, 1]: to grad-cam's "
        + ", ".join(f"{name} {np.abs(map_ - reference).max():.2g} ({np.abs(map_ - reference).mean():.2g})"
                    for name, map_ in maps.items()),
        flush=True,
    )  # fmt: skip


def main(side: int, rounds: int, *, raised: bool) -> None:
    raise_thresholds(raised=raised)
    pixels, models = networks()
    pixels = torch.nn.functional.interpolate(pixels, (side, side), mode="bilinear", antialias=True)
    for name, (model, _) in models.items():
        with torch.no_grad():
            target = int(model(pixels).argmax())
        layer = LAYERS[name]
        asked = ways(model, pixels, batch_size=16)
        explainers = {way: ScoreCAM(called, layer, variant="grad-cam") for way, called in asked.items()}
        weights = explainers["out of the box"].channel_weights(pixels, target)
        print(f"{name}, {weights.shape[1]} channels of {layer}, {side} pixels a side:")
        found = next(module for path, module in model.named_modules() if path.endswith(layer))
        with pytorch_grad_cam.ScoreCAM(model, [found]) as cam:
            for way, explainer in explainers.items():
                compare(
                    (f"ScoreCAM, {way}", "grad-cam's ScoreCAM"),
                    partial(explainer, pixels, target),
                    partial(theirs, cam, pixels, target),
                    rounds=rounds, target=0.45,
                )  # fmt: skip
            reference = theirs(cam, pixels, target)
            if not raised:
                differences(explainers, reference, pixels, target)
                original = [ScoreCAM(called, layer)(pixels, target)[0][0].numpy() for called in asked.values()]
                change = np.abs(original[0] - original[-1])
                print(
                    f"original definition, out of the box to {list(asked)[-1]}: {change.max():.2g} "
                    f"({change.mean():.2g})",
                    flush=True,
                )


def vit(name: str, rounds: int) -> None:
    import timm

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = timm.create_model(name, pretrained=False).eval().requires_grad_(False)
        pixels = torch.rand(1, 3, 224, 224)
    layer, n = f"blocks.{len(model.blocks) - 1}.norm1", model.embed_dim
    print(f"{name}, random weights, {n} channels of {layer}:")

    def grid(tokens: torch.Tensor) -> torch.Tensor:
        return tokens[:, model.num_prefix_tokens :].unflatten(1, model.patch_embed.grid_size).movedim(-1, 1)

    with pytorch_grad_cam.ScoreCAM(model, [model.blocks[-1].norm1], reshape_transform=grid) as cam:
        whole, explainers = partial(theirs, cam, pixels, 1), {}
        for way, called in ways(model, pixels, batch_size=16).items():
            explainers[way] = ScoreCAM(called, layer, variant="grad-cam")
            names = (f"ScoreCAM, {way}", "grad-cam's ScoreCAM")
            compare(names, partial(explainers[way], pixels, 1), whole, rounds=rounds, target=0.60)
            bare = partial(bare_forwards, called, pixels, n)
            compare((f"bare forwards, {way}", "grad-cam's ScoreCAM"), bare, whole, rounds=rounds, target=None)
        differences(explainers, whole(), pixels, 1)


def memory(side: int, whose: str) -> None:
    """Peak memory in a separate process, because memory freed before would hide a peak."""
    pixels, models = networks()
    pixels = torch.nn.functional.interpolate(pixels, (side, side), mode="bilinear", antialias=True)
    name = "EfficientNet-Lite0"
    model, target = models[name]
    if whose == "metfa":
        explainer = ScoreCAM(Called(model, batch_size=16), LAYERS[name], variant="grad-cam")
        peak = peak_during(partial(explainer, pixels, target))
    else:
        with pytorch_grad_cam.ScoreCAM(model, [model.get_submodule(f"model.{LAYERS[name]}")]) as cam:
            peak = peak_during(partial(theirs, cam, pixels, target))
    print(f"peak memory above the start, {name}, float32: {whose} {peak:.0f} MiB", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=224, help="of the image, in pixels; small ones for a trial")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--raised", action="store_true", help="raise glibc's thresholds first")
    parser.add_argument("--memory", choices=["metfa", "grad-cam"], help="peak memory alone")
    parser.add_argument("--vit", help="a vision transformer of timm, such as vit_tiny_patch16_224")
    options = parser.parse_args()
    if options.vit:
        vit(options.vit, options.rounds)
        sys.exit()
    if options.memory:
        memory(options.side, options.memory)
        sys.exit()
    if not options.raised:
        print(f"torch {torch.__version__}, grad-cam {importlib.metadata.version('grad-cam')}")
    main(options.side, options.rounds, raised=options.raised)
    if not options.raised:
        again = [sys.executable, "-m", "benchmarks.score_cam_faster_than_grad_cam", "--side", str(options.side)]
        subprocess.run([*again, "--raised", "--rounds", str(options.rounds)], check=True)
        for whose in ("metfa", "grad-cam"):
            subprocess.run([*again, "--memory", whose], check=True)
