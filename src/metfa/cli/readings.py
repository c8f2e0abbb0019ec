"""What maps are of, as `--kind` says it: series, volumes, images."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from metfa.cli.kinds import is_of_text
from metfa.plot.kinds import Image, Kind, Series, Volume
from metfa.results.attribution_parts import AttributionParts
from metfa.results.sample import AttributionSample
from metfa.text.answers.answered import is_answer

__all__ = ["Kinds", "in_options", "kind_for", "kinds_of"]

FORMS = "series[:RATE[:CHANNELS]], volume[:DEPTH,HEIGHT,WIDTH[:UNIT]] or image"
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="What maps are of, where shapes leave it open or axes have units: series:500:I,II (RATE in Hz), "
        "volume:5,0.7,0.7:mm (distances) or image. PART=KIND for a part of several inputs; may be repeated.",
    ),
]
ADVICE = re.compile(r"`kind=metfa\.plot\.(Series|Volume|Image)\(\)`")


def kinds_of(texts: Sequence[str] | None) -> dict[str | None, Kind]:
    """Kinds of the texts of `--kind`, by the part that each is of, which is None where none is named."""
    found: dict[str | None, Kind] = {}
    for text in texts or ():
        part, equals, kind = text.rpartition("=")
        name = part.strip() if equals else None
        if name in found:
            what = f"names part {name!r}" if equals else "is for all maps"
            raise ValueError(f"`--kind` {what} twice: write one of them")
        try:
            found[name] = _kind_of(kind.strip())
        except (TypeError, ValueError) as error:
            raise ValueError(f"`--kind` must be {FORMS}, got {text!r}: {error}") from error
    if None in found and len(found) > 1:
        raise ValueError("`--kind` names parts, and once it does not: write PART=KIND for each")
    return found


def kind_for(result: Any, kinds: Mapping[str | None, Kind]) -> Kind | dict[str | int, Kind] | None:
    """The kind of a result's maps, of several inputs those of its parts; raises where these have none."""
    if not kinds:
        return None
    if isinstance(result, AttributionParts):
        own = {str(name): name for name in result}
        strange = [name for name in kinds if name not in own]
        if strange:
            given = "no part is named" if strange[0] is None else f"{strange[0]!r} is no part"
            raise ValueError(f"`--kind`: {given}, and there are {', '.join(own)}: write {next(iter(own))}=KIND")
        return {own[str(name)]: kind for name, kind in kinds.items()}
    if not isinstance(result, AttributionSample) or is_of_text(result) or is_answer(result):
        raise ValueError("`--kind` is for maps of arrays, and this result is of a text or a scene: leave it out")
    if None not in kinds:
        raise ValueError(f"`--kind` names part {next(iter(kinds))!r}, and this result has one map: write KIND alone")
    return kinds[None]


@contextmanager
def in_options() -> Iterator[None]:
    """Errors that say which `kind` to write in Python say it as an option of the command line."""
    try:
        yield
    except ValueError as error:
        said = ADVICE.sub(lambda found: f"`--kind {found[1].lower()}`", str(error))
        if said == str(error):
            raise
        raise ValueError(said) from error


def _kind_of(text: str) -> Kind:
    kind, *fields = text.split(":")
    kind = kind.lower()
    if kind == "image" and not fields:
        return Image()
    if kind == "series" and len(fields) <= 2:
        channels = [name.strip() for name in fields[1].split(",")] if len(fields) == 2 else None
        return Series(sampling_rate=float(fields[0]) if fields and fields[0] else None, channels=channels)
    if kind == "volume" and len(fields) <= 2:
        spacing = [float(distance) for distance in fields[0].split(",")] if fields else (1.0, 1.0, 1.0)
        return Volume(spacing=spacing, unit=fields[1] if len(fields) == 2 else None)
    raise ValueError("there is no such form")
