"""The demo's own command on the real network: a process, its files, and the figures that it prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import metfa

pytestmark = pytest.mark.weights

METFA = Path(sys.executable).with_name("metfa")


def run(*arguments, folder):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [METFA, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    done = run("demo", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder / "metfa-demo", done


def number(report, name):
    return float(re.search(rf"^{name}: +([\d.]+)%", report, re.MULTILINE)[1]) / 100


def test_files(demo):
    folder, _ = demo
    assert sorted(path.name for path in folder.iterdir()) == [
        "about.json",
        "figure.png",
        "maps.png",
        "report.html",
        "report.txt",
        "sample",
    ]
    for name in ("figure.png", "maps.png"):
        image = Image.open(folder / name)
        image.load()
        pixels = np.asarray(image.convert("RGB"))
        assert min(image.size) > 600
        assert pixels.std() > 40
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 1000


def test_printed_text(demo):
    folder, done = demo
    report = (folder / "report.txt").read_text()
    figures = "figure: metfa-demo/figure.png\nfigure: metfa-demo/maps.png\n"
    assert done.stdout == f"{report}\n{figures}page: metfa-demo/report.html\n"
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    assert "malloc" not in done.stderr
    assert "50/50" in done.stderr
    assert re.search(r"^prediction: +espresso \(0\.95\)$", report, re.MULTILINE)
    assert "50 of each feature's score, 10 of them for the threshold alone; 50,176 features" in report
    assert 'no region is called "more than the rest" falsely, with probability at least 95%' in report
    assert "each holds its median with probability 96.72%" in report
    assert "no feature is called important falsely, with probability at least 95%" in report
    assert re.search(r"^time: +\d+\.\d s for 50 explanations, seed 0$", report, re.MULTILINE)
    shares = [number(report, name) for name in ("important", "unimportant", "undecided")]
    assert sum(shares) == pytest.approx(1, abs=2e-4)
    assert shares[0] > 0
    assert shares[1] > 0.1


def test_result_equals_the_reported_figures(demo):
    folder, _ = demo
    report = (folder / "report.txt").read_text()
    sample = metfa.load(folder / "sample")
    assert sample.values.shape == (50, 1, 224, 224)
    assert sample.target == (967,)
    assert sample.provenance["noise"] == "Uniform(radius=0.1, bounds=(0.0, 1.0))"
    assert 0 <= sample.values.min() <= sample.values.max() <= 1
    marks = sample.significance_map(correction="holm", split=10)
    for name, mark in (("important", 1), ("unimportant", -1), ("undecided", 0)):
        assert number(report, name) == pytest.approx((marks == mark).mean(), abs=5e-5)
    interval = sample.confidence_interval()
    assert f"mean width {(interval.high - interval.low).mean():.3g}" in report
    assert f"the threshold, {sample.threshold(split=10)[0]:.4g})" in report
    pooled = sample.over(metfa.regions.superpixels(sample, 50), against="rest")
    more, less = ((pooled.significance_map(correction="holm") == mark).sum() for mark in (1, -1))
    assert re.search(
        rf"^regions: +{more} of 50 regions \(\d+% of the picture\) get .*; {less} \(", report, re.MULTILINE
    )
    assert 10 < more < 40
    assert f"prediction flips: {sample.flip_rate[0]:.0%}" in report
    smoothed = sample.smoothed()
    assert (interval.low <= smoothed).all()
    assert (smoothed <= interval.high).all()


def test_the_smoothed_map_is_more_stable_than_one_explanation(demo):
    """Two halves of the samples agree in their smoothed maps far better than two single maps do."""
    values = metfa.load(demo[0] / "sample").values
    halves = [metfa.stats.smoothed_median(np.array(values[half]), axis=0) for half in (slice(0, 25), slice(25, 50))]
    apart = np.abs(halves[0] - halves[1]).mean(), np.abs(values[0] - values[1]).mean()
    assert apart[0] < 0.5 * apart[1]


def test_the_same_command_again_takes_another_folder(demo):
    folder, _ = demo
    done = run("demo", "--samples", "6", "--photo", "cat", "--seed", "1", folder=folder.parent)
    assert done.returncode == 0, done.stderr
    report = (folder.parent / "metfa-demo-2/report.txt").read_text()
    assert re.search(r"^prediction: +tiger cat \(0\.\d\d\)$", report, re.MULTILINE)
    assert "seed 1" in report
    assert "each holds its median with probability 96.88%" in report


def test_show_reads_it_with_a_correction(demo):
    folder, _ = demo
    shown = run("show", folder, "--correction", "bonferroni", folder=folder.parent)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "no feature is called important falsely, with probability at least 95%; the same for " in shown.stdout
    assert "(alpha 0.05 a side, bonferroni)" in shown.stdout
