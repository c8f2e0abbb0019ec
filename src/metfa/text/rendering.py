"""An explained text to look at: words coloured by score, marked where they are significant, as HTML or in a terminal.

Texts may come from anybody. In HTML they are escaped; on the way to either, control characters are replaced, and marks
that turn the direction of what follows are left out, so that a text can neither write to a terminal nor rearrange what
stands around it.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa import stats
from metfa._sample_size import TooFewSamplesError, samples_for_interval
from metfa._validation import positive_int
from metfa.result import AttributionSample
from metfa.text._words import Words, words_of

__all__ = ["render_html", "render_terminal"]

HUES = {1: "230,159,0", -1: "0,114,178"}  # orange and blue, as in `plot.bars`, told apart by all colour vision
STRONGEST = 0.6  # opacity of a background, at which black and white letters alike are read
STEPS = {1: (180, 215, 208), -1: (110, 74, 39)}  # of 256 colours, grey to vivid, under black letters
FAINTEST = 0.1  # share of the largest score below which a terminal shows no background
MARKS = {"important": "*{}*", "positive": "*{}*", "negative": "~{}~", "undecided": "({})"}  # in plain text
ESCAPES = {"important": "1;4", "positive": "1;4", "negative": "3;4", "unimportant": "2"}  # in a terminal
STYLES = {  # in HTML
    "important": "text-decoration:underline;text-decoration-thickness:.14em;text-underline-offset:.22em",
    "positive": "text-decoration:underline;text-decoration-thickness:.14em;text-underline-offset:.22em",
    "negative": "text-decoration:underline;text-decoration-style:wavy;text-underline-offset:.22em",
    "unimportant": "color:color-mix(in srgb,currentColor 62%,transparent)",
}
NOT_TESTED = ""
TOP = 10  # words whose figures are listed in a terminal, which has no hover
JOINERS = "\u200c\u200d\u200e\u200f\u061c"  # make emoji and script what they are, and move nothing else


@dataclass(frozen=True)
class Reading:
    """A text's words with what is said of each of them, and of all."""

    words: Words
    scores: np.ndarray
    kinds: list[str]
    ends: tuple[np.ndarray, np.ndarray] | None
    about: list[str]
    marks: list[tuple[str, str]]

    @classmethod
    def of(
        cls, sample: AttributionSample, threshold: Any, alpha: float | None, correction: str | None, level: float
    ) -> Reading:
        """Thresholds and levels as `metfa.plot.bars` chooses them, so that both say the same of a sample."""
        words = _words_of(sample)
        signed = bool(min(sample.values.min(), sample.vanilla.min()) < 0)
        if threshold is None:
            threshold = 0.0 if signed else stats.jenks
        if alpha is None:
            alpha = round((1 - level) / (2 if correction is None else 1), 15)
        scores, ends, called = _scores(sample, level)
        try:
            kinds, marks, decided = _decisions(sample, threshold, alpha, correction)
        except TooFewSamplesError as error:
            kinds, marks, decided = [NOT_TESTED] * len(words), [], f"no word can be significant: {error}"
        return cls(words, scores, kinds, ends, [_origin(sample), called, decided], marks)

    @property
    def gaps(self) -> tuple[str, ...]:
        """What stands around the words, one more than words."""
        return ("", *[" "] * (len(self.words) - 1), "") if self.words.gaps is None else self.words.gaps

    @property
    def strengths(self) -> np.ndarray:
        """Scores over the largest by absolute value, -1 to 1."""
        largest = np.abs(self.scores).max()
        return self.scores / largest if largest > 0 else np.zeros(len(self.scores))

    def figures(self, index: int) -> str:
        """Score, interval and decision of one word."""
        interval = "" if self.ends is None else f" [{_number(self.ends[0][index])}, {_number(self.ends[1][index])}]"
        return f"{_number(self.scores[index])}{interval} {self.kinds[index]}".rstrip()


def _words_of(sample: AttributionSample) -> Words:
    if not isinstance(sample, AttributionSample):
        raise TypeError(f"`sample` must be an AttributionSample, got {type(sample).__name__}")
    if not isinstance(sample.inputs, list) or len(sample.feature_shape) != 1:
        raise ValueError(
            "`sample` must be of a text, as `metfa.text.explain_text` gives it; `sample.plot()` draws others"
        )
    if len(sample.inputs) != 1:
        raise ValueError(f"`sample` must be of one text, got {len(sample.inputs)}: explain them one by one")
    names, words = sample.words, words_of(sample.inputs[0])
    if names is not None and names != words.words:
        words = Words(names, None)  # cut by somebody else
    if len(words) != sample.n_features:
        raise ValueError(
            f"`sample` must have one score for each word, got {sample.n_features} for the {len(words)} words of its "
            "text: name the features by `feature_names=`"
        )
    return words


def _scores(sample: AttributionSample, level: float) -> tuple[np.ndarray, Any, str]:
    """Smoothed scores and the ends of their intervals, or medians where the samples are too few; and what they are."""
    n, needed = sample.n_samples, samples_for_interval(level)
    if n < needed:
        kind = "the only sample" if n == 1 else f"median of {n} samples"
        few = f"no intervals: {n} samples are too few, {100 * level:.6g}% needs {needed}"
        return sample.median()[0].astype(np.float64), None, f"score: {kind}; {few}"
    interval = sample.confidence_interval(level)
    ends = interval.low[0].astype(np.float64), interval.high[0].astype(np.float64)
    smoothed = sample.smoothed(level)[0].astype(np.float64)
    exact = f"exact {interval.confidence_level:.2%} interval of its median"
    return smoothed, ends, f"score: smoothed over {n} samples; in brackets the {exact}"


def _decisions(
    sample: AttributionSample, threshold: Any, alpha: float, correction: str | None
) -> tuple[list[str], list[tuple[str, str]], str]:
    """Decision about each word, those that there are with their meaning, and how they were found."""
    marks, heights, _ = sample._decided(threshold, alpha, correction, None)
    flat = np.unique(heights)
    if np.isnan(heights).all():
        return [NOT_TESTED] * marks.size, [], "no threshold exists: all scores are equal"
    at = f"{flat[0]:.3g}" if len(flat) == 1 else "a threshold of its own"
    above, below = ("positive", "negative") if len(flat) == 1 and flat[0] == 0 else ("important", "unimportant")
    of = {1: above, 0: "undecided", -1: below}
    kinds = [of[mark] for mark in marks[0].tolist()]
    if correction is None:
        expected = stats.expected_false_marks(sample.n_samples, alpha, len(kinds))
        shown = f"{expected:,.0f}" if expected >= 10 else f"{expected:.2g}"
        how = f"uncorrected: {shown} of {_words(len(kinds))} marked falsely if every median lay at the threshold"
        decided = f"decided at alpha {alpha:g} a side, {how}"
    else:
        decided = f"decided at alpha {alpha:g}, {correction} over {_words(len(kinds))}"
    meanings = {above: f"median significantly above {at}", below: f"median significantly below {at}"}
    meanings["undecided"] = "neither"
    return kinds, [(kind, f"{meaning}, {_words(kinds.count(kind))}") for kind, meaning in meanings.items()], decided


def _origin(sample: AttributionSample) -> str:
    made = sample.provenance
    target = "" if sample.target[0] is None else f"class {sample.target[0]}, "
    noise = "no noise" if made.get("noise") in (None, "None") else f"noise {made['noise']}"
    flips = "" if sample.flip_rate is None else f"; another prediction in {sample.flip_rate[0]:.0%} of the samples"
    return f"{target}explained by {made.get('explainer')}; N = {sample.n_samples} samples, {noise}{flips}"


def _words(count: int) -> str:
    return "1 word" if count == 1 else f"{count:,} words"


def _number(value: float) -> str:
    return f"{value:.3g}"


def _harmless(text: str) -> str:
    """`text` without what writes to a terminal or turns the direction of other texts; emoji and scripts stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_harmless_character, text.replace("\r\n", "\n")))


def _harmless_character(character: str) -> str:
    if character.isspace():
        return "\n" if character in "\n\r\x85\u2028\u2029" else " "
    category = unicodedata.category(character)
    if category in ("Cc", "Cs"):
        return "\N{REPLACEMENT CHARACTER}"
    return "" if category == "Cf" and character not in JOINERS else character


def render_html(
    sample: AttributionSample,
    *,
    title: str | None = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    confidence_level: float = 0.95,
    page: bool = False,
) -> str:
    """An explained text as HTML: background by score, marks by significance, figures on hover, and a legend.

    The colours of letters and page are left to the page around it, light or dark. There are no scripts, no style sheets
    and no links; everything is escaped.

    Parameters
    ----------
    sample : AttributionSample
        Of one text, as `metfa.text.explain_text` returns it.
    title : str, optional
        Heading, such as what the class means.
    threshold : callable, float or array, optional
        As for `AttributionSample.significance_map`. None: 0 where any score of the sample is negative, else the natural
        break of its samples (`metfa.stats.jenks`).
    alpha : float, optional
        Level of the decisions, as for `AttributionSample.significance_map`. None: (1 - `confidence_level`) / 2 a side,
        at which a word is marked just if its interval leaves out the threshold; with a correction,
        1 - `confidence_level` for all words together.
    correction : {None, "bonferroni", "holm", "bh", "by"}
        Correction for many words.
    confidence_level : float
        Level of each interval; the legend names the exact level reached.
    page : bool
        True gives a whole page, to be written to a file in UTF-8; False a piece of one.

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
    ...     explainer, ["a good film"], 1, noise=noise, n_samples=20, rng=0, feature_names=words
    ... )
    >>> text.render_html(sample).count("<span")
    7
    """
    reading = Reading.of(sample, threshold, alpha, correction, confidence_level)
    gaps = [html.escape(_harmless(gap)) for gap in reading.gaps]
    words = [
        _span(_harmless(word), reading.kinds[index], float(strength), reading.figures(index))
        for index, (word, strength) in enumerate(zip(reading.words.words, reading.strengths, strict=True))
    ]
    shown = gaps[0] + "".join(word + gap for word, gap in zip(words, gaps[1:], strict=True))
    named = html.escape(_harmless(title or "Explained text"))
    heading = "" if title is None else f'<p style="margin:0 0 .6em;font-weight:bold">{named}</p>'
    background = _span("background", NOT_TESTED, 1.0, None)
    legend = [background + html.escape(f": {_scale(reading)}; hover over a word for its figures")]
    legend += [_span(kind, kind, 0.0, None) + html.escape(f": {meaning}") for kind, meaning in reading.marks]
    legend += [html.escape(_harmless(line)) for line in reading.about]
    below = "".join(f'<div style="margin:.15em 0">{line}</div>' for line in legend)
    body = (
        f'<div style="max-width:48em;font-family:system-ui,sans-serif;text-align:start">{heading}'
        f'<p dir="auto" style="margin:0;line-height:1.9;white-space:pre-wrap;overflow-wrap:anywhere;'
        f'unicode-bidi:plaintext">{shown}</p>'
        f'<div style="margin-top:.9em;padding-top:.5em;border-top:1px solid #8888;font-size:.8em;line-height:1.5;'
        f'overflow-wrap:anywhere">{below}</div></div>'
    )
    if not page:
        return body
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<title>{named}</title></head><body style="margin:2em">{body}</body></html>\n'
    )


def _span(text: str, kind: str, strength: float, hover: str | None) -> str:
    styles = [STYLES[kind]] if kind in STYLES else []
    opacity = round(STRONGEST * abs(strength), 3) if np.isfinite(strength) else 0
    if opacity >= 0.01:
        hue = HUES[1 if strength > 0 else -1]
        styles += [f"background:rgba({hue},{opacity:g})", "border-radius:.2em", "padding:.1em 0"]
    style = f' style="{";".join(styles)}"' if styles else ""
    title = "" if hover is None else f' title="{html.escape(hover)}"'
    return f"<span{style}{title}>{html.escape(text)}</span>"


def _scale(reading: Reading) -> str:
    """What the background says."""
    largest = np.abs(reading.scores).max()
    hues = "orange above 0, blue below" if reading.scores.min() < 0 else "orange"
    return f"score of a word, {hues}, the stronger the further from 0 (strongest: {_number(largest)})"


def render_terminal(
    sample: AttributionSample,
    *,
    width: int | None = None,
    colour: bool | None = None,
    title: str | None = None,
    threshold: Any = None,
    alpha: float | None = None,
    correction: str | None = None,
    confidence_level: float = 0.95,
) -> str:
    r"""An explained text for a terminal: background by score, marks by significance, the best words' figures, a legend.

    Without colours a word is ``*important*``, ``(undecided)`` or unimportant; for signed scores ``*positive*``,
    ``~negative~`` or ``(undecided)``.

    Parameters
    ----------
    sample, title, threshold, alpha, correction, confidence_level
        As for :func:`render_html`.
    width : int, optional
        Columns after which lines are broken, between words. None: as wide as the terminal.
    colour : bool, optional
        Whether to colour by escape sequences. None: if the output is a terminal, and the environment variable
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
    reading = Reading.of(sample, threshold, alpha, correction, confidence_level)
    colour = _wants_colour() if colour is None else colour
    width = shutil.get_terminal_size().columns if width is None else positive_int(width, "width")
    heading = [] if title is None else [*_broken(_flow(_harmless(title)), width), ""]
    lines = [*heading, *_broken(_pieces(reading, colour), width), "", *_table(reading, colour), ""]
    keys = [(_marked(kind, kind, 0.0, colour), meaning) for kind, meaning in reading.marks]
    if colour:
        keys = [(_marked("background", NOT_TESTED, 1.0, colour), _scale(reading)), *keys]
    for key, meaning in keys:
        lines += _broken([key, *_flow(f": {meaning}")], width)
    for line in reading.about:
        lines += _broken(_flow(_harmless(line)), width)
    return "\n".join(lines)


def _wants_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _pieces(reading: Reading, colour: bool) -> Iterator[tuple[str, str]]:
    """Words and what stands between them: as plain text, and as it is shown."""
    words, strengths = reading.words.words, reading.strengths
    yield from _flow(_harmless(reading.gaps[0]))
    for word, kind, strength, gap in zip(words, reading.kinds, strengths, reading.gaps[1:], strict=True):
        harmless = _harmless(word).replace("\n", " ")
        yield _marked(harmless, kind, float(strength), colour)
        yield from _flow(_harmless(gap))


def _flow(text: str) -> Iterator[tuple[str, str]]:
    """Text that may be broken at its blanks."""
    return ((piece, piece) for piece in re.findall(r"\n| +|[^ \n]+", text))


def _marked(text: str, kind: str, strength: float, colour: bool) -> tuple[str, str]:
    """`text` marked as its kind, plain and as it is shown: on a background by escape sequences that end with it."""
    if not colour:
        marked = MARKS.get(kind, "{}").format(text)
        return marked, marked
    codes = [ESCAPES[kind]] if kind in ESCAPES else []
    if np.isfinite(strength) and abs(strength) >= FAINTEST:
        steps = STEPS[1 if strength > 0 else -1]
        step = steps[min(int(abs(strength) * len(steps)), len(steps) - 1)]
        codes.append(f"38;5;16;48;5;{step}")
    return text, f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes else text


def _broken(pieces: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Lines of at most `width` columns, broken at blanks where there are any."""
    lines, line, used = [], "", 0
    run, run_columns, blanks = "", 0, 0  # what has no blanks since the last ones, and how many these were
    for plain, shown in [*pieces, ("\n", "\n")]:
        if not plain.isspace():
            run, run_columns = run + shown, run_columns + _columns(plain)
            continue
        if run:
            if line and used + blanks + run_columns > width:
                lines.append(line)
                line, used, blanks = "", 0, 0
            line, used = line + " " * blanks + run, used + blanks + run_columns
            run, run_columns, blanks = "", 0, 0
        if plain == "\n":
            lines.append(line)
            line, used, blanks = "", 0, 0
        elif line:
            blanks = min(blanks + len(plain), width)
    return lines


def _columns(text: str) -> int:
    """Columns that a terminal needs for a text."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _table(reading: Reading, colour: bool) -> list[str]:
    """The words with the largest scores by absolute value, with their figures."""
    order = np.argsort(-np.abs(reading.scores), kind="stable")
    shown = [int(index) for index in order[:TOP]]
    names = [_cut(_harmless(reading.words.words[index]).replace("\n", " ")) for index in shown]
    strengths, widest = reading.strengths, max(map(_columns, names))
    lines = []
    for name, index in zip(names, shown, strict=True):
        _, painted = _marked(name, NOT_TESTED, float(strengths[index]), colour)
        lines.append(f"{painted}{' ' * (widest - _columns(name))}  {reading.figures(index)}")
    rest = order[TOP:]
    if rest.size:
        words = "1 more word, its score" if rest.size == 1 else f"{rest.size:,} more words, their scores"
        lines.append(f"and {words} at most {_number(np.abs(reading.scores[rest]).max())} in size")
    return lines


def _cut(word: str, longest: int = 24) -> str:
    return word if len(word) <= longest else word[: longest - 1] + "…"
