"""GridSaliency of ten noisy copies in one call, against ten runs of one copy each, in the same layout.

On two cores the work of one copy already fills the machine, so the target is at most 1.10; on a GPU it is 0.6. First it
prints the time of one call for each number of rows in a pass; the default was chosen from this. The number of
iterations is cut, because all cost the same. The networks are torchvision's LR-ASPP (MobileNetV3) with random weights
and, with ``--weights``, an ESPNet.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from skimage import data

import metfa
from benchmarks.igos_and_mask_batched import noisy_copies, sweep
from benchmarks.measuring import compare, raise_thresholds, synchronised
from metfa.models import WholePicture
from metfa.segmentation import GridSaliency


def networks(weights: Path | None) -> dict[str, torch.nn.Module]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        found = {"LR-ASPP, random weights": metfa.models.load_segmentation(
            "torchvision:lraspp_mobilenet_v3_large", pretrained=False
        ).module}  # fmt: skip
    if weights is not None:
        from paper import espnet

        found["ESPNet"] = espnet.load(weights)
    return found


def scene(size: tuple[int, int]) -> torch.Tensor:
    return WholePicture(size)(Image.fromarray(data.astronaut()))[None]


def centre(size: tuple[int, int]) -> np.ndarray:
    """An object for every network: the quarter in the middle of the picture."""
    region = np.zeros(size, dtype=bool)
    region[size[0] // 4 : -(size[0] // 4), size[1] // 4 : -(size[1] // 4)] = True
    return region


def main(options: argparse.Namespace) -> None:
    raise_thresholds(raised=options.raised)
    on_cpu = options.device == "cpu"
    for name, network in networks(options.weights).items():
        network = network.to(options.device)
        pixels = scene(options.size).to(options.device)
        copies = noisy_copies(pixels, options.copies).to(options.device)
        settings: dict[str, Any] = {"region": centre(options.size), "n_iterations": options.iterations}
        layout = torch.channels_last if options.channels_last else None

        def make(network=network, settings=settings, layout=layout, **more):
            return GridSaliency(metfa.Called(network, memory_format=layout, **more), 1, **settings)

        height, width = options.size
        print(f"{name}, {height} x {width}, {options.iterations} iterations, {options.copies} copies:", flush=True)
        if options.sizes:
            sweep(make, copies, 1, options.sizes, options.rounds)

        def alone(make=make, copies=copies) -> None:
            for row in range(len(copies)):
                make()(copies[row : row + 1])

        compare(
            ("  one call", "one run a copy"),
            synchronised(lambda make=make, copies=copies: make()(copies)),
            synchronised(alone),
            rounds=options.rounds,
            target=1.10 if on_cpu else 0.6,
        )


def size(text: str) -> tuple[int, int]:
    height, _, width = text.partition("x")
    return int(height), int(width)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, help="of an ESPNet, see paper/espnet.py")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", type=size, default=(240, 320), metavar="HEIGHTxWIDTH")
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 2, 4, 10], help="rows in a pass to try")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--raised", action="store_true", help="raise glibc's thresholds first")
    main(parser.parse_args())
