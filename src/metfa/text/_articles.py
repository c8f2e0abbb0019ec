"""The indefinite article before a word: "a" or "an", by the sound that the word begins with."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["article", "articles_that_change", "fitted_articles"]

# Vowels that sound like "you" or "one", and an h that is silent. Enough for words of WordNet, no rule of English.
CONSONANT = re.compile(r"eu|ewe|one(?![ir])|once|ubi|unanim|uni(?![mn]|de)|ura|uri|us[aeu]|ut[eio]")
SILENT = re.compile(r"hour|honest|honou?r|heir")


def article(word: str) -> str:
    """The article before this word."""
    lower = word.lower()
    vowel = lower.startswith(tuple("aeiou")) and not CONSONANT.match(lower)
    return "an" if vowel or SILENT.match(lower) else "a"


def articles_that_change(words: Sequence[str], candidates: Sequence[Sequence[str]]) -> list[bool]:
    """Whether each word is an article that fits the next word, and not all of the candidates for this."""
    behind = [*zip(words[1:], candidates[1:], strict=True), ("", ())]
    return [
        word.lower() == article(other) and any(article(one) != article(other) for one in found)
        for word, (other, found) in zip(words, behind, strict=True)
    ]


def fitted_articles(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The words `after` some of them were replaced, with articles that fit these, where they fitted `before`."""
    fitted = list(after)
    for place in range(1, len(after)):
        given = before[place - 1].lower()
        if before[place] != after[place] and given == article(before[place]) != article(after[place]):
            fitted[place - 1] = _cased(article(after[place]), before[place - 1])
    return fitted


def _cased(found: str, like: str) -> str:
    upper = like.isupper() and len(like) > 1  # a single "A" begins a sentence
    return found.upper() if upper else found.capitalize() if like[0].isupper() else found
