"""`--overwrite`: it takes whatever metfa wrote there before, also what an interruption left, and nothing else."""

import numpy as np
import pytest
from PIL import Image

import metfa
from metfa._base.owner import Owner


@pytest.fixture
def picture(tmp_path):
    levels = np.zeros((32, 40, 3), np.uint8)
    levels[:, :4, 1] = 230
    levels[10:20, 22:34, 0] = 220
    Image.fromarray(levels).save(tmp_path / "scene.png")
    return "scene.png"


@pytest.mark.slow
def test_what_an_interruption_left_is_replaced_and_a_running_command_is_not(explain, picture, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("metfa.sampling.folder.StoreSink._tidy", interrupted)
        assert explain(picture, "--out", "out").code == 130
    assert (tmp_path / "out/sample/done.bin").exists()
    again = ("--out", "out", "--seed", 1, "--overwrite")
    with Owner(tmp_path / "out/sample", "another"):
        assert "`--out` is being written by another call" in explain(picture, *again).error
    assert (tmp_path / "out/sample/done.bin").exists()
    (tmp_path / "out/sample/.lock").touch()  # as a killed process leaves it
    assert explain(picture, *again).code == 0
    assert "seed 1" in (tmp_path / "out/report.txt").read_text()


@pytest.mark.slow
def test_figures_of_other_terms_do_not_stay(metfa_command, tmp_path):
    settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 8, "rng": 0}
    samples = {"one": 2 * np.eye(6)[None], "two": np.arange(12.0).reshape(2, 6)}
    for name, inputs in samples.items():
        metfa.explain(lambda x, target: x, inputs, 0, **settings).save(tmp_path / name)

    def shown(*arguments):
        done = metfa_command("show", *arguments, "--out", "views", "--overwrite")
        assert done.code == 0, done.err
        return sorted(path.name for path in (tmp_path / "views").iterdir())

    pages = ["report.html", "report.txt"]
    assert shown("two") == ["figure-0.png", "figure-1.png", *pages]
    assert shown("one", "--regions", "grid:2") == ["figure.png", "maps.png", *pages]
    (tmp_path / "views/mine.png").touch()
    assert shown("one", "--regions", "none") == ["figure.png", "mine.png", *pages]
