"""Samples to report, and a page to look at."""

import math

import numpy as np
import pytest

import metfa


class Opened:
    """A page, and what it did that no report may do."""

    def __init__(self, page, path):
        self.page = page
        self.faults = []
        page.on("console", lambda message: self.faults.append(message.text))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", self._request)
        self.address = path.resolve().as_uri()
        page.goto(self.address)
        page.wait_for_selector("html[data-ready=yes]", timeout=30_000)

    def _request(self, request):
        if request.url != self.address:
            self.faults.append(f"asked for {request.url}")

    def slide(self, selector, value):
        self.page.locator(selector).evaluate(
            "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input', {bubbles: true})) }",
            value,
        )

    def marks_at(self, alpha, edges):
        """Marks, and what the panel says, at one place of alpha's slider and each of these of the threshold's."""
        return self.page.evaluate(
            """([alpha, edges]) => {
              const slide = (selector, value) => {
                const slider = document.querySelector(selector);
                slider.value = value;
                slider.dispatchEvent(new Event("input", {bubbles: true}));
              };
              slide("[name=alpha]", alpha);
              return edges.map((edge) => {
                slide(".threshold input", edge);
                return [Array.from(window.metfaReport[0].result.marks), document.querySelector(".panel").innerText];
              });
            }""",
            [alpha, list(edges)],
        )

    def marks(self, index=0):
        return self.page.evaluate("index => Array.from(window.metfaReport[index].result.marks)", index)


@pytest.fixture
def open_page(browser):
    opened = []

    def run(path, width=1280, height=900, **settings):
        page = browser.new_page(viewport={"width": width, "height": height}, **settings)
        opened.append(Opened(page, path))
        return opened[-1]

    yield run
    for one in opened:
        one.page.close()
        assert one.faults == []


@pytest.fixture
def sample():
    """Makes a sample with one input."""

    def make(shape=(6, 8), n=12, seed=0, **settings):
        rng = np.random.default_rng(seed)
        size = math.prod(shape)
        pattern = np.where(np.arange(size) % 3, 0, np.linspace(0.4, 1, size)).reshape(shape)  # what stands out
        values = (0.7 * rng.random((n, 1, *shape)) + pattern).astype(np.float32)
        given = {
            "values": values,
            "inputs": rng.random((1, 3, *shape)) if len(shape) == 2 else rng.random((1, *shape)),
            "target": (1,),
            "vanilla": (0.7 * rng.random((1, *shape)) + pattern).astype(np.float32),
            "scores": None,
            "predictions": None,
            "sample_ids": tuple(range(n)),
            "input_names": ("a",),
            "provenance": {
                "explainer": "E(x=1)",
                "noise": "Uniform(radius=0.1)",
                "rng": "0x7",
                "versions": {"numpy": "2"},
            },
        }
        return metfa.AttributionSample(**{**given, **settings})

    return make
