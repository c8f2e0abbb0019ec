"""What is not ours: models and noises may reuse what they return, explainers and metrics write to what they get."""

import numpy as np
import pytest
import torch

import metfa
from metfa.evaluation import Study, evaluate

RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(5, 3))
ROWS = RNG.normal(size=(6, 5))
NOISE = metfa.noise.Gaussian(0.3)


class Reused:
    """A function that writes each answer to the same place."""

    def __init__(self, answer, library=np):
        self.answer, self.library, self.place = answer, library, None

    def __call__(self, batch, *further, **settings):
        found = self.answer(batch, *further, **settings)
        if self.place is None:
            self.place = self.library.zeros((200, *found.shape[1:]), dtype=found.dtype)
        self.place[: len(found)] = found
        return self.place[: len(found)]


def scores_of(batch):
    return batch @ (torch.from_numpy(WEIGHTS) if isinstance(batch, torch.Tensor) else WEIGHTS)


def sizes(inputs, target=None):
    return abs(inputs * (WEIGHTS[:, 0] if isinstance(inputs, np.ndarray) else torch.from_numpy(WEIGHTS[:, 0])))


def explained(explainer=sizes, predict=scores_of, inputs=ROWS, **settings):
    given = {"noise": NOISE, "n_samples": 12, "batch_size": 4, "rng": 0, "predict": predict, **settings}
    return metfa.explain(explainer, inputs, **given)


def check_equal(one, other):
    assert one.target == other.target
    for name in ("values", "vanilla", "scores", "predictions"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-9)


class TestAModelWithOnePlaceForItsAnswers:
    @pytest.mark.parametrize("batch_size", [None, 1, 2, 6])
    def test_scores(self, batch_size):
        asked = metfa.Called(Reused(scores_of), batch_size=batch_size)
        np.testing.assert_allclose(asked.scores(ROWS), ROWS @ WEIGHTS)

    @pytest.mark.parametrize("of_torch", [False, True])
    def test_samples(self, of_torch):
        inputs, library = (torch.from_numpy(ROWS), torch) if of_torch else (ROWS, np)
        check_equal(explained(predict=Reused(scores_of, library), inputs=inputs), explained())

    def test_an_explainer_of_it(self):
        images = RNG.random((3, 1, 6, 6))

        def model(batch):
            return batch.reshape(len(batch), -1) @ np.linspace(-1, 1, 108).reshape(36, 3)

        maps = [metfa.explainers.RISE(metfa.Called(one, batch_size=7), n_masks=40, rng=0)(images)[0] for one in
                (model, Reused(model))]  # fmt: skip
        np.testing.assert_allclose(maps[1], maps[0])
        curves = [metfa.metrics.insertion(metfa.Called(one, batch_size=7), images, maps[0], steps=5).score for one in
                  (model, Reused(model))]  # fmt: skip
        np.testing.assert_allclose(curves[1], curves[0])

    def test_one_that_takes_batches_of_one_size(self):
        place, weights = torch.zeros(8, 3), torch.from_numpy(WEIGHTS).float()

        def model(batch):
            place[...] = batch @ weights
            return place

        rows = torch.rand(20, 5)
        torch.testing.assert_close(metfa.FixedBatch(model, 8)(rows), rows @ weights)


class TestAnExplainerWithOnePlaceForItsMaps:
    def test_samples(self):
        check_equal(explained(Reused(sizes)), explained())

    def test_scores_beside_them(self):
        place = np.zeros((200, 3))

        def both(inputs, target):
            place[: len(inputs)] = inputs @ WEIGHTS
            return sizes(inputs), place[: len(inputs)]

        check_equal(explained(both, target=0), explained(target=0))

    def test_smoothed(self):
        given = {"noise": NOISE, "n_samples": 8, "batch_size": 3, "rng": 0}
        maps = [metfa.Smoothed(one, **given)(ROWS, 0) for one in (sizes, Reused(sizes))]
        np.testing.assert_allclose(maps[1], maps[0])


@pytest.mark.parametrize("batch_size", [1, 4, 50])
def test_an_explainer_that_writes_to_its_inputs_changes_no_prediction(batch_size):
    def overwriting(inputs, target):
        found = sizes(inputs)
        inputs *= 0
        return found

    check_equal(explained(overwriting, batch_size=batch_size), explained())


class TestNoise:
    def test_one_place_for_its_copies(self):
        place = np.zeros(5)

        def noise(x, rng):
            place[...] = x + rng.normal(size=5)
            return place

        def own(x, rng):
            return x + rng.normal(size=5)

        np.testing.assert_array_equal(explained(noise=noise).values, explained(noise=own).values)

    @pytest.mark.parametrize(
        "noise", [lambda x, rng: x + np.random.default_rng(0).normal(size=5), lambda x, rng: 1.2 * x]
    )
    def test_one_copy_again_and_again(self, noise):
        with pytest.warns(metfa.DegenerateAttributionsWarning, match="the noisy copies are all the same for 6 of 6"):
            sample = explained(noise=noise)
        assert not sample.significance_map().any()

    def test_alike_by_chance_is_not_alike(self):
        def rarely(x, rng):
            return x + 1 + (rng.random() < 0.1)

        sample = explained(noise=rarely, inputs=ROWS[:1], n_samples=6, rng=6)
        assert np.ptp(sample.values, axis=0).max() == 0
        assert not sample.unmoved.any()

    def test_smaller_than_the_digits_of_the_inputs(self):
        rows = torch.from_numpy(ROWS).add(10).bfloat16()
        with pytest.warns(metfa.DegenerateAttributionsWarning, match="the noisy copies are all the same"):
            metfa.explain(lambda x, target: x.float().abs(), rows, 0, noise=metfa.noise.Uniform(1e-3), n_samples=9)

    def test_numbers_of_its_own(self):
        own = np.random.default_rng(5)

        def noise(x, rng):
            return x + own.normal(size=5)

        with pytest.warns(metfa.ReproducibilityWarning, match="`noise` makes another copy each time"):
            explained(noise=noise)
        with pytest.raises(ValueError, match="both explainers need the same copies"):
            metfa.compare(sizes, sizes, ROWS, 0, noise=noise, n_samples=6, rng=6)

    @staticmethod
    def of(std):
        def noise(x, rng):
            return x + std * rng.normal(size=x.shape)

        return noise

    def test_complex_inputs_and_objects_of_ones_own_are_sampled(self):
        def turned(x, rng):
            return x * np.exp(1j * rng.normal(size=x.shape))

        waves = np.exp(1j * ROWS)
        sample = metfa.explain(lambda inputs, target: abs(inputs.real), waves, 0, noise=turned, n_samples=6, rng=0)
        assert any(sample.provenance["first_copy"]["changes"])
        assert metfa.compare(sample, sample).values.max() == 0

        class Thing:
            def __init__(self, numbers):
                self.numbers = numbers

        things, run = [Thing(row) for row in ROWS], metfa.Run(input_names=list("abcdef"))
        sample = metfa.explain(
            lambda inputs, target: abs(np.stack([thing.numbers for thing in inputs])), things, 0,
            noise=lambda thing, rng: Thing(thing.numbers + rng.normal(size=5)), n_samples=6, rng=0, run=run,
        )  # fmt: skip
        assert sample.provenance["first_copy"] is None
        assert not sample.unmoved.any()

    def test_two_of_one_name_are_not_compared(self):
        before, after = (explained(noise=self.of(std)) for std in (0.1, 1.0))
        with pytest.raises(ValueError, match=r"two noises of the name .*noise make other copies of"):
            metfa.compare(before, after)
        metfa.compare(before, explained(noise=self.of(0.1)))

    def test_changed_inputs_have_other_copies(self):
        runs = {"run": metfa.Run(input_names=list("abcdef")), "noise": metfa.noise.Brightness(0.5, 1.5)}
        metfa.compare(explained(**runs), explained(inputs=2 * ROWS, **runs))

    @pytest.mark.parametrize("finished", [False, True])
    def test_two_of_one_name_do_not_share_a_store(self, finished, tmp_path):
        run = metfa.Run(store=tmp_path / "s")
        calls = iter(range(10**6 if finished else 8))

        def stopped(inputs, target):
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return sizes(inputs)

        try:
            explained(stopped, noise=self.of(0.1), run=run)
        except KeyboardInterrupt:
            assert not finished
        calls = iter(range(10**6))
        error = FileExistsError if finished else ValueError
        with pytest.raises(error, match="another noise, though of the same name"):
            explained(stopped, noise=self.of(1.0), run=run)
        assert len(explained(stopped, noise=self.of(0.1), run=run).values) == 12

    def test_parts_joined_in_any_order_are_compared(self):
        early, late = (explained(run=metfa.Run(first_sample=first)) for first in (0, 12))
        assert metfa.compare(early.concat(late), late.concat(early)).values.max() == 0


class TestRobustMetrics:
    IMAGES = RNG.random((2, 1, 4, 4))

    def robust(self, metric, maps):
        judged = metfa.metrics.robust(metric, noise=metfa.noise.Gaussian(0.3), n_outer=4, rng=0)
        return judged(lambda batch: batch.reshape(len(batch), -1)[:, :3], self.IMAGES, maps, [0, 1]).raws

    def test_a_metric_with_one_place_for_its_scores(self):
        def metric(model, inputs, attributions, target):
            return inputs.sum(axis=(1, 2, 3)) + attributions.sum(axis=(1, 2))

        maps, reused = self.IMAGES[:, 0], Reused(metric)
        found = self.robust(
            lambda model, inputs, attributions, target: reused(model, inputs, attributions, target), maps
        )
        np.testing.assert_array_equal(found, self.robust(metric, maps))

    def test_a_metric_that_writes_to_the_maps(self):
        def metric(model, inputs, attributions, target):
            found = attributions.sum(axis=(1, 2))
            attributions *= 0
            return found

        maps = self.IMAGES[:, 0].copy()
        np.testing.assert_array_equal(self.robust(metric, maps), [maps.sum(axis=(1, 2))] * 4)
        np.testing.assert_array_equal(maps, self.IMAGES[:, 0])


class TestStudies:
    IMAGES = RNG.random((3, 1, 4, 4))

    @pytest.fixture
    def figures(self, tmp_path):
        def measured(inputs, **metrics):
            study = Study(
                model=lambda images: images.reshape(len(images), -1)[:, :3],
                inputs=inputs,
                explainers={name: lambda model: lambda inputs, target: abs(inputs[:, 0]) for name in "ab"},
                metrics={**metrics, "faithfulness": {}},
                sampling={"u": metfa.noise.Uniform(0.1)},
                n_samples=6,
                version="1",
            )
            return evaluate(study, store=tmp_path / "-".join(["store", *metrics]))

        return measured

    def test_a_metric_that_writes_to_what_it_gets(self, figures):
        from types import SimpleNamespace

        def metric(model, inputs, attributions, target):
            found = SimpleNamespace(score=np.array([inputs.sum() + attributions.sum()]))
            inputs *= 0
            attributions *= 0
            return found

        images = self.IMAGES.copy()
        frame = figures(images, own=metric).to_dataframe()
        np.testing.assert_array_equal(images, self.IMAGES)
        usual = figures(self.IMAGES).to_dataframe()
        kept = frame[frame.metric != "own"].reset_index(drop=True)
        assert kept.drop(columns="seconds", errors="ignore").equals(usual.drop(columns="seconds", errors="ignore"))
        sums = frame[(frame.metric == "own") & (frame.aggregate == "vanilla")].score
        assert (sums > 0).all()

    def test_inputs_that_are_others_each_time_are_refused(self, figures):
        class Crops:
            rng = np.random.default_rng(1)

            def __len__(self):
                return 2

            def __getitem__(self, index):
                return self.rng.random((1, 4, 4))

        with pytest.warns(metfa.FailedUnitsWarning, match="input 0 is another one than before"):
            assert not figures(Crops()).results


class TestBaselines:
    @staticmethod
    def overwriting(images):
        images[...] = 0.5
        return images

    def test_of_curves(self):
        images, maps = RNG.random((2, 1, 4, 4)), RNG.random((2, 4, 4))
        before = images.copy()

        def model(batch):
            return np.stack([batch.mean(axis=(1, 2, 3)), 1 - batch.mean(axis=(1, 2, 3))], axis=1)

        asked = metfa.Called(model, softmax=False)
        scores = [metfa.metrics.insertion(asked, images, maps, baseline=one).score for one in (self.overwriting, 0.5)]
        np.testing.assert_allclose(scores[0], scores[1])
        np.testing.assert_array_equal(images, before)

    @pytest.mark.filterwarnings("ignore:the masks of")
    def test_of_masks(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3)).eval()
        images = torch.rand(1, 1, 8, 8)
        maps = [
            metfa.explainers.IGOS(model, baseline=one, n_iterations=3, grid=4)(images)[0]
            for one in (self.overwriting, lambda images: torch.full_like(images, 0.5))
        ]
        torch.testing.assert_close(maps[0], maps[1])
