"""Common parts of the scripts: the paper's noises and explainers, their options, and studies that go on."""

import argparse
import hashlib
import inspect
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

import metfa
from metfa import explainers, stats
from metfa.evaluation import Evaluation
from metfa.evaluation.inputs import study_inputs
from metfa.evaluation.units import Unit, units_of
from metfa.evaluation.worker import Worker, load_model
from paper.kept import RESULTS, Figures, Kept

GREY = 127 / 255  # zero for the networks, because the paper's code hides pixels of normalised images

NOISES = {
    "normal": metfa.noise.Gaussian(0.1, bounds=(0, 1)),
    "uniform": metfa.noise.Uniform(0.1, bounds=(0, 1)),
    "brightness": metfa.noise.Brightness(0.9, 1.1, bounds=(0, 1)),
}
BESIDE_MSTD = ("level", "constant", "rescaled", "over_level", "correlation")
KEY = ("metric", "outer", "aggregate", "sampling", "n_samples", "confidence_level")  # of a row of a study
NUMBERS = {"n_samples": int, "confidence_level": float}
FIGURES = {  # of a row, by its metric; all others have their score
    "mstd": ("score", *BESIDE_MSTD),
    **dict.fromkeys(("insertion", "deletion", "overall"), ("score", "raw")),
    **dict.fromkeys(("RI", "RD", "RO"), ("score", "raw", "mean_of_ratios", "median_of_ratios")),
}


# -- what is measured


def fast(explainer: Any, model: Any, precision: Literal["exact", "bfloat16"] = "exact", **settings) -> Any:
    """An explainer that asks a copy of the model with folded batch normalisations: the same function to rounding.

    In bfloat16, explainers that only ask for scores are twice as fast where the processor has it. On one photograph the
    map correlates at .998 with that in float32 (RISE, 300 masks).
    """
    return explainer(metfa.Called(model, fast=precision), **settings)


def methods(*, quick: bool) -> dict:
    """The paper's five explainers for images, with the budgets of its code; --quick takes a tenth of them.

    "a tenth" has a tenth of the budget: its map of 10 samples costs what one map of the explainer itself costs.
    """
    copies = 100 if quick else 1000
    lime, rise = (partial(fast, made, precision="bfloat16") for made in (explainers.LIME, explainers.RISE))
    return {
        "Gradient": partial(fast, explainers.Gradient),
        "LIME": partial(lime, n_perturbations=copies, hide=GREY),
        "LIME, a tenth": partial(lime, n_perturbations=copies // 10, hide=GREY),
        "RISE": partial(rise, n_masks=copies, keep=0.1, baseline=GREY),
        "RISE, a tenth": partial(rise, n_masks=copies // 10, keep=0.1, baseline=GREY),
        "I-GOS": partial(fast, explainers.IGOS, n_iterations=3 if quick else 15),
        "Score-CAM": partial(fast, explainers.ScoreCAM, variant="metfa", baseline=GREY),
    }


def natural_break(values: np.ndarray) -> float:
    """The paper's threshold: the natural break of all scores, whether or not a feature stands out of them."""
    return float(stats.jenks(values)) if np.ptp(values) > 0 else float(values.max())


def parser(about: str, *, images: int) -> argparse.ArgumentParser:
    """Options that all scripts on photographs have."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--data", type=Path, required=True, help="folder of photographs, or a CSV file with their paths")
    made.add_argument("--model", default="efficientnet-lite0")
    made.add_argument("--images", type=int, default=images, help="how many of them, in a random order")
    made.add_argument("--explainers", nargs="*", help="only these")
    made.add_argument("--quick", action="store_true", help="fewer inputs, draws and copies: minutes, not days")
    with_results(made)
    return made


def with_results(made: argparse.ArgumentParser) -> None:
    """The options about what is kept."""
    made.add_argument("--results", type=Path, default=RESULTS, help="folder of the tables; a run goes on from them")
    made.add_argument("--finished", action="store_true", help="measure nothing: show what is there")
    made.add_argument("--hours", type=float, default=float("inf"), help="begin no unit after these")


def chosen(options: argparse.Namespace, default: tuple[str, ...]) -> dict:
    """The chosen explainers, by name."""
    all_of_them = methods(quick=options.quick)
    return {name: all_of_them[name] for name in options.explainers or default}


def run(options: argparse.Namespace, name: str, **study) -> Evaluation:
    """Evaluate a study with the model and the pictures of the options."""
    inputs = {"inputs": options.data, "limit": options.images, "shuffle": 0}  # not the first files by name
    among = digest(path.read_bytes() for path in study_inputs(options.data, None, None, shuffle=0).paths)
    return evaluated(options, name, metfa.Study(model=options.model, **inputs, **study), among=among)


# -- studies that go on


def evaluated(
    options: argparse.Namespace,
    name: str,
    study: metfa.Study,
    *,
    among: str,
    metrics: Any = None,
    condensed: Callable[[list[dict]], list[dict]] = list,
    named: Callable[[Unit], str] = lambda unit: f"{Path(unit.input).stem} {unit.digest[:8]}",
) -> Evaluation:
    """Measure the units that are not kept yet, one explainer after the other for each input.

    `among` is the digest of all inputs that could have been chosen, in their order. `metrics` describes the metrics in
    the tables' settings, where their own settings cannot; `condensed` makes fewer rows of a unit's; `named` gives a
    unit its name.
    """
    metfa.allocator.keep_freed_memory()
    model = load_model(study)
    worker, units = Worker(study, model), units_of(study, model)
    kept = {
        explainer: Kept.opened(
            options.results / file_of(name, explainer, options),
            {"inputs": among, **setting_of(study, explainer, worker.module, metrics)},
        )
        for explainer in study.methods
    }
    started, results, failures = time.monotonic(), {}, {}
    for unit in units:
        table = kept[unit.explainer]
        if named(unit) not in table.lines:
            if options.finished or time.monotonic() - started > 3600 * options.hours:
                continue
            clock = time.process_time()
            try:
                rows = condensed(worker.measure(unit)["rows"])
            except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
                failures[unit.address] = {"error": f"{type(error).__name__}: {error}"}
                print(f"failed: {named(unit)}, {unit.explainer}: {error}", flush=True)
                continue
            table.add(named(unit), line_of(rows), time.process_time() - clock)
            print(f"{table.path.name}: {len(table.lines)} units", flush=True)
        results[unit.address] = {"rows": rows_of(table.lines[named(unit)])}
    print(f"{len(results)} of {len(units)} units done")
    return Evaluation(study, tuple(units), results, failures)


def file_of(name: str, explainer: str, options: argparse.Namespace) -> str:
    """Name of the table of an explainer."""
    model = "" if options.model == "efficientnet-lite0" else f"-{Path(options.model).stem}"
    words = f"{name}-{explainer}{model}{'-quick' * options.quick}"
    return re.sub(r"[^a-z0-9]+", "-", words.lower()) + ".csv"


def setting_of(study: metfa.Study, explainer: str, module: Any, metrics: Any = None) -> dict[str, Any]:
    """What decides the figures of an explainer in a study."""
    return {
        "model": weights(module),
        "explainer": described(study.methods[explainer]),
        "sampling": {name: described(noise) for name, noise in study.noises.items()},
        "outer": {name: described(noise) for name, noise in study.outer_noises.items()},
        "metrics": metrics or {measure.name: described(dict(measure.settings)) for measure in study.measures},
        "maps": list(study.maps),
        "n_samples": list(study.sizes),
        "confidence_level": list(study.levels),
        "n_outer": study.n_outer,
        "seed": study.seed,
    }


def weights(model: Any) -> str:
    """Digest of a network's weights."""
    network = model if isinstance(model, torch.nn.Module) else model.module
    digest = hashlib.blake2b(digest_size=8)
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return f"{type(network).__name__} {digest.hexdigest()}"


def described(thing: Any) -> str:
    """A function or a noise with all its settings, also those left at their defaults, in words that stay the same."""
    if isinstance(thing, partial):
        called = [thing.func, *(one for one in thing.args if callable(one))]
        named = zip(inspect.signature(thing.func).parameters, thing.args, strict=False)
        placed = {name: value for name, value in named if not callable(value)}
        given = dict(chain.from_iterable(map(_defaults, called))) | placed | thing.keywords
        return f"{described(called[-1])}({described(given)})"
    if isinstance(thing, Mapping):
        return ", ".join(f"{name}={described(value)}" for name, value in thing.items())
    return getattr(thing, "__qualname__", None) or repr(thing)


def _defaults(called: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    for name, parameter in inspect.signature(called).parameters.items():
        if parameter.default is not parameter.empty:
            yield name, parameter.default


def digest(parts: Iterable[bytes]) -> str:
    """Of inputs, in their order."""
    found = hashlib.blake2b(digest_size=8)
    for part in parts:
        found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()


def line_of(rows: list[dict[str, Any]]) -> Figures:
    """A unit's rows as one line; a name holds the row and the figure."""
    line: Figures = {}
    for row in rows:
        key, missing = "|".join(str(row.get(name, "")) for name in KEY), row.get("reason", "no figure")
        line |= {f"{key}|{name}": row.get(name, missing) for name in FIGURES.get(row["metric"], ("score",))}
    return line


def rows_of(line: Figures) -> list[dict[str, Any]]:
    """What `line_of` made a line of."""
    rows: dict[str, dict[str, Any]] = {}
    for name, figure in line.items():
        key, _, last = name.rpartition("|")
        if not key:
            continue  # seconds
        words = {what: NUMBERS.get(what, str)(text) for what, text in zip(KEY, key.split("|"), strict=True) if text}
        row = rows.setdefault(key, words)
        row[last if isinstance(figure, float) else "reason"] = figure
    return list(rows.values())
