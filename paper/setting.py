"""Common parts of the scripts: the paper's noises and explainers, their options, and the place of results."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import torch

import metfa
from metfa import explainers
from metfa.evaluation import Evaluation

GREY = 127 / 255  # zero for the networks, because the paper's code hides pixels of normalised images

NOISES = {
    "normal": metfa.noise.Gaussian(0.1, bounds=(0, 1)),
    "uniform": metfa.noise.Uniform(0.1, bounds=(0, 1)),
    "brightness": metfa.noise.Brightness(0.9, 1.1, bounds=(0, 1)),
}


def fast(explainer: Any, model: Any, **settings) -> Any:
    """An explainer that asks the model in its faster layout."""
    return explainer(metfa.Called(model, memory_format=torch.channels_last), **settings)


def methods(*, quick: bool) -> dict:
    """The paper's five explainers for images, with the budgets of its code; --quick takes a tenth of them."""
    copies = 100 if quick else 1000
    return {
        "Gradient": partial(fast, explainers.Gradient),
        "LIME": partial(fast, explainers.LIME, n_perturbations=copies, hide=GREY),
        "RISE": partial(fast, explainers.RISE, n_masks=copies, keep=0.1, baseline=GREY),
        "I-GOS": partial(fast, explainers.IGOS, n_iterations=3 if quick else 15),
        "Score-CAM": partial(fast, explainers.ScoreCAM, variant="metfa", baseline=GREY),
    }


def parser(about: str, *, images: int) -> argparse.ArgumentParser:
    """Options that all scripts have."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--data", type=Path, required=True, help="folder of photographs, or a CSV file with their paths")
    made.add_argument("--model", default="efficientnet-lite0")
    made.add_argument("--images", type=int, default=images, help="how many of them")
    made.add_argument("--quick", action="store_true", help="fewer pictures, draws and copies: minutes, not days")
    made.add_argument("--store", default="paper-store", help="folder or URL of the units; a run resumes")
    made.add_argument("--out", type=Path, help="new folder for the tables")
    made.add_argument("--explainers", nargs="*", help="only these")
    return made


def chosen(options: argparse.Namespace, default: tuple[str, ...]) -> dict:
    """The chosen explainers, by name."""
    all_of_them = methods(quick=options.quick)
    return {name: all_of_them[name] for name in options.explainers or default}


def run(options: argparse.Namespace, **study) -> Evaluation:
    """Evaluate a study with the model and the pictures of the options."""
    metfa.allocator.keep_freed_memory()
    inputs = {"inputs": options.data, "limit": options.images, "shuffle": 0}  # not the first files by name
    return evaluated(options, metfa.Study(model=options.model, **inputs, **study))


def evaluated(options: argparse.Namespace, described: metfa.Study) -> Evaluation:
    """Show the cost of a study, evaluate it into the store of the options, and write its tables."""
    prepared = metfa.evaluation.prepare(described, store=options.store)
    print(f"{len(prepared.done)} of {len(prepared.units)} units done")
    if prepared.todo:
        print(prepared.estimate(), flush=True)
    result = prepared.run(progress=True)
    if options.out is not None:
        metfa.evaluation.write_tables(result, options.out)
    return result
