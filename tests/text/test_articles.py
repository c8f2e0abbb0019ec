"""Articles before words that are put into sentences."""

import numpy as np
import pytest

from metfa.text import SenseSynonyms, Synonyms
from metfa.text._articles import article, articles_that_change, fitted_articles


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("attempt effort umbrella unimportant unidentified undertaker utter urge usher onlooker answer", "an"),
        ("hour Honest honour heirs", "an"),
        ("film try hero one-man once European use utility unique unit unanimous ubiquitous uterus urine 8", "a"),
    ],
)
def test_by_the_sound_that_a_word_begins_with(words, found):
    assert {word: article(word) for word in words.split()} == dict.fromkeys(words.split(), found)


def test_only_articles_that_fitted_and_do_not_fit_any_more():
    before = ["An", "attempt", "a", "attempt", "AN", "EFFORT", "an", "effort", "no", "effort", "a", "film"]
    after = ["An", "try", "a", "try", "AN", "TRY", "an", "attempt", "no", "try", "a", "movie"]
    assert fitted_articles(before, after) == ["A", *after[1:4], "A", *after[5:]]
    assert fitted_articles(["A", "try"], ["A", "effort"]) == ["An", "effort"]
    assert fitted_articles(["a"], ["b"]) == ["b"]
    candidates = [(), ("try",), (), ("try",), (), ("TRY",), (), ("attempt",), (), ("try",), (), ("movie",)]
    assert np.flatnonzero(articles_that_change(before, candidates)).tolist() == [0, 4]


def test_the_noise_that_keeps_the_meaning_keeps_the_grammar():
    text = "This is an attempt, and an enormous film."
    copies = {SenseSynonyms(1.0, part_of_speech=nouns)(text, np.random.default_rng(seed)) for seed in range(20)}
    assert copies == {"This is an effort, and an enormous movie.", "This is a try, and an enormous movie."}
    paper = {Synonyms(1.0, part_of_speech=nouns)(text, np.random.default_rng(seed)) for seed in range(20)}
    assert any("an try" in copy for copy in paper)


def nouns(words):
    return ["noun" if word in ("attempt", "film") else "other" for word in words]
