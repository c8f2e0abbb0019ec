"""Texts: stability and faithfulness of words, and spans that people marked."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paper.blocks.images import FIGURES, words_of
from paper.cells import HOLM, Found, Part, cell, found, how, ratio, share, size, stability, table, verdicts

__all__ = [
    "MAPS", "SETS", "SYNONYMS", "of_stability", "of_words", "penalty", "said_of_words", "spans", "text_faithfulness",
    "text_stability", "toxic_spans",
]  # fmt: skip

SYNONYMS = "synonyms, p = 0.5"
MAPS = ("vanilla", f"mean, {SYNONYMS}, 10", f"smoothed, {SYNONYMS}, 10")
AGREE = stability("vanilla", SYNONYMS, metric="prediction_agreement")
SETS = {"toxicity": 92, "sentiment": 100}
LEMNAS = {  # in words, and in the names of their tables; K: components of the mixture
    "500 copies": "500-copies", "2000 copies": "2000-copies",
    "500 copies, K = 3": "500-copies-k-3", "500 copies, K = 6": "500-copies-k-6",
}  # fmt: skip
STRENGTHS = (0.0, 0.3, 0.5, 0.7)


Key = tuple[str, str, str]  # data and LEMNA, other map, figure


def _tables(folder: Path) -> dict[tuple[str, str], Found | None]:
    return {
        (data, copies): found(f"text-stability-lemna-{file}-{data}", folder)
        for data in SETS
        for copies, file in LEMNAS.items()
        if not (data == "sentiment" and "K" in copies)
    }


def _gaps(folder: Path) -> dict[Key, tuple[np.ndarray, str]]:
    """Smoothed minus another map, text by text, and what it shows."""
    gaps, words = {}, []
    for (data, copies), one in _tables(folder).items():
        for other in MAPS[:2] if one is not None else ():
            for figure, label in FIGURES.items():
                gap = one[stability(MAPS[2], SYNONYMS, figure)] - one[stability(other, SYNONYMS, figure)]
                gaps[f"{data}, {copies}", other.partition(",")[0], label] = gap
                words.append(words_of(figure))
    return dict(zip(gaps, zip(gaps.values(), verdicts(list(gaps.values()), words), strict=True), strict=True))


def of_stability(folder: Path) -> dict[Key, str]:
    """What smoothed minus another map shows, by data and LEMNA, other map and figure."""
    return {key: shown for key, (_, shown) in _gaps(folder).items()}


def text_stability(folder: Path) -> Part:
    """Each figure of the three maps, and what paired differences show."""
    tables, rows, about = _tables(folder), [], ""
    for (data, copies), one in tables.items():
        label = f"{data}, {copies}"
        if one is None:
            rows.append([label, size(None, SETS[data]), *("–" for _ in range(8))])
            continue
        about = how(one)
        for map_ in MAPS:
            cells = [cell(one[stability(map_, SYNONYMS, figure)]) for figure in FIGURES]
            best = cell(one[stability(map_, SYNONYMS, metric="top_k_overlap")])
            parts = [ratio(one[stability(map_, SYNONYMS, what)], one[stability("vanilla", SYNONYMS, what)])
                     for what in ("score", "level")] if map_ != "vanilla" else ["", ""]  # fmt: skip
            rows.append([label, size(one, SETS[data]), map_.partition(",")[0], *cells, best, *parts])
    header = ["data, LEMNA", "texts", "map", *FIGURES.values(), "best 5 in common", "mstd / vanilla's"]
    text = [f"{about}.", table([*header, "level / vanilla's"], rows)] if about else [table(header, rows)]
    text.append("\n".join(
        f"- {data}, {copies}: {share(one[AGREE])} of the noisy texts keep the class of the clean one."
        for (data, copies), one in tables.items() if one is not None and copies == "500 copies"
    ))  # fmt: skip
    if gaps := _gaps(folder):
        rows = [[*key, cell(gap, sign="+"), said] for key, (gap, said) in gaps.items()]
        header = ["data, LEMNA", "smoothed minus", "figure", "difference", "shown"]
        text += [f"Text by text; what is shown, {HOLM}:", table(header, rows)]
    return Part(_sizes(tables), "\n\n".join(part for part in text if part))


def _sizes(tables: dict[tuple[str, str], Found | None]) -> str:
    """Posts and sentences for each LEMNA."""
    units = {"toxicity": "posts", "sentiment": "sentences"}
    by_copies: dict[str, list[str]] = {}
    for (data, copies), one in tables.items():
        by_copies.setdefault(copies, []).append(size(one, SETS[data], units[data]))
    return "; ".join(f"{copies}: {' and '.join(sizes)}" for copies, sizes in by_copies.items())


def of_words(folder: Path, data: str, copies: int) -> tuple[Found, dict[tuple[str, float], list[np.ndarray]]] | None:
    """A table, and vanilla, mean and smoothed scores by metric and strength of the noise."""
    one = found(f"text-faithfulness-lemna-{copies}-copies-{data}", folder)
    if one is None:
        return None
    return one, {
        (what, p): [one[stability(map_, "", metric=f"{what}, p = {p}")] for map_ in MAPS]
        for what in ("FDT", "ST", "FAT")
        for p in STRENGTHS
    }


def said_of_words(maps: dict[tuple[str, float], list[np.ndarray]]) -> dict[tuple[str, float], str]:
    """What smoothed minus vanilla shows of each metric at each strength."""
    gaps = [smoothed - vanilla for vanilla, _, smoothed in maps.values()]
    words = [("better", "worse") if what == "FDT" else ("worse", "better") for what, _ in maps]
    return dict(zip(maps, verdicts(gaps, words), strict=True))


def text_faithfulness(folder: Path) -> Part:
    rows, lines, tables = [], [], {}
    for data in ("sentiment", "toxicity"):
        for copies in (500, 2000):
            label, it = f"{data}, {copies}", of_words(folder, data, copies)
            tables[data, f"{copies} copies"] = None if it is None else it[0]
            if it is None:
                rows.append([label, size(None, SETS[data]), *("–" for _ in range(7))])
                continue
            one, maps = it
            said = said_of_words(maps)
            for (what, p), (vanilla, mean, smoothed) in maps.items():
                name = f"{'R' * (p > 0)}{what}"
                cells = [*map(cell, (vanilla, mean, smoothed)), cell(smoothed - vanilla, sign="+")]
                rows.append([label, size(one, SETS[data]), name, f"{p:g}", *cells, said[what, p]])
            lines += [[f"{label}, p = {p:g}", *(said[what, p] for what in ("FDT", "ST", "FAT"))] for p in STRENGTHS]
    header = ["data, copies", "texts", "metric", "p", "vanilla", "mean", "smoothed", "smoothed - vanilla", "shown"]
    about = f"Means over 1 to 10 words. FDT: lower is better. What is shown, {HOLM.replace('the table', 'a data set')}:"
    shown = [table(["smoothed beside vanilla", "(R)FDT", "(R)ST", "(R)FAT"], lines)] if lines else []
    return Part(_sizes(tables), "\n\n".join([about, *shown, table(header, rows)]))


WAYS = {
    "significant": "significant words", "vanilla": "as many by vanilla", "mean": "as many by the mean",
    "smoothed": "as many by smoothed", "vanilla above its break": "vanilla above its own break",
}  # fmt: skip


def spans(one: Found) -> tuple[np.ndarray, dict[str, list[np.ndarray]], list[str]]:
    """Posts with a significant and a marked word; precision and recall of each way; what significant minus it shows."""
    some = (one["marked"] > 0) & (one["significant"] > 0)
    shares, gaps = {}, []
    for name in WAYS:
        with np.errstate(invalid="ignore", divide="ignore"):
            shares[name] = [one[f"{name} hits"][some] / one[below][some] for below in (name, "marked")]
        if name in ("vanilla", "mean", "smoothed"):
            gaps += [mine - its for mine, its in zip(shares["significant"], shares[name], strict=True)]
    return some, shares, verdicts(gaps, [("worse", "better")] * len(gaps))


def toxic_spans(folder: Path) -> Part:
    one = found("toxic-spans-500-copies-p-0.5-n-10", folder)
    about = size(one, 512, "posts")
    if one is None:
        return Part(about, "")
    some, shares, shown = spans(one)
    rows, said = [], iter(shown)
    for name, label in WAYS.items():
        gaps = ["", ""]
        if name in ("vanilla", "mean", "smoothed"):
            pairs = zip(shares["significant"], shares[name], strict=True)
            gaps = [f"{cell(mine - its, sign='+')}, {next(said)}" for mine, its in pairs]
        rows.append([label, *map(cell, shares[name]), *gaps])
    chance = [cell((one["marked"] / one["words"])[some]), cell((one["significant"] / one["words"])[some])]
    rows.append(["chance, as many words", *chance, "", ""])
    everywhere = one["marked"] > 0
    silent = f"- {share(one['significant'] == 0)} of the posts have no significant word"
    lines = [
        f"{silent}; the table is of the {int(some.sum())} posts with one, and with a marked word.",
        f"- Recall in all {int(everywhere.sum())} posts with a marked word: significant "
        f"{cell((one['significant hits'] / one['marked'])[everywhere])}, vanilla above its own break "
        f"{cell((one['vanilla above its break hits'] / one['marked'])[everywhere])}.",
    ]
    with_one = one["marked, replaceable"][some].sum()
    without = one["marked"][some].sum() - with_one
    taken = {
        name: (one[f"{name} hits, replaceable"][some].sum() / with_one,
               (one[f"{name} hits"] - one[f"{name} hits, replaceable"])[some].sum() / without)
        for name in ("vanilla", "significant")
    }  # fmt: skip
    lines.append(
        f"- Of the marked words with a synonym vanilla takes {taken['vanilla'][0]:.3f}, and as many significant words "
        f"take {taken['significant'][0]:.3f}. Of those without one it is {taken['vanilla'][1]:.3f} and "
        f"{taken['significant'][1]:.3f}."
    )
    header = ["words", "precision", "recall", "significant minus it: precision", "recall"]
    text = f"P(0.5), 500 copies, N = {one.setting['n_samples']}; what is shown, {HOLM}."
    return Part(about, "\n\n".join([text, table(header, rows), "\n".join(lines)]))


def penalty(folder: Path) -> Part:
    """Texts of which all words get one score by the penalty of LEMNA's authors."""
    planned, what, lines, sizes = 100, "sentences", [], []
    for copies in (500, 2000):
        one = found(f"authors-penalty-{copies}-copies", folder)
        sizes.append(f"{copies} copies: {size(one, planned, what)}")
        if one is not None:
            equal = [int((one[name] == 1).sum()) for name in ("authors", "usual")]
            lines.append(f"- {copies} copies: {equal[0]} of {len(one)} {what} get one score for all words, and "
                         f"{equal[1]} by `LEMNA` with its defaults.")  # fmt: skip
    return Part("; ".join(sizes), "\n".join(lines))
