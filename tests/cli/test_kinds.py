"""What `--kind` says of series, volumes and parts of several inputs, and what is refused."""

import json
import re

import numpy as np
import pytest

import metfa
from metfa.cli.readings import kinds_of


def read_in(path):
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)[1])


def saved(folder, shape, **changed):
    explainer = changed.pop("explainer", lambda inputs, target: inputs**2)
    inputs = np.random.default_rng(0).random((1, *shape))
    sample = metfa.explain(explainer, inputs, 0, noise=metfa.noise.Uniform(0.1), n_samples=6, rng=0)
    sample.save(folder)
    return sample


def test_forms():
    series = kinds_of(["series:500:I, II"])[None]
    assert (series.sampling_rate, series.channels) == (500.0, ("I", "II"))
    assert kinds_of(["Series"])[None].sampling_rate is None
    assert kinds_of(["series::I"])[None].channels == ("I",)
    volume = kinds_of(["scan=volume:5,0.7,0.7:mm", "x=image"])["scan"]
    assert (volume.spacing, volume.unit) == ((5.0, 0.7, 0.7), "mm")
    assert kinds_of(None) == {}


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["wave"], "`--kind` must be series[:RATE[:CHANNELS]], .*, got 'wave': there is no such form"),
        (["series:fast"], "got 'series:fast': could not convert"),
        (["series:-1"], "got 'series:-1': `sampling_rate` must be finite and above 0"),
        (["volume:1,2"], "got 'volume:1,2': `spacing` must be three numbers"),
        (["image:3"], "got 'image:3': there is no such form"),
        (["series", "image"], "`--kind` is for all maps twice"),
        (["a=series", "a=image"], "`--kind` names part 'a' twice"),
        (["a=series", "image"], "names parts, and once it does not"),
    ],
)
def test_no_such_kind(texts, said):
    with pytest.raises(ValueError, match=re.escape(said).replace(r"\.\*", ".*")):
        kinds_of(texts)


def test_a_page_of_a_series_that_shapes_leave_open(metfa_command, tmp_path):
    saved(tmp_path / "ecg", (2, 40))
    refused = metfa_command("report", "ecg", "--regions", "none").error
    assert (
        "a series of 2 channels, write `--kind series`, or a picture without a channel axis, write `--kind" in refused
    )
    assert metfa_command("report", "ecg", "--kind", "series:100:I,II").code == 0
    (data,) = read_in(tmp_path / "metfa-report.html")["results"]
    assert data["kind"] == "series"
    assert "II" in json.dumps(data)
    done = metfa_command("show", "ecg", "--kind", "series")
    assert done.code == 0, done.err
    assert "regions:" not in done.out  # no superpixels of a series
    assert "needs maps (height, width)" in metfa_command("show", "ecg", "--kind", "series", "--regions", "grid:2").error
    done = metfa_command("compare", "ecg", "ecg", "--kind", "series", "--out", "changes")
    assert done.code == 0, done.err


def test_distances_of_a_volume(metfa_command, tmp_path):
    saved(tmp_path / "scan", (1, 4, 5, 6), explainer=lambda inputs, target: inputs[:, 0] ** 2)
    assert metfa_command("report", "scan", "--kind", "volume:5,0.7,0.7:mm").code == 0
    (data,) = read_in(tmp_path / "metfa-report.html")["results"]
    assert (data["kind"], '"spacing": [5.0, 0.7, 0.7]' in json.dumps(data), '"mm"' in json.dumps(data)) == (
        "volume", True, True,
    )  # fmt: skip
    assert "a Series has maps (time,)" in metfa_command("report", "scan", "--overwrite", "--kind", "series").error


def test_parts_and_what_has_none(metfa_command, tmp_path):
    inputs = {"ecg": np.random.default_rng(0).random((1, 2, 30)), "table": np.array([[1.0, 2.0, 3.0]])}
    metfa.explain(
        lambda inputs, target: dict(inputs), inputs, 0, noise=dict.fromkeys(inputs, metfa.noise.Uniform(0.1)),
        n_samples=6, rng=0,
    ).save(tmp_path / "both")  # fmt: skip
    assert "`--kind series`" in metfa_command("show", "both", "--out", "views").error
    assert metfa_command("show", "both", "--kind", "ecg=series:10", "--out", "views").code == 0
    page = tmp_path / "views" / "report.html"
    assert [one["kind"] for one in read_in(page)["results"]] == ["series", "bars"]
    for kind, said in (
        ("series", "no part is named, and there are ecg, table: write ecg=KIND"),
        ("x=image", "'x' is no"),
    ):
        assert said in metfa_command("show", "both", "--kind", kind, "--out", "other").error
    saved(tmp_path / "one", (2, 30))
    assert "this result has one map: write KIND alone" in metfa_command("report", "one", "--kind", "a=series").error
