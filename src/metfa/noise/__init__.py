"""Noise: the laws under which an explanation is sampled.

A noise is any function ``f(x, rng) -> x`` of one input, without its batch axis, and a :class:`numpy.random.Generator`.
It may have a second form for many rows, ``many(rows, rngs)``, see :doc:`/howto/write_a_noise`.

The classes here take NumPy arrays and arrays of any other known library, keep the dtype, the device and (torch) the
graph, and draw their numbers on the host, so that a seed gives the same noise on every device.

All radii and scales are absolute, in the units of the input (pixels in [0, 1]), never fractions of a range. The columns
of a table have units of their own: :func:`per_column` finds a strength for each column from data, and
:func:`from_table` draws values from rows that are alike. Both know the columns of a data frame by name. Series
(channels, length) have :class:`Amplitude`, :class:`TimeShift`, :class:`TimeWarp` and :class:`FilteredGaussian` beside
the others.
"""

from metfa.noise.laws import Brightness, Compose, Gaussian, Laplace, Noise, Uniform
from metfa.noise.likeness import Likeness, likeness
from metfa.noise.near_rows import from_table
from metfa.noise.pixel_space import in_pixel_space
from metfa.noise.series import Amplitude, FilteredGaussian
from metfa.noise.tables import per_column
from metfa.noise.time import TimeShift, TimeWarp

__all__ = [
    "Amplitude",
    "Brightness",
    "Compose",
    "FilteredGaussian",
    "Gaussian",
    "Laplace",
    "Likeness",
    "Noise",
    "TimeShift",
    "TimeWarp",
    "Uniform",
    "from_table",
    "in_pixel_space",
    "likeness",
    "per_column",
]
