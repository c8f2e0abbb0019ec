"""Reports of 224 x 224 pixels and 50 samples: seconds to write one (target 1), its size (3 MB), its sliders (50 ms).

The sample is the gradient of EfficientNet-Lite0 for scikit-image's coffee. The response of a slider is the time from
its event to the next frame that the browser paints, in headless Chromium. ``--large`` also writes a large report (1024
x 1024, N = 500, made-up scores); its samples alone take 2 GB.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import metfa
from benchmarks.measuring import photograph
from metfa import report
from metfa.explainers import Gradient

RESPONSE = """async ([selector, first, step]) => {
  const slider = document.querySelector(selector);
  const times = [];
  for (let k = 0; k < 20; k++) {
    slider.value = first + step * k;
    const start = performance.now();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    times.push(performance.now() - start);
  }
  return times;
}"""


def opened(path):
    """Seconds until the page is drawn, and milliseconds for each slider."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        start = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=yes]", timeout=120_000)
        seconds = time.perf_counter() - start
        stops = page.evaluate("() => window.metfaReport[0].result.edges.length")
        sliders = {
            "threshold": page.evaluate(RESPONSE, [".threshold input", 0, max(1, stops // 20)]),
            "alpha": page.evaluate(RESPONSE, ["[name=alpha]", 0, 1]),
            "opacity": page.evaluate(RESPONSE, ["[name=opacity]", 0, 5]),
        }
        browser.close()
    return seconds, sliders


def measured(name, sample, folder, rounds):
    times = []
    for k in range(rounds):
        path = folder / f"{name}-{k}.html"
        start = time.perf_counter()
        report.write(path, sample)
        times.append(time.perf_counter() - start)
    print(f"{name}: written in {statistics.median(times):.2f} s ({min(times):.2f} to {max(times):.2f}), ", end="")
    seconds, sliders = opened(path)
    print(f"{path.stat().st_size / 1e6:.2f} MB, drawn in {seconds:.2f} s")
    for slider, found in sliders.items():
        print(f"  {slider}: {statistics.median(found):.0f} ms ({min(found):.0f} to {max(found):.0f})")


def made_up(shape, n):
    rng = np.random.default_rng(0)
    smooth = np.add.outer(np.sin(np.linspace(0, 9, shape[0])), np.cos(np.linspace(0, 7, shape[1]))).astype(np.float32)
    values = np.empty((n, 1, *shape), np.float32)
    for sample in values:
        sample[0] = smooth + rng.standard_normal(shape, np.float32)
    return metfa.AttributionSample(
        values, rng.random((1, 3, *shape)), (0,), smooth[None], None, None, tuple(range(n)), ("made up",)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    model, pixels = photograph()
    noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
    sample = metfa.explain(Gradient(model), pixels, noise=noise, n_samples=50, rng=0)
    with tempfile.TemporaryDirectory() as folder:
        measured("224 x 224, N = 50", sample, Path(folder), 5)
        if options.large:
            measured("1024 x 1024, N = 500", made_up((1024, 1024), 500), Path(folder), 1)
