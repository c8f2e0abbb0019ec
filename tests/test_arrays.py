"""NaN and infinity are found, and large numbers are not taken for them; copies stay in their graph."""

import numpy as np
import pytest
import torch

from metfa._arrays import copied, first_not_finite


@pytest.mark.parametrize("library", [np.asarray, torch.tensor])
@pytest.mark.parametrize("bad", [[np.nan], [np.inf], [-np.inf], [np.inf, -np.inf]])
def test_the_first_row_that_is_not_finite(library, bad):
    rows = np.ones((3, 4), np.float32)
    rows[1, : len(bad)] = bad
    rows[2, 0] = np.nan
    assert first_not_finite(library(rows)) == 1
    assert first_not_finite(library(rows[:1])) is None


@pytest.mark.parametrize("library", [np.asarray, torch.tensor])
@pytest.mark.parametrize(("dtype", "largest"), [(np.float16, 6e4), (np.float32, 3e38), (np.float64, 1.7e308)])
def test_a_sum_that_overflows_is_no_fault_of_the_rows(library, dtype, largest):
    assert first_not_finite(library(np.full((3, 4), largest, dtype))) is None


def test_integers():
    assert first_not_finite(np.arange(6).reshape(2, 3)) is None


def test_a_copy_stays_in_its_graph():
    leaf = torch.ones(3, requires_grad=True)
    copy = copied(leaf * 2)
    copy.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("library", [np.asarray, torch.tensor])
def test_a_copy_is_its_own(library):
    rows = library([1.0, 2.0])
    copy = copied(rows)
    copy[0] = 5.0
    assert rows.tolist() == [1, 2]
