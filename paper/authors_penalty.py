"""The penalty of LEMNA's authors on words that are left in or out: how many texts get one score for all their words?

Their code minimises ½ Σ (y - x·b)² + λ Σ |bⱼ₊₁ - bⱼ| with λ = sqrt(n log p), for n copies of a text of p words. There
the regressors are bytes. Here they are zeros and ones, so the same penalty weighs more, and `metfa.text.LEMNA` has the
residuals' deviation and `fused` as factors. Both have an intercept. The steps bⱼ₊₁ - bⱼ are found by scikit-learn's
lasso.

    python -m paper.authors_penalty --data FOLDER/test.csv --words 30 80
"""

import argparse
from functools import partial
from time import monotonic, process_time
from typing import Any

import numpy as np
from sklearn.linear_model import Lasso

from metfa.text import LEMNA
from metfa.text.words import words_of
from paper.kept import Kept
from paper.setting import described, digest, weights
from paper.text_setting import Texts, parser, read


def scores(model: Any, words: tuple[str, ...], copies: int, rng: np.random.Generator) -> np.ndarray:
    """Coefficients of the words, one regression, the authors' penalty."""
    kept = np.ones((copies, len(words)))
    for row in kept[1:]:
        row[rng.choice(len(words), rng.integers(1, len(words) + 1), replace=False)] = 0
    answers = np.asarray(model([[word for word, left in zip(words, row, strict=True) if left] for row in kept]))
    response = answers[:, answers[0].argmax()].astype(float)
    steps = np.cumsum(kept[:, ::-1], axis=1)[:, ::-1]  # the first is for the level of all words
    free = np.column_stack([np.ones(copies), steps[:, 0]])  # without a penalty
    others, left = (part - free @ np.linalg.lstsq(free, part, rcond=None)[0] for part in (steps[:, 1:], response))
    penalty = np.sqrt(copies * np.log(len(words)))
    found = Lasso(penalty / copies, fit_intercept=False, max_iter=100_000, tol=1e-8).fit(others, left).coef_
    return np.concatenate([[0], np.cumsum(found)])  # up to the level


def measured(options: argparse.Namespace, model: Any, texts: Texts, copies: int, until: float) -> Kept:
    """How many different scores the words of each text get, by the authors' penalty and by `LEMNA`, text by text."""
    usual = partial(LEMNA, n_perturbations=copies)
    setting = {
        "inputs": texts.among, "model": weights(model), "usual": described(usual), "copies": copies, "seed": "own",
    }  # fmt: skip
    kept = Kept.opened(options.results / f"authors-penalty-{copies}-copies.csv", setting)
    for text in texts.chosen:
        unit = digest([text.encode()])
        if unit in kept.lines or options.finished or monotonic() > until:
            continue
        clock = process_time()
        deletions = np.random.default_rng(int(unit, 16))  # else texts of one length had the same
        theirs = scores(model, words_of(text).words, copies, deletions)
        ours = usual(model, rng=0).fit([text])[0][0].coefficients
        found = {"words": len(theirs), "authors": len(np.unique(theirs)), "usual": len(np.unique(ours))}
        kept.add(unit, found, process_time() - clock)
    return kept


if __name__ == "__main__":
    options = parser(__doc__, texts=100, quick=10).parse_args()
    model, texts = read(options)
    until = monotonic() + 3600 * options.hours
    for copies in options.copies:
        kept = measured(options, model, texts, copies, until)
        one = {name: sum(number == 1 for number in kept.column(name)) for name in ("authors", "usual")}
        print(f"{copies} copies, one score for all words: {one} of {len(kept.lines)} texts")
