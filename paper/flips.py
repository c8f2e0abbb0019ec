"""How often the paper's noises change the predicted class of a photograph.

The paper asks of P that it changes the output little (its axiom); for U(-0.1, 0.1) on photographs it gives no figure.
Here each noise is drawn ten times for each photograph, and the class is compared with that of the clean one:

    python -m paper.flips --data FOLDER
"""

from paper.setting import NOISES, chosen, parser, run

if __name__ == "__main__":
    options = parser(__doc__, images=100).parse_args()
    result = run(
        options,
        "flips",
        explainers=chosen(options, ("Gradient",)),  # whose scores tell the class; its maps are not used
        outer=NOISES,
        metrics=["prediction_agreement"],
        aggregates=["vanilla"],
        n_outer=10,
    )
    print(result.table("prediction_agreement"))
