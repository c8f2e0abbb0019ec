"""Peak memory and time of natural breaks, and of the check that comes before, for 800 MiB of samples in a file.

Target: the whole process under 600 MiB, pages of the file included (``ru_maxrss`` of a process of its own).

    python -m benchmarks.natural_breaks_in_blocks
"""

import argparse
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import metfa
from metfa.results.arrays import map_array
from metfa.results.decisions import decide
from metfa.results.rules import RULES

DECISION = "decision by "
SHAPES = {"50 maps of 2048 x 2048": (50, 1, 2048, 2048), "4180 maps of 224 x 224": (4180, 1, 224, 224)}


def write(path: Path, shape: tuple[int, ...]) -> None:
    """Skewed scores that agree from sample to sample, as of a heat map."""
    rng = np.random.default_rng(0)
    strength = rng.gamma(0.5, 1.0, shape[1:]).astype(np.float32)
    values = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    for sample in values:
        sample[:] = strength * rng.gamma(2.0, 0.5, shape[1:]).astype(np.float32)
    values.flush()


def decided(values: np.ndarray, rule: Callable[[np.ndarray], float]) -> float | None:
    return decide(values, metfa.Terms(rule), unmoved=np.zeros(1, bool)).threshold


def measure(path: Path, what: str, name: str) -> None:
    values = map_array(path, np.dtype(np.float32), SHAPES[name])  # as of a store
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    start, worked = time.perf_counter(), time.process_time()
    found = RULES[what](values[:, 0]) if what in RULES else decided(values, RULES[what.removeprefix(DECISION)])
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(
        f"{what}: threshold {found:.6g}, {seconds:.1f} s ({worked:.1f} s of one core), peak {peak:.0f} MiB "
        f"({before:.0f} MiB before)",
        flush=True,
    )


def main() -> None:
    for name, shape in SHAPES.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "values.npy"
            print(f"{name}, {4 * math.prod(shape) / 2**20:.0f} MiB", flush=True)
            for what in (
                "write",
                *RULES,
                *(DECISION + rule for rule in RULES),
            ):  # each in a process of its own, which starts small
                me = [sys.executable, "-m", "benchmarks.natural_breaks_in_blocks"]
                subprocess.run([*me, file, what, name], check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for argument in ("path", "what", "name"):
        parser.add_argument(argument, nargs="?")
    options = parser.parse_args()
    if options.what is None:
        main()
    elif options.what == "write":
        write(Path(options.path), SHAPES[options.name])
    else:
        measure(Path(options.path), options.what, options.name)
