"""`metfa explain --certify`: its checks, its line in the report, and its figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.percents import percent
from metfa.by_name.noises import noise_of
from metfa.noise.pixel_space import gaussian_std
from metfa.results.certified import CORRECTIONS, assumption_of, certified
from metfa.results.sample import AttributionSample

if TYPE_CHECKING:
    from metfa.cli.run import Analysis, Sampling

__all__ = ["certificate_figure", "certificate_line", "check_certificate"]


def check_certificate(sampling: Sampling, analysis: Analysis) -> None:
    """Refuse a certificate that is not possible, before any model runs."""
    if gaussian_std(noise_of(sampling.noise)) is None:
        raise ValueError(
            f"`--certify` needs Gaussian noise, such as --noise gaussian:0.1, got --noise {sampling.noise}"
        )
    if not sampling.decides and (analysis.threshold is None or callable(analysis.threshold)):
        raise ValueError(
            "`--certify` needs a threshold that does not depend on the samples: give a number by --threshold, or let "
            "--until undecided=... take it from its first round"
        )
    if analysis.correction not in (*CORRECTIONS, "none"):
        names = "none, bonferroni, bh, e-bh or closed-e-bh"
        raise ValueError(f"`--certify` takes --correction {names}, got {analysis.correction}")


def certificate_line(sample: AttributionSample, analysis: Analysis) -> str:
    """What is certified, and for how many pixels."""
    radius, decision = certified(sample, sample.terms(**analysis.given))
    if not radius.any():
        return "no pixel is decided, so none is certified"
    most, half, few = (f"{np.quantile(radius[radius > 0], share):.3g}" for share in (0.1, 0.5, 0.9))
    certified_share = percent((radius > 0).mean(), 2)
    said = "; ".join([decision.terms.level, *filter(None, [assumption_of(decision.terms)])])
    return (
        f"the medians of {certified_share} of the pixels, under this noise and for this class, stay on their side of "
        "the threshold for every change of the picture that is shorter than the pixel's radius; 90% of these radii are "
        f"at least {most}, half at least {half}, 10% at least {few} (L2, pixels in 0..1; {said})"
    )


def certificate_figure(sample: AttributionSample, analysis: Analysis, title: str | None) -> Any:
    """The figure of the radii."""
    from metfa.plot import certificate

    return certificate(sample, title=title, flips_from=analysis.flips_from, **analysis.given)
