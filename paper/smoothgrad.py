"""Smoothed maps against SmoothGrad's means of the same samples: mstd against N, without and with outer noise.

In the paper: Gradient on ResNet-50 and DenseNet-169, 100 pictures, N = 10, 30, 50, 70; P uniform and normal; O_n none,
and the same law as P. The figure of mstd divided by vanilla's for N = 10 to 80 uses the same units.
"""

from pathlib import Path

from metfa import plot
from paper.setting import NOISES, chosen, parser, run

if __name__ == "__main__":
    made = parser(__doc__, images=100)
    made.add_argument("--figures", type=Path, help="folder for the figures")
    options = made.parse_args()
    noises = {name: NOISES[name] for name in ("normal", "uniform")}
    result = run(
        options,
        "smoothgrad",
        explainers=chosen(options, ("Gradient",)),
        sampling=noises,
        outer={"none": None, **noises},
        metrics=["mstd"],
        n_samples=(10, 30) if options.quick else (10, 30, 50, 70),
        n_outer=4 if options.quick else 10,
    )
    for name in result.study.methods:
        print(f"\n{result.table('mstd', explainer=name)}")
    if options.figures is not None:
        options.figures.mkdir(parents=True, exist_ok=True)
        for name in result.study.methods:
            for to in ("mean", "vanilla"):
                figure = plot.mstd_ratio(result, explainer=name, to=to)
                figure.savefig(options.figures / f"{name}-smoothed-to-{to}.png", dpi=110)
