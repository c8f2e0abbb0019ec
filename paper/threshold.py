"""Figure on the threshold h: the class score of only the significantly important or unimportant region.

In the paper: one picture, h from 0.1 to 0.8; there the natural break is 0.41, near the place where the score falls.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import metfa
from metfa.evaluation.inputs import study_inputs
from paper.setting import NOISES, chosen, parser

if __name__ == "__main__":
    made = parser(__doc__, images=1)
    made.add_argument("--figures", type=Path, default=Path("paper-figures"), help="folder for the figure")
    options = made.parse_args()
    loaded = metfa.models.load(options.model)
    paths = study_inputs(options.data, None, options.images, shuffle=0).paths  # in the order of the other scripts
    options.figures.mkdir(parents=True, exist_ok=True)
    for path in paths:
        pixels = loaded.preprocess(Image.open(path))[None]
        for name, make in chosen(options, ("RISE",)).items():
            sample = metfa.explain(make(loaded.module), pixels, noise=NOISES["normal"], n_samples=10, rng=0)
            natural = float(sample.threshold(metfa.stats.jenks)[0])
            thresholds = np.unique(np.append(np.linspace(0.05, 0.95, 7 if options.quick else 19), natural))
            lines = {"important": [], "unimportant": []}
            for threshold in thresholds:
                marks = sample.significance_map(threshold=float(threshold))
                for kind, mark in (("important", 1), ("unimportant", -1)):
                    region = marks == mark
                    score = np.nan
                    if region.any():
                        score = metfa.metrics.region_score(loaded.module, pixels, region, list(sample.target)).raw[0]
                    lines[kind].append((score, region.mean()))
            print(f"{path.name}, {name}: natural break at h = {natural:.3f}")
            figure = Figure(figsize=(6.5, 4.2), layout="constrained")
            axes = figure.subplots()
            for kind, colour in (("important", "#e69f00"), ("unimportant", "#12603a")):
                scores, areas = np.array(lines[kind]).T
                axes.plot(thresholds, scores, color=colour, label=f"class probability, {kind} region alone")
                axes.plot(thresholds, areas, color=colour, linestyle=":", label=f"area of the {kind} region")
                for threshold, score, area in zip(thresholds, scores, areas, strict=True):
                    print(f"  h = {threshold:.3f}, {kind}: probability {score:.3f}, area {area:.3f}")
            axes.axvline(natural, color="black", linewidth=0.8, label=f"natural break {natural:.2f}")
            axes.set_xlabel("threshold h")
            axes.legend(frameon=False, fontsize="small")
            figure.savefig(options.figures / f"{path.stem}-{name}-threshold.png", dpi=110)
