"""Explainers with randomness of their own: one generator for each row, given or addressed by content."""

import random

import numpy as np
import pytest
import torch

import metfa
from metfa._base.warnings import ReproducibilityWarning
from metfa.sampling.randomised import row_generators

TABLE = np.random.default_rng(0).random((4, 6))


@metfa.randomised
def noisy(inputs, target, *, rngs):
    """Docstring."""
    return np.stack([row + rng.normal(size=row.shape) for row, rng in zip(inputs, rngs, strict=True)])


def global_draws(inputs, target):
    shape = tuple(inputs.shape)
    return inputs + np.random.normal(size=shape) + torch.rand(shape).numpy() + random.random()


def rngs(*seeds):
    return [np.random.default_rng(seed) for seed in seeds]


class TestRowGenerators:
    def test_by_content_wherever_the_row_stands(self):
        first = [rng.random() for rng in row_generators(TABLE, None, 5)]
        assert len(set(first)) == 4
        assert [rng.random() for rng in row_generators(TABLE[::-1], None, 5)] == first[::-1]
        assert [rng.random() for rng in row_generators(torch.tensor(TABLE), None, 5)] == first
        assert [rng.random() for rng in row_generators(TABLE, None, 6)] != first

    def test_those_given(self):
        given = rngs(1, 2, 3, 4)
        assert row_generators(TABLE, given, 5) == given
        assert row_generators({"a": TABLE}, given, 5) == given
        assert row_generators(["a", "b"], given[:2], 5) == given[:2]
        with pytest.raises(ValueError, match="`rngs` must hold one generator for each of the 4 rows, got 3"):
            row_generators(TABLE, given[:3], 5)

    def test_seeds_are_checked(self):
        with pytest.raises(TypeError, match=r"`rng` must be None.*got str: 'x'"):
            row_generators(TABLE, None, "x")


class TestRandomised:
    def test_direct_calls(self):
        seeded = metfa.randomised(noisy.function, rng=3)
        np.testing.assert_array_equal(seeded(TABLE, 0), seeded(TABLE, 0))
        np.testing.assert_array_equal(seeded(TABLE[2:3], 0)[0], seeded(TABLE, 0)[2])
        assert (noisy(TABLE, 0) != noisy(TABLE, 0)).all()
        np.testing.assert_array_equal(noisy(TABLE, 0, rngs=rngs(1, 2, 3, 4)), noisy(TABLE, rngs=rngs(1, 2, 3, 4)))

    def test_further_arguments_reach_the_function(self):
        explainer = metfa.randomised(lambda inputs, target, *, rngs, scale: inputs * target * scale)
        assert (explainer(TABLE, 2, scale=3) == TABLE * 6).all()

    def test_refuses_what_is_no_function(self):
        with pytest.raises(TypeError, match="`function` must be callable, got int"):
            metfa.randomised(3)

    def test_promise_of_the_function_is_its_own(self):
        def promising(inputs, target, *, rngs):
            return inputs

        assert not metfa.randomised(promising).rows_independent
        promising.rows_independent = True
        assert metfa.randomised(promising).rows_independent

    def test_repr(self):
        assert repr(noisy) == "randomised(noisy)"
        assert repr(metfa.seeded(global_draws)) == "seeded(global_draws)"


class TestSeeded:
    def test_rows_are_seeded_one_by_one_and_the_generators_put_back(self):
        explainer = metfa.seeded(global_draws)
        before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
        together = explainer(TABLE, 0, rngs=rngs(1, 2, 1, 3))
        assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before
        np.testing.assert_array_equal(explainer(TABLE[1:2], 0, rngs=rngs(2)), together[1:2])
        added = together - TABLE
        np.testing.assert_allclose(added[0], added[2])
        assert (added[0] != added[1]).all()

    def test_generators_are_put_back_after_an_exception(self):
        def failing(inputs, target):
            np.random.random()
            raise KeyboardInterrupt

        before = np.random.get_state()[1:3]
        with pytest.raises(KeyboardInterrupt):
            metfa.seeded(failing)(TABLE, 0)
        after = np.random.get_state()[1:3]
        assert (before[0] == after[0]).all()
        assert before[1] == after[1]

    def test_direct_calls(self):
        explainer = metfa.seeded(global_draws, rng=3)
        np.testing.assert_array_equal(explainer(TABLE, 0), explainer(TABLE, 0))
        assert (metfa.seeded(global_draws)(TABLE, 0) != metfa.seeded(global_draws)(TABLE, 0)).all()

    @pytest.mark.parametrize(
        ("target", "each"),
        [
            (None, [None] * 4),
            (7, [7] * 4),
            ([1, 2, 3, 4], [[1], [2], [3], [4]]),
            ((1, 2, 3, 4), [(1,), (2,), (3,), (4,)]),
            (np.array([1, 2, 3, 4]), [[1], [2], [3], [4]]),
            (np.array(7), [7] * 4),
        ],
    )
    def test_targets_and_row_arguments_are_cut_with_the_rows(self, target, each):
        seen = []

        def explainer(inputs, target, *, names, masks):
            seen.append((inputs.tolist(), target.tolist() if hasattr(target, "tolist") else target, names, masks.shape))
            return inputs

        metfa.seeded(explainer)(TABLE, target, names=["a", "b", "c", "d"], masks=np.zeros((4, 2)))
        assert seen == [([TABLE[i].tolist()], each[i], ["abcd"[i]], (1, 2)) for i in range(4)]

    def test_parts_and_texts_are_cut_too(self):
        explainer = metfa.seeded(lambda parts, target: parts["x"] + parts["y"])
        assert (explainer({"x": TABLE, "y": TABLE}, 0) == 2 * TABLE).all()
        explainer = metfa.seeded(lambda parts, target: parts[0] * parts[1][:, None])
        assert (explainer((TABLE, np.arange(4)), 0) == TABLE * np.arange(4)[:, None]).all()
        explainer = metfa.seeded(lambda texts, target: np.array([[len(text), 0] for text in texts]))
        assert explainer(["a", "bcd"], 0).tolist() == [[1, 0], [3, 0]]

    def test_scores_pass_through(self):
        maps, scores = metfa.seeded(lambda x, target: (x, x[:, :2]))(TABLE, 0)
        assert (maps == TABLE).all()
        assert (scores == TABLE[:, :2]).all()
        sample = metfa.explain(
            metfa.seeded(lambda x, target: (x, x[:, :2])), TABLE, 0, noise=metfa.noise.Uniform(0.1), rng=0
        )
        assert (sample.predictions == sample.values[:, :, :2].argmax(axis=2)).all()

    def test_graph_is_kept(self):
        inputs = torch.tensor(TABLE, requires_grad=True)
        metfa.seeded(lambda x, target: x**2)(inputs, 0).sum().backward()
        np.testing.assert_allclose(inputs.grad, 2 * TABLE)

    def test_output_is_checked_row_by_row(self):
        with pytest.raises(ValueError, match=r"one map for each row, got shape \(6,\) for 1 rows"):
            metfa.seeded(lambda x, target: x[0])(TABLE, 0)

    def test_refuses_what_is_no_explainer(self):
        with pytest.raises(TypeError, match="`explainer` must be callable, got NoneType"):
            metfa.seeded(None)

    def test_interval_of_a_sampler_is_reproducible(self):
        """Case 30 of bugs.md: a sampler without a seed differs from run to run; here the interval says by how much."""
        settings = {"noise": None, "n_samples": 20, "rng": 0}
        first, again = (metfa.explain(metfa.seeded(global_draws), TABLE, 0, **settings) for _ in range(2))
        np.testing.assert_array_equal(first.values, again.values)
        interval = first.confidence_interval()
        assert (interval.high - interval.low).min() > 0.2

    def test_a_generator_of_its_own_is_reported(self):
        private = np.random.default_rng()

        def explainer(inputs, target):
            return inputs + private.normal(size=inputs.shape)

        explainer.rows_independent = True
        with pytest.warns(ReproducibilityWarning, match="a random generator or a state of its own"):
            metfa.explain(explainer, TABLE, 0, noise=metfa.noise.Uniform(0.1), rng=0)
