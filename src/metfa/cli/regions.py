"""Regions on the command line: which a result has, by their names, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metfa import regions
from metfa._base.pictures import open_image
from metfa.by_name.regions import KINDS, region_forms, region_named
from metfa.cli.kinds import is_of_text
from metfa.cli.readings import kind_for
from metfa.plot.kinds import Image
from metfa.results.attribution_parts import AttributionParts
from metfa.results.decisions import TooFewSamplesError
from metfa.results.in_words import regions_in_words
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample
from metfa.segmentation.explanation import ContextExplanation
from metfa.segmentation.surroundings import objects_around
from metfa.text.answers.answered import is_answer
from metfa.text.answers.tree import AnswerTree

if TYPE_CHECKING:
    from metfa.cli.run import Analysis

__all__ = [
    "ANY",
    "PICTURES",
    "SCENES",
    "TEXTS",
    "Parts",
    "check_regions",
    "check_regions_of",
    "forms",
    "part_lines",
    "parts_of",
    "regions_named",
]

PICTURES = (*KINDS["image"], "none", "picture")
SCENES = ("objects", *PICTURES)
TEXTS = (*KINDS["text"], "none")
ANY = (*SCENES, *KINDS["text"])
NO_PICTURES = "superpixels need pictures of 1 or 3 channels"
NO_SKIMAGE = "superpixels need scikit-image: pip install 'metfa[lime]'"


@dataclass(frozen=True)
class Parts:
    """Regions or sentences that are asked about beside the single features, their samples, and what they are."""

    regions: Regions
    sample: AttributionSample
    made: str
    noun: str = "region"
    whole: str = "picture"


def forms(kinds: Sequence[str]) -> str:
    """The allowed texts for regions of these kinds, for `--help`."""
    return region_forms(kinds).replace("[", "\\[")


def check_regions(text: str | None, kinds: Sequence[str] = ANY) -> None:
    """Raise if the text names no regions of these kinds, before anything is sampled."""
    if text is not None:
        region_named(text, "--regions", kinds)


def check_regions_of(text: str | None, plane: tuple[int, int]) -> None:
    """Raise if maps of this height and width cannot have the regions that the text names."""
    named = None if text is None else region_named(text, "--regions", PICTURES)
    if text is None or named is None:
        return
    if named.kind == "superpixels":
        _number(text, named.number, plane[0] * plane[1])
    else:
        _against_the_rest(text, _made(text, plane)[0])


def parts_of(sample: Any, analysis: Analysis, about: Mapping[str, Any]) -> Parts | None:
    """The parts of each input that are asked about; None where there are none.

    These are the regions that `analysis` names, else those that sampling asked about, else the sentences of a text, the
    superpixels of a picture or the objects of a scene.

    Raises
    ------
    ValueError
        If the result cannot have the regions that `analysis` names.
    """
    text, stopping = analysis.regions, getattr(sample, "stopping", None)
    if is_answer(sample) or isinstance(sample, AnswerTree):
        if text not in (None, "none"):
            raise ValueError("`--regions` is not for sources of answers: `metfa explain-answer --group` joins sources")
        return None
    if isinstance(sample, AttributionParts):
        if text not in (None, "none"):
            raise ValueError(
                "`--regions` is for one map, and this result has several parts: in Python write "
                "`result[name].over(...)`"
            )
        return None
    if text is None and stopping is not None and stopping.over is not None and sample.regions is None:
        whole = "picture" if len(sample.feature_shape) == 2 else "words" if is_of_text(sample) else "features"
        return Parts(stopping.over, sample.over(), "the regions that sampling asked about", whole=whole)
    if isinstance(sample, ContextExplanation):
        return _of_scene(text, sample, about)
    if is_of_text(sample):
        return _of_text(text, sample)
    made, note = regions_named(text, sample, kind_for(sample, analysis.kinds))
    return None if made is None else Parts(made, sample.over(made), note)


def _of_text(text: str | None, sample: AttributionSample) -> Parts | None:
    named = region_named(text or "sentences", "--regions", TEXTS, against=None)
    if named is None:
        return None
    made, noun = named(sample), named.kind.removesuffix("s")
    if len(made) > 1:
        made = replace(made, against="rest")
        return Parts(made, sample.over(made), "each against the other words", noun, "words")
    if text is not None:
        raise ValueError(f"`--regions` {text}: the text has only one {noun}, which has no rest")
    return None


def _of_scene(text: str | None, explanation: ContextExplanation, about: Mapping[str, Any]) -> Parts | None:
    named = region_named(text or "objects", "--regions", SCENES)
    if named is None or (text is None and explanation.classes is None):
        return None
    noun, note = "region", ""
    if named.kind == "objects":
        made = _objects(explanation, about)
        noun, note = "object", "all pixels of a class are one object"
        if len(made) == 1 and text is None:
            return None
    elif named.kind == "superpixels":
        made, note = _superpixels(text or "", named.number, explanation.sample)
    else:
        made, note = _made(text or "", explanation.region.shape)
    where = "as the network finds them around the object" if noun == "object" else f"{note}, without the object"
    note = f"{where}, each against the rest around it{f'; {note}' if noun == 'object' else ''}"
    made = replace(made, against="rest")
    return Parts(made, explanation.over(made), note, noun, "surroundings")


def _objects(explanation: ContextExplanation, about: Mapping[str, Any]) -> Regions:
    """What the network finds around the object."""
    if explanation.classes is None:
        raise ValueError(
            "`--regions` objects needs the network's classes of the pixels, which this result does not have: write "
            "superpixels, or explain the scene anew"
        )
    names = about.get("classes")
    named = {int(index): str(name) for index, name in names.items()} if isinstance(names, dict) else {}
    return objects_around(explanation.classes, explanation.region, named)


def regions_named(text: str | None, sample: Any, kind: Any = None) -> tuple[Regions | None, str]:
    """The regions of pictures whose maps lie on them, each against the rest, and a note; None for none.

    Without a text they are superpixels, or a grid where there can be none, and None of what is no picture, as `kind`
    may say.
    """
    of_pixels = isinstance(sample, AttributionSample) and sample.regions is None and len(sample.feature_shape) == 2
    of_pixels = of_pixels and (kind is None or isinstance(kind, Image))
    if text is None:
        return _usual(sample) if of_pixels and min(sample.feature_shape) > 1 else (None, "")
    if text == "none":
        return None, ""
    if not of_pixels:
        raise ValueError(
            f"`--regions` {text} needs maps (height, width) of single pixels, which this result does not have"
        )
    named = region_named(text, "--regions", PICTURES)
    if named is None:
        return None, ""
    if named.kind == "superpixels":
        made, note = _superpixels(text, named.number, sample)
    else:
        made, note = _made(text, sample.feature_shape)
    return _against_the_rest(text, made), note


def _usual(sample: AttributionSample) -> tuple[Regions, str]:
    try:
        made, note = _superpixels("superpixels", 50, sample)
    except (TypeError, ValueError):  # several channels, tables, tuples of arrays
        made, note = _coarse_grid(sample)
        note = f"{note}; {NO_PICTURES}"
    return replace(made, against="rest"), note


def _superpixels(text: str, number: int | None, sample: AttributionSample) -> tuple[Regions, str]:
    if find_spec("skimage") is None:
        made, note = _coarse_grid(sample)
        return made, f"{note}; {NO_SKIMAGE}"
    number = _number(text, number, sample.n_features)
    return regions.superpixels(sample, number), f"{number} superpixels"


def _number(text: str, number: int | None, n_pixels: int) -> int:
    """How many superpixels: the usual number shrinks to the pixels there are, a number that was given does not."""
    number = number or 0
    if ":" not in text:
        return max(2, min(number, n_pixels // 2))
    if number > n_pixels:
        raise ValueError(f"`--regions` {text}: a map has only {n_pixels} pixels, write at most superpixels:{n_pixels}")
    return number


def _coarse_grid(sample: AttributionSample) -> tuple[Regions, str]:
    return _made(f"grid:{min(7, *sample.feature_shape)}", sample.feature_shape)


def _made(text: str, plane: tuple[int, ...]) -> tuple[Regions, str]:
    """A grid, or the labels of a picture, on maps of that height and width."""
    height, width = plane
    named = region_named(text, "--regions", PICTURES)
    if named is not None and named.kind == "grid":
        cells = named.number or 0
        if ":" not in text:
            cells = min(cells, height, width)
        elif cells > min(plane):
            raise ValueError(
                f"`--regions` {text}: a map has only {height} rows and {width} columns, write at most grid:{min(plane)}"
            )
        return regions.grid((height, width), cells), f"a grid of {cells} x {cells}"
    given = Path(text)
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
