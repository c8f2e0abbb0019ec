"""Mosaics of four photographs of different classes: do maps and marks for one class lie in its photograph?

    python -m benchmarks.truth.mosaics --data PHOTOGRAPHS

PHOTOGRAPHS has an index.csv with columns file and class_index. EfficientNet-Lite0; mosaics of 2 × 2 photographs whose
class it gives at least a probability of .9, in an order that a seed fixes. The class explained is the one of the four
that it finds most probable in the mosaic. Rao, Böhle and Schiele, "Towards better understanding attribution methods",
CVPR 2022 (GridPG); the code is ours. A network sees the other cells too, so this is a truth of the task, T. Finished
mosaics are kept, a line each.
"""

import argparse
import csv
import hashlib
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch
from paper.kept import Kept
from PIL import Image
from torch.nn.functional import avg_pool2d

import metfa
from benchmarks.truth import scoring
from benchmarks.truth.rules import RULES
from metfa.explainers import CAM, Gradient

RESULTS = Path(__file__).parent / "results" / "mosaics"
LEAST, CELLS, N, STD = 0.9, 4, 20, 0.1
EXPLAINERS = {"Gradient": Gradient, "CAM": CAM}  # one line an explainer: model -> maps in [0, 1]
SHOWN = ("task_fdp", "task_power", "marks", "top_vanilla_fdp", "top_mean_fdp")


def sure(loaded: Any, folder: Path) -> list[tuple[str, int, torch.Tensor]]:
    """Name, class and pixels of the photographs that are recognised, in the order."""
    with (folder / "index.csv").open(encoding="utf-8", newline="") as file:
        rows = sorted((row["file"], int(row["class_index"])) for row in csv.DictReader(file))
    found = []
    for place in np.random.default_rng(0).permutation(len(rows)):
        name, kind = rows[place]
        pixels = loaded.preprocess(Image.open(folder / name).convert("RGB"))
        if torch.softmax(loaded.module(pixels[None]), dim=1)[0, kind] >= LEAST:
            found.append((name, kind, pixels))
    return found


def mosaic(pixels: list[torch.Tensor]) -> torch.Tensor:
    """Four pictures at half their size, (1, 3, height, width)."""
    one, two, three, four = avg_pool2d(torch.stack(pixels), 2)
    return torch.cat([torch.cat([one, two], dim=2), torch.cat([three, four], dim=2)], dim=1)[None]


def cell(place: int, height: int, width: int) -> np.ndarray:
    """The pixels of a cell, bool (height, width)."""
    truth = np.zeros((height, width), bool)
    row, column = divmod(place, 2)
    truth[row * height // 2 :, column * width // 2 :][: height // 2, : width // 2] = True
    return truth


def figures(explainer: Any, image: torch.Tensor, target: int, truth: np.ndarray) -> dict[str, float]:
    """Of one mosaic: the share of each map in the cell, and marks by each rule."""
    noise = metfa.noise.Gaussian(STD, bounds=(0, 1))
    sample = metfa.explain(explainer, image, target, noise=noise, n_samples=N, rng=0, batch_size=10)
    flat = truth.reshape(1, -1)
    found = {}
    for name, maps in (("vanilla", sample.vanilla), ("mean", sample.mean()), ("smoothed median", sample.smoothed())):
        found[f"{name}, share in the cell"] = float(maps[0][truth].sum() / maps[0].sum())
        found[f"{name}, area under the curve"] = scoring.area(maps[0].ravel(), flat[0])
    for row in scoring.marks(sample, flat, flat, scaled=True):
        if row["rule"] in RULES:
            words = f"{row['rule']}, {row['correction']}"
            found |= {f"{words}: {name}": row[name] for name in SHOWN}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--mosaics", type=int, default=20, help="at most so many")
    options = parser.parse_args()
    torch.set_num_threads(1)
    metfa.allocator.keep_freed_memory()
    loaded = metfa.models.load("efficientnet-lite0")
    with torch.no_grad():
        photographs = sure(loaded, options.data)
    setting = {"model": "efficientnet-lite0", "std": STD, "n_samples": N, "least probability": LEAST, "seed": 0}
    tables = {name: Kept.opened(RESULTS / f"{name.lower()}.csv", {"explainer": name, **setting}) for name in EXPLAINERS}
    explainers = {name: make(loaded.module) for name, make in EXPLAINERS.items()}
    for begin in range(0, min(options.mosaics * CELLS, len(photographs) - CELLS + 1), CELLS):
        four = photographs[begin : begin + CELLS]
        image = mosaic([pixels for _, _, pixels in four])
        unit = hashlib.blake2b("/".join(name for name, _, _ in four).encode(), digest_size=8).hexdigest()
        for name, kept in tables.items():
            if unit in kept.lines:
                continue
            clock = process_time()
            with torch.no_grad():
                scores = loaded.module(image)[0, [kind for _, kind, _ in four]]
            place = int(scores.argmax())
            truth = cell(place, *image.shape[2:])
            kept.add(unit, figures(explainers[name], image, four[place][1], truth), process_time() - clock)
            print(f"{name}: {len(kept.lines)} mosaics", flush=True)


if __name__ == "__main__":
    main()
