"""`metfa compare`: what changed between two folders of results."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from metfa._base.percents import percent
from metfa._base.provenance import printable
from metfa._base.validation import check_number, one_of
from metfa._base.writing import new_file, new_folder
from metfa.by_name.regions import region_named
from metfa.cli.drawing import drawn_figures
from metfa.cli.folders import REPORT, check_new
from metfa.cli.kinds import is_of_text
from metfa.cli.options import Colours, Confidence, Correction, Overwrite, Palette
from metfa.cli.pairs import Pair, Pairs, pairs_of
from metfa.cli.parsing import folders_of
from metfa.cli.readings import Kinds, kind_for, kinds_of
from metfa.cli.regions import PICTURES, TEXTS, Parts, check_regions, forms, part_lines, regions_named
from metfa.cli.report import lines_of, report
from metfa.cli.run import Analysis
from metfa.cli.titles import title_of
from metfa.cli.views import print_views, print_words
from metfa.results.changed_inputs import changes_in
from metfa.results.changes import Changes
from metfa.results.corrections import check_alpha
from metfa.results.decisions import TooFewSamplesError
from metfa.results.differences import sides_of
from metfa.results.sample import AttributionSample
from metfa.results.scaled import SCALES
from metfa.stats.validation import as_level

__all__ = ["CHANGED", "CHANGES", "MARK_OF_CHANGES", "compare", "json_of"]

CHANGES, PAGE = "changes.json", "report.html"
MARK_OF_CHANGES = '"about_intervals": '  # by which a file of `json_of` is known
CHANGED = 1  # exit code
NAMED = 10  # inputs that are in one folder alone


def compare(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="Folder of results.", show_default=False)],
    after: Annotated[
        Path, typer.Argument(metavar="AFTER", help="Folder of later results of the same inputs.", show_default=False)
    ],
    regions: Annotated[
        str | None,
        typer.Option(
            help=f"Regions that are compared: {forms((*PICTURES, *TEXTS))}; by default superpixels:50, or sentences."
        ),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="How each map is scaled before it is subtracted: raw, share, rank or mean.")
    ] = "raw",
    names: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="What to call the two instead of before and after.")
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Smallest change that matters, in the units of the scores; 0 asks for any change.")
    ] = 0.0,
    fail_on_change: Annotated[
        bool,
        typer.Option(
            "--fail-on-change", help="Exit code 1 if anything changed by more than --delta, in all inputs together."
        ),
    ] = False,
    alpha: Annotated[float, typer.Option(help="Level of the tests.")] = 0.05,
    confidence: Confidence = 0.95,
    correction: Annotated[
        Correction | None,
        typer.Option(
            help="Correction for many differences. By default holm over regions and over all inputs (closed-e-bh after "
            "--until), none for the single pixels or words of one input."
        ),
    ] = None,
    kinds: Kinds = None,
    palette: Palette = Colours.colourblind,
    out: Annotated[
        Path | None, typer.Option("--out", help="New folder for figures, a page, a report and changes.json.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Compare two folders of results: where does the explanation give more than before, and where less?

    Both must explain the same noisy copies: the same inputs, noise, seed and samples. A folder may hold those of many
    inputs. Changes are found in all inputs together as one family, by holm unless --correction says otherwise.
    """
    check_regions(regions, (*PICTURES, *TEXTS))
    one_of(scale, "--scale", ("raw", *SCALES))
    check_number(delta, "--delta")
    check_alpha(alpha)
    as_level(confidence, "--confidence")
    sides_of(names)
    if out is not None:
        check_new(out, CHANGES, overwrite=overwrite)
    given = None if correction is None else correction.value
    analysis = Analysis(alpha, confidence, given, None, palette.value, regions=regions, kinds=kinds_of(kinds))
    asked = Question(scale, names, delta, analysis)
    found = pairs_of(before, after)
    alone = [*found.only_before, *found.only_after]
    if fail_on_change and alone:
        raise ValueError(
            f"`--fail-on-change` needs the same inputs in both folders, and one alone has {_listed(alone)}"
        )
    parts = [asked.parts(asked.difference(pair)) for pair in found.pairs]
    try:
        changes = asked.changes(found.pairs, parts)
        lines = changes.lines()
    except TooFewSamplesError as error:
        if fail_on_change:
            raise
        changes, lines = None, [("changed", f"undecided: {error}")]
    if fail_on_change and changes is not None and changes.other_targets:
        name, one, other = changes.other_targets[0]
        raise ValueError(
            f"`--fail-on-change` needs the same class explained on both sides, and {printable(name)} has {one} before "
            f"and {other} after: explain both with the same `--target`"
        )
    lines = [*_cautions(found, before, after), *lines]
    said = lines_of(lines)
    if len(found.pairs) > 1 and out is None:
        each = [(pair.name[:60], asked.in_short(pair, of)) for pair, of in zip(found.pairs, parts, strict=True)]
        print_views(f"{said}\n\n{lines_of(each)}", [])
    else:
        text = "\n\n".join([said, *map(asked.report, found.pairs, parts)])
        if len(found.pairs) == 1 and is_of_text(difference := asked.difference(found.pairs[0])):
            print_words(difference, found.pairs[0].about(names), asked.analysis)
        print_views(text, [] if out is None else _write(out, asked, found.pairs, parts, text, changes, overwrite))
    if fail_on_change and changes:
        raise typer.Exit(CHANGED)


def json_of(changes: Changes) -> bytes:
    """The changes for programs."""
    return (json.dumps({"schema_version": 1, **changes.as_dict()}, indent=1, allow_nan=False) + "\n").encode()


class Question(NamedTuple):
    """What is asked about each pair of results."""

    scale: str
    names: tuple[str, str] | None
    delta: float
    analysis: Analysis

    def difference(self, pair: Pair) -> AttributionSample:
        """The paired differences of the single features."""
        return pair.difference(self.scale, self.names)

    def parts(self, difference: AttributionSample) -> Parts | None:
        """The regions or sentences that are asked about."""
        text = self.analysis.regions
        if is_of_text(difference):
            named = region_named(text or "sentences", "--regions", TEXTS, against=None)
            made, note = (None, "") if named is None else (named(difference), "means over words")
            if made is None or (len(made) == 1 and text is None):
                return None
            return Parts(made, difference.over(made), note, (text or "sentences").removesuffix("s"), "words")
        made, note = regions_named(text, difference, kind_for(difference, self.analysis.kinds))
        made = None if made is None else replace(made, against=None)
        return None if made is None else Parts(made, difference.over(made), note)

    def changes(self, pairs: list[Pair], parts: list[Parts | None]) -> Changes:
        """What changed in all pairs together: of regions where there are some, else of the single features."""
        differences = {}
        for pair, of in zip(pairs, parts, strict=True):
            pooled = of.sample if of is not None and of.noun == "region" else None
            differences[_free(pair.name, differences)] = self.difference(pair) if pooled is None else pooled
        settings = {"alpha": self.analysis.alpha, "correction": self.analysis.correction}
        return changes_in(differences, self.delta, confidence_level=self.analysis.confidence, **settings)

    def report(self, pair: Pair, parts: Parts | None) -> str:
        """The report of one pair."""
        about = {"input": pair.name, **pair.about(self.names)}
        return report(self.difference(pair), about, self.analysis, parts, together=pair.together)

    def in_short(self, pair: Pair, parts: Parts | None) -> str:
        """One line of it."""
        if parts is not None:
            return part_lines(parts, self.analysis)[0][0][1]
        summary = self.difference(pair).summary(**self.analysis.settings)[0]
        kinds = ((1, summary.above), (-1, summary.below), (0, summary.undecided))
        return "; ".join(f"{percent(share, 2)} {summary.kinds[mark]}" for mark, share in kinds)


def _cautions(found: Pairs, before: Path, after: Path) -> list[tuple[str, str]]:
    lines = []
    if before.resolve() == after.resolve():
        lines.append(("caution", "both are the same folder"))
    times = [[str(one.sample.provenance.get("started", "")) for one in pair] for pair in found.pairs]
    if all(first > later > "" for first, later in times):
        lines.append(("caution", f"{before} was made after {after}: are they in the right order?"))
    for side, names in (("only before", found.only_before), ("only after", found.only_after)):
        if names:
            lines.append((side, f"{_listed(names)}: not compared"))
    return lines


def _write(
    out: Path,
    asked: Question,
    pairs: list[Pair],
    parts: list[Parts | None],
    text: str,
    changes: Changes | None,
    overwrite: bool,
) -> list[Path]:
    """Write figures of each pair, one page, the report and the changes into the new folder `out`; where they are."""
    from metfa.report.writing import numbered, write

    folders = [out] if len(pairs) == 1 else folders_of(out, [Path(_safe(pair.name)) for pair in pairs])
    written, results, regional = [], [], {}
    with new_folder(out, replaces=CHANGES if overwrite else None) as temporary:
        for pair, of, folder in zip(pairs, parts, folders, strict=True):
            sample, about, place = asked.difference(pair), pair.about(asked.names), temporary / folder.relative_to(out)
            place.mkdir(exist_ok=True)
            for name, content in drawn_figures(sample, about, asked.analysis, of).items():
                _put(place / name, content)
                written.append(folder / name)
            results.append((title_of(about) or pair.name, sample))
            if of is not None:
                regional[sample.input_names] = of.regions
        write(
            temporary / PAGE, numbered(results), title="What changed?", alpha=asked.analysis.alpha,
            correction=asked.analysis.correction, confidence_level=asked.analysis.confidence,
            regions=lambda sample: regional.get(sample.input_names), kind=asked.analysis.kinds.get(None),
        )  # fmt: skip
        if changes is not None:
            _put(temporary / CHANGES, json_of(changes))
        _put(temporary / REPORT, f"{text}\n".encode())
    return [*written, out / PAGE]


def _put(path: Path, content: bytes) -> None:
    with new_file(path) as file:
        file.write(content)


def _safe(name: str) -> str:
    """A name of a folder for an input of any name, which has no dots and leads nowhere else."""
    return re.sub(r"[^\w -]+", "-", name)[:60].strip("- ")


def _free(name: str, taken: dict[str, Any]) -> str:
    names = (f"{name} ({k})" if k > 1 else name for k in range(1, len(taken) + 2))
    return next(one for one in names if one not in taken)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return printable(", ".join(names[:NAMED])) + more
