"""Settings of a run: each is checked, and a call refuses those that it does not take."""

import numpy as np
import pytest
import torch

import metfa
from metfa.sampling.run import Run

MODEL = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2)).eval()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"store": 3}, TypeError, "`store` must be a path, a str or pathlib.Path, got int"),
        ({"progress": "yes"}, TypeError, "`progress` must be True or False, got str: 'yes'"),
        ({"first_sample": -1}, ValueError, "`first_sample` must be at least 0, got -1"),
        ({"first_sample": 1.0}, TypeError, "`first_sample` must be an integer, got float: 1.0"),
    ],
)
def test_bad_settings(settings, error, message):
    with pytest.raises(error, match=message):
        Run(**settings)


def test_none_is_the_usual_run():
    assert Run.checked(None) == Run()


def test_a_text_names_its_words_itself():
    run = metfa.Run(feature_names=["a", "b"])
    with pytest.raises(
        ValueError, match=r"`run` of this call takes only store and progress and .*, got `feature_names`"
    ):
        metfa.text.explain_text(lambda texts: np.full((len(texts), 2), 0.5), "a b", run=run)


def test_an_attack_takes_no_names():
    gradient = metfa.explainers.Gradient(MODEL)
    images, names = torch.full((1, 1, 2, 2), 0.5), metfa.Run(input_names=np.array(["a", "b"]))
    with pytest.raises(ValueError, match="`run` of this call takes only store and progress, got `input_names`"):
        metfa.attacks.manipulate(MODEL, gradient, images, target_map=np.ones((2, 2)), run=names)
