"""Tables on the stability of LEMNA: mstd of vanilla, mean-smoothed and MeTFA-smoothed scores of words.

In the paper: a bidirectional LSTM on 100 toxic comments of 40 to 80 words (500 and 2000 copies) and on reviews of IMDb
(2000); P and O_n replace each word by a synonym with probability 0.5; N = 10. The script also prints the overlap of the
best words.
"""

from paper.text_setting import P, beside, parser, read, run

PAPER = """the paper's, vanilla -> smoothed: toxic comments .1803 -> .0891 (2000 copies, ratio .494),
.1531 -> .0549, mean .0667 (500 copies, ratios .358 and .436); reviews .3012 -> .1691 (2000 copies, ratio .561)"""

if __name__ == "__main__":
    options = parser(__doc__, texts=100, quick=12).parse_args()
    model, texts = read(options)
    result = run(
        options,
        "text-stability",
        model,
        texts,
        outer={"synonyms, p = 0.5": P},
        metrics={"mstd": {}, "top_k_overlap": {"k": 5}, "prediction_agreement": {}},
        n_outer=4 if options.quick else 10,
    )
    for table in result.tables():
        print(f"\n{table}")
    frame = result.to_dataframe()
    print()
    for (metric, explainer), rows in frame.groupby(["metric", "explainer"], sort=False):
        scores = rows.pivot(index="input", columns="aggregate", values="score")
        for name, other in (("mean", "vanilla"), ("smoothed", "vanilla"), ("smoothed", "mean")):
            if name in scores:
                print(f"{metric}, {explainer}: {name} beside {other}: {beside(scores[name], scores[other])}")
    print(PAPER)
