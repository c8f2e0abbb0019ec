"""`explored`: what is asked for is checked, and becomes a widget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metfa._base.lazy import needs_extra
from metfa._base.validation import check_kind, did_you_mean
from metfa.report.settings import PageSettings
from metfa.results.sample import AttributionSample
from metfa.sampling.compare import compare

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from metfa.explore._explorer import Explorer
    from metfa.explore._more import More

__all__ = ["explored"]


def explored(
    sample: AttributionSample,
    other: AttributionSample | None = None,
    *,
    more: More | None = None,
    **settings: Unpack[PageSettings],
) -> Explorer:
    """A widget that shows a result, or its differences to another one; see `AttributionSample.explore`."""
    check_kind(sample, "sample", AttributionSample, "`metfa.explain`")
    known = list(PageSettings.__annotations__)
    for name in settings:
        if name not in known:
            raise TypeError(f"`explore` takes {', '.join(known)}, got `{name}`{did_you_mean(name, known)}")
    if other is not None:
        check_kind(other, "other", AttributionSample, "`metfa.explain`")
        sample = compare(sample, other)
    with needs_extra("sample.explore()", "notebook"):
        from metfa.explore._explorer import Explorer
    return Explorer(sample, more, settings)
