"""Tables on faithfulness and robust faithfulness: insertion, deletion, overall, and RI, RD, RO.

In the paper: Score-CAM, RISE and I-GOS on VGG16, 1000 pictures, N = 10, P uniform, pairs (smoothed, vanilla); O_n
normal, and uniform in the appendix. Here the mean of the samples stands beside them, and RISE also with a tenth of the
masks: the 10 samples of its mean and its smoothed map then cost as many masks as the vanilla map of RISE itself.
"""

from paper.setting import GREY, NOISES, chosen, parser, run

ASKED = {"baseline": GREY, "fast": "exact"}  # grey hides, as in the paper's code; folded, the same function to rounding

if __name__ == "__main__":
    made = parser(__doc__, images=1000)
    options = made.parse_args()
    noises = {"normal": NOISES["normal"]} if options.quick else {name: NOISES[name] for name in ("normal", "uniform")}
    result = run(
        options,
        "faithfulness",
        explainers=chosen(options, ("RISE", "RISE, a tenth", "Score-CAM", "I-GOS")),
        sampling={"uniform": NOISES["uniform"]},
        outer=noises,
        metrics={
            "faithfulness": {"steps": 100, **ASKED},
            "robust_faithfulness": {"steps": 20 if options.quick else 100, **ASKED},
        },
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
