"""Reports of populations: rows of a data set, or models, as samples."""

import json
import re
import time
from html import unescape

import numpy as np
import pytest

import metfa
from metfa import report

WEIGHTS = np.array([3.0, 1.0, 0.0, -2.0])
NAMES = ("age", "</script><img src=x>", "height", "weight")


@pytest.fixture(scope="module")
def rows():
    given = np.random.default_rng(0).normal(size=(80, 4))
    noise = metfa.noise.Gaussian(0.1)
    run = metfa.Run(feature_names=NAMES)
    return metfa.explain(lambda x, target: x * WEIGHTS, given, 0, noise=noise, n_samples=12, rng=0, run=run)


def data_of(path):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"))
    return json.loads(found[1])["results"]


def text_of(path):
    page = path.read_text("utf-8").partition('<script type="application/json"')[0]
    return " ".join(unescape(re.sub("<[^>]*>", "\n", page.partition("<body>")[2])).split())


def test_rows_are_said_to_be_rows(rows, tmp_path):
    population = rows.across_inputs(of="smoothed")
    path = population.report(tmp_path / "r.html")
    text = text_of(path)
    assert "80 rows, class 0" in text
    assert (
        "explained 80 rows. Each row gives every feature one number: the absolute value of its smoothed score over 12 "
        "noisy copies. A score says how much it matters for the class that is explained (class 0). Every statement is "
        "about the law of this number over the population of which the rows are a sample."
    ) in text
    above = (population.significance_map() == 1).mean()
    assert f"So {100 * above:.1f}% of the features are called important" in text
    assert "rows 80 number of each row the absolute value" in text
    for wrong in ("to repeat it", "sample ids", "input name", "without noise lies", "certificate", "same input"):
        assert wrong not in text
    (told,) = data_of(path)
    assert told["sampleNoun"] == "row"
    assert sorted(told["layers"]["maps"]) == ["lower", "mean", "smoothed", "upper"]
    assert (told["values"], told["certificate"], told["samples"]["n"]) == (None, None, 80)


def test_pairs_are_said_to_be_pairs(rows, tmp_path):
    text = text_of(rows.across_inputs().pairwise().report(tmp_path / "r.html"))
    assert (
        "Each row gives every pair of features one number: the first score less the second. A score is the absolute "
        "value of its score without noise, and says how much it matters"
    ) in text
    assert "A pair is called higher in the first if its differences lie above 0 more often" in text


def test_too_few_rows(rows, tmp_path):
    few = metfa.explain(
        lambda x, target: x * WEIGHTS, rows.inputs[:4], 0, noise=metfa.noise.Gaussian(0.1), n_samples=6, rng=0
    )
    text = text_of(few.across_inputs().report(tmp_path / "r.html"))
    assert "These are too few rows to decide anything" in text
    assert "too few rows" in text.partition("Figures, with")[2]


@pytest.mark.filterwarnings("ignore:`across_inputs` takes each of the")  # pixels are what is drawn here
def test_maps_of_a_population(tmp_path):
    images = np.random.default_rng(0).random((12, 4, 5)) + np.arange(5)
    sample = metfa.explain(lambda x, target: x**2, images, 0, noise=metfa.noise.Uniform(0.1), n_samples=5, rng=0)
    path = sample.across_inputs().report(tmp_path / "r.html")
    assert "Each row gives every pixel one number: its score without noise." in text_of(path)
    assert data_of(path)[0]["caption"] == "no picture"


def test_models_as_samples(rows, tmp_path):
    rng = np.random.default_rng(1)
    models = [WEIGHTS + 0.1 * rng.normal(size=4) for _ in range(12)]
    found = metfa.across_models(
        models, lambda model: lambda x, target: x * model, rows.inputs[:1], 0, noise=metfa.noise.Gaussian(0.1),
        n_samples=6, rng=0,
    )  # fmt: skip
    text = text_of(found.report(tmp_path / "r.html"))
    assert "12 models were explained by the same method. Each model gives every feature one number" in text
    assert "over models that are trained as these were" in text
    assert "This is what the method finds in such models." in text


@pytest.mark.slow
def test_the_browser_decides_about_rows(rows, sample, open_page, tmp_path):
    population = rows.across_inputs(absolute=False)
    both = {"rows": population, "one": rows.of_input(0)}
    opened = open_page(report.write(tmp_path / "r.html", both))
    assert opened.marks() == population.significance_map().ravel().tolist()
    assert opened.page.locator("main img").count() == 0
    opened.page.evaluate("() => window.metfaReport[0].view.onPoint(0, 'keep')")
    text = opened.page.locator(".reading").first.inner_text()
    above, below = ((population.values[:, 0, 0] > 0).sum(), (population.values[:, 0, 0] < 0).sum())
    assert f"rows above, below the threshold\n{above}, {below}\n" in text
    assert "its 80 rows, from the lowest score" in text
    assert "no noise" not in text
    assert "NaN" not in opened.page.inner_text("main")
    legend = opened.page.locator(".result").first.locator("p.small").first.inner_text()
    assert legend == "Bar: smoothed score; line with caps: interval of its median; dashed: the threshold."


@pytest.mark.slow
def test_ten_thousand_rows_of_fifty_columns(tmp_path):
    """A page of them is small, and soon written."""
    values = np.random.default_rng(0).normal(size=(10_000, 50)) * np.linspace(0.5, 2, 50)
    explained = metfa.explain(
        lambda x, target: x, values, 0, noise=metfa.noise.Gaussian(0.1), n_samples=1, rng=0, batch_size=10_000
    )
    start = time.process_time()
    path = explained.across_inputs().report(tmp_path / "r.html")
    assert time.process_time() - start < 10
    assert path.stat().st_size < 2e6
