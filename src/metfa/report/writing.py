"""`write`: results into a page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from metfa._provenance import printable
from metfa._sample_size import check_alpha
from metfa._validation import check_number
from metfa.report._content import Content, Decisions
from metfa.report._page import page_of
from metfa.result import AttributionSample
from metfa.segmentation.explanation import ContextExplanation
from metfa.stats._multiplicity import check_method
from metfa.stats._validation import as_level

__all__ = ["write"]

Result = AttributionSample | ContextExplanation


def write(
    path: str | Path,
    results: Result | Sequence[Result] | Mapping[str, Result],
    *,
    title: str = "Explanations with error bars",
    threshold: Any = None,
    alpha: float = 0.05,
    correction: str | None = None,
    confidence_level: float = 0.95,
) -> Path:
    """Write one HTML file to look at results in: no network, no other file, any browser from 2023 on.

    Maps lie over their picture, words are coloured, features of a table are bars with error bars. Sliders of alpha and
    of each threshold decide anew in the browser, exactly as `metfa.stats` does at each stop; pointing at a feature
    shows its samples. Where there are more than 2**24 samples of all features together, thresholds have at most 15
    stops, not 127, and the file is larger.

    Parameters
    ----------
    path : path
        New file, ending with ".html".
    results : AttributionSample, ContextExplanation, or a sequence or mapping of them
        Maps (height, width), or features along one axis: of a text its words. Each input of a batch is shown by itself.
        The keys of a mapping are headings.
    title : str
        Heading of the page.
    threshold : float or callable, optional
        As for `AttributionSample.significance_map`. None: 0 for signed scores of words and features, else the natural
        break (`metfa.stats.jenks`).
    alpha, correction
        As for `AttributionSample.significance_map`; what the page starts with.
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
    path = Path(path).expanduser()
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"`path` must end with .html, got {path.name!r}")
    if path.exists() or path.is_symlink():
        raise FileExistsError(f"`path` exists already: {path}; choose a new file, nothing is overwritten")
    if not isinstance(title, str):
        raise TypeError(f"`title` must be a text, got {type(title).__name__}: {title!r:.80}")
    check_alpha(alpha)
    as_level(confidence_level, "confidence_level")
    if correction is not None:
        check_method(correction, "correction")
    if threshold is not None and not callable(threshold):
        if isinstance(threshold, str):
            raise TypeError(
                f"`threshold` must be a number or a rule, got the text {threshold!r}: write metfa.stats.jenks for "
                "natural breaks"
            )
        check_number(threshold, "threshold", least=-float("inf"))
    decisions = Decisions(threshold, float(alpha), correction, confidence_level)
    contents = [Content.of(name, one, decisions) for name, one in _one_by_one(results)]
    page = page_of(contents, title, decisions)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        temporary.write_text(page, encoding="utf-8")
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def _one_by_one(results: Any) -> list[tuple[str, Result]]:
    """Headings, and results with one input each."""
    if isinstance(results, Result):
        results = [results]
    named = results.items() if isinstance(results, Mapping) else ((None, result) for result in results)
    found: list[tuple[str, Result]] = []
    for given, result in named:
        if not isinstance(result, Result):
            raise TypeError(
                f"`results` must be AttributionSample or ContextExplanation, got {type(result).__name__}: what "
                "`metfa.explain`, `metfa.load` and `metfa.segmentation.explain_context` return"
            )
        name = _name(result) if given is None else printable(str(given))
        batch = 1 if isinstance(result, ContextExplanation) else result.values.shape[1]
        for index in range(batch):
            one = result.of_input(index) if isinstance(result, AttributionSample) else result
            found.append((name if batch == 1 else f"{name}, input {index}", one))
    if not found:
        raise ValueError("`results` must hold at least one, got none")
    return found


def _name(result: Result) -> str:
    explainer = str(result.provenance.get("explainer") or "explanation").partition("(")[0]
    target = result.target if isinstance(result, ContextExplanation) else result.target[0]
    return printable(explainer if target is None else f"{explainer}, class {target}")
