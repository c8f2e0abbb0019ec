"""Tables on faithfulness and robust faithfulness: insertion, deletion, overall, and RI, RD, RO, (smoothed, vanilla).

In the paper: Score-CAM, RISE and I-GOS on VGG16, 1000 pictures, N = 10; O_n normal, and uniform in the appendix.
"""

from paper.setting import NOISES, chosen, parser, run

if __name__ == "__main__":
    made = parser(__doc__, images=1000)
    options = made.parse_args()
    noises = {"normal": NOISES["normal"]} if options.quick else {name: NOISES[name] for name in ("normal", "uniform")}
    result = run(
        options,
        explainers=chosen(options, ("Score-CAM", "RISE", "I-GOS")),
        sampling={"normal": NOISES["normal"]},
        outer=noises,
        metrics={"faithfulness": {"steps": 100}, "robust_faithfulness": {"steps": 20 if options.quick else 100}},
        aggregates=("vanilla", "smoothed"),
        n_samples=10,
        n_outer=3 if options.quick else 10,
    )
    for metric in ("faithfulness", "robust_faithfulness"):
        print(f"\n{result.table(metric)}")
        print(f"\n{result.table(metric, against='vanilla')}")
    frame = result.to_dataframe()
    ratios = frame[frame.metric.isin(["RI", "RD", "RO"])]
    columns = ["score", "raw", "mean_of_ratios", "median_of_ratios"]
    print("\nthe paper's form beside ours, means over inputs:")
    print(ratios.groupby(["explainer", "aggregate", "outer", "metric"])[columns].mean().round(4).to_string())
