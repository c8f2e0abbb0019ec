"""Seconds for ``import metfa`` and the look-up of `metfa.explain` after NumPy, each time in a new process."""

import argparse
import statistics
import subprocess
import sys

CODE = """
import time, numpy
start = time.perf_counter()
import metfa
metfa.explain
print(time.perf_counter() - start)
"""

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    seconds = sorted(
        float(subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout)
        for _ in range(options.rounds)
    )
    print(
        f"import metfa: {statistics.median(seconds):.3f} s more than NumPy ({seconds[0]:.3f} to {seconds[-1]:.3f} in "
        f"{options.rounds} processes), target at most 0.25 s"
    )
