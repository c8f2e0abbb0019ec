"""Pages as people read them: short sentences, code at the beginning, and found by the words that people use."""

import importlib.util
import re
from pathlib import Path

import pytest

from metfa.sampling import explainer_attributes, protocol

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="no pages here")


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_sentences_are_short():
    sentences = script("long_sentences")
    assert sentences.long_ones("This is short. Which " + 25 * "word " + "is not.") == [
        "Which " + 25 * "word " + "is not."
    ]
    assert not sentences.long_ones("===  ===\n" + 30 * "cell " + "\n===  ===\n")
    pages = [ROOT / "README.md", ROOT / "examples" / "GALLERY_HEADER.rst", *DOCS.glob("*.rst")]
    pages += (ROOT / "paper").glob("*.md")
    pages += [page for room in ("howto", "background", "reference") for page in (DOCS / room).glob("*.rst")]
    found = {page.stem: sentences.long_ones(page.read_text("utf-8")) for page in pages}
    assert not {page: long for page, long in found.items() if long}


@pytest.mark.parametrize("page", sorted((DOCS / "howto").glob("*.rst")), ids=lambda page: page.stem)
def test_howtos_open_with_what_to_write(page):
    if page.stem == "index":
        return
    text = page.read_text("utf-8")
    first = re.search(r"^>>> |^\.\. code-block::|^   \* - ", text, re.MULTILINE)
    assert first is not None
    assert text[: first.start()].count("\n") <= 20


def test_the_readme_leads_to_every_howto():
    readme = (ROOT / "README.md").read_text("utf-8")
    pages = {page.stem for page in (DOCS / "howto").glob("*.rst")} - {"index"}
    assert not {page for page in pages if f"(docs/howto/{page}.rst)" not in readme}


def test_all_that_an_explainer_may_say_of_itself_is_on_its_page():
    text = (DOCS / "howto" / "write_an_explainer.rst").read_text("utf-8")
    known = re.findall(r"``(\w+)(?: = True)?``", protocol.__doc__ + explainer_attributes.__doc__)
    assert {"rows_independent", "differentiable", "signed", "n_forwards"} <= {*known}
    assert not {name for name in known if f"``{name}" not in text}


STALE = r"\b(?:(?:is|are) planned|will be added|not yet (?:implemented|supported|available)|coming soon|TODO|FIXME)\b"


def test_nothing_is_promised_for_later():
    folders = (DOCS, DOCS / "howto", DOCS / "background")
    pages = [ROOT / "README.md", *(page for folder in folders for page in folder.glob("*.rst"))]
    found = {page.name: re.search(STALE, page.read_text("utf-8")) for page in pages}
    assert not {name: said[0] for name, said in found.items() if said and name != "answers.rst"}


def stems(text):
    """Words as a search compares them: small letters, without endings."""
    return {re.sub(r"(?:ies|es|s|y|ance|ant)$", "", word) for word in re.findall(r"[a-z]{2,}", text.lower())}


@pytest.mark.parametrize(
    ("asked", "page"),
    [
        ("confidence interval SHAP", "howto/other_libraries"),
        ("saliency map significance", "tutorial"),
        ("stable Grad-CAM", "howto/other_libraries"),
        ("uncertainty of explanations", "background/which_error_bar"),
        ("error bars LIME", "howto/other_libraries"),
        ("attribution stability", "howto/measure"),
    ],
)
def test_the_words_that_people_use_lead_to_a_page(asked, page):
    """The page has all words, as its keywords too, which Sphinx indexes; and the first page leads to it."""
    text = (DOCS / f"{page}.rst").read_text("utf-8")
    keywords = re.search(r":keywords: (.*)", text)[1]
    assert stems(asked) <= stems(text.replace(keywords, ""))
    assert asked in keywords
    start = (DOCS / "index.rst").read_text("utf-8")
    rows = re.findall(r"   \* - (.*)\n     - (.*)", start)
    assert any(stems(asked) <= stems(question) and _leads(answer, page) for question, answer in rows)


def _leads(answer, page):
    labels = re.findall(r":ref:`[^<]*<([\w-]+)>`", answer)
    there = (DOCS / f"{page}.rst").read_text("utf-8")
    return f":doc:`{page}`" in answer or any(f".. _{label}:" in there for label in labels)
