"""Detection: do samples of attacked images look different from those of clean images?

Beyond the paper. An attacked map holds for one image; under noise it comes apart. So the single map and the smoothed
one should differ more for attacked images than for clean ones, and scores should scatter more. How well that separates
them must be measured, and depends on how much the attacker knew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metfa._base.tables import aligned
from metfa._base.validation import one_of
from metfa.results.population import check_copies
from metfa.results.sample import AttributionSample

__all__ = ["SIGNS", "Detection", "detect"]


def _difference(sample: AttributionSample, confidence_level: float) -> np.ndarray:
    return np.abs(sample.vanilla.astype(np.float64) - sample.smoothed(confidence_level))


def _width(sample: AttributionSample, confidence_level: float) -> np.ndarray:
    interval = sample.confidence_interval(confidence_level)
    return np.subtract(interval.high, interval.low, dtype=np.float64)


def _outside(sample: AttributionSample, confidence_level: float) -> np.ndarray:
    interval = sample.confidence_interval(confidence_level)
    return ((sample.vanilla < interval.low) | (sample.vanilla > interval.high)).astype(np.float64)


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
        the intervals, and the share of the vanilla map that lies "outside" the intervals.
    """

    clean: dict[str, np.ndarray]
    attacked: dict[str, np.ndarray]

    def roc(self, sign: str) -> tuple[np.ndarray, np.ndarray]:
        """Shares of clean and of attacked images that are called attacked, for each threshold, the strictest first."""
        clean, attacked = self._of(sign)
        thresholds = np.concatenate([[np.inf], np.unique(np.concatenate([clean, attacked]))[::-1]])
        of_clean, of_attacked = ((values >= thresholds[:, None]).mean(axis=1) for values in (clean, attacked))
        return of_clean, of_attacked

    def auc(self, sign: str) -> tuple[float, float]:
        """Area under the curve, with its standard error over images (Hanley and McNeil 1982).

        The area is the chance that an attacked image has more of the sign than a clean one. 0.5 is no better than
        guessing; below 0.5 the sign points the other way. The error is 0 if all pairs agree, which happens easily with
        few images.
        """
        clean, attacked = self._of(sign)
        area = float(((attacked[:, None] > clean) + 0.5 * (attacked[:, None] == clean)).mean())
        of_attacked, of_clean = area / (2 - area), 2 * area**2 / (1 + area)
        n_attacked, n_clean = len(attacked), len(clean)
        variance = area * (1 - area) + (n_attacked - 1) * (of_attacked - area**2) + (n_clean - 1) * (of_clean - area**2)
        return area, float(np.sqrt(max(variance, 0) / (n_attacked * n_clean)))

    def _of(self, sign: str) -> tuple[np.ndarray, np.ndarray]:
        one_of(sign, "sign", self.clean)
        return self.clean[sign], self.attacked[sign]

    def __str__(self) -> str:
        rows = [("sign", "clean", "attacked", "AUC")]
        for sign, clean in self.clean.items():
            area, error = self.auc(sign)
            rows.append((sign, f"{clean.mean():.4f}", f"{self.attacked[sign].mean():.4f}", f"{area:.3f} ± {error:.3f}"))
        return "\n".join(aligned(rows))


def detect(clean: AttributionSample, attacked: AttributionSample, *, confidence_level: float = 0.95) -> Detection:
    """Signs of an attack in samples of clean and of attacked images.

    A sign that separates attackers who do not know of a defence says nothing about those who do: on six photographs
    (CAM) the AUC of "difference" was 1.0 for the first and 0.0 for the second, whose maps agree with their smoothed
    form better than clean ones do. So measure both, and never take a missing sign for a proof.

    Parameters
    ----------
    clean, attacked : AttributionSample
        Samples of clean images, and of attacked images (other images or the same), by the same explainer of the same
        model under the same noise with the same N: ``metfa.explain(explainer, result.adversarial.inputs, ...)``. Maps
        of different classes differ too: explain the predicted classes, or the same classes.
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
    >>> print(attacks.detect(sampled(clean), sampled(attacked)).auc("width"))
    (1.0, 0.0)
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
