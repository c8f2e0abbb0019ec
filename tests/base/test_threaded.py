"""Parts are worked on by several threads, and no number of threads shows in what comes back."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from metfa._base.threaded import n_threads, threaded


@pytest.fixture(params=[1, 2, 7])
def cores(request, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(request.param)), raising=False)
    return request.param


def test_results_come_in_the_order_of_the_parts(cores):
    def late(part):
        time.sleep(0.002 * (part % 3 == 0))
        return part * part

    assert list(threaded(late, iter(range(20)))) == [part * part for part in range(20)]
    assert list(threaded(late, [])) == []
    assert n_threads() == min(cores, 4)


def test_few_parts_are_begun_before_they_are_asked_for(cores):
    begun = []
    results = threaded(begun.append, range(100))
    next(results)
    time.sleep(0.02)
    assert len(begun) <= n_threads() + 2
    results.close()
    ended = len(begun)
    time.sleep(0.02)
    assert len(begun) == ended < 10


def test_an_error_ends_the_work(cores):
    begun = []

    def fails(part):
        begun.append(part)
        if part == 3:
            raise ValueError("the fourth")

    with pytest.raises(ValueError, match="the fourth"):
        list(threaded(fails, range(1000)))
    assert len(begun) < 12
    assert not any(thread.name.startswith("metfa-numbers") for thread in threading.enumerate())


def test_errors_of_numbers_are_those_of_the_caller(cores):
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        list(threaded(lambda part: np.ones(3) / part, [1.0, 0.0, 1.0]))
    with np.errstate(divide="ignore"):
        assert np.isinf(list(threaded(lambda part: np.ones(3) / part, [1.0, 0.0, 1.0]))[1]).all()


@pytest.mark.parametrize("cores", [2], indirect=True)
def test_ctrl_c_does_not_wait_for_the_rest(cores, interrupts_heard):
    timer = threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT])
    start = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(threaded(lambda _: time.sleep(0.01), range(10_000)))
    assert time.perf_counter() - start < 1
    timer.join()
