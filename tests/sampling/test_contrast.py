"""Why this class and not that one: two targets of one explainer on the same noisy copies."""

import numpy as np
import pytest
import torch

import metfa

W = np.array([[2.0, 1.0, 0.0, 0.5], [0.0, 1.0, 2.0, 0.5], [1.0, 1.0, 1.0, 0.4]])
INPUTS = np.random.default_rng(0).normal(size=(3, 4)) + 3
FIXED = {"noise": metfa.noise.Gaussian(0.1), "n_samples": 20, "rng": 0}


class Linear:
    rows_independent = True

    def __init__(self):
        self.rows = 0

    def model(self, inputs):
        return (inputs[:, None] * W).sum(2)

    def __call__(self, inputs, target):
        self.rows += len(inputs)
        return inputs * W[np.asarray(target)]


def contrasted(*targets, **settings):
    return metfa.contrast(Linear(), INPUTS, *targets, **{**FIXED, **settings})


class TestNumbers:
    @pytest.mark.parametrize("scale", ["raw", "share", "rank", "mean"])
    def test_they_are_the_targets_maps_minus_the_others(self, scale):
        found = contrasted(0, 1, scale=scale)
        target, other = (metfa.explain(Linear(), INPUTS, one, **FIXED) for one in (0, 1))
        if scale != "raw":
            target, other = target.scaled(scale), other.scaled(scale)
        assert np.array_equal(found.values, target.values - other.values)
        assert np.array_equal(found.pair[0].values, other.values)
        assert found.pair[1].target == (0, 0, 0)

    def test_features_of_both_classes_are_not_shown_to_differ(self):
        assert contrasted(0, 1).significance_map(correction="holm").tolist() == [[1, 0, -1, 0]] * 3

    def test_the_two_most_probable_classes(self):
        best = np.argsort(-Linear().model(INPUTS), axis=1)
        found = contrasted()
        assert found.pair[1].target == tuple(best[:, 0].tolist())
        assert found.pair[0].target == tuple(best[:, 1].tolist())
        same = contrasted(best[:, 0], best[:, 1])
        assert np.array_equal(found.values, same.values)

    def test_of_a_given_class_the_most_probable_other_one(self):
        best = np.argsort(-Linear().model(INPUTS), axis=1)
        found = contrasted(best[:, 1])
        assert found.pair[0].target == tuple(best[:, 0].tolist())

    def test_of_the_predicted_class_and_a_given_one(self):
        least = np.argsort(-Linear().model(INPUTS), axis=1)[:, 2]
        found = contrasted(None, least)
        assert found.pair[0].target == tuple(least.tolist())
        assert found.pair[1].target == tuple(Linear().model(INPUTS).argmax(1).tolist())

    def test_classes_that_are_tuples(self):
        def explainer(inputs, target):
            return inputs * np.array([sum(one) for one in target])[:, None]

        found = metfa.contrast(explainer, INPUTS, [(1, 2)] * 3, [(0, 1)] * 3, **FIXED)
        assert np.allclose(found.vanilla, 2 * INPUTS)
        assert found.terms().sides[0] == "more for the target than for the other class"

    def test_draws_are_shared(self):
        def masks(inputs, target, rngs):
            drawn = np.stack([rng.normal(size=4) for rng in rngs])
            return inputs * W[np.asarray(target)] + drawn

        found = metfa.contrast(masks, INPUTS, 0, 1, **FIXED)
        assert np.allclose(found.vanilla, INPUTS * (W[0] - W[1]))
        assert np.allclose(found.values[..., 1], 0)

    def test_until(self):
        rule = metfa.Until(undecided=0.5, max_samples=60)
        found = contrasted(0, 1, n_samples=rule)
        assert found.stopping.reason == "reached"
        assert (found.significance_map() == 0).mean(axis=1).max() == found.stopping.looks[-1].undecided

    def test_of_torch(self):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3).eval()
        explainer = metfa.explainers.Gradient(model, channel_axis=None)
        x = torch.tensor(INPUTS, dtype=torch.float32)
        found = metfa.contrast(explainer, x, 2, 0, **FIXED)
        of = [metfa.explain(explainer, x, target, **FIXED).values for target in (2, 0)]
        assert np.array_equal(found.values, of[0] - of[1])
        assert found.values.any()


class TestWords:
    def test_the_classes_are_named(self, tmp_path):
        found = contrasted(0, 1, run=metfa.Run(store=tmp_path / "s"))
        words = ("more for class 0 than for class 1", "less for class 0 than for class 1")
        halves = np.array([0, 0, 1, 1])
        for one in (found, metfa.load(tmp_path / "s"), found.over(halves), found.of_input(0)):
            assert one.terms().sides == words
        rest = found.over(halves, against="rest").terms().sides
        assert rest[0] == "more for class 0 than for class 1, against the rest"

    def test_where_rows_have_their_own(self):
        sides = contrasted([0, 1, 0], [1, 0, 1]).terms().sides
        assert sides == ("more for the target than for the other class", "less for the target than for the other class")


class TestStore:
    def test_it_resumes_and_returns(self, tmp_path):
        whole = contrasted(run=metfa.Run(store=tmp_path / "s"))
        assert {path.name for path in (tmp_path / "s").iterdir()} == {"before", "after", "manifest.json"}
        explainer = Linear()
        again = metfa.contrast(explainer, INPUTS, **FIXED, run=metfa.Run(store=tmp_path / "s"))
        assert explainer.rows == 6
        assert np.array_equal(again.values, whole.values)
        assert metfa.load(tmp_path / "s" / "after").target == whole.pair[1].target

    @pytest.mark.parametrize("row", [8, 31, 70])
    def test_an_interrupted_one(self, row, tmp_path):
        class Stops(Linear):
            __qualname__ = "Linear"

            def __call__(self, inputs, target):
                if self.rows >= row:
                    raise KeyboardInterrupt
                return super().__call__(inputs, target)

        Stops.__name__ = "Linear"
        with pytest.raises(KeyboardInterrupt):
            metfa.contrast(Stops(), INPUTS, **FIXED, run=metfa.Run(store=tmp_path / "s"))
        assert np.array_equal(contrasted(run=metfa.Run(store=tmp_path / "s")).values, contrasted().values)

    def test_of_other_classes_is_another_call(self, tmp_path):
        contrasted(0, 1, run=metfa.Run(store=tmp_path / "s"))
        with pytest.raises(FileExistsError, match="finished result with target="):
            contrasted(0, 2, run=metfa.Run(store=tmp_path / "s"))


class TestRefused:
    @pytest.mark.parametrize(
        ("targets", "says"),
        [
            ((0, 0), "both are 0 for input 0"),
            (([0, 1, 2], [1, 1, 0]), "both are 1 for input 1"),
            ((0, "1"), "`against` must be a class index or one entry a row, got the text"),
            ((0, [1, 2]), "`against` must be one class index, or one entry for each of the 3 inputs, got 2"),
            ((0, 1.5), "`against` must be a class index"),
            ((0, -1), "`against` must not be negative"),
        ],
    )
    def test_targets_before_the_model_is_asked(self, targets, says):
        explainer = Linear()
        with pytest.raises((TypeError, ValueError), match=says):
            metfa.contrast(explainer, INPUTS, *targets, **FIXED)
        assert explainer.rows == 0

    def test_the_predicted_class_against_itself(self):
        predicted = Linear().model(INPUTS).argmax(1)
        with pytest.raises(ValueError, match=rf"both are {predicted[0]} for input 0: leave `against` out"):
            contrasted(None, predicted)

    def test_a_class_that_the_model_does_not_have(self):
        with pytest.raises(ValueError, match=r"must lie in 0\.\.2"):
            contrasted(0, 7)

    def test_scores_that_are_not_known(self):
        unknown = lambda inputs, target: inputs * W[np.asarray(target)]  # noqa: E731
        with pytest.raises(ValueError, match="`against` is None, and the scores of the model are not known: pass"):
            metfa.contrast(unknown, INPUTS, 0, **FIXED)
        with pytest.raises(ValueError, match="`target` is None and the explainer's model is unknown"):
            metfa.contrast(unknown, INPUTS, None, 1, **FIXED)
        assert metfa.contrast(unknown, INPUTS, predict=Linear().model, **FIXED).pair is not None

    def test_models_without_another_class(self):
        one = lambda inputs: inputs.sum(1)  # noqa: E731
        with pytest.raises(ValueError, match="one score a row"):
            metfa.contrast(lambda inputs, target: inputs, INPUTS, predict=one, **FIXED)
        column = lambda inputs: inputs.sum(1, keepdims=True)  # noqa: E731
        with pytest.raises(ValueError, match="one class alone"):
            metfa.contrast(lambda inputs, target: inputs, INPUTS, predict=column, **FIXED)

    def test_a_scale(self):
        with pytest.raises(ValueError, match="`scale` must be one of"):
            contrasted(0, 1, scale="percent")


def test_an_explainer_that_ignores_its_target_is_named():
    with pytest.warns(metfa.DegenerateAttributionsWarning, match="all differences are 0: .* does not look at its"):
        found = metfa.contrast(lambda inputs, target: inputs, INPUTS, 0, 1, **FIXED)
    assert not found.significance_map().any()
