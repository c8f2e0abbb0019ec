"""The effect of `fast="bfloat16"` on maps and marks, compared with the effect of another seed in float32."""

from typing import Any

import numpy as np

import metfa
from benchmarks.measuring import photograph


def main() -> None:
    model, pixels = photograph()
    noise = metfa.noise.Uniform(0.1, bounds=(0.0, 1.0))

    def sample(seed: int, fast: Any) -> metfa.AttributionSample:
        explainer = metfa.explainers.Gradient(metfa.Called(model, fast=fast))
        return metfa.explain(explainer, pixels, noise=noise, n_samples=50, rng=seed)

    full, half, other = sample(0, None), sample(0, "bfloat16"), sample(1, None)
    pairs = zip(full.values[:, 0], half.values[:, 0], strict=True)
    single = [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in pairs]
    print(f"single maps, same noise, float32 against bfloat16: correlation {np.mean(single):.3f}")
    for name, result in (("bfloat16, same noise", half), ("float32, other noise", other)):
        smooth = np.corrcoef(full.smoothed().ravel(), result.smoothed().ravel())[0, 1]
        agree = np.mean(full.significance_map(0.1) == result.significance_map(0.1))
        print(
            f"float32 against {name}: smoothed maps correlate at {smooth:.3f}, {agree:.1%} of the marks agree (h = 0.1)"
        )


if __name__ == "__main__":
    main()
