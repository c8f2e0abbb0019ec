"""A report of an 800 MiB store (1024 x 1024, N = 200): its peak memory (target 1 GiB) and its seconds (target 20).

The store is made up and lies in a temporary folder, or in the one given by ``--folder``. The report is written by a
process of its own, whose whole resident memory counts, with the pages of the store that it has read. Once the threshold
is a number, and once it is the natural break of the medians.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import metfa

TARGETS = {"MiB": 1024, "seconds": 20}


def written(folder, threshold):
    """Write the report in this process and print what it took."""
    sample = metfa.load(folder / "store")
    page = folder / "report.html"
    page.unlink(missing_ok=True)
    start, cpu = time.perf_counter(), time.process_time()
    metfa.report.write(page, sample, threshold=None if threshold == "natural" else float(threshold))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    print(
        f"threshold {threshold}: {seconds:.1f} s ({cpu:.1f} s of processor time), peak {peak:.0f} MiB, "
        f"page {page.stat().st_size / 2**20:.1f} MiB (targets: {TARGETS['seconds']} s, {TARGETS['MiB']} MiB)",
        flush=True,
    )


def made(folder):
    """The store, made in a process of its own, so that its memory is not counted."""
    from benchmarks.reports_open_at_once import made_up  # it loads torch

    if not (folder / "store").exists():
        made_up((1024, 1024), 200).save(folder / "store")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--step")
    options = parser.parse_args()
    if options.step == "make":
        made(options.folder)
    elif options.step:
        written(options.folder, options.step)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            where = str(options.folder or temporary)
            for step in ("make", "0.5", "natural"):
                command = [sys.executable, "-m", "benchmarks.reports_of_large_stores_in_a_gigabyte", "--step", step]
                subprocess.run([*command, "--folder", where], check=True, env=dict(os.environ))
