"""An interrupted attack goes on to the end that it would have come to."""

from contextlib import suppress

import numpy as np
import pytest

import metfa
from metfa import attacks
from metfa.attacks import _descent
from metfa.explainers import CAM, MASK

from .conftest import QUICK, defended


def equal(one, other):
    for part in ("inputs", "scores", "maps", "defended"):
        np.testing.assert_array_equal(getattr(one.adversarial, part), getattr(other.adversarial, part))
    assert one.curves.keys() == other.curves.keys()
    for name, values in one.curves.items():
        np.testing.assert_array_equal(values, other.curves[name])


def interrupt(monkeypatch, after):
    """Ctrl-C in a step."""
    record, count = _descent._record, [0]

    def counted(*arguments):
        count[0] += 1
        if count[0] > after:
            raise KeyboardInterrupt
        record(*arguments)

    monkeypatch.setattr(_descent, "_record", counted)
    return count


SETTINGS = {
    "adam": {**QUICK, "n_steps": 25, "check_every": 5, "refresh_every": 6},
    "sign, restarts, a defence that is known": {
        "rng": 3, "n_steps": 12, "step": "sign", "step_size": 0.01, "epsilon": 0.1, "n_restarts": 2, "check_every": 3,
        "refresh_every": 5, "knows": "defence",
    },
}  # fmt: skip
WHOLE = {}  # what comes of each in one go


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 7, 20, 60])
@pytest.mark.parametrize("name", SETTINGS)
def test_it_goes_on(name, after, network, pictures, corner, tmp_path, monkeypatch):
    explainer = CAM(network)
    arguments = {"defence": defended(explainer), "batch_size": 2, "knows": "nothing", **SETTINGS[name]}
    if name not in WHOLE:
        WHOLE[name] = attacks.manipulate(network, explainer, pictures, target_map=corner, **arguments)
    whole, store = WHOLE[name], tmp_path / "found"
    with monkeypatch.context() as patched:
        interrupt(patched, after)
        try:
            attacks.manipulate(network, explainer, pictures, target_map=corner, run=metfa.Run(store=store), **arguments)
        except KeyboardInterrupt:
            assert not store.exists()
            assert (tmp_path / "found.unfinished").is_dir()
    if not store.exists():
        with monkeypatch.context() as patched:
            steps = interrupt(patched, 10**6)
            result = attacks.manipulate(
                network, explainer, pictures, target_map=corner, run=metfa.Run(store=store), **arguments
            )
        equal(result, whole)
        assert steps[0] <= 2 * len(whole.curves["loss"].ravel()) - max(0, after - 6)
    equal(attacks.load_attack(store), whole)
    assert [path.name for path in tmp_path.iterdir()] == ["found"]


@pytest.mark.slow
def test_mask_goes_on_too(network, pictures, corner, tmp_path, monkeypatch):
    explainer = MASK(network.float(), n_iterations=6, grid=4, rng=0)
    arguments = {
        "n_steps": 9,
        "refresh_every": 4,
        "check_every": 3,
        "rng": 0,
        "settings": "adv2-mask",
        "n_first_steps": 2,
        "target_map": corner.float(),
    }
    given = (network, explainer, pictures[:1].float())
    whole = attacks.manipulate(*given, **arguments)
    with monkeypatch.context() as patched:
        interrupt(patched, 8)
        with pytest.raises(KeyboardInterrupt):
            attacks.manipulate(*given, run=metfa.Run(store=tmp_path / "found"), **arguments)
    equal(attacks.manipulate(*given, run=metfa.Run(store=tmp_path / "found"), **arguments), whole)


@pytest.mark.slow
def test_the_seed_is_that_of_the_interrupted_call(network, pictures, corner, tmp_path, monkeypatch):
    explainer = CAM(network)
    arguments = {
        **QUICK,
        "n_steps": 6,
        "rng": None,
        "defence": defended(explainer),
        "run": metfa.Run(store=tmp_path / "found"),
    }
    with monkeypatch.context() as patched:
        interrupt(patched, 3)
        with pytest.raises(KeyboardInterrupt):
            attacks.manipulate(network, explainer, pictures, target_map=corner, **arguments)
    result = attacks.manipulate(network, explainer, pictures, target_map=corner, **arguments)
    again = {**arguments, "rng": int(result.provenance["rng"], 16), "run": None}
    equal(result, attacks.manipulate(network, explainer, pictures, target_map=corner, **again))


def test_another_call_does_not_go_on_from_it(network, pictures, corner, tmp_path, monkeypatch):
    explainer = CAM(network)
    arguments = {**QUICK, "n_steps": 6, "run": metfa.Run(store=tmp_path / "found")}
    with monkeypatch.context() as patched:
        interrupt(patched, 3)
        with pytest.raises(KeyboardInterrupt):
            attacks.manipulate(network, explainer, pictures, target_map=corner, **arguments)
    with pytest.raises(FileExistsError, match="an interrupted attack with settings="):
        attacks.manipulate(network, explainer, pictures, target_map=corner, **{**arguments, "step_size": 0.5})
    with pytest.raises(FileExistsError, match="an interrupted attack with target_map="):
        attacks.manipulate(network, explainer, pictures, target_map=1 - corner, **arguments)
    (tmp_path / "found.unfinished" / "batch_0.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"batch_0\.npz is damaged: remove"):
        attacks.manipulate(network, explainer, pictures, target_map=corner, **arguments)


def test_a_finished_attack_is_returned(network, pictures, corner, tmp_path, monkeypatch):
    arguments = {**QUICK, "n_steps": 2, "run": metfa.Run(store=tmp_path / "found")}
    first = attacks.manipulate(network, CAM(network), pictures, target_map=corner, **arguments)
    steps = interrupt(monkeypatch, 10**6)
    again = attacks.manipulate(network, CAM(network), pictures, target_map=corner, **arguments)
    equal(again, first)
    assert steps[0] == 0
    assert again.provenance["started"] == first.provenance["started"]
    fresh = attacks.manipulate(network, CAM(network), pictures, target_map=corner, **{**arguments, "rng": None})
    equal(fresh, first)
    for changed in ({"n_steps": 3}, {"rng": 77}, {"target_map": 1 - corner}):
        with pytest.raises(
            FileExistsError, match=r"found holds a finished attack with \w+=.*: give another `store`, or"
        ):
            attacks.manipulate(network, CAM(network), pictures, **{"target_map": corner, **arguments, **changed})


def test_what_is_no_attack_is_left_alone(network, pictures, corner, tmp_path):
    (tmp_path / "found").mkdir()
    with pytest.raises(FileExistsError, match=r"`store` exists already and holds no attack: .*found; nothing is overw"):
        attacks.manipulate(
            network, CAM(network), pictures, target_map=corner, **QUICK, run=metfa.Run(store=tmp_path / "found")
        )


def test_two_calls_do_not_attack_in_one_store(network, pictures, corner, tmp_path, monkeypatch):
    arguments = {**QUICK, "n_steps": 2, "run": metfa.Run(store=tmp_path / "found")}
    record = _descent._record

    def again(*state):
        monkeypatch.setattr(_descent, "_record", record)
        with pytest.raises(BlockingIOError, match="`store` is being written by another call"):
            attacks.manipulate(network, CAM(network), pictures, target_map=corner, **arguments)
        record(*state)

    monkeypatch.setattr(_descent, "_record", again)
    attacks.manipulate(network, CAM(network), pictures, target_map=corner, **arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["found"]


@pytest.mark.parametrize("name", ["call.json", "batch_0.npz", ".lock", ".call.json.tmp"])
def test_nothing_is_written_through_a_link(name, network, pictures, corner, tmp_path):
    folder = tmp_path / "found.unfinished"
    folder.mkdir()
    (tmp_path / "secret").write_text("mine")
    (folder / name).symlink_to(tmp_path / "secret")
    with suppress(ValueError, FileExistsError):
        attacks.manipulate(
            network, CAM(network), pictures, target_map=corner, **QUICK, run=metfa.Run(store=tmp_path / "found")
        )
    assert (tmp_path / "secret").read_text() == "mine"
