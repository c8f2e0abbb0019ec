"""Table on the level alpha: mstd of the smoothed gradient divided by the vanilla one's, N = 50, P and O_n the same law.

In the paper: Gradient on ResNet-50, alpha from 0.05 to 0.0001: flat at 0.256 (uniform) and 0.261 (normal).
"""

from pathlib import Path

from metfa import plot
from paper.setting import NOISES, chosen, parser, run

ALPHAS = (0.05, 0.01, 0.005, 0.001, 0.0005, 0.0001)

if __name__ == "__main__":
    made = parser(__doc__, images=100)
    made.add_argument("--figures", type=Path, help="folder for the figure")
    options = made.parse_args()
    noises = {name: NOISES[name] for name in ("normal", "uniform")}
    result = run(
        options,
        "alpha",
        explainers=chosen(options, ("Gradient",)),
        sampling=noises,
        outer=noises,
        metrics=["mstd"],
        n_samples=50,
        confidence_level=[1 - alpha for alpha in ALPHAS],
        n_outer=4 if options.quick else 10,
    )
    for name in result.study.methods:
        print(f"\n{result.table('mstd', explainer=name)}")
        if options.figures is not None:
            options.figures.mkdir(parents=True, exist_ok=True)
            figure = plot.mstd_ratio(result, explainer=name, against="alpha", to="vanilla")
            figure.savefig(options.figures / f"{name}-alpha.png", dpi=110)
