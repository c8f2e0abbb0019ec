"""The cell in Chromium without a notebook's server: a host with VS Code's policy, and a model."""

import json
import time
from functools import partial

import numpy as np
import pytest

import metfa

pytest.importorskip("anywidget")
pytestmark = pytest.mark.browser

IMAGE = np.exp(-((np.mgrid[:12, :16][0] - 5) ** 2 + (np.mgrid[:12, :16][1] - 8) ** 2) / 20) * np.ones((1, 3, 1, 1))
POLICY = "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; child-src blob:"
HOST = """<!DOCTYPE html><html><head><meta http-equiv="Content-Security-Policy" content="{policy}">
<style>* {{ font-size: 40px !important; color: rgb(255, 0, 0) !important; }} p {{ margin: 99px; }}
body {{ background: {background}; }}</style></head><body><p id="beside">beside</p><div id="a"></div><div id="b"></div>
<script>
const state = {state}, handlers = {{}};
window.sent = [];
window.model = {{
  get: (name) => state[name],
  set: (name, value) => {{ state[name] = value; (handlers[`change:${{name}}`] ?? []).forEach((f) => f()); }},
  save_changes: () => {{}},
  send: (content) => window.sent.push(content),
  on: (name, f) => (handlers[name] ??= []).push(f),
  off: (name, f) => (handlers[name] = handlers[name].filter((one) => one !== f)),
}};
window.count = () => Object.values(handlers).flat().length;
</script></body></html>"""


def explainer(inputs, target):
    return np.abs(inputs.mean(1))


@pytest.fixture(scope="module")
def explorer():
    again = partial(metfa.explain, explainer, IMAGE, 0, noise=metfa.noise.Uniform(0.3), rng=0)
    return again(n_samples=20).explore(more=again)


@pytest.fixture
def host(browser, explorer):
    """Opens the host with a view in each of these elements."""
    opened = []

    def show(*places, background="white"):
        page = browser.new_page(viewport={"width": 900, "height": 700})
        faults = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        opened.append((page, faults))
        state = {name: getattr(explorer, name) for name in ("_page", "_chosen", "_sampling")}
        written = json.dumps(state).replace("<", "\\u003c")
        page.set_content(HOST.format(policy=POLICY, background=background, state=written))
        page.evaluate(
            "async ([text, places]) => {"
            " const address = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));"
            " const { default: widget } = await import(address);"
            " window.undo = places.map((place) => widget.render({ model, el: document.getElementById(place) })) }",
            [explorer._esm, places],
        )
        frames = [page.wait_for_selector(f"#{place} iframe").content_frame() for place in places]
        for frame in frames:
            frame.wait_for_selector("html[data-ready=yes]")
        return page, frames

    yield show
    for page, faults in opened:
        page.close()
        assert faults == []


def comes(page, is_so):
    """Whether something comes true, however busy the machine is."""
    until = time.monotonic() + 30
    while not is_so() and time.monotonic() < until:
        page.wait_for_timeout(100)
    return is_so()


def colour(frame, selector, what):
    return frame.evaluate(f"() => getComputedStyle(document.querySelector('{selector}')).{what}")


def test_no_style_goes_in_or_out(host):
    page, [frame] = host("a")
    assert colour(frame, ".result", "color") != "rgb(255, 0, 0)"
    assert colour(frame, "html", "fontSize") == "14px"
    assert page.evaluate("() => getComputedStyle(document.getElementById('beside')).margin") == "99px"
    assert frame.evaluate("() => { try { return parent.document.title } catch (error) { return error.name } }") == (
        "SecurityError"
    )


def test_it_is_as_tall_as_its_page_and_has_no_bars(host):
    page, [frame] = host("a")
    for width in (900, 400):
        page.set_viewport_size({"width": width, "height": 700})

        def fits(width=width):
            inside, height, body, wide, most = frame.evaluate(
                "() => [innerWidth, innerHeight, document.body.getBoundingClientRect().height,"
                " document.documentElement.scrollWidth, innerWidth]"
            )
            return inside <= width and abs(height - body) < 2 and wide <= most

        assert comes(page, fits)


def test_no_scroll_bar_takes_room_before_the_frame_has_grown(browser, path_of_browser, explorer):
    """Firefox keeps both bars of that moment, as each is there for the other's sake; Chromium hides bars in tests."""
    settings = {"executable_path": path_of_browser, "args": ["--no-sandbox"]}
    with_bars = browser.browser_type.launch(**settings, ignore_default_args=["--hide-scrollbars"])
    page = with_bars.new_page(viewport={"width": 900, "height": 300})
    page.set_content(explorer._page)
    page.wait_for_selector("html[data-ready=yes]")
    widths = page.evaluate("() => [innerWidth, document.documentElement.clientWidth]")
    with_bars.close()
    assert widths == [900, 900]


def test_a_notebook_anchors_nothing_while_the_pointer_is_on_the_frame(host):
    """What it is for is tested in JupyterLab. Playwright's pointer is never said to enter a frame, as a person's is."""
    page, _ = host("a")
    frame = page.locator("#a iframe")
    anchors = "() => [document.body, document.documentElement].map((one) => one.style.overflowAnchor)"
    page.evaluate("() => { document.body.style.overflowAnchor = 'auto' }")
    frame.dispatch_event("pointerenter")
    assert page.evaluate(anchors) == ["none", "none"]
    frame.dispatch_event("pointerleave")
    assert page.evaluate(anchors) == ["auto", ""]
    frame.dispatch_event("pointerenter")
    page.evaluate("() => window.undo.forEach((one) => one())")
    assert page.evaluate(anchors) == ["auto", ""]


@pytest.mark.parametrize(("background", "dark"), [("rgb(17, 17, 17)", True), ("rgb(255, 255, 255)", False)])
def test_it_is_dark_as_the_notebook_is(background, dark, host):
    page, [frame] = host("a", background=background)

    def is_dark():
        return sum(map(int, colour(frame, ".result", "backgroundColor")[4:-1].split(","))) < 384

    assert is_dark() == dark
    page.evaluate("() => { document.body.style.background = 'rgb(128, 128, 128)' }")
    page.evaluate(f"() => {{ document.body.style.background = '{'white' if dark else 'black'}' }}")
    assert comes(page, lambda: is_dark() != dark)


def test_two_views_show_the_same(host):
    page, (one, two) = host("a", "b")
    one.locator(".threshold input").evaluate(
        "s => { s.value = 90; s.dispatchEvent(new Event('input', {bubbles: true})) }"
    )
    one.select_option("[name=correction]", "by")
    one.evaluate("() => { window.metfaReport[0].drawing.runs = [[20, 4]] }")

    def chosen():
        found = page.evaluate("() => model.get('_chosen')") or {}  # nothing until the page has said it
        return found.get("correction"), found.get("drawn"), found.get("moved")

    def shown():
        drawn = two.evaluate("() => window.metfaReport[0].drawing.runs")
        return two.input_value("[name=correction]"), drawn, two.inner_text(".threshold .number")

    assert comes(page, lambda: chosen()[:2] == ("by", [[[20, 4]]]))
    assert comes(page, lambda: shown() == ("by", [[20, 4]], one.inner_text(".threshold .number")))
    one.click("button[type=reset]")
    assert comes(page, lambda: chosen()[2] == [None])
    assert comes(page, lambda: shown()[0] == "none")


def test_rounds_follow_until_somebody_stops(host):
    page, [frame] = host("a")
    frame.fill(".samples input", "0")
    assert frame.is_disabled(".samples .start")
    frame.fill(".samples input", "300")
    frame.click(".samples .start")
    page.wait_for_function("() => window.sent.length === 1")
    page.evaluate("() => model.set('_sampling', { n: 120, round: 1, ended: null })")
    page.wait_for_function("() => window.sent.length === 2")
    assert "100 of 300" in frame.inner_text(".samples")
    frame.click(".samples .stop")
    page.evaluate("() => model.set('_sampling', { n: 220, round: 2, ended: null })")
    page.wait_for_function("() => window.sent.length === 3")
    assert page.evaluate("() => window.sent") == [
        {"kind": "more", "from": 20, "until": 320},
        {"kind": "more", "from": 120, "until": 320},
        {"kind": "done"},
    ]


def test_a_failure_is_said(host):
    page, [frame] = host("a")
    frame.click(".samples .start")
    page.wait_for_function("() => window.sent.length === 1")
    page.evaluate("() => model.set('_sampling', { n: 20, round: 1, ended: 'ValueError: <b>no' })")
    frame.wait_for_function(
        "() => document.querySelector('.samples [role=status]').textContent === 'ValueError: <b>no'"
    )
    assert frame.is_visible(".samples .start")
    assert page.evaluate("() => window.sent.length") == 1


def test_messages_of_others_are_not_heard(host):
    page, _ = host("a")
    page.evaluate("() => postMessage({ metfa: 'chosen', value: { alpha: 0.4 } }, '*')")
    page.evaluate("() => postMessage({ metfa: 'more', value: { until: 99 } }, '*')")
    page.wait_for_timeout(400)
    assert page.evaluate("() => [window.sent.length, model.get('_chosen')]") == [0, None]


def test_a_view_that_goes_leaves_nothing(host):
    page, _ = host("a")
    assert page.evaluate("() => { window.undo.forEach((one) => one()); return count() }") == 0
