"""A model that mixes rows is asked about one row at a time, after one look."""

import numpy as np
import pytest
import torch

import metfa
from metfa import RowDependenceWarning

ROWS = np.random.default_rng(0).random((6, 4))
SAID = "beside others, the scores of a row move by .* asked about one row at a time"


def counted(model):
    sizes = []

    def asked(rows):
        sizes.append(len(rows))
        return model(rows)

    return metfa.Called(asked), sizes


def independent(rows):
    return np.stack([rows.sum(1), rows.prod(1)], axis=1)


def mixing(rows):
    return independent(rows - 0.1 * rows.mean(axis=0))


def scaled_by_the_largest(rows):
    return independent(rows / rows.max())


def with_random_numbers(rows):
    return independent(rows) + np.random.default_rng().normal(size=(len(rows), 2))


def test_independent_rows_are_asked_about_together():
    called, sizes = counted(independent)
    for _ in range(3):
        np.testing.assert_array_equal(called(ROWS), independent(ROWS))
    assert sizes == [6, 1, 1, 6, 6]  # the middle row and the last are asked about alone, once


@pytest.mark.parametrize("model", [mixing, scaled_by_the_largest])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_dependent_rows_are_asked_about_one_by_one(model, n):
    alone = np.concatenate([model(ROWS[row : row + 1]) for row in range(n)])
    called, sizes = counted(model)
    with pytest.warns(RowDependenceWarning, match=SAID):
        np.testing.assert_array_equal(called(ROWS[:n]), alone)
    sizes.clear()
    np.testing.assert_array_equal(called(ROWS[:n]), alone)  # and nothing is said again
    assert sizes == [1] * n


def test_equal_rows_show_nothing_so_the_look_comes_later():
    called, sizes = counted(mixing)
    called(ROWS[[0, 0, 0]])
    assert sizes == [3]
    with pytest.warns(RowDependenceWarning, match=SAID):
        called(ROWS)


def test_random_scores_show_nothing():
    called, sizes = counted(with_random_numbers)
    called(ROWS)
    called(ROWS)
    assert sizes[-1] == 6


def test_rounding_is_no_dependence():
    """Other kernels for other numbers of rows: the same row beside others and beside its copies decides."""
    rounded, _ = counted(lambda rows: independent(rows) * (1 + 1e-3 * len(rows)))
    half, _ = counted(lambda rows: independent(rows).astype(np.float16 if len(rows) > 1 else np.float64))
    for called in (rounded, half):
        called(ROWS)
        assert called.row_look.dependent is False


def test_a_model_in_training_mode_is_not_asked_again():
    net = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)).train()
    called = metfa.Called(net)
    called(torch.tensor(ROWS, dtype=torch.float32))
    assert int(net[0].num_batches_tracked) == 1
    assert called.row_look.dependent is None


def test_gradients_of_dependent_rows():
    class Mixing(torch.nn.Module):
        def forward(self, rows):
            return torch.stack([(rows - 0.3 * rows.mean(0)).tanh().sum(1), rows.sum(1)], dim=1)

    rows = torch.tensor(ROWS)
    with pytest.warns(RowDependenceWarning, match=SAID):
        gradient, scores = metfa.Called(Mixing().eval()).gradient(rows, [0, 1, 0, 1, 0, 0])
    alone = [metfa.Called(Mixing().eval()).gradient(rows[k : k + 1], [0, 1, 0, 1, 0, 0][k]) for k in range(6)]
    assert torch.equal(gradient, torch.cat([one for one, _ in alone]))
    assert torch.equal(scores, torch.cat([one for _, one in alone]))
