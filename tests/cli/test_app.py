"""The commands: what they write, what they refuse in one line, and how they go on after an interruption."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import metfa
from metfa._base.own_files import foreign_in
from metfa.cli import app, demo, folders, run, views

METFA = Path(sys.executable).with_name("metfa")
FILES = ["about.json", "figure.png", "maps.png", "report.html", "report.txt", "sample"]


def save_picture(path, seed=0):
    pixels = np.random.default_rng(seed).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, format="PNG")
    return path


@pytest.fixture
def picture(tmp_path):
    """A file with a picture."""
    return save_picture(tmp_path / "picture.png")


def tree(folder):
    """Everything below a folder, with the time when it was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def values(folder):
    return (folder / "sample" / "values.npy").read_bytes()


# What is written


@pytest.mark.slow
def test_one_picture(metfa_command, tiny, picture, tmp_path, whole_figures):
    done = metfa_command("explain", picture, "--model", "tiny:module", "--samples", 8, "--out", "out")
    assert done.code == 0
    folder = tmp_path / "out"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert foreign_in(folder) is None
    report = (folder / "report.txt").read_text()
    assert done.out == f"{report}\nfigure: out/figure.png\nfigure: out/maps.png\npage: out/report.html\n"
    image = np.asarray(Image.open(folder / "figure.png").convert("RGB"))
    assert image.std() > 20
    sample = metfa.load(folder / "sample")
    assert sample.values.shape == (8, 1, 224, 224)
    assert json.loads((folder / "about.json").read_text())["image"] == str(picture)


@pytest.mark.slow
def test_the_report_says_all_that_a_person_needs(explain, picture, tmp_path):
    explain(picture, "--out", "out", "--seed", 3, "--noise", "gaussian:0.2")
    report = (tmp_path / "out/report.txt").read_text()
    sample = metfa.load(tmp_path / "out/sample")
    probabilities = torch.from_numpy(sample.scores[0].copy()).softmax(0)
    best = int(probabilities.argmax())
    marks = sample.significance_map()
    for line in (
        f"image:            {picture}",
        "model:            tiny:model",
        "method:           gradient",
        "noise:            gaussian:0.2",
        f"prediction:       class {best} ({probabilities[best]:.2f})",
        "samples:          8 of each feature's score; 9,216 features",
        f"important:        {(marks == 1).mean():7.2%} (median above the threshold, {sample.threshold()[0]:.4g})",
        f"unimportant:      {(marks == -1).mean():7.2%} (median below it)",
        f"undecided:        {(marks == 0).mean():7.2%}",
        "false marks:      up to 648 of 9,216 features marked falsely on average (7.0%), if every median lay at the",
        "intervals:        each holds its median with probability 99.22%, more where scores tie; mean width",
        f"prediction flips: {sample.flip_rate[0]:.0%} of the noisy inputs",
    ):
        assert line in report
    assert re.search(r"^time: +\d+\.\d s for 8 explanations, seed 3$", report, re.MULTILINE)
    assert "\nexplained:" not in report
    assert f"class explained:  class {best}, as predicted" in report


def test_the_class_has_its_name_in_every_view(metfa_command, tiny, picture, tmp_path):
    done = metfa_command(
        "explain", picture, "--model", "tiny:named", "--samples", 8, "--regions", "none", "--out", "out"
    )
    assert done.code == 0
    sample = metfa.load(tmp_path / "out/sample")
    best = int(sample.scores[0].argmax())
    named = f"class {best} ({('cup', 'pot', 'plate')[best]}), as predicted"
    assert f"class explained:  {named}" in (tmp_path / "out/report.txt").read_text()
    assert named in (tmp_path / "out/report.html").read_text()
    assert f"explained: {named}" in sample.plot().get_suptitle()


@pytest.mark.slow
def test_a_target_of_ones_own_is_named(explain, picture, tmp_path):
    explain(picture, "--out", "best")
    best = metfa.load(tmp_path / "best/sample").target[0]
    other = (best + 1) % 3
    explain(picture, "--out", "other", "--target", other)
    assert metfa.load(tmp_path / "other/sample").target == (other,)
    assert re.search(
        rf"^explained: +class {other} \(0\.\d\d\)$", (tmp_path / "other/report.txt").read_text(), re.MULTILINE
    )


@pytest.mark.slow
def test_several_pictures_have_folders_of_their_own(explain, tmp_path):
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
    paths = [
        save_picture(tmp_path / name, seed)
        for seed, name in enumerate(["a/cat.png", "b/cat.png", "c/Cat.png", "c/cat-2.png", "c/...png"])
    ]
    done = explain(*paths, paths[0], "--out", "out")
    assert done.code == 0
    names = ["Cat-3", "cat", "cat-2", "cat-2-2", "cat-4", "png" if Path("...png").stem == "...png" else "picture"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(names)
    for name, path in zip(["cat", "cat-2", "Cat-3", "cat-2-2"], paths, strict=False):
        assert json.loads((tmp_path / "out" / name / "about.json").read_text())["image"] == str(path)
    assert values(tmp_path / "out/cat") == values(tmp_path / "out/cat-4")
    assert values(tmp_path / "out/cat") != values(tmp_path / "out/cat-2")
    assert done.out.count("figure: ") == 12


@pytest.mark.slow
def test_one_picture_at_a_time_is_held(explain, tmp_path, monkeypatch):
    opened = []
    real = app.open_image
    monkeypatch.setattr(app, "open_image", lambda path: opened.append(path.name) or real(path))
    explain(save_picture(tmp_path / "a.png"), save_picture(tmp_path / "b.png"), "--out", "out")
    assert opened == ["a.png", "b.png", "a.png", "b.png"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_samples_whatever_the_batch(explain, picture, tmp_path):
    explain(picture, "--out", "one", "--batch-size", 1)
    explain(picture, "--out", "many", "--batch-size", 8)
    explain(picture, "--out", "other", "--seed", 1)
    one, many, other = (metfa.load(tmp_path / name / "sample").values for name in ("one", "many", "other"))
    np.testing.assert_allclose(one, many, atol=1e-4)
    assert np.abs(one - other).mean() > 0.01


@pytest.mark.slow
def test_other_methods_noises_and_settings(explain, picture, tmp_path):
    done = explain(
        *(picture, "--out", "out", "--method", "tiny:slow", "--noise", "uniform:0.1+brightness:0.9:1.1:pixel"),
        *(
            "--threshold",
            "0.2",
            "--alpha",
            "0.01",
            "--confidence",
            "0.9",
            "--palette",
            "colourblind",
            "--device",
            "cpu",
        ),
        *("--correction", "bh"),
    )
    assert done.code == 0
    assert "median above the threshold, 0.2)" in done.out
    assert (
        "of those called important, at most 1% on average are false, under positive dependence; the same for those"
        in done.out
    )
    assert "each holds its median with probability 92.97%" in done.out


@pytest.mark.slow
def test_settings_of_the_method(explain, picture, tmp_path):
    arguments = (
        picture,
        "--out",
        "out",
        "--method",
        "rise",
        "--threshold",
        0.5,
        "--set",
        "n_masks=8",
        "--set",
        "grid=(2, 3)",
    )
    done = explain(*arguments, "--noise", "none")
    assert done.code == 0
    assert re.search(r"^method: +rise \(grid=\(2, 3\), n_masks=8\)$", done.out, re.MULTILINE)
    assert json.loads((tmp_path / "out" / "about.json").read_text())["settings"] == "grid=(2, 3), n_masks=8"
    (tmp_path / "out" / "report.txt").unlink()
    (tmp_path / "out" / "figure.png").unlink()
    (tmp_path / "out" / "maps.png").unlink()
    other = explain(*arguments[:-1], "grid=(3, 3)", "--noise", "none")
    assert other.code == 2
    assert "holds results with settings=grid=(2, 3), n_masks=8, not grid=(3, 3), n_masks=8" in other.err
    assert explain(*arguments, "--noise", "none").code == 0


def shares_of(marks):
    """Undecided, important and unimportant."""
    return [float((marks == mark).mean()) for mark in (0, 1, -1)]


@pytest.mark.slow
def test_until_enough_is_decided(explain, metfa_command, picture, tmp_path):
    done = explain(picture, "--out", "out", "--until", "undecided=0.3", "--max-samples", "40", samples=None)
    assert done.code == 0
    sample = metfa.load(tmp_path / "out" / "sample")
    reached = sample.stopping.looks[-1].undecided <= 0.3
    assert sample.stopping.reason == ("reached" if reached else "max_samples")
    assert sample.n_samples <= 40
    assert sample.stopping.correction == "closed-e-bh"
    assert str(sample.stopping) in done.out
    assert (
        "at most 5% on average are false, under any dependence and whenever sampling stops; the same for those called "
        "unimportant (alpha 0.05 a side, closed-e-bh)" in done.out
    )
    assert f"{sample.stopping.thresholds[0]:.4g})" in done.out
    shares = [f"{share:.2%}" for share in shares_of(sample.significance_map())]
    assert re.search(r"^undecided: +([\d.]+%)", done.out, re.MULTILINE).group(1) == shares[0]
    shown = metfa_command("show", "out").out  # as it was decided, not as by default
    assert re.search(r"^undecided: +([\d.]+%)", shown, re.MULTILINE).group(1) == shares[0]
    assert "(alpha 0.05 a side, closed-e-bh)" in shown


@pytest.mark.slow
def test_until_intervals_are_narrow_whatever_is_tested_afterwards(explain, picture):
    reading = ("--threshold", "0.3", "--alpha", "0.1", "--correction", "none")
    done = explain(picture, "--out", "out", "--until", "width=100", "--max-samples", "40", *reading, samples=None)
    assert done.code == 0
    assert "as asked (100)" in done.out
    assert "(median above the threshold, 0.3)" in done.out
    assert "each feature is called important falsely with probability at most 10%, whenever sampling stops" in done.out


@pytest.mark.slow
def test_a_certificate(explain, picture, tmp_path, whole_figures):
    noise = ("--noise", "gaussian:0.1", "--samples", "20")
    done = explain(picture, "--out", "out", "--certify", "--threshold", "0.3", *noise)
    assert done.code == 0
    share = re.search(r"^certified: +the medians of ([\d.]+)% of the pixels", done.out, re.MULTILINE).group(1)
    radius = metfa.load(tmp_path / "out" / "sample").certified_radius(0.3)
    assert float(share) == pytest.approx(100 * (radius > 0).mean(), abs=0.01)
    assert np.asarray(Image.open(tmp_path / "out" / "certified.png").convert("RGB")).std() > 20
    assert foreign_in(tmp_path / "out") is None


@pytest.mark.slow
def test_a_certificate_after_until_is_that_of_the_result(explain, picture, tmp_path):
    rule = ("--until", "undecided=0.5", "--max-samples", "40", "--noise", "gaussian:0.1")
    done = explain(picture, "--out", "out", "--certify", *rule, samples=None)
    assert done.code == 0
    radius = metfa.load(tmp_path / "out" / "sample").certified_radius()
    if radius.any():
        share = re.search(r"^certified: +the medians of ([\d.]+)% of the pixels", done.out, re.MULTILINE).group(1)
        assert float(share) == pytest.approx(100 * (radius > 0).mean(), abs=0.01)
        assert f"{np.quantile(radius[radius > 0], 0.5):.3g}" in done.out
    else:
        assert "no pixel is decided, so none is certified" in done.out


@pytest.mark.slow
def test_pictures_of_the_networks_size_are_not_cropped_again(explain, tmp_path):
    levels = np.random.default_rng(0).integers(0, 256, (96, 96, 3), np.uint8)
    Image.fromarray(levels).save(tmp_path / "exact.png")
    assert explain(tmp_path / "exact.png", "--out", "out", "--no-crop").code == 0
    pixels = metfa.load(tmp_path / "out" / "sample").inputs[0]
    np.testing.assert_array_equal(np.rint(255 * np.moveaxis(pixels, 0, -1)), levels)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["--until", "often"], "`--until` must be undecided=NUMBER, width=NUMBER, change=NUMBER"),
        (["--until", "undecided=5"], "`undecided` must be a share below 1, got 5.0"),
        (["--until", "undecided=0.1", "--correction", "bh"], "and 'bh' is for a number"),
        (["--until", "width=0.1", "--correction", "bh"], "and 'bh' is for a number"),
        (["--until", "undecided=0.1", "--max-samples", "12"], "`max_samples`=12 can decide nothing"),
        (["--certify"], "`--certify` needs Gaussian noise, such as --noise gaussian:0.1, got --noise uniform:0.1"),
        (["--certify", "--noise", "gaussian:0.1"], "needs a threshold that does not depend on the samples"),
        (
            ["--certify", "--noise", "gaussian:0.1", "--until", "width=0.1"],
            "needs a threshold that does not depend on the samples",
        ),
        (["--until", "undecided=0.1", "--samples", "9"], "`--samples` 9 and `--until` contradict each other"),
        (["--max-samples", "9"], "`--max-samples` 9 is only for --until: write --samples 9"),
        (
            ["--certify", "--noise", "gaussian:0.1", "--threshold", "0.3", "--correction", "by"],
            "`--certify` takes --correction none, bonferroni, bh, e-bh or closed-e-bh, got by",
        ),
    ],
)
def test_rules_and_certificates_that_cannot_be_met(explain, picture, tmp_path, settings, message):
    done = explain(picture, "--out", "out", "--model", "no:model", *settings, samples=None)
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["n_mask=8"], "rise has no setting 'n_mask', did you mean 'n_masks'?"),
        (["keep=3"], "`keep` must lie strictly between 0 and 1, got 3"),
        (["keep"], "`--set` must be key=value, such as n_masks=500, got 'keep'"),
    ],
)
def test_unfit_settings_are_refused_before_the_model_is_loaded(explain, picture, tmp_path, settings, message):
    done = explain(picture, "--out", "out", "--model", "no:model", "--method", "rise", "--set", *settings)
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "out").exists()


def test_help_names_every_command_and_option(metfa_command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert metfa_command().code == 2
    shown = metfa_command("--help")
    assert shown.code == 0
    for command in ("demo", "explain", "show"):
        assert command in shown.out
    options = metfa_command("explain", "--help").out
    for option in ("model", "method", "target", "noise", "samples", "alpha", "confidence", "correction", "threshold"):
        assert f"--{option}" in options
    for option in ("seed", "batch-size", "device", "fast", "palette", "out"):
        assert f"--{option}" in options
    assert "brightness:LOW:HIGH[:image|pixel]" in " ".join(options.replace("│", " ").split()).replace(" ", "")


@pytest.mark.slow
def test_typers_runner_sees_the_same(picture, tmp_path, tiny, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["explain", str(picture), "--model", "tiny:model", "-n", "8"]
    assert CliRunner().invoke(app.app, arguments).exit_code == 0
    again = CliRunner().invoke(app.app, arguments)
    assert again.exit_code == 0
    assert "metfa-out holds the finished result of this command: nothing is written" in again.output


# Reading again


@pytest.fixture(scope="module")
def finished_once(tmp_path_factory, tiny):
    folder = tmp_path_factory.mktemp("finished")
    arguments = ["explain", str(save_picture(folder / "picture.png")), "--model", "tiny:model", "-n", "8"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "keep_freed_memory", lambda: False)
        done = CliRunner().invoke(app.app, [*arguments, "--out", str(folder / "out")])
    assert done.exit_code == 0, done.output
    return folder / "out"


@pytest.fixture
def finished(finished_once, picture, tmp_path):
    """Folder with the results of ``metfa explain PICTURE --model tiny:model -n 8``."""
    folder = tmp_path / "out"
    shutil.copytree(finished_once, folder)
    for name in ("about.json", "report.txt"):
        (folder / name).write_text((folder / name).read_text().replace(str(finished_once.parent), str(tmp_path)))
    return folder


def test_show_reads_the_report_again(metfa_command, finished):
    before = tree(finished)
    assert metfa_command("show", finished).out == (finished / "report.txt").read_text()
    other = metfa_command("show", finished, "--alpha", 0.2, "--threshold", 0.3, "--confidence", 0.5)
    assert "alpha 0.2 a side" in other.out
    assert "the threshold, 0.3)" in other.out
    assert "each holds its median with probability 71.09%" in other.out
    assert tree(finished) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "out", "written"),
    [
        ("show", "again", ["figure.png", "maps.png", "report.html", "report.txt"]),
        ("report", "again/page.html", ["page.html"]),
    ],
)
def test_reading_a_result_again_needs_no_torch(command, out, written, finished, tmp_path):
    code = """
import sys, metfa.cli
try:
    metfa.cli.main()
finally:
    assert "torch" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", code, command, str(finished), "--out", str(tmp_path / out)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == written


@pytest.mark.slow
def test_show_writes_views_elsewhere_and_overwrites_nothing(metfa_command, finished, tmp_path):
    done = metfa_command("show", finished, "--alpha", 0.2, "--out", "views")
    assert done.code == 0
    assert (
        tmp_path / "views/report.txt"
    ).read_text() + "\nfigure: views/figure.png\nfigure: views/maps.png\npage: views/report.html\n" == done.out
    before = tree(tmp_path)
    for folder in ("views", finished):
        shown = metfa_command("show", finished, "--out", folder)
        assert "report.txt exists already: give another `--out`" in shown.error
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/figure.png").write_text("mine")
    before = tree(tmp_path)
    assert "mine/figure.png exists already" in metfa_command("show", finished, "--out", "mine").error
    assert tree(tmp_path) == before


@pytest.mark.slow
def test_show_of_a_saved_sample_with_several_inputs(metfa_command, tmp_path):
    def explainer(inputs, target):
        return np.abs(inputs[:, 0])

    images = np.random.default_rng(0).random((2, 1, 9, 9))
    sample = metfa.explain(explainer, images, 0, noise=metfa.noise.Uniform(0.1), n_samples=8, rng=0)
    sample.save(tmp_path / "saved")
    done = metfa_command("show", "saved", "--out", "views")
    assert done.code == 0
    assert "row:              input 0 of 2" in done.out
    assert "row:              input 1 of 2" in done.out
    assert sorted(path.name for path in (tmp_path / "views").iterdir()) == [
        "figure-0.png",
        "figure-1.png",
        "maps-0.png",
        "maps-1.png",
        "report.html",
        "report.txt",
    ]


def test_show_of_features_that_are_no_image(metfa_command, tmp_path):
    sample = metfa.explain(
        lambda inputs, target: inputs,
        np.linspace(1, 3, 60)[None],
        0,
        noise=metfa.noise.Uniform(0.1),
        n_samples=8,
        rng=0,
    )
    sample.save(tmp_path / "saved")
    assert "60 features" in metfa_command("show", "saved").out
    assert metfa_command("show", "saved", "--out", "views").out.endswith(
        "\nfigure: views/figure.png\npage: views/report.html\n"
    )
    with Image.open(tmp_path / "views/figure.png") as bars:
        assert min(bars.size) > 100


# Mistakes


def test_fast_is_for_methods_that_have_a_name(explain, picture):
    done = explain(picture, "--method", "tiny:slow", "--fast", "exact")
    assert done.code == 2
    assert re.match(r"error: `--fast` is for gradient, .*; tiny:slow makes its explainer itself", done.err)


def test_a_module_of_the_current_folder_is_found(metfa_command, picture, tmp_path, monkeypatch):
    """As README writes it: `--model mymodule:make`, with mymodule.py in the folder where the command is typed."""
    code = """
        import torch
        from metfa.explainers import Gradient as mine

        def make():
            bent = torch.nn.Conv2d(3, 4, 5, stride=4), torch.nn.ReLU()
            return torch.nn.Sequential(*bent, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    """
    (tmp_path / "typed_here.py").write_text(textwrap.dedent(code))
    named = ["--model", "typed_here:make", "--method", "typed_here:mine", "--regions", "none"]
    before = list(sys.path)
    assert metfa_command("explain", picture, *named, "--samples", 8).code == 0
    monkeypatch.delitem(sys.modules, "typed_here")
    monkeypatch.setattr(sys, "path", before)
    with pytest.raises(ValueError, match="No module named 'typed_here'"):  # in Python nothing has changed
        metfa.models.load("typed_here:make")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--noise", "salt:1"], "the noise must be uniform:RADIUS, .*, got 'salt:1'"),
        (["--noise", "uniform:-1"], "'uniform:-1' is not a noise: `radius` must be finite and not negative"),
        (["--method", "gradiant"], r"the method must be one of gradient, .*, got 'gradiant'"),
        (["--threshold", "otsu"], "`--threshold` must be 'jenks_of_medians' .* or a number, got 'otsu'"),
        (["--alpha", "0"], r"`alpha` must lie between 0 and 0.5, got 0\.0"),
        (["--alpha", "5"], r"`alpha` must lie between 0 and 0.5, got 5\.0"),
        (["--alpha", "nan"], "`alpha` must lie between 0 and 0.5, got nan"),
        (["--confidence", "95"], r"`confidence_level` must lie strictly between 0 and 1, got 95\.0"),
        (["--samples", "5"], r"too few samples for `confidence_level`=0\.95: got 5, at least 6 are needed"),
        (["--samples", "5"], r"are needed, or write --confidence 0\.9375, the most that 5 can reach$"),
        (["--samples", "7", "--confidence", "0.99"], "got 7, at least 8 are needed"),
        (["--samples", "6", "--alpha", "0.001"], r"`--samples` 6 are too few for `--alpha` 0\.001.*at least 10 are"),
        (["--samples", "0"], "`n` must be at least 1, got 0"),
        (["--samples", "many"], "Invalid value for '--samples'"),
        (["--correction", "sidak"], "Invalid value for '--correction': .*'sidak' is not one of"),
        (["--palette", "rainbow"], "Invalid value for '--palette'"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
        (["--batch-size", "0"], "Invalid value for '--batch-size'"),
        (["--target", "cat"], "Invalid value for '--target'"),
        (["--colour", "red"], "No such option: --colour"),
        (["--device", "tpu9"], "`--device` 'tpu9' is not available: "),
        (["--device", "cuda:99"], "`--device` 'cuda:99' is not available: "),
        (["--model", "resnet"], "`--model` 'resnet' is not a known model"),
        (["--model", "no_such_module:model"], "^error: `--model` 'no_such_module:model' .* 'no_such_module'; the"),
        (["--model", "tiny:broken"], "out of order in two lines"),
        (["--model", "tiny:none"], "tiny:none"),
        (["--method", "tiny:nothing"], "the method 'tiny:nothing' cannot be imported as .*: .*no attribute 'nothing'"),
        (["--noise", "none"], "`noise` is None"),
        (
            ["--correction", "bonferroni"],
            r"too few for .*bonferroni over 9,216 pixels, each side.*at least 18 are needed",
        ),
        (["--target", "3"], r"`target`.* must .*\b2\b.*, got 3"),
        (["--target", "-1"], r"`target` must .*, got -1"),
    ],
)
def test_bad_settings_are_one_line(arguments, message, metfa_command, picture, tiny, tmp_path):
    base = {"--model": "tiny:model", "--samples": "8", "--out": "out"}
    base.update(zip(arguments[::2], arguments[1::2], strict=True))
    done = metfa_command("explain", picture, *(part for pair in base.items() for part in pair))
    lines = [line for line in done.err.splitlines() if line and not line.startswith(("malloc keeps", "explaining:"))]
    assert (done.code, done.out, len(lines)) == (2, "", 1)
    assert lines[0].startswith("error: ")
    assert re.search(message, lines[0])
    assert not (tmp_path / "out/figure.png").exists()
    assert not (tmp_path / "out/report.txt").exists()


@pytest.mark.slow
def test_a_mistake_can_be_mended_in_the_same_folder(explain, picture, tmp_path):
    assert explain(picture, "--out", "out", "--target", 9).code == 2
    assert explain(picture, "--out", "out").code == 0
    assert metfa.load(tmp_path / "out/sample").provenance["n_samples"] == 8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such image: picture.png"),
        ("folder", r"picture\.png is not a file; give the path of an image file"),
        (b"hello", r"picture\.png cannot be read as an image .*: unknown format"),
        (b"<svg/>", "unknown format"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "unknown format"),
    ],
)
def test_what_is_no_picture_is_one_line(content, message, metfa_command, tmp_path):
    path = Path("picture.png")
    if content == "folder":
        (tmp_path / path).mkdir()
    elif content is not None:
        (tmp_path / path).write_bytes(content)
    assert re.search(message, metfa_command("explain", path).error)
    assert not (tmp_path / "metfa-out").exists()


def test_a_truncated_picture_among_good_ones_stops_all_at_the_start(explain, picture, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(picture.read_bytes()[:2000])
    assert "broken.png cannot be read as an image" in explain(picture, broken, "--out", "out").error
    assert not (tmp_path / "out").exists()


def test_a_picture_without_known_range_is_named(explain, tmp_path):
    Image.fromarray(np.ones((9, 9), dtype=np.float32)).save(tmp_path / "float.tiff")
    done = explain(tmp_path / "float.tiff", "--out", "out")
    assert done.code == 2
    assert f"error: {tmp_path}/float.tiff: `image` of mode F has no known range" in done.err


def test_missing_arguments_are_one_line(metfa_command):
    assert "Missing argument" in metfa_command("explain").error
    assert "Missing argument" in metfa_command("show").error
    assert "No such command 'explian'" in metfa_command("explian").error
    assert "`--photo` must be one of ['cat', 'coffee'], got 'dog'" in metfa_command("demo", "--photo", "dog").error


@pytest.mark.slow
def test_mistakes_are_found_before_torch_is_loaded(tmp_path):
    picture = save_picture(tmp_path / "p.png")
    mistakes = [
        ["explain", "nowhere.png"],
        ["explain", str(picture), "--samples", "5"],
        ["explain", str(picture), "--alpha", "1"],
        ["explain", str(picture), "--confidence", "1"],
        ["explain", str(picture), "--noise", "salt:1"],
        ["explain", str(picture), "--method", "gradiant"],
        ["explain", str(picture), "--threshold", "x"],
        ["explain", str(picture), "--out", str(picture)],
        ["explain", str(picture), "--out", str(picture / "below")],
        ["explain", str(picture), "--out", str(tmp_path)],
        ["demo", "--samples", "2"],
        ["show", "nowhere"],
        ["show", str(picture)],
        ["show", str(tmp_path)],
    ]
    code = """
        import sys
        import metfa.cli

        for arguments in eval(sys.argv[1]):
            sys.argv[1:] = arguments
            try:
                metfa.cli.main()
            except SystemExit as exit_:
                assert exit_.code == 2, arguments
        assert not {"torch", "matplotlib"} & set(sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), repr(mistakes)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=tmp_path,
    )
    lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert len(lines) == len(mistakes)
    assert all(line.startswith("error: ") for line in lines)
    assert [path.name for path in tmp_path.iterdir()] == ["p.png"]


# Folders


@pytest.mark.slow
def test_finished_results_are_kept(explain, finished, picture):
    before = tree(finished)
    report, figure = (finished / "report.txt").read_text(), finished / "figure.png"
    done = explain(picture, "--out", finished)
    assert done.code == 0
    assert f"{finished} holds the finished result of this command: nothing is written" in done.err
    maps, page = finished / "maps.png", finished / "report.html"
    assert done.out == f"{report}\nfigure: {figure}\nfigure: {maps}\npage: {page}\n"
    assert tree(finished) == before
    other = explain(picture, "--out", finished, "--alpha", 0.1)
    assert other.code == 2
    assert f"{finished} holds a finished result on other terms: `metfa show {finished}` reads it" in other.err
    assert tree(finished) == before
    save_picture(picture, seed=9)
    assert "holds samples of another input" in explain(picture, "--out", finished).err
    assert tree(finished) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["figure.png", "report.txt"])
def test_a_command_that_was_killed_while_it_wrote_is_repeated(name, explain, finished, picture):
    before, report = tree(finished).keys(), (finished / "report.txt").read_text()
    (finished / "report.txt").unlink()
    if name == "figure.png":
        (finished / name).unlink()
    assert explain(picture, "--out", finished).code == 0
    assert tree(finished).keys() == before
    assert (finished / "report.txt").read_text() == report


@pytest.mark.slow
@pytest.mark.parametrize("name", ["about.json", "report.txt", "figure.png", "sample"])
def test_views_are_not_written_through_links(name, explain, picture, tmp_path):
    (tmp_path / "out").mkdir()
    secret = tmp_path / "secret"
    secret.mkdir() if name == "sample" else secret.write_text("{}")
    assert explain(picture, "--out", "other").code == 0
    (tmp_path / "out/about.json").write_bytes((tmp_path / "other/about.json").read_bytes())
    (tmp_path / "out" / name).unlink(missing_ok=True)
    (tmp_path / "out" / name).symlink_to(secret)
    explain(picture, "--out", "out")
    assert list(secret.iterdir()) == [] if name == "sample" else secret.read_text() == "{}"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["--seed", 1], "seed=0, not 1"),
        (["--noise", "uniform:0.2"], "noise=uniform:0.1, not uniform:0.2"),
        (["--target", 0], "target=None, not 0"),
        (["--method", "tiny:slow"], "method=gradient, not tiny:slow"),
        (["--fast", "bfloat16"], "fast=None, not bfloat16"),
    ],
)
def test_results_of_another_call_are_kept(settings, message, explain, finished, picture):
    before = tree(finished)
    done = explain(picture, "--out", finished, *settings)
    assert done.error == f"error: {finished} holds results with {message}; give another `--out`, or --overwrite"
    assert tree(finished) == before


def test_files_of_others_are_not_overwritten(explain, finished, picture):
    (finished / "notes.txt").write_text("mine")
    (finished / "sample" / "thesis.npy").write_text("mine")
    before = tree(finished)
    done = explain(picture, "--out", finished, "--seed", 1, "--overwrite")
    assert "`--overwrite` removes what metfa has written, and" in done.error
    assert "notes.txt is something else" in done.error
    assert tree(finished) == before
    (finished / "notes.txt").unlink()
    assert "thesis.npy is something else" in explain(picture, "--out", finished, "--seed", 1, "--overwrite").error


@pytest.mark.parametrize("name", [*FILES, "notes.txt"])
def test_folders_with_files_of_others_are_left_alone(name, explain, picture, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("mine")
    before = tree(tmp_path)
    assert "mine" in explain(picture, "--out", "mine").error
    assert tree(tmp_path) == before


@pytest.mark.parametrize("about", [{}, {"image": "mine"}])
def test_a_description_of_others_is_left_alone(about, explain, picture, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/about.json").write_text(json.dumps(about))
    before = tree(tmp_path)
    assert "mine holds results with image=" in explain(picture, "--out", "mine").error
    assert tree(tmp_path) == before


@pytest.mark.slow
def test_an_empty_folder_and_new_ones_are_used(explain, picture, tmp_path):
    (tmp_path / "empty").mkdir()
    assert explain(picture, "--out", "empty").code == 0
    assert explain(picture, "--out", "new/er/folder").code == 0


def test_folders_that_cannot_be_written(explain, picture, tmp_path, monkeypatch):
    assert f"`--out` must be a folder, but {picture} is a file" in explain(picture, "--out", picture).error
    assert f"but {picture} is a file" in explain(picture, "--out", picture / "a/b").error
    monkeypatch.setattr(folders.os, "access", lambda path, mode: not mode & os.W_OK)
    assert f"nothing can be written in {tmp_path}" in explain(picture, "--out", tmp_path / "out").error


# Interrupted


@pytest.mark.slow
def test_control_c_is_reported_and_the_command_resumes(picture, tiny, tmp_path, explain, interrupts_heard):
    """A process of its own, interrupted by SIGINT in the middle of its samples."""
    arguments = [picture, "--out", "out", "--method", "tiny:slow", "--batch-size", "2"]
    command = [METFA, "explain", *arguments, "--model", "tiny:model", "--samples", "8"]
    waits = tmp_path / "waits"
    environment = {**os.environ, "PYTHONPATH": str(tiny), "METFA_TEST_WAITS": str(waits), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not waits.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "interrupted: the samples so far are kept; repeat the command to resume"
    assert "Traceback" not in err
    assert 0 < sum(map(any, np.split(np.fromfile(tmp_path / "out/sample/done.bin", np.uint8), 8))) < 8
    resumed = explain(*arguments)
    assert resumed.code == 0
    assert explain(picture, "--out", "whole", "--method", "tiny:slow", "--batch-size", "2").code == 0
    assert values(tmp_path / "out") == values(tmp_path / "whole")
    text = [(tmp_path / name / "report.txt").read_text() for name in ("out", "whole")]
    assert re.sub("time: .*", "", text[0]) == re.sub("time: .*", "", text[1])


def interrupt_once(monkeypatch, owner, name, at=1):
    real, calls = getattr(owner, name), []

    def interrupted(*args, **kwargs):
        calls.append(name)
        if len(calls) == at:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("metfa.models", "load"),
        ("metfa.sampling.store.StoreSink", "result"),
        ("metfa.plot._choice", "figure"),
        ("metfa.cli.views", "report"),
    ],
)
def test_an_interruption_at_any_stage_is_resumed(owner, name, explain, picture, tmp_path, monkeypatch):
    import importlib

    module, _, attribute = owner.rpartition(".") if owner.endswith("Sink") else (owner, "", "")
    place = importlib.import_module(module)
    interrupt_once(monkeypatch, getattr(place, attribute) if attribute else place, name)
    stopped = explain(picture, "--out", "out")
    assert stopped.code == 130
    assert stopped.err.splitlines()[-1].startswith("interrupted: ")
    assert not (tmp_path / "out/figure.png").exists()
    assert explain(picture, "--out", "out").code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES


@pytest.mark.slow
def test_an_interruption_of_the_second_picture_keeps_the_first(explain, tmp_path, monkeypatch):
    pictures = [save_picture(tmp_path / f"{name}.png", seed) for seed, name in enumerate("ab")]
    interrupt_once(monkeypatch, views, "report", at=2)
    assert explain(*pictures, "--out", "out").code == 130
    before = tree(tmp_path / "out/a")
    done = explain(*pictures, "--out", "out")
    assert done.code == 0
    assert tree(tmp_path / "out/a") == before
    assert done.out.count("figure: ") == 4  # a's are shown again: its model and its terms are checked
    assert (tmp_path / "out/b/figure.png").exists()
    again = explain(*pictures, "--out", "out")
    assert again.code == 0
    assert again.err.count("holds the finished result of this command: nothing is written") == 2


def test_a_picture_that_changed_meanwhile_is_noticed(explain, picture, tmp_path, monkeypatch):
    interrupt_once(monkeypatch, views, "report")
    assert explain(picture, "--out", "out").code == 130
    save_picture(picture, seed=9)
    assert "out holds samples of another input" in explain(picture, "--out", "out").err


def test_the_demo_resumes_its_own_folder_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ("efficientnet-lite0", "gradient", {}, None, "uniform:0.1")
    sampling = run.Sampling(*arguments, 50, 0, 10, "auto")
    other = run.Sampling(*arguments, 20, 0, 10, "auto")

    def begin(folder, sampling):
        (Path(folder) / "sample").mkdir(parents=True)
        (Path(folder) / "sample/run.json").write_text("{}")
        (Path(folder) / "about.json").write_text(json.dumps(run.call_of("coffee", sampling)))

    assert demo.demo_folder("coffee", sampling) == Path("metfa-demo")
    begin("metfa-demo", other)
    assert demo.demo_folder("coffee", sampling) == Path("metfa-demo-2")
    begin("metfa-demo-2", sampling)
    assert demo.demo_folder("coffee", sampling) == Path("metfa-demo-2")
    (tmp_path / "metfa-demo-2/report.txt").write_text("done")
    assert demo.demo_folder("coffee", sampling) == Path("metfa-demo-3")
    (tmp_path / "metfa-demo-3").write_text("a file")
    (tmp_path / "metfa-demo-4").mkdir()
    (tmp_path / "metfa-demo-4/mine").write_text("mine")
    assert demo.demo_folder("coffee", sampling) == Path("metfa-demo-5")


# Names and texts of others


HOSTILE = "\x1b]0;owned\x07\x1b[31m[red]$\\frac{"


@pytest.mark.slow
def test_hostile_file_names_are_printed_harmlessly(explain, tmp_path, whole_figures):
    picture = save_picture(tmp_path / f"{HOSTILE.replace('/', '')}.png")
    done = explain(picture, "--out", tmp_path / f"out{HOSTILE}")
    assert done.code == 0
    for text in (done.out, done.err, (tmp_path / f"out{HOSTILE}/report.txt").read_text()):
        assert "\x1b" not in text
        assert "\x07" not in text
    assert "?]0;owned??[31m[red]$\\frac{" in done.out
    assert "\x1b" not in explain(tmp_path / f"{HOSTILE}none.png").error
    assert "[red]" in explain(tmp_path / "[red]none.png").error
    assert explain(picture, tmp_path / "[/bold]none.png").code == 2


@pytest.mark.slow
def test_a_foreign_script_in_a_name_is_no_warning(explain, tmp_path, whole_figures):
    done = explain(save_picture(tmp_path / "猫🐈.png"), "--out", "out")
    assert done.code == 0
    assert "Glyph" not in done.err
    assert "猫🐈.png" in done.out


@pytest.mark.slow
def test_a_hostile_description_is_printed_harmlessly(metfa_command, finished, whole_figures):
    about = json.loads((finished / "about.json").read_text())
    for name in about:
        about[name] = [HOSTILE * 100, {"x": HOSTILE}]
    (finished / "about.json").write_text(json.dumps({**about, "__class__": "os.system"}))
    manifest = json.loads((finished / "sample/manifest.json").read_text())
    manifest["provenance"] = {"explainer": HOSTILE, "noise": HOSTILE}
    (finished / "sample/manifest.json").write_text(json.dumps(manifest))
    done = metfa_command("show", finished, "--out", "views")
    assert done.code == 0
    assert "\x1b" not in done.out + done.err
    assert max(map(len, done.out.splitlines())) < 400
    assert "time:             not recorded" in done.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"about\.json is damaged"),
        ("[" * 100_000, r"about\.json is damaged"),
        ("[1]", r"about\.json is damaged: an object is needed, got list"),
    ],
)
def test_a_damaged_description_is_one_line(text, message, metfa_command, finished, explain, picture):
    (finished / "about.json").write_text(text)
    assert re.search(message, metfa_command("show", finished).error)
    assert re.search(message, explain(picture, "--out", finished).error)


def test_a_linked_description_is_not_followed(metfa_command, finished, tmp_path):
    (finished / "about.json").rename(tmp_path / "secret.json")
    (finished / "about.json").symlink_to(tmp_path / "secret.json")
    assert "about.json is a link or no plain file" in metfa_command("show", finished).error


def test_show_without_a_description(metfa_command, finished):
    (finished / "about.json").unlink()
    done = metfa_command("show", finished)
    assert done.code == 0
    assert "prediction:" not in done.out
    assert "important:" in done.out


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "sample/values.npy").write_bytes(b"x"), r"values\.npy is no array file"),
        (lambda f: (f / "sample/manifest.json").write_text("{"), r"manifest\.json is damaged"),
        (lambda f: (f / "sample/manifest.json").unlink(), r"is not a saved result: it has no manifest\.json"),
        (lambda f: (f / "sample/vanilla.npy").unlink(), r"vanilla\.npy is missing"),
    ],
)
def test_damaged_results_are_one_line(spoil, message, metfa_command, finished):
    spoil(finished)
    assert re.search(message, metfa_command("show", finished).error)


def test_show_of_what_is_no_result(metfa_command, tmp_path, finished, picture):
    assert metfa_command("show", "nowhere").error == "error: no such folder: nowhere"
    assert "no such folder" in metfa_command("show", picture).error
    (tmp_path / "empty").mkdir()
    assert "empty is not a saved result: it has no manifest.json" in metfa_command("show", "empty").error
    (tmp_path / "two words/sample").mkdir(parents=True)
    said = metfa_command("show", tmp_path).error
    assert said.endswith(f"holds several results, name one of them: {tmp_path}/out, '{tmp_path}/two words'")
    assert metfa_command("show", ".").error.endswith("name one of them: out, 'two words'")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ["--correction", "bonferroni"],
            r"bonferroni over 9,216 features, each side\): got 8, at least 18 are needed",
        ),
        (["--alpha", "0.001"], r"`alpha`=0\.001 \(each side\): got 8, at least 10 are needed"),
        (["--alpha", "0.7"], "`alpha` must lie between 0 and 0.5, got 0.7"),
        (["--threshold", "x"], "`--threshold` must be"),
        (["--confidence", "2"], "`confidence_level` must lie strictly between 0 and 1, got 2.0"),
    ],
)
def test_show_refuses_levels_in_one_line(settings, message, metfa_command, finished):
    assert re.search(message, metfa_command("show", finished, *settings).error)


def test_show_of_a_level_that_needs_more_samples_says_so(metfa_command, finished):
    shown = metfa_command("show", finished, "--confidence", "0.999")
    assert shown.code == 0
    assert "none: 8 samples are too few, 99.9% needs 11" in shown.out


def test_a_method_whose_maps_are_no_images(metfa_command, picture, tiny, tmp_path):
    arguments = ["explain", picture, "--model", "tiny:model", "--method", "tiny:channels", "-n", "8", "--out", "out"]
    done = metfa_command(*arguments)
    assert done.code == 2
    assert "error: " in done.err
    assert "`metfa.explainers.heatmap(explainer)` makes one map" in done.err
    assert "27,648 features" in metfa_command("show", tmp_path / "out").out


def test_warnings_are_one_line(metfa_command, tmp_path):
    sample = metfa.explain(
        lambda inputs, target: inputs - np.linspace(0.5, 3, 60),
        np.ones((1, 60)),
        0,
        noise=metfa.noise.Uniform(1),
        n_samples=8,
        rng=0,
    )
    sample.save(tmp_path / "saved")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = metfa_command("show", "saved", "--threshold", "jenks")
    assert done.code == 0
    assert re.fullmatch(r"warning: the attributions are signed \(input 0: .*\n", done.err)


def test_a_missing_library_is_named_and_a_missing_module_of_ours_is_not_hidden(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "metfa.cli.app", None)
    with pytest.raises(ModuleNotFoundError, match=r"metfa.cli.app"):
        metfa.cli.main()
    monkeypatch.delitem(sys.modules, "metfa.cli.app")
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as exit_:
        metfa.cli.main()
    assert exit_.value.code == 2
    assert capsys.readouterr().err == "error: the command line needs typer: pip install 'metfa[image]'\n"
