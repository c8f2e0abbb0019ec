"""The page of an answer in a browser: sentences are chosen by keys and clicks, and decided as metfa decides."""

import math
import re

import numpy as np
import pytest

from metfa import report
from metfa.text import explain_answer, explain_answer_tree
from metfa.text.answers.findings import Findings

SOURCES = {
    "chronicle": "Opened in 1932.",
    "recipe": "<b>Whisk</b> two eggs.",
    "plaque": "OPENED 1932",
    "map": "Sydney. " * 60,
}


def scorer(rows):
    texts = [" ".join(row) for row in rows]
    return np.array([[5.0 * ("1932" in t), 2.0 * ("Sydney" in t) + 0.8 * ("1932" in t)] for t in texts])


def test_a_sentence_is_chosen_and_its_sources_are_decided_as_in_python(open_page, tmp_path):
    said = ["It opened in <i>1932</i>.", "It is in Sydney."]
    answer = explain_answer(scorer, SOURCES, delta=math.log(2), answers=said, n_samples=40, rng=0)
    opened = open_page(report.write(tmp_path / "page.html", answer))
    page = opened.page
    sentences, rows = page.locator(".sentence"), page.locator(".answer-view .row")

    def marks():
        return page.evaluate("() => window.metfaReport[0].result.each.map((row) => Array.from(row.marks))")

    named = Findings.of(answer, answer.terms(), 0.95).named(0)
    assert set(named.split(", ")) == {"chronicle", "plaque"}
    assert marks() == answer.significance_map().tolist()
    assert sentences.nth(0).inner_text() == f"It opened in <i>1932</i>. [{named}]"
    assert sentences.nth(1).get_attribute("aria-checked") == "false"
    assert rows.nth(0).inner_text().startswith(named.split(",")[0])
    sentences.nth(0).focus()
    page.keyboard.press("ArrowRight")
    assert sentences.nth(1).get_attribute("aria-checked") == "true"
    assert rows.nth(0).get_attribute("aria-label").startswith("map: ")
    assert "adds more than 0.693 in some context" in rows.nth(0).get_attribute("aria-label")
    assert "<b>Whisk</b> two eggs." in page.inner_text(".bars")
    rows.nth(0).focus()
    page.keyboard.press("ArrowDown")
    assert page.inner_text(".reading h3") == named.split(", ")[0]
    sentences.nth(0).click()
    assert page.inner_text(".chosen-answer h3") == "It opened in <i>1932</i>."
    opened.slide("[name=alpha]", 0)  # too small for so few samples
    page.select_option("[name=correction]", "none")
    levels = page.evaluate("() => JSON.parse(document.getElementById('data').textContent).alphas")
    expected = answer.significance_map(alpha=levels[0], correction="none")
    assert marks() == expected.tolist()
    cited = ["[none is found]" if not (row > 0).any() else "[" for row in expected]
    assert all(text in sentences.nth(k).inner_text() for k, text in enumerate(cited))
    page.click("button[type=reset]")
    page.wait_for_function("() => document.querySelector('.sentence').innerText.includes('plaque')")


def test_a_sentence_is_chosen_on_all_levels_of_a_tree(open_page, tmp_path):
    documents = {"a": "It rained. Opened in 1932.", "b": "Sydney is there. It is warm."}
    tree = explain_answer_tree(scorer, documents, delta=math.log(2), n_samples=25, rng=0)
    page = open_page(tree.report(tmp_path / "page.html")).page
    assert page.locator("h2").all_inner_texts() == list(tree.headed)
    chosen = page.locator(".sentence.is-chosen")
    assert chosen.count() == 2
    page.locator(".sentence").nth(1).click()
    assert all("answer 1" in text for text in chosen.all_inner_texts())


@pytest.mark.slow
def test_the_mean_of_a_source_and_the_colour_of_its_mark_are_explained(open_page, tmp_path):
    def score(rows):
        return [-3 + 5.0 * ("A" in " ".join(kept)) - 4.0 * ("no" in " ".join(kept)) for kept in rows]

    found = explain_answer(score, ["A here", "A there", "no"], delta=math.log(2), n_samples=60, rng=0)
    assert sorted(found.significance_map()[0]) == [-1, 1, 1]
    page = open_page(found.report(tmp_path / "page.html")).page
    mean, interval = found.mean()[0, 0], found.mean_interval()
    assert "Bar: mean contribution; line with caps: interval of its mean; dashed: the threshold." in page.inner_text(
        ".bars + button + p"
    )
    for look, mark in (
        ("positive", "adds more than 0.693 in some context"),
        ("negative", "adds less than 0.693 in some context"),
    ):
        line = page.locator(".panel li", has=page.locator(f"i.{look}"))
        assert line.inner_text().strip().startswith(mark)
        swatch = line.locator("i").evaluate("i => getComputedStyle(i).backgroundColor")
        bars = page.locator(".answer-view .row", has=page.locator(f"rect.{look}"))
        assert bars.count() == (found.significance_map() == (1 if look == "positive" else -1)).sum()
        assert (
            bars.locator("rect").evaluate_all("all => all.map((bar) => getComputedStyle(bar).fill)")
            == [swatch] * bars.count()
        )
        assert all(f", {mark}" in row.get_attribute("aria-label") for row in bars.all())
    page.locator(".answer-view .row", has_text="A here").hover()
    reading = page.inner_text(".reading")
    assert re.search(rf"^mean contribution\s+{mean:.4g}$", reading, re.MULTILINE)
    ends = rf"{interval.low[0, 0]:.4g} to {interval.high[0, 0]:.4g}"
    assert re.search(rf"^interval of the mean, asymptotic 95.00%\s+{ends}$", reading, re.MULTILINE)
    assert "median" not in reading
    page.select_option("[name=correction]", "none")
    assert "each of 3 sources is called" in page.inner_text(".panel")


def test_the_threshold_is_drawn_where_nothing_reaches_it(open_page, tmp_path):
    found = explain_answer(lambda rows: [0.01 * len(kept) for kept in rows], ["a", "b"], delta=0.7, n_samples=12, rng=0)
    page = open_page(found.report(tmp_path / "page.html")).page
    assert "dashed: the threshold" in page.inner_text(".bars + button + p")
    bar, line = (page.locator(f".row {part}").first.bounding_box() for part in ("svg.bar", "line.threshold"))
    assert bar["x"] < line["x"] < bar["x"] + bar["width"]
    assert page.locator(".row rect").first.bounding_box()["width"] < 0.05 * bar["width"]
