"""Sentences of pages that are longer than 25 words: ``python scripts/long_sentences.py docs/index.rst README.md``.

Code, tables, headings and directives are left out. With ``--count`` it prints a number for each page alone.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

LONGEST = 25
BLOCK = re.compile(r"^\.\. |^>>> |^```|^\s{3,}|^[=~^\"-]{3,}$|^\||^#|^\s*:\w+:")


def paragraphs(text: str) -> list[str]:
    """Running text, one paragraph or entry of a list after another."""
    found, fenced, shown = [""], False, False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        starts = line.startswith(">>>") or re.match(r"===+ +===", line)  # a snippet and what it prints, or a table
        shown = bool(line.strip()) and (shown or bool(starts))
        if not line.strip() or fenced or shown or BLOCK.match(line) or line.startswith("..."):
            found.append("")
        elif re.match(r"\s*(?:[-*]|\d+\.) ", line):
            found.append(re.sub(r"^\s*(?:[-*]|\d+\.) ", "", line))
        else:
            found[-1] += f" {line.strip()}"
    return [one.strip() for one in found if one.strip()]


def sentences(text: str) -> list[str]:
    """Sentences of the running text, with roles, links and literals as one word each."""
    plain = []
    for one in paragraphs(text):
        one = re.sub(r"!\[[^]]*\]\([^)]*\)", "", one)
        one = re.sub(r"``[^`]*``|:\w+:`[^`]*`|\[[^]]*\]\([^)]*\)|`[^`]*`_{0,2}", "X", one)
        plain += re.split(r"(?<=[.:?!;)])\s+(?=[A-Z*(]|X\b|metfa\b)| · ", one)
    return [one for one in plain if one]


def long_ones(text: str, longest: int = LONGEST) -> list[str]:
    """Those with too many words."""
    return [one for one in sentences(text) if len(re.findall(r"[\w'’.-]*\w", one)) > longest]


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--count", action="store_true", help="numbers alone")
    given = parser.parse_args()
    for page in given.pages:
        found = long_ones(page.read_text(encoding="utf-8"))
        print(f"{page}: {len(found)}")
        for one in found if not given.count else ():
            print(f"   {one}")


if __name__ == "__main__":
    main()
