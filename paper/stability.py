"""Tables on stability: mstd under every P and O_n, of smoothed and vanilla maps.

In the paper: RISE on DenseNet-169; Gradient, LIME, I-GOS and Score-CAM on ResNet-50; Gradient on DenseNet-169. 100
pictures, N = 10, 10 draws of O_n.
"""

from paper.setting import NOISES, chosen, methods, parser, run

if __name__ == "__main__":
    made = parser(__doc__, images=100)
    made.add_argument("--noises", nargs="*", choices=NOISES, default=list(NOISES), help="only these, as P and as O_n")
    options = made.parse_args()
    noises = {name: NOISES[name] for name in options.noises}
    result = run(
        options,
        "stability" if set(noises) == set(NOISES) else f"stability-{'-'.join(noises)}",
        explainers=chosen(options, ("Gradient",) if options.quick else tuple(methods(quick=False))),
        sampling=noises,
        outer=noises,
        metrics=["mstd"],
        n_samples=10,
        n_outer=4 if options.quick else 10,
    )
    for table in result.tables():
        print(f"\n{table}")
    print(f"\n{result.table('mstd', against='vanilla')}")
