"""An answer whose sentences a reader chooses, each with the error bars of its sources: its data, and the words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metfa._base.percents import counted, percent
from metfa.report._content import Content, check_drawable
from metfa.report._tables import OF_ONE, data_of_rows, samples_of_row
from metfa.report._words import about_of, closing, opening
from metfa.results.promises import promise
from metfa.results.sample import AttributionSample
from metfa.results.summary import summarise
from metfa.results.terms import Terms
from metfa.results.thresholds import zone_of
from metfa.text.answers.findings import Findings
from metfa.text.answers.views import NOT_UNIMPORTANT
from metfa.text.reading import harmless_text

__all__ = ["answer_content"]


def answer_content(
    name: str,
    sample: AttributionSample,
    terms: Terms,
    confidence_level: float,
    *,
    given: bool,
    flips_from: float,
) -> Content:
    """Content of a result about an answer, on these terms at the start; `given`: the caller gave the threshold."""
    check_drawable(name, sample)
    if terms.sides is not None:
        terms = replace(terms, sides=tuple(map(harmless_text, terms.sides)))
    findings = Findings.of(sample, terms, confidence_level, flips_from)
    answered, n_answers = findings.answered, len(sample.target)
    zones = np.broadcast_to(zone_of(np.zeros((n_answers, 1)), terms.unit, sample.values), (n_answers, 1))[:, 0]
    data = {
        **data_of_rows("answer", sample, terms, confidence_level, given=given),
        "names": [source.name for source in answered.sources],
        "faint": bool(findings.cautions),
        "oneText": answered.one_text,
        "pieces": answered.pieces,
        "answerNoun": answered.noun,
        "sources": [{"members": source.members, "group": source.group} for source in answered.sources],
        "besides": [[name, values] for name, values in answered.beside],
        "rows": [
            {
                "name": answered.answers[k].strip(),
                "explained": None,
                "cautions": [],  # they are of all rows
                "values": None,
                **samples_of_row(sample.of_input(k), terms.split, findings.thresholds[k], float(zones[k]), n_answers),
            }
            for k in range(n_answers)
        ],
    }
    return Content(
        name,
        "answer",
        data,
        [(fact, text) for fact, text in about_of(sample) if n_answers == 1 or fact not in OF_ONE],
        _paragraph(sample, findings, terms),
        _lines(sample, findings, terms, confidence_level, flips_from),
        None,
        findings.cautions,
        _rows(findings),
    )


def _paragraph(sample: AttributionSample, findings: Findings, terms: Terms) -> str:
    """What was done and found, in words without statistics, with the settings of the page at its start."""
    answered, kinds, size = findings.answered, findings.kinds, sample.n_features
    text = opening(sample, "source")
    if answered.level is not None:
        text = f"{answered.level} {text}"
    if len(answered.answers) > 1:
        text += f" The same prompts served for each of {len(answered.answers)} {answered.noun}s."
    if findings.too_few is not None:
        return f"{text} These are too few prompts to decide anything at the level that was asked for."
    at = ", ".join(dict.fromkeys(f"{threshold:.3g}" for threshold in findings.thresholds))
    sure = f"each source so falsely in at most {percent(terms.alpha)} of the cases, for either mark"
    if terms.correction is not None:
        decided = replace(terms, correction=terms.in_effect)
        said = promise(decided, size, expected=None, kinds=kinds, noun="source")
        alone = f", for each {answered.noun} by itself" * (len(answered.answers) > 1)
        sure = f"corrected for looking at {counted(size, 'source')} at once{alone}: {said}"
    found = "; ".join(
        f"{f'“{answer.strip()}”: ' * (len(answered.answers) > 1)}{findings.named(k) or 'none'}"
        for k, answer in enumerate(answered.answers)
    )
    return (
        f"{text} A source is marked “{kinds[1]}” if its contributions lie above {at} more often than chance explains, "
        f"and “{kinds[-1]}” if they lie below it more often than chance explains ({sure}). For the second, "
        f"{NOT_UNIMPORTANT}. So these are marked “{kinds[1]}”: {found}. {closing(sample)}"
    )


def _lines(
    sample: AttributionSample, findings: Findings, terms: Terms, confidence_level: float, flips_from: float
) -> list[tuple[str, str]]:
    """The figures of all sentences."""
    if findings.too_few is not None:
        return [("significance", findings.too_few)]
    summary = summarise(sample, sample.decide(terms), confidence_level, flips_from)[0]
    return findings.lines(summary)


def _rows(findings: Findings) -> list[tuple[str, ...]]:
    """A line for each sentence and source; the first holds the headings."""
    lines: list[tuple[str, ...]] = [(findings.answered.noun, "source", "number, interval", "mark", "text")]
    for answer, rows in zip(findings.answered.answers, findings.each, strict=True):
        for row in rows:
            texts = [f"{name}: {text}" if row.source.group else text for name, text in row.source.members]
            lines.append((answer.strip(), row.source.name, findings.numbers(row), row.kind, " / ".join(texts)))
    return lines
