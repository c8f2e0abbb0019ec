"""A folder holds what one model's call made: of another model nothing is read or mixed in without a word."""

import json
import sys

import numpy as np
import pytest
from PIL import Image

import metfa

MODULE = """
import os
import numpy as np
import torch
from torch import nn
from metfa.models import CentreCrop, LoadedModel

def model():
    torch.manual_seed(int(os.environ["TRAINED"]))
    layers = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)
    return LoadedModel(nn.Sequential(*layers).eval(), CentreCrop(32))

class Scenes(nn.Module):
    # Class 1 is what is red in a scene whose left edge is green.
    def forward(self, x):
        red, green = x[:, :1], x[:, 1:2, :, :4].mean((2, 3), keepdim=True)
        gain = 12 if os.environ["TRAINED"] == "0" else 14
        return torch.cat([0 * red, gain * red * green - 3], 1)

def scenes():
    return Scenes().eval()

def words():
    sign = 1 - 2 * int(os.environ["TRAINED"])
    def f(texts):
        scores = np.array([sign * (0.5 + sum(word in text for word in ("charming", "appealing"))) for text in texts])
        return np.stack([1 / (1 + np.exp(scores)), 1 / (1 + np.exp(-scores))], 1)
    return f
"""


@pytest.fixture
def trained(monkeypatch, tmp_path):
    """The models of a module, trained anew: with other weights under the same name."""
    (tmp_path / "trained_again.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, "trained_again", raising=False)
    monkeypatch.setenv("TRAINED", "0")
    yield lambda which: monkeypatch.setenv("TRAINED", str(which))
    sys.modules.pop("trained_again", None)


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "picture.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 40, 3), np.uint8)).save(path)
    return path


@pytest.fixture
def scene(tmp_path):
    levels = np.zeros((32, 40, 3), np.uint8)
    levels[:, :4, 1] = 230
    levels[10:20, 22:34, 0] = 220
    Image.fromarray(levels).save(tmp_path / "scene.png")
    return tmp_path / "scene.png"


@pytest.fixture
def commands(metfa_command, picture, scene):
    few = ("--samples", 8, "--out", "out")
    asked = ("--model", "trained_again:scenes", "--class", 1, "--size", "32x40", "--min-pixels", 1)
    return {
        "picture": lambda *more: metfa_command("explain", picture, "--model", "trained_again:model", *few, *more),
        "scene": lambda *more: metfa_command("explain-segmentation", scene, *asked, *few, *more),
        "words": lambda *more: metfa_command(
            "explain-text", "A charming film.", "--method", "occlusion", "--model", "trained_again:words", *few, *more
        ),
    }


@pytest.mark.parametrize("of", ["picture", "words"])
def test_another_model_is_refused_and_overwritten(of, commands, trained, tmp_path):
    command = commands[of]
    assert command().code == 0
    before = metfa.load(tmp_path / "out/sample")
    trained(1)
    refused = command()
    assert refused.code == 2
    assert "out holds samples with target=" in refused.err  # the model predicts another class
    assert "give another `--out`, or --overwrite" in refused.err
    assert np.array_equal(metfa.load(tmp_path / "out/sample").values, before.values)
    anew = command("--overwrite")
    assert anew.code == 0
    after = metfa.load(tmp_path / "out/sample")
    assert after.target != before.target
    assert np.array_equal(after.scores.argmax(1), after.target)
    assert json.loads((tmp_path / "out/about.json").read_text())["explained"] in anew.out.replace("\n", " ")
    assert "holds the finished result" in command().err  # and now it is this model's


def test_another_network_of_a_scene_is_refused_and_overwritten(commands, trained, tmp_path):
    assert commands["scene"]().code == 0
    before = (tmp_path / "out/report.txt").read_text()
    trained(1)
    refused = commands["scene"]()
    assert refused.code == 2
    assert "out holds samples of another model: the clean input's attributions differ; give another" in refused.err
    assert (tmp_path / "out/report.txt").read_text() == before
    assert commands["scene"]("--overwrite").code == 0
    assert (tmp_path / "out/report.txt").read_text() != before
    assert "holds the finished result" in commands["scene"]().err


def test_a_folder_that_was_begun_and_has_no_sample_is_named(metfa_command, commands, trained, tmp_path):
    assert commands["picture"]("--target", 9).code == 2
    for command in ("show", "report"):
        assert "out holds an unfinished run: repeat the command that began it" in metfa_command(command, "out").err


def test_another_picture_of_the_same_name_is_overwritten(commands, trained, picture, tmp_path):
    assert commands["picture"]().code == 0
    Image.fromarray(np.full((40, 40, 3), 90, np.uint8)).save(picture)
    assert "out holds samples of another input: input_ids=" in commands["picture"]().err
    assert commands["picture"]("--overwrite").code == 0
    assert np.ptp(metfa.load(tmp_path / "out/sample").inputs) < 1e-6


def test_finished_pictures_are_held_to_this_commands_terms(metfa_command, trained, picture, tmp_path):
    other = picture.with_name("other.png")
    other.write_bytes(picture.read_bytes())
    begun = ("--model", "trained_again:model", "--samples", 8, "--out", "out")
    assert metfa_command("explain", picture, *begun).code == 0
    (tmp_path / "out").rename(tmp_path / "first")
    (tmp_path / "out").mkdir()
    (tmp_path / "first").rename(tmp_path / "out" / picture.stem)
    done = metfa_command("explain", picture, other, *begun, "--alpha", 0.2)
    assert done.code == 2
    assert "holds a finished result on other terms" in done.err


def test_a_repeated_call_says_each_note_once(commands, trained, tmp_path):
    assert commands["words"]().code == 0
    notes = metfa.load(tmp_path / "out/sample").provenance["notes"]
    assert commands["words"]().code == 0
    assert metfa.load(tmp_path / "out/sample").provenance["notes"] == notes
