"""Write the parts of the pages that are made from the tables in paper/results.

    python -m paper.page           writes them
    python -m paper.page --check   fails where a page no longer says what its tables say

A part stands between two comments, "made: NAME" and "end", and the brackets in the heading above it say its size.
Everything else is written by hand: `paper.claims` holds it to the tables that are.
"""

import argparse
import re
import sys
from pathlib import Path

from paper.blocks import BLOCKS
from paper.blocks.summary import summary
from paper.claims import faults
from paper.kept import RESULTS

PAGES = Path(__file__).parent
SUMMARY = PAGES.parent / "docs" / "background" / "claims.csv"


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
        size, words = block(folder)
        pattern = rf"(<!-- made: {name} -->\n).*?(<!-- end -->)"
        text = re.sub(pattern, lambda place, words=words: f"{place[1]}\n{words}\n\n{place[2]}", text, flags=re.DOTALL)
        before, mark, after = text.partition(f"<!-- made: {name} -->")
        above, heading, below = before.rpartition("\n## ")
        title, _, rest = below.partition("\n")
        text = f"{above}{heading}{title.partition(' (')[0]} ({size})\n{rest}{mark}{after}"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    wrong = 0
    texts = {PAGES / page: made(page, (PAGES / page).read_text(encoding="utf-8")) for page in BLOCKS}
    for path, now in (texts | {SUMMARY: summary(RESULTS)}).items():
        if options.check and now != path.read_text(encoding="utf-8"):
            print(f"{path.name} is older than its tables: python -m paper.page")
            wrong += 1
        if not options.check:
            path.write_text(now, encoding="utf-8")
    for path, now in texts.items():
        for fault in faults(path.name, now):
            print(f"{path.name}: {fault}")
            wrong += 1
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
