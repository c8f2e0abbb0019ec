"""Batches that fit: sizes of our choice, and halves where the memory is full."""

import numpy as np
import pytest
import torch

import metfa
from metfa.calls.batches import in_batches, rows_that_fit


def sizes(n, batch_size, like):
    found = []
    in_batches(n, batch_size, like, lambda start, stop: found.append((start, stop)))
    assert [start for start, _ in found] == [0, *(stop for _, stop in found[:-1])]
    assert found[-1][1] == n
    return [stop - start for start, stop in found]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 3, 224, 224), [16, 16, 8]),
        ((1, 3, 256, 256), [16, 16, 8]),
        ((1, 3, 360, 480), [6, 6, 6, 6, 6, 6, 4]),
        ((3, 512, 512), [4] * 10),
        ((1, 3, 1024, 2048), [1] * 40),
        ((40, 50_000), [16, 16, 8]),  # a table has no pixels
    ],
)
def test_large_images_go_few_at_a_time(shape, expected):
    assert sizes(40, None, np.empty(shape, np.float16)) == expected


def test_a_size_of_the_callers_is_taken_as_it_is():
    assert sizes(7, 3, np.empty((1, 3, 4096, 4096), bool)) == [3, 3, 1]


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory")])
def test_what_does_not_fit_is_halved(error):
    done = []

    def work(start, stop):
        if stop - start > 5:
            raise error
        done.append((start, stop))

    in_batches(20, None, np.empty((1, 3, 8, 8)), work)
    assert done == [(0, 4), (4, 8), (8, 12), (12, 16), (16, 20)]
    with pytest.raises(type(error)):
        in_batches(20, 8, np.empty((1, 3, 8, 8)), work)


def test_other_errors_are_not_hidden():
    def work(start, stop):
        raise RuntimeError("no such layer")

    with pytest.raises(RuntimeError, match="no such layer"):
        in_batches(20, None, np.empty((1, 3, 8, 8)), work)


def test_a_call_takes_fewer_large_images():
    """As those of `explain`: ten of 224 x 224 fit into 4 GiB, and of 1024 x 1024 one."""
    sizes_of = {
        side: rows_that_fit(np.empty((1, 3, side, side), bool), on_cpu=10, on_gpu=32) for side in (224, 512, 1024)
    }
    assert sizes_of == {224: 10, 512: 4, 1024: 1}
    assert rows_that_fit(None, on_cpu=10, on_gpu=32) == 10
    images = torch.empty(1, 3, 512, 512, device="meta")  # which is no CPU, and whose memory is not known
    assert rows_that_fit(images, on_cpu=10, on_gpu=32) == 4
    sample = metfa.explain(lambda x, target: x[:, 0], np.ones((2, 1, 1024, 600), np.float32), 0,
                           noise=metfa.noise.Uniform(0.1), n_samples=1, rng=0)  # fmt: skip
    assert sample.provenance["batch_size"] == 1
