"""Detection: do samples of attacked images look different from those of clean images?

Beyond the paper. A map that an attack made for one image may come apart under noise. Then the single map and the
smoothed one differ more than for a clean image, and scores scatter more. How well that separates them must be measured,
and depends on how much the attacker knew: one who knows the defence can reverse the sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from metfa._base.percents import percent
from metfa._base.tables import aligned
from metfa._base.validation import one_of
from metfa.results.cautions import outside
from metfa.results.population import check_copies
from metfa.results.sample import AttributionSample
from metfa.stats.validation import as_level

__all__ = ["SIGNS", "Detection", "detect"]

BISECTIONS = 50


def _difference(sample: AttributionSample, confidence_level: float) -> np.ndarray:
    return np.abs(sample.vanilla.astype(np.float64) - sample.smoothed(confidence_level))


def _width(sample: AttributionSample, confidence_level: float) -> np.ndarray:
    interval = sample.confidence_interval(confidence_level)
    return np.subtract(interval.high, interval.low, dtype=np.float64)


def _outside(sample: AttributionSample, confidence_level: float) -> np.ndarray:
    return outside(sample, sample.confidence_interval(confidence_level)).astype(np.float64)


SIGNS: dict[str, Callable[[AttributionSample, float], np.ndarray]] = {
    "difference": _difference,
    "width": _width,
    "outside": _outside,
}


@dataclass(frozen=True, eq=False)
class Detection:
    """How well signs separate attacked images from clean ones.

    Attributes
    ----------
    clean, attacked : dict of ndarray, (images,)
        Each sign of each image, a mean over features: "difference" between the vanilla and the smoothed map, "width" of
        the intervals, and the share of the vanilla map that lies "outside" the intervals, by more than rounding.
    """

    clean: dict[str, np.ndarray]
    attacked: dict[str, np.ndarray]

    def roc(self, sign: str) -> tuple[np.ndarray, np.ndarray]:
        """Shares of clean and of attacked images that are called attacked, for each threshold, the strictest first."""
        clean, attacked = self._of(sign)
        thresholds = np.concatenate([[np.inf], np.unique(np.concatenate([clean, attacked]))[::-1]])
        of_clean, of_attacked = ((values >= thresholds[:, None]).mean(axis=1) for values in (clean, attacked))
        return of_clean, of_attacked

    def auc(self, sign: str) -> float:
        """Area under the curve: the chance that an attacked image has more of the sign than a clean one.

        0.5 is no better than guessing; below 0.5 the sign points the other way.
        """
        clean, attacked = self._of(sign)
        return float(((attacked[:, None] > clean) + 0.5 * (attacked[:, None] == clean)).mean())

    def auc_interval(self, sign: str, confidence_level: float = 0.95) -> tuple[float, float]:
        """Low and high limit of the area, over images.

        Newcombe's limits (2006, "Confidence intervals for an effect size measure based on the Mann-Whitney statistic,
        part 2", method 5): the areas whose own standard error, by Hanley and McNeil, explains the area that was found.
        They keep a width where all pairs agree, as happens easily with few images. Asymptotic: in simulations of 4 to
        20 images of each kind they held the area in 0.91 to 0.97 of the runs at the level 0.95.
        """
        level = as_level(confidence_level, "confidence_level")
        area, (n_clean, n_attacked) = self.auc(sign), map(len, self._of(sign))
        quantile, n = NormalDist().inv_cdf((1 + level) / 2), (n_clean + n_attacked) / 2 - 1

        def explains(other: float) -> bool:
            variance = other * (1 - other) * (1 + n * (1 - other) / (2 - other) + n * other / (1 + other))
            return abs(area - other) <= quantile * math.sqrt(variance / (n_clean * n_attacked))

        limits = []
        for beyond in (0.0, 1.0):
            inside = area
            for _ in range(BISECTIONS if inside != beyond else 0):
                middle = (inside + beyond) / 2
                inside, beyond = (middle, beyond) if explains(middle) else (inside, middle)
            limits.append(inside)
        return limits[0], limits[1]

    def _of(self, sign: str) -> tuple[np.ndarray, np.ndarray]:
        one_of(sign, "sign", self.clean)
        return self.clean[sign], self.attacked[sign]

    def __str__(self) -> str:
        rows = [("sign", "clean", "attacked", f"AUC ({percent(0.95)} limits)")]
        for sign, clean in self.clean.items():
            low, high = self.auc_interval(sign)
            area = f"{self.auc(sign):.3f} ({low:.3f} to {high:.3f})"
            rows.append((sign, f"{clean.mean():.4f}", f"{self.attacked[sign].mean():.4f}", area))
        return "\n".join(aligned(rows))


def detect(clean: AttributionSample, attacked: AttributionSample, *, confidence_level: float = 0.95) -> Detection:
    """Signs of an attack in samples of clean and of attacked images.

    No sign is reliable. One that separates attackers who do not know of a defence says nothing about those who do, and
    may miss the first as well. AUC of "difference" (paper/ATTACK_RESULTS.md), with 95 % limits by
    `Detection.auc_interval`:

    ====================  ======================  ======================
    images                attacker knows nothing  knows the defence
    ====================  ======================  ======================
    CAM, 6 photographs    1.000 (0.69 to 1)       0.000 (0 to 0.31)
    LRP, 3 photographs    1.000 (0.50 to 1)       0.389 (0.10 to 0.79)
    CAM, 40 digits        0.489 (0.37 to 0.61)    0.470 (0.35 to 0.59)
    LRP, 40 digits        0.632 (0.51 to 0.74)    0.567 (0.44 to 0.68)
    ====================  ======================  ======================

    On the six photographs the sign is reversed: maps of attackers who know the defence and draw on both maps agree with
    their smoothed form better than clean ones do. On digits even the others were hardly noticed. The limits are for
    independent images, and these are the same images clean and attacked. So measure both kinds of attackers, and never
    take a missing sign for a proof.

    Parameters
    ----------
    clean, attacked : AttributionSample
        Samples of clean images, and of attacked images (other images or the same), by the same explainer of the same
        model under the same noise with the same N: ``metfa.explain(explainer, result.adversarial.inputs, ...)``. The
        samples do not tell whether the model is the same: another one's maps differ too, and so do those of different
        classes. Explain the predicted classes, or the same classes.
    confidence_level : float
        Level of the smoothed maps and intervals.

    Returns
    -------
    Detection

    Raises
    ------
    ValueError
        If the samples were not made in the same way, or if there are too few for the level.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> from metfa import attacks
    >>> def sampled(images):
    ...     return metfa.explain(
    ...         lambda x, target: np.tanh(20 * x), images, 0, noise=metfa.noise.Uniform(0.2), n_samples=12, rng=0
    ...     )
    >>> clean, attacked = np.full((4, 6), 0.5), np.full((4, 6), 0.02)  # where the map is steep
    >>> found = attacks.detect(sampled(clean), sampled(attacked))
    >>> found.auc("width")
    1.0
    >>> low, _ = found.auc_interval("width")
    >>> print(f"{low:.2f}")  # four images of each kind do not say more
    0.58
    """
    for name, sample in (("clean", clean), ("attacked", attacked)):
        if not isinstance(sample, AttributionSample):
            raise TypeError(f"`{name}` must be an AttributionSample, got {type(sample).__name__}")
        check_copies(sample.population, f"`{name}` must hold")
    made = [
        {"n_samples": sample.n_samples, **{key: sample.provenance.get(key) for key in ("explainer", "noise")}}
        for sample in (clean, attacked)
    ]
    for name, value in made[0].items():
        if made[1][name] != value:
            raise ValueError(
                f"`clean` and `attacked` must be made in the same way, got {name} {value} and {made[1][name]}: they "
                "would differ without any attack"
            )
    found = [
        {
            name: sign(sample, confidence_level).reshape(len(sample.vanilla), -1).mean(axis=1)
            for name, sign in SIGNS.items()
        }
        for sample in (clean, attacked)
    ]
    return Detection(*found)
