"""The pages of results say what their tables say."""

import csv
import io
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from paper import claims, page
from paper.attack_table import named
from paper.blocks import BLOCKS
from paper.blocks.images import of_gradient
from paper.blocks.summary import summary
from paper.blocks.texts import MAPS, SETS, SYNONYMS, of_words, said_of_words
from paper.cells import at_least, cell, found, ratio, stability, verdicts
from paper.kept import RESULTS, Kept
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


def test_the_documentation_says_what_the_tables_say():
    """Where it fails: python -m paper.page"""
    assert page.SUMMARY.read_text(encoding="utf-8") == summary(RESULTS)


@pytest.mark.parametrize(
    ("name", "before", "after", "fault"),
    [
        ("ATTACK_RESULTS.md", "**0.0296 ± 0.0040**", "**0.1296 ± 0.0040**", "does not bear out 'CAM, not the same"),
        ("ATTACK_RESULTS.md", "on its side of .5. Of three", "on its side of .8. Of three", "'Of six images an area"),
        ("ATTACK_RESULTS.md", "(0.2200; the clean image's map is at 0.2635)", "",
         "does not bear out 'CAM, same direction"),  # no number
        ("ATTACK_RESULTS.md", "- Of six images an area of 1 or 0 is shown to be on its side of .5. Of three, next to "
         "nothing is shown.\n", "", "no sentence begins with 'Of six images an area'"),
        ("ATTACK_RESULTS.md", "## EfficientNet-Lite0 (earlier", "All is well.\n\n## EfficientNet-Lite0 (earlier",
         "nothing checks the sentence 'All is well.'"),  # beside a table that is made
        ("ATTACK_RESULTS.md", " (earlier run: 3 to 6 images)", " (on Lite0, an earlier run)",
         "does not say how much"),  # a digit is no size
        ("RESULTS.md", "*Aside:* deviations", "*Aside:* a gain of .019. Deviations", "an aside has figures"),
        ("RESULTS.md", "So directions can be compared", "By 0.3, so directions can", "an aside has figures"),
        ("TEXT_RESULTS.md", "<!-- end -->\n\n*Aside:* MeTFA", "<!-- end -->\n\nMeTFA is best. MeTFA",
         "nothing checks the sentence 'MeTFA is best."),
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
    text = "# T\nx\n\n## A (2)\n\n<!-- made: a -->\n\n| a |\n|---|\n| 1 |\n\n<!-- end -->\n\nWords.\n\n*Aside:* so."
    above, section = sections(text)
    assert (above.heading, above.has_table, above.asides) == ("", False, ["# T x"])
    assert (section.has_table, section.tables, section.sentences) == (True, [], ["Words."])
    assert section.asides == ["Aside: so."]
    _, section = sections("## A\n\nWords.")
    assert (section.has_table, section.sentences) == (False, ["Words."])


def alphas(folder, units, *, n=50, draws=10):
    """A kept table of the level alpha; the smoothed map has a quarter of the vanilla one's figures."""
    levels = [0.95, 0.99]
    setting = {"n_samples": [n], "n_outer": draws, "confidence_level": levels}
    kept = Kept.opened(folder / "alpha-gradient.csv", setting)
    for unit, score in units.items():
        of = {}
        for noise, figure in product(("uniform", "normal"), ("score", "over_level", "correlation")):
            of[f"mstd|{noise}|vanilla||||{figure}"] = score
            of |= {f"mstd|{noise}|smoothed|{noise}|{n}|{level}|{figure}": score / 4 for level in levels}
        kept.add(unit, of, 1)
    return kept


@pytest.mark.parametrize("name", BLOCKS)
def test_pages_without_any_table_are_made(name, tmp_path):
    made = page.made(name, text_of(name), tmp_path)
    assert "nan" not in made
    assert re.search(r"^## .* \((.* )?0 of \d+", made, re.MULTILINE) or "(0 images, 0 of 14 networks" in made
    assert claims.faults(name, made) == []


def test_the_documentation_says_what_is_unknown(tmp_path):
    rows = list(csv.DictReader(io.StringIO(summary(tmp_path))))
    assert {row["so it"] for row in rows} == {"is too early to say"}
    alphas(tmp_path, dict.fromkeys("abcd", 0.02))
    rows = list(csv.DictReader(io.StringIO(summary(tmp_path))))
    assert [row["so it"] for row in rows if "alpha" in row["the paper says"]] == ["holds"]
    kept = Kept.opened(tmp_path / "stability-normal-rise.csv", {"n_samples": [10], "n_outer": 10})
    for unit, gain in enumerate((0.1, 0.11, 0.09, 0.1, 0.12)):  # in correlation; mstd only scatters
        figures = {("vanilla", "correlation"): 0.5, ("smoothed, normal, 10", "correlation"): 0.5 + gain,
                   ("vanilla", "score"): 0.1, ("smoothed, normal, 10", "score"): 0.1 + (-1) ** unit * gain}  # fmt: skip
        kept.add(f"{unit}", {stability(map_, "normal", what): value for (map_, what), value in figures.items()}, 1)
    rows = list(csv.DictReader(io.StringIO(summary(tmp_path))))
    (rise,) = [row for row in rows if row["measured here on"].startswith("RISE, 5 of 20")]
    assert rise["so it"] == "holds in part"
    assert "(better); mstd" in rise["found"]


def test_a_table_from_missing_units_says_how_many(tmp_path):
    nothing = page.made("ATTACK_RESULTS.md", text_of("ATTACK_RESULTS.md"), tmp_path)
    assert "strong attackers (CAM 0 of 20, LRP 0 of 10, MASK 0 of 5 photographs)" in nothing
    assert "| CAM | 0 of 20 | – |" in nothing
    alphas(tmp_path, {"a": 0.02, "b": 0.03}, n=30, draws=7)
    made = page.made("RESULTS.md", text_of("RESULTS.md"), tmp_path)
    assert "## The level alpha (2 of 50 photographs)" in made
    assert "N = 30, 7 draws, O_n = P." in made  # what the table was measured with
    assert "| 0.05 | 0.250 in all 2 |" in made
    assert "| I-GOS | 15 iterations a map | 0 of 20 | – |" in made
    assert len(found("alpha-gradient", tmp_path)) == 2


def test_a_page_is_not_made_from_another_version(tmp_path):
    path = alphas(tmp_path, {"a": 0.02}).path
    path.write_text(path.read_text().replace('"version": 1', '"version": 7'))
    with pytest.raises(ValueError, match=r"alpha-gradient.csv is of version 7, and pages are made from version 1: it"):
        found("alpha-gradient", tmp_path)


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


def test_differences_have_verdicts_together():
    rng = np.random.default_rng(0)
    clear, small = rng.normal(1, 0.1, 30), np.array([0.2, 0.3, -0.02, 0.1, 0.22])  # p = .04 by itself
    words = ("worse", "better")
    assert verdicts([clear], [words]) == ["better"]
    assert verdicts([small], [words]) == ["better"]
    assert verdicts([-clear, small, small], [words] * 3) == ["worse", "not shown to differ", "not shown to differ"]
    assert verdicts([clear[:3], np.zeros(9), np.array([np.nan])], [words] * 3) == [
        "too few to say", "not shown to differ", "too few to say",
    ]  # fmt: skip
    assert verdicts([np.full(9, 0.2)], [words]) == ["better"]  # no spread, and not 0
    assert verdicts([], []) == []


def test_cells_show_no_error_of_few_units_and_none_of_zero():
    assert cell(np.array([0.1, 0.3, np.nan]), sign="+") == "+0.2000 (1 of 3 missing)"
    assert cell(np.array([0.1, 0.3, 0.2, 0.2])) == "0.2000 ± 0.1299"
    assert cell(np.array([1.0, 1.0, 1.0])) == "1.0000 in all 3"  # not ± 0
    assert cell(0.5 + np.arange(9) * 1e-8) == "0.5000 ± <0.0001"
    assert cell(np.array([np.nan])) == "–"
    assert ratio(np.array([1.0, 2, 3, 4]), np.array([2.0, 4, 6, 8])) == "0.500 in all 4"
    assert ratio(np.array([1.0, 2]), np.array([2.0, 5])) == "0.429"
    assert ratio(np.array([np.nan]), np.array([1.0])) == "–"
    assert ratio(np.ones(9), np.tile([1.0, -1.0, 0.1], 3)) == "–"  # nothing is divided by what may be 0
    assert ratio(np.array([1.0, np.nan]), np.array([2.0, 2.0])) == "0.500 (1 of 2 missing)"


def test_as_good_is_not_the_same_as_not_shown_to_differ():
    vanilla = np.array([0.8, 0.9, 0.7, 0.85, 0.9])
    scatter = np.array([0.2, -0.3, 0.25, -0.1, 0.05])
    assert verdicts([vanilla * scatter], [("worse", "better")]) == ["not shown to differ"]
    assert at_least(vanilla * (1 + scatter), vanilla, 0.99) == "not shown"
    assert at_least(vanilla * (0.997 + scatter / 1000), vanilla, 0.99) == "at least"  # a little less, and as good
    assert at_least(vanilla * (0.9 + scatter / 1000), vanilla, 0.99) == "less"
    assert at_least(vanilla[:3], vanilla[:3], 0.99) == "too few to say"


def test_the_defence_is_judged_by_the_papers_criterion_and_by_more(tmp_path):
    for knows, own, smoothed in (("nothing", 0.001, 0.3), ("defence", 0.004, 0.03), ("defence alone", 0.2, 0.02)):
        kept = Kept.opened(tmp_path / f"{named('lite0', 'cam', knows, (200, 3, 1, 8))}.csv", {"attacker": knows})
        far = {"adversarial": own, "adversarial defended": smoothed, "clean defended": 0.4, "succeeded": 1.0}
        for unit in range(5 + (knows == "nothing")):  # whom not all have met does not count
            scale = {name: 1 if name == "succeeded" else 1 + unit / 10 for name in far}
            kept.add(f"{unit}", {name: value * scale[name] for name, value in far.items()}, 1)
    rows = [row for row in csv.DictReader(io.StringIO(summary(tmp_path))) if row["measured here on"].startswith("CAM")]
    assert all("5 of 20 photographs (attacks that succeed: 5, 5, 5)" in row["measured here on"] for row in rows)
    assert [row["so it"] for row in rows] == ["holds", "does not hold"]  # further than one map, and drawn all the same
    assert "aware, smoothed map alone +0.0228 ± 0.0037 (better)" in rows[0]["found"]


def test_what_the_documentation_concludes_is_so():
    """The sentences by hand in claims.rst, texts.rst, attacks.rst and the README."""
    gradient = found("stability-gradient")
    shown = {key[1:]: said for key, (_, said) in of_gradient(gradient, "vanilla").items() if key[0] == "correlation"}
    for noise in ("normal", "uniform", "brightness"):
        assert shown[noise, "normal"] == shown[noise, "uniform"] == "better"
        assert shown[noise, "brightness"] == ("better" if noise == "brightness" else "worse")
    levels = [gradient[stability(map_, "normal", "level")] for map_ in ("smoothed, normal, 10", "vanilla")]
    assert verdicts([levels[0] - levels[1]], [("less", "more")]) == ["less"]
    flips = found("flips-gradient")
    changed = [
        1 - flips[stability("vanilla", noise, metric="prediction_agreement")].mean()
        for noise in ("normal", "uniform", "brightness")
    ]
    assert [round(share, 2) for share in changed] == [0.25, 0.11, 0.0]
    for data in SETS:
        one, maps = of_words(RESULTS, data, 500)
        said = said_of_words(maps)
        assert [said[metric, 0.0] for metric in ("FDT", "ST", "FAT")] == ["worse"] * 3
        assert [said[metric, 0.3] for metric in ("FDT", "ST", "FAT")] == ["not shown to differ"] * 3
        assert [said[metric, 0.7] for metric in ("FDT", "ST", "FAT")] == ["better"] * 3
        one = found(f"text-stability-lemna-500-copies-{data}")
        vanilla, mean, smoothed = (one[stability(map_, SYNONYMS)].mean() for map_ in MAPS)
        assert mean < smoothed
        assert 0.5 < smoothed / vanilla < 0.6  # "about half as much"
        agree = one[stability("vanilla", SYNONYMS, metric="prediction_agreement")].mean()
        assert data != "toxicity" or round(1 - agree, 2) == 0.37  # "37 % of the noisy posts"
    root = PAGES.parent
    areas = text_of("ATTACK_RESULTS.md").replace("*", "").partition("## Can an attack be noticed?")[2]
    for place in ("docs/howto/attacks.rst", "src/metfa/attacks/detection.py"):
        said = re.findall(r"\d\.\d{3} \([\d.]+ to [\d.]+\)", (root / place).read_text(encoding="utf-8"))
        assert len(said) == 8  # of four explainers and images, both attackers
        for area, low, high in (re.findall(r"[\d.]+", one) for one in said):
            assert f"{area} ({float(low):.2f} to {float(high):.2f})" in areas
    alone = found(named("lite0", "cam", "defence alone", (200, 3, 1, 8)))
    assert alone["difference, attacked"].min() > alone["difference, clean"].max()  # "than every clean map"
    lrp = found(named("digits", "lrp", "nothing", (200, 1, 1, 8)))
    far = [lrp[what].mean() for what in ("clean", "adversarial", "adversarial defended", "clean defended")]
    assert len(lrp) == 40
    for number in far:
        assert f"{number:.3f}" in (root / "docs/howto/attacks.rst").read_text(encoding="utf-8")
    (cam,) = [row for row in text_of("ATTACK_RESULTS.md").split("\n") if row.startswith("| CAM | 6 |")]
    for said, where in (("0.220", "README.md"), ("0.030", "README.md"), ("0.220", "docs/howto/attacks.rst")):
        assert said in (root / where).read_text(encoding="utf-8")
        assert any(f"{number:.3f}" == said for number in numbers(cam.replace("*", "")))
