"""Texts cut into paragraphs and sentences: nothing is lost, and nothing is cut that belongs together."""

import pytest

from metfa.text.pieces import cut_into, ends_of

CASES = {
    "Dr. Smith liked it (J. Doe did). “You?” Yes…": ["Dr. Smith liked it (J. Doe did).", "“You?”", "Yes…"],
    " It opened in 1932. It is 3.5 km long.\n": ["It opened in 1932.", "It is 3.5 km long."],
    "A heading\n\nA text, e.g. this. and on": ["A heading", "A text, e.g. this. and on"],
    "今日は。明日は？はい。": ["今日は。", "明日は？", "はい。"],
    "one": ["one"],
    "...  ": ["..."],
    "\n\n First. \n\n\n Second.": ["First.", "Second."],
}  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_sentences(text):
    pieces = cut_into(text, "sentences")
    assert "".join(pieces) == text
    assert [piece.strip() for piece in pieces] == CASES[text]
    assert ends_of(text, "sentences")[-1] == len(text)


def test_paragraphs():
    text = "One.\nStill one. \n \nTwo.\n\n\n\nThree.\n\n"
    assert "".join(cut_into(text, "paragraphs")) == text
    assert [piece.strip() for piece in cut_into(text, "paragraphs")] == ["One.\nStill one.", "Two.", "Three."]
    with pytest.raises(ValueError, match=r"`kind` must be .*, got 'words'"):
        cut_into(text, "words")
