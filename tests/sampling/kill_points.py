"""Two processes on one store, stopped and killed at chosen points. A script, so that it forks a process without threads.

An event is anything that touches the store: opening, renaming, linking or removing a file, and each write, before it
and half done. The first process stops before event i; the second is killed before event j, or comes to its end; then the
first goes on, or is killed too. At last a third call must give the right maps. Prints what went wrong, as JSON. With "without" as its second argument the file system has no locks.
"""

import errno
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
from metfa.sampling import store

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
    """Counts events, and at one of them sends this process a signal."""

    def __init__(self, folder, at, sent):
        self.folder, self.at, self.sent, self.seen = str(folder), at, sent, 0
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
        self.seen += 1
        if self.seen == self.at + 1:
            os.kill(os.getpid(), self.sent)


def forked(folder, expected, at=10**9, sent=signal.SIGKILL):
    """A process that explains into `folder`; it ends with RIGHT, REFUSED or WRONG."""
    child = os.fork()
    if child:
        return child
    code = WRONG
    try:
        Events(folder, at, sent)
        found = run(folder)
        code = RIGHT if all(np.array_equal(getattr(found, name), values) for name, values in expected.items()) else WRONG
    except (ValueError, BlockingIOError) as error:
        said = ["another call", "was changed", *([] if LOCKS else ["is missing"])]
        code = REFUSED if any(words in str(error) for words in said) else WRONG
        if code == WRONG:
            print(repr(error), file=sys.stderr)
    except BaseException as error:
        print(repr(error), file=sys.stderr)
    os._exit(code)


def end_of(child):
    """Its exit code; minus the signal that killed or stopped it."""
    status = os.waitpid(child, os.WUNTRACED)[1]
    if os.WIFSTOPPED(status):
        return -os.WSTOPSIG(status)
    return os.waitstatus_to_exitcode(status)


def round_of(folder, expected, i, j, also_killed):
    """What went wrong, or nothing."""
    first = forked(folder, expected, i, signal.SIGSTOP)
    stopped = end_of(first) == -signal.SIGSTOP
    second = end_of(forked(folder, expected, j))
    ended = RIGHT
    if stopped:
        os.kill(first, signal.SIGKILL if also_killed else signal.SIGCONT)
        ended = end_of(first)
    third = end_of(forked(folder, expected))
    left = sorted(path.name for path in Path(folder).iterdir() if path.suffix not in (".npy", ".json"))
    if not LOCKS:
        left = []  # nobody knows whose they are
    good = second in (RIGHT, REFUSED, -signal.SIGKILL) and ended in (RIGHT, REFUSED, -signal.SIGKILL)
    if good and third == RIGHT and not left and not (Path(folder) / "run.json").exists():
        return None
    return {"i": i, "j": j, "killed": also_killed, "second": second, "first": ended, "third": third, "left": left}


def no_locks(handle, how):
    raise OSError(errno.ENOLCK, "No locks available")


def main(n_rounds):
    if not LOCKS:
        locks.fcntl.flock = no_locks
    with tempfile.TemporaryDirectory() as folder:
        whole = run(Path(folder) / "whole")
        expected = {name: np.array(getattr(whole, name)) for name in ("values", "vanilla", "predictions")}
        counted = Events(Path(folder) / "counted", -1, 0)
        run(Path(folder) / "counted")
        n_events = counted.seen
        pairs = [(i, j) for i in range(n_events) for j in range(n_events)]
        wrong = []
        for k, (i, j) in enumerate(random.Random(0).sample(pairs, n_rounds)):
            place = str(Path(folder) / f"s{k}")
            found = round_of(place, expected, i, j, k % 2 == 1)
            wrong += [] if found is None else [found]
            shutil.rmtree(place)
        print(json.dumps({"events": n_events, "rounds": n_rounds, "wrong": wrong}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
