"""Sampling alone of a table: 200 rows of 30 columns, N = 100, and an explainer that does nothing."""

import argparse
import statistics

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
    for name, (rows, made, target) in works.items():

        def sampled(rows=rows, made=made) -> None:
            metfa.explain(_nothing, rows, 0, noise=made, n_samples=N, rng=0)

        sampled()
        times = sorted(seconds(sampled) / (ROWS * N) * 1e6 for _ in range(rounds))
        aim = "" if target is None else f", target at most {target:g}"
        print(
            f"{name}: {statistics.median(times):.1f} microseconds a noisy row ({times[0]:.1f} to {times[-1]:.1f}{aim})",
            flush=True,
        )


def _nothing(inputs, target) -> np.ndarray:  # noqa: ARG001
    return np.tile(np.arange(COLUMNS, dtype=np.float64), (len(inputs), 1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    main(parser.parse_args().rounds)
