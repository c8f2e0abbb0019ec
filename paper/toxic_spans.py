"""Do the significantly important words of a toxic post lie in the ranges that people marked? MeTFA against vanilla.

This is not in the paper. It takes posts with human-marked character ranges (SemEval-2021 Task 5) that the model calls
toxic, and LEMNA with P = P(0.5), N = 10, or others by option. MeTFA's words are significant at alpha = 0.05,
above the natural break of all scores, as in the paper. They are compared with the best words by the vanilla, the mean
and the smoothed scores, equally many, and with all words whose vanilla scores lie above their own natural break.
"""

import argparse
import hashlib
import time

import numpy as np
import pandas as pd

from metfa import text
from metfa.results.sample import AttributionSample
from metfa.text import Synonyms
from metfa.text.models import TrainedBiLSTM
from metfa.text.words import words_of
from paper.cells import cell
from paper.kept import Kept
from paper.setting import described, natural_break, weights
from paper.text_setting import Texts, lemna, parser, read, rows_of

AS_MANY = ("vanilla", "mean", "smoothed")
WAYS = ("significant", *AS_MANY, "vanilla above its break")


def marked_words(line: str, spans: str) -> np.ndarray:
    """Whether each word of a post shares a character with a marked range."""
    inside = np.zeros(len(line) + 1, dtype=bool)
    for span in spans.split():
        start, end = map(int, span.split("-"))
        inside[start:end] = True
    words = words_of(line)
    assert words.gaps is not None
    lengths = np.array([len(word) for word in words.words])
    starts = np.cumsum([len(gap) for gap in words.gaps[:-1]]) + np.cumsum([0, *lengths[:-1]])
    return np.array([inside[start : start + n].any() for start, n in zip(starts, lengths, strict=True)])


def best(scores: np.ndarray, k: int, order: np.ndarray) -> np.ndarray:
    """The k best words; words with equal scores are taken in the given order."""
    chosen = np.zeros(len(scores), dtype=bool)
    chosen[np.lexsort((order, -scores.astype(np.float64)))[:k]] = True
    return chosen


def figures(sample: AttributionSample, marked: np.ndarray, replaceable: np.ndarray) -> dict[str, int]:
    """For each way: the words taken, the marked words among them, and how many of these have a synonym."""
    decided = sample.significance_map(natural_break(sample.values[:, 0]))[0]
    significant, vanilla = decided == 1, sample.vanilla[0]
    order = np.random.default_rng(0).permutation(len(marked))
    taken = {"significant": significant, "unimportant": decided == -1}
    for name, scores in zip(AS_MANY, (vanilla, sample.mean()[0], sample.smoothed()[0]), strict=True):
        taken[name] = best(scores, int(significant.sum()), order)
    taken[WAYS[-1]] = vanilla > natural_break(vanilla)
    found = {
        "words": len(marked),
        "marked": int(marked.sum()),
        "marked, replaceable": int((marked & replaceable).sum()),
    }
    for name, words in taken.items():
        hits = words & marked
        found |= {
            name: int(words.sum()),
            f"{name} hits": int(hits.sum()),
            f"{name} hits, replaceable": int((hits & replaceable).sum()),
        }
    return found | {"other words than vanilla": int((taken["vanilla"] != significant).any())}


def measured(options: argparse.Namespace, model: TrainedBiLSTM, texts: Texts, copies: int) -> pd.DataFrame:
    """Figures of the posts; they are kept in a table (without words), and a run goes on from it."""
    spans = {row["text"]: row["toxic_spans"] for path in options.data for row in rows_of(path)}
    noise = Synonyms(options.p)
    goal = model.class_names.index(options.only)
    _, explainer = lemna(copies, options.components)
    setting = {
        "inputs": texts.among, "model": weights(model), "explainer": described(explainer), "P": described(noise),
        "n_samples": options.samples, "alpha": 0.05, "threshold": described(natural_break), "seed": 0,
    }  # fmt: skip
    mixture = f"-k-{options.components}" * (options.components > 1)
    name = f"toxic-spans-{copies}-copies-p-{options.p}-n-{options.samples}{mixture}.csv"
    kept = Kept.opened(options.results / name, setting)
    posts = {hashlib.blake2b(line.encode(), digest_size=8).hexdigest(): line for line in texts.chosen}
    started = time.monotonic()
    for post, line in posts.items():
        if post in kept.lines or options.finished or time.monotonic() - started > 3600 * options.hours:
            continue
        clock = time.process_time()
        sample = text.explain_text(model, line, goal, method=explainer, noise=noise, n_samples=options.samples, rng=0)
        found = figures(sample, marked_words(line, spans[line]), np.array(noise.coverage(line)))
        kept.add(post, {"flips": float(np.max(sample.flip_rate)), **found}, time.process_time() - clock)
    print(f"{len(posts.keys() & kept.lines.keys())} of {len(posts)} posts done")
    return pd.DataFrame([line for post, line in kept.lines.items() if post in posts])


def mean(values: pd.Series, sign: str = "") -> str:
    return cell(values.to_numpy(float), sign=sign)


def shown(rows: pd.DataFrame) -> None:
    """Precision and recall of words, as means over posts ± 95 %; differences are taken for each post."""
    if rows.empty:
        return
    print(f"{len(rows)} posts; people marked {rows.marked.sum():.0f} of {rows.words.sum():.0f} words")
    print(f"no word marked in {(rows.marked == 0).sum()}, none significant in {(rows.significant == 0).sum()}")
    print(f"noise changes the class in {mean(rows.flips)} of the copies")
    rows = rows.loc[rows.marked > 0]
    for name in (WAYS[0], WAYS[-1]):
        print(f"{name}, recall in all posts: {mean(rows[f'{name} hits'] / rows.marked)}")
    rows = rows.loc[rows.significant > 0]
    print(
        f"{len(rows)} posts with both: {rows.significant.sum():.0f} of {rows.words.sum():.0f} words significantly "
        "important"
    )
    print(f"MeTFA takes other words than vanilla in {rows['other words than vanilla'].sum():.0f} of them")
    print(f"chance: precision {mean(rows.marked / rows.words)}", end=", ")
    print(f"recall {mean(rows.significant / rows.words)}")
    dull = rows[rows.unimportant > 0]
    print(f"marked among the significantly unimportant: {mean(dull['unimportant hits'] / dull.unimportant)}")
    for name in WAYS:
        known = rows[rows[name] > 0]
        hits = known[f"{name} hits"]
        print(
            f"{name}: precision {mean(hits / known[name])}, recall {mean(hits / known.marked)}, "
            f"any hit {mean((hits > 0).astype(float))}; of all words together: "
            f"precision {hits.sum() / known[name].sum():.3f}, recall {hits.sum() / known.marked.sum():.3f}, "
            f"{known[name].mean():.2f} words a post (n = {len(known)})"
        )
    for name in WAYS:
        with_one, hits = rows["marked, replaceable"].sum(), rows[f"{name} hits, replaceable"].sum()
        without, others = rows.marked.sum() - with_one, rows[f"{name} hits"].sum() - hits
        print(
            f"{name}: of {with_one:.0f} marked words with a synonym it takes {hits / with_one:.2f}, "
            f"of {without:.0f} without one {others / without:.2f}"
        )
    for name in WAYS[1:]:
        known = rows[rows[name] > 0]
        gains = [
            f"{what} {mean(known['significant hits'] / known[mine] - known[f'{name} hits'] / known[its], sign='+')}"
            for what, mine, its in (("precision", "significant", name), ("recall", "marked", "marked"))
        ]
        print(f"significant - {name}: {', '.join(gains)}")


if __name__ == "__main__":
    made = parser(__doc__, texts=1000, quick=150)
    made.add_argument("--p", type=float, default=0.5, help="of the noise; 0 leaves the randomness of LEMNA alone")
    made.add_argument("--samples", type=int, default=10, help="the paper's N")
    made.set_defaults(words=(1, 1000), only="toxic")
    options = made.parse_args()
    model, texts = read(options)
    print(f"of {len(texts.everything)} posts in all")
    for copies in options.copies:
        rows = measured(options, model, texts, copies)
        print(f"\nLEMNA, {copies} copies")
        shown(rows)
