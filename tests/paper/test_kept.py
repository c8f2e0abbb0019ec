"""Tables of results: units are kept one by one, and a file that is not what it should be is refused and left."""

import argparse
import json
import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from paper import setting
from paper.kept import VERSION, Kept, read
from paper.setting import described, evaluated, line_of, rows_of

import metfa

SETTING = {"model": "a 1", "n_samples": [10], "noise": {"normal": "Gaussian(std=0.1)"}}


@pytest.fixture
def path(tmp_path):
    kept = Kept.opened(tmp_path / "some.csv", SETTING)
    kept.add("one, or another", {"mstd": 0.0123456, "correlation": "the map is constant"}, 12.34)
    kept.add("two", {"mstd": 1e-7, "correlation": math.nan}, 0.5)
    return kept.path


def test_units_are_read_as_they_were_kept(path):
    kept = Kept.opened(path, SETTING)
    assert kept.lines == {
        "one, or another": {"seconds": 12.3, "mstd": 0.01235, "correlation": "the map is constant"},
        "two": {"seconds": 0.5, "mstd": 1e-7, "correlation": "not finite"},
    }
    assert kept.column("mstd") == [0.01235, 1e-7]
    assert kept.setting == {"version": VERSION, **SETTING}
    assert list(path.parent.iterdir()) == [path]  # nothing is left of writing


def test_what_another_process_kept_is_not_lost(path):
    mine, other = Kept.opened(path, SETTING), Kept.opened(path, SETTING)
    other.add("three", {"mstd": 1.0, "correlation": 1.0}, 1)
    mine.add("four", {"mstd": 2.0, "correlation": 1.0}, 1)
    mine.add("three", {"mstd": 9.0, "correlation": 9.0}, 1)  # the first to be kept counts
    assert list(read(path).lines) == ["one, or another", "two", "three", "four"]
    assert read(path).lines["three"]["mstd"] == 1.0


def test_units_that_are_kept_at_once_are_all_there(path):
    def keep(who):
        mine = Kept.opened(path, SETTING)
        for number in range(8):
            mine.add(f"{who} {number}", {"mstd": number, "correlation": 1.0}, 1)

    with ThreadPoolExecutor() as pool:
        list(pool.map(keep, "abc"))
    assert len(read(path).lines) == 2 + 3 * 8
    assert list(path.parent.iterdir()) == [path]


def test_units_of_a_table_have_the_same_figures(path):
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"three has other figures than the units in .*some.csv: \['flips'\]"):
        Kept.opened(path, SETTING).add("three", {"mstd": 1.0, "correlation": 1.0, "flips": 0.0}, 1)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-3], "its end is missing"),
        (lambda text: "".join(text.splitlines(keepends=True)[:-1]), "it says 2 units and has 1"),
        (lambda text: text.partition("\n")[2], "it has no first line with settings"),
        (lambda text: text.replace('"units"', '"unit"'), r"KeyError: 'units'"),
        (lambda text: text.replace("# {", "# ["), "JSONDecodeError"),
        (lambda text: text.replace("two,", "one or another,0.5,"), "line 4 has 5 entries, the table 4 columns"),
        (lambda text: text.replace("two,", '"one, or another",'), "line 4 repeats the unit one, or another"),
        (lambda text: text.replace("0.01235", "0.0l235"), "could not convert string to float: '0.0l235'"),
        (lambda text: text.replace("0.01235", "nan"), "'nan' is no figure"),
        (lambda text: text.replace("unit,seconds", "unit,second"), "its columns are not those"),
        (lambda text: "", "it has no first line with settings"),
    ],
)
def test_damage_is_refused_by_name_and_left(path, change, message):
    path.write_text(change(path.read_text()))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"some.csv is no table of results .*{message}.*left as it is; move it away"):
        Kept.opened(path, SETTING)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("setting", "named"),
    [({**SETTING, "n_samples": [20]}, "n_samples"), ({**SETTING, "alpha": 0.05}, "alpha"), ({"model": "a 1"}, "n_s")],
)
def test_another_setting_is_refused_by_name_and_left(path, setting, named):
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"some.csv was measured with another setting \(.*{named}.*left as it is"):
        Kept.opened(path, setting)
    assert path.read_bytes() == before


def test_a_figure_that_was_changed_by_hand_is_found(path):
    path.write_text(path.read_text().replace("0.01235", "0.01335"))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"some.csv is no table of results \(ValueError: its figures are not"):
        Kept.opened(path, SETTING)
    assert path.read_bytes() == before


def test_another_version_is_refused_by_name_and_left(path):
    path.write_text(path.read_text().replace(f'"version": {VERSION}', f'"version": {VERSION + 1}'))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"another setting \(version\)"):
        Kept.opened(path, SETTING)
    assert path.read_bytes() == before


def test_a_unit_is_a_line():
    rows = [
        {"metric": "mstd", "outer": "normal", "aggregate": "vanilla", "score": 0.1, "correlation": 0.9},
        {"metric": "RO", "outer": "normal", "aggregate": "smoothed", "sampling": "synonyms, p = 0.5", "n_samples": 10,
         "confidence_level": 0.95, "reason": "constant map"},
    ]  # fmt: skip
    line = line_of(rows)
    assert line["mstd|normal|vanilla||||correlation"] == 0.9
    assert line["RO|normal|smoothed|synonyms, p = 0.5|10|0.95|score"] == "constant map"
    found = rows_of({"seconds": 1.0, **line})
    assert [{name: row.get(name) for name in one} for row, one in zip(found, rows, strict=True)] == rows
    assert len({tuple(line_of([{**row, "score": 1.0}])) for row in rows[:1]} | {tuple(line_of(rows[:1]))}) == 1


def test_functions_are_described_by_their_settings():
    assert described(partial(metfa.noise.Gaussian, 0.1, bounds=(0, 1))) == "Gaussian(bounds=(0, 1), std=0.1)"
    assert described(partial(metfa.text.LEMNA, n_perturbations=500)).startswith(
        "LEMNA(n_perturbations=500, n_components=1, fused=0.1,"  # a default that changes is another setting
    )
    fast = described(partial(setting.fast, metfa.explainers.RISE, n_masks=100))
    assert fast.startswith("RISE(precision='exact', n_masks=100, grid=8,")
    assert described(None) == "None"
    assert described({"a": metfa.noise.Brightness}) == "a=Brightness"


@pytest.fixture
def study():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2).eval()
    noise = {"normal": metfa.noise.Gaussian(0.1)}
    return partial(
        metfa.Study, model=model, inputs=torch.rand(3, 4, generator=torch.Generator().manual_seed(0)), sampling=noise,
        outer=noise, explainers={"sizes": sizes}, metrics=["mstd"], n_outer=3, n_samples=6, version="1",
        targets=[0] * 3,
    )  # fmt: skip


def sizes(model):
    def explainer(inputs, target):
        EXPLAINED.append(len(inputs))
        return np.abs(np.asarray(inputs))

    return explainer


EXPLAINED = []


def options(folder, **more):
    about = {"results": folder, "finished": False, "hours": math.inf, "model": "m.npz", "quick": False}
    return argparse.Namespace(**about | more)


@pytest.mark.filterwarnings("ignore::metfa.MetfaWarning")
def test_a_script_goes_on_from_what_is_kept(study, tmp_path):
    first = evaluated(options(tmp_path), "stability", study(limit=2), among="a")
    (path,) = tmp_path.iterdir()
    assert (path.name, len(read(path).lines)) == ("stability-sizes-m.csv", 2)
    EXPLAINED.clear()
    shown = evaluated(options(tmp_path, finished=True), "stability", study(), among="a")
    assert (len(shown.results), sum(EXPLAINED)) == (2, 0)  # the third is not measured
    late = evaluated(options(tmp_path, hours=-1), "stability", study(), among="a")
    assert (len(late.results), sum(EXPLAINED)) == (2, 0)
    every = evaluated(options(tmp_path), "stability", study(), among="a")
    assert (len(every.results), len(read(path).lines)) == (3, 3)
    scores = [[row["score"] for row in found.rows if row["metric"] == "mstd"] for found in (first, every)]
    assert scores[1][: len(scores[0])] == scores[0]  # as they are kept, with four digits
    assert "mstd" in str(every.table("mstd"))
    with pytest.raises(ValueError, match=r"another setting \(n_samples\)"):
        evaluated(options(tmp_path), "stability", study(n_samples=8), among="a")
    with pytest.raises(ValueError, match=r"another setting \(inputs\)"):
        evaluated(options(tmp_path), "stability", study(), among="b")  # other photographs


def test_committed_tables_are_whole():
    for path in sorted((Path(__file__).parents[2] / "paper" / "results").glob("*.csv")):
        kept = read(path)
        assert kept.setting["version"] == VERSION
        assert path.stat().st_size < 500_000
        json.dumps(kept.setting, allow_nan=False)
