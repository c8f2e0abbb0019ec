"""Regions of a picture, as the command line names them, and what is said of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
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

__all__ = ["FORMS", "Parts", "check_regions", "check_regions_of", "part_lines", "parts_of", "regions_named"]

FORMS = "superpixels[:NUMBER], grid[:ROWS], none, or a picture of labels (0: no region) such as mask.png"
NO_PICTURES = "superpixels need pictures of 1 or 3 channels"
NO_SKIMAGE = "superpixels need scikit-image: pip install 'metfa[lime]'"


@dataclass(frozen=True)
class Parts:
    """Regions or sentences that are asked about beside the single features: their samples, and what they are."""

    sample: AttributionSample
    made: str
    noun: str = "region"
    whole: str = "picture"


def check_regions(text: str | None) -> None:
    """Raise if the text names no regions, before anything is sampled."""
    if text is not None:
        _parsed(text)


def check_regions_of(text: str | None, plane: tuple[int, int]) -> None:
    """Raise if maps of this height and width cannot have the regions that the text names."""
    if text is not None:
        kind, given = _parsed(text)
        if kind in ("picture", "grid"):
            _against_the_rest(text, _made(kind, given, plane)[0])
        elif given is not None:
            _check_number(text, given, plane[0] * plane[1])


def _parsed(text: str) -> tuple[str, Any]:
    found = re.fullmatch(r"(superpixels|grid|none)(?::(\d+))?", text)
    if found and not (found[1] == "none" and found[2]):
        number = None if found[2] is None else int(found[2])
        if number is not None and number < 2:
            raise ValueError(f"`--regions` must be at least {found[1]}:2, so that a region has a rest, got {text}")
        return found[1], number
    if Path(text).is_file():
        return "picture", Path(text)
    raise ValueError(f"`--regions` must be {FORMS}, got {text!r}, and there is no such file")


def parts_of(sample: Any, analysis: Analysis) -> Parts | None:
    """The parts of each input that are asked about; None where there are none.

    These are the regions that `analysis` names, else those that sampling asked about, else the sentences of a text or
    the superpixels of a picture.
    """
    text, stopping = analysis.regions, getattr(sample, "stopping", None)
    if text is None and stopping is not None and stopping.over is not None and sample.regions is None:
        whole = "picture" if len(sample.feature_shape) == 2 else "words" if is_of_text(sample) else "features"
        return Parts(sample.over(), "the regions that sampling asked about", whole=whole)
    if text is None and is_of_text(sample):
        return _sentences(sample)
    made, note = regions_named(text, sample)
    if made is None:
        if text not in (None, "none"):
            raise ValueError(
                f"`--regions` {text} needs maps (height, width) of single pixels, which this result does not have"
            )
        return None
    return Parts(sample.over(made), note)


def _sentences(sample: AttributionSample) -> Parts | None:
    made = regions.sentences(sample)
    if len(made) < 2:
        return None
    return Parts(sample.over(made, against="rest"), "each against the other words", "sentence", "words")


def regions_named(text: str | None, sample: Any) -> tuple[Regions | None, str]:
    """The regions of pictures whose maps lie on them, each against the rest, and a note; None for anything else.

    Without a text they are superpixels, or a grid where there can be none.
    """
    if not isinstance(sample, AttributionSample) or sample.regions is not None or len(sample.feature_shape) != 2:
        return None, ""
    if text is None:
        return _usual(sample) if min(sample.feature_shape) > 1 else (None, "")
    kind, given = _parsed(text)
    if kind == "none":
        return None, ""
    if kind == "superpixels":
        made, note = _superpixels(text, given, sample)
    else:
        made, note = _made(kind, given, sample.feature_shape)
    return _against_the_rest(text, made), note


def _usual(sample: AttributionSample) -> tuple[Regions, str]:
    try:
        made, note = _superpixels("superpixels", None, sample)
    except (TypeError, ValueError):  # several channels, tables, tuples of arrays
        made, note = _made("grid", min(7, *sample.feature_shape), sample.feature_shape)
        note = f"{note}; {NO_PICTURES}"
    return replace(made, against="rest"), note


def _superpixels(text: str, given: int | None, sample: AttributionSample) -> tuple[Regions, str]:
    if find_spec("skimage") is None:
        made, note = _made("grid", min(7, *sample.feature_shape), sample.feature_shape)
        return made, f"{note}; {NO_SKIMAGE}"
    number = max(2, min(50, sample.n_features // 2)) if given is None else given
    _check_number(text, number, sample.n_features)
    return regions.superpixels(sample, number), f"{number} superpixels"


def _check_number(text: str, number: int, n_pixels: int) -> None:
    if number > n_pixels:
        raise ValueError(f"`--regions` {text}: a map has only {n_pixels} pixels, write at most superpixels:{n_pixels}")


def _made(kind: str, given: Any, plane: tuple[int, ...]) -> tuple[Regions, str]:
    """A grid, or the labels of a picture, on maps of that height and width."""
    height, width = plane
    if kind == "grid":
        cells = min(14, height, width) if given is None else given
        if cells > min(plane):
            raise ValueError(
                f"`--regions` grid:{cells}: a map has only {height} rows and {width} columns, write at most "
                f"grid:{min(plane)}"
            )
        return regions.grid((height, width), cells), f"a grid of {cells} x {cells}"
    picture = open_image(given)
    if picture.size != (width, height):
        raise ValueError(
            f"`--regions`: {given.name} has {picture.width} x {picture.height} pixels, and the network sees {width} x "
            f"{height}, which may be a part of the picture: draw the labels on what it sees, the picture in figure.png"
        )
    if picture.getbbox() is None:
        raise ValueError(f"`--regions`: {given.name} is 0 everywhere, which is no region: give each region a number")
    try:
        return regions.objects(picture, of=(height, width), ignore=0), f"of {given.name}"
    except ValueError as error:
        raise ValueError(str(error).replace("`segmentation`: the picture", f"`--regions`: {given.name}")) from error


def _against_the_rest(text: str, made: Regions) -> Regions:
    if (made.shares() == 1).any():
        raise ValueError(f"`--regions` {text}: one region covers the whole picture, so that it has no rest")
    return replace(made, against="rest")


def part_lines(parts: Parts, analysis: Analysis) -> list[list[tuple[str, str]]]:
    """Lines of the report about the parts of each input, for a reader who reads nothing else."""
    sample, noun, settings = parts.sample, parts.noun, analysis.of_regions(parts.sample)
    try:
        decision = sample.decide(sample.terms(**settings))
    except TooFewSamplesError as error:
        return [[(f"{noun}s", f"undecided: {error}")]] * len(sample.target)
    lines = []
    for row, summary in enumerate(sample.summary(**settings)):
        said = regions_in_words(sample, decision, row, noun=noun, whole=parts.whole)
        sure = dict(summary.lines())["false marks"].replace("region", noun)
        lines.append([(f"{noun}s", said), (f"of {noun}s", f"{parts.made}; {sure}")])
    return lines
