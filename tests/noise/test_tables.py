"""Noise made from tables with named columns: its laws, ranges, types, groups, and how it is matched."""

import numpy as np
import pandas as pd
import pytest

import metfa
from metfa.noise import Laplace, Uniform, from_table, likeness, per_column
from metfa.noise.likeness import Likeness
from metfa.sampling.rows import Rows

RNG = np.random.default_rng(0)
N = 600
AGE = RNG.integers(18, 80, N)
INCOME = np.exp(RNG.normal(3, 0.3, N) + 0.01 * AGE)
DEBT = INCOME * RNG.beta(2, 5, N)
TOWN = RNG.choice(["Ulm", "Bonn", "Kiel"], N, p=[0.6, 0.3, 0.1])
TABLE = pd.DataFrame(
    {
        "age": AGE,
        "income": INCOME,
        "debt": DEBT,
        "ratio": (DEBT / INCOME).round(3),
        "town": TOWN,
        "owner": np.median(INCOME) < INCOME,
        "pension": np.where(AGE > 40, INCOME * 0.4, np.nan),
        "ulm": (TOWN == "Ulm").astype(int),
        "bonn": (TOWN == "Bonn").astype(int),
        "kiel": (TOWN == "Kiel").astype(int),
    }
)
RATIO = {"ratio": lambda row: row["debt"] / row["income"]}
PLACES = ["town", "ulm", "bonn", "kiel"]


def noisy_rows(noise, table, n=None, seed=1):
    """One noisy copy of each row, as a frame."""
    rows, matched = Rows(table).matched(noise)
    indices = range(len(table)) if n is None else [0] * n
    rngs = np.random.default_rng(seed).spawn(len(indices))
    return rows.batch(rows.noisy(indices, matched, rngs, [f"row {row}" for row in indices]))


@pytest.fixture(scope="module")
def by_column():
    noise = per_column(TABLE, 0.3, resample=0.5, together=[PLACES], derived=RATIO)
    return noise, noisy_rows(noise, TABLE)


@pytest.fixture(scope="module")
def near():
    noise = from_table(TABLE, 0.4, together=[PLACES], derived=RATIO)
    return noise, noisy_rows(noise, TABLE)


@pytest.fixture(params=["by_column", "near"])
def made(request):
    return request.getfixturevalue(request.param)


class TestOfEachNoise:
    def test_types_ranges_and_missing_values_are_kept(self, made):
        _, noisy = made
        assert noisy.dtypes.equals(TABLE.dtypes)
        assert (noisy["age"].between(AGE.min(), AGE.max())).all()
        assert (noisy[["income", "debt", "ratio"]] > 0).all(axis=None)
        assert noisy["pension"].isna().equals(TABLE["pension"].isna())

    def test_one_hot_columns_move_as_one(self, made):
        _, noisy = made
        assert (noisy[["ulm", "bonn", "kiel"]].sum(axis=1) == 1).all()
        for name in ("Ulm", "Bonn", "Kiel"):
            assert ((noisy["town"] == name) == (noisy[name.lower()] == 1)).all()
        assert 0.1 < (noisy["town"] != TABLE["town"]).mean() < 0.5

    def test_a_ratio_is_that_of_its_parts(self, made):
        _, noisy = made
        np.testing.assert_allclose(noisy["ratio"], noisy["debt"] / noisy["income"], atol=6e-4)

    def test_categories_keep_their_frequencies(self, made):
        _, noisy = made
        found = noisy["town"].value_counts(normalize=True)
        for name, share in (("Ulm", 0.6), ("Bonn", 0.3), ("Kiel", 0.1)):
            assert abs(found[name] - share) < 0.06

    def test_it_is_matched_by_name(self, made):
        noise, noisy = made
        order = list(reversed(TABLE.columns))
        pd.testing.assert_frame_equal(noisy_rows(noise, TABLE[order])[list(TABLE)], noisy)

    def test_its_repr_names_what_it_is(self, made):
        noise, _ = made
        assert "\n" not in repr(noise)
        assert repr(noise) != repr(per_column(TABLE, 0.2))
        assert "'ratio'" in repr(noise)


class TestPerColumn:
    def test_its_law(self):
        rows = TABLE[["income", "age"]]
        for law in (metfa.noise.Gaussian, Uniform, Laplace):
            noise = per_column(rows, 0.1, law=law)
            moved = noisy_rows(noise, rows.assign(age=50, income=40.0), 4000)
            spread = {metfa.noise.Gaussian: 1.0, Uniform: 3**-0.5, Laplace: 2**0.5}[law] * 0.1 * rows.std()
            np.testing.assert_allclose(moved["income"].std(), spread["income"], rtol=0.06)
            np.testing.assert_allclose(moved["age"].std() ** 2, spread["age"] ** 2 + 1 / 12, rtol=0.12)

    def test_categories_are_drawn_with_their_frequencies(self):
        moved = noisy_rows(per_column(TABLE, 0.1, resample=0.5), TABLE[TABLE.town == "Ulm"], 4000)
        found = moved["town"].value_counts(normalize=True)
        share = (TABLE.town == "Kiel").mean()
        assert abs(found["Kiel"] - 0.5 * share) < 4 * (share / 4000) ** 0.5
        assert abs(found["Ulm"] - (0.5 + 0.5 * (TABLE.town == "Ulm").mean())) < 0.04

    def test_rows_outside_the_range_stay_there(self):
        row = TABLE[:1].assign(age=95, income=1e4)
        moved = noisy_rows(per_column(TABLE, 0.1), row, 200)
        assert moved["age"].max() == 95
        assert moved["income"].max() == 1e4
        assert moved["age"].min() < 95

    def test_without_resampling_categories_stay(self):
        moved = noisy_rows(per_column(TABLE, 0.3), TABLE)
        assert moved[["town", "owner"]].equals(TABLE[["town", "owner"]])

    def test_numbers_of_a_row_that_nothing_corrects_are_those_of_the_law(self):
        rows = TABLE[["income"]].astype(float)
        noise = per_column(rows, 0.01)
        got = noise(rows.to_numpy()[5], np.random.default_rng(3))
        expected = noise.law(rows.to_numpy()[5], np.random.default_rng(3))
        np.testing.assert_array_equal(got, expected)

    def test_all_missing_and_constant_columns_stay(self):
        table = TABLE[["income"]].assign(gone=np.nan, same=3.0)
        moved = noisy_rows(per_column(table, 0.2), table)
        assert moved[["gone", "same"]].equals(table[["gone", "same"]])

    def test_integer_names_are_names(self):
        table = pd.DataFrame(RNG.random((20, 3)), columns=[2, 0, 1])
        assert per_column(table, 0.1, categorical=[0]).law.std[1] == 0
        with pytest.raises(ValueError, match="`categorical` names 3, which is no column of the table; it has "):
            per_column(table, 0.1, categorical=[3])


class TestFromTable:
    def test_one_row_is_no_table(self):
        with pytest.raises(ValueError, match=r"`table` must have at least 2 rows, .*got 1"):
            metfa.noise.from_table(np.ones((1, 3)), 0.2)

    def test_correlated_columns_move_together(self, near):
        _, noisy = near
        assert (noisy["income"] != TABLE["income"]).mean() > 0.3
        for pair in (["age", "income"], ["income", "debt"]):
            assert abs(noisy[pair].corr().iloc[0, 1] - TABLE[pair].corr().iloc[0, 1]) < 0.1
        assert ((noisy["income"] > INCOME[TABLE["owner"]].min()) == noisy["owner"]).mean() > 0.9

    def test_values_are_those_of_the_table(self, near):
        _, noisy = near
        assert set(noisy["income"]) <= set(TABLE["income"])

    def test_the_whole_row_is_one_of_the_table(self):
        rows = TABLE.drop(columns="pension")
        moved = noisy_rows(from_table(rows, 1.0), rows[:30])
        assert len(moved.merge(rows)) == 30

    def test_one_column_is_drawn_at_least(self):
        rows = TABLE[["age", "income"]]
        moved = noisy_rows(from_table(rows, 1e-9, neighbours=100), rows)
        assert ((moved != rows).sum(axis=1) <= 1).all()
        assert (moved != rows).any(axis=1).mean() > 0.9

    def test_rows_that_are_equally_far_are_drawn_alike(self):
        town = np.repeat(["Ulm", "Bonn"], 300)
        table = pd.DataFrame({"town": town, "ill": np.arange(600) % 300 < np.where(town == "Ulm", 60, 180)})
        rows = table.iloc[np.repeat([100, 590], 500)]  # both not ill
        moved = noisy_rows(from_table(table, 1e-9), rows)  # one of two columns each time
        of_town = ((moved["town"] == rows["town"].to_numpy()) & moved["ill"].to_numpy()).to_numpy().reshape(2, -1)
        np.testing.assert_allclose(of_town.mean(axis=1), [0.5 * 0.2, 0.5 * 0.6], atol=0.06)

    def test_a_share_of_one_draws_from_the_whole_table(self):
        table = np.arange(200.0).reshape(-1, 2)
        noise, rng = from_table(table, 1.0), np.random.default_rng(0)
        assert len({noise(table[0], rng)[0] for _ in range(500)}) > 90

    def test_arrays(self):
        rows = np.stack([INCOME, DEBT], axis=1)
        noise = from_table(rows, 0.5, derived={1: lambda row: row[1]})
        assert noise(rows[0].astype(np.float32), np.random.default_rng(0)).dtype == np.float32
        with pytest.raises(ValueError, match=r"for rows of 2 columns, one input has shape \(3,\)"):
            noise(np.ones(3), np.random.default_rng(0))

    def test_large_tables_are_thinned(self):
        noise = from_table(np.random.default_rng(0).normal(size=(5000, 2)), 0.5)
        assert "2000 rows of table" in repr(noise)

    def test_unseen_categories_and_missing_values_are_no_neighbours(self):
        rows = TABLE[:20].assign(town=["Rom", *TABLE["town"][1:20]])
        moved = noisy_rows(from_table(TABLE, 0.3), rows)
        assert set(moved["town"]) <= {"Rom", "Ulm", "Bonn", "Kiel"}


class TestLikeness:
    @pytest.mark.slow
    def test_it_finds_what_does_not_occur(self):
        table = TABLE[["age", "income", "debt", "ratio"]]
        bad = likeness(per_column(table[:300], 0.5), table[300:])
        good = likeness(from_table(table[:300], 0.3, derived=RATIO), table[300:])
        assert bad.auc > 0.62 > good.auc
        assert 0.35 < bad.clean < 0.62
        assert bad.n_rows == 150

    def test_its_numbers_are_short(self):
        assert repr(Likeness(0.6424000000000001, 0.5, 100)) == "Likeness(auc=0.6424, clean=0.5, n_rows=100)"

    def test_few_rows(self):
        with pytest.raises(ValueError, match="`table` must have at least 40 rows, got 10"):
            likeness(per_column(TABLE, 0.1), TABLE[:10])


@pytest.mark.parametrize(
    ("made", "settings", "error", "message"),
    [
        (per_column, {"derived": {"ratio": lambda row: 100 * row["debt"] / row["income"]}}, ValueError,
         r"`derived\['ratio'\]` gives .* for row 0 of the table, which holds .*in their units"),
        (per_column, {"derived": {"rato": len}}, ValueError, "`derived` names 'rato', .* did you mean 'ratio'"),
        (from_table, {"derived": {"ratio": lambda row: row["dept"]}}, ValueError,
         r"`derived\['ratio'\]` asks for the column 'dept', which the table does not have, did you mean 'debt'"),
        (per_column, {"derived": {"ratio": lambda row: "high"}}, TypeError, "a value of its column, got str"),
        (per_column, {"derived": [1]}, TypeError, "`derived` must be a dict of functions"),
        (per_column, {"together": [["age"], ["age"]]}, ValueError, "`together` must name each column once, got 'age'"),
        (per_column, {"together": ["age"]}, TypeError, "`together` must be a list of lists of columns"),
        (per_column, {"resample": 2.0}, ValueError, "`resample` must be finite and .* at most 1, got 2"),
        (from_table, {"categorical": ["Town"]}, ValueError, "`categorical` names 'Town', .* did you mean 'town'"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit(made, settings, error, message):
    with pytest.raises(error, match=message):
        made(TABLE, 0.2, **settings)


def test_shares_that_do_not_fit():
    for share in (0, 1.5):
        with pytest.raises(ValueError, match="`share` must be finite and above 0 and at most 1"):
            from_table(TABLE, share)
    with pytest.raises(ValueError, match="got a frame without rows"):
        from_table(TABLE[:0], 0.2)
    with pytest.raises(TypeError, match=r"`table` must be a table of numbers \(rows, columns\), got list"):
        from_table([["a"]], 0.2)
    with pytest.raises(TypeError, match=r"made from a frame with labels: give `metfa\.explain`"):
        from_table(TABLE, 0.2)(np.ones(len(TABLE.columns)), np.random.default_rng(0))
