"""Common parts of the scripts on texts: texts and model, the paper's LEMNA and noise, options, and comparisons.

No script prints a text, because the posts of the toxicity data are offensive.
"""

import argparse
import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import metfa
from metfa import text
from metfa.evaluation import Evaluation
from metfa.text import LEMNA, Synonyms
from metfa.text.models import TrainedBiLSTM
from metfa.text.words import words_of
from paper.cells import cell, ratio
from paper.setting import digest, evaluated, with_results

P = Synonyms(0.5)  # P, and O_n in the tables on stability: P(0.5) as in the paper
AGGREGATES = ("vanilla", "mean", "smoothed")


def parser(about: str, *, texts: int, quick: int) -> argparse.ArgumentParser:
    """Options that all scripts have."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--data", type=Path, nargs="+", required=True, help="CSV files with a column text")
    made.add_argument("--model", default="sentiment", help="name or .npz file of a text model")
    made.add_argument("--words", type=int, nargs=2, default=(40, 80), metavar=("LEAST", "MOST"), help="of a text")
    made.add_argument("--only", metavar="CLASS", help="only texts of this class, by the model and by their label")
    made.add_argument("--texts", type=int, help=f"how many of them, at random: {texts}, with --quick {quick}")
    made.add_argument("--copies", type=int, nargs="+", default=(500, 2000), help="perturbations of LEMNA")
    made.add_argument("--components", type=int, default=1, help="of LEMNA's mixture, its K")
    made.add_argument("--quick", action="store_true", help="fewer texts and draws: minutes, not hours")
    with_results(made)
    made.set_defaults(of_them=(texts, quick))
    return made


class Texts(NamedTuple):
    """The texts that are explained, what could have been chosen as a digest, and all texts of these lengths."""

    chosen: list[str]
    among: str
    everything: list[str]


def read(options: argparse.Namespace) -> tuple[TrainedBiLSTM, Texts]:
    """The model and the texts; a larger choice only makes the list longer."""
    torch.set_num_threads(1)  # with more, recurrent networks are slower, and far slower beside other processes
    metfa.allocator.keep_freed_memory()
    model = text.load_model(options.model)
    found = {row["text"]: row.get("label") for path in options.data for row in rows_of(path)}
    least, most = options.words
    everything = kept = [line for line in found if least <= len(words_of(line)) <= most]
    if options.only:
        goal = model.class_names.index(options.only)
        predicted = model(kept).argmax(axis=1)
        kept = [
            line for line, top in zip(kept, predicted, strict=True) if top == goal and found[line] in (None, str(goal))
        ]
    order = np.random.default_rng(0).permutation(len(kept))
    n = options.texts or options.of_them[options.quick]
    chosen = [kept[place] for place in order[:n]]
    lengths = [len(words_of(line)) for line in chosen]
    print(
        f"{len(chosen)} of {len(kept)} texts with {least} to {most} words; "
        f"theirs: {min(lengths)} to {max(lengths)}, mean {np.mean(lengths):.1f}; "
        f"words with synonyms: {np.mean([np.mean(P.coverage(line)) for line in chosen]):.0%}"
    )
    return model, Texts(chosen, digest(kept[place].encode() for place in order), everything)


def rows_of(path: Path) -> list[dict[str, str]]:
    """The lines of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def run(
    options: argparse.Namespace,
    name: str,
    model: TrainedBiLSTM,
    texts: Texts,
    *,
    described: Any = None,
    condensed: Callable[[list[dict]], list[dict]] = list,
    **study,
) -> Evaluation:
    """A study of LEMNA, evaluated; no table holds a text, a unit's name is a digest. Other arguments: `evaluated`."""
    made = metfa.Study(
        model=model,
        inputs=texts.chosen,
        explainers=dict(lemna(copies, options.components) for copies in options.copies),
        sampling={"synonyms, p = 0.5": P},
        aggregates=AGGREGATES,
        n_samples=10,
        **study,
    )
    return evaluated(
        options, name, made, among=texts.among, metrics=described, condensed=condensed,
        named=lambda unit: unit.digest[:16],
    )  # fmt: skip


def lemna(copies: int, components: int) -> tuple[str, Any]:
    """Name and explainer; a mixture has its number of components in both."""
    if components == 1:
        return f"LEMNA, {copies} copies", partial(LEMNA, n_perturbations=copies)
    return (
        f"LEMNA, {copies} copies, K = {components}",
        partial(LEMNA, n_perturbations=copies, n_components=components),
    )


def beside(figures: np.ndarray, vanilla: np.ndarray) -> str:
    """Ratio and difference of the means of two maps on the same texts."""
    return f"ratio {ratio(figures, vanilla)}, difference {cell(figures - vanilla, sign='+')}"
