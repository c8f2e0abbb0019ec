"""Certificates: what they say, that an attacker with derivatives does not break them, and what they refuse."""

import re
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import metfa
from metfa import stats
from metfa.noise import Gaussian, Uniform, in_pixel_space
from metfa.noise.pixel_space import gaussian_std
from metfa.results.certified import assumption_of, certified

WEIGHTS = np.linspace(-1, 2, 40).reshape(5, 8)


def explained(x, target=0):
    return WEIGHTS * x


NOISE, ONES = Gaussian(0.5), np.ones((2, 5, 8))


def run(noise=NOISE, n_samples=200, explainer=explained, inputs=ONES, **settings):
    return metfa.explain(explainer, inputs, 0, noise=noise, n_samples=n_samples, rng=0, **settings)


class TestRadius:
    @pytest.mark.parametrize("correction", [None, "bonferroni", "bh", "e-bh"])
    def test_is_positive_just_where_a_feature_is_decided(self, correction):
        sample = run()
        radius = sample.certified_radius(0.5, correction=correction)
        marks = sample.significance_map(0.5, correction=correction)
        np.testing.assert_array_equal(radius > 0, marks != 0)
        assert (radius > 0).any(axis=(1, 2)).all()

    @pytest.mark.slow
    def test_by_hand(self):
        sample = run()
        test = sample.test(0.5)
        counts = np.maximum(test.above, test.below)
        marked = sample.significance_map(0.5) != 0
        expected = 0.5 * stats.certified_radius(counts, 200, 0.05) * marked
        np.testing.assert_allclose(sample.certified_radius(0.5), expected)
        marked = sample.significance_map(0.5, correction="bonferroni") != 0
        expected = 0.5 * stats.certified_radius(counts, 200, 0.05 / 40) * marked
        np.testing.assert_allclose(sample.certified_radius(0.5, correction="bonferroni"), expected)
        found = sample.certified_radius(0.5, correction="bh")
        for row, marks in enumerate(sample.significance_map(0.5, correction="bh")):
            for side in (1, -1):
                marked = marks == side
                expected = 0.5 * stats.certified_radius(counts[row][marked], 200, 0.05 * marked.sum() / 40)
                np.testing.assert_allclose(found[row][marked], expected)
            assert not found[row][marks == 0].any()

    def test_of_one_family_for_both_sides(self):
        """As results were decided once: r of m features have the level r alpha / (2 m)."""
        sample = run()
        terms = replace(sample.terms(0.5, correction="bh"), families="both")
        marks, test = sample.decide(terms).marks, sample.test(0.5)
        found = certified(sample, terms)[0]
        for row in range(2):
            counts = np.maximum(test.above, test.below)[row]
            expected = 0.5 * stats.certified_radius(counts, 200, 0.05 * (marks[row] != 0).sum() / 80)
            np.testing.assert_allclose(found[row], expected * (marks[row] != 0))

    def test_is_true_of_a_linear_map(self):
        """There the median is w x, which a change of length |w x - h| / |w| takes to the threshold h."""
        sample = run(n_samples=2000)
        with np.errstate(divide="ignore"):
            exact = np.abs(WEIGHTS - 0.5) / np.abs(WEIGHTS)
        radius = sample.certified_radius(0.5, alpha=1e-6)
        assert (radius <= exact).all()
        near = (radius > 0) & (exact < 0.9)
        np.testing.assert_allclose(radius[near[0] & near], np.broadcast_to(exact, radius.shape)[near], rtol=0.6)

    def test_units_are_those_of_pixels(self):
        mean, std = (0.5,), (0.25,)
        inputs = np.full((1, 1, 5, 8), 0.6)
        pixels = run(Gaussian(0.1, bounds=(0, 1)), 50, lambda x, target: x[:, 0], inputs)
        noise = in_pixel_space(Gaussian(0.1), mean, std)
        normalised = run(noise, 50, lambda x, target: x[:, 0] * 0.25 + 0.5, (inputs - 0.5) / 0.25)
        kept = normalised.certified_radius(0.5)
        assert kept.max() == pytest.approx(pixels.certified_radius(0.5).max(), rel=0.2)
        assert kept.max() <= 0.1 * stats.certified_radius([50], 50, 0.05)[0]

    def test_after_until_it_holds_at_any_time(self, tmp_path):
        rule = metfa.Until(undecided=0.4, threshold=lambda values: 0.5 + 0 * values.mean(), max_samples=300)
        sample = run(n_samples=rule)
        tested = stats.sequential_test(sample.values[10:], 0.5)
        sample.save(tmp_path / "saved")
        for correction in ("e-bh", "closed-e-bh"):
            radius = sample.certified_radius(correction=correction)
            for row, marks in enumerate(sample.significance_map(correction=correction)):
                for side, counts in ((1, tested.above[row]), (-1, tested.below[row])):
                    marked = marks == side
                    level = 0.05 * marked.sum() / 40
                    expected = 0.5 * stats.certified_radius(counts, sample.n_samples - 10, level, sequential=True)
                    np.testing.assert_allclose(radius[row][marked], expected[marked])
                assert not radius[row][marks == 0].any()
            again = metfa.load(tmp_path / "saved").certified_radius(correction=correction)
            np.testing.assert_array_equal(again, radius)


class TestInterval:
    def test_grows_with_the_radius(self):
        sample = run()
        plain = sample.confidence_interval()
        here = sample.certified_interval(0)
        np.testing.assert_array_equal(here.low, plain.low)
        np.testing.assert_array_equal(here.high, plain.high)
        wider = sample.certified_interval(0.2)
        assert (wider.low <= plain.low).all()
        assert ((wider.high - wider.low > plain.high - plain.low) | (WEIGHTS == 0)).all()
        ranks = stats.certified_ranks(200, 0.4)  # 0.2 of a deviation of 0.5
        np.testing.assert_array_equal(wider.low, np.sort(sample.values, axis=0)[ranks.low - 1])

    @pytest.mark.slow
    def test_covers_medians_of_moved_inputs(self):
        """Of w x the median moves by w d; by chance one in a million misses."""
        sample = run(n_samples=4000)
        interval = sample.certified_interval(0.3, confidence_level=1 - 1e-6)
        for way in (-0.3, 0.3):
            moved = WEIGHTS * (1 + way)
            assert ((interval.low <= moved) & (moved <= interval.high)).all()

    def test_after_until(self):
        sample = run(n_samples=metfa.Until(undecided=0.4, threshold=0.5, max_samples=300))
        plain, wider = sample.certified_interval(0), sample.certified_interval(0.1)
        np.testing.assert_array_equal(plain.low, sample.confidence_interval().low)
        fixed = stats.median_interval(sample.values, ranks=stats.certified_ranks(sample.n_samples, 0.2))
        assert (wider.low <= fixed.low).all()


class TestRefusals:
    @pytest.mark.parametrize(
        ("noise", "settings", "message"),
        [
            (Uniform(0.5), {"threshold": 0.5}, "needs Gaussian noise with one standard deviation.*Uniform(radius=0.5"),
            (Gaussian([0.5] * 8), {"threshold": 0.5}, "needs Gaussian noise with one standard deviation"),
            (Gaussian(0.5), {"split": 5}, "`split` is for choosing a threshold, and that of these attributions is 0"),
            (Gaussian(0.5), {"threshold": stats.jenks}, "`threshold` must not depend on the samples that are tested"),
            (Gaussian(0.5), {"threshold": 0.5, "correction": "holm"}, "for a certificate, got 'holm'"),
            (Gaussian(0.5), {"threshold": 0.5, "alpha": 1e-90}, "too few samples"),
        ],
    )
    def test_settings(self, noise, settings, message):
        with pytest.raises(ValueError, match=re.escape(message).replace(r"\.\*", ".*")):
            run(noise, 20).certified_radius(**settings)

    def test_a_rule_that_sees_its_own_samples_alone_is_allowed(self):
        sample = run(n_samples=60)
        own = sample.certified_radius(np.mean, split=20)
        given = sample.certified_radius(sample.threshold(np.mean, split=20), split=20)
        np.testing.assert_array_equal(own, given)

    def test_until(self):
        sample = run(n_samples=metfa.Until(undecided=0.4, threshold=0.5, max_samples=300))
        with pytest.raises(ValueError, match="must hold whenever sampling stops, and 'bh'"):
            sample.certified_radius(0.5, correction="bh")
        with pytest.raises(ValueError, match="must not depend on the samples that are tested"):
            sample.certified_radius(stats.jenks)
        with pytest.raises(ValueError, match="`split` is for choosing a threshold"):
            sample.certified_radius(split=5)
        other = run(n_samples=metfa.Until(change=1.0))
        np.testing.assert_array_equal(other.certified_radius(), other.certified_radius(0.0))
        with pytest.raises(ValueError, match="must not depend on the samples that are tested"):
            replace(other, provenance={**other.provenance, "signed": False}).certified_radius()

    def test_interval(self):
        with pytest.raises(ValueError, match="needs Gaussian noise"):
            run(Uniform(0.5), 20).certified_interval(0.1)
        with pytest.raises(ValueError, match="`radius` must be finite and not negative, got -1"):
            run().certified_interval(-1)
        with pytest.raises(ValueError, match="within a radius of 4 standard deviations: got 200"):
            run().certified_interval(2.0)


@pytest.fixture(scope="module")
def network():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        layers = [nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 6)]
        return nn.Sequential(*layers).double().eval()


class TestAttack:
    """A smooth network whose outputs are the scores of its inputs' features, and an attacker who knows all of it."""

    std, height, n = 0.3, 0.0, 3000

    def attacked(self, network, x, features, signs, radii, rng):
        """Chance of the certified side at the best of eight restarts, estimated anew, for each place.

        x : (n, 6); features, signs and radii : (n,). All places and restarts are attacked side by side.
        """
        network, x = deepcopy(network).float(), x.float()
        signs, radii = (torch.as_tensor(values, dtype=x.dtype).reshape(-1, 1, 1) for values in (signs, radii))

        def outputs(at, n):
            """Of each place's feature, (places, restarts, n), under noise that the places share."""
            noise = self.std * torch.as_tensor(rng.standard_normal((at.shape[1], n, 6), np.float32))
            found = network(at[:, :, None] + noise)
            return torch.stack([one[..., feature] for one, feature in zip(found, features, strict=True)])

        def share(at, n):
            with torch.no_grad():
                return (signs * (outputs(at, n) - self.height) > 0).double().mean(-1)

        step = torch.as_tensor(rng.standard_normal((len(x), 8, 6), np.float32))
        delta = 0.5 * radii * step / step.norm(dim=-1, keepdim=True)
        for _ in range(40):
            delta = delta.detach().requires_grad_()
            chance = torch.sigmoid(30 * (outputs(x[:, None] + delta, 400) - self.height)).mean(-1)
            (gradient,) = torch.autograd.grad((signs[..., 0] * chance).sum(), delta)
            delta = delta - 0.2 * radii * gradient / (gradient.norm(dim=-1, keepdim=True) + 1e-12)
            delta = delta * (radii / (delta.detach().norm(dim=-1, keepdim=True) + 1e-12)).clamp(max=1)
        delta = delta.detach()
        best = share(x[:, None] + delta, 4000).argmin(1)
        found = (x + delta[range(len(x)), best])[:, None]
        return sum(share(found, 6000)[:, 0] for _ in range(10)).numpy() / 10

    @pytest.mark.slow
    def test_is_not_broken_inside_and_is_outside(self, network):
        def explainer(inputs, target):
            with torch.no_grad():
                return network(inputs)

        x = torch.as_tensor(np.random.default_rng(5).normal(0, 1, (4, 6)))
        sample = metfa.explain(explainer, x, 0, noise=Gaussian(self.std), n_samples=self.n, rng=0, batch_size=500)
        radius = sample.certified_radius(self.height, alpha=1e-6)
        marks = sample.significance_map(self.height, alpha=1e-6)
        assert (marks != 0).sum() >= 12
        rows, features = np.argwhere(marks != 0)[:14].T
        signs, edges = marks[rows, features].astype(float), radius[rows, features].astype(float)
        rng, error = np.random.default_rng(1), 5 * 0.5 / 60_000**0.5  # five deviations of the attacker's own estimate
        assert (self.attacked(network, x[rows], features, signs, edges, rng) >= 0.5 - error).all()
        assert (self.attacked(network, x[rows], features, signs, 4 * edges, rng) < 0.5 - error).sum() >= 3


class TestWhatIsAssumed:
    def test_a_class_that_inherits_from_gaussian_noise_may_have_another_law(self):
        class Other(Gaussian):
            def __call__(self, x, rng):
                return x + self.std * rng.standard_t(2, x.shape)

        mean, std = [0.0] * 5, [1.0] * 5
        for noise in (Other(0.5), in_pixel_space(Other(0.5), mean, std)):
            assert gaussian_std(noise) is None
        with pytest.raises(ValueError, match="a certificate needs Gaussian noise with one standard deviation"):
            run(Other(0.5), n_samples=20).certified_radius(0.5)

    def test_a_given_threshold_is_assumed_to_be_fixed(self):
        assert assumption_of(metfa.Terms(0.5)) == "threshold given; assumed chosen without these samples"
        assert assumption_of(metfa.Terms(np.array([0.5, 0.2]))) == assumption_of(metfa.Terms(0.5))
        for terms in (metfa.Terms(0.0), metfa.Terms(split=10), metfa.Terms(0.5, split=10)):
            assert assumption_of(terms) is None

    def test_a_correction_without_a_proof_says_so(self):
        unproven = "alpha 0.05 a side, bh, unproven with a threshold from the same samples"
        assert metfa.Terms(correction="bh").level == unproven
        sample = run(Uniform(0.5), n_samples=20)
        assert unproven in sample.decide(sample.terms(lambda values: 0.5, correction="bh")).question("pixel")
        for terms in (metfa.Terms(0.5, correction="bh"), metfa.Terms(correction="bh", split=5)):
            assert terms.level == "alpha 0.05 a side, bh"
        for correction in ("by", "e-bh", "bonferroni", "holm"):
            assert metfa.Terms(correction=correction).level == f"alpha 0.05 a side, {correction}"
            old = metfa.Terms(correction=correction, families="both")
            assert old.level == f"alpha 0.05, {correction} over both sides together"
