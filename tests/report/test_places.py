"""Pages of series and volumes: what they hold, and what is refused with what to write instead."""

import base64
import json
import re
import zlib

import numpy as np
import pytest

import metfa
from metfa import regions, report
from metfa.plot import Image, Series, Volume
from metfa.report import _places

LENGTH = 50


def held(path):
    page = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))


def unpacked(text, dtype):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype)


def test_a_series_holds_its_signal_and_times(sample, tmp_path):
    inputs = np.random.default_rng(0).normal(size=(1, 2, LENGTH))
    found = sample((LENGTH,), inputs=inputs)
    kind = Series(sampling_rate=250, channels=["I", "</script>"])
    data = held(report.write(tmp_path / "r.html", found, kind=kind))
    (one,) = data["results"]
    place = one["located"]
    assert (one["kind"], one["noun"], place["shape"], place["cells"]) == ("series", "step", [1, LENGTH], None)
    assert (place["label"], place["times"]) == ("time (s)", {"first": 0.0, "step": 0.004})
    assert place["channels"] == ["I", "</script>"]
    (signal,) = place["signals"]
    low, high = np.array(signal["low"])[:, None], np.array(signal["high"])[:, None]
    levels = unpacked(signal["levels"], "<u2").reshape(2, LENGTH)
    np.testing.assert_allclose(low + levels / 65535 * (high - low), inputs[0], atol=1e-4)
    times = np.cumsum(np.linspace(1, 2, LENGTH))
    (one,) = held(report.write(tmp_path / "t.html", found, kind=Series(times=times)))["results"]
    np.testing.assert_array_equal(unpacked(one["located"]["times"], "<f8"), times)


def test_windows_and_channels_last_hold_which_feature_a_place_shows(sample, tmp_path):
    found = sample((LENGTH, 2), inputs=np.zeros((1, LENGTH, 2)))
    windows = regions.windows(found, 30, axis=0)
    path = report.write(tmp_path / "r.html", found, regions=windows, kind=Series(axis=0))
    pooled, single = held(path)["results"]
    assert (pooled["noun"], single["noun"]) == ("region", "point")
    assert single["beside"] == 0
    cells = unpacked(single["located"]["cells"], "<i4").reshape(2, LENGTH)
    np.testing.assert_array_equal(cells, np.arange(2 * LENGTH).reshape(LENGTH, 2).T)
    labels = unpacked(pooled["located"]["cells"], "<i4").reshape(2, LENGTH)
    np.testing.assert_array_equal(labels, np.broadcast_to(np.arange(LENGTH) // 30, (2, LENGTH)))
    assert pooled["names"] == list(windows.names)
    assert "the scores of its steps" in path.read_text()


def test_a_volume_holds_its_grey_values_once(sample, tmp_path):
    shape = (4, 5, 6)
    found = sample(shape, inputs=np.random.default_rng(0).random((1, 1, *shape)))
    kind = Volume(spacing=(3, 1, 1), unit="mm", at=(1, 2, 3))
    data = held(report.write(tmp_path / "r.html", found, kind=kind, regions=regions.blocks(found, (2, 1, 1))))
    assert len(data["pictures"]) == 1
    pooled, one = data["results"]
    assert (one["kind"], one["noun"], one["shape"]) == ("volume", "voxel", list(shape))
    assert {name: one["located"][name] for name in ("shape", "spacing", "unit", "at", "axis")} == {
        "shape": list(shape),
        "spacing": [3, 1, 1],
        "unit": "mm",
        "at": [1, 2, 3],
        "axis": 0,
    }
    grey = unpacked(data["pictures"][0], np.uint8).reshape(shape)
    np.testing.assert_array_equal(grey, np.rint(found.inputs[0, 0] * 255))
    assert pooled["kind"] == "volume"
    assert pooled["names"][0].startswith("slices 0-1")


def test_each_result_may_have_its_own_kind(sample, tmp_path):
    series = sample((LENGTH,), inputs=np.zeros((1, LENGTH)))
    results = {"series": series, "table": series, "image": sample()}
    data = held(report.write(tmp_path / "r.html", results, kind={"series": Series()}))
    assert [one["kind"] for one in data["results"]] == ["series", "bars", "maps"]


def test_bad_arguments(sample, tmp_path, monkeypatch):
    def refused(error, said, results, **settings):
        with pytest.raises(error, match=said):
            report.write(tmp_path / "r.html", results, **settings)
        assert not list(tmp_path.iterdir())

    series, volume = sample((LENGTH,), inputs=np.zeros((1, LENGTH))), sample((2, 3, 4))
    refused(ValueError, "a Volume has maps", series, kind=Volume())
    refused(TypeError, "must be an object", series, kind=Series)
    refused(ValueError, r"write `kind=metfa.plot.Volume\(\)`", volume)
    refused(TypeError, "`kind` may be a mapping where", [series], kind={"a": Series()})
    refused(ValueError, "`kind` must have keys of `results`, 'a', got 'b'", {"a": series}, kind={"b": Series()})
    refused(ValueError, "without labels", sample(), kind=Image(rows=("Hz", 0, 1)))
    monkeypatch.setattr(_places, "MOST", 20)
    refused(ValueError, "has 24 voxels, and a page holds at most 20: `metfa.plot.volume`", volume, kind=Volume())
    refused(ValueError, "has 50 points, and a page holds at most 20: `metfa.plot.series`", series, kind=Series())


def test_a_volume_that_is_too_large_may_be_thinned_as_the_message_says(tmp_path, monkeypatch):
    monkeypatch.setattr(_places, "MOST", 20)
    inputs = np.random.default_rng(0).random((1, 1, 4, 4, 4))
    settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 6, "rng": 0}

    def explainer(x, target):
        return x[:, 0]

    whole = metfa.explain(explainer, inputs, 0, **settings)
    with pytest.raises(ValueError, match=re.escape("`inputs[..., ::2, ::2, ::2]`")):
        whole.report(tmp_path / "r.html")
    assert metfa.explain(explainer, inputs[..., ::2, ::2, ::2], 0, **settings).report(tmp_path / "r.html").exists()
