"""Guarantee of a region drawn on 224 x 224 pixels in the browser, in ms (target 50), for N = 50 and after `Until`.

"first" makes the bounds of all pixels at a threshold and alpha; "bound" asks for a region after that; "drawing" is
the time from a move of the pointer to the next frame that headless Chromium paints. Scores are made up.
"""

import shutil
import statistics
import tempfile
from pathlib import Path

import metfa
from benchmarks.guarantees_of_drawn_regions import N, explained
from metfa import report

MEASURE = """async () => {
  const { drawing, result } = window.metfaReport[0];
  const spent = (act) => { const start = performance.now(); act(); return performance.now() - start; };
  const times = { first: [], bound: [], drawing: [] };
  const masks = Array.from({ length: 40 }, (_, k) => {
    const mask = new Uint8Array(result.size);
    for (let p = 0; p < mask.length; p++) mask[p] = Math.hypot((p / 224) - 3 * k - 40, (p % 224) - 112) < 5 + 3 * k;
    return mask;
  });
  for (const mask of masks) {
    drawing.bound = null;
    times.first.push(spent(() => drawing.boundsOf(mask)));
    times.bound.push(spent(() => drawing.boundsOf(mask)));
  }
  document.querySelector("input[value=box]").click();
  const canvas = document.querySelector("canvas[role=application]");
  canvas.setPointerCapture = () => {};
  const box = canvas.getBoundingClientRect();
  const send = (name, share) => canvas.dispatchEvent(new PointerEvent(name, { bubbles: true, pointerId: 1, button: 0,
    clientX: box.left + share * box.width, clientY: box.top + share * box.height }));
  send("pointerdown", 0.05);
  for (let k = 1; k <= 40; k++) {
    const start = performance.now();
    send("pointermove", 0.05 + 0.02 * k);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    times.drawing.push(performance.now() - start);
  }
  return times;
}"""


def measured(name: str, sample: metfa.AttributionSample, page, folder: Path) -> None:
    path = report.write(folder / f"{name}.html", sample, threshold=1.5)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]", timeout=120_000)
    for what, found in page.evaluate(MEASURE).items():
        print(f"{name}, {what}: {statistics.median(found):.1f} ms ({min(found):.1f} to {max(found):.1f})")


def main() -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        measured(f"N = {N}", explained(N), page, Path(folder))
        until = metfa.Until(undecided=0.0, threshold=1.5, max_samples=N)
        measured("Until", explained(until), page, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
