"""The text of a result: what a reader sees first, in the terminal and in report.txt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from metfa._base.provenance import printable
from metfa.cli.certificates import certificate_line
from metfa.cli.kinds import is_of_text
from metfa.cli.regions import Parts, part_lines
from metfa.cli.reported import as_options
from metfa.cli.run import Analysis
from metfa.results.sample import AttributionSample
from metfa.text.answers.answered import is_answer
from metfa.text.answers.findings import Findings
from metfa.text.answers.tree import AnswerTree
from metfa.text.reading import about_the_text
from metfa.text.rendering import render_terminal

__all__ = ["lines_of", "report"]

WIDTH = 100  # columns of the table of an answer


def report(
    sample: Any, about: dict[str, Any], analysis: Analysis, parts: Parts | None, *, together: bool = False
) -> str:
    """The report for a reader: the prediction, what is significant, what may be wrong, how it was made.

    `together`: other inputs, which `sample` does not hold, were explained in the same call.
    """
    about = {name: printable(str(value))[:300] for name, value in about.items()}
    if about.get("settings"):
        about["method"] = f"{about.get('method', '')} ({about['settings']})"[:300]
    weights = ["weights"] if about.get("random_weights") == "True" else []
    shown = ("input", "image", "text", "question", "answer", "model", *weights, "method", "noise")
    lines = [(name, about[name]) for name in shown if about.get(name)]
    if "predicted" in about:
        lines.append(("prediction", about["predicted"]))
    if about.get("explained") != about.get("predicted"):
        lines.append(("explained", about.get("explained", "")))
    lines += [(name, about[name]) for name in ("object", "faithfulness") if name in about]
    if isinstance(sample, AnswerTree):
        if any(given is not None for given in analysis.given.values()):
            raise ValueError(
                "`--alpha` and `--correction` of levels are those at which they were opened: leave them out"
            )
        levels = [f"{heading}\n\n{_of_answer(level, analysis, [])}" for heading, level in sample.headed.items()]
        return "\n\n".join([lines_of(lines), str(sample), *levels])
    if is_answer(sample):
        return _of_answer(sample, analysis, lines)
    summaries = sample.summary(**analysis.settings)
    if isinstance(summaries, dict):  # of several inputs, by their names
        summaries = [summary for of_part in summaries.values() for summary in of_part]
    of_parts = [[]] * len(summaries) if parts is None else part_lines(parts, analysis)
    for summary, of_row in zip(summaries, of_parts, strict=True):
        lines += [] if summary.place is None else [("row", summary.place)]
        lines += [*of_row, *replace(summary, place=None).lines()]
    if is_of_text(sample) and about_the_text(sample):
        lines.append(("the text itself", about_the_text(sample)))
    if analysis.certify:
        lines.append(("certified", certificate_line(sample, analysis)))
    lines.append(("time", _time(sample.provenance, together=together)))
    return lines_of(lines)


def _of_answer(sample: AttributionSample, analysis: Analysis, lines: list[tuple[str, str]]) -> str:
    """A table of the sources of each sentence, and the figures of all below these lines."""
    table = render_terminal(sample, colour=False, width=WIDTH, **analysis.settings)
    findings = Findings.of(sample, sample.terms(**analysis.given), analysis.confidence, analysis.flips_from)
    figures = [("significance", findings.too_few)] if findings.too_few is not None else []
    if not figures:
        lines_of_all = findings.lines(sample.summary(**analysis.settings)[0])
        figures = [line for line in lines_of_all if line[1] not in findings.cautions]  # which stand above the table
    return f"{table}\n\n{lines_of([*lines, *figures, ('time', _time(sample.provenance))])}"


def lines_of(lines: list[tuple[str, str]]) -> str:
    """Names and texts of lines, below each other."""
    return "\n".join(f"{name + ':':<17} {as_options(text)}" for name, text in lines)


def _time(provenance: dict[str, Any], *, together: bool = False) -> str:
    try:
        seed = str(int(provenance["rng"], 16))
        made = int(provenance["maps_made"])  # after a resumed run not all of them
        of = " (of all inputs that were explained together)" if together else ""
        return f"{float(provenance['seconds']):.1f} s for {made:,} explanations{of}, seed {seed}"
    except (KeyError, TypeError, ValueError):
        return "not recorded"
