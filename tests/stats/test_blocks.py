"""Blocks cover every feature once, and none is too large."""

import threading

import numpy as np
import pytest

from metfa.stats.blocks import WORTH_A_THREAD, each_map, feature_blocks


@pytest.mark.parametrize("shape", [(), (0,), (1,), (10,), (7, 5), (3, 1, 8), (2, 3, 4, 5), (4, 0, 3)])
@pytest.mark.parametrize("width", [1, 4, 6, 1000])
def test_blocks_cover_every_feature_once(shape, width):
    visits = np.zeros(shape, dtype=int)
    for index in feature_blocks(shape, width):
        visits[index] += 1
        assert visits[index].size <= width
    assert (visits == 1).all()


@pytest.mark.parametrize(("size", "here"), [(WORTH_A_THREAD - 1, True), (WORTH_A_THREAD, False)])
def test_small_maps_need_no_threads(size, here, monkeypatch):
    monkeypatch.setattr("metfa._base.threaded.n_threads", lambda: 2)
    maps = np.arange(3)[:, None] * np.ones(size, np.float32)
    found = list(each_map(lambda one: (one.mean(), threading.get_ident()), maps))
    assert [mean for mean, _ in found] == [0, 1, 2]
    assert all((thread == threading.get_ident()) == here for _, thread in found)
