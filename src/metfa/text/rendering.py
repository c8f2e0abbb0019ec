"""Show an explained text, as HTML or in a terminal: words coloured by score, and marked if significant.

Texts may come from anybody. In HTML they are escaped. In both forms control characters are replaced, and marks that
turn the direction of the following text are left out. So a text can neither control a terminal nor move the text around
it.
"""

from __future__ import annotations

import html
import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from metfa._base.palettes import HUES
from metfa._base.percents import counted, percent
from metfa._base.validation import positive_int
from metfa.results.cautions import FLIPS_FROM, cautions
from metfa.results.sample import AttributionSample
from metfa.text._lines import broken, columns_of, cut, flow
from metfa.text.answers.answered import is_answer
from metfa.text.answers.findings import Findings
from metfa.text.answers.views import WARNING, answer_html, answer_terminal
from metfa.text.reading import NOT_TESTED, Reading, harmless_text, short_number, words_explained

__all__ = ["render_html", "render_terminal"]

STRONGEST = 0.6  # opacity of a background on which both black and white letters can be read
STEPS = {1: (180, 215, 208), -1: (110, 74, 39)}  # of 256 colours, grey to vivid, under black letters
FAINT = 0.35  # of the strength of colours and marks under a caution
FAINTEST = 0.1  # share of the largest score; below it a terminal shows no background
MARKS = {"important": "*{}*", "positive": "*{}*", "negative": "~{}~", "undecided": "({})"}  # in plain text
ESCAPES = {"important": "1;4", "positive": "1;4", "negative": "3;4", "unimportant": "2"}  # in a terminal
STYLES = {  # in HTML
    "important": "text-decoration:underline;text-decoration-thickness:.14em;text-underline-offset:.22em",
    "positive": "text-decoration:underline;text-decoration-thickness:.14em;text-underline-offset:.22em",
    "negative": "text-decoration:underline;text-decoration-style:wavy;text-underline-offset:.22em",
    "unimportant": "color:color-mix(in srgb,currentColor 62%,transparent)",
}
TOP = 10  # words that a terminal lists with their figures, because it has no hover


def render_html(
    sample: AttributionSample,
    *,
    title: str | None = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
    confidence_level: float = 0.95,
    page: bool = False,
    flips_from: float = FLIPS_FROM,
) -> str:
    """Show an explained text as HTML: background by score, marks by significance, figures on hover, and a legend.

    Of an answer (`metfa.text.explain_answer`) each sentence opens to its sources with error bars.

    The page around it sets the colours of letters and page, light or dark. There are no scripts, no style sheets and no
    links; everything is escaped.

    Parameters
    ----------
    sample : AttributionSample
        Sample of one text, as `metfa.text.explain_text` returns it, or of an answer.
    title : str, optional
        Heading, such as the meaning of the class.
    threshold, alpha, correction, split
        As for `AttributionSample.terms`; with ``scale=False`` the scores are signed.
    confidence_level : float
        Level of each interval; the legend names the exact level reached. Marks are decided at alpha, so marks and
        intervals may differ at the threshold.
    page : bool
        True gives a whole page, to write to a file in UTF-8; False gives a part of a page.
    flips_from : float
        Share of noisy texts with another prediction, from which on the heading says so and the marks are faint.

    Returns
    -------
    str

    Raises
    ------
    TypeError, ValueError
        If `sample` is not of one text, or an argument is out of range. Too few samples are no error: the legend says
        so.

    Examples
    --------
    >>> import metfa
    >>> from metfa import text
    >>> words = ("a", "good", "film")
    >>> explainer = lambda texts, target: [[len(word) / 4 for word in line.split()] for line in texts]
    >>> noise = lambda line, rng: line.replace("good", rng.choice(["good", "fine", "nice"]))
    >>> sample = metfa.explain(
    ...     explainer, ["a good film"], 1, noise=noise, n_samples=20, rng=0, run=metfa.Run(feature_names=words)
    ... )
    >>> text.render_html(sample).count("<span")
    7
    """
    _check_look(title, page=page)
    answer = is_answer(sample)
    if not answer:
        words_explained(sample)
    terms = sample.terms(threshold, alpha=alpha, correction=correction, split=split)
    if answer:
        found = Findings.of(sample, terms, confidence_level, flips_from)
        body = answer_html(found, title=title and harmless_text(title))
        return _paged(body, title or "Sources of an answer") if page else body
    reading = Reading.of(sample, terms, confidence_level)
    warned = cautions(sample, 0, flips_from)
    faint = FAINT if warned else 1.0
    gaps = [html.escape(harmless_text(gap)) for gap in reading.gaps]
    words = [
        _span(harmless_text(word), reading.looks[index], faint * float(strength), reading.figures(index), faint=faint)
        for index, (word, strength) in enumerate(zip(reading.words.words, reading.strengths, strict=True))
    ]
    shown = gaps[0] + "".join(word + gap for word, gap in zip(words, gaps[1:], strict=True))
    named = html.escape(harmless_text(title or ""))
    heading = "" if title is None else f'<p style="margin:0 0 .6em;font-weight:bold">{named}</p>'
    heading += "".join(f'<p style="{WARNING}">{html.escape(text)}</p>' for text in [*warned, *reading.nothing])
    background = _span("background", NOT_TESTED, faint, None)
    legend = [background + html.escape(f": {_scale(reading)}; hover over a {reading.noun} for its figures")]
    legend += [
        _span(kind, look, 0.0, None, faint=faint) + html.escape(f": {meaning}") for kind, look, meaning in reading.marks
    ]
    legend += [html.escape(harmless_text(line)) for line in reading.about]
    below = "".join(f'<div style="margin:.15em 0">{line}</div>' for line in legend)
    body = (
        f'<div style="max-width:48em;font-family:system-ui,sans-serif;text-align:start">{heading}'
        f'<p dir="auto" style="margin:0;line-height:1.9;white-space:pre-wrap;overflow-wrap:anywhere;'
        f'unicode-bidi:plaintext">{shown}</p>'
        f'<div style="margin-top:.9em;padding-top:.5em;border-top:1px solid #8888;font-size:.8em;line-height:1.5;'
        f'overflow-wrap:anywhere">{below}</div></div>'
    )
    return _paged(body, title or "Explained text") if page else body


def _paged(body: str, title: str) -> str:
    named = html.escape(harmless_text(title))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<title>{named}</title></head><body style="margin:2em">{body}</body></html>\n'
    )


def _check_look(title: Any, **switches: Any) -> None:
    if title is not None and not isinstance(title, str):
        raise TypeError(f"`title` must be a text, got {type(title).__name__}: {title!r:.80}")
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise TypeError(f"`{name}` must be True or False, got {type(value).__name__}: {value!r:.80}")


def _span(text: str, look: str, strength: float, hover: str | None, *, faint: float = 1.0) -> str:
    styles = [STYLES[look]] if look in STYLES else []
    if styles and faint < 1:
        styles.append(f"text-decoration-color:color-mix(in srgb,currentColor {percent(faint)},transparent)")
    opacity = round(STRONGEST * abs(strength), 3) if np.isfinite(strength) else 0
    if opacity >= 0.01:
        hue = ",".join(map(str, HUES[1 if strength > 0 else -1]))
        styles += [f"background:rgba({hue},{opacity:g})", "border-radius:.2em", "padding:.1em 0"]
    style = f' style="{";".join(styles)}"' if styles else ""
    title = "" if hover is None else f' title="{html.escape(hover)}"'
    return f"<span{style}{title}>{html.escape(text)}</span>"


def _scale(reading: Reading) -> str:
    """The meaning of the background."""
    largest = np.abs(reading.scores.values).max()
    hues = "orange above 0, blue below" if reading.scores.values.min() < 0 else "orange"
    strongest = f"stronger colours are further from 0 (strongest: {short_number(largest)})"
    return f"{reading.scores.quantity} of a {reading.noun}, {hues}; {strongest}"


def render_terminal(
    sample: AttributionSample,
    *,
    width: int | None = None,
    colour: bool | None = None,
    title: str | None = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
    confidence_level: float = 0.95,
    flips_from: float = FLIPS_FROM,
) -> str:
    r"""Show an explained text in a terminal: background by score, marks by significance, figures of the top words.

    Without colours a word is ``*important*``, ``(undecided)`` or unimportant; for signed scores ``*positive*``,
    ``~negative~`` or ``(undecided)``. Parts of a text that get more, or less, than the rest look as those of a sign.
    Below each sentence of an answer there is a table of its sources, with error bars.

    Parameters
    ----------
    sample, title, threshold, alpha, correction, split, confidence_level, flips_from
        As for :func:`render_html`; marks are faint only in colours.
    width : int, optional
        Largest width of a line; lines are broken between words. None: as wide as the terminal.
    colour : bool, optional
        Whether to colour by escape sequences. None: yes, if the output is a terminal, and the environment variable
        ``NO_COLOR`` is not set.

    Returns
    -------
    str
        Lines to print.

    Examples
    --------
    >>> import metfa
    >>> from metfa import text
    >>> explainer = lambda texts, target: [[0.1, len(line) / 20, 0.2] for line in texts]
    >>> noise = lambda line, rng: line.replace("good", rng.choice(["good", "fine", "superb"]))
    >>> sample = metfa.explain(explainer, ["A good film!"], 1, noise=noise, n_samples=20, rng=0)
    >>> print(text.render_terminal(sample, colour=False, width=70).splitlines()[0])
    A *good* film!
    """
    _check_look(title, colour=False if colour is None else colour)
    colour = _wants_colour() if colour is None else colour
    width = shutil.get_terminal_size().columns if width is None else positive_int(width, "width")
    answer = is_answer(sample)
    if not answer:
        words_explained(sample)
    terms = sample.terms(threshold, alpha=alpha, correction=correction, split=split)
    if answer:
        above = [] if title is None else [harmless_text(title)]
        found = Findings.of(sample, terms, confidence_level, flips_from)
        return answer_terminal(found, width=width, colour=colour, above=above)
    reading = Reading.of(sample, terms, confidence_level)
    warned = cautions(sample, 0, flips_from)
    faint = FAINT if warned else 1.0
    above = [*([] if title is None else [title]), *(f"CAUTION: {text}" for text in [*warned, *reading.nothing])]
    heading = [line for text in above for line in broken(flow(harmless_text(text)), width)]
    heading += [""] if heading else []
    lines = [*heading, *broken(_pieces(reading, colour, faint), width), "", *_table(reading, colour, faint), ""]
    keys = [(_marked(kind, look, 0.0, colour, faint), meaning) for kind, look, meaning in reading.marks]
    if colour:
        keys = [(_marked("background", NOT_TESTED, 1.0, colour, faint), _scale(reading)), *keys]
    for key, meaning in keys:
        lines += broken([key, *flow(f": {meaning}")], width)
    for line in reading.about:
        lines += broken(flow(harmless_text(line)), width)
    return "\n".join(lines)


def _wants_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _pieces(reading: Reading, colour: bool, faint: float) -> Iterator[tuple[str, str]]:
    """Words and the texts between them: each as plain text, and as it is shown."""
    words, strengths = reading.words.words, reading.strengths
    yield from flow(harmless_text(reading.gaps[0]))
    for word, look, strength, gap in zip(words, reading.looks, strengths, reading.gaps[1:], strict=True):
        harmless = harmless_text(word).replace("\n", " ")
        yield _marked(harmless, look, float(strength), colour, faint)
        yield from flow(harmless_text(gap))


def _marked(text: str, look: str, strength: float, colour: bool, faint: float) -> tuple[str, str]:
    """`text` marked with its look: as plain text, and as it is shown, with escape sequences that end with it."""
    if not colour:
        marked = MARKS.get(look, "{}").format(text)
        return marked, marked
    codes = [ESCAPES[look] if faint == 1 else f"2;{ESCAPES[look].partition(';')[2] or 2}"] if look in ESCAPES else []
    strength *= faint
    if np.isfinite(strength) and abs(strength) >= FAINTEST:
        steps = STEPS[1 if strength > 0 else -1]
        step = steps[min(int(abs(strength) * len(steps)), len(steps) - 1)]
        codes.append(f"38;5;16;48;5;{step}")
    return text, f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes else text


def _table(reading: Reading, colour: bool, faint: float) -> list[str]:
    """The words with the largest scores by absolute value, with their figures."""
    order = np.argsort(-np.abs(reading.scores.values), kind="stable")
    shown = [int(index) for index in order[:TOP]]
    names = [cut(harmless_text(reading.words.words[index]).replace("\n", " ")) for index in shown]
    strengths, widest = reading.strengths, max(map(columns_of, names))
    lines = []
    for name, index in zip(names, shown, strict=True):
        _, painted = _marked(name, NOT_TESTED, float(strengths[index]), colour, faint)
        lines.append(f"{painted}{' ' * (widest - columns_of(name))}  {reading.figures(index)}")
    rest = order[TOP:]
    if rest.size:
        whose = f"{'its' if rest.size == 1 else 'their'} {reading.scores.quantity}{'s' * (rest.size > 1)}"
        more = f"{counted(rest.size, f'more {reading.noun}')}, {whose}"
        lines.append(f"and {more} at most {short_number(np.abs(reading.scores.values[rest]).max())} in size")
    return lines
