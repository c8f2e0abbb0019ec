"""The figures of a result, or the page of a text, by the names of their files."""

from __future__ import annotations

import io
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

from metfa.cli.certificates import certificate_figure
from metfa.cli.kinds import is_of_text
from metfa.cli.readings import in_options, kind_for
from metfa.cli.regions import Parts
from metfa.cli.run import Analysis
from metfa.cli.titles import title_of
from metfa.results.attribution_parts import AttributionParts
from metfa.results.sample import AttributionSample
from metfa.text.answers.answered import is_answer
from metfa.text.answers.tree import AnswerTree

__all__ = ["MARK_OF_FIGURES", "VIEWS", "drawn_figures", "drawn_views", "png_of"]

FIGURE, MAPS, WORDS, PAGE = "figure.png", "maps.png", "words.html", "report.html"
CERTIFIED, AROUND = "certified.png", "regions.png"
SAID_OF_FIGURES = {"Software": "metfa"}  # in their metadata
MARK_OF_FIGURES = "\0".join(*SAID_OF_FIGURES.items())  # as it is in the file: by this a figure of ours is known
VIEWS = frozenset([FIGURE, MAPS, WORDS, PAGE, CERTIFIED, AROUND])


def drawn_views(sample: Any, about: dict[str, Any], analysis: Analysis, parts: Parts | None) -> dict[str, bytes]:
    """Figures and the page of a result, by the names of their files."""
    drawn = drawn_figures(sample, about, analysis, parts)
    return dict(sorted({**drawn, PAGE: _page(sample, about, analysis, parts)}.items()))


def drawn_figures(sample: Any, about: dict[str, Any], analysis: Analysis, parts: Parts | None) -> dict[str, bytes]:
    """A figure of each input, or the text with its marked words, by the names of their files; of an answer none."""
    kind = kind_for(sample, analysis.kinds)
    if is_answer(sample) or isinstance(sample, AnswerTree):
        return {}
    if is_of_text(sample):
        return _words(sample, about, analysis)
    if isinstance(sample, AttributionSample | AttributionParts):
        with in_options():
            return _figures(sample, about, analysis, parts, kind)
    return _context_figures(sample, about, analysis, parts)


def _page(sample: Any, about: dict[str, Any], analysis: Analysis, parts: Parts | None) -> bytes:
    """The page of a result, with its regions beside it."""
    from metfa.report.writing import page

    title = title_of(about) or "Explanations with error bars"
    shown = sample.headed if isinstance(sample, AnswerTree) else {title: sample}
    regions, kind = None if parts is None else parts.regions, kind_for(sample, analysis.kinds)
    with in_options():
        return page(
            shown,
            title=title,
            regions=(lambda _: None) if regions is None else regions,
            flips_from=analysis.flips_from,
            confidence_level=analysis.confidence,
            kind=None if kind is None else {title: kind},
            **analysis.given,
        ).encode()


def _words(sample: AttributionSample, about: dict[str, Any], analysis: Analysis) -> dict[str, bytes]:
    from metfa.text import render_html

    return {WORDS: render_html(sample, title=title_of(about), page=True, **analysis.settings).encode()}


def _figures(
    sample: Any, about: dict[str, Any], analysis: Analysis, parts: Parts | None, kind: Any
) -> dict[str, bytes]:
    from metfa.plot import drawing_of, regions, side_by_side

    drawn, batch, shared = {}, len(sample.target), {"title": title_of(about), "palette": analysis.palette}
    draw = partial(side_by_side, kind=kind) if isinstance(sample, AttributionParts) else drawing_of(sample, kind)
    draw_parts, of_parts = None if parts is None else drawing_of(parts.sample, kind), {}
    if parts is not None:
        of_parts = _of_parts(analysis, parts)
        if draw_parts is regions:  # as in the figure of the maps
            of_parts["pixels"] = replace(sample, default_terms=sample.terms(**analysis.given))
    for index in range(batch):
        at = "." if batch == 1 else f"-{index}."
        features = draw(sample, index=index, **shared, **analysis.settings)
        if parts is not None and draw_parts is not None:
            figure = draw_parts(parts.sample, index=index, **shared, **of_parts)
            drawn[FIGURE.replace(".", at)] = png_of(figure)
        drawn[(FIGURE if parts is None else MAPS).replace(".", at)] = png_of(features)
    if analysis.certify and isinstance(sample, AttributionSample):
        drawn[CERTIFIED] = png_of(certificate_figure(sample, analysis, title_of(about)))
    return drawn


def _context_figures(
    explanation: Any, about: dict[str, Any], analysis: Analysis, parts: Parts | None
) -> dict[str, bytes]:
    from metfa.plot import bars, context

    shared = {"title": title_of(about), "palette": analysis.palette}
    drawn = {FIGURE: png_of(context(explanation, **shared, **analysis.settings))}
    if parts is not None:
        drawn[AROUND] = png_of(bars(parts.sample, **shared, **_of_parts(analysis, parts)))
    return drawn


def _of_parts(analysis: Analysis, parts: Parts) -> dict[str, Any]:
    """Settings of the figure of parts, whose threshold is 0."""
    return {**analysis.settings, **analysis.of_regions(parts.sample), "threshold": None, "split": None}


def png_of(drawn: Any) -> bytes:
    """A figure as the content of a PNG file."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # a title in a script that the font lacks
        drawn.savefig(buffer, format="png", dpi=110, metadata=SAID_OF_FIGURES)
    return buffer.getvalue()
