"""`explain_answer_tree`: from documents to sentences, asking deeper only inside what matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.temporary import is_temporary
from metfa._base.validation import as_path, positive_int
from metfa.results.corrections import STATEMENTS, check_alpha
from metfa.results.families import samples_needed
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms
from metfa.results.until import Until
from metfa.sampling.protocol import takes_rngs
from metfa.sampling.run import Run
from metfa.sampling.streams import root_entropy
from metfa.text.answers._asked import ALPHA, OF_RUN, explained_sources
from metfa.text.answers._levels import OfPieces, Piece, checked_levels, cut_finer, keys_of
from metfa.text.answers._sources import checked_sources
from metfa.text.answers.source_effects import PILOT, SourceEffects
from metfa.text.answers.tree import AnswerTree, folder_of, found_on, listed

__all__ = ["explain_answer_tree"]


def explain_answer_tree(
    scorer: Callable[[list[list[str]]], Any],
    documents: Any,
    *,
    levels: Any = "sentences",
    delta: float | None = None,
    alpha: float = ALPHA,
    answers: Any = None,
    n_samples: int | Until = 48,
    pilot: int = PILOT,
    batch_size: int | None = None,
    rng: Any = None,
    run: Run | None = None,
) -> AnswerTree:
    """Find the documents that raise the score of an answer, and then the parts of these documents that do.

    First each document is a source, kept or dropped as a whole, as in `metfa.text.explain_answer`. Documents that add
    more than δ in some context, for any of the answers, are cut into their parts, and these are asked about by new
    prompts; and so on. In these prompts the parts of an opened document are kept or dropped one by one, and all other
    documents as a whole.

    Parameters
    ----------
    scorer : callable
        As for `metfa.text.explain_answer`. It always gets documents: of one whose parts are dropped, what is left.
    documents : list of str, or dict of str -> str
        Texts in the order of the prompt.
    levels : {"sentences", "paragraphs"}, callable, or sequence of these
        How to cut, from coarse to fine, such as ``("paragraphs", "sentences")``. A function returns the parts of a
        text, which are the text when they are joined.
    delta : float, optional
        Smallest rise that matters, on all levels.
    alpha : float
        Level of each statement over all levels together; each level gets an equal share.
    answers, pilot, batch_size, rng
        As for `metfa.text.explain_answer`.
    n_samples : int or Until
        Of each level. A rule decides by "bonferroni", at the level's share of `alpha`.
    run : Run, optional
        As for `metfa.text.explain_answer`; ``store=`` is a folder that gets one for each level.

    Returns
    -------
    AnswerTree
        Ends before the last level where no part is left to open.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, before the scorer is asked.

    Notes
    -----
    *What holds for all levels.* A level's prompts are new, so whatever the levels before have shown, a part that adds
    at most δ in every context (of this level) is marked "adds more" with probability at most the level's share, with
    Holm's correction for all parts that are asked about. By the union bound no such part is marked on any level with
    probability at least 1 - alpha, for each answer by itself. Nothing is assumed of the choice of what is opened.

    A part may add more than δ where its document does not, because another part of it takes away: such a document is
    not opened. And where two sentences of a document say the same, the document is found, and each of them may stay
    undecided.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> def scorer(rows):  # log-odds of "Paris"
    ...     return np.array([-3 + 5.0 * ("Paris" in " ".join(kept)) for kept in rows])
    >>> documents = {"atlas": "It is large. The capital is Paris. It has hills.", "diary": "It rained. I slept."}
    >>> tree = metfa.text.explain_answer_tree(scorer, documents, delta=np.log(2), rng=0)
    >>> tree.found()
    (('atlas',), ('atlas, sentence 2',))
    """
    run = Run.checked(run, OF_RUN)
    if takes_rngs(scorer):
        raise ValueError(
            f"`scorer` makes its prompts noisy ({scorer!r:.60}), which a tree does not do: give the scorer itself, or "
            "ask `metfa.text.explain_answer` about one level"
        )
    texts, own_names = checked_sources(documents)
    cuts = checked_levels(levels)
    check_alpha(alpha)
    share = alpha / (1 + len(cuts))
    if isinstance(n_samples, Until):
        n_samples = replace(n_samples, alpha=share, correction="bonferroni")
    store = None if run.store is None else as_path(run.store, "store")
    root = None if store is not None and rng is None else root_entropy(rng)
    if store is not None:
        _check_free(store)
    names = own_names or tuple(f"document {place}" for place in range(len(texts)))
    _check_enough(n_samples, share, len(texts))
    pieces = [Piece(place, 0, len(text), name) for place, (text, name) in enumerate(zip(texts, names, strict=True))]
    asked, opened = list(range(len(pieces))), set(range(len(pieces)))
    found: list[AttributionSample] = []
    parents: list[tuple[str | None, ...]] = []
    for number in range(1, len(cuts) + 2):
        if number > 1:
            pieces, asked, opened = cut_finer(texts, pieces, opened, cuts[number - 2])
            if not asked:
                break
        shown = [texts[one.document][one.start : one.stop].strip() for one in pieces]
        within = list(dict.fromkeys(str(pieces[place].parent) for place in asked))
        why = f": parts of {listed(within)}, in which it was found before" if number > 1 else ""
        about = f"Level {number} of {len(cuts) + 1}, at alpha {share:.3g} of {alpha:g} for all levels{why}."
        level = explained_sources(
            SourceEffects(OfPieces(scorer, tuple(texts), tuple(pieces)), delta=delta, pilot=pilot),
            keys_of(texts, pieces),
            texts=shown,
            asked=tuple(asked),
            alpha=share,
            names=tuple(pieces[place].name for place in asked),
            facts={
                "groups": [None] * len(asked),
                "parts": [[place] for place in asked],
                "names": [one.name for one in pieces],
                "level": about,
            },
            answers=answers,
            n_samples=n_samples,
            batch_size=batch_size,
            rng=root,
            run=replace(run, store=None if store is None else store / folder_of(number)),
        )
        found.append(level)
        parents.append(tuple(pieces[place].parent for place in asked))
        root = int(level.provenance["rng"], 16)
        uncut = opened if number > 1 else set()
        opened = uncut | {
            place for place, on in zip(asked, np.any(found_on(level), axis=0).tolist(), strict=True) if on
        }
        if not opened:
            break
    tree = AnswerTree(tuple(found), tuple(parents), alpha)
    if store is not None:
        tree.write_manifest(store)
    return tree


def _check_free(store: Path) -> None:
    """Raise unless a folder is new, or holds levels."""
    names = [entry.name for entry in store.iterdir()] if store.is_dir() else []
    foreign = [name for name in names if not name.startswith("level") and not is_temporary(name)]
    if foreign:
        raise FileExistsError(f"`store` holds {foreign[0]}, and no levels: {store}; give a new or empty folder")


def _check_enough(n_samples: int | Until, share: float, n_documents: int) -> None:
    """Raise if no document could be found with so few samples."""
    needed = samples_needed(Terms(0.0, share, "holm", families=STATEMENTS), n_documents)
    if not isinstance(n_samples, Until) and positive_int(n_samples, "n_samples") < needed:
        raise ValueError(
            f"`n_samples` must be at least {needed}, got {n_samples}: with fewer none of {n_documents:,} documents can "
            f"be found at a level's share of `alpha`, {share:.3g}"
        )
