"""Sampling alone of a table: 200 rows of 30 columns, N = 100, and an explainer that does nothing.

Times are of the processor in all threads, so that other work matters less, and by the clock. The first line is what
cannot be saved while each noisy row has a stream of its own: NumPy makes a generator for it, which draws 30 numbers.
"""

import argparse
import statistics
import time

import numpy as np

import metfa
from benchmarks.measuring import seconds

ROWS, COLUMNS, N = 200, 30, 100
TARGET = 20.0  # microseconds a noisy row


def main(rounds: int) -> None:
    import pandas as pd

    table = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    frame = pd.DataFrame(table, columns=[f"column {place}" for place in range(COLUMNS)])
    mixed = frame.assign(**{"column 0": (table[:, 0] > 0), "column 1": np.where(table[:, 1] > 0, "high", "low")})
    noise = metfa.noise.Gaussian([0.1] * COLUMNS)
    works = {
        "array, Gaussian": (table, noise, TARGET),
        "frame of floats, Gaussian": (frame, noise, None),
        "frame of floats, per_column": (frame, metfa.noise.per_column(frame, 0.1), None),
        "frame with labels, per_column": (mixed, metfa.noise.per_column(mixed, 0.1, resample=0.1), None),
        "frame with labels, from_table": (mixed, metfa.noise.from_table(mixed, 0.2), None),
    }
    timed("generators and their numbers alone", _bare, rounds, None)
    for name, (rows, made, target) in works.items():

        def sampled(rows=rows, made=made) -> None:
            metfa.explain(_nothing, rows, 0, noise=made, n_samples=N, rng=0)

        timed(name, sampled, rounds, target)


def timed(name, work, rounds: int, target: float | None) -> None:
    """Print the microseconds of a noisy row."""
    work()
    clock, processor = [], []
    for _ in range(rounds):
        start = time.process_time()
        clock.append(seconds(work))
        processor.append(time.process_time() - start)
    a, b = ([x / (ROWS * N) * 1e6 for x in sorted(times)] for times in (processor, clock))
    aim = "" if target is None else f", target at most {target:g}"
    print(
        f"{name}: {statistics.median(a):.1f} microseconds of the processor a noisy row ({a[0]:.1f} to {a[-1]:.1f}"
        f"{aim}), {statistics.median(b):.1f} by the clock ({b[0]:.1f} to {b[-1]:.1f})",
        flush=True,
    )


def _bare() -> None:
    out, root = np.empty(COLUMNS), np.random.SeedSequence(0)
    for _ in range(ROWS * N):
        np.random.Generator(np.random.Philox(root)).standard_normal(out=out)


def _nothing(inputs, target) -> np.ndarray:  # noqa: ARG001
    return np.tile(np.arange(COLUMNS, dtype=np.float64), (len(inputs), 1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    main(parser.parse_args().rounds)
