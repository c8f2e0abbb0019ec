"""Threshold rules on photographs, where no truth is known: how much they mark, and whether other noise marks the same.

    python -m benchmarks.truth.photographs --data PHOTOGRAPHS --out benchmarks/truth/results/photographs

EfficientNet-Lite0, photographs in an order that a seed fixes, N samples twice with other noise. Overlap is the Jaccard
index of the important pixels of the two runs: those of both over those of either. Finished units are kept.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import metfa
from benchmarks.truth.aggregate import write
from benchmarks.truth.rules import RULES
from metfa.explainers import RISE, Gradient

VERSION, SEEDS = 1, (0, 1)
STDS = (0.1, 0.2)
GREY = 127 / 255  # of hidden pixels, as in the paper's runs
EXPLAINERS = {  # how it is made, standard deviations of the noise, samples, most photographs
    "Gradient": (Gradient, STDS, 50, None),
    "RISE": (lambda model: RISE(model, n_masks=100, baseline=GREY), (0.1,), 20, 1),
}
UNTESTED = "mean > its break"


def chosen(folder: Path, n: int) -> list[Path]:
    """The first n photographs of the folder in an order that a seed fixes."""
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    return [paths[index] for index in np.random.default_rng(0).permutation(len(paths))[:n]]


def measured(pixels: torch.Tensor, explainer: Any, std: float, n: int) -> list[dict[str, Any]]:
    """A row for each rule."""
    noise = metfa.noise.Gaussian(std, bounds=(0, 1))
    samples = [metfa.explain(explainer, pixels, noise=noise, n_samples=n, rng=seed, batch_size=10) for seed in SEEDS]
    rows = []
    for rule, threshold in [*RULES.items(), (UNTESTED, None)]:
        marked, shares, missing = [], {-1: [], 1: []}, []
        for sample in samples:
            if threshold is None:
                mean = sample.mean()[0]
                marks = np.where(mean > metfa.stats.jenks(mean), 1, -1)
                missing.append(False)
            else:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", metfa.DegenerateAttributionsWarning)
                    decision = sample.decide(sample.terms(threshold))
                marks = decision.marks[0]
                missing.append(bool(np.isnan(decision.thresholds).any()))
            marked.append(marks == 1)
            for mark, found in shares.items():
                found.append(float((marks == mark).mean()))
        either = (marked[0] | marked[1]).sum()
        rows.append(
            {
                "rule": rule,
                "important": float(np.mean(shares[1])),
                "unimportant": float(np.mean(shares[-1])),
                "overlap": float((marked[0] & marked[1]).sum() / either) if either else float("nan"),
                "no_threshold": float(np.mean(missing)),
                "flips": float(np.mean([sample.flip_rate[0] for sample in samples])),
            }
        )
    return rows


def unit(path: Path, model: Any, photograph: Path, name: str, std: float) -> list[dict[str, Any]]:
    """The unit's rows, from its file if it is there."""
    make, _, n, _ = EXPLAINERS[name]
    setting = {"version": VERSION, "photograph": photograph.name, "explainer": name, "std": std, "n": n}
    if path.exists():
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            known, rows = found["setting"], found["rows"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is no unit of this benchmark ({error}): left as it is; move it away") from error
        if known != setting:
            raise ValueError(f"{path} was measured with another setting, {known}: left as it is; move it away")
        return rows
    pixels = model.preprocess(Image.open(photograph).convert("RGB"))[None]
    rows = measured(pixels, make(model.module), std, n)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps({"setting": setting, "rows": rows}), encoding="utf-8")
    part.replace(path)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of photographs")
    parser.add_argument("--images", type=int, default=12)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    metfa.allocator.keep_freed_memory()
    torch.set_num_threads(1)
    model = metfa.models.load("efficientnet-lite0")
    found: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    photographs = chosen(options.data, options.images)
    for photograph in photographs:
        for name, (_, stds, _, most) in EXPLAINERS.items():
            for std in stds:
                if photograph not in photographs[:most]:
                    continue
                path = options.out / "cache" / f"{photograph.stem}_{name}_{std:g}.json"
                for row in unit(path, model, photograph, name, std):
                    figures = {key: value for key, value in row.items() if key != "rule"}
                    found.setdefault((name, std, row["rule"]), []).append(figures)
                print(photograph.stem, name, std, flush=True)
                write(options.out / "photographs.csv", list(table(found)))


def table(found: dict[tuple[Any, ...], list[dict[str, float]]]) -> Any:
    """Means over photographs and their standard errors; overlaps of those where anything is marked."""
    for (name, std, rule), rows in found.items():
        row: dict[str, Any] = {"explainer": name, "std": std, "rule": rule, "photographs": len(rows)}
        for figure in rows[0]:
            numbers = np.array([one[figure] for one in rows], dtype=float)
            numbers = numbers[np.isfinite(numbers)]
            row[figure] = float(numbers.mean()) if numbers.size else float("nan")
            row[f"{figure}_se"] = float(numbers.std(ddof=1) / numbers.size**0.5) if numbers.size > 1 else float("nan")
        yield row


if __name__ == "__main__":
    main()
