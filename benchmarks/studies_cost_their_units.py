"""The overhead of a study over its units, and the time to read a finished study of 10,000 units again.

The overhead compares `metfa.evaluate`, with hashing, storing and scheduling, with the same units measured one after the
other by one worker without a store: the gradient of EfficientNet-Lite0, mstd and faithfulness, 3 pictures.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

import metfa
from benchmarks.measuring import compare, raise_thresholds
from metfa.evaluation import UnitStore, prepare
from metfa.evaluation.worker import Worker

NOISE = metfa.noise.Gaussian(0.1, bounds=(0, 1))
UNIFORM = metfa.noise.Uniform(0.1, bounds=(0, 1))
BRIGHTNESS = metfa.noise.Brightness(0.9, 1.1, bounds=(0, 1))


def gradient_study(folder: Path) -> metfa.Study:
    for name in ("coffee", "chelsea", "astronaut"):
        Image.fromarray(getattr(data, name)()).save(folder / f"{name}.png")
    return metfa.Study(
        model="efficientnet-lite0", inputs=folder, explainers={"Gradient": "gradient"}, sampling={"normal": NOISE},
        outer={"normal": NOISE}, metrics={"mstd": {}, "faithfulness": {"steps": 50}}, n_samples=10, n_outer=2,
    )  # fmt: skip


def overhead(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        pictures = Path(scratch) / "pictures"
        pictures.mkdir()
        study = gradient_study(pictures)
        stores = iter(range(1000))

        def whole() -> None:
            metfa.evaluate(study, store=f"{scratch}/{next(stores)}")

        def units_alone() -> None:
            worker = Worker(study)
            for unit in prepared.units:
                worker.measure(unit)

        prepared = prepare(study, store=f"{scratch}/none")
        compare(("study", "its units alone"), whole, units_alone, rounds=rounds, target=1.03)


def first(model):  # noqa: ARG001
    return lambda inputs, target: inputs  # noqa: ARG005


def linear(rows):
    return np.stack([rows.sum(axis=1), -rows.sum(axis=1)], axis=1)


def resuming(n_units: int, **measured) -> None:
    """Give the file of every unit the rows of the first: only their number matters for the time to read them."""
    inputs = np.random.default_rng(0).random((n_units, 8))
    study = metfa.Study(model=linear, inputs=inputs, explainers={"first": first}, n_samples=6, version="1", **measured)
    with tempfile.TemporaryDirectory() as scratch:
        prepared = prepare(study, store=scratch)
        result = Worker(study).measure(prepared.units[0])
        clock = time.perf_counter()
        for unit in prepared.units:
            prepared.store.write(unit.address, result)
        print(f"{n_units} files of {len(result['rows'])} rows written: {time.perf_counter() - clock:.1f} s", flush=True)
        clock = time.perf_counter()
        metfa.evaluate(study, store=scratch)
        seconds = time.perf_counter() - clock
        print(f"a finished study read again: {seconds:.2f} s (target at most 10 for 10,000 units)", flush=True)
        clock = time.perf_counter()
        UnitStore(scratch).read([unit.address for unit in prepared.units])
        print(f"of which reading and checking the files: {time.perf_counter() - clock:.2f} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--units", type=int, default=10_000)
    options = parser.parse_args()
    raise_thresholds(raised=True)
    overhead(options.rounds)
    resuming(options.units, sampling={"normal": NOISE}, metrics=["interval_width"])
    three = {"normal": NOISE, "uniform": UNIFORM, "brightness": BRIGHTNESS}
    resuming(options.units, sampling=three, outer=three, n_outer=2, metrics=["mstd", "interval_width", "faithfulness"])
