"""Headings of figures and pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from metfa._base.provenance import printable

__all__ = ["file_name", "title_of"]

LONGEST = 200


def title_of(about: Mapping[str, Any]) -> str | None:
    """What was predicted and explained, of which picture, by what; None where nothing is known."""
    if not about:
        return None
    if about.get("answer") is not None:
        asked = about.get("question") or "this prompt"
        return printable(f"Which sources raise the score of the answer to “{asked}”?")[:LONGEST]
    explained = about.get("explained") or about.get("predicted") or "this class"
    picture = None if about.get("image") is None else file_name(about["image"])
    method, model = about.get("method", ""), file_name(about.get("model", ""), ".npz")
    if about.get("random_weights"):
        model += ", untrained"
    if about.get("object"):
        text = f"{picture}: what does “{explained}” need around it? {model}"
    elif about.get("compared"):
        text = f"{f'{picture}: what' if picture else 'What'} changed? {method}; {model}"
    else:
        text = f"{f'{picture}: why' if picture else 'Why'} “{explained}”? {method} of {model}"
    return printable(text)[:LONGEST]


def file_name(text: Any, ending: str = "") -> str:
    """The last part of a path of any system that has this ending: where a file lies is nothing for a reader."""
    return re.split(r"[\\/]", str(text).rstrip("\\/"))[-1] if str(text).endswith(ending) else str(text)
