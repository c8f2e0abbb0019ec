"""What a difference is taken to: another explainer, another map of the same explainer, or another study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metfa._base.validation import brief, did_you_mean
from metfa.evaluation._identity import identity
from metfa.evaluation._measures import Measure
from metfa.evaluation.metric_tables import beside
from metfa.evaluation.selection import Entry, measure_named

if TYPE_CHECKING:
    from metfa.evaluation.results import Evaluation
    from metfa.evaluation.study import Study

__all__ = ["MAPS", "Reference", "check_alike", "identities", "named_in", "reference_of", "refusal_of"]

MAPS = ("vanilla", "mean", "smoothed")  # in the order in which more is made of them
ALIKE = ("sampling", "outer", "n_samples", "confidence_level", "n_outer", "aggregates", "over")


@dataclass(frozen=True)
class Reference:
    """What is subtracted from each row: an explainer, a map of the row's explainer, or the row of another study."""

    evaluation: Evaluation
    name: str
    explainer: str | None = None
    map: str | None = None

    @property
    def same_units(self) -> bool:
        """Whether the maps of a row and of its reference have the same units for sure."""
        return self.map is not None

    def beside(self, explainer: str, entry: Entry) -> tuple[str, Entry]:
        """The explainer and the map that are subtracted from those of a row."""
        return self.explainer or explainer, entry if self.map is None else beside(entry, self.map)


def reference_of(evaluation: Evaluation, against: Any) -> Reference:
    """What `against` names; raises for anything else than an explainer, a map or another evaluation."""
    if isinstance(against, type(evaluation)):
        if against is evaluation:
            raise ValueError("`against` is the evaluation itself: give another one, an explainer or a map")
        return Reference(against, "the other study")
    explainer, of_map = named_in(evaluation.study, against)
    return Reference(evaluation, explainer or f"the {of_map} map", explainer, of_map)


def named_in(study: Study, against: Any) -> tuple[str | None, str | None]:
    """The explainer, or else the map, of that name in a study; raises if it has neither, or nothing else to compare."""
    explainers = tuple(study.methods)
    maps = tuple(name for name in MAPS[:-1] if name in study.maps)
    if isinstance(against, str):
        if against in explainers and against in maps:
            raise ValueError(f"`against` {against!r} is the name of an explainer and of a map: rename the explainer")
        if (against,) == explainers:
            raise ValueError(f"`against` {against!r} is the only explainer of the study: there is none to compare")
        if against in explainers:
            return against, None
        if against in maps and study.maps != (against,):
            return None, against
    allowed = [f"an explainer ({', '.join(explainers)})"] if len(explainers) > 1 else []
    allowed += [f"a map ({', '.join(maps)})"] if maps and len(study.maps) > 1 else []
    choices = ", ".join([*allowed, "another Evaluation"])
    if isinstance(against, str) and against in MAPS and len(study.maps) == 1:
        raise ValueError(
            f"`against` {against!r}: the study has {study.maps[0]} maps alone, so there is none to compare: study "
            f"others (`sampling`, `aggregates`), or give {choices}"
        )
    hint = did_you_mean(against, [*explainers, *maps]) if isinstance(against, str) else ""
    raise ValueError(f"`against` must be {choices}, got {brief(against)}{hint}")


def refusal_of(measure: Measure, reference: Reference) -> str | None:
    """Why a measure has no differences of this kind, or None."""
    if reference.map is not None and measure.of in ("samples", "predictions"):
        of = "samples" if measure.of == "samples" else "only the vanilla map"
        return f"`against` {reference.map!r} compares maps, but {measure.name} measures {of}: give an explainer"
    if measure.of == "predictions" and reference.explainer is not None:
        return f"`against`: {measure.name} is of the model, which is the same for all explainers"
    return None


def check_alike(evaluation: Evaluation, other: Evaluation, metric: str) -> None:
    """Raise unless both studies measure the same, so that only the model, the explainers or the inputs differ."""
    mine, theirs = (measure_named(metric, one.study) for one in (evaluation, other))
    pairs = [(f"`metrics` of {metric}", (mine.settings, mine.rows), (theirs.settings, theirs.rows))]
    pairs += [(f"`{name}`", getattr(evaluation.study, name), getattr(other.study, name)) for name in ALIKE]
    for name, one, another in pairs:
        if identity(one, name, "") != identity(another, name, ""):
            raise ValueError(
                f"`against`: the other study has other {name}, so a difference could be theirs: evaluate both studies "
                "with the same"
            )


def identities(evaluation: Evaluation) -> dict[str, tuple[str, int | None]]:
    """Content and target of each input by its name: inputs are paired by them."""
    targets = evaluation.study.data.targets
    return {unit.input: (unit.digest, targets[unit.index]) for unit in evaluation.units}
