"""Run all benchmarks, or the named ones, each in a new process, and print their figures."""

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
FILES = [path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_") and path.stem != "measuring"]
CLAIMS = sorted([*FILES, *(path.parent.name for path in HERE.glob("*/__main__.py"))])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("claims", nargs="*", metavar="CLAIM", help=f"any of: {', '.join(CLAIMS)} (default: all)")
    chosen = parser.parse_args().claims or CLAIMS
    unknown = sorted(set(chosen) - set(CLAIMS))
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}")
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"numpy {np.__version__}, torch {torch.__version__}"
    )
    failures = 0
    for claim in chosen:
        print(f"\n== {claim}", flush=True)
        failures += subprocess.run([sys.executable, "-m", f"benchmarks.{claim}"], check=False).returncode != 0
    return failures


if __name__ == "__main__":
    sys.exit(main())
