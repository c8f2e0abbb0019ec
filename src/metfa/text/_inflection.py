"""Endings of English words: which words a form may be of, and the form of another word with the same ending."""

from __future__ import annotations

from typing import NamedTuple

from metfa.text._wordnet import WordNet

__all__ = ["Reading", "inflected", "readings"]

# Endings and what stands in their place in the word itself: the rules of detachment of WordNet's morphy(7WN).
NOUNS = {"ses": "s", "xes": "x", "zes": "z", "ches": "ch", "shes": "sh", "men": "man", "ies": "y", "s": ""}
VERBS = {"s": ("", "e"), "es": ("e", ""), "ies": ("y",), "ed": ("e", ""), "ing": ("e", "")}
COMPARED = {"er": ("", "e"), "est": ("", "e")}
HISSING = ("s", "x", "z", "ch", "sh")
VOWELS = "aeiou"


class Reading(NamedTuple):
    """A word that a form may be of.

    Attributes
    ----------
    word, part : str
    ending : str or None
        "" for the word itself, "s" (plural, or third person), "ed" (past, or participle), "ing"; None for those that
        are not put onto other words (comparatives).
    """

    word: str
    part: str
    ending: str | None


def readings(form: str, wordnet: WordNet) -> list[Reading]:
    """All words of WordNet that a lower-case form may be of, each once."""
    found = [Reading(form, part, "") for part in wordnet.senses]
    found += [Reading(word, "noun", "s") for word in wordnet.roots(form, "noun")]
    found += [Reading(word, "verb", _ending_of(form)) for word in wordnet.roots(form, "verb")]
    for end, instead in NOUNS.items():
        found += [Reading(word, "noun", "s") for word in _ended(form, end, (instead,))]
    for end, several in VERBS.items():
        found += [Reading(word, "verb", "s" if end[-1] == "s" else end) for word in _ended(form, end, several)]
    for end, several in COMPARED.items():
        found += [Reading(word, "adj", None) for word in _ended(form, end, several)]
    return [each for each in dict.fromkeys(found) if each.word in wordnet.senses[each.part]]


def inflected(word: str, part: str, ending: str, wordnet: WordNet) -> str | None:
    """The word with an ending; None where the form is not known for certain: irregular verbs, nouns such as "hero"."""
    if not ending:
        return word
    own = wordnet.irregular(word, part)
    if part == "noun" and own:
        return own[0] if len(own) == 1 else None
    if ending == "s":
        return _with_s(word)
    regular = _with_ed(word) if ending == "ed" else _with_ing(word)
    alike = [form for form in own if form.endswith("ing") == (ending == "ing") and not form.endswith("s")]
    if not alike or regular in alike:
        return regular
    doubled = word + word[-1] + ending
    return doubled if doubled in alike else alike[0] if ending == "ing" and len(alike) == 1 else None


def _ended(form: str, end: str, several: tuple[str, ...]) -> list[str]:
    """What the form may be without its ending."""
    return [form[: -len(end)] + instead for instead in several] if form.endswith(end) and len(form) > len(end) else []


def _ending_of(form: str) -> str:
    """Ending of an irregular form of a verb: past and participle of a regular one are the same."""
    return "ing" if form.endswith("ing") else "s" if form in ("has", "does", "goes", "is") else "ed"


def _with_s(word: str) -> str | None:
    if word.endswith("o") and word[-2] not in VOWELS:
        return None
    if word.endswith(HISSING):
        return None if word.endswith("s") and not word.endswith("ss") else word + "es"
    return word[:-1] + "ies" if _y_as_i(word) != word else word + "s"


def _with_ed(word: str) -> str:
    return word + "d" if word.endswith("e") else _y_as_i(word) + "ed"


def _with_ing(word: str) -> str:
    return word[:-1] + "ing" if word.endswith("e") and word[-2:] not in ("ee", "oe", "ye") else word + "ing"


def _y_as_i(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and word[-2] not in VOWELS else word
