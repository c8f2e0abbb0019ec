"""Reports of many rows of a table: one section, in which a row is chosen."""

import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

import metfa
from metfa import report
from metfa.report._tables import is_table

WEIGHTS = np.array([3.0, 1.0, 0.0, -2.0])
NAMES = ("age", "</script><img src=x onerror=alert(1)>", "height", "weight")


def explained(rows=40, n=12, target=0, **settings):
    given = np.random.default_rng(0).normal(size=(rows, 4))
    run = metfa.Run(feature_names=NAMES, input_names=[f"<b>{row}</b>" for row in range(rows)])
    settings = {"noise": metfa.noise.Gaussian(0.5), "n_samples": n, "rng": 0, "run": run, **settings}
    return metfa.explain(lambda x, target: x * WEIGHTS, given, target, **settings)


@pytest.fixture(scope="module")
def rows():
    return explained(target=[0] * 10 + [1] * 30)


def data_of(path):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"))
    return json.loads(found[1])["results"]


def text_of(path):
    page = path.read_text("utf-8").partition('<script type="application/json"')[0]
    return " ".join(unescape(re.sub("<[^>]*>", "\n", page.partition("<body>")[2])).split())


def test_many_rows_are_one_section(rows, tmp_path):
    path = rows.report(tmp_path / "r.html")
    (found,) = data_of(path)
    assert (found["kind"], len(found["rows"]), found["names"]) == ("table", 40, list(NAMES))
    assert found["rows"][3]["name"] == "<b>3</b>"
    assert found["rows"][3]["values"] == [f"{value:.4g}" for value in rows.inputs[3]]
    assert [row["explained"] for row in found["rows"]] == ["class 0"] * 10 + ["class 1"] * 30
    text, marks = text_of(path), rows.significance_map()
    assert "40 rows" in text
    assert "Explained: class 1 for 30 rows, class 0 for 10 rows" in text
    assert "This was done for each of 40 rows." in text
    shares = [f"{100 * (marks == mark).mean():.1f}%" for mark in (1, -1, 0)]
    assert f"So of all 160 cells of the table {shares[0]} are called positive and {shares[1]} negative" in text
    assert f"{shares[2]} are undecided" in text
    assert "to repeat it" not in text  # it would be of the first row


def test_the_method_is_named_by_what_is_inside_of_wrappers(tmp_path):
    def mine(inputs, target):
        return inputs * WEIGHTS

    given = np.random.default_rng(0).normal(size=(13, 4))
    noise = metfa.noise.Gaussian(0.5)
    sample = metfa.explain(metfa.seeded(mine), given, 1, noise=noise, n_samples=6, rng=0)
    text = text_of(sample.report(tmp_path / "r.html"))
    name = sample.provenance["explainer"].removeprefix("seeded(explainer=").removesuffix(")")
    assert f"{name}, class 1: 13 rows" in text
    assert "The method seeded" not in text


def test_texts_of_others_are_escaped(rows, tmp_path):
    page = rows.report(tmp_path / "r.html").read_text("utf-8")
    assert "<img src=x" not in page
    assert "<b>" not in page


def test_without_scripts_each_row_is_a_line(rows, tmp_path):
    page = rows.report(tmp_path / "r.html").read_text("utf-8")
    lines = re.findall(r"<tr>(.*?)</tr>", page.partition("plain-rows")[2].partition("</table>")[0])
    cells = [[unescape(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line)] for line in lines]
    assert cells[0] == ["row", "explained", "positive", "negative", "undecided", "strongest", ""]
    assert len(cells) == 41
    marks, scores = rows.significance_map(), rows.smoothed()
    counts = [str((marks[7] == mark).sum()) for mark in (1, -1, 0)]
    strongest = [k for k in np.argsort(-np.abs(scores[7])) if marks[7, k]][:3]
    said = ", ".join(f"{NAMES[k]} ({'+' if marks[7, k] > 0 else '−'})" for k in strongest)
    assert cells[8] == ["<b>7</b>", "class 0", *counts, said, ""]


def test_what_must_not_be_missed(tmp_path):
    def predict(x):
        return np.stack([x[:, 0], -x[:, 0]], axis=1)

    sample = explained(predict=predict, target=None)
    warned = int((sample.flip_rate >= 0.3).sum())
    path = sample.report(tmp_path / "r.html", flips_from=0.3)
    assert f"The noise changed the prediction in 30% or more of the noisy copies of {warned} of 40 rows." in text_of(
        path
    )
    told = [row["cautions"] for row in data_of(path)[0]["rows"]]
    assert sum(map(bool, told)) == warned
    assert "The noise changed the prediction in" in next(filter(None, told))[0]


def test_few_samples_are_said(tmp_path):
    text = text_of(explained(n=3).report(tmp_path / "r.html"))
    assert "These are too few explanations to decide anything at the level that was asked for." in text
    assert "too few samples for `alpha`=0.05" in text


def test_thresholds_of_each_row(rows, tmp_path):
    given = np.linspace(0.1, 0.9, 40)
    path = rows.report(tmp_path / "r.html", threshold=given)
    (found,) = data_of(path)
    assert found["rule"] == "as given"
    assert "lie above the threshold of its row more often" in text_of(path)
    with pytest.raises(ValueError, match="each of the 40 inputs shown"):
        rows.report(tmp_path / "s.html", threshold=given[:3])
    with pytest.raises(ValueError, match="one number for each input in a report"):
        replace(rows, default_terms=metfa.Terms(np.ones((40, 4)))).report(tmp_path / "s.html")


def test_what_is_a_table(rows, tmp_path):
    assert not is_table(explained(12, n=2))
    assert is_table(explained(13, n=2))
    assert is_table(rows.over(np.array([0, 0, 1, 1])))
    assert not is_table(rows.across_inputs())
    words = metfa.explain(
        lambda texts, target: np.arange(2.0)[None].repeat(len(texts), axis=0), [f"text {k}" for k in range(13)], 0,
        noise=lambda text, rng: text + rng.choice(["a", "b"]), n_samples=2, rng=0,
    )  # fmt: skip
    assert not is_table(words)
    two = report.write(tmp_path / "d.html", {"all": rows, "one": rows.of_input(0)}, threshold=0.0)
    assert [found["kind"] for found in data_of(two)] == ["table", "bars"]


MARKS = "() => window.metfaReport[0].result.each.map((row) => Array.from(row.marks))"


@pytest.mark.browser
@pytest.mark.slow
def test_the_browser_decides_as_python(rows, open_page, tmp_path):
    opened = open_page(rows.report(tmp_path / "r.html", correction="holm"))
    assert opened.page.evaluate(MARKS) == rows.significance_map(correction="holm").tolist()
    opened.page.locator("[name=correction]").select_option("none")
    assert opened.page.evaluate(MARKS) == rows.significance_map().tolist()
    given = np.linspace(-1, 1, 40)
    each = open_page(rows.report(tmp_path / "s.html", threshold=given))
    assert each.page.evaluate(MARKS) == rows.significance_map(given).tolist()
    assert each.page.evaluate("() => window.metfaReport[0].result.each.map((row) => row.threshold)") == given.tolist()


@pytest.mark.browser
@pytest.mark.slow
def test_a_reader_filters_sorts_and_chooses(rows, open_page, tmp_path):
    opened = open_page(rows.report(tmp_path / "r.html"))
    page, marks = opened.page, rows.significance_map()
    shown = lambda: [int(re.sub(r"\D", "", name)) for name in page.locator(".grid tbody button bdi").all_inner_texts()]  # noqa: E731
    assert shown() == list(range(40))
    first = page.locator(".choices select")
    first.nth(0).select_option("-1")
    first.nth(1).select_option("0")
    assert shown() == np.flatnonzero(marks[:, 0] == -1).tolist()
    assert "that are chosen, of all 40" in page.locator(".pager").inner_text()
    first.nth(0).select_option("")
    first.nth(2).select_option("0")
    scores = rows.smoothed()[:, 0]
    assert shown() == sorted(range(40), key=lambda k: (-marks[k, 0], -scores[k]))
    page.locator(".grid .heads button", has_text="age").click()
    assert shown() == sorted(range(40), key=lambda k: (marks[k, 0], scores[k]))
    page.locator(".choices input").fill(">7<")
    assert shown() == [7]
    page.locator(".grid tbody td").nth(1).click()
    assert page.locator(".chosen h3").first.inner_text() == "<b>7</b>: class 0"
    assert page.locator(".chosen .bars .row").count() == 4
    assert page.locator(".chosen .reading dl").count() == 1
    before = page.evaluate(MARKS)
    opened.slide(".chosen .threshold input", 0)
    after = page.evaluate(MARKS)
    assert [k for k in range(40) if before[k] != after[k]] == [7]
    page.locator("button[type=reset]").click()
    page.wait_for_function(f"() => JSON.stringify(({MARKS})()) === '{json.dumps(before, separators=(',', ':'))}'")
    page.locator(".grid tbody button").first.press("Enter")
    assert page.locator(".chosen").is_hidden()


@pytest.mark.browser
@pytest.mark.slow
def test_rows_of_a_comparison(open_page, tmp_path):
    inputs = np.random.default_rng(0).normal(size=(14, 4))
    both = metfa.compare(
        lambda x, target: x * WEIGHTS, lambda x, target: x * WEIGHTS[::-1], inputs, 0,
        noise=metfa.noise.Gaussian(0.4), n_samples=12, rng=0, names=("old", "<i>new</i>"),
    )  # fmt: skip
    opened = open_page(both.report(tmp_path / "r.html"))
    assert opened.page.evaluate(MARKS) == both.significance_map().tolist()
    opened.page.locator(".grid tbody td").first.click()
    assert opened.page.locator(".chosen [role=listitem] .both").count() == 4
    assert "“<i>new</i>”" in opened.page.locator(".chosen").inner_text()


@pytest.mark.slow
def test_a_page_of_500_rows_is_small(tmp_path):
    values = np.random.default_rng(0).normal(size=(50, 500, 30)) * np.geomspace(0.01, 1, 30) + 0.05
    names = tuple(f"{row}" for row in range(500))
    sample = metfa.AttributionSample(values, values[0] * 2, (0,) * 500, values[0], None, None, tuple(range(50)), names)
    assert sample.report(tmp_path / "r.html").stat().st_size < 5e6
