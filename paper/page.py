"""Write the parts of the pages that are made from the tables in paper/results.

    python -m paper.page           writes them
    python -m paper.page --check   fails where a page no longer says what its tables say

A part stands between two comments, "made: NAME" and "end". Everything else is written by hand, and its sentences are
held to the tables of the page by `paper.claims`.
"""

import argparse
import re
import sys
from pathlib import Path

from paper.blocks import BLOCKS
from paper.claims import faults
from paper.kept import RESULTS

PAGES = Path(__file__).parent


def made(page: str, text: str, folder: Path = RESULTS) -> str:
    """The text of a page with its parts made anew.

    Raises
    ------
    ValueError
        If the page lacks the place of a part, names one that there is not, or does not end a place before the next.
    """
    blocks = BLOCKS[page]
    comments = re.findall(r"<!-- (?:made: (\w+)|end) -->", text)  # "" at an end
    places, ends = comments[::2], comments[1::2]
    if sorted(places) != sorted(blocks) or ends != [""] * len(places):
        raise ValueError(f"{page} has the comments {comments}, there are parts {sorted(blocks)}, each with an end")
    for name, block in blocks.items():
        pattern = rf"(<!-- made: {name} -->\n).*?(<!-- end -->)"
        text = re.sub(
            pattern, lambda place, block=block: f"{place[1]}\n{block(folder)}\n\n{place[2]}", text, flags=re.DOTALL
        )
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    wrong = 0
    for page in BLOCKS:
        path = PAGES / page
        before = path.read_text(encoding="utf-8")
        now = made(page, before)
        if options.check and now != before:
            print(f"{page} is older than its tables: python -m paper.page")
            wrong += 1
        if not options.check:
            path.write_text(now, encoding="utf-8")
        for fault in faults(page, now):
            print(f"{page}: {fault}")
            wrong += 1
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
