"""Tables, sentences and the figure of the documentation's page, made from the committed tables.

    python -m benchmarks.truth.page            writes them below docs/

Where the tables no longer say what a sentence says, the command fails.
"""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Any

from benchmarks.truth import reading
from benchmarks.truth.aggregate import SIX
from benchmarks.truth.reading import (
    OF_IMAGES,
    OF_TABLES,
    OF_TEXTS,
    OF_WORDS,
    SYNONYMS,
    WIDENED,
    Results,
    marks,
    mean_of,
    of_table,
    one,
    shown,
    with_error,
)
from benchmarks.truth.rules import FIXED, RULES, SIGN
from benchmarks.truth.sentences import gains, said, which

__all__ = ["FIGURE", "PARTS", "figure", "parts"]

ROOT = Path(__file__).parents[2]
PARTS = ROOT / "docs" / "background" / "truth"
FIGURE = ROOT / "docs" / "_static" / "truth.png"


def as_csv(header: list[str], rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


# -- tables


def images(found: Results) -> str:
    """The default rule beside what needs no test, T and M side by side."""
    rows = []
    for explainer in OF_IMAGES:
        for label, rule, correction in (
            ("metfa's marks", reading.DEFAULT, "none"),
            ("with BY", reading.DEFAULT, "by"),
            ("one map above its break", "vanilla > its break", "untested"),
            ("mean map above its break", "mean > its break", "untested"),
        ):
            row = marks(found.quick["marks"], explainer, rule, correction=correction)
            names = ("task_fdp", "task_power", "model_fdp", "model_power")
            rows.append([explainer, label, shown(row["marks"]), *(with_error(row, name) for name in names)])
    header = ["explainer", "what is marked", "pixels", "T: false", "T: found", "M: false", "M: found"]
    return as_csv(header, rows)


def controls(found: Results) -> str:
    """As many pixels from the top of one map, and of the mean map."""
    rows = []
    for explainer in OF_IMAGES:
        row = marks(found.quick["marks"], explainer)
        pairs = [f"{shown(row[f'{kind}_fdp'])}; {shown(row[f'{kind}_power'])}" for kind in ("task", "top_vanilla")]
        rows.append([explainer, *pairs, f"{shown(row['top_mean_fdp'])}; {shown(row['top_mean_power'])}"])
    return as_csv(["explainer", "metfa's marks", "as many from the top of one map", "as many of the mean map"], rows)


def ranking(found: Results) -> str:
    rows = []
    for explainer in OF_IMAGES:
        for truth in ("task", "model"):
            cells = []
            for name in ("vanilla", "mean", "smoothed median", "lower bound"):
                row = one(found.quick["ranking"], task=SIX, explainer=explainer, n=50, map=name)
                cells.append(f"{shown(row[f'{truth}_auc'])}; {shown(row[f'{truth}_precision'])}")
            rows.append([explainer, truth[0].upper(), *cells])
    return as_csv(["explainer", "truth", "one map", "mean", "smoothed median", "lower bound"], rows)


def rules(found: Results) -> str:
    """Each rule: false marks, power and number of marks."""
    rows = []
    for explainer in OF_IMAGES:
        for rule in RULES:
            row = marks(found.quick["marks"], explainer, rule)
            names = ("task_fdp", "task_power", "model_fdp", "model_power")
            cells = [shown(row["marks"]), *(with_error(row, name) for name in names)]
            rows.append([explainer, rule, *cells, f"{100 * row['unmarked']:.0f} %"])
    header = ["explainer", "threshold", "pixels", "T: false", "T: found", "M: false", "M: found", "without marks"]
    return as_csv(header, rows)


def radius(found: Results) -> str:
    """False marks and power of each rule as the noise grows."""
    rows = []
    stds = sorted({row["std"] for row in found.thresholds["marks"]})
    untested = {"mean > its break": "untested"}
    for task in WIDENED:
        for explainer in ("Gradient", "IG"):
            for rule in (*RULES, *untested):
                cells = []
                for std in stds:
                    about = {"task": task, "std": std, "correction": untested.get(rule, "none")}
                    row = marks(found.thresholds["marks"], explainer, rule, **about)
                    cells.append(f"{shown(row['task_fdp'])}; {with_error(row, 'task_power')}")
                rows.append([f"{task}, {explainer}", rule, *cells])
    return as_csv(["task, explainer", "threshold", *(f"std {std:g}" for std in stds)], rows)


def photographs(found: Results) -> str:
    rows = []
    for row in found.photographs:
        cells = [f"{100 * row[name]:.1f} %" for name in ("important", "unimportant")]
        n = row["photographs"]
        about = f"{row['explainer']}, std {row['std']:g}, {n:.0f} photograph{'s' * (n > 1)}"
        rows.append([about, row["rule"], *cells, with_error(row, "overlap"), f"{100 * row['no_threshold']:.0f} %"])
    return as_csv(["explainer, noise", "threshold", "important", "unimportant", "overlap", "no threshold"], rows)


def columns(found: Results) -> str:
    """The additive table."""
    rows = []
    kinds = (
        ("one map", f"vanilla > {FIXED:g}", "untested"),
        ("mean map", f"mean > {FIXED:g}", "untested"),
        ("marks", f"> {FIXED:g}", "none"),
        ("marks, default threshold", reading.DEFAULT, "none"),
        ("test(0)", SIGN, "none"),
    )
    for explainer in OF_TABLES:
        cells = [explainer]
        for _, rule, correction in kinds:
            row = of_table(found.quick["marks"], explainer, rule, correction=correction)
            cells.append(f"{shown(row['task_fdp'])}; {shown(row['task_power'])}; {shown(row['model_fdp'])}")
        rows.append(cells)
    return as_csv(["explainer", *(label for label, _, _ in kinds)], rows)


def more_tables(found: Results) -> str:
    """Correlated columns and a piecewise linear function: the planted function itself beside a network."""
    rows = []
    for task in ("additive rho 0.75", "piecewise linear rho 0"):
        for network in ("planted", "MLP"):
            for explainer in OF_TABLES:
                row = of_table(found.quick["marks"], explainer, f"> {FIXED:g}", task=task, network=network)
                names = ("task_fdp", "task_power", "model_fdp", "model_power")
                rows.append([f"{task}, {network}", explainer, *(with_error(row, name) for name in names)])
    return as_csv(["task, model", "explainer", "T: false", "T: found", "M: false", "M: found"], rows)


def others(found: Results) -> str:
    """Digits on textures, and texts."""
    rows = []
    of_digits = [(task, "MLP", OF_IMAGES, {}) for task in ("digit on texture", "texture under digit")]
    of_texts = [(task, network, OF_TEXTS, SYNONYMS) for task, network in OF_WORDS]
    for task, network, names, about in (*of_digits, *of_texts):
        for explainer in names:
            row = marks(found.quick["marks"], explainer, task=task, network=network, **about)
            cells = [with_error(row, name) for name in ("task_fdp", "task_power", "model_fdp", "model_power")]
            rows.append([f"{task}, {network}", explainer, shown(row["marks"]), *cells])
    return as_csv(["task, model", "explainer", "marks", "T: false", "T: found", "M: false", "M: found"], rows)


def mosaics(found: Results) -> str:
    rows = []
    for explainer, kept in found.mosaics.items():
        maps = [mean_of(kept, f"{name}, share in the cell") for name in ("vanilla", "mean", "smoothed median")]
        default = f"{reading.DEFAULT}, none: "
        names = ("task_fdp", "top_vanilla_fdp", "top_mean_fdp", "task_power")
        false = [mean_of(kept, default + name) for name in names]
        rows.append([explainer, str(len(kept.lines)), *maps, *false])
    header = ["explainer", "mosaics", "in the cell: one map", "mean", "smoothed median", "false among the marks"]
    return as_csv([*header, "as many of one map", "as many of the mean map", "found"], rows)


def planted(found: Results) -> str:
    """Networks of which more is known: false marks about M are exact."""
    rows = []
    for task, network in (("LIN white", "blind to the rest"), ("XOR white", "blind to the rest")):
        for explainer in OF_IMAGES:
            row = marks(found.quick["marks"], explainer, task=task, network=network)
            cells = [with_error(row, "model_fdp"), with_error(row, "model_power"), shown(row["marks"])]
            rows.append([f"{task}, {network}", explainer, *cells])
    for explainer in OF_IMAGES:
        row = marks(found.quick["marks"], explainer, task="LIN white", network="labels shuffled")
        rows.append(["LIN white, labels shuffled", explainer, "–", "–", shown(row["marks"])])
    return as_csv(["task", "explainer", "false", "found", "pixels"], rows)


def trainings(found: Results) -> str:
    rows = []
    for row in found.quick["trainings"]:
        numbers = [f"{row[name]:.0f}" for name in ("trainings", "learned", "inputs")]
        cells = [row["truth"], *numbers, shown(row["accuracy"]), shown(row["task_share"]), shown(row["model_share"])]
        rows.append([row["task"], row["network"], *cells, shown(row["flips"])])
    header = ["task", "model", "M is", "trainings", "learned", "inputs", "accuracy or R²", "T", "M", "flips"]
    return as_csv(header, rows)


def parts(found: Results) -> dict[str, str]:
    """Files of the page, by name."""
    made = {
        "images.csv": images(found), "controls.csv": controls(found), "ranking.csv": ranking(found),
        "rules.csv": rules(found), "radius.csv": radius(found), "photographs.csv": photographs(found),
        "columns.csv": columns(found), "tables.csv": more_tables(found), "others.csv": others(found),
        "mosaics.csv": mosaics(found), "planted.csv": planted(found), "trainings.csv": trainings(found),
        "said.inc": said(found), "gains.inc": gains(found), "which.inc": which(found),
    }  # fmt: skip
    about = found.about["quick"]
    made["about.inc"] = (
        "; ".join(f"tier {tier}: {about['finished']} of {about['units']} units" for tier, about in found.about.items())
        + f". NumPy {about['numpy']}, torch {about['torch']}.\n"
    )
    return made


# -- figure


COLOURS = {  # of Okabe and Ito: safe for colour-blind readers
    "break of all values": "#000000",
    "break of medians": "#009e73",
    "break of means": "#56b4e9",
    "1 x mean": "#e69f00",
    "2 x mean": "#d55e00",
    "3 x mean": "#cc79a7",
}
MARKERS = dict(zip(COLOURS, "os^Dvp", strict=True))


def figure(found: Results) -> Any:
    """False marks and power of each rule, from N = 20 to 50, one panel an explainer."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(11, 3.9), layout="constrained")
    axes = made.subplots(1, len(OF_IMAGES), sharex=True, sharey=True)
    for ax, explainer in zip(axes, OF_IMAGES, strict=True):
        for rule, colour in COLOURS.items():
            few, many = (marks(found.quick["marks"], explainer, rule, n=n) for n in (20, 50))
            ax.plot(*([row[f"task_{name}"] for row in (few, many)] for name in ("fdp", "power")), "-", color=colour)
            ax.plot(many["task_fdp"], many["task_power"], MARKERS[rule], color=colour, markersize=8, label=rule)
        for rule, marker in (("vanilla > its break", "x"), ("mean > its break", "+")):
            row = marks(found.quick["marks"], explainer, rule, correction="untested")
            ax.plot(row["task_fdp"], row["task_power"], marker, color="#555555", markersize=9, markeredgewidth=2,
                    label=f"untested: {rule.replace('vanilla', 'one map')}")  # fmt: skip
        ax.axvline(1 - 8 / 64, color="#999999", linestyle=":")
        ax.set_title(explainer)
        ax.set_xlabel("false among the marks")
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlim(-0.03, 1)
        ax.set_ylim(-0.03, 1.03)
    axes[0].set_ylabel("planted pixels found")
    axes[-1].annotate("chance", (1 - 8 / 64, 0.98), rotation=90, ha="right", va="top", color="#777777")
    made.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return made


def main() -> int:
    found = Results()
    PARTS.mkdir(parents=True, exist_ok=True)
    for name, text in parts(found).items():
        (PARTS / name).write_text(text, encoding="utf-8")
    figure(found).savefig(FIGURE, dpi=110, metadata={"Software": None})
    print(f"wrote {PARTS} and {FIGURE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
