"""Blocks cover every feature once, and none is too large."""

import numpy as np
import pytest

from metfa.stats.blocks import feature_blocks


@pytest.mark.parametrize("shape", [(), (0,), (1,), (10,), (7, 5), (3, 1, 8), (2, 3, 4, 5), (4, 0, 3)])
@pytest.mark.parametrize("width", [1, 4, 6, 1000])
def test_blocks_cover_every_feature_once(shape, width):
    visits = np.zeros(shape, dtype=int)
    for index in feature_blocks(shape, width):
        visits[index] += 1
        assert visits[index].size <= width
    assert (visits == 1).all()
