"""Pages of answers: one section, whose sentences are chosen; what they hold, and what they say without scripts."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import metfa
from metfa import report
from metfa.results.cautions import cautions
from metfa.text import PromptNoise, explain_answer

LOG2 = math.log(2)
SOURCES = {
    "chronicle": "Opened in 1932.",
    "recipe": "</script><b>eggs</b>",
    "plaque": "OPENED 1932",
    "map": "Sydney. " * 60,
}


def scorer(rows):
    texts = [" ".join(row) for row in rows]
    return np.array([[5.0 * ("1932" in t), 2.0 * ("Sydney" in t)] for t in texts])


@pytest.fixture(scope="module")
def answer():
    said = ["It opened in <i>1932</i>.", "It is in Sydney."]
    year = {"the year": ["chronicle", "plaque"]}
    return explain_answer(scorer, SOURCES, delta=LOG2, answers=said, groups=year, n_samples=40, rng=0)


def test_the_page_holds_all_sentences_in_one_section(answer, tmp_path):
    page = report.write(tmp_path / "page.html", answer).read_text(encoding="utf-8")
    assert page.count('<section class="result answer"') == 1
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    (result,) = data["results"]
    assert [row["name"] for row in result["rows"]] == ["It opened in <i>1932</i>.", "It is in Sydney."]
    assert result["sources"][0] == {
        "members": [["chronicle", "Opened in 1932."], ["plaque", "OPENED 1932"]],
        "group": True,
    }
    assert result["names"] == ["the year", "recipe", "map"]
    plain = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert "unimportant" not in plain
    assert "“It opened in &lt;i&gt;1932&lt;/i&gt;.”: the year; “It is in Sydney.”: map" in plain
    assert "this does not say that it does not matter" in plain
    assert "<td>recipe</td>" in plain
    assert "</script><b>" not in page
    assert len(page) < 150_000


def test_what_noise_changed_stands_above_an_answer_once(tmp_path):
    def first_alone(rows):
        return np.array([[4.0 * ("1932" in row[0]), 2.0] if row else [0.0, 2.0] for row in rows])

    noisy = explain_answer(PromptNoise(first_alone, order=True), SOURCES, delta=LOG2, n_samples=20, rng=0)
    (said,) = cautions(noisy, 0)
    page = report.write(tmp_path / "page.html", noisy).read_text(encoding="utf-8")
    assert re.search(rf'<h2 id="name-0">[^<]*</h2>\n<p class="caution">{said}.</p>', page)
    assert page.count('class="caution"') == 1
    assert '<section class="result answer faint"' in page
    law = "an order of the sources drawn anew for each prompt"
    assert f"each time with a random half of the sources and under noise ({law}). Each time" in page
    assert "under noise (" not in report.write(tmp_path / "plain.html", replace_law(noisy, 3)).read_text("utf-8")
    page = report.write(tmp_path / "other.html", noisy, flips_from=1.0).read_text(encoding="utf-8")
    assert said not in page
    assert '<section class="result answer"' in page


def replace_law(answer, law):
    """The same, with another law, as anybody may write into a file."""
    facts = {**answer.provenance["noisy_prompts"], "law": law}
    return replace(answer, provenance={**answer.provenance, "noisy_prompts": facts})


def test_the_page_of_one_answer_asks_for_no_choice_and_says_where_its_threshold_comes_from(tmp_path):
    for n_samples in (20, metfa.Until(undecided=0.5, max_samples=30)):
        one = explain_answer(lambda rows: scorer(rows)[:, 0], SOURCES, delta=LOG2, n_samples=n_samples, rng=0)
        page = report.write(tmp_path / "page.html", one, overwrite=True).read_text(encoding="utf-8")
        assert "Choose a sentence" not in page
        assert json.loads(re.search(r'id="data">(.*?)</script>', page)[1])["results"][0]["rule"] == "delta"


def test_too_few_samples_are_said_and_other_terms_are_shown(answer, tmp_path):
    few = explain_answer(scorer, SOURCES, delta=LOG2, n_samples=3, rng=0)
    page = report.write(tmp_path / "few.html", few).read_text(encoding="utf-8")
    assert "too few prompts to decide anything" in page
    page = report.write(tmp_path / "page.html", {"why": answer}, threshold=[0.5, 3.0], correction="none").read_text()
    assert "above 0.5, 3 more often" in page
    assert '<h2 id="name-0">why</h2>' in page
    with pytest.raises(ValueError, match="one number for each"):
        report.write(tmp_path / "no.html", answer, threshold=[0.5, 1.0, 2.0])
