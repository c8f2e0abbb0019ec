"""A result of 1024 x 1024 pixels with 500 samples (2 GiB): its report, its maps and its natural breaks.

Targets: the report in 10 s and at most 15 MB, natural breaks of 25 million values in 3 s. The scores are made up: blots
as of a saliency map, times noise. Each step is a process of its own; the peak is of its whole resident memory, with the
pages of the file that it has read, or with the 2 GiB of samples. Beside the seconds of the clock stand those of the
processor (all threads together), which say more where other work runs.

    python -m benchmarks.large_results [--folder FOLDER] [--against FOLDER] [--browser]

``--against`` names the ``src`` of an earlier version, for which each step is repeated; ``--browser`` opens the page.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

import metfa

SHAPE, N = (1024, 1024), 500
STEPS = ("report of a store", "report from memory", "maps of a store", "maps from memory", "breaks")
LONGEST = """() => { window.longest = 0; new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
}).observe({ type: "longtask", buffered: true }); }"""
RESPONSE = """async ([selector, value]) => {
  const slider = document.querySelector(selector);
  slider.value = value;
  const start = performance.now();
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - start;
}"""


def saliency():
    """Samples of one picture, in [0, 1]: the blots of the clean map, each pixel times gamma noise."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]].astype(np.float32)
    clean = 0.05 * rng.gamma(0.5, 1.0, SHAPE).astype(np.float32)
    for _ in range(12):
        (row, column), width = rng.uniform(0, 1, 2) * SHAPE, rng.uniform(0.03, 0.15) * SHAPE[0]
        clean += np.float32(rng.gamma(2.0, 0.3)) * np.exp(
            -((y - row) ** 2 + (x - column) ** 2) / np.float32(2 * width**2)
        )
    values = np.empty((N, 1, *SHAPE), np.float32)
    for sample in values:
        noisy = clean * rng.standard_gamma(4, SHAPE, dtype=np.float32)
        sample[0] = (noisy - noisy.min()) / (noisy.max() - noisy.min())
    vanilla = (clean - clean.min()) / (clean.max() - clean.min())
    picture = np.stack([y / SHAPE[0], x / SHAPE[1], vanilla])[None]
    names, ids = ("made up",), tuple(range(N))
    return metfa.AttributionSample(values, picture, (0,), vanilla[None], None, None, ids, names)


def timed(name, work):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, worked = time.perf_counter(), time.process_time()
    found = work()
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"  {name}: {seconds:.2f} s, {worked:.2f} s of the processor; peak {peak / 2**10:.0f} MiB "
        f"({before / 2**10:.0f} MiB before)",
        flush=True,
    )
    return found


def done(folder, step):
    """One step in this process."""
    warnings.simplefilter("ignore")
    if step == "make":
        saliency().save(folder / "store")
        return
    if step == "breaks":
        rng = np.random.default_rng(0)
        for name, values in {
            "uniform": rng.random(25_000_000, dtype=np.float32),
            "gamma": rng.standard_gamma(0.5, 25_000_000, dtype=np.float32),
            "double precision": rng.standard_normal(25_000_000),
            "half precision": rng.random(25_000_000, dtype=np.float32).astype(np.float16),
        }.items():
            timed(f"natural break of 25 million values, {name}", lambda values=values: metfa.stats.jenks(values))
        return
    sample = metfa.load(folder / "store")
    if step.endswith("memory"):
        values = np.empty(sample.values.shape, sample.values.dtype)
        for into, one in zip(values, sample.values, strict=True):
            into[:] = one
        sample = replace(sample, values=values)
    if step.startswith("report"):
        page = folder / "report.html"
        timed("metfa.report.write", lambda: metfa.report.write(page, sample, overwrite=True))
        print(f"  page: {page.stat().st_size / 1e6:.1f} MB")
        return
    timed("significance_map()", sample.significance_map)
    timed("significance_map(0.5, correction='e-bh')", lambda: sample.significance_map(0.5, correction="e-bh"))
    timed("confidence_interval()", sample.confidence_interval)
    timed("smoothed()", sample.smoothed)
    timed("median()", sample.median)
    timed("std()", sample.std)
    timed("summary()", sample.summary)


def opened(page):
    """How long the page takes to be drawn and to answer, and the longest task meanwhile, in headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.add_init_script(f"({LONGEST})()")
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready=yes]", timeout=120_000)
        drawn = tab.evaluate("() => performance.now()")
        opening = tab.evaluate("() => { const found = window.longest; window.longest = 0; return found; }")
        stops = tab.evaluate("() => window.metfaReport[0].result.edges.length")
        answers = [tab.evaluate(RESPONSE, [".threshold input", stop]) for stop in range(stops)]
        alphas = [tab.evaluate(RESPONSE, ["[name=alpha]", stop]) for stop in range(17)]
        sliding = tab.evaluate("() => window.longest")
        browser.close()
    for name, found in (("threshold", answers), ("alpha", alphas)):
        print(f"  {name}: {statistics.median(found):.0f} ms ({min(found):.0f} to {max(found):.0f})")
    print(f"  drawn after {drawn / 1000:.2f} s; longest task {opening:.0f} ms while it opens, {sliding:.0f} ms later")


def main(folder, against, *, browser):
    def run(step, source=None):
        path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "benchmarks.large_results", "--folder", str(folder), "--step", step]
        subprocess.run(command, check=True, env=dict(os.environ) | ({"PYTHONPATH": path} if path else {}))

    if not (folder / "store").exists():
        run("make")
    for step in STEPS:
        for name, source in (("now", None), *([("before", against)] if against else [])):
            print(f"{step}, {name}", flush=True)
            run(step, source)
    if browser:
        run("report of a store")
        opened(folder / "report.html")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--against", metavar="FOLDER")
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--step", choices=("make", *STEPS))
    options = parser.parse_args()
    if options.step:
        done(options.folder, options.step)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(options.folder or Path(temporary), options.against, browser=options.browser)
