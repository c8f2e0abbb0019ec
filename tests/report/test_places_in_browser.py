"""Series and volumes in a browser: marks follow the controls, the cursor says where it is, slices turn."""

import re

import numpy as np

import metfa
from metfa import regions, report
from metfa.plot import Series, Volume

LENGTH = 40
AMBER, BLUE = (255, 198, 26), (10, 47, 102)


def planted(sample, shape, inputs, important, n=20):
    rng = np.random.default_rng(0)
    values = 0.2 * rng.random((n, 1, *shape))
    values[(..., *important)] += 0.7
    values = values.astype(np.float32)
    return sample(shape, n, values=values, vanilla=values[0], inputs=inputs)


COLOUR = """([selector, x, y]) => {
  const canvas = document.querySelectorAll(selector)[0];
  const at = (share, size) => Math.floor(share * size);
  const one = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  one.drawImage(canvas, at(x, canvas.width), at(y, canvas.height), 1, 1, 0, 0, 1, 1);
  return Array.from(one.getImageData(0, 0, 1, 1).data.slice(0, 3));
}"""

DRAWN = """(selector) => {
  const canvas = document.querySelector(selector);
  const small = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  small.drawImage(canvas, 0, 0, canvas.width, canvas.height, 0, 0, 50, 50);
  return small.getImageData(0, 0, 50, 50).data.filter((value, k) => k % 4 === 3 && value > 0).length / 2500;
}"""  # the share of it where anything is drawn


def test_a_series_follows_the_controls(sample, open_page, tmp_path):
    inputs = np.sin(np.arange(2 * LENGTH) / 5).reshape(1, 2, LENGTH)
    found = planted(sample, (LENGTH,), inputs, (slice(10, 20),))
    kind = Series(sampling_rate=10, channels=["first", "second"])
    opened = open_page(report.write(tmp_path / "r.html", found, threshold=0.5, kind=kind))
    page = opened.page
    expected = found.significance_map(0.5)[0]
    assert opened.marks() == expected.tolist()
    box = page.locator(".series-frame canvas").bounding_box()
    left = page.evaluate("() => window.metfaReport[0].view.left")

    def x(step):
        return (left + (step + 0.5) / LENGTH * (box["width"] - left - 12)) / box["width"]

    lane = (100 - 4 - 2) / box["height"]  # the strip below the first channel
    assert page.evaluate(COLOUR, [".series-frame canvas", x(15), lane]) == list(AMBER)
    assert page.evaluate(COLOUR, [".series-frame canvas", x(30), lane]) == list(BLUE)
    edges = page.evaluate("() => window.metfaReport[0].result.edges")
    lowest = 0
    opened.slide(".threshold input", lowest)
    assert opened.marks() == found.significance_map(edges[lowest])[0].tolist()
    assert page.evaluate(COLOUR, [".series-frame canvas", x(30), lane]) != list(BLUE)
    page.mouse.move(box["x"] + x(15) * box["width"], box["y"] + 20)
    assert "time 1.5 s (step 15)" in page.inner_text(".reading")
    assert "interval of the median" in page.inner_text(".reading")
    page.focus(".series-frame canvas")
    page.keyboard.press("ArrowRight")
    assert "step 16" in page.inner_text(".reading")
    page.keyboard.press("End")
    page.keyboard.press("+")
    assert "Shown: 50% of the steps" in page.inner_text("figcaption")
    assert "step 39" in page.inner_text(".reading")
    page.get_by_text("Whole", exact=True).click()
    assert "Shown:" not in page.inner_text("figcaption")


def test_channels_and_windows_of_a_series(sample, open_page, tmp_path):
    inputs = np.sin(np.arange(2 * LENGTH) / 5).reshape(1, 2, LENGTH)
    found = planted(sample, (2, LENGTH), inputs, (1, slice(10, 20)))
    windows = regions.windows(found, 10, together=False)
    page = open_page(report.write(tmp_path / "r.html", found, regions=windows, threshold=0.5, kind=Series())).page
    pooled, single = page.locator(".series-frame canvas").all()
    single.focus()
    page.keyboard.press("ArrowDown")
    assert "channel 1, step 0" in page.locator(".reading").nth(1).inner_text()
    pooled.focus()
    for _ in range(2):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowDown")
    assert "channel 1, steps 20-29" in page.locator(".reading").nth(0).inner_text()
    marks = page.evaluate("() => window.metfaReport.map(({result}) => Array.from(result.marks))")
    assert marks[0] == found.over(windows).significance_map(0.5)[0].tolist()
    assert page.locator(".row").first.inner_text().startswith("channel 1, steps 10-19")


def test_slices_of_a_volume(sample, open_page, tmp_path):
    shape = (4, 6, 8)
    found = planted(sample, shape, np.random.default_rng(0).random((1, 1, *shape)), (2, slice(1, 3), slice(4, 6)))
    kind = Volume(spacing=(3, 1, 1), unit="mm")
    opened = open_page(report.write(tmp_path / "r.html", found, threshold=0.5, kind=kind))
    page = opened.page
    significance = ".views figure:nth-child(2) canvas"
    assert "slice 2 of 0 to 3, 6 mm" in page.inner_text(".slices")  # that of the largest score
    amber = page.evaluate(COLOUR, [significance, 4.5 / 8, 1.5 / 6])
    assert amber[0] > 180 > 120 > amber[2]
    opened.slide(".slices input", 0)
    assert "slice 0 of 0 to 3, 0 mm" in page.inner_text(".slices")
    blue = page.evaluate(COLOUR, [significance, 4.5 / 8, 1.5 / 6])
    assert blue[2] > blue[0]
    assert "(1 of 4 slices have any)" in page.inner_text(".volume")
    page.get_by_label("along columns").check()
    assert page.evaluate("() => document.querySelector('.volume canvas').width") == shape[1]
    ratio = page.locator(".volume canvas").first.evaluate("canvas => canvas.clientWidth / canvas.clientHeight")
    assert abs(ratio - 6 / 12) < 0.02  # four slices 3 mm apart beside six rows 1 mm apart
    page.locator(".volume canvas").first.focus()
    page.keyboard.press("PageDown")
    page.keyboard.press("ArrowDown")
    place = [int(one) for one in re.findall(r"\d+", page.inner_text(".reading h3"))]
    feature = int(np.ravel_multi_index(place, shape))
    assert page.evaluate("() => window.metfaReport[0].view.cursor") == feature
    opened.slide(".threshold input", 100)
    edges = page.evaluate("() => window.metfaReport[0].result.edges")
    assert opened.marks() == found.significance_map(edges[100])[0].ravel().tolist()


def test_a_region_that_smaller_ones_hide_has_no_place(sample, open_page, tmp_path):
    shape = (4, 6, 8)
    found = planted(sample, shape, np.random.default_rng(0).random((1, 1, *shape)), (slice(2, 3), slice(1, 3)))
    masks = np.zeros((3, *shape), bool)
    masks[0], masks[1, :2], masks[2, 2:] = True, True, True
    pooled = found.over(metfa.Regions(masks, how="sum", names=("all", "front", "back")))
    page = open_page(pooled.report(tmp_path / "r.html")).page
    assert "slice 2 of 0 to 3" in page.inner_text(".slices")  # the largest score that is seen
    assert "Where regions overlap, the smallest is shown." in page.inner_text(".volume")
    hidden = "() => document.querySelector('.volume .cross').hidden"
    for name, seen in (("front", True), ("all", False), ("back", True)):
        page.locator(".bars .row", has_text=name).focus()
        assert page.inner_text(".reading h3") == name
        assert page.evaluate(hidden) != seen
    assert "slice 2 of 0 to 3" in page.inner_text(".slices")


def test_a_series_of_very_many_channels_is_drawn(sample, open_page, tmp_path):
    found = planted(sample, (500, 20), np.random.default_rng(0).random((1, 500, 20)), (slice(None), slice(5, 9)))
    page = open_page(found.report(tmp_path / "r.html", threshold=0.5, kind=Series())).page
    assert page.evaluate(DRAWN, ".series-frame canvas") > 0.02
    assert "band: the interval of its median; dashed: the threshold" in page.inner_text("figcaption")
    page.locator("[name=layer]").select_option("width")
    caption = page.inner_text("figcaption")
    assert "band:" not in caption
    assert "dashed:" not in caption
