"""`write`: writes results into one page."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from metfa._base.percents import counted
from metfa._base.validation import as_path, brief, check_flag
from metfa._base.writing import check_replaceable, new_file, sweep
from metfa.plot.kinds import Kind
from metfa.report._answers import answer_content
from metfa.report._content import Content
from metfa.report._page import page_of
from metfa.report._pieces import Result, Results
from metfa.report._regions import terms_of_pair
from metfa.report._results import Shown, n_inputs, numbered, one_by_one
from metfa.report._tables import table_content
from metfa.results.cautions import FLIPS_FROM, check_flips_from
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms, checked_threshold, filled
from metfa.stats.validation import as_level
from metfa.text.answers.answered import is_answer
from metfa.text.reading import harmless_text

__all__ = ["MARK", "InNotebook", "numbered", "page", "write"]

MARK = '<meta name="generator" content="metfa '  # by which a page of ours is known


@dataclass(frozen=True)
class _Section:
    """A result with one input, or a table; its terms, whether these were given, where its regions stand, its kind."""

    result: Result
    terms: Terms
    given: bool
    beside: int | None
    kind: Kind | None
    stop: float | None = None


@dataclass(frozen=True)
class InNotebook:
    """What a page in a cell of a notebook says of its samples, and stops of thresholds, for each input shown.

    `stops`: of the features of each input, and of its regions where these stand beside; None for no further stop.
    """

    said: dict[str, Any]
    stops: Sequence[float | None] = ()
    of_regions: Sequence[float | None] = ()


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
    kind: Any = None,
    overwrite: bool = False,
) -> Path:
    """Write one HTML file that shows results: it needs no network and no other file, in any browser from 2023 on.

    Maps lie over their picture, words are coloured, features of a table are bars with error bars. Of a series the
    signal is drawn with its steps shaded, of a volume slice by slice. Sliders change alpha and each threshold, and the
    browser decides again, at each stop exactly as `metfa.stats` does. Point at a feature to see its samples. More than
    12 rows of a table are one table, with the marks in its cells, which readers sort and filter by mark; a row that
    they choose has its bars below. Of an answer (`metfa.text.explain_answer`) readers choose a sentence, and see its
    sources. With more than 2**24 samples of all features together, thresholds have at most 15
    stops instead of 127 (31 in tables), and the file is larger.

    A comparison (`metfa.compare`) is decided about its differences, whose map has the marks outlined. Beside it both
    maps lie over each other on one scale, with a border that readers move; rows of a table have both values.

    Under Gaussian noise, if the threshold does not depend on the tested samples, there is also a map of certified
    radii, for the settings of the page at its start: see `AttributionSample.certified_radius`.

    Parameters
    ----------
    path : path
        The file, ending with ".html".
    results : AttributionSample, AttributionParts, ContextExplanation, or a sequence or mapping of them
        Maps of images, series or volumes, or features along one axis, such as the words of a text. Each input of a
        batch is shown by itself, and so is each part of several inputs, but many rows of a table together. The keys of
        a mapping are headings.
    title : str
        Heading of the page.
    regions : Regions, array, callable or mapping, optional
        Regions to show beside each result, as for `AttributionSample.over`: their outlines over the picture, their
        marks, and bars with intervals. Or a function that makes them from a result of one input, such as
        ``lambda sample: metfa.regions.superpixels(sample, against="rest")``, or returns None for no regions; it must
        not look at the samples. Or a mapping of these by heading, where `results` is one. By default those that
        `metfa.Until` asked about. A `threshold` that is a number is for regions too, but not for sums, nor where they
        are compared with the rest, whose threshold is 0. Of a `ContextExplanation` the object's own pixels are left
        out.
    threshold, alpha, correction, split
        As for `AttributionSample.terms`, for each result. The page starts with them, and the split stays. The threshold
        may be an array with one number for each input shown. Alpha and correction must be the same for all results:
        give them if `metfa.Until` used different ones. Regions beside a result have a control of their own; where no
        correction is given they begin with "holm", because they are few, or with that of `metfa.Until`.
    confidence_level : float
        Level of the intervals, and of the smoothed map.
    flips_from : float
        Share of noisy inputs with another prediction, from which on a result's heading says so and its marks are faint.
    kind : Series, Volume or Image, or mapping of them, optional
        What the maps are of, as for `AttributionSample.plot`: ``metfa.plot.Series(sampling_rate=500)``. With a mapping
        of results, one for some of its keys; for several inputs, one for some of the parts. Of a series the page shows
        the signal with its marked steps, of a volume slices with a slider.
    overwrite : bool
        Whether to replace a page that stands there, as a cell of a notebook does when it runs again. Other files stay.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    FileExistsError
        If `path` exists, without `overwrite`, or is no page that metfa wrote.
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
    >>> path.stat().st_size < 150_000
    True
    """
    target = _target(path, overwrite=overwrite)
    content = page(
        results, title=title, regions=regions, threshold=threshold, alpha=alpha, correction=correction, split=split,
        confidence_level=confidence_level, flips_from=flips_from, kind=kind,
    )  # fmt: skip
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    with new_file(target, replace=overwrite) as file:  # else it fails if another process was faster
        file.write(content.encode())
    return target


def page(
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
    kind: Any = None,
    notebook: InNotebook | None = None,
) -> str:
    """The content of the file that `write` writes, of the same arguments; or of a cell of a notebook."""
    if not isinstance(title, str):
        raise TypeError(f"`title` must be a text, got {type(title).__name__}: {brief(title)}")
    as_level(confidence_level, "confidence_level")
    check_flips_from(flips_from)
    given: dict[str, Any] = {"alpha": alpha, "correction": correction, "split": split}
    filled(Terms(), Terms.threshold, threshold, **given)  # raises before a large result is read
    inputs = one_by_one(results, regions, kind)
    thresholds = _one_each(threshold, sum(n_inputs(one.result) for one in inputs.values()))
    sections = _sections(inputs, thresholds, given)
    if notebook is not None:
        sections = _with_stops(sections, notebook)
    single, of_regions = _levels(sections)
    contents = [
        _content(name, section, confidence_level=confidence_level, flips_from=flips_from)
        for name, section in sections.items()
    ]
    return page_of(contents, harmless_text(title), single, of_regions, None if notebook is None else notebook.said)


def _content(name: str, section: _Section, **settings: Any) -> Content:
    result = section.result
    if isinstance(result, AttributionSample) and is_answer(result):
        return answer_content(name, result, section.terms, given=section.given, **settings)
    if isinstance(result, AttributionSample) and len(result.target) > 1:
        return table_content(name, result, section.terms, given=section.given, **settings)
    return Content.of(
        name, result, section.terms, given=section.given, beside=section.beside, axes=section.kind,
        stop=section.stop, **settings,
    )  # fmt: skip


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


def _with_stops(sections: dict[str, _Section], notebook: InNotebook) -> dict[str, _Section]:
    """The sections, each with its further stop."""
    names = list(sections)
    above = {names[section.beside] for section in sections.values() if section.beside is not None}
    single, regional = iter(notebook.stops), iter(notebook.of_regions)
    return {
        name: replace(section, stop=next(regional if name in above else single, None))
        for name, section in sections.items()
    }


def _levels(sections: dict[str, _Section]) -> tuple[Terms, Terms | None]:
    """Terms whose alpha and correction the page starts with, of single features, and of regions where it has both.

    Raises
    ------
    ValueError
        If results are decided on different ones: the page has one control of each.
    """
    kinds: tuple[dict[str, Terms], dict[str, Terms]] = {}, {}
    for name, section in sections.items():
        regional = isinstance(section.result, AttributionSample) and section.result.regions is not None
        kinds[regional][name] = section.terms
    for number, terms in enumerate((kinds[0] | kinds[1], *kinds)):
        for name, other in terms.items():
            first = next(iter(terms))
            apart = terms[first].alpha != other.alpha if number == 0 else terms[first].correction != other.correction
            if apart:
                raise ValueError(
                    f"`results` are decided on different terms, {first!r} at {terms[first].level}, {name!r} at "
                    f"{other.level}, and a page has one alpha, and one correction of features and one of regions: give "
                    "both, as in `alpha=0.05, correction='e-bh'`, or write one page each"
                )
    single, regional = (list(terms.values()) for terms in kinds)
    return (single or regional)[0], regional[0] if single and regional else None


def _target(path: Any, *, overwrite: bool) -> Path:
    """`path` as a file to write; raises if no page can be written there, before anything is done."""
    target = as_path(path, "path")
    if target.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"`path` must end with .html, got {target.name!r}")
    check_replaceable(target, MARK if check_flag(overwrite, "overwrite") else None, kind="file")
    existing = next(folder for folder in target.absolute().parents if folder.exists())
    if not existing.is_dir():
        raise NotADirectoryError(f"`path`: {existing} is no folder, so {target} cannot be written")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(f"`path`: nothing can be written in {existing}")
    return target


def _sections(inputs: dict[str, Shown], thresholds: list[Any], given: dict[str, Any]) -> dict[str, _Section]:
    """Sections of the page by their headings, those of regions before those of their pixels."""
    found: list[tuple[str, _Section]] = []
    rest = iter(thresholds)
    for name, here in inputs.items():
        result, pooled = here.result, here.pooled
        beside, own = None, list(itertools.islice(rest, n_inputs(result)))
        threshold = own[0] if len(own) == 1 or own[0] is None or callable(own[0]) else np.array(own)
        if pooled is None:
            terms = result.terms(threshold, **given)
        else:
            terms, of_regions, too = terms_of_pair(result, pooled, threshold, given)
            beside = len(found) if isinstance(result, AttributionSample) else None
            heading = f"{name}: {counted(pooled.n_features, 'region')}"
            found.append((heading, _Section(pooled, of_regions, too, None, here.kind)))
        found.append((name, _Section(result, terms, threshold is not None, beside, here.kind)))
    return numbered(found)
