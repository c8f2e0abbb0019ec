"""Make the table of synonyms that metfa ships, with its licence, from the files of WordNet 3.0.

    python scripts/build_synonyms.py [FOLDER] [--out FOLDER]

FOLDER holds ``index.*``, ``data.*``, ``cntlist.rev``, ``noun.exc`` and ``verb.exc``, by default those of Debian's
wordnet-base (1:3.0-37). The same files give the same table, byte for byte. To read it:
``xzcat synonyms.tsv.xz | less``.
"""

import argparse
import re
from itertools import takewhile
from pathlib import Path

from metfa.text._wordnet import packed, read_wordnet

WORDNET = Path("/usr/share/wordnet")
DATA = Path(__file__).parents[1] / "src" / "metfa" / "text" / "data"
HEADING = "The table of synonyms beside this file is made from WordNet 3.0, under its licence:\n\n"


def licence(folder: Path) -> str:
    """The licence of WordNet, which stands in numbered lines at the head of each of its files."""
    with (folder / "data.noun").open(encoding="utf-8") as file:
        lines = [re.sub(r"^ +\d+", "", line).strip() for line in takewhile(lambda line: line.startswith(" "), file)]
    return HEADING + "\n".join(lines) + "\n"


def main() -> None:
    """Write the table and the licence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wordnet", type=Path, nargs="?", default=WORDNET, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=DATA, metavar="FOLDER")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "synonyms.tsv.xz").write_bytes(packed(read_wordnet(arguments.wordnet)))
    (arguments.out / "WORDNET-LICENSE.txt").write_text(licence(arguments.wordnet), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
