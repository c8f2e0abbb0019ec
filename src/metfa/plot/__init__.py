"""Figures with matplotlib: the maps of an image, or bars with error bars for a table, with what they claim beside them.

`AttributionSample.plot` chooses: images go to :func:`figure`, features along one axis to :func:`bars`.
"""

from metfa.plot._bars import bars
from metfa.plot._images import figure
from metfa.plot._notebook import notebook_html
from metfa.plot._palettes import PALETTES

__all__ = ["PALETTES", "bars", "figure", "notebook_html"]
