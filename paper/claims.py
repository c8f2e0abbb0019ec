"""What the pages say by hand, held to the tables beside it: direction, factor and sizes.

Figures of ours stand in parts that are made from kept tables, and in a few tables of earlier runs that are not kept.
Beside these, every item of a list and every paragraph is a claim of this file, except paragraphs that begin with
*Setting* or *Aside*. An aside, and what stands above the first section, has no figures. A claim is known by how it
begins. It holds if its function says so, which is given the section's tables that were written by hand and the numbers
in the claim. A paragraph without a function is a fault, and so is a function without its paragraph.
"""
# ruff: noqa: ARG001 - each function is given both, and some claims have no numbers

from __future__ import annotations

import re
from collections.abc import Callable

from paper.read_pages import Section, Table, numbers, plain, sections

__all__ = ["CLAIMS", "faults"]

FIGURE = re.compile(r"(?<![\w.])\d*\.\d+")
SIZE = re.compile(r"\d (photographs|images|posts|sentences|digits|laws|trees)\b")
Tables = list[Table]
Check = Callable[[Tables, list[float]], bool]


def faults(page: str, text: str) -> list[str]:
    """What is wrong with a page: sentences that its tables do not bear out, or that nobody checks."""
    found, left = [], {heading: dict(claims) for heading, claims in CLAIMS.get(page, {}).items()}
    for section in sections(text):
        if not SIZE.search(section.heading) and section.has_table:
            found.append(f"the heading {section.heading!r} does not say how much its table is made from")
        found += [f"an aside has figures: {said[:70]!r}" for said in section.asides if FIGURE.search(said)]
        if section.has_table:
            found += _faults_of(section, left)
    missing = [start for claims in left.values() for start in claims]
    return found + [f"no sentence begins with {start!r}" for start in missing]


def _faults_of(section: Section, left: dict[str, dict[str, Check]]) -> list[str]:
    found = []
    claims = next((left[heading] for heading in left if section.heading.startswith(heading)), {})
    for sentence in section.sentences:
        start = next((start for start in claims if plain(sentence).startswith(start)), None)
        if start is None:
            found.append(f"nothing checks the sentence {sentence[:70]!r} ({section.heading[:40]})")
            continue
        if not _holds(claims.pop(start), section.tables, numbers(sentence)):
            found.append(f"the table does not bear out {sentence[:70]!r} ({section.heading[:40]})")
    return found


def _holds(check: Check, tables: Tables, said: list[float]) -> bool:
    try:
        return check(tables, said)
    except (IndexError, ValueError, StopIteration):  # a number, a row or a column that it needs is not there
        return False


def near(value: float, said: float, digits: int = 2) -> bool:
    """Whether a number was said as it is, up to rounding."""
    return abs(value - said) <= 0.5001 * 10**-digits


def far_from_it(t: Tables, n: list[float]) -> bool:
    m2, m3, clean = (t[0].at("CAM", what) for what in ("m2", "m3", "clean"))
    return m2 < 0.05 * clean and m3 > 0.75 * clean and near(m3, n[0], 4) and near(clean, n[1], 4)


def a_seventh(t: Tables, n: list[float]) -> bool:
    ours, paper = t[0].at("CAM", "m4") / t[0].at("CAM", "m3"), n[0] / n[1]
    said = [t[0].at("CAM", "paper", k) for k in (2, 1)] == n[:2] and [t[0].at("CAM", what) for what in ("m4", "m3")]
    return 0.57 < paper < 0.64 and 1 / 8 < ours < 1 / 6 and said == n[2:4]


def lrp(t: Tables, n: list[float]) -> bool:
    m3, m4 = (t[0].at("LRP", what) for what in ("m3", "m4"))
    return m3 > 4 * t[0].at("LRP", "m2") and 0.45 < m4 / m3 < 0.55 and [m3, m4] == n


def mask(t: Tables, n: list[float]) -> bool:
    m3, m4 = (t[0].at("MASK", what) for what in ("m3", "m4"))
    return abs(m4 - m3) < 0.001 and [m4] == n


def reversed_sign(t: Tables, n: list[float]) -> bool:
    values = t[0].column("difference")
    return values[:3] == [1, 0, 1]


def of_six(t: Tables, n: list[float]) -> bool:
    low, high, of_three = t[0].at(0, "difference", 1), t[0].at(1, "difference", 2), t[0].at(2, "difference", 1)
    return low > n[-1] > high and abs(of_three - n[-1]) < 0.01


CLAIMS: dict[str, dict[str, dict[str, Check]]] = {  # page -> heading -> how a sentence begins
    "ATTACK_RESULTS.md": {
        "EfficientNet-Lite0 (earlier": {
            "CAM, same direction": far_from_it,
            "CAM, not the same": a_seventh,
            "LRP: three photographs": lrp,
            "MASK: two photographs": mask,
        },
        "Can it be noticed": {
            "With an attacker who does not know": reversed_sign,
            "Of six images an area": of_six,
        },
    },
}
