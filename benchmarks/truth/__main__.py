"""Run a tier and write its tables; or, without ``--out``, the quick tier anew beside the published figures.

    python -m benchmarks.truth --tier quick --out benchmarks/truth/results/quick

Finished units lie in ``cache`` below the folder, and a run goes on from them. The tables are marks.csv, regions.csv,
ranking.csv and trainings.csv; about.json says from how many units they were made.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed

from benchmarks.truth.aggregate import SIX, aggregated, read, write
from benchmarks.truth.images import IMAGES
from benchmarks.truth.rules import FIXED, SIGN, UNTESTED
from benchmarks.truth.tiers import OF, TIERS, is_usual
from benchmarks.truth.units import VERSION, Unit, measured

RESULTS = Path(__file__).parent / "results"
CACHE = "cache"
RADIUS_TASKS = ("MULT white", "XOR white")
CORRECTED = ("additive rho 0", "MLP")  # the table of which each correction is published
SHOWN = {  # of single tasks, by correction
    "none": ("break of all values", "break of medians", "2 x mean", f"> {FIXED:g}", SIGN),
    "by": ("break of all values", "break of medians", f"> {FIXED:g}", SIGN),
    "untested": (*UNTESTED, f"vanilla > {FIXED:g}", f"mean > {FIXED:g}"),
}


def run(units: list[Unit], out: Path, *, jobs: int) -> list[dict[str, Any]]:
    """What the units measured, in their order; those whose files are there are not measured again."""
    started, results = time.perf_counter(), []
    with Parallel(n_jobs=jobs, return_as="generator") as workers:  # of one thread each
        found = workers(delayed(measured)(unit, out / CACHE) for unit in units)
        for unit, (result, known) in zip(units, found, strict=True):
            results.append(result)
            if known:
                continue
            said = f"accuracy {result['accuracy']:.3f}{'' if result['learned'] else ', not learned'}"
            print(
                f"{unit.task.label}, {unit.explainer}, {unit.kind} {unit.std:g}, training {unit.training}: {said}; "
                f"{result['seconds']:.0f} s of one core, {time.perf_counter() - started:.0f} s; "
                f"{len(units) - len(results)} units left",
                flush=True,
            )
    return results


def write_tables(results: list[dict[str, Any]], out: Path, tier: str, units: int) -> None:
    usual = [result for result in results if is_usual(result["setting"])]
    write(out / "marks.csv", [row for row in aggregated(usual, "marks") if is_published(row)])
    ranking = aggregated(usual, "ranking")
    write(out / "ranking.csv", [row for row in ranking if row["task"] == SIX or row["n"] == 50])
    write(out / "regions.csv", [row for row in aggregated(usual, "regions") if row["task"] == SIX])
    write(out / "trainings.csv", list(trainings(usual)))
    if len(usual) < len(results):
        of_noises(results, out)
    about = {
        "tier": tier, "version": VERSION, "units": units, "finished": len(results), "metfa": version("metfa"),
        "numpy": np.__version__, "torch": torch.__version__.partition("+")[0],
        "core_seconds": round(sum(result["seconds"] for result in results)),
    }  # fmt: skip
    (out / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    print(f"tables of {len(results)} of {units} units in {out}")


def of_noises(results: list[dict[str, Any]], out: Path) -> None:
    """Tables of the six tasks under every noise, of the trainings that have all noises: else they would differ too."""
    names = {task.name for task in IMAGES}
    six = [one for one in results if one["setting"]["task"] in names and one["setting"]["network"] == "MLP"]
    of_training: dict[int, set[Any]] = {}
    for one in six:
        setting = one["setting"]
        address = tuple(setting[name] for name in ("task", "explainer", "kind", "std"))
        of_training.setdefault(setting["training"], set()).add(address)
    every = set.union(*of_training.values())
    whole = [one for one in six if of_training[one["setting"]["training"]] == every]
    shown = [row for row in aggregated(whole, "marks") if row["n"] == 50 and row["correction"] in ("none", "untested")]
    write(out / "noises_marks.csv", [row for row in shown if row["task"] in (SIX, *RADIUS_TASKS)])
    ranking = [row for row in aggregated(whole, "ranking") if row["n"] == 50]
    write(out / "noises_ranking.csv", [row for row in ranking if row["task"] in (SIX, *RADIUS_TASKS)])
    write(out / "noises_trainings.csv", list(trainings(whole)))


def is_published(row: dict[str, Any]) -> bool:
    """Tables stay small: everything of the six tasks, less of single tasks."""
    if row["task"] == SIX:
        return True
    if row["n"] != 50:
        return False
    if row["correction"] not in SHOWN:
        return (row["task"], row["network"]) == CORRECTED
    rules = SHOWN[row["correction"]]
    if OF[row["task"]] == "tables":
        rules = [rule for rule in rules if "its break" not in rule]
    return row["rule"] in rules


def trainings(results: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Accuracy, flips, and how many features are true, for each task and noise."""
    found: dict[tuple[Any, ...], dict[int, dict[str, Any]]] = {}
    for result in results:
        setting = result["setting"]
        key = tuple(setting[name] for name in ("task", "network", "kind", "std", "inputs"))
        one = found.setdefault(key, {}).setdefault(setting["training"], {**result})
        if one["flips"] is None and result["flips"] is not None:
            one.update(flips=result["flips"])
    for key, of_training in found.items():
        every = list(of_training.values())
        learned = [one for one in every if one["learned"]]
        row: dict[str, Any] = dict(zip(("task", "network", "kind", "std", "inputs"), key, strict=True))
        row |= {"truth": every[0]["kind"], "trainings": len(every), "learned": len(learned)}
        row["accuracy"] = float(np.mean([one["accuracy"] for one in every]))
        for name in ("flips", "task_share", "model_share"):
            numbers = [one[name] for one in learned if one.get(name) is not None]
            row[name] = float(np.mean(numbers)) if numbers else np.nan
        yield row


def compare(new: Path, published: Path) -> int:
    """Print figures that left their band, three standard errors and rounding, and how many there are."""
    keys = ("task", "network", "explainer", "kind", "std", "n")
    outside = total = 0
    for name, labels in (("marks.csv", ("rule", "correction")), ("ranking.csv", ("map",))):
        known = {tuple(row[key] for key in (*keys, *labels)): row for row in read(published / name)}
        for row in read(new / name):
            label = tuple(row[key] for key in (*keys, *labels))
            if label[0] != SIX or label not in known:
                continue
            for figure in [figure for figure in row if f"{figure}_se" in row and figure != "marks"]:
                before, now, band = (
                    known[label][figure],
                    row[figure],
                    3 * np.nan_to_num(known[label][f"{figure}_se"]) + 0.02,
                )
                total += 1
                if not abs(now - before) <= band and not (np.isnan(now) and np.isnan(before)):
                    outside += 1
                    print(f"{', '.join(map(str, label))}: {figure} {now:.3f}, published {before:.3f} ± {band:.3f}")
    print(f"{outside} of {total} figures of the {SIX} are outside of their bands")
    return outside


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", choices=TIERS, default="quick")
    parser.add_argument("--out", type=Path, help="folder of the tables; none: compare with the published ones")
    parser.add_argument("--finished", action="store_true", help="sample nothing: tables of the finished units")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    options = parser.parse_args()
    torch.set_num_threads(1)
    units = TIERS[options.tier]()
    if options.out is not None:
        there = [unit for unit in units if not options.finished or (options.out / CACHE / unit.file).exists()]
        write_tables(run(there, options.out, jobs=options.jobs), options.out, options.tier, len(units))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        results = run(units, Path(folder), jobs=options.jobs)
        write_tables(results, Path(folder), options.tier, len(units))
        return compare(Path(folder), RESULTS / options.tier) > 0


if __name__ == "__main__":
    sys.exit(main())
