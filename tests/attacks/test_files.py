"""Attacks as folders: what is read is what was written, and nothing that was touched is read."""

import json

import numpy as np
import pytest

import metfa
from metfa import attacks
from metfa.explainers import CAM

from .conftest import QUICK, defended


@pytest.fixture(params=[False, True], ids=["bare", "defended"])
def result(request, network, pictures, corner):
    defence = defended(CAM(network)) if request.param else None
    settings = {**QUICK, "n_steps": 3, "epsilon": 0.1}
    return attacks.manipulate(network, CAM(network), pictures, target_map=corner, defence=defence, **settings)


def changed(folder, change):
    path = folder / "attack.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_round_trip(result, tmp_path):
    loaded = attacks.load_attack(result.save(tmp_path / "attack"))
    for name in ("clean", "adversarial", "rounded"):
        for part in ("inputs", "scores", "maps", "defended"):
            np.testing.assert_array_equal(getattr(getattr(loaded, name), part), getattr(getattr(result, name), part))
    assert loaded.curves.keys() == result.curves.keys()
    for name, values in result.curves.items():
        np.testing.assert_array_equal(loaded.curves[name], values)
    for name in ("kind", "knows", "asked", "explained", "epsilon"):
        assert getattr(loaded, name) == getattr(result, name)
    assert loaded.provenance == json.loads(json.dumps(result.provenance))
    np.testing.assert_array_equal(loaded.success, result.success)
    assert repr(loaded) == repr(result)


def test_nothing_is_overwritten(result, tmp_path):
    (tmp_path / "attack").mkdir()
    with pytest.raises(FileExistsError, match="nothing is overwritten"):
        result.save(tmp_path / "attack")
    assert list((tmp_path / "attack").iterdir()) == []


def test_a_failure_leaves_nothing(result, tmp_path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("metfa.results.files.write_json", fail)
    with pytest.raises(KeyboardInterrupt):
        result.save(tmp_path / "attack")
    assert list(tmp_path.iterdir()) == []


def test_damage_is_told(result, tmp_path):
    folder = result.save(tmp_path / "attack")
    with (folder / "adversarial_maps.npy").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"x")
    with pytest.raises(ValueError, match=r"adversarial_maps\.npy was changed after it was saved"):
        attacks.load_attack(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda manifest: manifest.pop("asked"), "is damaged: KeyError at 'asked'"),
        (lambda manifest: manifest["asked"].append(1), "explained does not fit the rest"),
        (lambda manifest: manifest.update(knows="all"), "knows does not fit"),
        (lambda manifest: manifest.update(epsilon="big"), "is damaged: TypeError at epsilon, which must be a number"),
        (lambda manifest: manifest["arrays"].pop("target_map"), "is damaged: KeyError at 'target_map'"),
        (lambda manifest: manifest["arrays"].pop("clean_maps"), "is damaged: KeyError at 'clean_maps'"),
        (lambda manifest: manifest["arrays"]["clean_maps"].update(dtype="|O"), "clean_maps has the dtype object"),
        (lambda manifest: manifest.update(curves=list("abcdefghij")), "is damaged: KeyError at 'curve_"),
        (lambda manifest: manifest.update(schema_version=9), "schema version 9"),
    ],
)
def test_manifests_that_do_not_fit(change, message, result, tmp_path):
    folder = result.save(tmp_path / "attack")
    changed(folder, change)
    with pytest.raises(ValueError, match=message):
        attacks.load_attack(folder)


def test_other_folders(result, network, pictures, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder"):
        attacks.load_attack(tmp_path / "none")
    folder = result.save(tmp_path / "attack")
    with pytest.raises(ValueError, match=r"it holds an attack: read it with `metfa\.attacks\.load_attack`"):
        metfa.load(folder)
    noise = metfa.noise.Uniform(0.05, bounds=(0, 1))
    sample = metfa.explain(CAM(network), pictures, noise=noise, n_samples=6, rng=0)
    with pytest.raises(ValueError, match=r"is no saved attack: it has no attack\.json"):
        attacks.load_attack(sample.save(tmp_path / "sample"))
