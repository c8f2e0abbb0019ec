"""The fuzz by hand: ``cd tests && python -m fuzz --calls 20000`` prints what is unclear, silent or slow, by kind."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

from .calls import Folder, cases
from .verdicts import run, table


def main():
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="callables whose name holds this text")
    asked = parser.parse_args()
    folder = Folder()
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        try:
            os.chdir(place)  # what odd paths write is gone afterwards
            chosen = [case for case in cases(folder) if asked.only in case.name]
            verdicts = run(chosen, asked.calls, asked.seed, lambda n: sys.stderr.write(f"{n}\n"))
        finally:
            os.chdir(here)
            folder.remove()
    sys.stdout.write(table(verdicts) + "\n")


main()
