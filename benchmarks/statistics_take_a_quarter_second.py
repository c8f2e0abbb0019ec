"""All maps of a sample of 224 x 224 pixels and N = 50, from NumPy arrays on the CPU; jenks against kmeans1d."""

import statistics
from functools import partial

import kmeans1d
import numpy as np

import metfa
from benchmarks.measuring import seconds


def main() -> None:
    rng = np.random.default_rng(0)
    values = (rng.gamma(0.5, 1.0, (1, 1, 224, 224)) * rng.gamma(2.0, 0.5, (50, 1, 224, 224))).astype(np.float32)
    values /= values.max(axis=(2, 3), keepdims=True)

    def all_maps(rule) -> None:
        threshold = rule(values)
        metfa.stats.sign_test(values, threshold)
        metfa.stats.median_interval(values)
        metfa.stats.smoothed_median(values)

    for rule in (metfa.stats.jenks_of_medians, metfa.stats.jenks):
        times = [seconds(partial(all_maps, rule)) for _ in range(11)]
        print(
            f"threshold by {rule.__name__}, test, interval and smoothed map: {statistics.median(times):.3f} s "
            f"({min(times):.3f} to {max(times):.3f}; target at most 0.25 s)"
        )
    flat = values.ravel()
    ours = statistics.median(seconds(lambda: metfa.stats.jenks(flat)) for _ in range(5))
    found = []
    theirs = seconds(lambda: found.append(kmeans1d.cluster(flat, 2)))
    labels = np.asarray(found[0].clusters)
    same = np.array_equal(labels == labels[flat.argmax()], flat > metfa.stats.jenks(flat))
    print(
        f"natural breaks of {flat.size:,} values: jenks {ours:.3f} s, kmeans1d {theirs:.3f} s, {theirs / ours:.0f} "
        f"times faster (target 5); the same split: {'yes' if same else 'NO'}"
    )


if __name__ == "__main__":
    main()
