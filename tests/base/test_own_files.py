"""What metfa writes is known as its own, so that `overwrite` may replace it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import metfa
from metfa import attacks, evaluation, explainers, noise, regions, segmentation, text
from metfa._base.own_files import foreign_in
from metfa._base.warnings import FailedUnitsWarning

SETTINGS = {"noise": noise.Uniform(0.1), "n_samples": 8, "rng": 0}
BOTH = {"image": noise.Uniform(0.1), "table": None}


def itself(inputs, target=0):
    return inputs


def explained(inputs, **settings):
    return metfa.explain(itself, inputs, 0, **{**SETTINGS, **settings})


def until():
    rule = metfa.Until(undecided=0.5, over=regions.grid((4, 4), 2, against="rest"), max_samples=30)
    return explained(np.ones((1, 4, 4)), n_samples=rule, predict=lambda x: x.reshape(len(x), -1)[:, :2])


def network():
    layers = torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
    return torch.nn.Sequential(*layers, torch.nn.Linear(4, 3)).eval()


def attack():
    explainer = explainers.Gradient(network())
    defence = metfa.Smoothed(explainer, noise=noise.Uniform(0.1), n_samples=6, rng=0)
    target = np.eye(8, dtype=np.float32)
    return attacks.manipulate(explainer.model, explainer, torch.rand(1, 3, 8, 8), target_map=target, epsilon=0.1,
                              n_steps=2, defence=defence, rng=0)  # fmt: skip


def context():
    sample = explained(np.ones((1, 4, 4)))
    return segmentation.ContextExplanation(replace(sample, target=(1,)), np.eye(4) > 0, np.eye(4, dtype=int))


KINDS = {
    "sample": lambda: explained(np.ones((1, 3)), predict=lambda x: x),
    "several arrays": lambda: explained((np.ones((1, 2, 2)), np.ones((1, 3))), noise=(noise.Uniform(0.1), None)),
    "text": lambda: text.explain_text(
        lambda texts: np.array([[one.count("o"), 1.0] for one in texts]), "a good film", target=0,
        method=text.Occlusion, n_samples=6, rng=0),
    "frame": lambda: metfa.explain(
        lambda rows, target: rows.to_numpy(), pd.DataFrame({"a": [0.1, 0.2], "b": [1.0, 2]}), 0, **SETTINGS),
    "across inputs": lambda: explained(np.random.default_rng(0).random((8, 3))).across_inputs(),
    "regions": lambda: explained(np.ones((2, 4, 4))).over(regions.grid((4, 4), 2, against="rest")),
    "until": until,
    "comparison": lambda: metfa.compare(itself, lambda x, target: 2 * x, np.ones((1, 3)), 0, **SETTINGS),
    "contrast": lambda: metfa.contrast(
        lambda x, target: x + np.reshape(target, (-1, 1)), np.ones((1, 3)), 0, 1, **SETTINGS),
    "parts": lambda: explained({"image": np.ones((1, 2, 2)), "table": np.ones((1, 3))}, noise=BOTH),
    "context": context,
    "attack": attack,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::metfa.MetfaWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_folders_of_results(kind, tmp_path):
    result = KINDS[kind]()
    for _ in range(2):
        result.save(tmp_path / "kept", overwrite=True)
        assert foreign_in(tmp_path / "kept") is None


@pytest.mark.filterwarnings("ignore::metfa.MetfaWarning")
def test_folders_of_runs(tmp_path):
    """Also in the middle, where they hold what a run needs to go on."""
    seen = []

    def watched(folder):
        def explain(inputs, target=0):
            seen.append(foreign_in(folder))
            return inputs

        return explain

    for name, call in {"explain": metfa.explain, "compare": metfa.compare}.items():
        folder = tmp_path / name
        ours = [watched(folder)] if name == "explain" else [watched(folder), itself]
        call(*ours, np.ones((1, 3)), 0, batch_size=2, run=metfa.Run(store=folder), **SETTINGS)
        seen.append(foreign_in(folder))
    folder = tmp_path / "answer"

    def score(rows):
        seen.append(foreign_in(folder))
        return np.array([2.0 * ("a" in kept) for kept in rows])

    text.explain_answer(score, ["a", "b"], delta=0.5, pilot=4, n_samples=6, rng=0, run=metfa.Run(store=folder))
    assert len(seen) > 12
    assert set(seen) == {None}


def test_tables_of_a_study(tmp_path):
    def broken(inputs, target):
        raise ValueError

    study = metfa.Study(
        version="1", model=lambda x: x, inputs=np.random.default_rng(0).random((4, 3)), n_samples=6,
        explainers={"a": lambda _: itself, "b": lambda _: lambda x, target: 2 * x, "broken": lambda _: broken},
        metrics=["interval_width"], sampling={"U": noise.Uniform(0.1)},
    )  # fmt: skip
    with pytest.warns(FailedUnitsWarning):
        found = evaluation.evaluate(study, store=tmp_path / "store")
    folder = evaluation.write_tables(found, tmp_path / "tables", against="a", correction="holm")
    names = {path.name for path in folder.iterdir()}
    assert {"rows.csv", "failures.json"} < names
    assert any(name.startswith("difference-") for name in names)
    assert foreign_in(folder) is None
