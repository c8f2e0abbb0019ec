"""The documentation's page says what the committed tables say."""

import copy

import pytest
from benchmarks.truth import aggregate, page, page_figure, reading, sentences
from benchmarks.truth.__main__ import compare
from benchmarks.truth.rules import RULES


@pytest.fixture(scope="module")
def found():
    return reading.Results()


def test_its_parts_are_made_from_the_tables(found):
    made = page.parts(found)
    assert sorted(path.name for path in page.PARTS.iterdir()) == sorted(made)
    for name, text in made.items():
        assert (page.PARTS / name).read_text(encoding="utf-8") == text, "run python -m benchmarks.truth.page"
    source = (page.PARTS.parent / "truth.rst").read_text(encoding="utf-8")
    assert all(f"truth/{name}" in source for name in made)
    assert page.FIGURE.exists()


def test_every_rule_has_a_colour():
    assert list(page_figure.COLOURS) == list(RULES)


@pytest.mark.parametrize(
    ("explainer", "about", "figure", "value", "message"),
    [
        ("exact SHAP", {"task": "suppressor", "network": "planted", "rule": "> 0.05"}, "task_fdp", 0.1, "associated"),
        ("IG", {"task": aggregate.SIX}, "model_unimportant", 0.1, "Unimportant is not unused"),
        ("exact SHAP", {"task": "additive rho 0", "network": "MLP", "rule": sentences.SIGN}, "task_fdp", 0.1, "test"),
    ],
)  # fmt: skip
def test_a_sentence_that_no_longer_holds_stops_it(found, explainer, about, figure, value, message):
    changed = copy.copy(found)
    changed.marks = [dict(row) for row in found.marks]
    for row in changed.marks:
        if row["explainer"] == explainer and all(row[name] == wanted for name, wanted in about.items()):
            row[figure] = value
    with pytest.raises(AssertionError, match=f"no longer so: .*{message}"):
        sentences.said(changed)


def test_it_can_be_made_whatever_rule_is_the_default(found, monkeypatch):
    for rule in ("break of all values", "break of medians"):
        monkeypatch.setattr(reading, "DEFAULT", rule)
        assert page.parts(found)


def test_figures_outside_of_their_bands_are_counted(tmp_path, capsys):
    published = reading.RESULTS / "quick"
    assert compare(published, published) == 0
    for name in ("marks.csv", "ranking.csv"):
        rows = aggregate.read(published / name)
        for row in rows:
            if (row["task"], row["explainer"], row.get("rule")) == (aggregate.SIX, "IG", "2 x mean") and row["n"] == 50:
                row["task_power"] = 0.1
        aggregate.write(tmp_path / name, rows)
    capsys.readouterr()
    assert compare(tmp_path, published) > 0
    assert "2 x mean" in capsys.readouterr().out
