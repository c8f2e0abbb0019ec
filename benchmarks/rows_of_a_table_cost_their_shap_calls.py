"""500 rows of 30 columns, N = 50, by SHAP's tree explainer: at most 1.15 times the bare calls; table, figure, page.

The bare calls explain the same noisy rows, made beforehand, in batches of the same size, and ask for the same
probabilities. Forest and boosting are trained on rows of their own.
"""

import io
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import shap
from sklearn.ensemble import RandomForestClassifier

import metfa
from benchmarks.measuring import compare, seconds

ROWS, COLUMNS, N, BATCH = 500, 30, 50, 1_000


def made():
    """Rows to explain and the training table, of columns that depend on each other."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(2_000, 6))
    values = hidden @ rng.normal(size=(6, COLUMNS)) + rng.normal(size=(2_000, COLUMNS))
    table = pd.DataFrame(values, columns=[f"column {number}" for number in range(COLUMNS)])
    answers = hidden[:, 0] + hidden[:, 1] ** 2 + rng.normal(scale=0.5, size=2_000) > 1
    return table.iloc[:ROWS], table.iloc[ROWS:], answers[ROWS:]


def models(train, answers):
    """Fitted models by name."""
    found = {"forest of 20 trees": RandomForestClassifier(20, max_depth=6, random_state=0)}
    try:
        from lightgbm import LGBMClassifier
    except ModuleNotFoundError:
        print("lightgbm is missing: the forest alone")
    else:
        found["lightgbm, 30 trees"] = LGBMClassifier(n_estimators=30, verbose=-1)
    return {name: model.fit(train, answers) for name, model in found.items()}


def main() -> None:
    rows, train, answers = made()
    noise = metfa.noise.from_table(train)
    draws = np.random.default_rng(0)
    spread = train.std().to_numpy()
    for name, model in models(train, answers).items():
        copies = [rows + 0.1 * spread * draws.normal(size=rows.shape) for _ in range(N)]
        noisy = pd.concat(copies)
        explainer = shap.TreeExplainer(model)

        def bare(model=model, noisy=noisy, explainer=explainer) -> None:
            for start in range(0, len(noisy), BATCH):
                explainer.shap_values(noisy.iloc[start : start + BATCH])
                model.predict_proba(noisy.iloc[start : start + BATCH])

        def ours(model=model):
            return metfa.tables.explain(
                model, rows, background=train, noise=noise, n_samples=N, batch_size=BATCH, rng=0
            )

        compare((f"{name}: metfa.tables.explain", "bare SHAP"), ours, bare, rounds=3, target=1.15)
    views(ours())


def views(sample) -> None:
    """Seconds for the table, the figure and the page of all rows, and the size of the page."""
    sample.of_input(0).plot()  # loads matplotlib
    print(f"to_dataframe: {seconds(sample.to_dataframe):.2f} s")
    print(f"plot.table: {seconds(lambda: metfa.plot.table(sample).savefig(io.BytesIO(), format='png', dpi=110)):.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        spent = seconds(lambda: sample.report(path))
        print(f"report: {spent:.2f} s (target 5), {path.stat().st_size / 1e6:.2f} MB (target 5)")


if __name__ == "__main__":
    main()
