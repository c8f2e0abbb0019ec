"""An answer with the sources of each of its sentences, in a terminal, and as HTML without scripts."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from metfa._base.palettes import HUES
from metfa._base.percents import counted
from metfa.sampling.streams import content_digest
from metfa.text._lines import broken, columns_of, cut, flow
from metfa.text.answers.findings import Finding, Findings
from metfa.text.reading import short_number

__all__ = ["WARNING", "answer_html", "answer_terminal"]

TOP = 12  # sources that a terminal lists below a sentence, and all that are marked as adding more
LONGEST_NAME, COLUMNS = 24, 27  # letters of a name, and columns of an error bar, in a terminal
OPENED = 240  # letters of a source that HTML shows before it is opened
WIDE = 240  # of an error bar in HTML, in CSS pixels
WARNING = "margin:0 0 .6em;padding-left:.6em;border-left:.3em solid #c62828;font-weight:bold"
SHORT = {1: "more", -1: "less", 0: "undecided"}
ESCAPES = {1: "1;4", -1: "3", 0: "2"}
NOT_UNIMPORTANT = "this does not say that it does not matter, as another source may say the same"


def answer_terminal(findings: Findings, *, width: int, colour: bool, above: Sequence[str]) -> str:
    """Each sentence with a table of its sources and their error bars; `above` are lines before them."""
    of_level = [] if findings.answered.level is None else [findings.answered.level]
    warned = [f"CAUTION: {text}" for text in findings.cautions]
    lines = [line for text in [*above, *warned, *of_level] for line in broken(flow(text), width)]
    lines += [""] if lines else []
    for k in range(len(findings.each)):
        named = findings.named(k)
        said = f"{findings.answered.answers[k].strip()} [{named or 'none is found'}]"
        lines += [*broken(flow(said), width), *_table(k, findings, width, colour), ""]
    for source in findings.answered.sources:
        if source.group:
            members = ", ".join(name for name, _ in source.members)
            lines += broken(flow(f"{source.name}: kept or dropped together: {members}"), width)
    kinds = findings.kinds
    if kinds[1]:
        lines += broken(flow(f"more: {kinds[1]}; less: {kinds[-1]} ({NOT_UNIMPORTANT})"), width)
    lines += broken(flow(f"●: its number; ├ ┤: its interval; ┊: 0; │: {_said(findings)}"), width)
    for line in findings.about:
        lines += broken(flow(line), width)
    return "\n".join(lines)


def _said(findings: Findings) -> str:
    """The thresholds, once where they are the same."""
    return ", ".join(dict.fromkeys(map(short_number, findings.thresholds)))


def _table(k: int, findings: Findings, width: int, colour: bool) -> list[str]:
    rows, threshold = findings.each[k], findings.thresholds[k]
    shown = [row for place, row in enumerate(rows) if place < TOP or row.mark > 0]
    names = [cut(row.source.label, LONGEST_NAME) for row in shown]
    numbers = list(map(findings.numbers, shown))
    widest, of_numbers = max(map(columns_of, names)), max(map(len, numbers))
    drawn = width >= 2 + widest + 2 + of_numbers + 2 + COLUMNS + 2 + len(SHORT[0])
    lines = []
    for row, name, number in zip(shown, names, numbers, strict=True):
        padded = f"  {name}{' ' * (widest - columns_of(name))}  {number:<{of_numbers}}"
        bar = f"  {_drawn(row, threshold, findings.scale)}" if drawn else ""
        mark = SHORT[row.mark] if row.kind else ""
        mark = f"\x1b[{ESCAPES[row.mark]}m{mark}\x1b[0m" if colour and mark else mark
        mark += " " * (len(SHORT[0]) - len(SHORT[row.mark])) * bool(row.beside)
        mark += "".join(f"  {one} {short_number(value)}" for one, value in row.beside)
        lines.append(f"{padded}{bar}  {mark}".rstrip())
    rest = len(rows) - len(shown)
    if rest:
        largest = max(row.score for row in rows if row not in shown)
        lines.append(f"  and {counted(rest, 'more source')}, at most {findings.number(largest)}")
    return lines


def _drawn(row: Finding, threshold: float, scale: tuple[float, float]) -> str:
    """An error bar made of characters."""
    low, high = scale
    columns = [" "] * COLUMNS

    def at(number: float) -> int:
        return round((number - low) / (high - low) * (COLUMNS - 1))

    columns[at(0.0)] = "┊"
    if np.isfinite(threshold):
        columns[at(threshold)] = "│"
    if row.ends is not None:
        first, last = map(at, row.ends)
        columns[first : last + 1] = "─" * (last + 1 - first)
        columns[first], columns[last] = "├", "┤"
    columns[at(row.score)] = "●"
    return "".join(columns)


def answer_html(findings: Findings, *, title: str | None) -> str:
    """The sentences of an answer, each of which opens to its sources; a part of a page, without scripts."""
    answered = findings.answered
    group = f"metfa-{content_digest([repr(findings)])[:12]}"  # those of one result close each other, not others'
    heading = "" if title is None else f'<p style="margin:0 0 .6em;font-weight:bold">{html.escape(title)}</p>'
    heading += "".join(f'<p style="{WARNING}">{html.escape(text)}</p>' for text in findings.cautions)
    body = [] if answered.level is None else [f"<p>{html.escape(answered.level)}</p>"]
    for text, k in answered.pieces:
        if k is None:
            body.append(f'<span style="opacity:.7">{html.escape(text)}</span>' if text.strip() else "")
            continue
        named = findings.named(k)
        behind = f"[{named or 'none is found'}]"
        body.append(
            f'<details name="{group}"{" open" * (k == 0)} style="margin:.3em 0"><summary style="cursor:pointer">'
            f'<bdi>{html.escape(text.strip())}</bdi> <small style="opacity:.75">{html.escape(behind)}</small></summary>'
            f"{_rows(k, findings)}</details>"
        )
    kinds = findings.kinds
    legend = [
        *([f"{kinds[1]}: ●; {kinds[-1]}: □ ({NOT_UNIMPORTANT}); undecided: ○"] if kinds[1] else []),
        f"dashed: {_said(findings)}; thin line: 0",
        *findings.about,
    ]
    below = "".join(f'<div style="margin:.15em 0">{html.escape(line)}</div>' for line in legend)
    return (
        '<div style="max-width:60em;font-family:system-ui,sans-serif;text-align:start;overflow-wrap:anywhere">'
        f'{heading}{"".join(body)}<div style="margin-top:.9em;padding-top:.5em;border-top:1px solid #8888;'
        f'font-size:.8em;line-height:1.5">{below}</div></div>'
    )


def _rows(k: int, findings: Findings) -> str:
    cell = 'style="text-align:start;vertical-align:top;padding:.25em .6em .25em 0;font-weight:normal"'
    shown = []
    for row in findings.each[k]:
        bold = ";font-weight:bold" * (row.mark > 0)
        name = f'<bdi style="display:block{bold}">{html.escape(row.source.name)}</bdi>'
        picture = _picture(row, findings, findings.thresholds[k])
        shown.append(
            f'<tr><th scope="row" {cell}>{name}{_texts(row)}</th><td {cell}>{picture}</td><td {cell}>'
            f'<span style="white-space:nowrap">{findings.numbers(row)}</span><br>'
            f"<small>{html.escape(row.kind)}{_beside(row)}</small></td></tr>"
        )
    return f'<table style="border-collapse:collapse;font-size:.9em;margin:.3em 0 .3em 1em">{"".join(shown)}</table>'


def _beside(row: Finding) -> str:
    return "".join(f"<br>{html.escape(name)} {short_number(value)}" for name, value in row.beside)


def _texts(row: Finding) -> str:
    """The texts of a source; long ones open."""
    found = []
    for name, text in row.source.members:
        first = f"<b>{html.escape(name)}</b>: " if row.source.group else ""
        whole = html.escape(text)
        if len(text) > OPENED:
            shown = html.escape(text[: OPENED - 1])
            whole = f'<details><summary style="cursor:pointer">{shown}…</summary>{whole}</details>'
        found.append(f'<small style="display:block;opacity:.8" dir="auto">{first}{whole}</small>')
    together = "<small>kept or dropped together:</small>" if row.source.group else ""
    return together + "".join(found)


def _picture(row: Finding, findings: Findings, threshold: float) -> str:
    low, high = findings.scale

    def at(number: float) -> str:
        return f"{8 + (WIDE - 16) * (number - low) / (high - low):.1f}"

    def upright(number: float, size: int, more: str = "") -> str:
        return f'<path d="M{at(number)} {10 - size}v{2 * size}" stroke="currentColor"{more}/>'

    parts: list[str] = [upright(0.0, 10, ' stroke-opacity=".35"')]
    if np.isfinite(threshold):
        parts.append(upright(threshold, 10, ' stroke-dasharray="3 2"'))
    if row.ends is not None:
        first, last = row.ends
        parts.append(f'<path d="M{at(first)} 10H{at(last)}" stroke="currentColor" stroke-width="1.5"/>')
        parts += [upright(first, 5), upright(last, 5)]
    hue = f"rgb({','.join(map(str, HUES[row.mark]))})" if row.mark else "none"
    shape: Any = f'<circle cx="{at(row.score)}" cy="10" r="4.5"'
    if row.mark < 0:
        shape = f'<rect x="{float(at(row.score)) - 4:.1f}" y="6" width="8" height="8"'
    parts.append(f'{shape} fill="{hue}" stroke="currentColor"/>')
    said = html.escape(f"{findings.numbers(row)}, {row.kind}")
    return (
        f'<svg role="img" aria-label="{said}" width="{WIDE}" height="20" style="max-width:40vw">{"".join(parts)}</svg>'
    )
