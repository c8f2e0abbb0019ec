"""How much noisy rows look like rows of a table: whether a classifier can tell them apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._base.validation import check_function, positive_int
from metfa.noise.draws import generator_of
from metfa.noise.table_rows import Table

__all__ = ["Likeness", "likeness"]

FEWEST = 20  # rows of either kind


@dataclass(frozen=True)
class Likeness:
    """How well a classifier tells noisy rows from rows of the table.

    Attributes
    ----------
    auc : float
        Area under the ROC curve of rows that the classifier was not fitted on: .5 where nobody can tell them apart, 1
        where each noisy row is recognised.
    clean : float
        The same for the rows without noise, which are rows of the table: what chance alone gives.
    n_rows : int
        Number of noisy rows.
    """

    auc: float
    clean: float
    n_rows: int

    def __repr__(self) -> str:
        return f"Likeness(auc={self.auc:.4g}, clean={self.clean:.4g}, n_rows={self.n_rows})"


def likeness(noise: Any, table: Any, *, folds: int = 5, rng: Any = 0) -> Likeness:
    """Whether a classifier can tell noisy rows of a table from its other rows (a classifier two-sample test).

    Half of the rows, drawn by chance, get noise. A random forest learns to tell them from the other half, in all folds
    but one, and judges the rows of this one. Maps of noisy rows that it recognises are maps of inputs that do not
    occur, of which a model may say anything.

    Parameters
    ----------
    noise : callable
        Such as `per_column` or `from_table`.
    table : array or data frame, (rows, columns)
        Rows that the noise was not made from, if possible, at least 40 of them.
    folds : int
        Parts of the cross-validation, at least 2.
    rng : int, numpy.random.Generator or None
        Seed of the halves, of the noise and of the forest.

    Returns
    -------
    Likeness

    Raises
    ------
    TypeError, ValueError
        If there are too few rows, or the noise is not for such rows.

    References
    ----------
    D. Lopez-Paz and M. Oquab, "Revisiting classifier two-sample tests", ICLR 2017.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> rng = np.random.default_rng(0)
    >>> height = rng.normal(170, 10, size=600)
    >>> table = np.stack([height, height - 100 + rng.normal(0, 2, size=600)], axis=1)
    >>> apart = metfa.noise.likeness(metfa.noise.per_column(table, 0.5), table)
    >>> near = metfa.noise.likeness(metfa.noise.from_table(table[:300], 0.5), table[300:])
    >>> apart.auc > 0.65 > near.auc
    True
    """
    check_function(noise, "noise", "noise(x, rng)", None, None)
    folds = positive_int(folds, "folds", minimum=2)
    rows = Table.of(table, None, "table")
    if len(rows.codes) < 2 * max(FEWEST, folds):
        raise ValueError(f"`table` must have at least {2 * max(FEWEST, folds)} rows, got {len(rows.codes)}")
    codes, columns, noisy = rows.codes, rows.columns, noise
    if columns.library != "numpy" and hasattr(noise, "for_columns"):
        joined, noisy = noise.for_columns(columns)
        codes = joined.recoded(codes, columns)
    draws = generator_of(rng)
    order = draws.permutation(len(codes))
    clean, other = codes[order[: len(codes) // 2]], codes[order[len(codes) // 2 :]]
    moved = np.array([noisy(row, draws) for row in clean])
    seed = int(draws.integers(2**31))
    return Likeness(_auc(moved, other, folds, seed), _auc(clean, other, folds, seed), len(clean))


def _auc(first: np.ndarray, second: np.ndarray, folds: int, seed: int) -> float:
    """Cross-validated area under the curve of a forest that tells the rows `first` from the rows `second`."""
    try:
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.metrics import roc_auc_score
        from sklearn.model_selection import StratifiedKFold, cross_val_predict
    except ImportError:
        raise ImportError("`likeness` fits a random forest: `pip install scikit-learn`") from None

    rows, kinds = np.concatenate([first, second]), np.repeat([1, 0], [len(first), len(second)])
    forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=seed, n_jobs=1)
    parts = StratifiedKFold(folds, shuffle=True, random_state=seed)
    found = np.asarray(cross_val_predict(forest, rows, kinds, cv=parts, method="predict_proba"))
    return float(roc_auc_score(kinds, found[:, 1]))
