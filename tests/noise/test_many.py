"""Noise of many rows at once: each row gets the numbers that it gets alone, bit by bit."""

import numpy as np
import pandas as pd
import pytest
import torch

from metfa.noise import Brightness, Compose, FilteredGaussian, Gaussian, Laplace, Uniform, from_table, per_column
from metfa.noise.many import OfMany, many_of
from metfa.sampling.rows import Rows

N = 70  # more than `from_table` looks at together
RNG = np.random.default_rng(0)
TABLE = np.concatenate([RNG.normal(size=(200, 3)), RNG.integers(0, 3, (200, 3))], axis=1)
FRAME = pd.DataFrame(
    {
        "income": TABLE[:, 0],
        "children": TABLE[:, 3].astype(int),
        "town": np.array(["Ulm", "Bonn", "Kiel"])[TABLE[:, 4].astype(int)],
        "pension": np.where(TABLE[:, 5] > 0, TABLE[:, 1], np.nan),
    }
)
FRAME["half"] = FRAME["income"] / 2
HALF = {"half": lambda row: row["income"] / 2}


def rngs(n=N):
    return [np.random.default_rng(seed) for seed in range(n)]


NOISES = [
    Uniform(0.1),
    Uniform([0.1, 0, 0.2, 0.3, 0, 1], bounds=(-9, 9)),
    Gaussian(0.3, bounds=(-5, 5)),
    Laplace([0.1] * 6),
    Compose(Gaussian(0.1), Uniform(0.2), from_table(TABLE)),
    per_column(TABLE, 0.2, categorical=[3, 4], resample=0.5),
    per_column(TABLE, 0.2, law=lambda stds: lambda x, rng: x + stds * rng.normal(size=x.shape), resample=0.5),
    from_table(TABLE, 0.3, together=[[0, 1]]),
    from_table(TABLE[:, :6].round(), 0.3, categorical=[3]),  # with many rows that are equally far
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("noise", NOISES, ids=[f"{k}-{type(noise).__name__}" for k, noise in enumerate(NOISES)])
def test_each_row_has_the_numbers_that_it_has_alone(noise, dtype):
    rows = TABLE[:N].astype(dtype)
    found = many_of(noise)(rows, iter(rngs()))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, [noise(row, rng) for row, rng in zip(rows, rngs(), strict=True)])


@pytest.mark.parametrize(
    "noise",
    [
        per_column(FRAME, 0.3, resample=0.5, derived=HALF),
        from_table(FRAME, 0.3, derived=HALF),
        Compose(per_column(FRAME, 0.3), from_table(FRAME)),
    ],
    ids=["per_column", "from_table", "Compose"],
)
def test_rows_of_frames_too(noise):
    rows, matched = Rows(FRAME[["town", "half", "pension", "children", "income"]][:N]).matched(noise)
    names = [f"row {row}" for row in range(N)]
    together = rows.noisy(range(N), matched, rngs(), names)
    alone = [rows.noisy([row], matched, [rng], names)[0] for row, rng in enumerate(rngs())]
    assert isinstance(together, np.ndarray)
    np.testing.assert_array_equal(together, alone)
    assert (np.nan_to_num(together) != np.nan_to_num(rows.host[:N])).any(axis=1).mean() > 0.5


def test_added_numbers_are_those_of_the_generator():
    std = np.array([0.1, 0, 0.2, 0.3, 0, 1])
    found = Gaussian(std).many(TABLE[:N], rngs())
    expected = [row + std * rng.standard_normal(6) for row, rng in zip(TABLE, rngs(), strict=False)]
    np.testing.assert_array_equal(found, expected)


def test_values_near_are_those_of_the_definition():
    """Distances to each row of the table, one row after the other."""
    scaled = TABLE / TABLE.std(axis=0)

    def by_hand(row, rng, share, neighbours):
        chosen = rng.random(6) < share
        if not chosen.any():
            chosen[rng.integers(6)] = True
        distances = (((scaled - row / TABLE.std(axis=0))[:, ~chosen]) ** 2).sum(axis=1)
        distance = np.sort(distances)[rng.integers(neighbours)]
        alike = np.flatnonzero(np.isclose(distances, distance, rtol=1e-9, atol=1e-9))
        return np.where(chosen, TABLE[alike[rng.integers(len(alike))]], row)

    rows = TABLE[:N] + 0.1
    expected = [by_hand(row, rng, 0.4, 7) for row, rng in zip(rows, rngs(), strict=True)]
    np.testing.assert_array_equal(from_table(TABLE, 0.4, neighbours=7).many(rows, rngs()), expected)


def test_series_with_a_strength_for_each_channel():
    series, noise = RNG.normal(size=(5, 2, 30)), FilteredGaussian([0.1, 0.4], high=0.2)
    alone = [noise(one, rng) for one, rng in zip(series, rngs(5), strict=True)]
    np.testing.assert_array_equal(noise.many(series, rngs(5)), alone)


def test_torch_keeps_its_graph():
    rows = torch.tensor(TABLE[:3], requires_grad=True)
    found = Gaussian(0.1).many(rows, rngs(3))
    np.testing.assert_array_equal(found.detach(), Gaussian(0.1).many(TABLE[:3], rngs(3)))
    found.sum().backward()
    assert (rows.grad == 1).all()


@pytest.mark.parametrize("n", [2, 4])
def test_each_row_needs_a_generator(n):
    with pytest.raises(ValueError, match="zip"):
        Gaussian(0.1).many(TABLE[:3], rngs(n))


def test_a_call_of_ones_own_is_never_passed_over():
    class Doubled(Gaussian):
        def __call__(self, x, rng):
            return 2 * super().__call__(x, rng)

    class Both(Doubled):
        def many(self, rows, rngs):
            return rows

    assert many_of(Doubled(0.1)) is None
    assert many_of(Both(0.1))(TABLE, ()) is TABLE
    assert many_of(lambda x, rng: x) is None
    assert many_of(Compose(Gaussian(0.1), Brightness(0.9, 1.1))) is None
    rows = Rows(TABLE[:2])
    doubled, once = (rows.noisy([0, 1], noise(0.1), rngs(2), ["a", "b"]) for noise in (Doubled, Gaussian))
    np.testing.assert_array_equal(doubled, 2 * once)


class Made(OfMany):
    def __init__(self, made):
        self.made = made

    def many(self, rows, rngs):
        return self.made(rows)


class TestWhatIsMade:
    def noisy(self, made, inputs=TABLE):
        return Rows(inputs).noisy([0, 2, 3], Made(made), rngs(3), [f"input {row}, sample 1" for row in (0, 2, 3)])

    def test_other_kinds_become_the_rows_own(self):
        found = self.noisy(lambda rows: (rows + 1).astype(np.float32), TABLE.astype(np.float64))
        assert [row.dtype for row in found] == [np.float64] * 3
        assert isinstance(self.noisy(lambda rows: torch.tensor(rows))[0], np.ndarray)

    def test_the_batch_may_be_written_to(self):
        batch = Rows(TABLE).batch(self.noisy(lambda rows: np.broadcast_to(rows[0], rows.shape)))
        batch += 1

    @pytest.mark.parametrize(
        ("made", "error", "message"),
        [
            (
                lambda rows: np.where(rows == rows[1, 0], np.nan, rows),
                ValueError,
                "NaN or infinity of input 2, sample",
            ),
            (lambda rows: rows[:, :2], ValueError, r"changed the shape of input 0, sample 1 from \(6,\) to \(2,\)"),
            (lambda rows: rows[:2], ValueError, "`noise.many` must return a row for each of 3, got 2"),
            (lambda rows: rows + 1j, TypeError, "returned complex128 for input 0, sample 1, which is float64"),
        ],
    )
    def test_what_does_not_fit_is_named(self, made, error, message):
        with pytest.raises(error, match=message):
            self.noisy(made)

    def test_of_a_frame_too(self):
        def texts(rows):
            rows[1, 2] += 0.5
            return rows

        with pytest.raises(TypeError, match=r"made \d\.5 of column 'town' of input 2, sample 1, which holds labels"):
            self.noisy(texts, FRAME[["income", "children", "town"]])
