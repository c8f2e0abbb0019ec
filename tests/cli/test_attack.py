"""`metfa attack`: a picture is attacked into a folder."""

import re

import numpy as np
import pytest
import torch
from PIL import Image

from metfa import attacks
from metfa._base.own_files import foreign_in

pytestmark = pytest.mark.filterwarnings("ignore::metfa.WeakAttackWarning")  # attacks here are short on purpose


@pytest.fixture
def picture(tmp_path):
    levels = np.random.default_rng(0).integers(0, 256, (24, 30, 3), np.uint8)
    path = tmp_path / "photo.png"
    Image.fromarray(levels).save(path)
    return path


@pytest.fixture
def attack(metfa_command, tiny, picture):
    def run(*arguments, model="tiny:model", method="gradient"):
        quick = ("--samples", 6, "--steps", 4, "--model", model, "--method", method)
        return metfa_command("attack", picture, *quick, *arguments)

    return run


@pytest.mark.slow
def test_a_folder_of_what_came_of_it(attack, tmp_path):
    done = attack("--target-map", "circle", "--epsilon", 0.02)
    assert done.code == 0
    folder = tmp_path / "metfa-attack"
    assert sorted(path.name for path in folder.iterdir()) == ["adversarial.png", "attack", "figure.png", "report.txt"]
    assert foreign_in(folder) is None
    result = attacks.load_attack(folder / "attack")
    assert done.out.startswith((folder / "report.txt").read_text())
    assert result.knows == "defence"  # as in Python
    assert result.epsilon == 0.02
    assert result.budget()["linf"][0] <= 0.02
    shown = np.asarray(Image.open(folder / "adversarial.png"))
    assert np.array_equal(shown, np.rint(255 * np.moveaxis(result.rounded.inputs[0], 0, -1)))
    assert "attacker knows:   the defence, not its noise" in done.out
    assert "not tested" not in done.out
    before, after = re.search(r"explanation: +([\d.]+) from the target map before, ([\d.]+) after", done.out).groups()
    assert [float(before), float(after)] == pytest.approx(
        [result.distances["clean"][0], result.distances["adversarial"][0]], abs=1e-4
    )
    said = re.search(r"prediction: +class (\d) \((0\.\d\d)\) before, class (\d) \((0\.\d\d)\) after", done.out).groups()
    for part, index, probability in zip((result.clean, result.adversarial), said[::2], said[1::2], strict=True):
        assert int(index) == part.predictions[0]
        probabilities = torch.from_numpy(part.scores[0].copy()).softmax(0)
        assert float(probability) == pytest.approx(float(probabilities[int(index)]), abs=0.006)
    assert "figure: metfa-attack/figure.png" in done.out
    again = attack("--target-map", "circle", "--epsilon", 0.02)
    assert again.code == 0
    assert again.out == done.out
    assert "metfa-attack holds the finished result of this command: nothing is written" in again.err
    other = attack("--target-map", "circle", "--epsilon", 0.03)
    assert re.search(
        r"holds a finished attack with settings=.* step_size=0\.005,.*, not .* step_size=0\.0075,", other.err
    )
    other = attack("--target-map", "circle", "--epsilon", 0.02, "--seed", 5)
    assert "holds a finished attack with rng='0x0', not '0x5'" in other.err


@pytest.mark.slow
def test_a_finished_attack_without_its_report_gets_one(attack, picture, tmp_path):
    first = attack("--target-map", "circle")
    folder = tmp_path / "metfa-attack"
    for name in ("report.txt", "figure.png"):
        (folder / name).unlink()
    again = attack("--target-map", "circle")
    assert again.code == 0
    assert again.out == first.out
    (folder / "report.txt").unlink()
    Image.fromarray(np.zeros((24, 30, 3), np.uint8)).save(picture)
    other = attack("--target-map", "circle")
    assert other.code == 2
    assert "metfa-attack/attack holds a finished attack with inputs=" in other.err


def test_an_attacker_who_knows_of_no_defence_does_not_test_it(attack, tmp_path):
    done = attack("--target-map", "corner", "--knows", "nothing", "--steps", 1)
    assert attacks.load_attack(tmp_path / "metfa-attack" / "attack").knows == "nothing"
    assert "attacker knows:   nothing about the defence" in done.out
    assert "defence:          not tested: an attack that does not know it shows nothing about one that does" in done.out
    assert "not tested" in (tmp_path / "metfa-attack" / "report.txt").read_text()


@pytest.mark.slow
def test_attackers_who_know_the_defence(attack, tmp_path):
    assert attack("--target-map", "corner", "--adaptive", "--out", "a").code == 0
    assert attacks.load_attack(tmp_path / "a" / "attack").knows == "defence"
    done = attack("--target-map", "corner", "--knows", "seed", "--out", "b")
    assert "attacker knows:   the defence and the noise that it is measured under" in done.out
    done = attack("--target-map", "corner", "--knows", "defence", "--adaptive", "--steps", 0, "--out", "c")
    assert "attacker knows:   the defence, not its noise" in done.out


@pytest.mark.parametrize("knows", ["nothing", "seed"])
def test_two_words_on_what_is_known_that_differ(knows, attack, tmp_path):
    done = attack("--target-map", "corner", "--adaptive", "--knows", knows)
    assert f"`--adaptive` is short for `--knows defence`, which `--knows {knows}` contradicts" in done.error
    assert not (tmp_path / "metfa-attack").exists()


def test_a_failure_says_what_was_missed(attack):
    """Without steps the prediction stays, and the map is where it was."""
    said = attack("--target-map", "left", "--steps", 0).out
    assert "the attack failed (less than half of the way); in 8 bits: " in said


@pytest.mark.slow
def test_another_class(attack, tmp_path):
    clean = attack("--target-map", "left", "--steps", 0, "--out", "clean")
    assert clean.code == 0
    predicted = attacks.load_attack(tmp_path / "clean" / "attack").clean.predictions[0]
    wanted = (predicted + 1) % 3
    done = attack("--to-class", wanted, "--out", "adv")
    assert done.code == 0
    result = attacks.load_attack(tmp_path / "adv" / "attack")
    assert result.kind == "targeted"
    assert result.asked == (wanted,)
    assert ("the attack succeeded; " in done.out) == result.success[0]
    assert "must be another class" in attack("--to-class", predicted, "--out", "same").err


@pytest.mark.slow
def test_a_map_from_a_picture(attack, tmp_path):
    levels = np.zeros((10, 10), np.uint8)
    levels[:5] = 255
    Image.fromarray(levels).save(tmp_path / "map.png")
    assert attack("--target-map", "map.png").code == 0
    wanted = attacks.load_attack(tmp_path / "metfa-attack" / "attack").target_map[0]
    assert wanted.shape == (96, 96)
    assert wanted[:38].min() > 0.9
    assert wanted[58:].max() < 0.1


@pytest.mark.parametrize(
    ("arguments", "settings", "said"),
    [
        ((), {}, "`--target-map` is needed: circle, square, cross"),
        (
            ("--target-map", "cirle"),
            {},
            "left, corner, or a picture: no such image: cirle",
        ),
        (("--target-map", "circle", "--preset", "adv3"), {}, "'adv2-mask', or an AttackSettings, got 'adv3'"),
        (("--target-map", "circle", "--preset", "dombrowski", "--restarts", 2), {}, "must be a number for restarts"),
        (("--target-map", "circle", "--epsilon", 8), {}, "got 8.0: for levels of 255 write `8 / 255`, which is 0.0314"),
        (("--target-map", "circle"), {"method": "gradint"}, "did you mean 'gradient'"),
        (("--target-map", "circle", "--set", "n_masks=2"), {}, "gradient has no setting 'n_masks'"),
    ],
)
def test_mistakes_are_one_line(arguments, settings, said, attack):
    assert said in attack(*arguments, **settings).error


def test_maps_without_a_derivative(attack, tmp_path):
    done = attack("--target-map", "circle", "--set", "n_masks=5", method="rise")
    assert done.code == 2
    assert "Gradient, SmoothGrad, CAM, LRP, MASK, AttentionRollout" in done.err
    assert not (tmp_path / "metfa-attack").exists()  # nothing is left that would refuse another method


def test_a_plain_map_says_nothing(attack, tmp_path):
    Image.fromarray(np.full((8, 8), 90, np.uint8)).save(tmp_path / "grey.png")
    assert "the same everywhere: there is nothing to draw" in attack("--target-map", "grey.png").err
