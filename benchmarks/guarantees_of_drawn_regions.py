"""The guarantee of a drawn region of 224 x 224 pixels, N = 50, after one sort; and closed e-BH of as many features."""

import statistics
import time

import numpy as np

import metfa

SIDE, N = 224, 50


def maps(inputs, target):  # noqa: ARG001
    return np.abs(inputs)


def main() -> None:
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    strength = 1 + 2 * np.exp(-((rows - 100) ** 2 + (columns - 120) ** 2) / 2000)
    sample = metfa.explain(
        maps,
        strength[None],
        0,
        noise=metfa.noise.Gaussian(0.5),
        n_samples=N,
        rng=0,
    )
    regions = [(rows - y) ** 2 + (columns - x) ** 2 <= r**2 for y, x, r in rng.integers(20, 200, (20, 3)).tolist()]
    regions.append(np.ones((SIDE, SIDE), bool))
    for dependence in ("any", "positive"):
        _report(sample, regions, dependence)
    until = metfa.explain(
        maps,
        strength[None],
        0,
        noise=metfa.noise.Gaussian(0.5),
        n_samples=metfa.Until(undecided=0.0, threshold=1.5, max_samples=N),
        rng=0,
    )
    _report(until, regions, "any")
    counts = (sample.values[:, 0] > 1.5).sum(axis=0)
    logs = metfa.stats.log_e_values(counts, N)
    times = [_seconds(lambda: metfa.stats.closed_e_bh(logs)) for _ in range(11)]
    more = np.count_nonzero(metfa.stats.closed_e_bh(logs)), np.count_nonzero(metfa.stats.e_bh(logs) <= 0.05)
    print(f"closed e-BH: {1e3 * statistics.median(times):.1f} ms, {more[0]:,} marks where e-BH makes {more[1]:,}")


def _report(sample, regions, dependence: str) -> None:
    first = _seconds(lambda: sample.guarantee(regions[0], 1.5, dependence=dependence))
    times = [_seconds(lambda mask=mask: sample.guarantee(mask, 1.5, dependence=dependence)) for mask in regions]
    whole = sample.guarantee(regions[-1], 1.5, dependence=dependence)
    kind = "e-values" if whole.any_time else dependence
    print(
        f"{kind}: first region {1e3 * first:.1f} ms, further ones {1e3 * statistics.median(times):.1f} ms "
        f"({1e3 * min(times):.1f} to {1e3 * max(times):.1f}; target at most 20 ms); of {int(whole.size[0]):,} pixels "
        f"at least {int(whole.important[0]):,} important, {int(whole.unimportant[0]):,} unimportant"
    )


def _seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
