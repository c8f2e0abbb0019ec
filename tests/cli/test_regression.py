"""`metfa regression`: exit codes, the file for programs, and what is refused."""

import json
import re

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from metfa._base.own_files import begins_with
from metfa.cli import app
from metfa.cli.comparing import MARK_OF_CHANGES

FILE = """
[model]
name = "tiny:model"

[data]
inputs = "pictures"

[explainer]
method = "gradient"

[sampling]
noise = "uniform:0.1"
n_samples = 12

[question]
regions = "grid:3"
delta = 0.02
"""

OTHER = """
import tiny
import torch
from metfa.models import CentreCrop, LoadedModel


class Left(tiny.Tiny):
    def forward(self, x):
        return super().forward(x * (torch.arange(96) < 32))


def model():
    return LoadedModel(Left().eval(), CentreCrop(96))


class Broken(tiny.Tiny):
    def forward(self, x):
        raise RuntimeError("out of order")


def broken():
    return LoadedModel(Broken().eval(), CentreCrop(96))
"""


@pytest.fixture
def place(tiny, tmp_path):
    (tiny / "other_tiny.py").write_text(OTHER)
    (tmp_path / "pictures").mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "pictures/a.png")
    (tmp_path / "check.toml").write_text(FILE)
    return tmp_path


@pytest.fixture
def regression(metfa_command, place):
    def run(kind, *arguments):
        where = {"record": "--out", "check": "--against"}[kind]
        return metfa_command("regression", kind, "check.toml", where, "record", *arguments)

    return run


@pytest.mark.slow
def test_a_record_and_its_checks(regression, place):
    done = regression("record", "--allow-import")
    assert done.code == 0
    assert re.fullmatch(r"record: record, 12 samples of 1 input, \d\.\d MB\n", done.out)
    again = regression("record", "--allow-import")
    assert again.code == 0
    assert "record holds this record already: nothing is written" in again.err

    same = regression("check", "--allow-import", "--out", "same.json")
    assert same.code == 0
    assert "no change by more than 0.02 is shown in 9 regions of 1 input" in same.out
    assert "changes: same.json" in same.out
    assert json.loads((place / "same.json").read_text())["changed"] is False
    assert begins_with(place / "same.json", MARK_OF_CHANGES)

    other = regression("check", "--model", "other_tiny:model", "--out", "other.json")
    assert other.code == 1
    assert re.search(
        r"^changed: +\d of 9 regions of 1 input changed by more than 0.02, in a.png$", other.out, re.MULTILINE
    )
    read = json.loads((place / "other.json").read_text())
    assert (read["changed"], read["delta"], read["alpha"], read["correction"]) == (True, 0.02, 0.05, "holm")
    assert (read["family"], read["n_samples"], read["schema_version"]) == (9, 12, 1)
    assert (read["before"]["model"], read["after"]["model"]) == ("tiny:model", "other_tiny:model")
    assert read["after"]["versions"]["numpy"] == np.__version__
    for change in read["changes"]:
        low, high = change["interval"]
        assert low <= change["difference"] <= high
        assert min(abs(low), abs(high)) > 0.02


@pytest.mark.slow
def test_two_records_are_compared_with_pictures(metfa_command, regression, place):
    assert regression("record", "--allow-import").code == 0
    settings = ("--allow-import", "--model", "other_tiny:model", "--out", "other")
    assert metfa_command("regression", "record", "check.toml", *settings).code == 0
    done = metfa_command("compare", "record", "other", "--delta", 0.02, "--fail-on-change", "--out", "changes")
    assert done.code == 1
    assert re.search(
        r"^changed: +\d of 9 regions of 1 input changed by more than 0.02, in a.png$", done.out, re.MULTILINE
    )
    assert re.search(r"^model: +before: tiny:model; after: other_tiny:model$", done.out, re.MULTILINE)
    assert (place / "changes/figure.png").exists()
    (place / "other/regression.json").write_text("{}")
    assert "regression.json" in metfa_command("compare", "record", "other").error


@pytest.mark.slow
def test_a_model_that_fails_is_no_change(regression, place):
    assert regression("record", "--allow-import").code == 0
    given = ["regression", "check", "check.toml", "--against", "record", "--model", "other_tiny:broken"]
    done = CliRunner().invoke(app.app, given)
    assert done.exit_code == 2
    assert "RuntimeError: out of order" in done.output


@pytest.mark.parametrize(
    ("kind", "arguments", "said"),
    [
        ("record", (), "importing it runs its code: allow it by --allow-import"),
        ("check", ("--allow-import",), "`against`: no such folder: record"),
        ("check", ("--allow-import", "--out", "changes.txt"), "`--out` must end with .json, got 'changes.txt'"),
        ("check", ("--allow-import", "--out", "kept.json"), "kept.json exists already: give another `--out`"),
        ("check", ("--allow-import", "--out", "kept.json", "--overwrite"), "kept.json is no such file"),
        ("record", ("--model", "efficientnet"), "'efficientnet' is not a known model"),
    ],
)
def test_mistakes_are_one_line(kind, arguments, said, regression, place):
    (place / "kept.json").write_text("{}")
    assert said in regression(kind, *arguments).error
    assert (place / "kept.json").read_text() == "{}"


def test_too_few_samples_name_the_least_number(regression, place):
    (place / "check.toml").write_text(FILE.replace("n_samples = 12", "n_samples = 8"))
    assert (
        "(holm over 9 differences, both sides together): got 8, at least 9 are"
        in regression("record", "--allow-import").error
    )
    assert not (place / "record").exists()


def test_the_help_names_both_commands(metfa_command):
    done = metfa_command("regression", "--help")
    assert done.code == 0
    assert "record" in done.out
    assert "check" in done.out
