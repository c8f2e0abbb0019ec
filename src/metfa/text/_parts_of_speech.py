"""Parts of speech of the words of a text: those that a user names, those of a function, or those of nltk's tagger."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from metfa._base.validation import check_function, did_you_mean, shown
from metfa.text._wordnet import PARTS

__all__ = ["kept_parts", "parts_by_nltk", "parts_of", "require_nltk"]

NO_PART = "other"
SHORT = {"adjective": "adj", "adverb": "adv"}
PENN = {"N": "noun", "V": "verb", "J": "adj", "RB": "adv"}  # the tags of nltk's tagger begin so
NAMES = ("NNP", "NNPS")


def kept_parts(given: Any) -> Any:
    """`part_of_speech` in the form that is kept: None, a function, or names in a fixed order."""
    if given is None:
        return None
    if callable(given):
        check_function(given, "part_of_speech", "part_of_speech(words)", [])
        return given
    if isinstance(given, str):
        return (_part(given),)
    if not isinstance(given, AbstractSet | list | tuple):
        raise TypeError(
            f"`part_of_speech` must be None, a name, a set of names or a function of the words, got {shown(given)}"
        )
    if not given:
        raise ValueError(f"`part_of_speech` is empty: it must name some of {', '.join(PARTS)}, or be None for all")
    names = {_part(name) for name in given}
    return tuple(part for part in PARTS if part in names)


def parts_of(part_of_speech: Any, words: Sequence[str]) -> list[tuple[str, ...]]:
    """Parts of speech to look each word up in, by what `kept_parts` has kept."""
    if not callable(part_of_speech):
        return [part_of_speech or tuple(PARTS)] * len(words)
    tags: Any = part_of_speech(list(words))
    if isinstance(tags, str) or not hasattr(tags, "__len__"):
        raise TypeError(f"`part_of_speech` must return a list with one entry a word, got {type(tags).__name__}")
    if len(tags) != len(words):
        raise ValueError(f"`part_of_speech` must return one entry a word, got {len(tags)} for {len(words)} words")
    return [tuple(PARTS) if tag is None else () if tag == NO_PART else (_part(tag, NO_PART),) for tag in tags]


def parts_by_nltk(words: Sequence[str]) -> list[str]:
    """Part of speech of each word by nltk's tagger; names and all that is in none of the four are "other"."""
    import nltk

    return [
        NO_PART if tag in NAMES else next((part for start, part in PENN.items() if tag.startswith(start)), NO_PART)
        for _, tag in nltk.pos_tag(list(words))
    ]


def require_nltk() -> None:
    """Raise unless nltk's tagger can be asked."""
    try:
        parts_by_nltk(["film"])
    except ImportError as error:
        raise ImportError('`part_of_speech="nltk"` needs nltk: write `pip install nltk`') from error
    except LookupError as error:
        raise LookupError(
            '`part_of_speech="nltk"` needs the data of nltk\'s tagger, which is not on this machine (metfa downloads '
            'nothing): write `nltk.download("averaged_perceptron_tagger_eng")` once, or leave `part_of_speech` out, '
            "so that WordNet's counts decide"
        ) from error


def _part(name: Any, *others: str) -> str:
    allowed = [*PARTS, *others]
    if not isinstance(name, str):
        raise TypeError(f"`part_of_speech` must name {', '.join(allowed)}, got {type(name).__name__}: {name!r}")
    if name not in allowed:
        hint = f", did you mean {SHORT[name]!r}?" if name in SHORT else did_you_mean(name, allowed)
        raise ValueError(f"`part_of_speech` must name {', '.join(allowed)}, got {name!r}{hint}")
    return name
