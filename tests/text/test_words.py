"""Texts cut into words, and put together again."""

import re

import numpy as np
import pytest

from metfa.text.words import words_of

TEXTS = {
    "a good, long film .": ("a", "good", "long", "film"),
    "Don't miss it!": ("Don't", "miss", "it"),
    '  "State-of-the-art" (mostly)...  ': ("State-of-the-art", "mostly"),
    "good good bad good": ("good", "good", "bad", "good"),
    "so 😀 much 👩‍👩‍👧 fun": ("so", "😀", "much", "👩‍👩‍👧", "fun"),
    "שלום, עולם!": ("שלום", "עולם"),
    "यह फिल्म अच्छी है।": ("यह", "फिल्म", "अच्छी", "है"),
    "电影 很好。": ("电影", "很好"),
    "今日は雨です。「家にいます！」本当？！ そう": ("今日は雨です", "家にいます", "本当", "そう"),
    "one\u00a0two\tthree\nfour": ("one", "two", "three", "four"),
    "$5 of 100% e\u0301t\u0301e\u0301": ("$5", "of", "100", "e\u0301t\u0301e\u0301"),
    "\u200fword\u200f": ("word",),
    "<b>bold</b>": ("<b>bold</b>",),
}


@pytest.mark.parametrize("text", TEXTS)
def test_words_and_back(text):
    parsed = words_of(text)
    assert parsed.words == TEXTS[text]
    assert parsed.replaced(parsed.words) == parsed.kept([True] * len(parsed)) == text
    other = [f"w{k}" for k in range(len(parsed))]
    assert words_of(parsed.replaced(other)).words == tuple(other)


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_kept_keeps_its_order(text):
    parsed = words_of(text)
    rng = np.random.default_rng(0)
    for _ in range(20):
        mask = rng.random(len(parsed)) < 0.5
        kept = tuple(word for word, keep in zip(parsed.words, mask, strict=True) if keep)
        left = parsed.kept(mask)
        assert (words_of(left).words if kept else ()) == kept
        assert "  " not in left.strip()


def test_left_out():
    parsed = words_of("a good, long film .")
    assert parsed.kept([1, 0, 1, 1]) == "a , long film ."
    assert parsed.kept([0, 0, 1, 0]) == ", long ."
    assert parsed.kept([0, 0, 0, 0]) == ", ."
    assert words_of("bad").kept([0]) == ""


def test_tokens_are_words_as_they_are():
    parsed = words_of(["电", "影", ".", "two words"])
    assert parsed.words == ("电", "影", ".", "two words")
    assert parsed.kept([1, 0, 0, 1]) == ["电", "two words"]
    assert parsed.replaced("abcd") == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", ValueError, "the text '' holds no words"),
        (" \n ... !", ValueError, "holds no words"),
        ([], ValueError, "the text [] holds no words"),
        (["a", ""], ValueError, "must not hold empty ones: ['a', '']"),
        (["a", 3], TypeError, "must hold texts, got int: 3"),
        (3, TypeError, "a text must be a string or the list of its tokens, got int: 3"),
        (None, TypeError, "got NoneType"),
        (b"bytes", TypeError, "got bytes"),
    ],
)
def test_what_is_no_text(text, error, message):
    with pytest.raises(error, match=re.escape(message)):
        words_of(text)


def test_lengths_must_fit():
    parsed = words_of("two words")
    with pytest.raises(ValueError, match="one entry for each of the 2 words, got 3"):
        parsed.kept([1, 0, 1])
    with pytest.raises(ValueError, match="one for each of the 2 words, got 1"):
        parsed.replaced(["a"])
