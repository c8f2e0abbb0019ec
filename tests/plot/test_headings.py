"""Texts of a figure are plain: names of others are no mathematics, wherever they stand."""

import io

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from metfa.plot._headings import draw_heading

NAME = "$\\frac"  # as mathematics it would be an error


@pytest.mark.parametrize("put", [
    lambda ax: ax.set_yticks([0, 1], labels=[NAME, NAME]),
    lambda ax: ax.secondary_yaxis("right").set_yticks([0], labels=[NAME]),
    lambda ax: ax.set_xlabel(NAME),
    lambda ax: ax.figure.legend(handles=ax.plot([0, 1], label=NAME), title=NAME),
    lambda ax: (ax.set_axis_off(), ax.set_title(NAME), ax.text(0, 0, NAME)),
    lambda ax: ax.figure.add_subfigure(ax.get_subplotspec()).subplots().annotate(NAME, (0, 0)),
])  # fmt: skip
def test_names_anywhere_are_plain(put):
    fig = Figure()
    put(fig.subplots())
    draw_heading(fig, NAME)
    fig.savefig(io.BytesIO(), dpi=20)
    named = [text for text in fig.findobj(Text) if "$" in text.get_text()]
    assert len(named) > 1
    assert not any(text.get_parse_math() for text in named)


def test_ticks_that_nobody_sees_are_not_made():
    fig = Figure()
    for ax in fig.subplots(1, 2):
        ax.imshow(np.zeros((4, 4)))
    fig.axes[0].set_axis_off()
    draw_heading(fig, None)
    assert [len(ax.xaxis.majorTicks) > 1 for ax in fig.axes] == [False, True]


@pytest.mark.parametrize("scale", ["log", "logit", "linear"])
def test_numbers_of_matplotlib_stay_mathematics(scale):
    with mpl.rc_context({"axes.formatter.use_mathtext": True}):
        fig = Figure()
        ax = fig.subplots()
        ax.plot([0, 1], [0.01, 0.99])
        ax.set_yscale(scale)
        ax.set_ylabel(NAME)
        draw_heading(fig, NAME)
        fig.savefig(io.BytesIO(), dpi=20)
    numbers = [text for text in ax.get_yticklabels(which="both") if "$" in text.get_text()]
    assert numbers
    assert all(text.get_parse_math() for text in [*numbers, ax.yaxis.get_offset_text()])
    assert not ax.yaxis.label.get_parse_math()
