"""The allocator's thresholds: a setting of the process, so it is tried in one of its own."""

import subprocess
import sys

import pytest

from metfa import allocator


def pages_of_a_loop(prepare):
    """Page faults of a loop that takes and frees 64 MiB eight times, in a fresh process."""
    code = f"""
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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc")
def test_freed_memory_is_kept():
    assert pages_of_a_loop("assert allocator.keep_freed_memory()") < 10
    assert pages_of_a_loop("") > 100  # 8 x 32 huge pages, or many more small ones: else this test shows nothing


def test_other_systems_are_left_alone(monkeypatch):
    def absent(name):
        raise OSError(name)

    monkeypatch.setattr(allocator.ctypes, "CDLL", absent)
    assert allocator.keep_freed_memory() is False
    monkeypatch.setattr(allocator.sys, "platform", "darwin")
    assert allocator.keep_freed_memory() is False
