"""Sentences of the page. Each holds figures of the tables, and is held to them: it fails where they say otherwise."""

from __future__ import annotations

from typing import Any

from benchmarks.truth.reading import (
    OF_IMAGES,
    OF_TABLES,
    OF_TEXTS,
    SYNONYMS,
    WIDENED,
    Results,
    marks,
    of_table,
    one,
    ranked,
    shown,
)
from benchmarks.truth.rules import FIXED, SIGN

__all__ = ["gains", "said", "which"]


def said(found: Results) -> str:
    """What the marks do not mean, with figures. An assertion holds each sentence to its table."""
    lines: list[str] = []

    def say(lead: str, text: str, *holds: bool) -> None:
        assert all(holds), f"no longer so: {lead}"
        lines.append(f"- **{lead}** {text}")

    measured = found.marks
    row = marks(measured, "Gradient", SIGN, task="suppressor", network="planted", std=0.2, correction="by")
    fixed = marks(measured, "exact SHAP", f"> {FIXED:g}", task="suppressor", network="planted", std=0.2)
    say(
        "Significant is not associated.",
        "In the suppressor table the second column has nothing to do with what is predicted, by itself. The model "
        "subtracts it from the first, to take out a disturbance that both share. So it is important, as it should be: "
        f"{shown(fixed['marks'])} of 4 columns a row are marked with exact Shapley values, and half of the marks are "
        f"false about the task ({shown(fixed['task_fdp'])}), hardly any about the model ({shown(fixed['model_fdp'])}).",
        fixed["task_fdp"] > 0.4, fixed["model_fdp"] < 0.05, row["marks"] > 1.9,
    )  # fmt: skip
    gradient = marks(measured, "Gradient")
    ig = marks(measured, "IG")
    say(
        "Unimportant is not unused.",
        "It says that the median lies below the threshold, and no more. Of the pixels that the network uses (M) "
        f"{shown(gradient['model_unimportant'])} are marked unimportant with Gradient and "
        f"{shown(ig['model_unimportant'])} with IG; of the planted ones (T) {shown(gradient['task_unimportant'])} and "
        f"{shown(ig['task_unimportant'])}.",
        gradient["model_unimportant"] > 0.3, ig["model_unimportant"] > 0.3,
    )  # fmt: skip
    rule = {"rule": f"> {FIXED:g}", "task": "additive rho 0.75", "network": "planted"}
    exact, conditional = (of_table(measured, f"{kind} SHAP", **rule) for kind in ("exact", "conditional"))
    say(
        "Which Shapley value it is decides what a mark can mean.",
        "Where columns are correlated, conditional values mark columns that the model does not read: of the marks on "
        f"the planted additive function itself {shown(conditional['task_fdp'])} belong to unused columns, with exact "
        f"SHAP {shown(exact['task_fdp'])}. It is no error of the test: these medians do lie above the threshold.",
        conditional["task_fdp"] > 0.2, exact["task_fdp"] < 0.05,
    )  # fmt: skip
    keys, nots = (
        {name: marks(measured, name, task=task, network="BiLSTM", **SYNONYMS) for name in OF_TEXTS}
        for task in ("KEY", "NOT")
    )
    say(
        "What decides by its absence is hardly found.",
        "In the texts NOT the word before the key word decides too, by being \"not\" or another one. Of the words that "
        "decide are found "
        + ", ".join(f"{name} {shown(row['task_power'])}" for name, row in nots.items())
        + ", in KEY, where the key word alone decides, "
        + ", ".join(shown(row["task_power"]) for row in keys.values())
        + f". At most {shown(max(row['task_fdp'] for row in keys.values()))} of the marks in KEY are false about the "
        "task.",
        all(nots[name]["task_power"] < keys[name]["task_power"] - 0.1 for name in OF_TEXTS),
    )  # fmt: skip
    signs = {explainer: of_table(measured, explainer, SIGN) for explainer in OF_TABLES}
    corrected = of_table(measured, "exact SHAP", SIGN, correction="by")
    fixed_row = of_table(measured, "exact SHAP", f"> {FIXED:g}")
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
    rise, rise_by = marks(measured, "RISE"), marks(measured, "RISE", correction="by")
    blind = marks(measured, "RISE", task="LIN white", network="blind to the rest", correction="by")
    say(
        "A correction does not repair an explainer.",
        "BY bounds marks that are false about the *median of the explanation*. RISE's masks are coarser than the "
        f"shapes and random: with BY {shown(rise_by['task_fdp'])} of its marks are false about the task (without "
        f"{shown(rise['task_fdp'])}), and of those on a network that cannot read the rest of the image "
        f"{shown(blind['model_fdp'])} lie there.",
        rise_by["task_fdp"] > 0.4, blind["model_fdp"] > 0.3,
    )  # fmt: skip
    shuffled = {name: marks(measured, name, task="LIN white", network="labels shuffled") for name in OF_IMAGES}
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

    measured = found.marks
    areas = {
        name: [ranked(found.ranking, name, which)["task_auc"] for which in ("vanilla", "mean")] for name in OF_IMAGES
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
        {name: of_table(measured, name, rule, correction=correction) for name in ("LIME", "Gradient")}
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
        marks(measured, name, task=f"{family} white", network="blind to the rest")["model_fdp"]
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
        return marks(found.noises["marks"], "IG", rule, task=task, std=std)

    def path(task: str, rule: str, figure: str = "task_power") -> str:
        return " → ".join(shown(wide(task, rule, std)[figure]) for std in (0.02, 0.1, 0.4))

    everything, medians = "break of all values", "break of medians"
    worst = max(wide(task, medians, std)["task_fdp"] for task in WIDENED for std in (0.02, 0.1, 0.4))
    areas = {
        (task, std): ranked(found.noises["ranking"], "IG", "mean", task=task, std=std)["task_auc"]
        for task in WIDENED
        for std in (0.02, 0.4)
    }
    say(
        "**The break of all values climbs with the spread of the noise.** With IG it finds, as the noise grows from "
        f".02 over .1 to .4, {path('MULT white', everything)} of the planted pixels in MULT and "
        f"{path('XOR white', everything)} in XOR, although the mean map ranks them better. The break of the medians "
        f"finds {path('MULT white', medians)} and {path('XOR white', medians)}, and at most {shown(worst)} of its "
        "marks are false.",
        *(
            wide(task, everything, 0.4)["task_power"] < 0.25 * wide(task, everything, 0.02)["task_power"]
            for task in WIDENED
        ),
        *(wide(task, medians, 0.4)["task_power"] > 0.8 * wide(task, medians, 0.02)["task_power"] for task in WIDENED),
        *(areas[task, 0.4] > areas[task, 0.02] for task in WIDENED),
        worst < 0.05,
    )
    pairs = {name: [marks(found.marks, name, rule) for rule in (everything, medians)] for name in OF_IMAGES}
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
    rise = marks(found.marks, "RISE", "2 x mean")
    both = marks(found.marks, "Gradient", "2 x mean", task="suppressor", network="planted", std=0.2)
    say(
        "**A multiple of the mean needs maps in which few features stand out far.** Twice the mean is a good threshold "
        f"for Gradient and IG on these images, but RISE's flat maps have no mark in {100 * rise['unmarked']:.0f} % of "
        "the inputs, and where two of four columns share everything (the suppressor table), none is above it. It "
        "depends on the samples by their mean alone, and it is careful where there is nothing to find.",
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
        f"{100 * pictures['2 x mean']['important']:.1f} %. Two runs overlap by "
        f"{shown(pictures[everything]['overlap'])}, "
        f"{shown(pictures['break of means']['overlap'])}, {shown(pictures[medians]['overlap'])} and "
        f"{shown(pictures['2 x mean']['overlap'])}. A score under noise is skewed, so its mean lies above its median, "
        "and a test of medians against a threshold from means finds little.",
        pictures[medians]["important"] > 10 * pictures[everything]["important"],
        all(pictures[medians]["overlap"] > row["overlap"] for rule, row in pictures.items() if rule != medians),
    )
    shuffled = {
        rule: marks(found.marks, "Gradient", rule, task="LIN white", network="labels shuffled")
        for rule in (everything, medians, "2 x mean")
    }
    say(
        "**The price**: where nothing was learned the break of the medians marks more, "
        f"{shown(shuffled[medians]['marks'])} of 64 pixels with Gradient for {shown(shuffled[everything]['marks'])} of "
        f"the break of all values and {shown(shuffled['2 x mean']['marks'])} of twice the mean. A break always cuts.",
        shuffled[medians]["marks"] > shuffled[everything]["marks"] > shuffled["2 x mean"]["marks"],
    )
    return "\n".join(lines) + "\n"
