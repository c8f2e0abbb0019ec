"""A model that mixes rows is asked about one row at a time, after one look."""

import numpy as np
import pytest
import torch

import metfa
from metfa import ReproducibilityWarning, RowDependenceWarning

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


def test_random_scores_show_nothing_and_it_is_said_once():
    called, sizes = counted(with_random_numbers)
    with pytest.warns(ReproducibilityWarning, match="other scores each time"):
        called(ROWS[:4])
    called(ROWS)
    assert sizes[-1] == 6


def test_a_metric_says_that_the_model_is_random():
    images = torch.rand(2, 1, 4, 4)

    def model(x):
        return torch.nn.functional.dropout(x.flatten(1), 0.5)[:, :3]

    with pytest.warns(ReproducibilityWarning, match="other scores each time"):
        metfa.metrics.insertion(model, images, images[:, 0], 0)


def mixing_from(n, change):
    def model(images):
        rows = images if len(images) < n else change(images)
        weights = torch.linspace(-1, 1, 48).sin().reshape(16, 3)
        return torch.tanh(rows.flatten(1) @ weights)

    return model


def by_mean(x):
    return x - x.mean(0, keepdim=True)


def by_largest(x):
    return x / x.max()


@pytest.mark.parametrize(
    "asked",
    [
        lambda called, images: metfa.metrics.insertion(called, images, images[:, 0], 0).score,
        lambda called, images: metfa.explainers.RISE(called, n_masks=20, grid=2, rng=0)(images, 0)[0],
    ],
)
def test_rows_that_mix_only_in_larger_batches_are_seen(asked):
    """The first batch of three rows shows nothing; a later one is larger."""
    images = torch.rand(3, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    right = asked(mixing_from(100, by_mean), images)
    with pytest.warns(RowDependenceWarning, match=SAID):
        np.testing.assert_allclose(asked(mixing_from(4, by_mean), images), right, atol=1e-5)


@pytest.mark.parametrize("change", [by_mean, by_largest, lambda x: x - x[:1], lambda x: x + x.roll(1, 0)])
@pytest.mark.parametrize("n", [3, 10])
def test_gradients_whose_rows_mix_only_in_larger_batches(change, n):
    """The clean rows are asked about first. A small change is judged beside as many rows, not beside three."""
    images = torch.rand(n, 1, 4, 4, generator=torch.Generator().manual_seed(0))

    def values(model):
        return metfa.explain(
            metfa.explainers.Gradient(model), images, noise=metfa.noise.Uniform(0.1), n_samples=4, batch_size=10, rng=0
        ).values

    right = values(mixing_from(100, change))
    with pytest.warns(RowDependenceWarning):
        np.testing.assert_allclose(values(mixing_from(8, change)), right, atol=1e-4)


def test_a_smoothed_explainer_looks_again_at_more_rows():
    images = torch.rand(6, 1, 4, 4, generator=torch.Generator().manual_seed(0))

    def smoothed(k):
        def explainer(inputs, target):
            return inputs[:, 0] if len(inputs) < k else by_mean(inputs[:, 0])

        return metfa.Smoothed(
            explainer, noise=metfa.noise.Uniform(0.1), n_samples=2, confidence_level=0.5, batch_size=10, rng=0
        )

    mixing = smoothed(8)
    mixing(images[:2], 0)
    with pytest.warns(RowDependenceWarning):
        found = mixing(images, 0)
    np.testing.assert_allclose(found, smoothed(100)(images, 0), atol=1e-6)


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
