"""Two processes on one store, stopped and killed at chosen points. A script: it forks a process without threads.

An event is anything that touches the store: opening, renaming, linking or removing a file, and each write, before it
and half done. The first process stops before event i, and the second before event j. Then the first goes on until it is
killed before event k, or comes to its end, and the second goes on to its end. At last a third call must give the right
maps. Prints what went wrong, as JSON. With "without" as its second argument the file system has no locks.
"""

import errno
import gc
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np

import metfa
from metfa._base import locks
from metfa.sampling import folder as store

EVENTS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.truncate"}
INPUTS = np.linspace(0.2, 0.8, 4).reshape(1, 4)
N = 3
RIGHT, REFUSED, WRONG = 0, 3, 4
LOCKS = sys.argv[2:] != ["without"]


def explainer(inputs, target):
    return inputs**2, inputs[:, :3]


explainer.rows_independent = True


def run(folder):
    return metfa.explain(
        explainer, INPUTS, 1, noise=metfa.noise.Uniform(0.1), n_samples=N, batch_size=1, rng=0,
        run=metfa.Run(store=folder),
    )  # fmt: skip


class Events:
    """Counts events, and before some of them sends this process a signal."""

    def __init__(self, folder, signals):
        self.folder, self.signals, self.seen = str(folder), signals, 0
        sys.addaudithook(self.heard)
        real = store.put

        def put(file, offset, content):
            self.happened()
            real(file, offset, content[: len(content) // 2])
            self.happened()
            real(file, offset, content)

        store.put = put

    def heard(self, event, args):
        if event in EVENTS and any(isinstance(arg, str | Path) and self.folder in str(arg) for arg in args):
            self.happened()

    def happened(self):
        if self.seen in self.signals:
            os.kill(os.getpid(), self.signals[self.seen])
        self.seen += 1


def forked(folder, expected, signals):
    """A process that explains into `folder`; it ends with RIGHT, REFUSED or WRONG."""
    child = os.fork()
    if child:
        return child
    code = WRONG
    try:
        Events(folder, signals)
        found = run(folder)
        code = (
            RIGHT if all(np.array_equal(getattr(found, name), values) for name, values in expected.items()) else WRONG
        )
    except (ValueError, BlockingIOError) as error:
        said = ["another call", "was changed", *([] if LOCKS else ["is missing"])]
        code = REFUSED if any(words in str(error) for words in said) else WRONG
        if code == WRONG:
            sys.stderr.write(f"{error!r}\n")
    except FileNotFoundError:
        code = WRONG if LOCKS else REFUSED
    except BaseException as error:
        sys.stderr.write(f"{error!r}\n")
    os._exit(code)


def end_of(child):
    """Its exit code; minus the signal that killed or stopped it."""
    status = os.waitpid(child, os.WUNTRACED)[1]
    if os.WIFSTOPPED(status):
        return -os.WSTOPSIG(status)
    return os.waitstatus_to_exitcode(status)


def round_of(folder, expected, i, j, k):
    """What went wrong, or nothing."""
    first = forked(folder, expected, {i: signal.SIGSTOP, k: signal.SIGKILL})
    ends = {"first": end_of(first)}
    second = forked(folder, expected, {j: signal.SIGSTOP})
    ends["second"] = end_of(second)
    for name, child in (("first", first), ("second", second)):
        if ends[name] == -signal.SIGSTOP:
            os.kill(child, signal.SIGCONT)
            ends[name] = end_of(child)
    ends["third"] = end_of(forked(folder, expected, {}))
    left = sorted(path.name for path in Path(folder).iterdir() if path.suffix not in (".npy", ".json"))
    allowed = {"first": (RIGHT, REFUSED, -signal.SIGKILL), "second": (RIGHT, REFUSED), "third": (RIGHT,)}
    if not LOCKS:  # one may spoil what the other has made, but not unnoticed
        left, allowed["third"] = [], (RIGHT, REFUSED)
    good = all(end in allowed[name] for name, end in ends.items())
    if LOCKS and (Path(folder) / "run.json").exists():
        left = ["run.json"]
    if good and not left:
        return None
    return {"i": i, "j": j, "k": k, **ends, "left": left}


def no_locks(handle, how):
    raise OSError(errno.ENOLCK, "No locks available")


def main(n_rounds):
    if not LOCKS:
        locks.fcntl.flock = no_locks
    with tempfile.TemporaryDirectory() as folder:
        whole = run(Path(folder) / "whole")
        expected = {name: np.array(getattr(whole, name)) for name in ("values", "vanilla", "predictions")}
        counted = Events(Path(folder) / "counted", {})
        run(Path(folder) / "counted")
        n_events = counted.seen
        gc.freeze()  # else a collection in a child copies all pages
        draw, wrong = random.Random(LOCKS), []  # other points with locks than without
        for number in range(n_rounds):
            i, j, k = (draw.randrange(n_events) for _ in range(3))
            place = str(Path(folder) / f"s{number}")
            found = round_of(place, expected, i, j, k)
            wrong += [] if found is None else [found]
            shutil.rmtree(place)
        sys.stdout.write(json.dumps({"events": n_events, "rounds": n_rounds, "wrong": wrong}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
