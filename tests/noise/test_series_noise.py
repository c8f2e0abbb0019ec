"""The laws of the noises of series, their units of time, and errors."""

import re

import numpy as np
import pytest
import torch
from scipy import stats as scipy_stats

import metfa
from metfa.noise import Amplitude, FilteredGaussian, Gaussian, TimeShift, TimeWarp

ALARM = 1e-3  # a test of a law fails with this probability on a right law; the seeds are fixed, so it passes or not
RAMP = np.arange(400.0)[None].repeat(2, axis=0)


def rng(seed=0):
    return np.random.default_rng(seed)


class TestAmplitude:
    def test_one_uniform_factor_for_each_channel(self):
        factors = Amplitude(0.5, 1.5)(np.ones((3000, 4)), rng())
        assert (factors == factors[:, :1]).all()
        assert scipy_stats.kstest(factors[:, 0], scipy_stats.uniform(0.5, 1).cdf).pvalue > ALARM

    def test_or_one_for_all(self):
        noisy = Amplitude(0.5, 1.5, per="series")(np.ones((30, 4)), rng())
        assert len(np.unique(noisy)) == 1
        assert noisy[0, 0] != 1

    def test_bounds(self):
        assert Amplitude(2, 3, bounds=(0, 1))(np.full((2, 3), 0.9), rng()).max() == 1


class TestFilteredGaussian:
    @pytest.mark.parametrize(
        "settings", [{}, {"exponent": 1.0}, {"exponent": -1.0}, {"low": 0.1, "high": 0.2}, {"high": 0.05}]
    )
    @pytest.mark.parametrize("n_steps", [64, 63])
    def test_each_number_is_normal_with_this_deviation(self, settings, n_steps):
        """Channels are independent, so the numbers at one step of all channels are a sample of the law."""
        draws = FilteredGaussian(0.3, **settings)(np.zeros((4000, n_steps)), rng())
        for step in (0, n_steps // 3):
            assert scipy_stats.kstest(draws[:, step], scipy_stats.norm(0, 0.3).cdf).pvalue > ALARM
        assert abs(np.corrcoef(draws[0::2, 0], draws[1::2, 0])[0, 1]) < scipy_stats.norm.isf(ALARM / 2) / np.sqrt(2000)

    @pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, -1.0])
    def test_the_power_follows_the_exponent(self, exponent):
        draws = FilteredGaussian(1.0, exponent=exponent)(np.zeros((2000, 128)), rng())
        power = (np.abs(np.fft.rfft(draws)) ** 2).mean(0)[1:-1]
        slope = np.polyfit(np.log(np.arange(1, 64)), np.log(power), 1)[0]
        assert abs(slope + exponent) < 0.02

    def test_a_band_in_hertz_has_nothing_outside(self):
        draws = FilteredGaussian(1.0, low=45, high=55, sampling_rate=500)(np.zeros((2, 1000)), rng())
        power = np.abs(np.fft.rfft(draws)) ** 2
        frequencies = np.fft.rfftfreq(1000, 1 / 500)
        inside = (frequencies >= 45) & (frequencies <= 55)
        assert power[:, ~inside].max() < 1e-20
        assert power[:, inside].min() > 0

    def test_a_deviation_for_each_channel_and_none_leaves_it_exactly(self):
        x = rng(1).normal(size=(3, 5000))
        moved = FilteredGaussian([0.0, 1.0, 10.0])(x, rng()) - x
        assert (moved[0] == 0).all()
        np.testing.assert_allclose(moved[1:].std(axis=1), [1, 10], rtol=0.05)

    def test_without_a_band_it_is_white(self):
        draws = FilteredGaussian(1.0)(np.zeros((1, 4096)), rng())
        np.testing.assert_allclose(draws, Gaussian(1.0)(np.zeros((1, 4096)), rng()), atol=1e-12)


class TestTimeShift:
    def test_all_whole_moves_are_as_likely(self):
        moves = [int(TimeShift(3, beyond="wrap")(RAMP, rng(seed))[0].argmin()) for seed in range(3500)]
        counts = np.bincount([(move + 3) % 400 for move in moves], minlength=7)
        assert len(counts) == 7
        assert scipy_stats.chisquare(counts).pvalue > ALARM

    def test_what_comes_in(self):
        for seed in range(10):
            repeated = TimeShift(5)(RAMP, rng(seed))
            wrapped = TimeShift(5, beyond="wrap")(RAMP, rng(seed))
            move = int(wrapped[0].argmin())
            move = move if move < 200 else move - 400
            np.testing.assert_array_equal(wrapped, np.roll(RAMP, move, axis=1))
            np.testing.assert_array_equal(repeated, (RAMP - move).clip(0, 399))

    def test_seconds(self):
        np.testing.assert_array_equal(
            TimeShift(0.02, sampling_rate=500)(RAMP, rng(3)), TimeShift(10)(RAMP, rng(3))
        )  # 0.02 x 500 is 10, also where floating point says 9.999...
        assert (TimeShift(0)(RAMP, rng()) == RAMP).all()


class TestTimeWarp:
    def test_a_ramp_shows_the_displacement(self):
        """Its deviation is half the radius at every step, wherever the knots lie: (1 - c)² + c² is 3/4 on average."""
        inner = slice(60, 340)
        moves = np.array([(TimeWarp(10, 40)(RAMP, rng(seed)) - RAMP)[0, inner] for seed in range(1500)])
        assert np.abs(moves).max() <= 10
        assert np.abs(moves).max() > 9.5
        np.testing.assert_allclose(moves.std(0), 5, rtol=0.08)
        assert abs(moves.mean()) < 0.2

    def test_time_never_runs_backwards_and_channels_share_it(self):
        for seed in range(20):
            warped = TimeWarp(10, 10 * np.pi)(RAMP, rng(seed))
            assert (np.diff(warped) >= 0).all()
            assert (warped[0] == warped[1]).all()

    def test_values_between_steps_are_linear(self):
        x = rng(1).normal(size=(2, 400))
        places = TimeWarp(3, 20)(RAMP, rng(5))[0]
        np.testing.assert_allclose(TimeWarp(3, 20)(x, rng(5)), [np.interp(places, np.arange(400), row) for row in x])

    def test_seconds(self):
        seconds = TimeWarp(0.02, 0.1, sampling_rate=100)(RAMP, rng(5))
        np.testing.assert_allclose(seconds, TimeWarp(2, 10)(RAMP, rng(5)))


def test_in_explain_the_batch_size_changes_nothing():
    noise = metfa.noise.Compose(TimeWarp(2, 10), FilteredGaussian(0.1, exponent=1), Amplitude(0.9, 1.1))
    rows = torch.rand(3, 2, 50, generator=torch.Generator().manual_seed(0))
    settings = {"noise": noise, "n_samples": 4, "rng": 0, "predict": lambda x: x.mean((1, 2))}
    alone, together = (
        metfa.explain(lambda inputs, target: inputs, rows, batch_size=size, **settings) for size in (1, 12)
    )
    np.testing.assert_array_equal(alone.values, together.values)
    assert np.abs(alone.values - rows.numpy()).max() > 0.1


UNFIT = {
    "`low` must not exceed `high`, got low=1.2 and high=0.8": lambda: Amplitude(1.2, 0.8),
    "`per` must be one of 'channel', 'series', got 'image'": lambda: Amplitude(0.8, 1.2, per="image"),
    "got shape (5,): for a series of one channel write `series[None]`": lambda: Amplitude(0.8, 1.2)(np.ones(5), rng()),
    "`std` must be finite and not negative, got -1": lambda: FilteredGaussian(-1),
    "most 0.5, half a cycle a step, got 40; for hertz give": lambda: FilteredGaussian(1, low=40, high=60),
    "most 250, half the sampling rate, got 300": lambda: FilteredGaussian(1, high=300, sampling_rate=500),
    "`low` must not exceed `high`, got low=0.3 and high=0.2": lambda: FilteredGaussian(1, low=0.3, high=0.2),
    "the band from 0.11 to 0.14 holds no frequency of a series of 10 steps, whose frequencies are 0.1 apart": (
        lambda: FilteredGaussian(1, low=0.11, high=0.14)(np.ones((1, 10)), rng())
    ),
    "2 numbers, one a channel, but one input has 3": lambda: FilteredGaussian([1, 2])(np.ones((3, 10)), rng()),
    "`sampling_rate` must be finite and above 0, got 0": lambda: FilteredGaussian(1, sampling_rate=0),
    "`radius` is 0.4 of a step, but moves are whole steps: write at least 1;": lambda: TimeShift(0.4),
    "`beyond` must be one of 'repeat', 'wrap', got 'zero'": lambda: TimeShift(2, beyond="zero"),
    "pi times `radius`, 31.42, so that time never runs backwards, got 20": lambda: TimeWarp(10, 20),
}


@pytest.mark.parametrize("message", UNFIT)
def test_unfit(message):
    with pytest.raises(ValueError, match=re.escape(message)):
        UNFIT[message]()


@pytest.mark.parametrize("noise", [TimeWarp(1, 4), TimeShift(1), Amplitude(1, 2), FilteredGaussian(1)])
def test_unfit_kinds(noise):
    with pytest.raises(TypeError, match="needs floating-point inputs, got int64"):
        noise(np.ones((2, 9), int), rng())
    with pytest.raises(TypeError, match="`rng` must be"):
        noise(np.ones((2, 9)), 5)
