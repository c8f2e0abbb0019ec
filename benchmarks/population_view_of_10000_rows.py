"""The global view of 10,000 explained rows of 50 columns, without the model: intervals, marks, ranking, figures."""

import io

import numpy as np

import metfa
from benchmarks.measuring import seconds

ROWS, COLUMNS, N = 10_000, 50, 20


def explained() -> metfa.AttributionSample:
    """Scores as a linear model gives them; the copies of each row differ a little."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    maps = rows * np.geomspace(0.01, 3, COLUMNS, dtype=np.float32)
    values = maps + 0.1 * rng.normal(size=(N, ROWS, COLUMNS)).astype(np.float32)
    names = tuple(f"column {number}" for number in range(COLUMNS))
    ids = tuple(f"row {number}" for number in range(ROWS))
    return metfa.AttributionSample(values, rows, (0,) * ROWS, maps, None, None, tuple(range(N)), ids, names)


def main() -> None:
    sample = explained()
    _written(sample.of_input(0).plot())  # loads matplotlib
    for of in ("vanilla", "mean", "smoothed"):
        found = {}

        def population(of=of, found=found) -> None:
            found["all"] = sample.across_inputs(of)

        def view(found=found) -> None:
            found["all"].confidence_interval()
            found["all"].significance_map(correction="holm")
            _written(found["all"].plot())

        times = {"one number a row": seconds(population), "intervals, marks and bars": seconds(view)}
        print(f"{of}: {_listed(times)}; together {sum(times.values()):.2f} s (target below 3 s)", flush=True)
    signed = sample.across_inputs(absolute=False)
    more = {
        "summary with ranking": lambda: str(found["all"].summary()[0]),
        "ranking of 1,225 pairs": found["all"].ranking,
        "its figure": lambda: _written(metfa.plot.ranking(found["all"])),
        "points": lambda: _written(metfa.plot.beeswarm(signed)),
    }
    print(_listed({name: seconds(call) for name, call in more.items()}))


def _written(figure) -> None:
    figure.savefig(io.BytesIO(), format="png", dpi=110)


def _listed(times: dict[str, float]) -> str:
    return ", ".join(f"{name} {spent:.2f} s" for name, spent in times.items())


if __name__ == "__main__":
    main()
