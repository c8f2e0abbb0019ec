"""LEMNA with the penalty of its authors' code: how many texts get one score for all their words?

Their penalty is sqrt(n log p), for n copies of a text of p words, whatever the residuals' deviation is; ours has this
deviation and `fused` as factors. So ``fused`` is set to 1 / deviation, again until neither changes. Their regressors are
bytes, ours say which words are left in: the probability is in the same unit, and the penalty weighs more.

    python -m paper.authors_penalty --data FOLDER/test.csv --words 30 80
"""

import argparse
import warnings
from dataclasses import replace

import numpy as np

import metfa
from metfa.text import LEMNA
from paper.text_setting import parser, read

MOST_ROUNDS, CLOSE = 60, 1e-2


def fitted(explainer: LEMNA, text: str) -> tuple[LEMNA, np.ndarray]:
    """The explainer whose penalty is the authors', and the coefficients of the words."""
    for _ in range(MOST_ROUNDS):
        (fit,), _ = explainer.fit([text])
        strength = explainer.fused * fit.mixture.deviations[fit.component]
        if abs(strength - 1) < CLOSE:
            return explainer, fit.coefficients
        explainer = replace(explainer, fused=float(explainer.fused / np.sqrt(strength)))  # damped: both change
    raise RuntimeError(f"no penalty found in {MOST_ROUNDS} rounds: {strength:.4f} of the authors'")


def main(options: argparse.Namespace) -> None:
    model, texts, _ = read(options)
    warnings.simplefilter("ignore", metfa.DegenerateAttributionsWarning)  # counted below
    for copies in options.copies:
        found = [fitted(LEMNA(model, n_perturbations=copies, rng=0), text) for text in texts]
        usual = [LEMNA(model, n_perturbations=copies, rng=0).fit([text])[0][0].coefficients for text in texts]
        for name, maps in (("the authors' penalty", [scores for _, scores in found]), ("fused = 0.1", usual)):
            scores = [len(np.unique(one)) for one in maps]
            equal = sum(number == 1 for number in scores)
            print(f"{copies} copies, {name}: {equal} of {len(maps)} texts have one score for all words; "
                  f"different scores: median {np.median(scores):g}, most {max(scores)}")  # fmt: skip
        settings = np.array([explainer.fused for explainer, _ in found])
        print(f"    their penalty is our `fused` {np.median(settings):.1f} (median; {min(settings):.1f} to "
              f"{max(settings):.1f})", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(parser(__doc__, texts=100, quick=10).parse_args())
