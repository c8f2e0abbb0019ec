"""Measure the paper's tables, in the order in which they are worth most; a run goes on from the units in paper/results.

    OMP_NUM_THREADS=1 nice -n 19 python -m paper --data FOLDER --hours 8
    python -m paper.page

FOLDER has folders sentiment (train.csv and test.csv), toxicity (train.csv, test.csv, forum_test.csv and spans.csv),
imagenet-sample (photographs, index.csv), camvid (`paper.road_scenes`) and espnet-camvid (`paper.espnet`). What is left
when the hours are over is measured by the next run. The classifier of toxic posts is trained where its file is missing,
and so are the small networks of `paper.planted_context`. Another kind of processor trains others: their tables are then
refused, and the other scripts go on.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SAMPLED = ["RISE", "RISE, a tenth", "LIME", "LIME, a tenth", "I-GOS"]


def order(data: Path, classifier: Path) -> Iterator[tuple[str, list[str]]]:
    """Scripts with their options: texts at the paper's settings, the gradient, then what takes longer."""
    sentences = ["--data", f"{data}/sentiment/test.csv", "--words", "30", "80"]
    spans = ["--data", f"{data}/toxicity/spans.csv", "--model", str(classifier)]
    posts = ["--data", f"{data}/toxicity/forum_test.csv", *spans[1:], "--only", "toxic"]
    photographs = ["--data", f"{data}/imagenet-sample"]
    for script in ("text_stability", "text_faithfulness"):
        for copies in ("500", "2000"):
            yield script, [*sentences, "--copies", copies]
            yield script, [*posts, "--copies", copies]
    yield "toxic_spans", [*spans, "--copies", "500"]
    yield "flips", photographs
    yield "authors_penalty", sentences
    yield "theorem5", []
    yield "planted_context", []
    yield "stability", [*photographs, "--explainers", "Gradient"]
    yield "smoothgrad", [*photographs, "--images", "50"]
    yield "alpha", [*photographs, "--images", "50"]
    for images in ("5", "20"):
        yield "stability", [*photographs, "--explainers", *SAMPLED, "--noises", "normal", "--images", images]
        yield "faithfulness", [*photographs, "--images", images]
    yield "faithfulness", [*photographs, "--images", "50"]
    scenes = ["--data", f"{data}/camvid", "--weights", f"{data}/espnet-camvid/espnet_p_2_q_8_camvid.pth"]
    yield "context_bias", [*scenes, "--radius", "0.05"]
    for components in ("3", "6"):  # of LEMNA's mixture
        yield "text_stability", [*posts, "--copies", "500", "--components", components]
    for explainer, images in (("cam", "40"), ("lrp", "40"), ("mask", "20")):
        yield "attack_table", ["--network", "digits", "--explainers", explainer, "--images", images, "--steps", "200"]
    for explainer, images, restarts in (("cam", "20", "3"), ("lrp", "10", "3"), ("mask", "5", "1")):
        strong = ["--steps", "200", "--restarts", restarts]
        yield "attack_table", [*photographs, "--explainers", explainer, "--images", images, *strong]
    for levels in ("2", "4", "8"):
        weaker = ["--budget", levels, "--attackers", "nothing", "defence", "seed", "--images", "4"]
        yield "attack_table", [*photographs, "--explainers", "cam", "--steps", "200", *weaker]


def trained(data: Path, classifier: Path) -> None:
    """The classifier of toxic posts; with one thread, the same machine makes the same weights."""
    if not classifier.exists():
        command = [sys.executable, "examples/train_text_classifier.py", "--data", str(data / "toxicity")]
        named = ["--out", str(classifier), "--class-names", "harmless", "toxic"]
        subprocess.run([*command, *named], check=True, cwd=ROOT)  # noqa: S603 - our own script


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--classifier", type=Path, default=ROOT / "paper-store" / "toxicity.npz")
    parser.add_argument("--hours", type=float, default=float("inf"), help="begin no unit after these")
    options = parser.parse_args()
    data, classifier = options.data.absolute(), options.classifier.absolute()
    classifier.parent.mkdir(parents=True, exist_ok=True)
    trained(data, classifier)
    until = time.monotonic() + 3600 * options.hours
    failed = []
    for script, given in order(data, classifier):
        left = (until - time.monotonic()) / 3600
        if left <= 0:
            break
        print(f"== {script} {' '.join(given)}", flush=True)
        command = [sys.executable, "-m", f"paper.{script}", *given, "--hours", f"{left:.3f}"]
        if subprocess.run(command, check=False, cwd=ROOT).returncode:  # noqa: S603 - our own scripts
            failed.append(script)
    if failed:
        sys.exit(f"these ended with an error: {', '.join(failed)}")
