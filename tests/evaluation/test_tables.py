"""Tables: means, standard errors and missing counts by hand; what hostile names can do: nothing."""

import csv
import io
import json
import math
import statistics

import numpy as np
import pandas as pd
import pytest

from metfa import Study, evaluate
from metfa._warnings import FailedUnitsWarning
from metfa.evaluation.results import Evaluation
from metfa.evaluation.tables import Cell, Table
from metfa.evaluation.units import Unit
from metfa.evaluation.worker import COLUMNS
from metfa.evaluation.written import write_tables
from metfa.noise import Gaussian, Uniform

# By hand: an evaluation of given figures


def untouched(model):
    raise AssertionError


def study(metric, explainers=("a", "b"), sampling=("P",), outer=("o1", "o2"), **settings):
    return Study(
        model=len, inputs=np.zeros((3, 2)), explainers=dict.fromkeys(explainers, untouched), metrics=[metric],
        sampling=dict.fromkeys(sampling, Uniform(0.1)), outer=dict.fromkeys(outer, Uniform(0.1)), **settings,
    )  # fmt: skip


def evaluation(described, rows, inputs=("x", "y", "z"), failed=()):
    """Rows are (input, explainer, metric, aggregate, sampling, outer, score), with N and level where given."""
    units, results = [], {}
    for index, name in enumerate(inputs):
        for explainer in described.methods:
            unit = Unit(f"{name}/{explainer}", index, name, name, explainer)
            units.append(unit)
            if (name, explainer) in failed:
                continue
            mine = [row for row in rows if row[:2] == (name, explainer)]
            keys = ("metric", "aggregate", "sampling", "outer", "score", "n_samples", "confidence_level")
            results[unit.address] = {
                "rows": [
                    {column: dict(zip(keys, row[2:], strict=False)).get(column) for column in COLUMNS} for row in mine
                ]
            }
    failures = {f"{name}/{explainer}": {"error": "ValueError: no"} for name, explainer in failed}
    return Evaluation(described, tuple(units), results, failures)


def cell(*values):
    known = [value for value in values if value is not None]
    error = statistics.stdev(known) / len(known) ** 0.5 if len(known) > 1 else math.nan
    return (pytest.approx(statistics.fmean(known) if known else math.nan, nan_ok=True),
            pytest.approx(error, nan_ok=True), len(known), len(values) - len(known))  # fmt: skip


def as_tuple(found):
    return found.mean, found.standard_error, found.n, found.missing


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 2.0, 3.0], "2.0000 ± 0.5774"),
        ([1.0, None, 3.0], "2.0000 ± 1.0000 (1 of 3 missing)"),
        ([1.0], "1.0000"),
        ([1.0, None], "1.0000 (1 of 2 missing)"),
        ([None, None], "–"),
        ([], "–"),
        ([5.0, 5.0], "5.0000 ± 0.0000"),
    ],
)
def test_a_cell_by_hand(values, text):
    assert str(Cell.of(values)) == text
    assert as_tuple(Cell.of(values)) == cell(*values) if values else math.isnan(Cell.of(values).mean)


STABILITY = [
    (name, "a", "mstd", *entry, score)
    for name, scores in {
        "x": (1.0, 2.0, 0.5, 1.5), "y": (3.0, None, 0.25, 1.0), "z": (5.0, 4.0, None, None),
    }.items()
    for entry, score in zip(
        [("vanilla", None, "o1"), ("vanilla", None, "o2"), ("smoothed", "P", "o1"), ("smoothed", "P", "o2")], scores,
        strict=True,
    )
]  # fmt: skip
STABILITY = [(*row, None, None) if row[3] == "vanilla" else (*row, 10, 0.95) for row in STABILITY]


def test_stability_with_averages_over_the_outer_noises():
    table = evaluation(study("mstd"), STABILITY).table("mstd", explainer="a")
    assert table.rows == ("vanilla", "smoothed, P = P")
    assert table.columns == ("o1", "o2", "average")
    assert [[as_tuple(*found) for found in line] for line in table.cells] == [
        [cell(1, 3, 5), cell(2, None, 4), cell(1.5, None, 4.5)],
        [cell(0.5, 0.25, None), cell(1.5, 1, None), cell(1, 0.625, None)],
    ]
    assert table.title == "mstd, a (3 inputs)"


def test_differences_are_paired():
    table = evaluation(study("mstd"), STABILITY).table("mstd", explainer="a", differences=True)
    assert table.rows == ("smoothed, P = P",)
    assert [as_tuple(*found) for found in table.cells[0]] == [
        cell(0.5 - 1, 0.25 - 3, None),
        cell(1.5 - 2, None, None),
        cell(-0.5, None, None),
    ]
    assert table.title == "mstd, a, minus vanilla (3 inputs)"


def faithfulness(failed=()):
    rows = []
    for index, name in enumerate("xyz"):
        for explainer, shift in (("a", 0.0), ("b", 10.0)):
            for place, metric in enumerate(("insertion", "deletion", "overall")):
                base = shift + index + place / 10
                rows.append((name, explainer, metric, "vanilla", None, None, base))
                rows.append((name, explainer, metric, "mean", "P", None, base + 50, 10, None))
                score = None if (name, explainer) == ("y", "b") else base + index**2
                rows.append((name, explainer, metric, "smoothed", "P", None, score, 10, 0.95))
    return evaluation(study("faithfulness"), rows, failed=failed)


def test_pairs_of_smoothed_and_vanilla():
    table = faithfulness().table("faithfulness")
    assert table.rows == ("a", "b")
    assert table.columns == ("insertion", "deletion", "overall")
    assert tuple(map(as_tuple, table.cells[0][1])) == (cell(0.1, 2.1, 6.1), cell(0.1, 1.1, 2.1))
    assert tuple(map(as_tuple, table.cells[1][0])) == (cell(10, None, 16), cell(10, 11, 12))
    paired = faithfulness().table("faithfulness", differences=True)
    assert as_tuple(*paired.cells[0][0]) == cell(0, 1, 4)
    assert as_tuple(*paired.cells[1][0]) == cell(0, None, 4)
    assert faithfulness().table("overall").columns == ("overall",)


def test_without_a_vanilla_map_there_is_no_pair():
    rows = [(name, "a", "overall", "smoothed", "P", None, float(index), 10, 0.95) for index, name in enumerate("xyz")]
    described = study("faithfulness", ["a"], aggregates=["smoothed"])
    table = evaluation(described, rows).table("overall")
    assert [as_tuple(one) for one in table.cells[0][0]] == [cell(0, 1, 2)]
    assert table.title == "overall: smoothed (3 inputs)"
    with pytest.raises(ValueError, match="`differences` are from the vanilla map, which is not among"):
        evaluation(described, rows).table("overall", differences=True)


@pytest.mark.parametrize("failed", [[("x", "a")], [("x", "a"), ("y", "a"), ("z", "a")]])
def test_failed_units_count_as_missing(failed):
    result = faithfulness(failed)
    table = result.table("faithfulness")
    assert table.rows == ("a", "b")
    assert "(3 inputs)" in table.title
    for smoothed, vanilla in table.cells[0]:
        assert smoothed.missing == vanilla.missing == len(failed)
    assert as_tuple(table.cells[1][0][1]) == cell(10, 11, 12)
    assert [table.title for table in result.tables()] == [table.title]
    result.to_dataframe()


def test_several_sizes_levels_and_outer_noises_have_rows_of_their_own():
    rows = [
        (name, "a", "RI", *entry)
        for name in "xyz"
        for outer in ("o1", "o2")
        for entry in [
            ("vanilla", None, outer, 1.0),
            *(("smoothed", "P", outer, n + level, n, level) for n in (6, 10) for level in (0.8, 0.9)),
        ]
    ]
    rows += [(*row[:2], metric, *row[3:]) for row in rows for metric in ("RD", "RO")]
    described = study("robust_faithfulness", ["a"], n_samples=[6, 10], confidence_level=[0.8, 0.9])
    table = evaluation(described, rows).table("robust_faithfulness")
    assert table.rows[:3] == (
        "a, smoothed, P = P, N = 6, level 0.8, o1", "a, smoothed, P = P, N = 6, level 0.8, o2",
        "a, smoothed, P = P, N = 6, level 0.9, o1",
    )  # fmt: skip
    assert len(table.rows) == 8
    assert [line[0][0].mean for line in table.cells] == pytest.approx([6.8, 6.8, 6.9, 6.9, 10.8, 10.8, 10.9, 10.9])


def test_of_samples():
    rows = [
        (name, explainer, "interval_width", "samples", noise, None, value + index, 10, 0.95)
        for index, name in enumerate("xyz")
        for explainer, value in (("a", 1.0), ("b", 2.0))
        for noise in ("P", "Q")
    ]
    table = evaluation(study("interval_width", sampling=("P", "Q")), rows, failed=[("y", "b")]).table("interval_width")
    assert (table.rows, table.columns) == (("a", "b"), ("P = P", "P = Q"))
    assert as_tuple(*table.cells[0][1]) == cell(1, 2, 3)
    assert as_tuple(*table.cells[1][0]) == cell(2, None, 4)


def test_what_there_is_no_table_of():
    result = evaluation(study("mstd"), STABILITY)
    with pytest.raises(ValueError, match=r"nothing was measured by 'msdt', did you mean 'mstd'\?; there is mstd"):
        result.table("msdt", explainer="a")
    with pytest.raises(ValueError, match="`explainer` must be one of a, b: each has figures of its own"):
        result.table("mstd")
    with pytest.raises(ValueError, match="`explainer` must be one of a, b, got 'A', did you mean 'a'"):
        result.table("mstd", explainer="A")
    with pytest.raises(ValueError, match="`explainer`: the table of faithfulness has all explainers, got 'a'"):
        faithfulness().table("faithfulness", explainer="a")
    samples = evaluation(study("interval_width"), [("x", "a", "interval_width", "samples", "P", None, 1.0, 10, 0.95)])
    with pytest.raises(ValueError, match="`differences` are between maps, and interval_width is of samples"):
        samples.table("interval_width", differences=True)
    with pytest.raises(ValueError, match="nothing was measured by 'mstd'; there is nothing"):
        evaluation(study("mstd"), []).table("mstd", explainer="a")


# Constant maps cannot win


def flat(model):
    return lambda inputs, target: np.ones_like(inputs)


def sizes(model):
    return lambda inputs, target: np.abs(inputs)


def linear(rows):
    return rows[:, :2]


def test_constant_maps_count_as_missing_and_cannot_win(tmp_path):
    described = Study(
        model=linear, inputs=np.random.default_rng(0).normal(size=(3, 4)) + 2,
        explainers={"flat": flat, "sizes": sizes},
        metrics={
            "mstd": {}, "top_k_overlap": {"k": 2}, "max_sensitivity": {}, "interval_width": {}, "region_score": {},
            "faithfulness": {"steps": 4}, "robust_faithfulness": {"steps": 4},
        },
        sampling={"u": Uniform(0.1)}, outer={"n": Gaussian(0.1)}, n_outer=3, version="1",
    )  # fmt: skip
    result = evaluate(described, store=tmp_path)
    of_flat = [row for row in result.rows if row["explainer"] == "flat"]
    assert {row["metric"] for row in of_flat} == {row["metric"] for row in result.rows}
    for row in of_flat:
        assert row["score"] is None, row
        assert row["reason"], row
    for table in result.tables():
        if table.corner == "map":
            (name,) = {name for name in ("flat", "sizes") if name in table.title}
            found = {name: [found for line in table.cells for pair in line for found in pair]}
        else:
            found = {
                name: [found for pair in line for found in pair]
                for name, line in zip(table.rows, table.cells, strict=True)
            }
        for name, cells in found.items():
            assert all((one.n, one.missing) == ((0, 3) if name == "flat" else (3, 0)) for one in cells), table.title


# Texts


HOSTILE = r"a|b & c\d_e%f$g#h{i}~^<j>" + "\nk\r\n* l"


@pytest.fixture
def hostile():
    ones = tuple((Cell.of([1.0, 2.0]), Cell.of([None])) for _ in range(2))
    return Table(HOSTILE, HOSTILE, (HOSTILE, "c"), (HOSTILE, "r"), (ones, ones))


def test_markdown_keeps_its_columns(hostile):
    title, empty, *lines = hostile.to_markdown().splitlines()
    assert empty == ""
    assert title.startswith("a|b & c")
    assert title.endswith("k * l")
    assert len(lines) == 4
    for line in lines:
        bare = line.replace("\\\\", "").replace("\\|", "")
        assert bare.count("|") == 4
        assert len(line) == len(lines[0])
    assert str(hostile) == hostile._repr_markdown_() == hostile.to_markdown()


def test_latex_escapes_every_special_character(hostile):
    latex = hostile.to_latex()
    body = latex.split("\\toprule\n")[1].splitlines()
    assert body[0].startswith(
        r"a\textbar{}b \& c\textbackslash{}d\_e\%f\$g\#h\{i\}\textasciitilde{}\textasciicircum{}\textless{}j"
        r"\textgreater{} k * l & "
    )
    assert len(body) == 7  # head, rule, two rows, rule, two ends
    for line in (body[0], body[2], body[3]):
        assert line.endswith(r" \\")
        assert line.replace(r"\&", "").count("&") == 2
    assert r"(1.5000 $\pm$ 0.5000, --)" in body[2]
    assert latex.count("{") == latex.count("}") + 0
    assert latex.isascii()


def test_csv_is_read_back(hostile):
    lines = list(csv.reader(io.StringIO(hostile.to_csv(), newline="")))
    assert lines[0] == ["row", "column", "place", "mean", "standard_error", "n", "missing"]
    assert lines[1] == [HOSTILE, HOSTILE, "0", "1.5", "0.5", "2", "0"]
    assert lines[2][2:] == ["1", "nan", "nan", "0", "1"]
    assert len(lines) == 9


# Files


def small(**changes):
    settings = {
        "model": linear, "inputs": np.random.default_rng(0).normal(size=(3, 4)) + 2, "explainers": {"sizes": sizes},
        "metrics": ["mstd", "interval_width"], "sampling": {"u": Uniform(0.1)}, "outer": {"n": Gaussian(0.1)},
        "n_outer": 3, "version": "1",
    }  # fmt: skip
    return Study(**{**settings, **changes})


def test_rows_are_tidy(tmp_path):
    result = evaluate(small(), store=tmp_path)
    frame = result.to_dataframe()
    assert list(frame.columns) == ["input", "explainer", *COLUMNS]
    assert len(frame) == len(result.rows) == 3 * 4
    assert frame["score"].dtype == np.float64
    assert frame["n_samples"].dropna().unique().tolist() == [10]
    assert frame[frame["aggregate"] == "vanilla"].n_samples.isna().all()
    mean = frame[(frame["metric"] == "mstd") & (frame["aggregate"] == "smoothed")].score.mean()
    assert result.table("mstd").cells[2][0][0].mean == pytest.approx(mean)
    assert evaluation(study("mstd"), []).to_dataframe().shape == (0, 2 + len(COLUMNS))


def test_written_tables(tmp_path):
    result = evaluate(small(explainers={HOSTILE: sizes}, outer={HOSTILE: Gaussian(0.1)}), store=tmp_path / "store")
    folder = write_tables(result, tmp_path / "deep" / "er" / "tables")
    names = {path.name for path in folder.iterdir()}
    assert names == {"rows.csv", "tables.md", "tables.tex", "table-1.csv", "table-2.csv"}
    read = pd.read_csv(folder / "rows.csv")
    assert read.explainer.str.replace("\r", "").unique().tolist() == [HOSTILE.replace("\r", "")]
    assert read.score.tolist() == [row["score"] for row in result.rows]
    assert (folder / "tables.md").read_text().count("interval width") == 1
    assert [path.name for path in folder.parent.iterdir()] == ["tables"]


def test_no_name_leaves_the_folder(tmp_path):
    escaping = "../../../escaped"
    described = small(explainers={escaping: sizes}, sampling={escaping: Uniform(0.1)}, outer={escaping: Gaussian(0.1)})
    write_tables(evaluate(described, store=tmp_path / "store"), tmp_path / "a" / "b" / "tables")
    assert {path.name for path in tmp_path.iterdir()} == {"store", "a"}
    assert [path.name for path in (tmp_path / "a").rglob("*") if path.is_dir()] == ["b", "tables"]


def test_the_same_tables_may_be_written_again(tmp_path):
    result = evaluate(small(), store="memory://again")
    folder = write_tables(result, tmp_path / "tables")
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert write_tables(result, folder) == folder
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    (folder / "tables.md").write_text("changed")
    with pytest.raises(FileExistsError, match="tables exists already, and holds something else than these tables"):
        write_tables(result, folder)
    assert (folder / "tables.md").read_text() == "changed"


def test_an_existing_folder_is_left_alone(tmp_path):
    result = evaluate(small(), store="memory://existing")
    (tmp_path / "tables").mkdir()
    (tmp_path / "file").write_text("kept")
    for name in ("tables", "file"):
        with pytest.raises(FileExistsError, match=f"{name} exists already, and holds something else"):
            write_tables(result, tmp_path / name)
    assert not list((tmp_path / "tables").iterdir())
    assert (tmp_path / "file").read_text() == "kept"


def test_all_or_nothing(tmp_path, monkeypatch):
    result = evaluate(small(), store="memory://nothing")
    monkeypatch.setattr("pathlib.Path.rename", lambda *arguments: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        write_tables(result, tmp_path / "tables")
    assert not list(tmp_path.iterdir())


def picky(model):
    def explainer(inputs, target):
        if inputs[0, 0] > 2.2:
            raise ValueError("too large")
        return np.abs(inputs)

    return explainer


def test_failures_are_written(tmp_path):
    inputs = np.array([[3.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    with pytest.warns(FailedUnitsWarning):
        result = evaluate(small(inputs=inputs, explainers={"picky": picky}), store=tmp_path / "store")
    folder = write_tables(result, tmp_path / "tables")
    (failure,) = json.loads((folder / "failures.json").read_text()).values()
    assert failure["error"] == "ValueError: too large"
    assert "(1 of 3 missing)" in (folder / "tables.md").read_text()


def test_where_everything_failed(tmp_path):
    with pytest.warns(FailedUnitsWarning, match="1 of 1 units failed"):
        result = evaluate(small(inputs=np.array([[3.0, 1.0]]), explainers={"picky": picky}), store=tmp_path / "store")
    assert result.tables() == []
    folder = write_tables(result, tmp_path / "tables")
    assert (folder / "rows.csv").read_text().count("\n") == 1


def test_a_study_with_an_explainers_own_randomness_alone(tmp_path):
    described = small(outer={"n": Gaussian(0.1), "own": None}, aggregates=["vanilla", "smoothed"])
    table = evaluate(described, store=tmp_path).table("mstd")
    assert table.rows == ("vanilla", "smoothed, P = u")
    own = [line[1][0] for line in table.cells]
    assert (own[0].n, own[1].n) == (0, 3)  # a deterministic explainer has no randomness of its own
    assert own[1].mean > 0
