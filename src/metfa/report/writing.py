"""`write`: writes results into one page."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.percents import counted
from metfa._base.provenance import printable
from metfa._base.validation import as_path, brief, shown
from metfa._base.writing import new_file, sweep
from metfa.report._compared import heading_of
from metfa.report._content import Content
from metfa.report._page import page_of
from metfa.report._populations import heading_of_population
from metfa.report._regions import pooled_beside, terms_of_pair
from metfa.results.attribution_parts import AttributionParts
from metfa.results.cautions import FLIPS_FROM, check_flips_from
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms, checked_threshold, filled
from metfa.segmentation.explanation import ContextExplanation
from metfa.stats.validation import as_level
from metfa.text.reading import harmless_text

__all__ = ["numbered", "write"]

Result = AttributionSample | ContextExplanation
Results = Result | AttributionParts


@dataclass(frozen=True)
class _Section:
    """A result with one input, its terms, whether the caller gave the threshold, and where its regions stand."""

    result: Result
    terms: Terms
    given: bool
    beside: int | None


def write(
    path: str | Path,
    results: Results | Sequence[Results] | Mapping[str, Results],
    *,
    title: str = "Explanations with error bars",
    regions: Any = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
    confidence_level: float = 0.95,
    flips_from: float = FLIPS_FROM,
) -> Path:
    """Write one HTML file that shows results: it needs no network and no other file, in any browser from 2023 on.

    Maps lie over their picture, words are coloured, features of a table are bars with error bars. Sliders change alpha
    and each threshold, and the browser decides again, at each stop exactly as `metfa.stats` does. Point at a feature to
    see its samples. With more than 2**24 samples of all features together, thresholds have at most 15 stops instead of
    127, and the file is larger.

    A comparison (`metfa.compare`) is decided about its differences, whose map has the marks outlined. Beside it both
    maps lie over each other on one scale, with a border that readers move; rows of a table have both values.

    Under Gaussian noise, if the threshold does not depend on the tested samples, there is also a map of certified
    radii, for the settings of the page at its start: see `AttributionSample.certified_radius`.

    Parameters
    ----------
    path : path
        New file, ending with ".html".
    results : AttributionSample, AttributionParts, ContextExplanation, or a sequence or mapping of them
        Maps (height, width), or features along one axis, such as the words of a text. Each input of a batch is shown by
        itself, and so is each part of several inputs. The keys of a mapping are headings.
    title : str
        Heading of the page.
    regions : Regions, array or callable, optional
        Regions to show beside each result, as for `AttributionSample.over`: their outlines over the picture, their
        marks, and bars with intervals. Or a function that makes them from a result of one input, such as
        ``lambda sample: metfa.regions.superpixels(sample, against="rest")``, or returns None for no regions; it must
        not look at the samples. By default those that `metfa.Until` asked about. A `threshold` that is a number is for
        regions too, but not for sums, nor where they are compared with the rest, whose threshold is 0.
    threshold, alpha, correction, split
        As for `AttributionSample.terms`, for each result. The page starts with them, and the split stays. The threshold
        may be an array with one number for each input shown. Alpha and correction must be the same for all results:
        give them if `metfa.Until` used different ones.
    confidence_level : float
        Level of the intervals, and of the smoothed map.
    flips_from : float
        Share of noisy inputs with another prediction, from which on a result's heading says so and its marks are faint.

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
        raise TypeError(f"`title` must be a text, got {type(title).__name__}: {brief(title)}")
    as_level(confidence_level, "confidence_level")
    check_flips_from(flips_from)
    given: dict[str, Any] = {"alpha": alpha, "correction": correction, "split": split}
    filled(Terms(), Terms.threshold, threshold, **given)  # raises before a large result is read
    inputs = _one_by_one(results, regions)
    thresholds = _one_each(threshold, len(inputs))
    sections = _sections(inputs, thresholds, given)
    _check_levels({name: section.terms for name, section in sections.items()})
    contents = [
        Content.of(
            name,
            section.result,
            section.terms,
            confidence_level,
            given=section.given,
            flips_from=flips_from,
            beside=section.beside,
        )
        for name, section in sections.items()
    ]
    page = page_of(contents, harmless_text(title), next(iter(sections.values())).terms)
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    with new_file(target) as file:  # fails if another process was faster
        file.write(page.encode())
    return target


def _one_each(threshold: Any, n_inputs: int) -> list[Any]:
    """A threshold for each input shown."""
    if threshold is None or callable(threshold):
        return [threshold] * n_inputs
    thresholds = np.asarray(checked_threshold(threshold))
    if thresholds.shape not in ((), (n_inputs,)):
        raise ValueError(
            f"`threshold` must be a number, a rule, or an array with one number for each of the {n_inputs} inputs "
            f"shown, got an array of shape {thresholds.shape}"
        )
    return np.broadcast_to(thresholds, (n_inputs,)).tolist()


def _check_levels(terms: dict[str, Terms]) -> None:
    """Raise unless all results are decided with one alpha and one correction: the page has one control for each."""
    first, *others = terms
    for other in others:
        if (terms[first].alpha, terms[first].correction) != (terms[other].alpha, terms[other].correction):
            raise ValueError(
                f"`results` are decided on different terms, {first!r} at {terms[first].level}, {other!r} at "
                f"{terms[other].level}, and a page has one alpha and one correction: give both, as in "
                "`alpha=0.05, correction='e-bh'`, or write one page each"
            )


def _new_file(path: Any) -> Path:
    """`path` as a new file; raises if no page can be written there, before anything is done."""
    target = as_path(path, "path")
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


def _one_by_one(results: Any, regions: Any) -> dict[str, tuple[Result, AttributionSample | None]]:
    """Results with one input each, by their headings, and the regions beside them."""
    if isinstance(results, Results):
        results = [results]
    if not isinstance(results, Mapping | Sequence) or isinstance(results, str):
        raise TypeError(
            "`results` must be an AttributionSample, an AttributionParts, a ContextExplanation, or a sequence or "
            f"mapping of them, got {shown(results)}"
        )
    named = results.items() if isinstance(results, Mapping) else ((None, result) for result in results)
    found: list[tuple[str, tuple[Result, AttributionSample | None]]] = []
    for given, result in named:
        if not isinstance(result, Results):
            raise TypeError(
                "`results` must be AttributionSample, AttributionParts or ContextExplanation, got "
                f"{type(result).__name__}: what `metfa.explain`, `metfa.load` and "
                "`metfa.segmentation.explain_context` return"
            )
        batch = 1 if isinstance(result, ContextExplanation) else len(result.target)
        for index in range(batch):
            for one in _of_input(result, index):
                name = (_name(one) if given is None else harmless_text(printable(str(given)))) or "unnamed"
                where = [] if batch == 1 else [f"input {index}"]
                where += [one.part] if isinstance(one, AttributionSample) and one.part is not None else []
                pair = (one, pooled_beside(one, regions, index, batch))
                found.append((", ".join([name, *map(harmless_text, where)]), pair))
    if not found:
        raise ValueError("`results` must hold at least one, got none")
    if regions is not None and not callable(regions) and not any(pooled for _, (_, pooled) in found):
        raise ValueError(
            "`regions` are shown beside results of single features, and the features of all `results` are regions "
            "already: leave `regions` out"
        )
    return numbered(found)


def _of_input(result: Results, index: int) -> list[Result]:
    """What is shown of one input of a batch: its result, or that of each part."""
    if isinstance(result, AttributionParts):
        return [part.of_input(index) for part in result.values()]
    return [result.of_input(index) if isinstance(result, AttributionSample) else result]


def _sections(
    inputs: dict[str, tuple[Result, AttributionSample | None]], thresholds: list[Any], given: dict[str, Any]
) -> dict[str, _Section]:
    """Sections of the page by their headings, those of regions before those of their pixels."""
    found: list[tuple[str, _Section]] = []
    for (name, (result, pooled)), threshold in zip(inputs.items(), thresholds, strict=True):
        beside = None
        if pooled is None or isinstance(result, ContextExplanation):
            terms = result.terms(threshold, **given)
        else:
            terms, of_regions, too = terms_of_pair(result, pooled, threshold, given)
            beside = len(found)
            found.append((f"{name}: {counted(pooled.n_features, 'region')}", _Section(pooled, of_regions, too, None)))
        found.append((name, _Section(result, terms, threshold is not None, beside)))
    return numbered(found)


def numbered(named: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Results by their headings; equal headings get a number: "cat", "cat (2)"."""
    found: dict[str, Any] = {}
    for name, result in named:
        candidates = (name if k == 1 else f"{name} ({k})" for k in itertools.count(1))
        found[next(candidate for candidate in candidates if candidate not in found)] = result
    return found


def _name(result: Result) -> str:
    """Heading of a result with one input: its explainer, and the class that was explained."""
    if isinstance(result, AttributionSample) and result.pair is not None:
        return heading_of(result)
    explainer = str(result.provenance.get("explainer") or "explanation").partition("(")[0]
    if isinstance(result, AttributionSample) and result.population is not None:
        explainer = heading_of_population(result, explainer)
    target = result.target if isinstance(result, ContextExplanation) else result.target[0]
    return harmless_text(printable(explainer if target is None else f"{explainer}, class {target}"))
