"""The page of a report in a cell of a notebook, whose choices Python can read: `AttributionSample.explore`.

It needs anywidget: ``pip install "metfa[notebook]"``.
"""

from metfa._base.lazy import lazy_names
from metfa.explore._asked import explored

__all__ = ["Explorer", "explored"]  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__, __dir__ = lazy_names(
    "metfa.explore", {"Explorer": "metfa.explore._explorer", "explored": "metfa.explore._asked"}, "notebook"
)
