"""Names that inputs get from their content, and how they differ from those that people give."""

from __future__ import annotations

import re

__all__ = ["is_content_id"]


def is_content_id(name: str) -> bool:
    """Whether a name is a digest of an input's content, with a number where it repeats, so that no user gave it."""
    return re.fullmatch(r"[0-9a-f]{32}(#\d+)?", name) is not None
