"""Figures with matplotlib: maps of an image, a series or a volume, regions, or bars for a table, each with its claim.

`AttributionSample.plot` chooses: images go to :func:`figure`, their differences to :func:`comparison`, regions of
images to :func:`regions`, series to :func:`series`, volumes to :func:`volume`, and columns of a table to :func:`bars`.
All rows of a table at once: :func:`table`. Parts of several inputs are drawn :func:`side_by_side`. Where shapes leave
open what a map is of, give a `kind`: a :class:`Series`, :class:`Volume` or :class:`Image`.
"""

from metfa._base.palettes import PALETTES
from metfa.plot._attacks import attack
from metfa.plot._bars import bars
from metfa.plot._beeswarm import beeswarm
from metfa.plot._certificate import certificate
from metfa.plot._choice import drawing_of
from metfa.plot._comparison import comparison
from metfa.plot._context import context
from metfa.plot._curves import curves
from metfa.plot._notebook import notebook_html
from metfa.plot._ranking import ranking
from metfa.plot._regions import regions
from metfa.plot._series import series
from metfa.plot._side_by_side import side_by_side
from metfa.plot._studies import mstd_ratio, stability_and_faithfulness
from metfa.plot._study_differences import study_differences
from metfa.plot._table import table
from metfa.plot._volume import volume
from metfa.plot.images import figure
from metfa.plot.kinds import Image, Series, Volume

__all__ = [
    "PALETTES",
    "Image",
    "Series",
    "Volume",
    "attack",
    "bars",
    "beeswarm",
    "certificate",
    "comparison",
    "context",
    "curves",
    "drawing_of",
    "figure",
    "mstd_ratio",
    "notebook_html",
    "ranking",
    "regions",
    "series",
    "side_by_side",
    "stability_and_faithfulness",
    "study_differences",
    "table",
    "volume",
]
