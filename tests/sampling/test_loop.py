"""The loop over jobs that all samplers share: its order, its checks, its threads, and what its callers make of it."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

import metfa
from metfa import stats
from metfa.noise import Uniform
from metfa.sampling.loop import Job, Loop
from metfa.sampling.randomised import row_generators
from metfa.sampling.rows import Rows
from metfa.sampling.rows_in_graph import RowsInGraph
from metfa.sampling.streams import root_entropy

ROWS = np.random.default_rng(0).random((3, 12))
NOISE = Uniform(0.1)
JOBS = [Job(row, sample) for row in range(3) for sample in range(13)]


def square(inputs, target):
    return inputs**2


def own_draws(inputs, target, *, rngs):
    return np.stack([np.asarray(row) + rng.normal(size=row.shape) for row, rng in zip(inputs, rngs, strict=True)])


def loop(explainer=square, rows=None, batch_size=4, addresses=((5, "a"), (5, "b"), (6, "a")), noise=NOISE):
    rows = Rows(ROWS) if rows is None else rows
    return Loop(explainer, rows, noise, addresses, batch_size, targets=[0] * len(rows))


def maps_of(some, jobs=JOBS):
    with some.over(jobs) as chunks:
        return np.concatenate([np.asarray(chunk.maps) for chunk in chunks])


@pytest.mark.parametrize("explainer", [square, metfa.randomised(own_draws)])
@pytest.mark.parametrize("form", [np.asarray, torch.tensor])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_smoothed_is_the_smoothed_median_of_its_samples(explainer, form, level):
    inputs = form(ROWS)
    smooth = metfa.Smoothed(explainer, noise=NOISE, n_samples=13, confidence_level=level, rng=0)
    addresses = [(root_entropy(rng), "") for rng in row_generators(inputs, None, 0)]
    samples = maps_of(loop(explainer, RowsInGraph(inputs), addresses=addresses)).reshape(3, 13, 12)
    maps = smooth(inputs, 0)
    samples = torch.tensor(samples) if isinstance(maps, torch.Tensor) else samples  # the library that sums them up
    np.testing.assert_array_equal(maps, stats.smoothed_median(samples, level, axis=1))


@pytest.mark.parametrize("explainer", [square, metfa.randomised(own_draws)])
def test_explain_has_its_samples(explainer):
    sample = metfa.explain(
        explainer, ROWS, 0, noise=NOISE, n_samples=13, rng=5, run=metfa.Run(input_names=["a", "b", "c"])
    )
    addresses = [(5, "a"), (5, "b"), (5, "c")]
    maps = maps_of(loop(explainer, addresses=addresses)).reshape(3, 13, 12)
    np.testing.assert_array_equal(sample.values, maps.transpose(1, 0, 2))


@pytest.mark.parametrize("batch_size", [1, 5, 100])
def test_maps_are_those_of_their_jobs_whatever_the_chunks(batch_size):
    expected = maps_of(loop())
    np.testing.assert_array_equal(maps_of(loop(batch_size=batch_size), JOBS[::-1]), expected[::-1])
    np.testing.assert_array_equal(maps_of(loop(rows=RowsInGraph(ROWS), batch_size=batch_size)), expected)


def test_clean_rows_have_other_draws_and_no_noise():
    np.testing.assert_array_equal(maps_of(loop().cleaned(), JOBS[:1]), ROWS[:1] ** 2)
    random = loop(metfa.randomised(own_draws), noise=None)
    assert (maps_of(random.cleaned(), JOBS[:1]) != maps_of(random, JOBS[:1])).all()


def test_no_jobs_make_no_maps():
    with loop().over([]) as chunks:
        assert not list(chunks)


def test_constant_maps_and_scores_of_each_chunk():
    def with_scores(inputs, target):
        scores = inputs[:, :2]
        return np.where(np.arange(len(inputs))[:, None] == 1, 0.0, inputs), scores

    with loop(with_scores).over(JOBS[:6]) as chunks:
        seen = [(len(chunk.jobs), chunk.constant, chunk.class_scores.shape) for chunk in chunks]
    assert seen == [(4, {None: 1}, (4, 2)), (2, {None: 1}, (2, 2))]
    with loop().over(JOBS[:1]) as chunks:
        assert next(chunks).class_scores is None


@pytest.mark.parametrize("kind", [Rows, RowsInGraph])
class TestChecks:
    def test_what_is_not_finite_is_named(self, kind):
        poisoned = maps_of(loop(lambda inputs, target: inputs))[JOBS.index(Job(2, 3))]

        def explainer(inputs, target):
            return np.where((inputs == poisoned).all(axis=1, keepdims=True), np.nan, inputs)

        with pytest.raises(ValueError, match="`explainer` returned NaN or infinity for input 2, sample 3"):
            maps_of(loop(explainer, kind(ROWS)))
        with pytest.raises(ValueError, match="`explainer` returned NaN or infinity for the clean input 1"):
            maps_of(loop(lambda inputs, target: inputs * np.nan, kind(ROWS)).cleaned(), [Job(1, 0)])
        with pytest.raises(ValueError, match="`noise` made NaN or infinity of input 0, sample 0"):
            maps_of(loop(rows=kind(ROWS), noise=lambda x, rng: x * np.nan))

    def test_every_map_has_the_features_of_the_first(self, kind):
        def widths(inputs, target):
            return inputs[:, : len(inputs)]

        with pytest.raises(ValueError, match=r"features of shape \(3,\) after \(4,\): every row needs the same"):
            maps_of(loop(widths, kind(ROWS)))
        with pytest.raises(ValueError, match=r"features of shape \(12,\) after \(5,\)"):
            maps_of(replace(loop(rows=kind(ROWS)), features=(5,)))

    def test_complex_maps_are_refused(self, kind):
        with pytest.raises(TypeError, match="`explainer` must return real attributions, got complex128"):
            maps_of(loop(lambda inputs, target: inputs + 0j, kind(ROWS)))

    def test_an_unfit_noise_shows_before_the_model_is_asked(self, kind):
        def predict(inputs):
            raise AssertionError("asked")

        unfit = loop(rows=kind(ROWS), noise=lambda x, rng: x[:2])
        with pytest.raises(ValueError, match=r"`noise` changed the shape of input 0, sample 0"):
            unfit.ready(None, predict, JOBS[:2])

    def test_scores_that_are_not_finite_are_named(self, kind):
        with pytest.raises(ValueError, match="the model's scores of the clean input 0 are not finite"):
            loop(rows=kind(ROWS)).ready(None, lambda inputs: inputs * np.inf, JOBS[:2])


class TestThreads:
    def names(self, kind):
        seen = set()

        def noise(x, rng):
            seen.add(threading.current_thread().name)
            return x

        maps_of(loop(rows=kind(ROWS), noise=noise))
        return seen

    def test_noise_is_drawn_ahead_on_the_host_and_in_turn_in_a_graph(self):
        assert all(name.startswith("metfa-noise") for name in self.names(Rows))
        assert self.names(RowsInGraph) == {threading.current_thread().name}

    def test_none_outlives_a_caller_that_stops(self):
        def stops():
            with loop(batch_size=1).over(JOBS) as chunks:
                next(chunks)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            stops()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("metfa-noise")]

    def test_only_a_few_batches_are_drawn_ahead(self):
        drawn = []
        with loop(batch_size=1, noise=lambda x, rng: drawn.append(0) or x).over(JOBS) as chunks:
            next(chunks)
        assert len(drawn) <= 3


def test_smoothed_takes_parts_as_explain_does():
    inputs = {"a": ROWS, "b": ROWS[:, :3] + 1}

    def both(inputs, target):
        return inputs["a"] * inputs["b"].sum(1, keepdims=True)

    def noise(row, rng):
        return {"a": NOISE(row["a"], rng), "b": row["b"]}

    maps = metfa.Smoothed(both, noise=noise, n_samples=10, rng=0)(inputs, 0)
    for row, rng in enumerate(row_generators(inputs, None, 0)):
        one = {key: part[row : row + 1] for key, part in inputs.items()}
        sample = metfa.explain(
            both, one, 0, noise=noise, n_samples=10, rng=root_entropy(rng), run=metfa.Run(input_names=[""])
        )
        np.testing.assert_allclose(maps[row], sample.smoothed()[0], rtol=1e-12)


def test_noisy_rows_too_are_asked_about_one_by_one_where_predict_mixes_rows():
    sizes = []

    def predict(rows):
        sizes.append(len(rows))
        return rows[:, :3] - rows[:, :3].mean(axis=0) * (len(rows) > 1)

    rows = np.random.default_rng(0).random((2, 4))
    settings = {"noise": metfa.noise.Uniform(0.3), "n_samples": 6, "rng": 0, "predict": predict}
    with pytest.warns(metfa.RowDependenceWarning, match="asked about one input at a time"):
        found = metfa.explain(lambda inputs, target: inputs**2, rows, None, batch_size=4, **settings)
    assert set(sizes[sizes.index(1) + 2 :]) == {1}  # after the look at two rows
    alone = metfa.explain(lambda inputs, target: inputs**2, rows, None, batch_size=1, **settings)
    np.testing.assert_array_equal(found.predictions, alone.predictions)
