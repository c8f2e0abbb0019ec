"""The figures of a result, or the page of a text, by the names of their files."""

from __future__ import annotations

import io
import warnings
from dataclasses import replace
from typing import Any

from metfa.cli.certificates import certificate_figure
from metfa.cli.kinds import is_of_text
from metfa.cli.regions import pooled
from metfa.cli.run import CERTIFIED, FIGURE, MAPS, WORDS, Analysis, title_of
from metfa.results.sample import AttributionSample

__all__ = ["drawn_views", "png_of"]


def drawn_views(sample: Any, about: dict[str, Any], analysis: Analysis) -> dict[str, bytes]:
    """A figure of each input, or the page of a text, by the names of their files."""
    if is_of_text(sample):
        return _page(sample, about, analysis)
    return (_figures if isinstance(sample, AttributionSample) else _context_figure)(sample, about, analysis)


def _page(sample: AttributionSample, about: dict[str, Any], analysis: Analysis) -> dict[str, bytes]:
    from metfa.text import render_html

    return {WORDS: render_html(sample, title=title_of(about), page=True, **analysis.settings).encode()}


def _figures(sample: AttributionSample, about: dict[str, Any], analysis: Analysis) -> dict[str, bytes]:
    from metfa.plot import figure, regions

    batch, shared = sample.values.shape[1], {"title": title_of(about), "palette": analysis.palette}
    of_regions, _ = pooled(sample, analysis)
    if of_regions is not None:
        pixels = replace(sample, default_terms=sample.terms(**analysis.given))  # as in the figure of the maps
        about_regions = {**analysis.settings, **analysis.of_regions(of_regions), "threshold": None, "split": None}
        drawn = {
            FIGURE: png_of(regions(of_regions, pixels=pixels, **shared, **about_regions)),
            MAPS: png_of(figure(sample, **shared, **analysis.settings)),
        }
    else:
        drawn = {
            FIGURE if batch == 1 else f"figure-{index}.png": png_of(
                figure(sample, index=index, **shared, **analysis.settings)
            )
            for index in range(batch)
        }
    if analysis.certify:
        drawn[CERTIFIED] = png_of(certificate_figure(sample, analysis, title_of(about)))
    return drawn


def _context_figure(explanation: Any, about: dict[str, Any], analysis: Analysis) -> dict[str, bytes]:
    from metfa.plot import context

    return {FIGURE: png_of(context(explanation, title=title_of(about), palette=analysis.palette, **analysis.settings))}


def png_of(drawn: Any) -> bytes:
    """A figure as the content of a PNG file."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # a title in a script that the font lacks
        drawn.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()
