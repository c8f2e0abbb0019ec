"""Noise that keeps the rows of a table likely: some columns are drawn from rows that are near in the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from metfa._base.validation import check_number, positive_int
from metfa.noise.draws import generator_of
from metfa.noise.table_rows import Table, TableNoise, groups_of

__all__ = ["from_table"]

MOST_ROWS = 2000  # of the table that are kept, and looked through for each noisy row
AT_ONCE = 64  # noisy rows: their distances to all rows of the table fit in a processor's cache
CORNER = 0.5**0.5  # so that two of them are 1 apart
SAME = 1e-9  # of squared distances in standard deviations: rounding alone, which batches change, is far less


def from_table(
    table: Any,
    share: float = 0.2,
    *,
    neighbours: int = 10,
    categorical: Sequence[int | str] = (),
    together: Sequence[Sequence[int | str]] = (),
    derived: Mapping[Any, Callable[[dict[Any, Any]], Any]] | None = None,
    feature_names: Sequence[str] | None = None,
    rng: Any = 0,
) -> Any:
    """Noise for one row of a table that moves correlated columns together: values come from rows that are near.

    Each column is chosen with probability `share`, and if none is, then one of them. So with few columns each is drawn
    more often: with the probability ``share + (1 - share)**k / k`` of k columns, .30 for four and `share` .2. The
    values of the chosen columns are those of one row of the table: one of the `neighbours` rows that are nearest in the
    columns that were not chosen, by chance among rows that are equally far. So a noisy row has values that occur, in
    combinations that are likely: this is a draw from the law of the chosen columns, given the others.

    Parameters
    ----------
    table : array or data frame, (rows, columns)
        Data with the same columns as the rows to be explained, such as the training table. If it has more than 2,000
        rows, so many are kept, by chance.
    share : float
        Probability of each column to be drawn anew, above 0; 1 gives whole rows of the table. At least one column is.
    neighbours : int
        How many rows count as near. Fewer keep closer to the row, more are more different from each other.
    categorical : sequence of int or str
        Columns whose numbers are codes of categories, by position or by name: two different codes are equally far. In a
        frame columns of labels, and of true and false, always are.
    together : sequence of sequences of int or str
        Columns that are drawn as one, such as those of a one-hot code, or a total and its parts.
    derived : dict of functions, optional
        Columns that others give, by name: ``{"ratio": lambda row: row["debt"] / row["income"]}``. The function gets a
        dict of the noisy row's values. It must give the values of `table`, too.
    feature_names : sequence of str, optional
        Names of the columns of an array.
    rng : int, numpy.random.Generator or None
        Which rows of a large table are kept.

    Returns
    -------
    callable
        A noise. Made from a data frame, it is matched by name to the frame that is explained. Types are kept, and what
        is missing in a row stays missing.

    Raises
    ------
    TypeError, ValueError
        For bad arguments; when used, if the frame that is explained has other columns.

    Notes
    -----
    Distances are Euclidean: columns of numbers count in units of their standard deviation, two different categories as
    one such unit. What is missing counts as the mean, and as one unit apart from what is not.

    This law was chosen by measurement. A random forest that tells noisy rows from other rows of the same table (see
    `likeness`) is at .50 where it cannot, and independent noise of each column is found at once.
    :doc:`/howto/tables` has the figures.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> rng = np.random.default_rng(0)
    >>> height = rng.normal(170, 10, size=500)
    >>> table = np.stack([height, height - 100 + rng.normal(0, 5, size=500)], axis=1)
    >>> noise = metfa.noise.from_table(table, 0.5)
    >>> noisy = np.array([noise(row, rng) for row in table])
    >>> bool(np.corrcoef(noisy.T)[0, 1] > 0.85)
    True
    """
    share = check_number(share, "share", above=0.0, most=1.0)
    neighbours = positive_int(neighbours, "neighbours")
    made, draws = Table.of(table, feature_names, "table"), generator_of(rng)
    if len(made.codes) < 2:
        raise ValueError(f"`table` must have at least 2 rows, from which columns are drawn, got {len(made.codes)}")
    return NearRows(made, share, neighbours, groups_of(made, together, categorical), categorical, derived, draws)


class NearRows(TableNoise):
    """Noise of `from_table`."""

    share: float
    neighbours: int

    def __init__(
        self,
        table: Table,
        share: float,
        neighbours: int,
        groups: list[np.ndarray],
        categorical: Any,
        derived: Any,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(table, np.ones(len(table.columns), bool), derived)
        self.share, self.neighbours = share, neighbours
        computed = {place for place, _ in self._derived}
        grouped = {place for group in groups for place in group}
        alone = [np.array([place]) for place in range(len(table.columns)) if place not in grouped]
        self._groups = [group for group in [*groups, *alone] if not computed & set(group.tolist())]
        if not self._groups:
            raise ValueError("`derived` names all columns, so that there is none to draw anew")
        rows = table.codes
        if len(rows) > MOST_ROWS:
            rows = rows[np.sort(rng.choice(len(rows), MOST_ROWS, replace=False))]
        self._rows = rows
        category = table.labelled.copy()
        category[[table.place(entry, "categorical") for entry in categorical]] = True
        self._space = _Space(rows, category, [place for place in range(len(category)) if place not in computed])
        points = self._space.points(rows)
        self._products = np.concatenate([points**2, -2 * points], axis=1).T  # what distances are sums of
        self._members = np.zeros((len(self._groups), len(category)), bool)
        for members, group in zip(self._members, self._groups, strict=True):
            members[group] = True

    def moved(self, rows: np.ndarray, rngs: Iterable[np.random.Generator]) -> np.ndarray:
        """See `TableNoise`."""
        rngs = list(rngs)
        parts = (slice(start, start + AT_ONCE) for start in range(0, len(rows), AT_ONCE))
        return np.concatenate([self._moved(rows[part], rngs[part]) for part in parts])

    def _moved(self, rows: np.ndarray, rngs: list[np.random.Generator]) -> np.ndarray:
        chosen = np.array([rng.random(len(self._groups)) for rng in rngs]) < self.share
        for row in np.flatnonzero(~chosen.any(axis=1)):
            chosen[row, rngs[row].integers(len(self._groups))] = True
        anew = chosen @ self._members
        weights = self._space.weights(anew)
        coordinates = np.concatenate([weights, weights * self._space.points(rows)], axis=1)
        values = self._rows[self._near(coordinates @ self._products, rngs)]
        return np.where(anew & ~np.isnan(values), values, rows).astype(rows.dtype, copy=False)

    def _near(self, distances: np.ndarray, rngs: list[np.random.Generator]) -> np.ndarray:
        """For each row one of the nearest of the table, by distances (n, rows of the table) less what all have."""
        most = min(self.neighbours, len(self._rows))
        nearest = np.sort(np.partition(distances, most - 1, axis=1)[:, :most], axis=1)
        distance = np.array([[near[rng.integers(most)]] for near, rng in zip(nearest, rngs, strict=True)])
        alike = np.abs(distances - distance) <= SAME * (1 + np.abs(distance))
        found = alike.argmax(axis=1)
        for row in np.flatnonzero(np.count_nonzero(alike, axis=1) > 1):
            found[row] = rngs[row].choice(np.flatnonzero(alike[row]))
        return found

    def __repr__(self) -> str:
        derived = f", derived={[self.columns.names[place] for place, _ in self._derived]}" if self._derived else ""
        rows = f"{len(self._rows)} row{'s' * (len(self._rows) != 1)}"
        return (
            f"from_table({self.share:g}, neighbours={self.neighbours}{derived}, {rows} of table "
            f"{self.table.digest}, law: columns drawn from rows near in the others)"
        )


class _Space:
    """Rows as points: numbers in standard deviations, categories as corners, and whether a value is missing."""

    def __init__(self, rows: np.ndarray, category: np.ndarray, places: list[int]) -> None:
        self._numbers = np.array([place for place in places if not category[place]], np.int64)
        known = ~np.isnan(rows)
        counts = np.maximum(known.sum(axis=0), 1)
        centre = np.where(known, rows, 0).sum(axis=0) / counts
        spread = np.sqrt((np.where(known, rows - centre, 0) ** 2).sum(axis=0) / counts)
        self._centre, self._scale = centre[self._numbers], np.where(spread > 0, spread, 1.0)[self._numbers]
        corners = [
            (place, code) for place in places if category[place] for code in np.unique(rows[known[:, place], place])
        ]
        self._corner_places = np.array([place for place, _ in corners], np.int64)
        self._corner_codes = np.array([code for _, code in corners])
        self._gaps = np.array([place for place in places if not known[:, place].all()], np.int64)
        self._owners = np.concatenate([self._numbers, self._corner_places, self._gaps])

    def points(self, rows: np.ndarray) -> np.ndarray:
        """Points (..., coordinates) of one row or of several."""
        numbers = (rows.take(self._numbers, axis=-1) - self._centre) / self._scale
        numbers[np.isnan(numbers)] = 0.0
        corners = (rows.take(self._corner_places, axis=-1) == self._corner_codes) * CORNER
        gaps = np.isnan(rows.take(self._gaps, axis=-1))
        return np.concatenate([numbers, corners, gaps], axis=-1)

    def weights(self, without: np.ndarray) -> np.ndarray:
        """1 for each coordinate but those of some columns, (..., columns)."""
        return (~without).take(self._owners, axis=-1).astype(np.float64)
