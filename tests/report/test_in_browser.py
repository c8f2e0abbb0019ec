"""The page in a browser: decides as metfa.stats does, shows the right numbers, asks nobody for anything."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import metfa
from metfa import report, segmentation
from metfa.report import _cells
from metfa.results.stopping import Look, Stopping

CORRECTIONS = [None, "bonferroni", "holm", "bh", "by", "e-bh", "closed-e-bh"]
STOPPED = Stopping("reached", {"undecided": 0.4}, 0.05, "e-bh", 0.95, 0, (0.5,), (Look(40, 0.3, None, None, 1.0),))


def network(images):
    shore = images[..., :4].mean((1, 2, 3), keepdim=True)
    return torch.cat([0 * images[:, :1], 12 * images[:, :1] * shore - 3], dim=1)


def scene():
    image = torch.full((1, 24, 32), 0.05)
    image[:, :, :4], image[:, 8:14, 18:26] = 0.9, 0.8
    region = image[0] == 0.8
    return segmentation.explain_context(network, image, 1, region=region, min_pixels=1, rng=0, n_samples=14)


def graded(sample, shape=(9, 14), n=40, **settings):
    """Features from clearly below to clearly above, with ties at the edges of the scale."""
    rng = np.random.default_rng(3)
    centres = np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape)
    values = np.clip(centres + rng.normal(0, 0.25, (n, 1, *shape)), 0, 1).astype(np.float32)
    return sample(shape, n, values=values, vanilla=centres[None].astype(np.float32), **settings)


def stops(opened):
    return opened.page.evaluate("() => window.metfaReport[0].result.edges")


def marks_or_none(found, threshold, alpha, correction):
    """Decisions of the library, None where it refuses for want of samples."""
    try:
        return found.significance_map(threshold, alpha=alpha, correction=correction or "none")
    except metfa.TooFewSamplesError:
        return None


def alphas(opened):
    return opened.page.evaluate("() => JSON.parse(document.getElementById('data').textContent).alphas")


@pytest.mark.parametrize("stopping", [None, STOPPED])
@pytest.mark.parametrize("one_by_one", [True, False])
def test_every_decision_is_that_of_python(one_by_one, stopping, sample, open_page, tmp_path, monkeypatch):
    if not one_by_one:
        monkeypatch.setattr(_cells, "MOST_CELLS", 0)
    found = graded(sample, stopping=stopping)
    opened = open_page(report.write(tmp_path / "r.html", found))
    edges, levels = stops(opened), alphas(opened)
    computed = opened.page.evaluate("() => window.metfaReport[0].result.computed")
    chosen = sorted({*range(0, len(edges), 9 if one_by_one else 2), computed})
    more = 0  # decisions by which closed e-BH marks more than e-BH
    for correction in CORRECTIONS:
        opened.page.select_option("[name=correction]", str(correction or "none"))
        if stopping is not None and correction in ("holm", "bh", "by"):
            opened.slide(".threshold input", chosen[0])
            assert "for a number of samples that was fixed beforehand" in opened.page.inner_text(".panel")
            assert not any(opened.marks())
            continue
        for place in range(5, len(levels), 3):
            for edge, (marks, text) in zip(chosen, opened.marks_at(place, chosen), strict=True):
                in_effect = correction
                if correction == "closed-e-bh" and not (edge == computed and stopping):
                    in_effect = "e-bh"  # the threshold was chosen by these samples, or by whoever moves the slider
                expected = marks_or_none(found, edges[edge], levels[place], in_effect)
                if expected is None:
                    assert "nothing can become significant" in text
                    expected = np.zeros((1, 9, 14))
                else:
                    assert ("decided by e-BH: closed e-BH is for a threshold" in text) == (in_effect != correction)
                assert marks == expected.ravel().tolist(), (correction, levels[place], edges[edge])
                if in_effect == "closed-e-bh":
                    more += bool((expected != marks_or_none(found, edges[edge], levels[place], "e-bh")).any())
    assert bool(more) == bool(stopping)


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
    assert f"important {share:.1%}" in opened.page.inner_text(".shares")


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
    low, high = (float(n) for n in re.search(r"of the median, 96\.15%\n(.*?) to (.*?)\n", text).groups())
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


NORMAL = {"explainer": "E", "noise": "Gaussian(std=0.2)", "gaussian_std": 0.2, "rng": "0x7"}


@pytest.mark.parametrize("stopping", [None, replace(STOPPED, split=8)])
def test_the_layer_of_certified_radii(stopping, sample, open_page, tmp_path):
    found = graded(sample, stopping=stopping, provenance=NORMAL)
    terms = {"threshold": 0.45, "alpha": 0.1, "correction": "e-bh", "split": 6}
    opened = open_page(report.write(tmp_path / "r.html", found, **terms))
    expected = found.certified_radius(**terms)
    shown = opened.page.evaluate("() => Array.from(window.metfaReport[0].result.maps.radius)")
    assert shown == pytest.approx(expected.ravel().tolist(), rel=1e-6)
    assert opened.marks() == np.sign(found.significance_map(**terms)).ravel().tolist()
    before = opened.page.evaluate("() => document.querySelector('canvas[role=application]').toDataURL()")
    opened.page.select_option("[name=layer]", "radius")
    assert opened.page.evaluate("() => document.querySelector('canvas[role=application]').toDataURL()") != before
    caption = opened.page.inner_text("figcaption")
    assert "As made: threshold 0.45, alpha 0.1, e-bh." in caption
    assert f"{expected.max():.3g}" in caption
    assert opened.page.input_value(".threshold input") == str(np.flatnonzero(np.isclose(stops(opened), 0.45))[0])
    for feature in (int(expected.argmax()), int((expected > 0).argmin())):
        opened.page.evaluate("feature => window.metfaReport[0].view.onPoint(feature, 'move')", feature)
        radius = expected.ravel()[feature]
        text = opened.page.inner_text(".reading")
        shown = f"{radius:.3g}" if radius else "none"
        assert f"certified L2 radius of the median. As made: threshold 0.45, alpha 0.1, e-bh\n{shown}" in text
        assert "samples after the first 6, above" in text


def test_after_until_the_first_round_is_not_tested(sample, open_page, tmp_path):
    """At every stop of the slider, and it starts where sampling stopped."""
    found = graded(sample, stopping=replace(STOPPED, split=10, thresholds=(0.4,)), provenance=NORMAL)
    opened = open_page(report.write(tmp_path / "r.html", found))
    assert opened.marks() == found.significance_map().ravel().tolist()
    assert "fixed by the first 10 samples: 0.4" in opened.page.inner_text(".panel")
    opened.page.select_option("[name=correction]", "none")
    for edge in range(0, len(stops(opened)), 20):
        opened.slide(".threshold input", edge)
        expected = found.significance_map(stops(opened)[edge], correction="none", split=10)
        assert opened.marks() == expected.ravel().tolist()
    opened.page.evaluate("() => window.metfaReport[0].view.onPoint(3, 'move')")
    text = opened.page.inner_text(".reading")
    assert "its 30 samples that are tested" in text
    above, below = (float(shown) for shown in re.search(r"1 / e-value of .*\n(.*?), (.*?)\n", text).groups())
    tests = [
        found.test(stops(opened)[edge], alternative=side, split=10).pvalue.ravel()[3] for side in ("greater", "less")
    ]
    assert (above, below) == pytest.approx(tests, rel=0.05)


def test_no_layer_of_radii_where_nothing_is_promised(sample, open_page, tmp_path):
    normal = graded(sample, provenance=NORMAL)
    uniform = graded(sample)
    odd = graded(sample, provenance={**NORMAL, "gaussian_std": "0.2"})
    few = graded(sample, n=6, provenance=NORMAL)
    for number, (found, terms) in enumerate([
        (normal, {}),  # the threshold saw the samples
        (normal, {"threshold": 0.4, "correction": "by"}),
        (uniform, {"threshold": 0.4}),
        (odd, {"threshold": 0.4}),
        (few, {"threshold": 0.4, "correction": "bonferroni"}),
    ]):  # fmt: skip
        opened = open_page(report.write(tmp_path / f"{number}.html", found, **terms))
        assert "radius" not in opened.page.evaluate("() => window.metfaReport[0].result.layerNames")
        opened.page.evaluate("() => window.metfaReport[0].view.onPoint(3, 'move')")
        assert "certified" not in opened.page.inner_text("main")


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
        expected = found.significance_map(alpha=0.3, correction=correction)
        assert opened.marks() == expected.ravel().tolist()
    needed = (found.significance_map(alpha=0.3)[~found.region] == 1).mean()
    assert f"needed {100 * needed:.1f}%" in opened.page.inner_text(".shares")
    opened.page.evaluate("() => window.metfaReport[0].view.onPoint(10 * 32 + 20, 'move')")
    assert "part of the object, which is not tested" in opened.page.inner_text(".reading")


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
    assert readings[2].startswith("Point at a pixel")


SHAPES = {"one pixel": (1, 1), "wide": (2, 4096), "tall": (300, 1), "large": (600, 500)}


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")  # of one sample of one pixel
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("n", [1, 6])
def test_odd_shapes_and_few_samples(name, n, sample, open_page, tmp_path):
    found = sample(SHAPES[name], n)
    opened = open_page(report.write(tmp_path / "r.html", found), width=600)
    text = opened.page.inner_text("main")
    assert "NaN" not in text
    none = ("nothing can become significant", "none separates the scores")
    assert any(said in text for said in none) == (n == 1 or name == "one pixel")  # which stands out against nothing
    opened.page.evaluate("() => window.metfaReport[0].view.onPoint(0, 'move')")
    assert ("interval\nnone: 1 sample is too few" in opened.page.inner_text(".reading")) == (n == 1)


def test_constant_scores(sample, open_page, tmp_path):
    same = np.zeros((8, 1, 6, 8))
    with pytest.warns(metfa.DegenerateAttributionsWarning):
        path = report.write(tmp_path / "r.html", sample(n=8, values=same, vanilla=same[0]))
    opened = open_page(path)
    assert "none separates the scores" in opened.page.inner_text(".panel")
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


def test_figures_of_features_of_very_different_sizes(sample, open_page, tmp_path):
    """What is written is what it is, beside scores a billion times as large."""
    centres = np.array([-3e6, 20.0, 2e-4, 0.0])
    values = np.tile(centres, (20, 1, 1))
    names = ("large", "middle", "small", "zero")
    table = sample((4,), 20, values=values, vanilla=centres[None], inputs=np.ones((1, 4)), feature_names=names)
    opened = open_page(report.write(tmp_path / "r.html", table))
    for feature, expected in enumerate(["-3.00e+6", "20", "0.0002", "0"]):
        opened.page.evaluate(f"() => window.metfaReport[0].view.onPoint({feature}, 'move')")
        assert f"smoothed\n{expected}\n" in opened.page.inner_text(".reading")


@pytest.mark.parametrize("one_by_one", [True, False])
def test_very_many_samples(one_by_one, sample, open_page, tmp_path, monkeypatch):
    if not one_by_one:
        monkeypatch.setattr(_cells, "MOST_CELLS", 0)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(70_000, 1, 3)) + np.array([1.0, -1.0, 0.0])
    table = sample((3,), 70_000, values=values, vanilla=values[0], inputs=np.ones((1, 3)))
    opened = open_page(report.write(tmp_path / "r.html", table))
    assert opened.marks() == table.significance_map(0.0).ravel().tolist()
    counts = opened.page.evaluate("() => Array.from(window.metfaReport[0].result.counts.above)")
    assert counts == table.test(0.0).above[0].tolist()


@pytest.mark.parametrize("rule", [lambda values: np.nan, lambda values: np.inf])
def test_rules_without_an_answer(rule, sample, open_page, tmp_path):
    signed = sample(values=np.random.default_rng(0).normal(size=(12, 1, 6, 8)))
    if rule(None) > 0:
        with pytest.raises(ValueError, match="must return a finite number, or nan where there is none, got inf"):
            report.write(tmp_path / "r.html", signed, threshold=rule)
        return
    opened = open_page(report.write(tmp_path / "r.html", signed, threshold=rule))
    text = opened.page.inner_text("main")
    assert "none separates the scores" in text
    assert "the rule found no threshold" in text
    assert set(opened.marks()) == {0}


def test_a_click_keeps_the_figures(sample, open_page, tmp_path):
    opened = open_page(
        report.write(tmp_path / "r.html", {"a": graded(sample), "w": sample((3,), inputs=[["a", "b", "c"]])})
    )
    canvas, reading = opened.page.locator("canvas[role=application]").first, opened.page.locator(".reading").first

    def heading():
        return reading.locator("h3").inner_text()

    canvas.hover(position={"x": 30, "y": 30})
    first = heading()
    canvas.click(position={"x": 60, "y": 60})
    kept = heading()
    assert kept != first
    assert "Kept: click it again" in reading.inner_text()
    canvas.hover(position={"x": 200, "y": 100})
    assert heading() == kept
    opened.page.locator(".word").nth(1).hover()  # another result is free
    assert opened.page.locator(".reading").nth(1).inner_text().startswith("“b”")
    opened.page.keyboard.press("Escape")
    canvas.hover(position={"x": 30, "y": 30})
    assert heading() == first
    canvas.press("End")
    assert heading().endswith("column 13")


def test_tall_maps_stay_on_the_page(sample, open_page, tmp_path):
    for shape in ((4096, 1), (400, 20), (60, 20), (20, 60)):
        opened = open_page(report.write(tmp_path / f"{shape[0]}.html", sample(shape)))
        box = opened.page.locator("canvas[role=application]").first.bounding_box()
        assert box["height"] <= 0.85 * 900
        assert box["width"] >= 100
        if 1 / 4 < shape[0] / shape[1] < 4:
            assert box["height"] / box["width"] == pytest.approx(shape[0] / shape[1], rel=0.02)


def test_legends_have_the_colours_of_the_map(sample, open_page, tmp_path):
    rng = np.random.default_rng(0)
    signed = sample((3, 40), 20, values=rng.normal(size=(20, 1, 3, 40)) + np.linspace(-2, 2, 40))
    for scheme in ("light", "dark"):
        opened = open_page(report.write(tmp_path / f"{scheme}.html", signed, threshold=0.0), color_scheme=scheme)
        marks = np.array(opened.marks())
        pixels = opened.page.evaluate(
            "() => { const c = document.querySelectorAll('canvas[role=application]')[1];"
            " return Array.from(c.getContext('2d').getImageData(0, 0, 40, 3).data) }"
        )
        grey = opened.page.evaluate("() => Array.from(window.metfaReport[0].view.ground.grey)")
        for mark, look in ((1, "positive"), (0, "undecided"), (-1, "negative")):
            place = int(np.flatnonzero(marks == mark)[0])
            shown = opened.page.eval_on_selector(f"i.{look}", "i => getComputedStyle(i).backgroundColor")
            colour = np.array([float(level) for level in re.findall(r"\d+", shown)[:3]])
            expected = 0.78 * colour + 0.22 * grey[place]
            assert pixels[4 * place : 4 * place + 3] == pytest.approx(expected, abs=1.5)


def test_all_features_of_a_table_can_be_seen(sample, open_page, tmp_path):
    opened = open_page(report.write(tmp_path / "r.html", sample((60,), inputs=np.ones((1, 60)))))
    assert opened.page.locator(".row").count() == 40
    opened.page.click("text=Show all 60")
    assert opened.page.locator(".row").count() == 60
    assert all(kind for kind in opened.page.locator(".row .kind").all_inner_texts())


def test_pictures_are_right_where_a_canvas_gives_back_other_pixels(sample, browser, tmp_path):
    """As in Firefox with `privacy.resistFingerprinting`, and in browsers made of it."""
    found = sample()
    path = report.write(tmp_path / "r.html", found)
    page = browser.new_page()
    page.add_init_script(
        "const real = CanvasRenderingContext2D.prototype.getImageData;"
        "CanvasRenderingContext2D.prototype.getImageData = function (...asked) {"
        " const image = real.apply(this, asked); image.data.fill(77); return image }"
    )
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    seen = np.reshape(page.evaluate("() => Array.from(window.metfaReport[0].view.ground.picture)"), (6, 8, 4))
    page.close()
    assert (seen[..., :3] == np.rint(255 * np.moveaxis(found.inputs[0], 0, -1))).all()


def test_what_is_printed_says_how_it_was_decided(sample, open_page, tmp_path):
    opened = open_page(report.write(tmp_path / "r.html", sample(), correction="by", alpha=0.1))
    opened.page.emulate_media(media="print")
    opened.page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    text = opened.page.inner_text("body")
    assert "Alpha 0.1; correction BY" in text
    assert "rng=0x7" in text
    assert "Point at a pixel" not in text
    opened.page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    assert opened.page.locator("details[open]").count() == 0


def test_a_damaged_file_says_so(sample, browser, tmp_path):
    path = report.write(tmp_path / "r.html", sample())
    text = path.read_text("utf-8")
    cells = re.search(r'"cells":"(.*?)"', text)[1]
    for name, damaged in (
        ("a", text.replace(cells, cells[:20] + "AAAA" + cells[24:])),
        ("b", text.replace("[6,8]", "[3,3]")),
    ):
        (tmp_path / f"{name}.html").write_text(damaged, "utf-8")
        page = browser.new_page()
        page.goto((tmp_path / f"{name}.html").as_uri())
        assert "the file is damaged" in page.wait_for_selector("header [role=alert]").inner_text()
        page.close()
