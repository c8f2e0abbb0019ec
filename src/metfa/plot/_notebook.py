"""The view of a sample in a notebook."""

from __future__ import annotations

import base64
import html
import io
import warnings

from metfa._base.validation import check_kind
from metfa.plot._bars import bars
from metfa.plot.images import figure
from metfa.results.sample import AttributionSample

__all__ = ["notebook_html"]


def notebook_html(sample: AttributionSample) -> str:
    """The figure of the first input and the repr of the sample, everything escaped."""
    check_kind(sample, "sample", AttributionSample, "`metfa.explain`")
    text = f"<pre>{html.escape(repr(sample))}</pre>"
    draw = {1: bars, 2: figure}.get(len(sample.feature_shape))
    if draw is None:
        return text
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a display gives no warnings; the methods do
        try:
            draw(sample).savefig(buffer, format="png", dpi=72)
        except (ImportError, ValueError):
            return text
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="attributions with their significance" src="data:image/png;base64,{encoded}">{text}'
