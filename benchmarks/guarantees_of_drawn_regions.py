"""The guarantee of a drawn region of 224 x 224 pixels, N = 50, after one sort; and closed e-BH of as many features."""

import statistics

import numpy as np

import metfa
from benchmarks.measuring import seconds

SIDE, N = 224, 50


ROWS, COLUMNS = np.mgrid[:SIDE, :SIDE]


def explained(n_samples) -> metfa.AttributionSample:
    """Of a made-up picture with one bright spot."""
    return metfa.explain(
        lambda inputs, target: np.abs(inputs),  # noqa: ARG005
        1 + 2 * np.exp(-((ROWS[None] - 100) ** 2 + (COLUMNS[None] - 120) ** 2) / 2000),
        0,
        noise=metfa.noise.Gaussian(0.5),
        n_samples=n_samples,
        rng=0,
    )


def main() -> None:
    rng = np.random.default_rng(0)
    sample = explained(N)
    regions = [(ROWS - y) ** 2 + (COLUMNS - x) ** 2 <= r**2 for y, x, r in rng.integers(20, 200, (20, 3)).tolist()]
    regions.append(np.ones((SIDE, SIDE), bool))
    for dependence in ("any", "positive"):
        _report(sample, regions, dependence)
    until = explained(metfa.Until(undecided=0.0, threshold=1.5, max_samples=N))
    _report(until, regions, "any")
    counts = (sample.values[:, 0] > 1.5).sum(axis=0)
    logs = metfa.stats.log_e_values(counts, N)
    times = [seconds(lambda: metfa.stats.closed_e_bh(logs)) for _ in range(11)]
    more = np.count_nonzero(metfa.stats.closed_e_bh(logs)), np.count_nonzero(metfa.stats.e_bh(logs) <= 0.05)
    print(f"closed e-BH: {1e3 * statistics.median(times):.1f} ms, {more[0]:,} marks where e-BH makes {more[1]:,}")


def _report(sample, regions, dependence: str) -> None:
    first = seconds(lambda: sample.guarantee(regions[0], 1.5, dependence=dependence))
    times = [seconds(lambda mask=mask: sample.guarantee(mask, 1.5, dependence=dependence)) for mask in regions]
    whole = sample.guarantee(regions[-1], 1.5, dependence=dependence)
    kind = "e-values" if whole.any_time else dependence
    print(
        f"{kind}: first region {1e3 * first:.1f} ms, further ones {1e3 * statistics.median(times):.1f} ms "
        f"({1e3 * min(times):.1f} to {1e3 * max(times):.1f}; target at most 20 ms); of {int(whole.size[0]):,} pixels "
        f"at least {int(whole.important[0]):,} important, {int(whole.unimportant[0]):,} unimportant"
    )


if __name__ == "__main__":
    main()
