"""`write`: results into a page."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from metfa._arrays import as_array, to_host
from metfa._base.provenance import printable
from metfa._base.validation import check_number, positive_int
from metfa.report._content import Content, Decisions
from metfa.report._page import page_of
from metfa.results.sample import AttributionSample
from metfa.results.sample_size import check_alpha, check_correction
from metfa.segmentation.explanation import ContextExplanation
from metfa.stats.validation import as_level
from metfa.text.reading import harmless_text

__all__ = ["told_apart", "write"]

Result = AttributionSample | ContextExplanation


def write(
    path: str | Path,
    results: Result | Sequence[Result] | Mapping[str, Result],
    *,
    title: str = "Explanations with error bars",
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
    confidence_level: float = 0.95,
) -> Path:
    """Write one HTML file to look at results in: no network, no other file, any browser from 2023 on.

    Maps lie over their picture, words are coloured, features of a table are bars with error bars. Sliders of alpha and
    of each threshold decide anew in the browser, exactly as `metfa.stats` does at each stop; pointing at a feature
    shows its samples. Where there are more than 2**24 samples of all features together, thresholds have at most 15
    stops, not 127, and the file is larger.

    Under Gaussian noise, and with a threshold that did not see the samples tested, there is a map of certified radii
    too, for the settings that the page is made with: see `AttributionSample.certified_radius`.

    Parameters
    ----------
    path : path
        New file, ending with ".html".
    results : AttributionSample, ContextExplanation, or a sequence or mapping of them
        Maps (height, width), or features along one axis: of a text its words. Each input of a batch is shown by itself.
        The keys of a mapping are headings.
    title : str
        Heading of the page.
    threshold : float, callable or array, optional
        As for `AttributionSample.significance_map`: for all inputs, or an array with one number for each input shown.
        None: that which `metfa.until` fixed, whose first samples are then not tested; else 0 for signed scores of words
        and features, else the natural break (`metfa.stats.jenks`).
    alpha : float, optional
        Level that the page starts with, as for `AttributionSample.significance_map`. None: 0.05, or, where all results
        are of words and features, that of their figures, (1 - `confidence_level`) / 2 a side, with a correction
        1 - `confidence_level`.
    correction : {None, "bonferroni", "holm", "bh", "by", "e-bh"}
        Correction for many features that the page starts with. Results of `metfa.until` take None, bonferroni and e-bh.
    split : int, optional
        Take a rule's threshold from the first `split` samples and test the others, at each stop of the slider.
    confidence_level : float
        Level of the intervals, and of the smoothed map.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    FileExistsError
        If `path` exists: nothing is ever overwritten.
    TypeError, ValueError
        For bad arguments. Too few samples are no error: the page says so.

    Examples
    --------
    >>> import tempfile, numpy as np, metfa
    >>> explainer = lambda inputs, target: inputs * np.array([3.0, 0.0, -2.0])
    >>> sample = metfa.explain(
    ...     explainer, np.ones((1, 3)), target=0, noise=metfa.noise.Uniform(0.5), n_samples=20, rng=0
    ... )
    >>> path = metfa.report.write(f"{tempfile.mkdtemp()}/report.html", sample)
    >>> path.stat().st_size < 100_000
    True
    """
    target = _new_file(path)
    if not isinstance(title, str):
        raise TypeError(f"`title` must be a text, got {type(title).__name__}: {title!r:.80}")
    if alpha is not None:
        check_alpha(alpha)
    as_level(confidence_level, "confidence_level")
    if correction is not None:
        check_correction(correction)
    if threshold is not None and not callable(threshold):
        if isinstance(threshold, str):
            raise TypeError(
                f"`threshold` must be a number or a rule, got the text {threshold!r}: write metfa.stats.jenks for "
                "natural breaks"
            )
        if not hasattr(threshold, "shape"):
            check_number(threshold, "threshold", least=-float("inf"))
    if split is not None:
        positive_int(split, "split", minimum=0)
    shown = _one_by_one(results)
    if alpha is None:
        alpha = Decisions.usual_alpha(list(shown.values()), correction, confidence_level)
    decisions = Decisions(None, float(alpha), correction, confidence_level, split)
    contents = [
        Content.of(name, result, replace(decisions, threshold=height))
        for (name, result), height in zip(shown.items(), _one_each(threshold, len(shown)), strict=True)
    ]
    page = page_of(contents, harmless_text(title), decisions)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("x", encoding="utf-8") as file:  # fails where somebody else was faster
        try:
            file.write(page)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    return target


def _one_each(threshold: Any, n_inputs: int) -> list[Any]:
    """A threshold for each input shown."""
    if not hasattr(threshold, "shape"):
        return [threshold] * n_inputs
    heights = to_host(as_array(threshold, "threshold")).astype(np.float64)
    if heights.shape not in ((), (n_inputs,)) or not np.isfinite(heights).all():
        raise ValueError(
            f"`threshold` must be a number or a rule, or hold a finite number for each of the {n_inputs} inputs shown, "
            f"got an array of shape {heights.shape}"
        )
    return np.broadcast_to(heights, (n_inputs,)).tolist()


def _new_file(path: Any) -> Path:
    """`path`, if a page can be written there; raises before anything is done."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"`path` must be the file to write, a path, got {type(path).__name__}")
    target = Path(path).expanduser()
    if target.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"`path` must end with .html, got {target.name!r}")
    if target.exists() or target.is_symlink():
        raise FileExistsError(f"`path` exists already: {target}; choose a new file, nothing is overwritten")
    existing = next(folder for folder in target.absolute().parents if folder.exists())
    if not existing.is_dir():
        raise NotADirectoryError(f"`path`: {existing} is no folder, so {target} cannot be written")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(f"`path`: nothing can be written in {existing}")
    return target


def _one_by_one(results: Any) -> dict[str, Result]:
    """Results with one input each, by their headings."""
    if isinstance(results, Result):
        results = [results]
    if not isinstance(results, Mapping | Sequence) or isinstance(results, str):
        raise TypeError(
            f"`results` must be an AttributionSample, a ContextExplanation, or a sequence or mapping of them, got "
            f"{type(results).__name__}: {results!r:.80}"
        )
    named = results.items() if isinstance(results, Mapping) else ((None, result) for result in results)
    found: list[tuple[str, Result]] = []
    for given, result in named:
        if not isinstance(result, Result):
            raise TypeError(
                f"`results` must be AttributionSample or ContextExplanation, got {type(result).__name__}: what "
                "`metfa.explain`, `metfa.load` and `metfa.segmentation.explain_context` return"
            )
        name = (_name(result) if given is None else harmless_text(printable(str(given)))) or "unnamed"
        batch = 1 if isinstance(result, ContextExplanation) else result.values.shape[1]
        for index in range(batch):
            one = result.of_input(index) if isinstance(result, AttributionSample) else result
            found.append((name if batch == 1 else f"{name}, input {index}", one))
    if not found:
        raise ValueError("`results` must hold at least one, got none")
    return told_apart(found)


def told_apart(named: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """What stands under each heading, where equal ones get a number: "cat", "cat (2)"."""
    found: dict[str, Any] = {}
    for name, result in named:
        candidates = (name if k == 1 else f"{name} ({k})" for k in itertools.count(1))
        found[next(candidate for candidate in candidates if candidate not in found)] = result
    return found


def _name(result: Result) -> str:
    explainer = str(result.provenance.get("explainer") or "explanation").partition("(")[0]
    target = result.target if isinstance(result, ContextExplanation) else result.target[0]
    return harmless_text(printable(explainer if target is None else f"{explainer}, class {target}"))
