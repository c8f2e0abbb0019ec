"""A comparison with a store, killed at chosen points and repeated. A script: it forks a process without threads.

An event is as in `kill_points`. The first process is killed before event k, a second one before event l of what is
left, and a third must come to its end with the right differences. Prints what went wrong, as JSON.
"""

import gc
import json
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import kill_points
import numpy as np

import metfa
from metfa.sampling import folder as store

INPUTS = np.linspace(0.2, 0.8, 4).reshape(1, 4)
PUT = store.put


def by(weights):
    def explainer(inputs, target):
        return inputs * weights, inputs[:, :3]

    explainer.rows_independent = True
    return explainer


def run(folder):
    rule = metfa.Until(undecided=0.8, correction=None, max_samples=9)
    return metfa.compare(
        by(1.0), by(np.array([1.0, 1.0, 1.0, 3.0])), INPUTS, 1, noise=metfa.noise.Uniform(0.1), n_samples=rule,
        batch_size=1, rng=None if folder.name[-1] in "13579" else 0, scale="share", run=metfa.Run(store=folder),
    )  # fmt: skip


def right(folder, expected):
    found = metfa.load(folder)
    alike = [np.array_equal(getattr(found, name), expected[name]) for name in expected if name != "stopping"]
    left = sorted(path.name for path in folder.rglob("*") if path.suffix not in (".npy", ".json") and path.is_file())
    seeded = found.provenance["rng"] == "0x0"
    return (all(alike) or not seeded) and not left and not (folder / "run.json").exists() and found.n_samples < 9


def main(n_rounds):
    kill_points.run = lambda folder: run(Path(folder))
    with tempfile.TemporaryDirectory() as home:
        whole = run(Path(home) / "whole0")
        expected = {name: np.array(getattr(whole, name)) for name in ("values", "vanilla")}
        counted = kill_points.Events(Path(home) / "counted0", {})
        run(Path(home) / "counted0")
        n_events = counted.seen
        gc.freeze()  # else a collection in a child copies all pages
        draw, wrong = random.Random(0), []
        for number in range(n_rounds):
            folder = Path(home) / f"s{number}"
            k, later = draw.randrange(n_events), draw.randrange(n_events)
            of_all = expected if number % 2 == 0 else {}  # another seed each time
            ends = []
            for point in (k, later, None):
                kills = {} if point is None else {point: signal.SIGKILL}
                ends.append(kill_points.end_of(kill_points.forked(folder, of_all, kills)))
            allowed = (kill_points.RIGHT, -signal.SIGKILL)
            fine = ends[0] == -signal.SIGKILL and ends[1] in allowed and ends[2] == kill_points.RIGHT
            if not fine or not right(folder, expected):
                wrong.append({"k": k, "l": later, "ends": ends, "left": [str(path) for path in folder.rglob("*")]})
            shutil.rmtree(folder)
        sys.stdout.write(json.dumps({"events": n_events, "rounds": n_rounds, "wrong": wrong}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
