"""Regions in a study: what may be given, which measures take them, and the regions of one input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from metfa._arrays import is_array
from metfa._base.validation import shown
from metfa.by_name.methods import Of
from metfa.by_name.regions import KINDS, NamedRegions, region_named
from metfa.results.regions import Regions, regions_of
from metfa.results.until import Until

if TYPE_CHECKING:
    from metfa.evaluation._measures import Measure

__all__ = ["check_measures_over", "checked_over", "over_in_words", "regions_for", "subtracts"]


def checked_over(given: Any, of: Of) -> Callable[[Any], Any] | Regions | None:
    """`over` of a study: regions for all inputs, or the function that makes those of an input."""
    if given is None or (isinstance(given, Regions) and len(given.masks) == 1):
        return given
    if isinstance(given, Regions):
        raise ValueError(
            f"`over` holds masks for {len(given.masks)} inputs, and a study explains one at a time: give one mask for "
            "all, or a function of an input"
        )
    if isinstance(given, str):
        return region_named(given, "over", KINDS[of])
    if is_array(given):
        return regions_of(given)
    if not callable(given) or isinstance(given, type):
        raise TypeError(f"`over` must be a function of an input, a metfa.Regions or a name, got {shown(given)}")
    return given


def check_measures_over(over: Any, measures: Sequence[Measure], rule: Until | None) -> None:
    """Raise if a measure needs the scores of single features, or if the rule has regions of its own."""
    if over is None:
        return
    single = [measure.name for measure in measures if measure.of in ("maps", "maps under noise")]
    if single:
        raise ValueError(
            f"`metrics`: with `over` there are only the scores of regions, but single features' are needed for "
            f"{', '.join(single)}: measure this in a study without `over`"
        )
    if rule is not None and rule.over is not None:
        raise ValueError("`over` and `Until(over=)` are both given: with `over` the rule asks about these regions")


def regions_for(over: Any, one: Any) -> Regions | None:
    """The regions of one clean input."""
    if over is None or isinstance(over, Regions):
        return over
    made = over(one)
    if not isinstance(made, Regions):
        raise TypeError(f"`over` must return a metfa.Regions of an input, got {shown(made)}: see `metfa.regions`")
    if len(made.masks) != 1:
        raise ValueError(f"`over` must return the regions of one input, got masks for {len(made.masks)}")
    return made


def over_in_words(over: Any) -> str:
    """The regions for the title of a table."""
    if isinstance(over, NamedRegions):
        return f"{over.kind}{'' if over.number is None else f':{over.number}'}, each against the rest"
    if isinstance(over, Regions):
        return repr(over)
    named = getattr(over, "func", over)  # of a partial
    return f"regions by {getattr(named, '__name__', type(named).__name__)}"


def subtracts(over: Any) -> bool:
    """Whether something is subtracted from each region for sure, so that the threshold is 0."""
    return isinstance(over, NamedRegions) or (isinstance(over, Regions) and over.against is not None)
