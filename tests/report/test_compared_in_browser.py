"""Comparisons in a browser: decided as in Python, both maps beside a border, both values beside a difference."""

import re
from dataclasses import replace

import numpy as np
import pytest

import metfa
from metfa import report
from metfa.results.stopping import Look, Stopping

SHAPE = (9, 14)
STOPPED = Stopping("reached", {"undecided": 0.4}, 0.05, "e-bh", 0.95, 0, (0.5,), (Look(40, 0.3, None, None, 1.0),))
HOSTILE = "</script><script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">\u202e"
NORMAL = {"explainer": "Gradient(model)", "noise": "Gaussian(std=0.2)", "gaussian_std": 0.2, "rng": "0x7"}


@pytest.fixture
def parts(sample):
    """Two results of the same copies: the second has less on the left and more on the right."""

    def make(shape=SHAPE, n=40, *, signed=False, other=None, **settings):
        rng = np.random.default_rng(5)
        size = int(np.prod(shape))
        change = np.linspace(-0.6, 0.6, size).reshape(shape)
        centres = rng.random(shape) + 0.6 - 1.2 * signed
        shared = rng.normal(0, 0.2, (n, 1, *shape))
        found = []
        for centre, inputs in ((centres, None), (centres + change, other)):
            values = centre + shared + rng.normal(0, 0.3, (n, 1, *shape))
            values = values if signed else np.abs(values)
            given = settings if inputs is None else {**settings, "inputs": inputs}
            made = {"provenance": NORMAL, **given}
            clean = centre[None].astype(np.float32)
            found.append(sample(shape, n, values=values.astype(np.float32), vanilla=clean, **made))
        return found

    return make


def run(opened, script, argument=None):
    return opened.page.evaluate(script, argument)


def of_first(opened, what):
    return run(opened, f"() => {{ const one = window.metfaReport[0]; return {what} }}")


def slide_border(opened, place, index=0):
    border = opened.page.locator(".border").nth(index)
    border.evaluate(
        "(slider, place) => { slider.value = place; slider.dispatchEvent(new Event('input', {bubbles: true})) }", place
    )


def shown_in(opened, selector=".wiped", hidden=".line, .side, .cross, .over"):
    """Pixels (height, width, 3) of a part of the page as a person sees them, without what lies over them."""
    from io import BytesIO

    from PIL import Image

    run(opened, "hidden => document.querySelectorAll(hidden).forEach(one => one.style.visibility = 'hidden')", hidden)
    frame = opened.page.locator(selector).first
    picture = np.asarray(Image.open(BytesIO(frame.screenshot())).convert("RGB"), float)
    run(opened, "hidden => document.querySelectorAll(hidden).forEach(one => one.style.visibility = '')", hidden)
    return picture


def colours_of(scores, *, low, high, name, grey, picture, opacity=0.8):
    """What the page shall paint, written anew: scores over the picture, the fainter the nearer to 0."""
    from matplotlib import colormaps

    share = np.rint(np.clip((scores - low) / (high - low), 0, 1) * 255).astype(int)
    colour = colormaps[name](np.linspace(0, 1, 256), bytes=True)[share][..., :3].astype(float)
    weight = (opacity * np.minimum(1, 0.15 + 2.5 * np.abs(scores) / max(abs(low), abs(high))))[..., None]
    under = opacity * grey[..., None] + (1 - opacity) * picture
    return weight * colour + (1 - weight) * under


def ground(opened, shape, name="grounds[0]"):
    grey = np.array(of_first(opened, f"Array.from(one.view.{name}.grey)")).reshape(shape)
    picture = np.array(of_first(opened, f"Array.from(one.view.{name}.picture)")).reshape(*shape, 4)[..., :3]
    return {"grey": grey, "picture": picture}


@pytest.mark.slow
@pytest.mark.parametrize("stopping", [None, STOPPED])
def test_decisions_are_those_of_python(stopping, parts, open_page, tmp_path):
    found = metfa.compare(*parts(stopping=stopping))
    opened = open_page(report.write(tmp_path / "r.html", found))
    assert opened.marks() == found.significance_map().ravel().tolist()
    levels = run(opened, "() => JSON.parse(document.getElementById('data').textContent).alphas")
    edges = of_first(opened, "one.result.edges")
    zero = edges.index(0.0)
    seen = set()
    for correction in ("none", "bonferroni", "closed-e-bh", *(["holm", "by", "bh"] if stopping is None else [])):
        opened.page.select_option("[name=correction]", correction)
        for place in (6, 10, 14):
            (marks, text) = opened.marks_at(place, [zero])[0]
            try:
                expected = found.significance_map(alpha=levels[place], correction=correction)
            except metfa.TooFewSamplesError:
                assert "nothing can become significant" in text
                continue
            assert marks == expected.ravel().tolist(), (correction, place)
            seen.update(marks)
            for mark, name in ((1, "more than before"), (-1, "less than before")):
                assert f"{name} {100 * (expected == mark).mean():.1f}%" in text
    assert seen == {-1, 0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("place", [30, 50, 80])
def test_each_side_of_the_border_shows_its_own_map(place, signed, parts, open_page, tmp_path):
    """What is on the screen has the colours of the numbers, to the pixel at the border."""
    found = metfa.compare(*parts(signed=signed))
    opened = open_page(report.write(tmp_path / "r.html", found))
    slide_border(opened, place)
    before, after = (part.smoothed(0.95)[0] for part in found.pair)
    both = np.stack([before, after])
    high = np.quantile(np.abs(both), 0.999)
    scale = {"low": -high if signed else 0.0, "high": high, "name": "RdBu_r" if signed else "inferno"}
    expected = [colours_of(scores, **scale, **ground(opened, SHAPE)) for scores in (before, after)]
    seen = shown_in(opened)
    height, width = seen.shape[:2]
    rows = (np.arange(height) + 0.5) / height * SHAPE[0]
    columns = (np.arange(width) + 0.5) / width * SHAPE[1]
    inner = (np.abs(rows - np.rint(rows)) > 0.1)[:, None] & (np.abs(columns - np.rint(columns)) > 0.1)
    border = place / 100 * width
    for side, colours in (("left", expected[0]), ("right", expected[1])):
        of_side = np.arange(width) < border - 1 if side == "left" else np.arange(width) > border + 1
        painted = colours[rows.astype(int)[:, None], columns.astype(int)]
        there = inner & of_side
        assert there.any()
        assert np.abs(seen - painted)[there].max() <= 2, side
    assert np.abs(expected[0] - expected[1]).max() > 40


@pytest.mark.slow
def test_the_border_is_moved_by_pointer_and_keys(parts, open_page, tmp_path):
    found = metfa.compare(*parts(), names=("March", "June"))
    opened = open_page(report.write(tmp_path / "r.html", found))
    border, frame = opened.page.locator(".border"), opened.page.locator(".wiped")
    box = frame.bounding_box()

    def place():
        left = opened.page.locator(".wiped .line").evaluate("line => parseFloat(line.style.left)")
        clip = opened.page.locator("canvas.right").evaluate("right => right.style.clipPath")
        assert float(re.search(r"([0-9.]+)%\)", clip)[1]) == pytest.approx(left)
        return left

    assert place() == 50
    assert border.get_attribute("aria-valuetext") == "“March” 50%, “June” 50%"
    middle = box["y"] + box["height"] / 3
    opened.page.mouse.move(box["x"] + box["width"] / 2, middle)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 0.8 * box["width"], middle, steps=5)
    opened.page.mouse.up()
    assert place() == pytest.approx(80, abs=1.5)
    assert border.get_attribute("aria-valuetext") == "“March” 80%, “June” 20%"
    border.focus()
    before = place()
    opened.page.keyboard.press("ArrowLeft")
    assert 0 < before - place() <= 5
    opened.page.keyboard.press("ArrowRight")
    assert place() == pytest.approx(before, abs=0.01)
    opened.page.keyboard.press("PageDown")
    assert 5 <= before - place() <= 20
    opened.page.keyboard.press("Home")
    assert place() == 0
    assert not opened.page.locator(".side.left").is_visible()
    opened.page.keyboard.press("End")
    assert place() == 100
    assert opened.page.locator(".side").all_inner_texts() == ["March", "June"]
    assert not opened.page.locator(".side.right").is_visible()
    name = border.get_attribute("aria-label")
    assert name == "border between two maps: “March” on its left, “June” on its right"


@pytest.mark.slow
def test_the_border_is_moved_by_a_finger(parts, browser, tmp_path):
    path = report.write(tmp_path / "r.html", metfa.compare(*parts()))
    context = browser.new_context(viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 400
    frame = page.locator(".wiped")
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    session = context.new_cdp_session(page)
    y = box["y"] + 20
    points = [box["x"] + share * box["width"] for share in (0.52, 0.45, 0.35, 0.25)]  # beside the line, within the grip
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": points[0], "y": y}]})
    for x in points[1:]:
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert float(page.locator(".border").input_value()) == pytest.approx(25, abs=4)
    context.close()


@pytest.mark.slow
def test_pixels_are_read_and_drawn_on_both_maps(parts, open_page, tmp_path):
    """The border takes the pointer near itself alone, and keys of a tool do not take its own."""
    found = metfa.compare(*parts(), names=("A", "B"))
    opened = open_page(report.write(tmp_path / "r.html", found))
    canvas = opened.page.locator(".wiped canvas").first
    box = canvas.bounding_box()
    for column in (2, 12):  # on either side of the border
        canvas.click(position={"x": box["width"] * (column + 0.5) / 14, "y": box["height"] * 4.5 / 9})
        text = opened.page.inner_text(".reading")
        assert text.startswith(f"row 4, column {column}")
        shown = [float(re.search(rf"“{name}”, smoothed\n(.*?)\n", text)[1]) for name in "AB"]
        expected = [part.smoothed(0.95)[0, 4, column] for part in found.pair]
        assert shown == pytest.approx(expected, abs=6e-4)
        difference = float(re.search(r"difference, smoothed\n(.*?)\n", text)[1])
        assert difference == pytest.approx(found.smoothed(0.95)[0, 4, column], abs=6e-4)
        interval = found.confidence_interval()
        low, high = (float(n) for n in re.search(r"of the median difference, .*%\n(.*?) to (.*?)\n", text).groups())
        assert (low, high) == pytest.approx((interval.low[0, 4, column], interval.high[0, 4, column]), abs=6e-4)
    opened.page.check("input[value=box]")
    border = opened.page.locator(".border")
    border.focus()
    opened.page.keyboard.press("Home")
    opened.page.keyboard.press("ArrowRight")
    assert 0 < float(border.input_value()) < 20
    assert not any(of_first(opened, "Array.from(one.drawing.mask)"))
    opened.page.mouse.move(box["x"] + box["width"] * 0.55, box["y"] + 10)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + box["width"] * 0.99, box["y"] + box["height"] * 0.9)
    opened.page.mouse.up()
    run(opened, "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    mask = np.array(of_first(opened, "Array.from(one.drawing.mask)"), bool).reshape(SHAPE)
    assert mask.any()
    said = opened.page.inner_text(".said-of-region")
    expected = found.guarantee(mask)
    for bound, kind in ((expected.important[0], "more"), (expected.unimportant[0], "less")):
        pattern = rf"At least {bound} of its {mask.sum()} pixels \([0-9.]+%\) get {kind} in B than in A\."
        assert bound
        assert re.search(pattern, said)


@pytest.mark.slow
def test_the_map_of_differences_and_its_outlines(parts, open_page, tmp_path):
    found = metfa.compare(*parts())
    opened = open_page(report.write(tmp_path / "r.html", found, correction="bh"))
    smoothed, interval = found.smoothed(0.95)[0], found.confidence_interval()
    maps = [found.vanilla[0], found.mean()[0], smoothed, interval.low[0], interval.high[0]]
    high = np.quantile(np.abs(np.stack(maps)), 0.999)
    expected = colours_of(smoothed, low=-high, high=high, name="RdBu_r", **ground(opened, SHAPE))
    pixels = of_first(opened, "Array.from(one.view.layer.context.getImageData(0, 0, 14, 9).data)")
    painted = np.array(pixels).reshape(*SHAPE, 4)[..., :3]
    assert np.abs(painted - expected).max() <= 1.5
    marks = found.significance_map(correction="bh")[0]
    for mark, name in ((1, "more"), (-1, "less")):
        marked = np.pad((marks == mark).astype(int), 1)
        sides = int(np.abs(np.diff(marked, axis=0)).sum() + np.abs(np.diff(marked, axis=1)).sum())
        path = opened.page.locator(f".marked.{name}").get_attribute("d")
        assert sum(int(length) for length in re.findall(r"[hv](\d+)", path)) == sides > 0
    caption = opened.page.locator("figcaption").nth(1).inner_text()
    assert "smoothed difference: “after” minus “before”; outlined: more than before, dashed: less than" in caption
    opened.page.uncheck("[name=outlines]")
    assert not opened.page.locator(".marked.more").is_visible()
    opened.page.click("button[type=reset]")
    opened.page.wait_for_function("() => document.querySelector('[name=outlines]').checked")
    opened.page.wait_for_function("() => document.querySelector('.marked.more').style.display === ''")
    options = opened.page.locator("[name=layer] option").all_inner_texts()
    assert options[:2] == ["smoothed difference", "difference without noise"]


@pytest.mark.slow
def test_changed_inputs_have_each_their_own_picture_and_no_certificate(parts, open_page, tmp_path):
    other = np.random.default_rng(8).random((1, 3, *SHAPE))
    found = metfa.compare(*parts(other=other), names=("clean", "attacked"), scale="rank")
    opened = open_page(report.write(tmp_path / "r.html", found))
    grounds = [ground(opened, SHAPE, f"grounds[{k}]")["picture"] for k in (0, 1)]
    for part, seen in zip(found.pair, grounds, strict=True):
        assert np.abs(np.moveaxis(part.inputs[0], 0, -1) * 255 - seen).max() <= 0.6
    assert "radius" not in of_first(opened, "one.result.layerNames")
    text = opened.page.inner_text("main")
    assert "each over its own input" in text
    assert (
        "The inputs differ, so there is no certificate. Before the subtraction, each score was replaced by its" in text
    )
    opened.page.select_option("[name=layer]", "picture")
    seen = shown_in(opened)
    columns = (np.array([0.25, 0.75]) * seen.shape[1]).astype(int)
    for column, picture in zip(columns, grounds, strict=True):
        at = seen[seen.shape[0] // 2, column]
        assert np.abs(at - picture[4, int(column / seen.shape[1] * 14)]).max() <= 2


@pytest.mark.slow
def test_tables_have_both_values_beside_the_difference(parts, open_page, tmp_path):
    names = ("age", HOSTILE, "c", "d", "e")
    both = parts((5,), feature_names=names, inputs=np.ones((1, 5)), signed=True)
    found = metfa.compare(*both, names=("v1", "</script><b onclick=alert(2)>\u202e"))
    opened = open_page(report.write(tmp_path / "r.html", found, title=HOSTILE))
    assert opened.page.title() != "hacked"
    assert opened.page.locator("main img, main script").count() == 0
    smoothed = [part.smoothed(0.95)[0] for part in found.pair]
    order = np.argsort(-np.abs(found.smoothed(0.95)[0]))
    rows = opened.page.locator("div.bars .row")
    for place, feature in enumerate(order):
        texts = rows.nth(place).locator(".both").inner_text().split(" → ")
        assert [float(text) for text in texts] == pytest.approx([scores[feature] for scores in smoothed], rel=6e-3)
        label = rows.nth(place).get_attribute("aria-label")
        assert label.startswith(f"{names[feature]}: v1 ".replace("\u202e", "?")) or names[feature] == HOSTILE
        ends = [
            float(rows.nth(place).locator(f".both line.{part}").get_attribute("x1")) for part in ("before", "after")
        ]
        low, high = min(0, *(s.min() for s in smoothed)), max(0, *(s.max() for s in smoothed))
        expected = [20 + 960 * (scores[feature] - low) / (high - low) for scores in smoothed]
        assert ends == pytest.approx(expected, abs=0.1)
    kinds = [row.locator(".kind").inner_text().split()[0] for row in rows.all()]
    marks = found.significance_map()[0][order]
    assert kinds == [{1: "more", 0: "undecided", -1: "less"}[mark] for mark in marks]


@pytest.mark.slow
def test_texts_are_coloured_by_both(parts, open_page, tmp_path):
    words, edited = ["a", "good", "film"], ["a", "bad", "film"]
    before, after = parts((3,), signed=True, inputs=[words], feature_names=tuple(words))
    after = replace(after, inputs=[edited], feature_names=tuple(edited))
    found = metfa.compare(before, after, names=("written", "edited"))
    opened = open_page(report.write(tmp_path / "r.html", found))
    texts = opened.page.locator(".text").all_inner_texts()
    assert texts == ["a good → bad film", "a good film", "a bad film"]
    both = np.stack([part.smoothed(0.95)[0] for part in found.pair])
    for k, scores in enumerate(both):
        colours = (
            opened.page.locator(".texts .text")
            .nth(k)
            .locator(".word")
            .evaluate_all("words => words.map(word => getComputedStyle(word).backgroundColor)")
        )
        for colour, score in zip(colours, scores, strict=True):
            *hue, opacity = [float(part) for part in re.findall(r"[0-9.]+", colour)]
            assert hue == ([0, 114, 178] if score < 0 else [230, 159, 0])
            assert opacity == pytest.approx(0.45 * abs(score) / np.abs(both).max(), abs=4e-3)
    opened.page.locator(".text .word").nth(1).click()
    assert opened.page.locator(".texts .word.pointed").all_inner_texts() == ["good", "bad"]
    legend = opened.page.inner_text("p.small")
    assert "Underlined: more in edited than in written, wavy: less in edited than in written; dotted" in legend


@pytest.mark.slow
def test_regions_have_a_border_too(parts, open_page, tmp_path):
    labels = np.arange(9)[:, None] // 3 * 3 + np.arange(14) // 5
    found = metfa.compare(*parts(signed=True))
    opened = open_page(report.write(tmp_path / "r.html", found, regions=metfa.Regions(labels), correction="holm"))
    pooled = found.over(metfa.Regions(labels))
    assert opened.marks(0) == pooled.significance_map(correction="holm").ravel().tolist()
    assert opened.marks(1) == found.significance_map(correction="holm").ravel().tolist()
    rows = opened.page.locator("div.bars .row")
    order = np.argsort(-np.abs(pooled.smoothed(0.95)[0]))
    assert [row.locator(".name").inner_text() for row in rows.all()] == [f"region {k}" for k in order]
    slide_border(opened, 50)
    both = np.stack([part.smoothed(0.95)[0] for part in pooled.pair])
    high = np.quantile(np.abs(both), 0.999)
    seen = shown_in(opened)
    below = ground(opened, SHAPE)
    for column, scores in ((2, both[0]), (11, both[1])):
        expected = colours_of(scores[labels], low=-high, high=high, name="RdBu_r", **below)[4, column]
        at = seen[int(4.5 / 9 * seen.shape[0]), int((column + 0.5) / 14 * seen.shape[1])]
        assert np.abs(at - expected).max() <= 2


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 700, 1280])
def test_long_names_stay_within_the_window(width, scheme, parts, open_page, tmp_path):
    names = ("x" * 40, "W" * 40)
    labels = np.arange(9)[:, None] // 3 * 3 + np.arange(14) // 5
    results = {
        "maps": metfa.compare(*parts(), names=names),
        "regions": metfa.compare(*parts(), names=names).over(labels),
        "table": metfa.compare(*parts((5,), inputs=np.ones((1, 5))), names=names),
        "text": metfa.compare(*parts((3,), inputs=[["a", "b", "c" * 300]]), names=names),
    }
    opened = open_page(report.write(tmp_path / "r.html", results), width=width, color_scheme=scheme)
    assert run(opened, "() => document.documentElement.scrollWidth") <= width
    for row in opened.page.locator("div.bars .row").all():
        assert row.bounding_box()["height"] < 140
    unnamed = run(
        opened,
        "() => Array.from(document.querySelectorAll('input, select, button, canvas[tabindex], [role]'))"
        ".filter(e => !(e.labels?.length || e.ariaLabel || e.textContent.trim())).map(e => e.outerHTML)",
    )
    assert unnamed == []


@pytest.mark.slow
def test_no_differences_and_few_samples(parts, open_page, tmp_path):
    before, _ = parts()
    opened = open_page(report.write(tmp_path / "zero.html", metfa.compare(before, before)))
    text = opened.page.inner_text("main")
    assert "No pixel is shown to differ: most differences of each are 0 to rounding." in text
    assert "The other 100.0% are undecided: most differences of each are 0 to rounding. That no difference" in text
    assert "NaN" not in text
    assert set(opened.marks()) == {0}
    opened = open_page(report.write(tmp_path / "few.html", metfa.compare(*parts(n=3))))
    text = opened.page.inner_text("main")
    assert "both maps, mean, on one scale" in text
    assert "nothing can become significant" in text
    assert "NaN" not in text


@pytest.mark.slow
def test_maps_smaller_than_their_picture(parts, open_page, tmp_path):
    """As of a layer of a network: 3 by 4 scores over 27 by 40 pixels."""
    found = metfa.compare(*parts((3, 4), inputs=np.random.default_rng(2).random((1, 3, 27, 40))))
    opened = open_page(report.write(tmp_path / "r.html", found))
    assert of_first(opened, "[one.view.ground.height, one.view.ground.width]") == [27, 40]
    below = ground(opened, (27, 40))
    assert np.abs(np.moveaxis(found.inputs[0], 0, -1) * 255 - below["picture"]).max() <= 0.6
    before = found.pair[0].smoothed(0.95)[0]
    high = np.quantile(np.abs(np.stack([part.smoothed(0.95)[0] for part in found.pair])), 0.999)
    large = before.repeat(9, axis=0).repeat(10, axis=1)
    expected = colours_of(large, low=0.0, high=high, name="inferno", **below)
    pixels = of_first(opened, "Array.from(one.view.wipe.left.getContext('2d').getImageData(0, 0, 40, 27).data)")
    assert np.abs(np.array(pixels).reshape(27, 40, 4)[..., :3] - expected).max() <= 1.5
    assert opened.marks() == found.significance_map().ravel().tolist()
    opened.page.locator(".wiped canvas").first.click(position={"x": 5, "y": 5})
    assert opened.page.inner_text(".reading").startswith("row 0, column 0")
    box = opened.page.locator(".wiped canvas").first.bounding_box()
    assert box["height"] / box["width"] == pytest.approx(27 / 40, rel=0.02)
