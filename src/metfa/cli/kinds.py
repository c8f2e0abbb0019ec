"""What a folder's sample is of."""

from __future__ import annotations

from typing import Any

from metfa._base.validation import is_text
from metfa.results.sample import AttributionSample

__all__ = ["is_of_text"]


def is_of_text(sample: Any) -> bool:
    """Whether the sample explains one text, which is shown word by word."""
    if not isinstance(sample, AttributionSample) or sample.nouns != ("sample", "feature"):
        return False
    return sample.words is not None and isinstance(sample.inputs, list) and is_text(sample.inputs[0])
