"""The figure of paired differences: each point, bar, mark and text is that of the table."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from metfa.evaluation.paired import verdicts
from metfa.evaluation.tables import Cell, Table
from metfa.plot import study_differences
from metfa.plot._study_differences import MARKS

A = np.arange(1.0, 9.0)
COLUMNS = {  # differences of two measures, rows by columns
    ("B, vanilla", "insertion"): A,
    ("B, vanilla", "deletion"): A,
    ("$C_, mean, P = normal", "insertion"): A * [1, -1, 1, -1, 1, -1, 1, -1],
    ("$C_, mean, P = normal", "deletion"): ["dark"] * 8,
    ("D, vanilla", "insertion"): A[:3],
    ("D, vanilla", "deletion"): -A,
}


def table(columns=None, names=("insertion", "deletion"), better=("higher", "lower"), correction="holm"):
    columns = COLUMNS if columns is None else columns
    rows = tuple(dict.fromkeys(row for row, _ in columns))
    found = verdicts([list(values) for values in columns.values()], list(better) * len(rows), correction)
    cells = dict(zip(columns, map(Cell.of, columns.values(), found), strict=True))
    lines = tuple(tuple((cells[row, name],) for name in names) for row in rows)
    return Table(
        "faithfulness minus that of A (8 inputs), p: exact", "explainer", names, rows, lines,
        notes=("not shown to differ does not mean equal",), against="A",
    )  # fmt: skip


def panels(figure):
    return [axes for part in figure.subfigs for axes in part.axes if axes.get_visible()]


def texts(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def test_points_bars_and_marks_are_those_of_the_table():
    made = table()
    figure = study_differences(made, title="Which is better?")
    assert isinstance(figure, Figure)
    assert [axes.get_title() for axes in panels(figure)] == ["insertion", "deletion"]
    assert [axes.get_xlabel() for axes in panels(figure)] == ["higher is better →", "← lower is better"]
    expected = {
        "insertion": ["better", "not shown to differ", "too few inputs to decide"],
        "deletion": ["worse", None, "better"],
    }
    for place, axes in enumerate(panels(figure)):
        drawn = iter(axes.containers)
        for row, (line, mark) in enumerate(zip(made.cells, expected[axes.get_title()], strict=True)):
            cell = line[place][0]
            if mark is None:
                assert cell.verdict is None
                continue
            point, _, (bar,) = next(drawn).lines
            assert (point.get_xdata()[0], point.get_ydata()[0]) == (cell.mean, row)
            assert (point.get_marker(), point.get_color()) == (MARKS[mark]["marker"], MARKS[mark]["color"])
            ends = bar.get_segments()[0][:, 0]
            np.testing.assert_allclose(ends, [cell.mean - cell.half_width, cell.mean + cell.half_width])
        assert next(drawn, None) is None
    labels = [text.get_text() for text in panels(figure)[0].get_yticklabels()]
    assert labels == list(made.rows)
    said = texts(figure)
    for text in ("Which is better?", "faithfulness minus that of A", "none", f"{made.title}\n{made.notes[0]}"):
        assert text in said
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["better", "worse", "not shown to differ", "too few inputs to decide"]
    figure.savefig(io.BytesIO(), format="png")


def test_one_input_has_no_bar_and_measures_without_direction_say_nothing():
    made = table({("B", "own"): A[:1]}, ("own",), (None,))
    figure = study_differences([made])
    (axes,) = panels(figure)
    assert axes.get_xlabel() == ""
    assert not axes.containers[0].lines[2]
    up = study_differences(table({("B", "own"): A, ("C", "own"): -A}, ("own",), (None,)))
    assert [text.get_text() for text in up.legends[0].get_texts()] == ["higher", "lower"]


def test_many_columns_and_tables():
    names = tuple("abcde")
    wide = table({(row, name): A for row in "XY" for name in names}, names, (None,) * 5)
    figure = study_differences([wide, table()])
    assert [axes.get_title() for axes in panels(figure)] == [*names, "insertion", "deletion"]
    figure.savefig(io.BytesIO(), format="png")


@pytest.mark.parametrize(
    ("tables", "error", "message"),
    [
        (3, TypeError, "`tables` must be a Table or a sequence of them, got int"),
        ([], TypeError, "`tables` must be a Table or a sequence of them, got list"),
        ([3], TypeError, "`tables` must be .*Table"),
        (
            Table("mstd", "map", ("a",), ("b",), (((Cell.of([1.0]),),),)),
            ValueError,
            "`tables`: 'mstd' holds no differences: give `Evaluation.table` an `against`",
        ),
    ],
)
def test_bad_arguments(tables, error, message):
    with pytest.raises(error, match=message):
        study_differences(tables)
    with pytest.raises(TypeError, match="`title` must be a text or None"):
        study_differences(table(), title=3)
