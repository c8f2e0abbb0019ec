"""The page in a browser: decides as metfa.stats does, shows the right numbers, asks nobody for anything."""

import re

import numpy as np
import pytest
import torch

import metfa
from metfa import report, segmentation
from metfa.report import _cells

CORRECTIONS = [None, "bonferroni", "holm", "bh", "by"]


def network(images):
    shore = images[..., :4].mean((1, 2, 3), keepdim=True)
    return torch.cat([0 * images[:, :1], 12 * images[:, :1] * shore - 3], dim=1)


def scene():
    image = torch.full((1, 24, 32), 0.05)
    image[:, :, :4], image[:, 8:14, 18:26] = 0.9, 0.8
    region = image[0] == 0.8
    return segmentation.explain_context(network, image, 1, region=region, min_pixels=1, rng=0, n_samples=14)


def graded(sample, shape=(9, 14), n=40):
    """Features from clearly below to clearly above, with ties at the edges of the scale."""
    rng = np.random.default_rng(3)
    centres = np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape)
    values = np.clip(centres + rng.normal(0, 0.25, (n, 1, *shape)), 0, 1).astype(np.float32)
    return sample(shape, n, values=values, vanilla=centres[None].astype(np.float32))


def stops(opened):
    return opened.page.evaluate("() => window.metfaReport[0].result.edges")


def marks_or_none(found, threshold, alpha, correction):
    """Decisions of the library, None where it refuses for want of samples."""
    try:
        return found.significance_map(threshold, alpha=alpha, correction=correction)
    except metfa.TooFewSamplesError:
        return None


def alphas(opened):
    return opened.page.evaluate("() => JSON.parse(document.getElementById('told').textContent).alphas")


@pytest.mark.parametrize("one_by_one", [True, False])
def test_every_decision_is_that_of_python(one_by_one, sample, open_page, tmp_path, monkeypatch):
    if not one_by_one:
        monkeypatch.setattr(_cells, "MOST_CELLS", 0)
    found = graded(sample)
    opened = open_page(report.write(tmp_path / "r.html", found))
    edges, levels = stops(opened), alphas(opened)
    chosen = range(0, len(edges), 9 if one_by_one else 2)
    for correction in CORRECTIONS:
        opened.page.select_option("[name=correction]", str(correction or "none"))
        for place in range(5, len(levels), 3):
            opened.slide("[name=alpha]", place)
            for edge in chosen:
                opened.slide(".threshold input", edge)
                expected = marks_or_none(found, edges[edge], levels[place], correction)
                if expected is None:
                    assert "nothing can become significant" in opened.page.inner_text(".panel")
                    expected = np.zeros((1, 9, 14))
                assert opened.marks() == expected.ravel().tolist(), (correction, levels[place], edges[edge])


def test_it_starts_as_made_and_returns_there(sample, open_page, tmp_path):
    found = graded(sample)
    opened = open_page(report.write(tmp_path / "r.html", found, alpha=0.03, correction="bh"))
    expected = found.significance_map(alpha=0.03, correction="bh").ravel().tolist()
    assert opened.marks() == expected
    opened.slide("[name=alpha]", 2)
    opened.slide(".threshold input", 100)
    opened.page.select_option("[name=correction]", "holm")
    assert opened.marks() != expected
    opened.page.click("button[type=reset]")
    opened.page.wait_for_function("() => document.querySelector('[name=correction]').value === 'bh'")
    assert opened.marks() == expected
    share = (np.array(expected) == 1).mean()
    assert f"important {share:.1%}".replace("%", " %") in opened.page.inner_text(".shares")


def test_the_figures_of_a_feature(sample, open_page, tmp_path):
    found = graded(sample)
    opened = open_page(report.write(tmp_path / "r.html", found))
    canvas = opened.page.locator("canvas[role=application]").first
    canvas.focus()
    for key in ["ArrowDown"] * 2 + ["ArrowRight"] * 3:  # from the middle, row 4 and column 7
        canvas.press(key)
    text = opened.page.inner_text(".reading")
    row, column = 6, 10
    assert f"row {row}, column {column}" in text
    interval = found.confidence_interval()
    test = found.test(found.threshold())
    above, below = test.above[0, row, column], test.below[0, row, column]
    assert f"\n{above}, {below}\n" in text
    tails = [found.test(found.threshold(), alternative=side).pvalue[0, row, column] for side in ("greater", "less")]
    shown = [float(number) for number in re.search(r"of “below”\n(.*?), (.*?)\n", text).groups()]
    assert shown == pytest.approx(tails, rel=0.05)
    low, high = (float(n) for n in re.search(r"exact 96\.15 %\n(.*?) to (.*?)\n", text).groups())
    assert (low, high) == pytest.approx((interval.low[0, row, column], interval.high[0, row, column]), abs=2e-4)
    smoothed = float(re.search(r"smoothed\n(.*?)\n", text)[1])
    assert smoothed == pytest.approx(found.smoothed()[0, row, column], abs=2e-4)
    kind = {1: "important", 0: "undecided", -1: "unimportant"}[found.significance_map()[0, row, column]]
    assert text.strip().splitlines()[-2] == kind or f"decision\n{kind}" in text
    heights = opened.page.eval_on_selector_all(
        ".histogram rect", "bars => bars.map(bar => +bar.getAttribute('height'))"
    )
    assert len(heights) == 32
    total = opened.page.evaluate(
        f"() => window.metfaReport[0].result.histogramOf({row * 14 + column}, 32).reduce((a, b) => a + b)"
    )
    assert total == 40


@pytest.mark.parametrize("name", ["smoothed", "vanilla", "mean", "lower", "upper", "width"])
def test_layers_are_the_maps_of_the_sample(name, sample, open_page, tmp_path):
    found = graded(sample)
    opened = open_page(report.write(tmp_path / "r.html", found))
    interval = found.confidence_interval()
    expected = {
        "smoothed": found.smoothed(),
        "vanilla": found.vanilla,
        "mean": found.mean(),
        "lower": interval.low,
        "upper": interval.high,
        "width": interval.high - interval.low,
    }[name]
    shown = opened.page.evaluate(
        "name => Array.from({length: 126}, (_, p) => window.metfaReport[0].result.score(name, p))", name
    )
    assert shown == pytest.approx(expected.ravel().tolist(), abs=2e-5)
    before = opened.page.evaluate("() => document.querySelector('canvas[role=application]').toDataURL()")
    opened.page.select_option("[name=layer]", name)
    after = opened.page.evaluate("() => document.querySelector('canvas[role=application]').toDataURL()")
    assert (before == after) == (name == "smoothed")


def test_what_is_painted_are_the_marks(sample, open_page, tmp_path):
    found = graded(sample)
    opened = open_page(report.write(tmp_path / "r.html", found))
    pixels = opened.page.evaluate(
        "() => { const c = document.querySelectorAll('canvas[role=application]')[1];"
        " return Array.from(c.getContext('2d').getImageData(0, 0, 14, 9).data) }"
    )
    colours = np.array(pixels).reshape(9, 14, 4)[..., :3]
    yellow = (colours[..., 0] > 150) & (colours[..., 2] < 100)
    blue = colours[..., 2] > colours[..., 0] + 20
    marks = found.significance_map()[0]
    assert np.array_equal(yellow, marks == 1)
    assert np.array_equal(blue, marks == -1)


def test_the_object_of_a_scene_is_not_tested(open_page, tmp_path):
    found = scene()
    assert found.n_samples == 14
    opened = open_page(found.report(tmp_path / "r.html", correction="bonferroni", alpha=0.3))
    assert opened.marks() == found.significance_map(alpha=0.3, correction="bonferroni").ravel().tolist()
    for correction in ("by", "none"):
        opened.page.select_option("[name=correction]", correction)
        expected = found.significance_map(alpha=0.3, correction=None if correction == "none" else correction)
        assert opened.marks() == expected.ravel().tolist()
    needed = (found.significance_map(alpha=0.3)[~found.region] == 1).mean()
    assert f"needed {100 * needed:.1f} %" in opened.page.inner_text(".shares")
    opened.page.evaluate("() => window.metfaReport[0].view.onPoint(10 * 32 + 20, true)")
    assert "none: part of the object" in opened.page.inner_text(".reading")


def test_words_and_bars(sample, open_page, tmp_path):
    rng = np.random.default_rng(0)
    centres = np.array([0.6, -0.5, 0.02, 0.9])
    values = centres + rng.normal(0, 0.2, (20, 1, 4))
    names = ("good", "<b>bad</b>", "and", "great")
    words = sample((4,), values=values, vanilla=centres[None], inputs=[list(names)], feature_names=names, n=20)
    table = sample((4,), values=values, vanilla=centres[None], inputs=np.ones((1, 4)), feature_names=names, n=20)
    opened = open_page(report.write(tmp_path / "r.html", {"words": words, "table": table}))
    expected = words.significance_map(0.0).ravel().tolist()
    assert opened.marks(0) == opened.marks(1) == expected
    kinds = {1: "positive", 0: "undecided", -1: "negative"}
    looks = opened.page.eval_on_selector_all(".word", "words => words.map(word => word.className)")
    assert [look.split()[1] for look in looks] == [kinds[mark] for mark in expected]
    assert opened.page.inner_text(".text") == "good <b>bad</b> and great"
    rows = opened.page.locator(".row")
    assert rows.first.inner_text().startswith("great = 1")
    assert [rows.nth(k).locator(".kind").inner_text() for k in range(4)] == ["positive"] * 2 + ["negative", "undecided"]
    opened.page.locator(".word").nth(1).click()
    readings = opened.page.locator(".reading")
    assert readings.nth(0).inner_text().startswith("“<b>bad</b>”")
    opened.page.keyboard.press("ArrowRight")
    assert readings.nth(0).inner_text().startswith("“and”")


def test_cursors_of_maps_of_one_shape_are_linked(sample, open_page, tmp_path):
    maps = {"a": graded(sample), "b": sample((9, 14)), "other": sample((5, 6))}
    opened = open_page(report.write(tmp_path / "r.html", maps))
    opened.page.locator("canvas[role=application]").first.hover(position={"x": 40, "y": 40})
    readings = [opened.page.locator(".reading").nth(k).inner_text() for k in range(3)]
    assert readings[0].splitlines()[0] == readings[1].splitlines()[0] != ""
    assert readings[0].startswith("row ")
    assert readings[2].startswith("Point at a feature")


SHAPES = {"one pixel": (1, 1), "wide": (2, 4096), "tall": (300, 1), "large": (600, 500)}


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")  # of one sample of one pixel
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("n", [1, 6])
def test_odd_shapes_and_few_samples(name, n, sample, open_page, tmp_path):
    found = sample(SHAPES[name], n)
    opened = open_page(report.write(tmp_path / "r.html", found), width=600)
    text = opened.page.inner_text("main")
    assert "NaN" not in text
    assert ("nothing can become significant" in text) == (n == 1)
    opened.page.evaluate("() => window.metfaReport[0].view.onPoint(0, true)")
    assert ("interval\nnone: 1 samples are too few" in opened.page.inner_text(".reading")) == (n == 1)


def test_constant_scores(sample, open_page, tmp_path):
    same = np.zeros((8, 1, 6, 8))
    with pytest.warns(metfa.DegenerateAttributionsWarning):
        path = report.write(tmp_path / "r.html", sample(n=8, values=same, vanilla=same[0]))
    opened = open_page(path)
    assert "none: all scores are equal" in opened.page.inner_text(".panel")
    assert set(opened.marks()) == {0}
    assert "NaN" not in opened.page.inner_text("main")


def test_hostile_texts_are_shown_as_texts(sample, open_page, tmp_path):
    hostile = "</script><script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">"
    made = {"explainer": hostile, "noise": hostile, "device": hostile}
    names = (hostile, "javascript:alert(1)", "\u202e\u2028")
    words = sample((3,), inputs=[list(names)], feature_names=names, provenance=made)
    table = sample((3,), feature_names=names, provenance=made)
    opened = open_page(report.write(tmp_path / "r.html", {hostile: words, "t": table, "m": sample()}, title=hostile))
    assert opened.page.title() == hostile
    assert opened.page.locator("main img, main script").count() == 0
    assert opened.page.locator(".word").first.inner_text() == hostile


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(width, scheme, sample, open_page, tmp_path):
    long = "x" * 300
    results = {long: graded(sample), "w": sample((3,), inputs=[[long, "b", "c"]], feature_names=(long, "b", "c"))}
    results["t"] = sample((3,), feature_names=(long, "b", "c"))
    opened = open_page(report.write(tmp_path / "r.html", results, title=long), width=width, color_scheme=scheme)
    assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_letters_are_read_against_their_ground(sample, open_page, tmp_path):
    """Contrast of at least 4.5 to 1 (WCAG AA) of the colours of letters, light and dark."""
    luminance = (
        "colour => { const c = colour.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)"
        ".map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);"
        " return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2] }"
    )
    path = report.write(tmp_path / "r.html", sample())
    for scheme in ("light", "dark"):
        opened = open_page(path, color_scheme=scheme)
        for selector, ground in (
            (".lead", "body"),
            ("dt", ".result"),
            (".plain", ".result"),
            ("figcaption", ".result"),
        ):
            ratio = opened.page.evaluate(
                f"([a, b]) => {{ const l = {luminance};"
                " const [x, y] = [l(getComputedStyle(document.querySelector(a)).color),"
                " l(getComputedStyle(document.querySelector(b)).backgroundColor)].sort((p, q) => q - p);"
                " return (x + 0.05) / (y + 0.05) }",
                [selector, ground],
            )
            assert ratio >= 4.5, (scheme, selector)


def test_every_control_has_a_name(sample, open_page, tmp_path):
    words = sample((3,), inputs=[["a", "b", "c"]], feature_names=("a", "b", "c"))
    opened = open_page(report.write(tmp_path / "r.html", {"m": sample(), "w": words, "t": sample((3,))}))
    unnamed = opened.page.evaluate(
        "() => Array.from(document.querySelectorAll('input, select, button, canvas[tabindex], [role]'))"
        ".filter(e => !(e.labels?.length || e.ariaLabel || e.textContent.trim()))"
        ".map(e => e.outerHTML)"
    )
    assert unnamed == []
