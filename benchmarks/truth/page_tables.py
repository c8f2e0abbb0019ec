"""Tables of the documentation's page, as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

from benchmarks.truth import reading
from benchmarks.truth.reading import (
    OF_IMAGES,
    OF_TABLES,
    OF_TEXTS,
    OF_WORDS,
    SYNONYMS,
    WIDENED,
    Results,
    flips,
    marks,
    mean_of,
    of_table,
    ranked,
    shown,
    stds_of,
    with_error,
)
from benchmarks.truth.rules import AGAINST_REST, CORRECTIONS, DEFAULT, FIXED, RULES, SIGN

__all__ = [
    "columns", "controls", "corrections", "images", "kinds", "more_tables", "mosaics", "others", "photographs",
    "planted", "radius", "ranking", "rules", "samples", "squares", "trainings",
]  # fmt: skip


OF_BOTH = ("T: false", "T: found", "M: false", "M: found")
FIGURES = ("task_fdp", "task_power", "model_fdp", "model_power")


def as_csv(header: list[str], rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def pair(row: dict[str, Any], which: str = "task") -> str:
    """False marks and power."""
    return f"{shown(row[f'{which}_fdp'])}; {shown(row[f'{which}_power'])}"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


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
            row = marks(found.marks, explainer, rule, correction=correction)
            rows.append([explainer, label, shown(row["marks"]), *(with_error(row, name) for name in FIGURES)])
    return as_csv(["explainer", "what is marked", "pixels", *OF_BOTH], rows)


def controls(found: Results) -> str:
    """As many pixels from the top of one map, and of the mean map."""
    rows = []
    for explainer in OF_IMAGES:
        row = marks(found.marks, explainer)
        pairs = [f"{shown(row[f'{kind}_fdp'])}; {shown(row[f'{kind}_power'])}" for kind in ("task", "top_vanilla")]
        rows.append([explainer, *pairs, f"{shown(row['top_mean_fdp'])}; {shown(row['top_mean_power'])}"])
    return as_csv(["explainer", "metfa's marks", "as many from the top of one map", "as many of the mean map"], rows)


def ranking(found: Results) -> str:
    rows = []
    for explainer in OF_IMAGES:
        for truth in ("task", "model"):
            cells = []
            for name in ("vanilla", "mean", "smoothed median", "lower bound"):
                row = ranked(found.ranking, explainer, name)
                cells.append(f"{shown(row[f'{truth}_auc'])}; {shown(row[f'{truth}_precision'])}")
            rows.append([explainer, truth[0].upper(), *cells])
    return as_csv(["explainer", "truth", "one map", "mean", "smoothed median", "lower bound"], rows)


def rules(found: Results) -> str:
    """Each rule: false marks, power and number of marks."""
    rows = []
    for explainer in OF_IMAGES:
        for rule in RULES:
            row = marks(found.marks, explainer, rule)
            cells = [shown(row["marks"]), *(with_error(row, name) for name in FIGURES)]
            rows.append([explainer, rule, *cells, percent(row["unmarked"])])
    return as_csv(["explainer", "threshold", "pixels", *OF_BOTH, "without marks"], rows)


def corrections(found: Results) -> str:
    """The default rule with each correction."""
    rows = []
    for explainer in OF_IMAGES:
        for correction in CORRECTIONS:
            row = marks(found.marks, explainer, correction=correction)
            cells = [shown(row["marks"]), *(with_error(row, name) for name in FIGURES)]
            rows.append([explainer, correction, *cells, percent(row["unmarked"])])
    return as_csv(["explainer", "correction", "pixels", *OF_BOTH, "without marks"], rows)


def samples(found: Results) -> str:
    """False marks and power from few to many samples, and where the mean map is."""
    sizes = sorted({row["n"] for row in found.marks})
    rows = []
    for explainer in OF_IMAGES:
        for correction in ("none", "by", "e-bh"):
            cells = [marks(found.marks, explainer, n=n, correction=correction) for n in sizes]
            rows.append([explainer, correction, *(pair(row) for row in cells)])
        areas = [ranked(found.ranking, explainer, "mean", n=n) for n in sizes]
        rows.append([explainer, "mean map, AUC", *(with_error(row, "task_auc") for row in areas)])
    return as_csv(["explainer", "correction", *(f"N = {n:.0f}" for n in sizes)], rows)


def squares(found: Results) -> str:
    """Regions of 2 × 2 pixels: their means above the default threshold, and against the rest of the image."""
    rows = []
    for explainer in OF_IMAGES:
        for rule, label in ((DEFAULT, "means"), (AGAINST_REST, AGAINST_REST)):
            for correction in ("none", "holm"):
                row = marks(found.regions, explainer, rule, correction=correction)
                pairs = [pair(row, which) for which in ("task", "model", "top_vanilla", "top_mean")]
                rows.append([explainer, label, correction, shown(row["marks"]), *pairs])
    header = ["explainer", "tested", "correction", "squares", "T", "M", "one map", "mean map"]
    return as_csv(header, rows)


def kinds(found: Results) -> str:
    """Both laws of the noise at each radius: marks of the default rule, area of the mean map, and flips."""
    rows = []
    for kind in ("Gaussian", "uniform"):
        for explainer in OF_IMAGES:
            cells = []
            for std in stds_of(found):
                about = {"kind": kind, "std": std}
                area = ranked(found.noises["ranking"], explainer, "mean", **about)["task_auc"]
                cells.append(f"{pair(marks(found.noises['marks'], explainer, **about))}; {shown(area)}")
            rows.append([f"{kind}, {explainer}", *cells])
        rows.append([f"{kind}, flips", *(percent(flips(found, kind, std)) for std in stds_of(found))])
    return as_csv(["noise, explainer", *(f"std {std:g}" for std in stds_of(found))], rows)


def radius(found: Results) -> str:
    """False marks and power of each rule as the noise grows."""
    rows = []
    stds = stds_of(found)
    untested = {"mean > its break": "untested"}
    for task in WIDENED:
        for explainer in ("Gradient", "IG"):
            for rule in (*RULES, *untested):
                cells = []
                for std in stds:
                    about = {"task": task, "std": std, "correction": untested.get(rule, "none")}
                    row = marks(found.noises["marks"], explainer, rule, **about)
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
            row = of_table(found.marks, explainer, rule, correction=correction)
            cells.append(f"{shown(row['task_fdp'])}; {shown(row['task_power'])}; {shown(row['model_fdp'])}")
        rows.append(cells)
    return as_csv(["explainer", *(label for label, _, _ in kinds)], rows)


def more_tables(found: Results) -> str:
    """Correlated columns and a piecewise linear function: the planted function itself beside a network."""
    rows = []
    for task in ("additive rho 0.75", "piecewise linear rho 0"):
        for network in ("planted", "MLP"):
            for explainer in OF_TABLES:
                row = of_table(found.marks, explainer, f"> {FIXED:g}", task=task, network=network)
                rows.append([f"{task}, {network}", explainer, *(with_error(row, name) for name in FIGURES)])
    return as_csv(["task, model", "explainer", *OF_BOTH], rows)


def others(found: Results) -> str:
    """Digits on textures, and texts."""
    rows = []
    of_digits = [(task, "MLP", OF_IMAGES, {}) for task in ("digit on texture", "texture under digit")]
    of_texts = [(task, network, OF_TEXTS, SYNONYMS) for task, network in OF_WORDS]
    for task, network, names, about in (*of_digits, *of_texts):
        for explainer in names:
            row = marks(found.marks, explainer, task=task, network=network, **about)
            cells = [with_error(row, name) for name in FIGURES]
            rows.append([f"{task}, {network}", explainer, shown(row["marks"]), *cells])
    return as_csv(["task, model", "explainer", "marks", *OF_BOTH], rows)


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
            row = marks(found.marks, explainer, task=task, network=network)
            cells = [with_error(row, "model_fdp"), with_error(row, "model_power"), shown(row["marks"])]
            rows.append([f"{task}, {network}", explainer, *cells])
    for explainer in OF_IMAGES:
        row = marks(found.marks, explainer, task="LIN white", network="labels shuffled")
        rows.append(["LIN white, labels shuffled", explainer, "–", "–", shown(row["marks"])])
    return as_csv(["task", "explainer", "false", "found", "pixels"], rows)


def trainings(found: Results) -> str:
    rows = []
    for row in found.trainings:
        numbers = [f"{row[name]:.0f}" for name in ("trainings", "learned", "inputs")]
        cells = [row["truth"], *numbers, shown(row["accuracy"]), shown(row["task_share"]), shown(row["model_share"])]
        rows.append([row["task"], row["network"], *cells, shown(row["flips"])])
    header = ["task", "model", "M is", "trainings", "learned", "inputs", "accuracy or R²", "T", "M", "flips"]
    return as_csv(header, rows)
