"""Peak memory and time of natural breaks, and of the check that comes before, for 800 MiB of samples in a file.

Target: the whole process under 600 MiB, pages of the file included (``ru_maxrss`` of a process of its own).

    python -m benchmarks.natural_breaks_in_blocks
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import metfa

SHAPES = {"50 maps of 2048 x 2048": (50, 1, 2048, 2048), "4180 maps of 224 x 224": (4180, 1, 224, 224)}


def write(path: Path, shape: tuple[int, ...]) -> None:
    """Skewed scores that agree from sample to sample, as of a heat map."""
    rng = np.random.default_rng(0)
    strength = rng.gamma(0.5, 1.0, shape[1:]).astype(np.float32)
    values = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    for sample in values:
        sample[:] = strength * rng.gamma(2.0, 0.5, shape[1:]).astype(np.float32)
    values.flush()


def measure(path: str, what: str) -> None:
    values = np.load(path, mmap_mode="r")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    start = time.perf_counter()
    if what == "jenks":
        found = metfa.stats.jenks(values)
    else:
        terms = metfa.Terms()
        found = metfa.results.decisions.decide(values, terms).threshold
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"{what}: threshold {found:.6g}, {seconds:.1f} s, peak {peak:.0f} MiB ({before:.0f} MiB before)", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?")
    parser.add_argument("what", nargs="?")
    options = parser.parse_args()
    if options.path:
        import metfa.results.decisions

        measure(options.path, options.what)
    else:
        for name, shape in SHAPES.items():
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "values.npy"
                write(file, shape)
                print(f"{name}, {file.stat().st_size / 2**20:.0f} MiB")
                for what in ("jenks", "decision"):
                    subprocess.run(
                        [sys.executable, "-m", "benchmarks.natural_breaks_in_blocks", file, what], check=True
                    )
