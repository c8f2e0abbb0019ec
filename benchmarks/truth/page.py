"""Tables, sentences and the figure of the documentation's page, made from the committed tables.

    python -m benchmarks.truth.page            writes them below docs/

A sentence holds the figures that the tables hold. Where the tables no longer say what it says, the command fails.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import metfa
from benchmarks.truth.aggregate import SIX, read
from benchmarks.truth.rules import FIXED, RULES, SIGN

__all__ = ["FIGURE", "PARTS", "Results", "figure", "parts"]

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results"
PARTS = ROOT / "docs" / "background" / "truth"
FIGURE = ROOT / "docs" / "_static" / "truth.png"
DEFAULT = next(name for name, rule in RULES.items() if rule == metfa.Terms().threshold)
OF_IMAGES = ("Gradient", "SmoothGrad", "IG", "RISE")
OF_TABLES = ("Gradient", "IG", "exact SHAP", "LIME")
WIDENED = ("MULT white", "XOR white")  # tasks on which the radius of the noise was changed


class Results:
    """The committed tables; rows are found by what they are about."""

    def __init__(self, folder: Path = RESULTS) -> None:
        self.quick, self.thresholds = (
            {name: read(folder / tier / f"{name}.csv") for name in ("marks", "ranking", "trainings")}
            for tier in ("quick", "thresholds")
        )
        self.photographs = read(folder / "photographs" / "photographs.csv")
        self.about = {
            tier: json.loads((folder / tier / "about.json").read_text(encoding="utf-8"))
            for tier in ("quick", "thresholds")
        }


def one(rows: list[dict[str, Any]], **about: Any) -> dict[str, Any]:
    """The row about these; KeyError if there is none, or more than one."""
    found = [row for row in rows if all(row[name] == value for name, value in about.items())]
    if len(found) != 1:
        raise KeyError(f"{len(found)} rows about {about}")
    return found[0]


def marks(rows: list[dict[str, Any]], explainer: str, rule: str | None = None, **about: Any) -> dict[str, Any]:
    """Row of the six tasks at the default rule, 50 samples, uncorrected, usual noise, unless `about` says otherwise."""
    usual = {"task": SIX, "network": "MLP", "kind": "Gaussian", "std": 0.1, "n": 50, "correction": "none"}
    return one(rows, explainer=explainer, rule=rule or DEFAULT, **(usual | about))


def of_table(rows: list[dict[str, Any]], explainer: str, rule: str, **about: Any) -> dict[str, Any]:
    usual = {"task": "additive rho 0", "network": "MLP", "std": 0.2, "correction": "none"}
    return marks(rows, explainer, rule, **(usual | about))


def shown(number: float, error: float = np.nan) -> str:
    """Two decimals without the zero before the point, with its standard error."""
    if np.isnan(number):
        return "–"
    text = f"{number:.2f}".removeprefix("0") if abs(number) < 10 else f"{number:.1f}"
    return text if np.isnan(error) else f"{text} ± {shown(error)}"


def with_error(row: dict[str, Any], name: str) -> str:
    return shown(row[name], row[f"{name}_se"])


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
            ("metfa's marks", DEFAULT, "none"),
            ("with BY", DEFAULT, "by"),
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
        ("marks, default threshold", DEFAULT, "none"),
        ("test(0)", SIGN, "none"),
    )
    for explainer in OF_TABLES:
        cells = [explainer]
        for _, rule, correction in kinds:
            row = of_table(found.quick["marks"], explainer, rule, correction=correction)
            cells.append(f"{shown(row['task_fdp'])}; {shown(row['task_power'])}; {shown(row['model_fdp'])}")
        rows.append(cells)
    return as_csv(["explainer", *(label for label, _, _ in kinds)], rows)


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


# -- sentences


def said(found: Results) -> str:
    """What the marks do not mean, with figures. An assertion holds each sentence to its table."""
    lines: list[str] = []

    def say(lead: str, text: str, *holds: bool) -> None:
        assert all(holds), f"no longer so: {lead}"
        lines.append(f"- **{lead}** {text}")

    quick = found.quick["marks"]
    row = marks(quick, "Gradient", SIGN, task="suppressor", network="planted", std=0.2, correction="by")
    fixed = marks(quick, "exact SHAP", f"> {FIXED:g}", task="suppressor", network="planted", std=0.2)
    say(
        "Significant is not associated.",
        "In the suppressor table the second column has nothing to do with what is predicted, by itself. The model "
        "subtracts it from the first, to take out a disturbance that both share. So it is important, as it should be: "
        f"{shown(fixed['marks'])} of 4 columns a row are marked with exact Shapley values, and half of the marks are "
        f"false about the task ({shown(fixed['task_fdp'])}), none about the model ({shown(fixed['model_fdp'])}).",
        fixed["task_fdp"] > 0.4, fixed["model_fdp"] < 0.05, row["marks"] > 1.9,
    )  # fmt: skip
    gradient = marks(quick, "Gradient")
    ig = marks(quick, "IG")
    say(
        "Unimportant is not unused.",
        "It says that the median lies below the threshold, and no more. Of the pixels that the network uses (M) "
        f"{shown(gradient['model_unimportant'])} are marked unimportant with Gradient and "
        f"{shown(ig['model_unimportant'])} with IG; of the planted ones (T) {shown(gradient['task_unimportant'])} and "
        f"{shown(ig['task_unimportant'])}.",
        gradient["model_unimportant"] > 0.3, ig["model_unimportant"] > 0.3,
    )  # fmt: skip
    signs = {explainer: of_table(quick, explainer, SIGN) for explainer in OF_TABLES}
    corrected = of_table(quick, "exact SHAP", SIGN, correction="by")
    fixed_row = of_table(quick, "exact SHAP", f"> {FIXED:g}")
    say(
        "``test(0)`` is no test of use.",
        "Half of the columns of the additive table are unused, and a trained network has small steady slopes there, "
        "which have a sign. About 0 they pass: of the signs that were found with exact Shapley values "
        f"{shown(signs['exact SHAP']['task_fdp'])} belong to unused columns (Gradient "
        f"{shown(signs['Gradient']['task_fdp'])}, IG {shown(signs['IG']['task_fdp'])}, LIME "
        f"{shown(signs['LIME']['task_fdp'])}; chance is .50), with BY {shown(corrected['task_fdp'])}. Above a "
        f"threshold of {FIXED:g} standard deviations it is {shown(fixed_row['task_fdp'])}.",
        signs["exact SHAP"]["task_fdp"] > 0.35, signs["Gradient"]["task_fdp"] > 0.4,
        corrected["task_fdp"] > 0.3, fixed_row["task_fdp"] < 0.1,
    )  # fmt: skip
    rise, rise_by = marks(quick, "RISE"), marks(quick, "RISE", correction="by")
    blind = marks(quick, "RISE", task="LIN white", network="blind to the rest", correction="by")
    say(
        "A correction does not repair an explainer.",
        "BY bounds marks that are false about the *median of the explanation*. RISE's masks are coarser than the "
        f"shapes and random: with BY {shown(rise_by['task_fdp'])} of its marks are false about the task (without "
        f"{shown(rise['task_fdp'])}), and of those on a network that cannot read the rest of the image "
        f"{shown(blind['model_fdp'])} lie there.",
        rise_by["task_fdp"] > 0.4, blind["model_fdp"] > 0.3,
    )  # fmt: skip
    shuffled = {name: marks(quick, name, task="LIN white", network="labels shuffled") for name in OF_IMAGES}
    say(
        "Marks do not say that something was learned.",
        "A network that was trained on shuffled labels predicts as a coin does, and is explained all the same. Of 64 "
        "pixels are important: " + ", ".join(f"{name} {shown(row['marks'])}" for name, row in shuffled.items()) + ".",
        all(shuffled[name]["marks"] > 1 for name in ("Gradient", "SmoothGrad", "IG")),
    )
    say(
        "The test ties with the mean map.",
        "As many pixels from the top of the mean map are as often right: Gradient "
        f"{shown(gradient['top_mean_fdp'])} false for {shown(gradient['task_fdp'])}, IG {shown(ig['top_mean_fdp'])} "
        f"for {shown(ig['task_fdp'])}. What the test adds is the number of marks, chosen without the truth, and a "
        "level that holds.",
        abs(gradient["top_mean_fdp"] - gradient["task_fdp"]) < 0.04, abs(ig["top_mean_fdp"] - ig["task_fdp"]) < 0.06,
    )  # fmt: skip
    return "\n".join(lines) + "\n"


def gains(found: Results) -> str:
    """What may be claimed."""
    lines: list[str] = []

    def say(text: str, *holds: bool) -> None:
        assert all(holds), f"no longer so: {text}"
        lines.append(f"- {text}")

    quick, ranked = found.quick["marks"], found.quick["ranking"]
    areas = {
        name: [one(ranked, task=SIX, explainer=name, n=50, map=which)["task_auc"] for which in ("vanilla", "mean")]
        for name in OF_IMAGES
    }
    say(
        "**Averaging under noise ranks the planted pixels better.** Area under the ROC curve of one map and of the "
        "mean of 50: "
        + ", ".join(f"{name} {shown(one)} and {shown(mean)}" for name, (one, mean) in areas.items())
        + ".",
        *(areas[name][1] > areas[name][0] + 0.02 for name in ("Gradient", "SmoothGrad", "IG")),
        areas["RISE"][1] > areas["RISE"][0] - 0.02,
    )
    single, tested = (
        {name: of_table(quick, name, rule, correction=correction) for name in ("LIME", "Gradient")}
        for rule, correction in ((f"vanilla > {FIXED:g}", "untested"), (f"> {FIXED:g}", "none"))
    )
    say(
        "**At the same threshold a test makes fewer false marks than one map**, most for explainers with randomness of "
        f"their own: of the columns above {FIXED:g}, LIME {shown(single['LIME']['task_fdp'])} → "
        f"{shown(tested['LIME']['task_fdp'])} false (found: {shown(single['LIME']['task_power'])} → "
        f"{shown(tested['LIME']['task_power'])}), Gradient {shown(single['Gradient']['task_fdp'])} → "
        f"{shown(tested['Gradient']['task_fdp'])} ({shown(single['Gradient']['task_power'])} → "
        f"{shown(tested['Gradient']['task_power'])}).",
        all(tested[name]["task_fdp"] < single[name]["task_fdp"] for name in tested),
    )
    blind = [
        marks(quick, name, task=f"{family} white", network="blind to the rest")["model_fdp"]
        for name in ("Gradient", "SmoothGrad", "IG")
        for family in ("LIN", "XOR")
    ]
    say(
        "**What a network cannot read is never important** with Gradient, SmoothGrad and IG: none of the marks on the "
        "two planted blind networks lies outside of what they read.",
        max(blind) == 0,
    )
    return "\n".join(lines) + "\n"


def which(found: Results) -> str:
    """What the tables of rules say."""
    lines: list[str] = []

    def say(text: str, *holds: bool) -> None:
        assert all(holds), f"no longer so: {text}"
        lines.append(f"- {text}")

    def wide(task: str, rule: str, std: float) -> dict[str, Any]:
        return marks(found.thresholds["marks"], "IG", rule, task=task, std=std)

    def path(task: str, rule: str, figure: str = "task_power") -> str:
        return " → ".join(shown(wide(task, rule, std)[figure]) for std in (0.02, 0.1, 0.4))

    everything, medians = "break of all values", "break of medians"
    worst = max(wide(task, medians, std)["task_fdp"] for task in WIDENED for std in (0.02, 0.1, 0.4))
    areas = {
        (task, std): one(found.thresholds["ranking"], task=task, explainer="IG", std=std, map="mean")["task_auc"]
        for task in WIDENED
        for std in (0.02, 0.4)
    }
    say(
        "**The break of all values climbs with the spread of the noise.** With IG it finds, as the noise grows from "
        f".02 over .1 to .4, {path('MULT white', everything)} of the planted pixels in MULT and "
        f"{path('XOR white', everything)} in XOR, although the mean map ranks them better. The break of the medians "
        f"finds {path('MULT white', medians)} and {path('XOR white', medians)}, and at most {shown(worst)} of its marks "
        "are false.",
        *(
            wide(task, everything, 0.4)["task_power"] < 0.25 * wide(task, everything, 0.02)["task_power"]
            for task in WIDENED
        ),
        *(wide(task, medians, 0.4)["task_power"] > 0.8 * wide(task, medians, 0.02)["task_power"] for task in WIDENED),
        *(areas[task, 0.4] > areas[task, 0.02] for task in WIDENED),
        worst < 0.05,
    )
    pairs = {name: [marks(found.quick["marks"], name, rule) for rule in (everything, medians)] for name in OF_IMAGES}
    say(
        "**At the usual noise they are near each other**: of the planted pixels "
        + ", ".join(
            f"{name} {shown(one['task_power'])} → {shown(two['task_power'])} (false {shown(one['task_fdp'])} → "
            f"{shown(two['task_fdp'])})"
            for name, (one, two) in pairs.items()
        )
        + ", from the break of all values to that of the medians.",
        all(abs(two["task_fdp"] - one["task_fdp"]) < 0.06 for one, two in pairs.values()),
        all(two["task_power"] > one["task_power"] - 0.02 for one, two in pairs.values()),
    )
    rise = marks(found.quick["marks"], "RISE", "2 x mean")
    both = marks(found.quick["marks"], "Gradient", "2 x mean", task="suppressor", network="planted", std=0.2)
    say(
        "**A multiple of the mean needs maps in which few features stand out far.** Twice the mean is a good threshold "
        f"for Gradient and IG on these images, but RISE's flat maps have no mark in {100 * rise['unmarked']:.0f} % of "
        "the inputs, and where two of four columns share everything (the suppressor table), none is above it: "
        f"{shown(both['marks'])} marks. It does not depend on the samples but for the scale, and it is careful where "
        "there is nothing to find.",
        rise["unmarked"] > 0.5, both["marks"] < 0.2,
    )  # fmt: skip
    pictures = {
        rule: one(found.photographs, explainer="Gradient", std=0.1, rule=rule)
        for rule in (everything, medians, "break of means", "2 x mean")
    }
    say(
        "**On photographs** the break of all values marks "
        f"{100 * pictures[everything]['important']:.1f} % of the pixels as important, that of the means "
        f"{100 * pictures['break of means']['important']:.1f} %, that of the medians "
        f"{100 * pictures[medians]['important']:.1f} %, and twice the mean "
        f"{100 * pictures['2 x mean']['important']:.1f} %. Two runs overlap by {shown(pictures[everything]['overlap'])}, "
        f"{shown(pictures['break of means']['overlap'])}, {shown(pictures[medians]['overlap'])} and "
        f"{shown(pictures['2 x mean']['overlap'])}. A score under noise is skewed, so its mean lies above its median, "
        "and a test of medians against a threshold from means finds little.",
        pictures[medians]["important"] > 10 * pictures[everything]["important"],
        all(pictures[medians]["overlap"] > row["overlap"] for rule, row in pictures.items() if rule != medians),
    )
    shuffled = {
        rule: marks(found.quick["marks"], "Gradient", rule, task="LIN white", network="labels shuffled")
        for rule in (everything, medians, "2 x mean")
    }
    say(
        "**The price**: where nothing was learned the break of the medians marks more, "
        f"{shown(shuffled[medians]['marks'])} of 64 pixels with Gradient for {shown(shuffled[everything]['marks'])} of "
        f"the break of all values and {shown(shuffled['2 x mean']['marks'])} of twice the mean. A break always cuts.",
        shuffled[medians]["marks"] > shuffled[everything]["marks"] > shuffled["2 x mean"]["marks"],
    )
    return "\n".join(lines) + "\n"


def parts(found: Results) -> dict[str, str]:
    """Files of the page, by name."""
    made = {
        "images.csv": images(found), "controls.csv": controls(found), "ranking.csv": ranking(found),
        "rules.csv": rules(found), "radius.csv": radius(found), "photographs.csv": photographs(found),
        "columns.csv": columns(found), "planted.csv": planted(found), "trainings.csv": trainings(found),
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
