"""Tables, sentences and the figure of the documentation's page, made from the committed tables.

    python -m benchmarks.truth.page            writes them below docs/

Where the tables no longer say what a sentence says, the command fails.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.truth import page_tables as tables
from benchmarks.truth.page_figure import figure
from benchmarks.truth.reading import Results
from benchmarks.truth.sentences import gains, said, which
from benchmarks.truth.sentences_of_settings import moves, of_squares

__all__ = ["FIGURE", "PARTS", "parts"]

ROOT = Path(__file__).parents[2]
PARTS = ROOT / "docs" / "background" / "truth"
FIGURE = ROOT / "docs" / "_static" / "truth.png"
TABLES = {  # of the page, by the names of their files
    "images": tables.images, "controls": tables.controls, "ranking": tables.ranking, "rules": tables.rules,
    "corrections": tables.corrections, "samples": tables.samples, "squares": tables.squares, "kinds": tables.kinds,
    "radius": tables.radius, "photographs": tables.photographs, "columns": tables.columns,
    "tables": tables.more_tables, "others": tables.others, "mosaics": tables.mosaics, "planted": tables.planted,
    "trainings": tables.trainings,
}  # fmt: skip
SENTENCES = {"said": said, "gains": gains, "which": which, "squares": of_squares, "moves": moves}


def parts(found: Results) -> dict[str, str]:
    """Files of the page, by name."""
    made = {f"{name}.csv": table(found) for name, table in TABLES.items()}
    made |= {f"{name}.inc": sentences(found) for name, sentences in SENTENCES.items()}
    tiers = (
        f"{tier} tier: {of['finished']} of {of['units']} units, {of['core_seconds'] / 60:.0f} minutes of one core"
        for tier, of in found.about.items()
    )
    about = found.about["full"]
    made["about.inc"] = f"{'; '.join(tiers)}. NumPy {about['numpy']}, torch {about['torch']}.\n"
    return made


def main() -> int:
    found = Results()
    PARTS.mkdir(parents=True, exist_ok=True)
    for name, text in parts(found).items():
        (PARTS / name).write_text(text, encoding="utf-8")
    figure(found).savefig(FIGURE, dpi=110, metadata={"Software": None})
    print(f"wrote {PARTS} and {FIGURE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
