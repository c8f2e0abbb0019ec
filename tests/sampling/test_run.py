"""Settings of a run: each is checked, and a call refuses those that it does not take."""

import re

import numpy as np
import pytest
import torch

import metfa
from metfa.sampling.run import Run

MODEL = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2)).eval()
BENT = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).eval()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"store": 3}, TypeError, "`store` must be a path, a str or pathlib.Path, got int"),
        ({"progress": "yes"}, TypeError, "`progress` must be True or False, got str: 'yes'"),
        ({"first_sample": -1}, ValueError, "`first_sample` must be at least 0, got -1"),
        ({"class_names": "cat"}, TypeError, "`class_names` must be a list of texts, got str: 'cat'"),
        ({"class_names": [3, 4]}, TypeError, "`class_names` must be a list of texts, but holds int: 3"),
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


class TestClassNames:
    """Whether a result says which class was explained by its name, in every view, and no other name."""

    NAMES = ("cat", "dog", "neither")

    @pytest.fixture
    def explained(self):
        def explain(store=None, names=self.NAMES):
            run = metfa.Run(class_names=names, store=store)
            settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 8, "rng": 0}
            return metfa.explain(metfa.explainers.Gradient(BENT), torch.ones(1, 1, 2, 2), 0, run=run, **settings)

        return explain

    def test_are_said_and_kept(self, explained, tmp_path):
        found = explained(tmp_path / "kept")
        predicted = int(found.scores[0].argmax())
        named = "class 0 (cat), as predicted" if predicted == 0 else "class 0 (cat); predicted: class 1 (dog)"
        for sample in (found, metfa.load(tmp_path / "kept"), explained(tmp_path / "kept"), found.of_input(0)):
            assert sample.provenance["class_names"] == list(self.NAMES)
        assert found.summary()[0].explained == named
        page = found.report(tmp_path / "page.html").read_text()
        assert "class 0 (cat)" in page
        assert "neither" not in page  # of a thousand names only those that matter are written

    def test_of_a_finished_store_are_those_of_this_call(self, explained, tmp_path):
        assert "class_names" not in explained(tmp_path / "kept", names=None).provenance
        assert "class 0 (cow)" in explained(tmp_path / "kept", names=["cow", "dog"]).summary()[0].explained

    def test_change_no_sample(self, explained):
        np.testing.assert_array_equal(explained().values, explained(names=None).values)

    def test_both_parts_of_a_contrast_have_them(self):
        gradient, run = metfa.explainers.Gradient(BENT), metfa.Run(class_names=self.NAMES)
        settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 8, "rng": 0, "run": run}
        found = metfa.contrast(gradient, torch.ones(1, 1, 2, 2), 0, 1, **settings)
        assert re.search(r"class 0 \(cat\).*, rather than .*class 1 \(dog\)", found.summary()[0].explained)

    def test_too_few_are_refused_before_sampling(self, explained):
        with pytest.raises(ValueError, match="`class_names` has 1 name, but the model gives scores of 2 classes"):
            explained(names=["cat"])
