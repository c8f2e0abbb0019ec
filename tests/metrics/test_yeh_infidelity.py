"""Infidelity: its formula by hand, Captum's figure for the same draws, and the sign of the map."""

import numpy as np
import pytest
import torch

import metfa
from metfa import DegenerateAttributionsWarning
from metfa.metrics import infidelity

WEIGHTS = torch.from_numpy(np.random.default_rng(1).normal(size=(3, 2 * 4 * 4)))
IMAGES = torch.from_numpy(np.random.default_rng(0).random((3, 2, 4, 4)))
MAPS = np.random.default_rng(2).random((3, 4, 4))
NOISE = metfa.noise.Gaussian(0.1)


def linear(images):
    return images.flatten(1) @ WEIGHTS.T


def by_hand(maps, target, n, *, normalise):
    rows, values = metfa.sampling.rows.Rows(IMAGES), []
    for row, identity in enumerate(rows.ids()):
        products, changes = [], []
        for draw in range(n):
            rng = metfa.sampling.streams.stream(0, identity, draw, metfa.sampling.streams.Purpose.OUTER)
            noisy = torch.from_numpy(NOISE(rows[row], rng))
            products.append(((IMAGES[row] - noisy) * maps[row]).sum().item())
            changes.append((linear(IMAGES[row][None]) - linear(noisy[None]))[0, target].item())
        products, changes = np.array(products), np.array(changes)
        factor = max(0, (products * changes).mean() / (products**2).mean()) if normalise else 1
        values.append(((factor * products - changes) ** 2).mean())
    return values


@pytest.mark.parametrize("normalise", [True, False])
def test_by_hand(normalise):
    maps = torch.from_numpy(MAPS)[:, None].expand_as(IMAGES)
    result = infidelity(
        metfa.Called(linear, softmax=False, batch_size=3),
        IMAGES,
        MAPS,
        1,
        noise=NOISE,
        n_perturbations=7,
        normalise=normalise,
    )
    np.testing.assert_allclose(result.score, by_hand(maps, 1, 7, normalise=normalise))


def test_the_weights_of_a_linear_model_are_without_fault():
    rows = IMAGES.flatten(1)
    result = infidelity(
        metfa.Called(lambda x: x @ WEIGHTS.T, softmax=False), rows, WEIGHTS[:1].expand(3, -1), 0, noise=NOISE
    )
    np.testing.assert_allclose(result.score, 0, atol=1e-12)


@pytest.mark.parametrize("normalise", [True, False])
def test_the_opposite_map_is_not_as_good(normalise):
    """The true map fits exactly; its opposite is no better than a map that predicts no change."""
    rows, true = IMAGES.flatten(1), WEIGHTS[:1].expand(3, -1)
    settings = {"noise": NOISE, "normalise": normalise, "n_perturbations": 20}
    model = metfa.Called(lambda x: x @ WEIGHTS.T, softmax=False)
    right = infidelity(model, rows, true, 0, **settings).score
    wrong = infidelity(model, rows, -true, 0, **settings).score
    silent = infidelity(model, rows, 1e-9 * true, 0, **{**settings, "normalise": False}).score
    assert (right >= 0).all()
    assert (right < 1e-12).all()
    np.testing.assert_allclose(wrong, (1 if normalise else 4) * silent, rtol=1e-6)


def test_never_below_zero():
    images = IMAGES.float()
    near = WEIGHTS[:1].float().expand(3, -1) * (1 + 1e-7)
    model = metfa.Called(lambda x: x @ WEIGHTS.float().T, softmax=False)
    assert (infidelity(model, images.flatten(1), near, 0, noise=NOISE).score >= 0).all()


@pytest.mark.parametrize("normalise", [True, False])
def test_captum_agrees_where_the_factor_is_positive(normalise):
    captum_metrics = pytest.importorskip("captum.metrics")
    maps = np.repeat(WEIGHTS[1].reshape(1, 2, 4, 4).numpy().mean(1), 3, axis=0)
    ours = infidelity(
        metfa.Called(linear, softmax=False), IMAGES, maps, 1, noise=NOISE, n_perturbations=6, normalise=normalise
    )
    rows = metfa.sampling.rows.Rows(IMAGES)
    for row, identity in enumerate(rows.ids()):
        streams = metfa.sampling.streams
        noisy = torch.stack(
            [
                torch.from_numpy(NOISE(rows[row], streams.stream(0, identity, k, streams.Purpose.OUTER)))
                for k in range(6)
            ]
        )
        theirs = captum_metrics.infidelity(
            linear, lambda copies, noisy=noisy: (copies - noisy, noisy), IMAGES[row : row + 1],
            torch.from_numpy(maps[row : row + 1, None]).expand(1, 2, 4, 4), target=1, n_perturb_samples=6,
            normalize=normalise,
        )  # fmt: skip
        assert ours.score[row] == pytest.approx(theirs.item())


def test_batches_and_neighbours_do_not_matter():
    expected = infidelity(linear, IMAGES, MAPS, noise=NOISE).score
    np.testing.assert_allclose(
        infidelity(metfa.Called(linear, batch_size=1), IMAGES, MAPS, noise=NOISE).score, expected
    )
    np.testing.assert_allclose(infidelity(linear, IMAGES[1:2], MAPS[1:2], noise=NOISE).score, expected[1:2])


def test_only_bad_maps_have_no_score():
    maps = MAPS.copy()
    maps[0] = 1
    maps[2, 0, 0] = np.nan
    with pytest.warns(DegenerateAttributionsWarning) as warned:
        result = infidelity(linear, IMAGES, maps, noise=NOISE)
    assert [str(one.message) for one in warned] == [
        "1 of 3 inputs have constant attributions: 0",
        "1 of 3 inputs have attributions with NaN or infinity: 2",
    ]
    assert np.isnan(result.score).tolist() == [True, False, True]


def saturated(images):
    """Class 1 has the probability 1 in every digit that there is."""
    scores = torch.zeros(len(images), 3)
    scores[:, 1] = 1000 + images.flatten(1).sum(dim=1)
    return scores


def in_the_first_draw():
    """A noise that changes an input once only."""
    shifts = iter([0.1] + [0.0] * 9)
    return lambda x, rng: x + next(shifts)


@pytest.mark.parametrize(
    ("model", "settings", "reason"),
    [
        (linear, {"noise": lambda x, rng: x}, "a noise that changes nothing"),
        (linear, {"noise": lambda x, rng: x, "normalise": False}, "a noise that changes nothing"),
        (linear, {"noise": metfa.noise.Gaussian(1e-30)}, "a noise that changes nothing"),
        (linear, {"n_perturbations": 1}, "a single draw that changes anything, which every map fits"),
        (linear, {"noise": in_the_first_draw()}, "a single draw that changes anything, which every map fits"),
        (saturated, {}, "a class probability that the noise does not change"),
    ],
)
def test_where_every_map_would_be_perfect_none_is(model, settings, reason):
    with pytest.warns(DegenerateAttributionsWarning, match=f"1 of 1 inputs have {reason}: 0"):
        result = infidelity(model, IMAGES[:1], MAPS[:1], 1, **{"noise": NOISE, **settings})
    assert result.degenerate == (reason,)
    assert np.isnan(result.score).all()


def test_a_noise_that_changes_some_inputs():
    """One is measured as it would be alone."""
    noise = lambda x, rng: x if x[0, 0, 0] == IMAGES[1, 0, 0, 0].item() else NOISE(x, rng)  # noqa: E731
    with pytest.warns(DegenerateAttributionsWarning, match="1 of 3 inputs have a noise that changes nothing: 1"):
        result = infidelity(linear, IMAGES, MAPS, noise=noise)
    np.testing.assert_array_equal(result.score[[0, 2]], infidelity(linear, IMAGES, MAPS, noise=NOISE).score[[0, 2]])


def test_a_single_draw_without_normalisation():
    result = infidelity(
        metfa.Called(linear, softmax=False), IMAGES, MAPS, 1, noise=NOISE, n_perturbations=1, normalise=False
    )
    maps = torch.from_numpy(MAPS)[:, None].expand_as(IMAGES)
    np.testing.assert_allclose(result.score, by_hand(maps, 1, 1, normalise=False))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_scores_that_are_not_finite_under_noise(bad):
    def model(images):
        spoilt = (images.flatten(1)[:, :1] != IMAGES.flatten(1)[:, 0]).all(dim=1) & (images[:, 1, 3, 3] > 0.9)
        return torch.where(spoilt[:, None], bad, linear(images))

    images = IMAGES.clone()
    images[:, 1, 3, 3] = torch.tensor([0.1, 0.1, 2.0])
    with pytest.raises(
        ValueError,
        match=r"changed copy of input 2(: the model\'s scores are| are not finite)",
    ):
        infidelity(model, images, MAPS, 1, noise=NOISE)


def test_a_graph_is_let_go():
    expected = infidelity(linear, IMAGES, MAPS, noise=NOISE).score
    images, maps = IMAGES.clone().requires_grad_(), torch.from_numpy(MAPS).requires_grad_()
    np.testing.assert_array_equal(infidelity(linear, images, maps, noise=NOISE).score, expected)
    assert images.grad is None


def test_global_generators_are_not_drawn_from():
    before = torch.get_rng_state()
    infidelity(linear, IMAGES, MAPS, noise=NOISE)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "message"),
    [
        ((IMAGES.numpy(), MAPS), {}, TypeError, r"`inputs` must be a torch\.Tensor, got ndarray"),
        ((IMAGES, MAPS[:, :2]), {}, ValueError, r"`attributions` must have the shape \(3, 4, 4\)"),
        (
            (IMAGES, MAPS + 1j),
            {},
            TypeError,
            r"`attributions` must be real numbers, which have an order, got complex128",
        ),
        ((IMAGES, MAPS, [0, 1, 3]), {}, ValueError, r"must lie in 0\.\.2 .* got 3 for input 2"),
        ((IMAGES, MAPS), {"noise": 0.1}, TypeError, r"`noise` must be a function"),
        ((IMAGES, MAPS), {"n_perturbations": 0}, ValueError, r"`n_perturbations` must be at least 1"),
    ],
)
def test_bad_arguments(arguments, settings, error, message):
    with pytest.raises(error, match=message):
        infidelity(linear, *arguments, **{"noise": NOISE, **settings})
