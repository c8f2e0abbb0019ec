"""The figure of the documentation's page."""

from __future__ import annotations

from typing import Any

from benchmarks.truth.reading import OF_IMAGES, Results, marks

__all__ = ["COLOURS", "figure"]

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
    """False marks and power of each rule, from few to many samples with a marker at 50, one panel an explainer."""
    from matplotlib.figure import Figure

    sizes = sorted({row["n"] for row in found.marks})
    made = Figure(figsize=(11, 3.9), layout="constrained")
    axes = made.subplots(1, len(OF_IMAGES), sharex=True, sharey=True)
    for ax, explainer in zip(axes, OF_IMAGES, strict=True):
        for rule, colour in COLOURS.items():
            of_sizes = [marks(found.marks, explainer, rule, n=n) for n in sizes]
            ax.plot(*([row[f"task_{name}"] for row in of_sizes] for name in ("fdp", "power")), "-", color=colour)
            at = of_sizes[sizes.index(50)]
            ax.plot(at["task_fdp"], at["task_power"], MARKERS[rule], color=colour, markersize=8, label=rule)
        for rule, marker in (("vanilla > its break", "x"), ("mean > its break", "+")):
            row = marks(found.marks, explainer, rule, correction="untested")
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
