"""Target maps that are drawn by name."""

import numpy as np
import pytest

from metfa import attacks
from metfa.attacks.drawing import SHAPES


@pytest.mark.parametrize("size", [(28, 28), (7, 7), (20, 33)])
@pytest.mark.parametrize("shape", SHAPES)
def test_part_of_the_map_is_one_the_rest_zero(shape, size):
    found = attacks.drawn(shape, *size)
    assert found.shape == size
    assert found.dtype == np.float32
    assert set(np.unique(found)) == {0, 1}
    if shape not in ("left", "corner"):
        assert np.array_equal(found, found[::-1, ::-1])


def test_unknown_shapes():
    with pytest.raises(ValueError, match="got 'cirle', did you mean 'circle'"):
        attacks.drawn("cirle", 5, 5)
    with pytest.raises(ValueError, match="`height` must be at least 1, got 0"):
        attacks.drawn("circle", 0, 5)
