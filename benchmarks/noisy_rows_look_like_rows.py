"""How well a random forest tells noisy rows of a table from its other rows, for three laws of the noise.

The noises are made from half of each table; a quarter gets noise and is compared with the last quarter. A Gaussian
copula of the ranks is the law that metfa does not have: it is written here.
"""

from collections.abc import Callable
from statistics import NormalDist

import numpy as np

import metfa

SPLITS = 4
STRENGTHS = {"per_column": (0.1, 0.2, 0.4), "copula": (0.2, 0.4, 0.7), "from_table": (0.1, 0.2, 0.5)}


def made(rows: int = 1200) -> np.ndarray:
    """Age, education, income, debt, debt over income, children, whether a home is owned, income a head."""
    rng = np.random.default_rng(1)
    age, education = rng.integers(18, 80, rows), rng.choice(4, rows, p=[0.3, 0.4, 0.2, 0.1])
    income = np.exp(2.5 + 0.02 * (age - 40) - 0.0005 * (age - 45) ** 2 + 0.3 * education + rng.normal(0, 0.4, rows))
    debt = np.where(rng.random(rows) < 0.3, 0, income * rng.beta(2, 5, rows) * np.where(education > 1, 0.6, 1.2))
    children = rng.poisson(np.clip((age - 20) / 20, 0, 1.5))
    owns = rng.random(rows) < 1 / (1 + np.exp(-3 * (np.log(income) - 2.7)))
    return np.stack([age, education, income, debt, debt / income, children, owns, income / (1 + children)], axis=1)


def copula(table: np.ndarray, strength: float) -> Callable[[np.ndarray, np.random.Generator], np.ndarray]:
    """Normal scores of the ranks move by correlated normal numbers, and become values of the table again."""
    n, columns = table.shape
    ordered, scores = np.sort(table, axis=0), np.array(list(map(NormalDist().inv_cdf, (np.arange(n) + 0.5) / n)))
    ties = np.random.default_rng(0)
    ranks = np.stack([scores[np.lexsort((ties.random(n), column)).argsort()] for column in table.T], axis=1)
    values, vectors = np.linalg.eigh(np.corrcoef(ranks.T))
    root = vectors * np.sqrt(np.clip(values, 0, None))

    def noise(row: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        below, upto = (ordered < row).sum(axis=0), (ordered <= row).sum(axis=0)
        place = (below + (upto - below) * rng.random(columns)) / n
        before = np.interp(place, (np.arange(n) + 0.5) / n, scores)
        after = np.sqrt(1 - strength**2) * before + strength * (root @ rng.standard_normal(columns))
        return ordered[np.abs(scores[:, None] - after).argmin(axis=0), np.arange(columns)]

    return noise


def main() -> None:
    from sklearn.datasets import load_breast_cancer, load_diabetes

    tables = {
        "breast cancer": (load_breast_cancer().data, []),
        "diabetes": (load_diabetes(scaled=False).data, [1]),
        "made": (made(), [1, 6]),
    }
    for name, (table, categorical) in tables.items():
        laws: dict[str, Callable] = {
            "per_column": lambda rows, k, c=categorical: metfa.noise.per_column(rows, k, categorical=c, resample=k),
            "copula": copula,
            "from_table": lambda rows, k, c=categorical: metfa.noise.from_table(rows, k, categorical=c),
        }
        spread = table.std(axis=0)
        numbers = [place for place in range(table.shape[1]) if place not in categorical]
        for law, make in laws.items():
            for strength in STRENGTHS[law]:
                found = []
                for split in range(SPLITS):
                    rng = np.random.default_rng(split)
                    rows = table[rng.permutation(len(table))]
                    noise = make(rows[: len(rows) // 2], strength)
                    alike = metfa.noise.likeness(noise, rows[len(rows) // 2 :], rng=split)
                    noisy = np.array([noise(row, rng) for row in rows[:200]])
                    moved = np.sqrt((((noisy - rows[:200]) / spread)[:, numbers] ** 2).mean())
                    found.append((moved, alike.auc, alike.clean))
                moved, auc, clean = np.mean(found, axis=0)
                print(
                    f"{name}: {law}({strength}): change {moved:.2f}, AUC {auc:.2f} (no noise {clean:.2f})", flush=True
                )


if __name__ == "__main__":
    main()
