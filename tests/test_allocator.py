"""The allocator's thresholds: a setting of the process, so it is tried in one of its own."""

import os
import subprocess
import sys

import pytest

from metfa import allocator


def pages_of_a_loop(prepare, **environment):
    """Page faults of a loop that takes and frees 64 MiB eight times, in a fresh process."""
    code = f"""
import contextlib
import resource
import numpy as np
from metfa import allocator
{prepare}
def fill():
    np.empty(2**23).fill(1.0)
fill()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(8):
    fill()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    return said_by(code, **environment)


def said_by(code, **environment):
    """The number that a program prints, in a process whose malloc is as it comes."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


FEW, MANY = 10, 100  # 8 x 32 huge pages, or many more small ones
OPEN = "stack = contextlib.ExitStack()\nstack.enter_context(allocator.freed_memory_kept())"
CLOSE = "stack.close()"
of_glibc = [pytest.mark.slow, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc")]


class TestARun:
    pytestmark = of_glibc

    @pytest.mark.parametrize(
        "prepare",
        [
            OPEN,
            f"{OPEN}\nwith allocator.freed_memory_kept():\n    pass",
            f"allocator.keep_freed_memory()\n{OPEN}\n{CLOSE}",
            f"{OPEN}\nallocator.keep_freed_memory()\n{CLOSE}",
        ],
        ids=["inside", "inside after another one", "kept for good", "kept for good inside"],
    )
    def test_memory_is_kept(self, prepare):
        assert pages_of_a_loop(prepare) < FEW

    def test_it_is_returned_after_it(self):
        assert pages_of_a_loop(f"{OPEN}\n{CLOSE}") > MANY

    @pytest.mark.parametrize(
        "own", [{"MALLOC_TRIM_THRESHOLD_": "100000"}, {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=100000"}]
    )
    def test_thresholds_of_the_caller_are_left_alone(self, own):
        assert pages_of_a_loop(OPEN, **own) > MANY

    def test_other_settings_of_the_caller_do_not_matter(self):
        assert pages_of_a_loop(OPEN, MALLOC_ARENA_MAX="2", GLIBC_TUNABLES="glibc.malloc.arena_max=2") < FEW

    @pytest.mark.parametrize(("blocks", "least", "most"), [(64, -1, 100), (160, 1000, 1300)], ids=["some", "much"])
    def test_much_free_memory_goes_back_also_from_below_what_is_used(self, blocks, least, most):
        """Of 8 MiB each; who explains again would have to take less anew."""
        code = f"""
import numpy as np
from metfa import allocator
with allocator.freed_memory_kept():
    blocks = [np.ones(2**20) for _ in range({blocks})]
    above = blocks.pop()
    del blocks
    inside = allocator._resident()
print((inside - allocator._resident()) // 2**20)
"""
        assert least <= said_by(code) < most

    def test_no_file_says_how_much_memory_there_is(self):
        code = """
from pathlib import Path
from metfa import allocator
def refused(self):
    raise OSError("/proc is not mounted")
Path.read_text = refused
with allocator.freed_memory_kept():
    pass
print(len(allocator._raised.runs))
"""
        assert said_by(code) == 0

    def test_a_process_that_is_forked_has_no_lock_of_others(self):
        code = """
import os
from metfa import allocator
with allocator._raised.lock:
    child = os.fork()
    if not child:
        with allocator.freed_memory_kept():
            os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        assert said_by(code) == 7

    def test_explanations_of_a_network_keep_it(self):
        code = """
import resource
import torch, metfa
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(2))
model.eval()(images := torch.rand(1, 3, 128, 128))
def explained():
    metfa.explain(
        metfa.explainers.Gradient(model), images, noise=metfa.noise.Uniform(0.1), n_samples=40, batch_size=8, rng=0
    )
explained()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
explained()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
        own = {"MALLOC_TOP_PAD_": "0"}  # the thresholds as they are without the library
        assert said_by(code) < 0.6 * said_by(code, **own)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc")
def test_freed_memory_is_kept():
    assert pages_of_a_loop("assert allocator.keep_freed_memory()") < FEW
    assert pages_of_a_loop("") > MANY  # else these tests show nothing


def test_other_systems_are_left_alone(monkeypatch):
    def absent(name):
        raise OSError(name)

    monkeypatch.setattr(allocator.ctypes, "CDLL", absent)
    assert allocator.keep_freed_memory() is False
    monkeypatch.setattr(allocator, "_raised", allocator._Raised())
    with allocator.freed_memory_kept():
        assert not allocator._raised.runs
    monkeypatch.setattr(allocator.sys, "platform", "darwin")
    assert allocator.keep_freed_memory() is False
