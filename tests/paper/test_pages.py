"""The pages of results say what their tables say."""

from pathlib import Path

import numpy as np
import pytest
from paper import claims, page
from paper.blocks import BLOCKS
from paper.cells import cell, direction, found
from paper.kept import Kept
from paper.read_pages import numbers, sections

PAGES = Path(__file__).parents[2] / "paper"


def text_of(name):
    return (PAGES / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", BLOCKS)
def test_pages_are_made_from_their_tables(name):
    """Where it fails: python -m paper.page"""
    assert page.made(name, text_of(name)) == text_of(name)


@pytest.mark.parametrize("name", BLOCKS)
def test_sentences_are_borne_out_by_their_tables(name):
    assert claims.faults(name, text_of(name)) == []


@pytest.mark.parametrize(
    ("name", "before", "after", "fault"),
    [
        ("RESULTS.md", "| 0.0117 ± 0.0005 | 0.0112", "| 0.0317 ± 0.0005 | 0.0112", "does not bear out 'With normal"),
        ("RESULTS.md", "(.0157 to .0110)", "(.0157 to .0101)", "does not bear out 'With normal noise as P, mstd falls"),
        ("RESULTS.md", "alpha hardly matters.", "alpha hardly matters.\n- N matters.", "nothing checks the sentence"),
        ("RESULTS.md", "- All four fall, as in the paper.\n", "", "no sentence begins with 'All four fall'"),
        ("RESULTS.md", " (earlier run: 8 photographs, the first by name)\n\n*Setting:* `alpha",
         " (earlier run)\n\n*Setting:* `alpha", "'The level alpha (earlier run)' does not say how much"),
        ("ATTACK_RESULTS.md", "**0.0296 ± 0.0040**", "**0.1296 ± 0.0040**", "does not bear out 'CAM, not the same"),
        ("TEXT_RESULTS.md", "| -0.136 ± 0.037 |", "| +0.136 ± 0.037 |", "Significant words hit them less often"),
        ("SEGMENTATION_RESULTS.md", "| 9.7 % | 16.6 % |", "| 16.6 % | 9.7 % |", "'Trees under U(0.1)"),
        ("SEGMENTATION_RESULTS.md", "and 0.4 to 0.6\n", "and 0.4 to 0.9\n", "'On every seed, MeTFA marks fewer"),
        ("SEGMENTATION_RESULTS.md", "within .01 of 1", "within .04 of 1", "'m_f stays about the same"),
        ("SEGMENTATION_RESULTS.md", "under U(0.05): the", "under U(0.3): the", "'m_f stays about the same"),  # no row
        ("RESULTS.md", "(.0157 to .0110)", "", "does not bear out 'With normal noise as P, mstd falls"),  # no number
        ("ATTACK_RESULTS.md", "## EfficientNet-Lite0 (earlier", "All is well.\n\n## EfficientNet-Lite0 (earlier",
         "nothing checks the sentence 'All is well.'"),  # beside a table that is made
    ],
)  # fmt: skip
def test_a_false_sentence_is_found(name, before, after, fault):
    text = text_of(name)
    assert text.count(before) == 1
    assert any(fault in said for said in claims.faults(name, text.replace(before, after)))


def test_numbers_in_a_text():
    assert numbers("N = 10, +0.019 ± 0.007 and .0157 of 1,410; 0.5.") == [10, 0.019, 0.007, 0.0157, 1410, 0.5]
    assert numbers("U(-0.1, 0.1), m_f, m2 and 6 x 8") == [-0.1, 0.1, 6, 8]


def test_parts_made_from_tables_are_not_read_as_written_by_hand():
    (section,) = sections("# T\nx\n\n## A (2)\n\n<!-- made: a -->\n\n| a |\n|---|\n| 1 |\n\n<!-- end -->\n\nWords.")
    assert (section.has_table, section.tables, section.sentences) == (True, [], ["Words."])
    (section,) = sections("## A\n\nWords.")
    assert (section.has_table, section.sentences) == (False, ["Words."])


def test_a_table_from_missing_units_says_how_many(tmp_path):
    nothing = page.made("ATTACK_RESULTS.md", text_of("ATTACK_RESULTS.md"), tmp_path)
    assert "*0 of 35 images are finished" in nothing
    kept = Kept.opened(tmp_path / "alpha-gradient.csv", {"n_samples": [50]})
    levels = (0.05, 0.01, 0.005, 0.001, 0.0005, 0.0001)
    for unit, score in (("a", 0.02), ("b", 0.03)):
        of = {f"mstd|{noise}|smoothed|{noise}|50|{1 - level}|score": score / 4
              for noise in ("uniform", "normal") for level in levels}  # fmt: skip
        kept.add(unit, of | {f"mstd|{noise}|vanilla||||score": score for noise in ("uniform", "normal")}, 1)
    made = page.made("RESULTS.md", text_of("RESULTS.md"), tmp_path)
    assert "2 of 50 photographs; N = 50" in made
    assert "| 0.05 | 0.250 ± 0.000 | 0.250 ± 0.000 |" in made
    assert len(found("alpha-gradient", tmp_path)) == 2


@pytest.mark.parametrize(
    ("text", "comments"),
    [
        ("# Attacks", r"\[\]"),
        ("<!-- made: attacks -->\nWords.", r"\['attacks'\]"),  # all that follows would be replaced
        ("<!-- made: attacks -->\n<!-- made: attack -->\n<!-- end -->", r"\['attacks', 'attack', ''\]"),
    ],
)
def test_a_page_without_the_place_of_a_part_is_refused(text, comments):
    with pytest.raises(ValueError, match=rf"ATTACK_RESULTS.md has the comments {comments}, there are parts"):
        page.made("ATTACK_RESULTS.md", text)


def test_a_difference_has_a_direction_or_none():
    assert direction(np.array([0.1, 0.11, 0.09])) == "higher"
    assert direction(np.array([-0.1, -0.11, -0.09]), "better") == "better"
    assert direction(np.array([0.1, -0.1, 0.01])) == "not shown to differ"
    assert direction(np.array([0.1, np.nan])) == "too few to say"
    assert cell(np.array([0.1, 0.3, np.nan]), sign="+") == "+0.2000 ± 1.2706 (1 of 3 missing)"
    assert cell(np.array([1.0, 1.0, 1.0])) == "1.0000 in all 3"  # not ± 0
