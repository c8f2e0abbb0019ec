"""Tables: means, standard errors and missing counts by hand; what hostile names can do: nothing."""

import csv
import functools
import io
import json
import math
import statistics
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from metfa import Study, evaluate, stats
from metfa._base.tables import from_cell
from metfa._base.warnings import FailedUnitsWarning
from metfa.evaluation.results import Evaluation
from metfa.evaluation.tables import Cell, Table
from metfa.evaluation.units import Unit
from metfa.evaluation.worker import COLUMNS
from metfa.evaluation.written import read_rows, write_tables
from metfa.noise import Gaussian, Uniform
from metfa.stats.student import t_quantile

# By hand: an evaluation of given figures


ERRORS = "±: 95% interval by Student's t"


def untouched(model):
    raise AssertionError


def study(metric, explainers=("a", "b"), sampling=("P",), outer=("o1", "o2"), **settings):
    return Study(
        model=len, inputs=np.zeros((3, 2)), explainers=dict.fromkeys(explainers, untouched), metrics=[metric],
        sampling=dict.fromkeys(sampling, Uniform(0.1)), outer=dict.fromkeys(outer, Uniform(0.1)), **settings,
    )  # fmt: skip


KEYS = (
    "metric", "aggregate", "sampling", "outer", "score", "n_samples", "confidence_level", "level", "constant", "reason"
)  # fmt: skip


def evaluation(described, rows, inputs=("x", "y", "z"), failed=()):
    """Rows are (input, explainer, metric, aggregate, sampling, outer, score), with the rest of the keys where given."""
    units, results = [], {}
    for index, name in enumerate(inputs):
        for explainer in described.methods:
            unit = Unit(f"{name}/{explainer}", index, name, name, explainer)
            units.append(unit)
            if (name, explainer) in failed:
                continue
            mine = [row for row in rows if row[:2] == (name, explainer)]
            results[unit.address] = {
                "rows": [
                    {column: dict(zip(KEYS, row[2:], strict=False)).get(column) for column in COLUMNS} for row in mine
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
        ([1.0, 2.0, 3.0], "2.0000 ± 2.4841"),
        ([1.0, None, 3.0], "2.0000 ± 12.7062 (1 of 3 missing)"),
        ([1.0], "1.0000"),
        ([1.0, None], "1.0000 (1 of 2 missing)"),
        ([None, None], "–"),
        ([], "–"),
        ([5.0, 5.0], "5.0000 ± 0.0000"),
        ([0.0, 0.0], "0.0000 ± 0.0000"),
        ([0.0001, 0.0003], "0.0002 ± 0.0013"),
        ([-1e7], "-1.00e+07"),
        (["a reason", 1.0], "1.0000 (1 of 2 missing)"),
    ],
)
def test_a_cell_by_hand(values, text):
    assert str(Cell.of(values)) == text
    figures = [None if isinstance(value, str) else value for value in values]
    assert as_tuple(Cell.of(values)) == cell(*figures) if values else math.isnan(Cell.of(values).mean)


def test_a_cell_counts_its_reasons():
    assert Cell.of(["flat", 1.0, "flat", "failed"]).reasons == (("flat", 2), ("failed", 1))
    assert Cell.of([None]).reasons == (("no figure recorded", 1),)


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
STABILITY = [
    (*row, *((None, None) if row[3] == "vanilla" else (10, 0.95)), 2.0, None, None if row[-1] is not None else "dark")
    for row in STABILITY
]
TWO_MAPS = {"aggregates": ["vanilla", "smoothed"]}


def test_stability_with_averages_over_the_outer_noises():
    table = evaluation(study("mstd", **TWO_MAPS), STABILITY).table("mstd", explainer="a")
    assert table.rows == ("vanilla", "smoothed, P = P")
    assert table.columns == ("o1", "o2", "average", "level")
    assert [[as_tuple(*found) for found in line] for line in table.cells] == [
        [cell(1, 3, 5), cell(2, None, 4), cell(1.5, None, 4.5), cell(2, 2, 2)],
        [cell(0.5, 0.25, None), cell(1.5, 1, None), cell(1, 0.625, None), cell(2, 2, None)],
    ]
    assert table.title == "mstd, a (3 inputs), N = 10, 95% (97.9% reached), 10 draws of each outer noise, " + ERRORS
    assert table.notes == ("vanilla, o2, average; smoothed, P = P: 1 of 3 missing: dark",)


def levels(**by_explainer):
    """mstd of 1 beside levels, one an input."""
    return [
        (name, explainer, "mstd", "vanilla", None, "o", 1.0, None, None, level, 0.0)
        for explainer, of_inputs in by_explainer.items()
        for name, level in zip("xyz", of_inputs, strict=True)
    ]


def test_mstd_stands_beside_the_level_of_the_maps():
    described = study("mstd", outer=("o",), aggregates=["vanilla"])
    table = evaluation(described, levels(a=(0.5, 0.7, 0.6), b=(0.06, 0.06, 0.06))).table("mstd", explainer="a")
    assert table.columns == ("o", "average", "level")
    assert as_tuple(*table.cells[0][2]) == cell(0.5, 0.7, 0.6)
    assert table.notes == ()  # ten times is not more than ten times
    for text in (table.to_markdown(), table.to_latex(), table.to_csv()):
        assert "level" in text


def test_levels_that_differ_more_than_tenfold_are_said():
    described = study("mstd", outer=("o",), aggregates=["vanilla"])
    result = evaluation(described, levels(a=(0.5, 0.7, 0.6), b=(0.0005, 0.0007, 0.0006)))
    note = (
        "mstd is in the units of the map, and the explainers' levels differ by more than a factor of 10, from 0.0006 "
        "(b) to 0.6 (a): compare mstd / level"
    )
    for table in result.tables():
        assert table.notes == (note,)
        assert str(table).endswith(f"\n\n- {note}\n")
    assert evaluation(described, levels(a=(0.5, -0.7, 0.6), b=(0.5, 0.6, 0.7))).table("mstd", explainer="b").notes == (
        "a: a map's level, its mean, does not show its size if it has both signs; mstd is in its units",
    )
    assert evaluation(described, levels(a=(0.0, 0.0, 0.0), b=(0.5, 0.6, 0.7))).tables()[0].notes[0].endswith(
        "from 0 (a) to 0.6 (b): compare mstd / level"
    )  # fmt: skip


def test_the_share_of_constant_maps_is_shown_where_there_are_any():
    rows = [(*row[:-1], constant) for row, constant in zip(levels(a=(0.5, 0.5, 0.5)), (0.0, 0.5, 0.25), strict=True)]
    table = evaluation(study("mstd", ["a"], outer=("o",), aggregates=["vanilla"]), rows).table("mstd")
    assert table.columns == ("o", "average", "level", "constant")
    assert as_tuple(*table.cells[0][3]) == cell(0, 0.5, 0.25)


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


def test_smoothed_and_vanilla_and_mean_side_by_side():
    table = faithfulness().table("faithfulness")
    assert table.rows == ("a", "b")
    assert table.columns == ("insertion", "deletion", "overall")
    assert table.maps == ("smoothed", "vanilla", "mean")  # the paper's pair first
    assert table.title == (
        "faithfulness: (smoothed, vanilla, mean) (3 inputs), P = P, N = 10, 95% (97.9% reached), baseline black, "
        "steps 100, " + ERRORS
    )
    assert tuple(map(as_tuple, table.cells[0][1])) == (
        cell(0.1, 2.1, 6.1), cell(0.1, 1.1, 2.1), cell(50.1, 51.1, 52.1)
    )  # fmt: skip
    assert tuple(map(as_tuple, table.cells[1][0])) == (cell(10, None, 16), cell(10, 11, 12), cell(60, 61, 62))
    assert {line["map"] for line in csv.DictReader(io.StringIO(table.to_csv()))} == {"smoothed", "vanilla", "mean"}
    assert faithfulness().table("overall").columns == ("overall",)


def test_without_a_vanilla_map_there_is_no_pair():
    rows = [(name, "a", "overall", "smoothed", "P", None, float(index), 10, 0.95) for index, name in enumerate("xyz")]
    described = study("faithfulness", ["a"], aggregates=["smoothed"])
    table = evaluation(described, rows).table("overall")
    assert [as_tuple(one) for one in table.cells[0][0]] == [cell(0, 1, 2)]
    assert table.title.startswith("overall: smoothed (3 inputs), P = P, N = 10, ")
    assert table.maps == ()


def test_means_without_smoothed_maps():
    rows = [(name, "a", "overall", "mean", "P", None, float(index), 3) for index, name in enumerate("xyz")]
    rows += [(name, "a", "overall", "vanilla", None, None, float(index + 1)) for index, name in enumerate("xyz")]
    described = study("faithfulness", ["a"], aggregates=["mean", "vanilla"], n_samples=3)  # too few for an interval
    table = evaluation(described, rows).table("overall")
    assert table.maps == ("vanilla", "mean")
    assert table.rows == ("a",)
    assert tuple(map(as_tuple, table.cells[0][0])) == (cell(1, 2, 3), cell(0, 1, 2))
    assert table.title.startswith("overall: (vanilla, mean) (3 inputs), P = P, N = 3, baseline")


@pytest.mark.parametrize("failed", [[("x", "a")], [("x", "a"), ("y", "a"), ("z", "a")]])
def test_failed_units_count_as_missing(failed):
    result = faithfulness(failed)
    table = result.table("faithfulness")
    assert table.rows == ("a", "b")
    assert "(3 inputs)" in table.title
    for cells in table.cells[0]:
        assert [one.missing for one in cells] == 3 * [len(failed)]
    assert table.notes[1:] == (f"a: {len(failed)} of 3 inputs failed, the first with ValueError: no",)
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
    described = study("robust_faithfulness", ["a"], n_samples=[6, 10], confidence_level=[0.8, 0.9], **TWO_MAPS)
    result = evaluation(described, rows)
    table = result.table("robust_faithfulness")
    assert table.rows[:3] == ("a, N = 6, 80%, O = o1", "a, N = 6, 80%, O = o2", "a, N = 6, 90%, O = o1")
    assert table.title == (
        "robust faithfulness: (smoothed, vanilla) (3 inputs), P = P, 10 draws of each outer noise, baseline black, "
        "steps 100, " + ERRORS
    )
    assert len(table.rows) == 8
    assert [line[0][0].mean for line in table.cells] == pytest.approx([6.8, 6.8, 6.9, 6.9, 10.8, 10.8, 10.9, 10.9])
    chosen = result.table("robust_faithfulness", explainer="a", sampling="P", n_samples=10, confidence_level=0.9)
    assert chosen.rows == ("a, O = o1", "a, O = o2")
    assert [line[0][0].mean for line in chosen.cells] == pytest.approx([10.9, 10.9])
    assert "P = P, N = 10, 90% (97.9% reached), 10 draws" in chosen.title


CHOICES = [
    ({"explainer": "c"}, "`explainer` must be one of a, b, got 'c'"),
    ({"sampling": "R"}, "`sampling` must be one of P, Q, got 'R'"),
    ({"n_samples": 11}, "`n_samples` must be one of 10, 20, got 11"),
    ({"n_samples": "10"}, "`n_samples` must be one of 10, 20, got '10'"),
    ({"n_samples": True}, "`n_samples` must be one of 10, 20, got True"),
    ({"confidence_level": 0.99}, "`confidence_level` must be one of 0.9, 0.95, got 0.99"),
]


@pytest.mark.parametrize(("wrong", "message"), CHOICES)
def test_every_table_takes_the_same_choices(wrong, message):
    metrics = ("mstd", "top_k_overlap", "prediction_agreement", "faithfulness", "robust_faithfulness", "interval_width")
    described = Study(
        model=len, inputs=np.zeros((3, 2)), explainers=dict.fromkeys("ab", untouched),
        metrics={name: {"k": 1} if name == "top_k_overlap" else {} for name in metrics},
        sampling=dict.fromkeys("PQ", Uniform(0.1)), outer={"o": Uniform(0.1)}, n_samples=(10, 20),
        confidence_level=(0.9, 0.95),
    )  # fmt: skip
    result = evaluation(described, [])
    for metric in metrics:
        whole = result.table(metric, explainer="a")
        part = result.table(metric, explainer="a", sampling="Q", n_samples=20, confidence_level=1 - 0.05)
        assert part.rows
        assert len(part.to_csv()) <= len(whole.to_csv())
        with pytest.raises(ValueError, match=message):
            result.table(metric, **{"explainer": "a", **wrong})
    assert result.table("mstd", explainer="a", sampling="Q", n_samples=20, confidence_level=0.95).rows == (
        "vanilla", "mean, P = Q", "smoothed, P = Q"
    )  # fmt: skip
    assert result.table("interval_width", sampling="Q", n_samples=20).rows == (
        "a, 90%",
        "a, 95%",
        "b, 90%",
        "b, 95%",
    )
    assert result.table("interval_width", sampling="Q", n_samples=20).columns == ("P = Q",)


def test_choices_of_a_study_without_samples():
    described = Study(model=len, inputs=np.zeros((3, 2)), explainers={"a": untouched}, metrics=["faithfulness"])
    with pytest.raises(ValueError, match="`sampling` must be left out, because the study has none, got 'P'"):
        evaluation(described, []).table("faithfulness", sampling="P")


@pytest.mark.parametrize(
    ("n", "level", "note"),
    [
        (6, 0.95, "at N = 6 and 95% no sample is trimmed: smoothed equals mean"),
        (8, 0.95, "at N = 8 and 95% no sample is trimmed: smoothed equals mean"),
        (9, 0.95, None),
        (8, 0.9, None),
        ((6, 10), (0.9, 0.95), "at N = 6 and 90% and at N = 6 and 95% no sample is trimmed: smoothed equals mean"),
    ],
)
def test_where_no_sample_is_trimmed(n, level, note):
    described = study("mstd", ["a"], n_samples=n, confidence_level=level)
    notes = [found for found in evaluation(described, []).table("mstd").notes if "trimmed" in found]
    assert notes == ([] if note is None else [note])
    if isinstance(n, int):
        samples = np.random.default_rng(0).normal(size=(n, 5))
        equal = np.allclose(stats.smoothed_median(samples, level, axis=0), samples.mean(axis=0))
        assert equal == (note is not None)


def test_the_title_says_the_settings_and_the_model():
    described = Study(
        model="efficientnet-lite0", inputs=np.zeros((3, 3, 8, 8)), explainers={"a": untouched},
        metrics={"top_k_overlap": {"k": 7}, "faithfulness": {"steps": 9, "baseline": np.zeros((3, 1, 1))},
                 "infidelity": {"noise": Uniform(0.1), "n_perturbations": 4}},
        sampling={"P": Uniform(0.1)}, outer={"o": Uniform(0.1)}, n_outer=4, aggregates=["vanilla"],
    )  # fmt: skip
    overlap, faithful, infidelity = evaluation(described, []).tables()
    assert (
        overlap.title
        == "top_k_overlap, a (3 inputs), 4 draws of each outer noise, k 7, model efficientnet-lite0, " + ERRORS
    )
    assert "baseline of shape (3, 1, 1), steps 9, model efficientnet-lite0" in faithful.title
    assert "n_perturbations 4" in infidelity.title
    assert "noise Uniform(" in infidelity.title
    held = replace(described, metrics={"faithfulness": {"baseline": functools.partial(np.zeros_like)}})
    assert ", baseline partial, steps 100, " in evaluation(held, []).tables()[0].title  # the same in every process
    for table in (overlap, faithful, infidelity):
        assert "\n" not in table.title
        assert table.title in table.to_csv().replace('""', '"')


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
    with pytest.raises(ValueError, match=r"the study has no 'msdt', did you mean 'mstd'\?; it has mstd"):
        result.table("msdt", explainer="a")
    with pytest.raises(ValueError, match="`explainer` must be one of a, b: each has figures of its own"):
        result.table("mstd")
    with pytest.raises(ValueError, match="`explainer` must be one of a, b, got 'A', did you mean 'a'"):
        result.table("mstd", explainer="A")
    assert faithfulness().table("faithfulness", explainer="a").rows == ("a",)
    nothing = evaluation(study("mstd", **TWO_MAPS), []).table("mstd", explainer="a")
    assert nothing.notes == ("a: 3 of 3 missing: not measured",)


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
            shares = [one for one in cells if (one.mean, one.n) == (1, 3)] if "constant" in table.columns else []
            assert len(shares) == (3 if name == "flat" and "constant" in table.columns else 0)
            counted = [one for one in cells if one not in shares]
            assert all((one.n, one.missing) == ((0, 3) if name == "flat" else (3, 0)) for one in counted), table.title
        about = [note for note in table.notes if note.startswith("flat: ")]
        if "flat" in found:
            (note,) = about
            reason = "an empty region" if "region" in table.title else "constant "
            assert note.startswith(f"flat: 3 of 3 missing: {reason}"), note


# Texts


HOSTILE = r"a|b & c\d_e%f$g#h{i}~^<j>" + "\nk\r\n* l `m[n]"


@pytest.fixture
def hostile():
    ones = tuple((Cell.of([1.0, 2.0]), Cell.of([None])) for _ in range(2))
    return Table(HOSTILE, HOSTILE, (HOSTILE, "c"), (HOSTILE, "r"), (ones, ones), notes=(HOSTILE,))


def test_markdown_keeps_its_columns(hostile):
    title, empty, *lines = hostile.to_markdown().splitlines()
    assert empty == ""
    escaped = r"a\|b &amp; c\\d\_e%f\$g\#h{i}\~^&lt;j&gt; k \* l \`m\[n\]"
    assert title == escaped
    *lines, below, note = lines
    assert (below, note) == ("", f"- {escaped}")
    assert len(lines) == 4
    for line in lines:
        bare = line.replace("\\\\", "").replace("\\|", "")
        assert bare.count("|") == 4
        assert len(line) == len(lines[0])
    assert hostile._repr_markdown_() == hostile.to_markdown()


def test_people_see_names_as_they_are(hostile):
    title, *lines = str(hostile).splitlines()
    assert title == r"a|b & c\d_e%f$g#h{i}~^<j> k * l `m[n]"
    assert len(lines) == 7
    assert "\x1b" not in str(replace(hostile, title="\x1b[2J"))


def test_latex_escapes_every_special_character(hostile):
    latex = hostile.to_latex()
    body = latex.split("\\toprule\n")[1].splitlines()
    assert body[0].startswith(
        r"a\textbar{}b \& c\textbackslash{}d\_e\%f\$g\#h\{i\}\textasciitilde{}\textasciicircum{}\textless{}j"
        r"\textgreater{} k * l \`{}m[n] & "
    )
    assert len(body) == 8  # head, rule, two rows, rule, end, note, end
    assert body[6].startswith(r"\par{\footnotesize a\textbar{}b")
    for line in (body[0], body[2], body[3]):
        assert line.endswith(r" \\")
        assert line.replace(r"\&", "").count("&") == 2
    assert r"($1.5000 \pm 6.3531$, --)" in body[2]
    assert latex.count("{") == latex.count("}") + 0
    assert latex.isascii()


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([-1.0, -2.0], r"$-1.5000 \pm 6.3531$"),
        ([-1.0, None], r"$-1.0000$ (1 of 2 missing)"),
        ([-1e-5, -3e-5], r"$-2.00 \times 10^{-5} \pm 1.27 \times 10^{-4}$"),
        ([None], "--"),
    ],
)
def test_latex_numbers_are_mathematics(values, text):
    table = Table("t", "c", ("x",), ("r",), (((Cell.of(values),),),))
    assert f"r & {text} \\\\" in table.to_latex().splitlines()


@pytest.mark.parametrize(
    ("name", "shown"), [("[2pt] x", "{}[2pt] x"), ("*", "{}*"), ("a--b", "a-{}-b"), ("±–", r"$\pm$--")]
)
def test_no_name_is_an_argument_or_a_ligature(name, shown):
    table = Table("t", name, ("x",), (name,), (((Cell.of([1.0]),),),))
    head, rule, row = table.to_latex().split("\\toprule\n")[1].splitlines()[:3]
    assert (head, rule, row) == (rf"{shown} & x \\", r"\midrule", rf"{shown} & $1.0000$ \\")


def test_csv_is_read_back(hostile):
    lines = list(csv.reader(io.StringIO(hostile.to_csv(), newline="")))
    assert lines[0] == [
        "table", "row", "column", "place", "map", "mean", "standard_error", "half_width_95", "n", "missing", "reasons"
    ]  # fmt: skip
    assert lines[1] == [HOSTILE, HOSTILE, HOSTILE, "0", "", "1.5", "0.5", repr(0.5 * t_quantile(0.95, 1)), "2", "0", ""]
    assert lines[2][3:] == ["1", "", "nan", "nan", "nan", "0", "1", "no figure recorded (1)"]
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
    assert read.explainer.unique().tolist() == [HOSTILE]
    assert read.score.tolist() == [row["score"] for row in result.rows]
    pd.testing.assert_frame_equal(read_rows(folder), result.to_dataframe())
    assert (folder / "tables.md").read_text().count("interval width") == 1
    assert [path.name for path in folder.parent.iterdir()] == ["tables"]


@pytest.mark.parametrize(
    "name", ["=1+1", "+1", "-1", "@sum(a)", "\t=1", "\r=1", "\n=1", "'", "'=1", "NA", "a,b", 'a"b']
)
def test_no_name_is_a_formula_and_each_is_read_again(name, tmp_path):
    result = evaluate(small(explainers={name: sizes}, outer={name: Gaussian(0.1)}), store=tmp_path / "store")
    folder = write_tables(result, tmp_path / "tables")
    pd.testing.assert_frame_equal(read_rows(folder), result.to_dataframe())
    pd.testing.assert_frame_equal(read_rows(folder / "rows.csv"), result.to_dataframe())
    for path in folder.glob("*.csv"):
        with path.open(newline="") as file:
            columns, *lines = csv.reader(file)
        found = [cell for line in lines for cell in line]
        assert all(len(line) == len(columns) for line in lines)
        assert not [cell for cell in found if cell.startswith(tuple("=+@\t\r\n"))]
        assert name in map(from_cell, found)


def test_the_bytes_are_those_of_pandas_for_plain_names(tmp_path):
    result = evaluate(small(), store=tmp_path / "store")
    folder = write_tables(result, tmp_path / "tables")
    assert (folder / "rows.csv").read_text() == result.to_dataframe().to_csv(index=False, lineterminator="\n")


def test_rows_of_something_else(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"rows\.csv holds no rows of a study: its columns are a, b"):
        read_rows(tmp_path)


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
    with pytest.raises(FileExistsError, match="tables exists already and holds something else than these tables"):
        write_tables(result, folder)
    assert (folder / "tables.md").read_text() == "changed"


def test_an_existing_folder_is_left_alone(tmp_path):
    result = evaluate(small(), store="memory://existing")
    (tmp_path / "tables").mkdir()
    (tmp_path / "file").write_text("kept")
    for name in ("tables", "file"):
        with pytest.raises(FileExistsError, match=f"{name} exists already and holds something else"):
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
    folder = write_tables(result, tmp_path / "tables")
    assert (folder / "rows.csv").read_text().count("\n") == 1
    for number, table in enumerate(result.tables(), start=1):
        assert table.notes == ("picky: 1 of 1 input failed, the first with ValueError: too large",)
        lines = list(csv.DictReader(io.StringIO((folder / f"table-{number}.csv").read_text())))
        assert lines
        assert {line["reasons"] for line in lines} == {"failed (1)"}
    assert "picky: 1 of 1 input failed, the first with ValueError: too large" in (folder / "tables.md").read_text()


def test_one_explainer_that_fails_everywhere_beside_one_that_works(tmp_path):
    def boom(model):
        def explainer(inputs, target):
            raise RuntimeError("no map")

        return explainer

    with pytest.warns(FailedUnitsWarning, match="3 of 6 units failed"):
        result = evaluate(small(explainers={"Boom": boom, "sizes": sizes}), store=tmp_path / "store")
    of_boom, of_sizes, widths = result.tables()
    assert of_boom.rows == of_sizes.rows == ("vanilla", "mean, P = u", "smoothed, P = u")
    assert all((one.n, one.missing) == (0, 3) for line in of_boom.cells for (one,) in line)
    said = "Boom: 3 of 3 inputs failed, the first with RuntimeError: no map"
    assert of_boom.notes == widths.notes == (said,)
    assert of_sizes.notes == ()
    for text in (str(of_boom), of_boom.to_markdown(), of_boom.to_latex()):
        assert said in text
    assert of_boom.to_csv().count("failed (3)") == 9


def test_a_study_with_an_explainers_own_randomness_alone(tmp_path):
    described = small(outer={"n": Gaussian(0.1), "own": None}, aggregates=["vanilla", "smoothed"])
    table = evaluate(described, store=tmp_path).table("mstd")
    assert table.rows == ("vanilla", "smoothed, P = u")
    own = [line[1][0] for line in table.cells]
    assert table.notes[0] == (
        "vanilla, own, average: 3 of 3 missing: no outer noise, and no randomness of the explainer's own"
    )
    assert (own[0].n, own[1].n) == (0, 3)  # a deterministic explainer has no randomness of its own
    assert own[1].mean > 0
