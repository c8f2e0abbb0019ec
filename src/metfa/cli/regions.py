"""Regions of a picture, as the command line names them, and what is said of them."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metfa import regions
from metfa._base.pictures import open_image
from metfa.cli.kinds import is_of_text
from metfa.results.decisions import TooFewSamplesError
from metfa.results.in_words import regions_in_words
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample

if TYPE_CHECKING:
    from metfa.cli.run import Analysis

__all__ = ["FORMS", "check_regions", "pooled", "region_lines", "regions_named"]

FORMS = "superpixels[:NUMBER], grid[:ROWS], none, or a picture of labels (0: no region) such as mask.png"


def check_regions(text: str) -> None:
    """Raise if the text names no regions, before anything is sampled."""
    _parsed(text)


def _parsed(text: str) -> tuple[str, Any]:
    found = re.fullmatch(r"(superpixels|grid|none)(?::(\d+))?", text)
    if found and not (found[1] == "none" and found[2]):
        return found[1], None if found[2] is None else int(found[2])
    if Path(text).is_file():
        return "picture", Path(text)
    raise ValueError(f"`--regions` must be {FORMS}, got {text!r}, and there is no such file")


def sentences_of(sample: Any) -> AttributionSample | None:
    """The samples of the sentences of a text, each against the rest; None for fewer than two."""
    made = regions.sentences(sample)
    return sample.over(made, against="rest") if len(made) > 1 else None


def pooled(sample: Any, analysis: Analysis) -> tuple[AttributionSample | None, str]:
    """The samples of the regions, each against the rest, and a note on what they are; None where none are asked for.

    Only for one picture whose maps lie on it.
    """
    stopping = getattr(sample, "stopping", None)
    if analysis.regions != "none" and stopping is not None and stopping.over is not None:
        return sample.over(), "the regions that sampling asked about"
    made, note = regions_named(analysis.regions, sample)
    return (None if made is None else sample.over(made)), note


def regions_named(text: str, sample: Any) -> tuple[Regions | None, str]:
    """The regions of one picture whose maps lie on it, each against the rest, and a note; None for anything else."""
    if not isinstance(sample, AttributionSample) or len(sample.feature_shape) != 2 or sample.values.shape[1] != 1:
        return None, ""
    kind, given = _parsed(text)
    if kind == "none":
        return None, ""
    made, note = _made(kind, given, sample)
    return replace(made, against="rest"), note


def _made(kind: str, given: Any, sample: AttributionSample) -> tuple[Regions, str]:
    if kind == "picture":
        height, width = sample.feature_shape
        size = open_image(given).size
        if size != (width, height):
            raise ValueError(
                f"`--regions`: {given.name} has {size[0]} x {size[1]} pixels, and the network sees {width} x {height}, "
                "which may be a part of the picture: draw the labels on what it sees, the picture in figure.png"
            )
        return regions.objects(given, of=sample, ignore=0), f"of {given.name}"
    fewest = min(sample.feature_shape)
    if kind == "superpixels" and find_spec("skimage") is not None:
        number = min(50, sample.n_features // 2) if given is None else given
        return regions.superpixels(sample, number), f"{number} superpixels"
    usual = min(14 if kind == "grid" else 7, fewest)
    cells = given if kind == "grid" and given is not None else usual
    missing = "; superpixels need scikit-image: pip install 'metfa[lime]'" if kind == "superpixels" else ""
    return regions.grid(sample, cells), f"a grid of {cells} x {cells}{missing}"


def region_lines(sample: Any, analysis: Analysis) -> list[tuple[str, str]]:
    """Lines of the report about the regions, for a reader who reads nothing else."""
    if is_of_text(sample):
        of_regions, made, noun, whole = sentences_of(sample), "each against the other words", "sentence", "words"
    else:
        (of_regions, made), noun, whole = pooled(sample, analysis), "region", "picture"
    if of_regions is None:
        return []
    terms = of_regions.terms(**analysis.of_regions(of_regions))
    try:
        decision = of_regions.decide(terms)
    except TooFewSamplesError as error:
        return [(f"{noun}s", f"undecided: {error}")]
    sentence = regions_in_words(of_regions, decision, noun=noun, whole=whole)
    summary = of_regions.summary(**analysis.of_regions(of_regions))[0]
    sure = dict(summary.lines())["false marks"]
    return [(f"{noun}s", sentence), (f"of {noun}s", f"{made}; {sure.replace('region', noun)}")]
