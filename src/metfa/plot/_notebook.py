"""The view of a sample in a notebook."""

from __future__ import annotations

import base64
import html
import importlib.util
import io
import warnings

from metfa._base.validation import check_kind
from metfa.plot._choice import drawing_of
from metfa.plot._side_by_side import side_by_side
from metfa.results.attribution_parts import AttributionParts
from metfa.results.sample import AttributionSample
from metfa.text.answers.answered import is_answer
from metfa.text.rendering import render_html

__all__ = ["notebook_html"]


def notebook_html(sample: AttributionSample | AttributionParts) -> str:
    """The figure of the first input, or an answer with its sources, and the repr of the sample, everything escaped.

    Below it stands how to explore it, and what to install for that.
    """
    several = isinstance(sample, AttributionParts)
    if not several:
        check_kind(sample, "sample", AttributionSample, "`metfa.explain`")
    text = f"<pre>{html.escape(repr(sample))}\n{html.escape(_hint(sample), quote=False)}</pre>"
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a display gives no warnings; the methods do
        if is_answer(sample):
            return f"{render_html(sample)}{text}"  # pyright: ignore[reportArgumentType]
        try:
            figure = side_by_side(sample) if isinstance(sample, AttributionParts) else drawing_of(sample)(sample)
            figure.savefig(buffer, format="png", dpi=72)
        except ImportError:
            return text
        except ValueError as error:  # such as shapes that two kinds of maps fit
            return f"{text}<p>not drawn: {html.escape(str(error))}</p>"
    encoded = base64.b64encode(buffer.getvalue()).decode()
    shown = "attributions" if several or sample.pair is None else "differences of attributions"
    return f'<img alt="{shown} with their significance" src="data:image/png;base64,{encoded}">{text}'


def _hint(sample: AttributionSample | AttributionParts) -> str:
    """How to explore the result in the notebook, and what to install for that."""
    one = f"result[{next(iter(sample))!r}]" if isinstance(sample, AttributionParts) else "result"
    install = "" if importlib.util.find_spec("anywidget") else ', after pip install "metfa[notebook]"'
    return f"To explore it here: {one}.explore(){install}"
