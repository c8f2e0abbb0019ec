"""500 rows of 30 columns, N = 50, by SHAP's tree explainer: at most 1.15 times the bare calls; table, figure, page.

The bare calls explain the rows themselves and as many noisy rows, made beforehand, in batches of the same size, and ask
for the same probabilities. Both times are of the processor, so that other work matters less. ``--copies 5`` takes a
tenth of the time; the calls before sampling (which explainer, which unit) then weigh more. ``--models lightgbm`` leaves
out the forest.
"""

import argparse
import io
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import shap
from sklearn.ensemble import RandomForestClassifier

import metfa
from benchmarks.measuring import seconds

ROWS, COLUMNS, BATCH, ROUNDS = 500, 30, 1_000, 3


def made():
    """Rows to explain, the training table and its answers; columns depend on each other."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(2_000, 6))
    values = hidden @ rng.normal(size=(6, COLUMNS)) + rng.normal(size=(2_000, COLUMNS))
    table = pd.DataFrame(values, columns=[f"column {number}" for number in range(COLUMNS)])
    answers = hidden[:, 0] + hidden[:, 1] ** 2 + rng.normal(scale=0.5, size=2_000) > 1
    return table.iloc[:ROWS], table.iloc[ROWS:], answers[ROWS:]


def models(train, answers):
    """Fitted models by name, with the settings of their libraries."""
    found = {"forest of 100 trees": RandomForestClassifier(random_state=0)}
    try:
        from lightgbm import LGBMClassifier
    except ModuleNotFoundError:
        print("lightgbm is missing: the forest alone")
    else:
        found["lightgbm, 100 trees"] = LGBMClassifier(verbose=-1)
    return {name: model.fit(train, answers) for name, model in found.items()}


def processor(function) -> float:
    """Seconds of the processor that one call takes, in all threads."""
    start = time.process_time()
    function()
    return time.process_time() - start


def measured(name, model, rows, train, noise, copies):
    draws = np.random.default_rng(0)
    noisy = pd.concat([rows, *(rows + 0.1 * draws.normal(size=rows.shape) for _ in range(copies))])
    explainer = shap.TreeExplainer(model)

    def bare() -> None:
        for start in range(0, len(noisy), BATCH):
            explainer.shap_values(noisy.iloc[start : start + BATCH])
            model.predict_proba(noisy.iloc[start : start + BATCH])

    def ours() -> metfa.AttributionSample:
        given = {"background": train, "noise": noise, "n_samples": copies, "batch_size": BATCH, "rng": 0}
        return metfa.tables.explain(model, rows, **given)

    bare(), ours()
    times = [(processor(ours), processor(bare)) for _ in range(ROUNDS)]
    ratios = sorted(a / b for a, b in times)
    own, other = (statistics.median(part) for part in zip(*times, strict=True))
    print(
        f"{name}: {own:.2f} s, bare SHAP {other:.2f} s, ratio {statistics.median(ratios):.3f} ({ratios[0]:.3f} to "
        f"{ratios[-1]:.3f}, target 1.15); {1e6 * (own - other) / len(noisy):.0f} microseconds more a row",
        flush=True,
    )
    return ours


def views(sample) -> None:
    """Seconds for the table, the figure and the page of all rows, and the size of the page."""
    sample.of_input(0).plot()  # loads matplotlib
    calls = {
        "to_dataframe": sample.to_dataframe,
        "plot.table": lambda: metfa.plot.table(sample).savefig(io.BytesIO(), format="png", dpi=110),
    }
    for name, call in calls.items():
        print(f"{name}: {processor(call):.2f} s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        start = time.process_time()
        spent = seconds(lambda: sample.report(path))
        print(
            f"report: {spent:.2f} s, {time.process_time() - start:.2f} s of the processor (target 5 s), "
            f"{path.stat().st_size / 1e6:.2f} MB (target 5 MB)"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=50)
    parser.add_argument("--models", default="", help="those whose names hold this")
    arguments = parser.parse_args()
    copies = arguments.copies
    rows, train, answers = made()
    chosen = {name: model for name, model in models(train, answers).items() if arguments.models in name}
    for name, model in chosen.items():
        for noise in (metfa.noise.from_table(train), metfa.noise.per_column(train, 0.1)):
            ours = measured(f"{name}, {str(noise).partition('(')[0]}", model, rows, train, noise, copies)
    views(ours())
