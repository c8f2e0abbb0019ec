"""Blurs, enlargements and penalties against SciPy, OpenCV, torch's own layers, and sums written out."""

import itertools

import numpy as np
import pytest
import torch
from scipy import ndimage

from metfa.calls.blur import Blur
from metfa.calls.enlargement import enlargement, resized
from metfa.explainers.mask_optimisation import Blend, variation, variation_of_pairs

IMAGES = torch.rand(2, 3, 9, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
MASKS = torch.rand(3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


class TestBlur:
    @pytest.mark.parametrize(("border", "mode"), [("replicate", "nearest"), ("reflect", "mirror")])
    @pytest.mark.parametrize(
        ("sigma", "kernel", "reach"), [(0.7, None, 3), (10.0, None, 40), (2.0, 5, 2), (50.0, 51, 25)]
    )
    def test_equals_scipy(self, border, mode, sigma, kernel, reach):
        expected = IMAGES.numpy()
        for axis in (2, 3):
            expected = ndimage.gaussian_filter1d(expected, sigma, axis=axis, mode=mode, radius=reach)
        np.testing.assert_allclose(Blur(sigma, kernel=kernel, border=border)(IMAGES), expected, atol=1e-12)

    def test_equals_opencv(self):
        cv2 = pytest.importorskip("cv2")
        picture = np.random.default_rng(0).random((224, 160, 3))
        expected = cv2.GaussianBlur(picture, (51, 51), 50)
        blurred = Blur(50.0, kernel=51, border="reflect")(torch.from_numpy(picture).permute(2, 0, 1)[None])
        np.testing.assert_allclose(blurred[0].permute(1, 2, 0), expected, atol=1e-12)

    @pytest.mark.parametrize("size", [(1, 1), (1, 6), (6, 1), (2, 2)])
    @pytest.mark.parametrize("border", ["replicate", "reflect"])
    def test_keeps_constants_at_any_size(self, size, border):
        blurred = Blur(3.0, border=border)(torch.full((1, 2, *size), 0.3))
        assert blurred.shape == (1, 2, *size)
        assert blurred.dtype == torch.float32
        np.testing.assert_allclose(blurred, 0.3, rtol=1e-6)

    def test_is_differentiable(self):
        assert torch.autograd.gradcheck(Blur(1.0), (IMAGES[:1, :1].clone().requires_grad_(),))

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"sigma": 0.0}, ValueError, "`sigma` must be finite and above 0, got 0"),
            ({"sigma": float("nan")}, ValueError, "`sigma` must be finite and above 0, got nan"),
            ({"sigma": "5"}, TypeError, "`sigma` must be a number, got str: '5'"),
            ({"sigma": 1.0, "kernel": 4}, ValueError, "`kernel` must be odd, got 4"),
            ({"sigma": 1.0, "kernel": 0}, ValueError, "`kernel` must be at least 1, got 0"),
            (
                {"sigma": 1.0, "border": "zeros"},
                ValueError,
                "`border` must be one of 'replicate', 'reflect', got 'zeros'",
            ),
        ],
    )
    def test_settings_are_checked(self, settings, error, message):
        with pytest.raises(error, match=message):
            Blur(**settings)


class TestEnlargement:
    @pytest.mark.parametrize("sizes", [(28, 224), (4, 9), (5, 5), (1, 6), (6, 1), (7, 3)])
    @pytest.mark.parametrize(
        ("how", "layer"),
        [("nearest", {"mode": "nearest"})]
        + [(how, {"mode": "bilinear", "align_corners": how == "corners"}) for how in ("corners", "centres")],
    )
    def test_equals_torch(self, sizes, how, layer):
        cells, pixels = sizes
        masks = torch.rand(2, 1, cells, 3, dtype=torch.float64)
        ours = resized(masks, [enlargement(cells, pixels, how), enlargement(3, 11, how)])
        np.testing.assert_allclose(ours, torch.nn.functional.interpolate(masks, (pixels, 11), **layer), atol=1e-12)

    def test_blurred_afterwards(self):
        masks, blur = torch.rand(2, 1, 4, 3, dtype=torch.float64), Blur(2.0)
        plain = resized(masks, [enlargement(4, 9, "nearest"), enlargement(3, 7, "nearest")])
        blurred = resized(masks, [enlargement(4, 9, "nearest", blur), enlargement(3, 7, "nearest", blur)])
        np.testing.assert_allclose(blurred, blur(plain), atol=1e-12)


class TestVariation:
    @pytest.mark.parametrize("beta", [1, 2, 3, 2.5])
    def test_equals_means_written_out(self, beta):
        for mask, found in zip(MASKS.numpy(), variation(MASKS, beta), strict=True):
            down = [abs(mask[i + 1, j] - mask[i, j]) ** beta for i in range(3) for j in range(5)]
            right = [abs(mask[i, j + 1] - mask[i, j]) ** beta for i in range(4) for j in range(4)]
            assert float(found) == pytest.approx(np.mean(down) + np.mean(right))

    @pytest.mark.parametrize("beta", [2, 3])
    def test_of_pairs_equals_a_sum_written_out(self, beta):
        for mask, found in zip(MASKS.numpy(), variation_of_pairs(MASKS, beta), strict=True):
            total = 0
            for i, j in itertools.product(range(4), range(5)):
                down = mask[i + 1, j] - mask[i, j] if i < 3 else 0
                right = mask[i, j + 1] - mask[i, j] if j < 4 else 0
                total += (down**2 + right**2) ** (beta / 2)
            assert float(found) == pytest.approx(total, abs=20 * 1e-5)

    @pytest.mark.parametrize("spread", [1, 0.03, 1e-3, 0])
    @pytest.mark.parametrize("beta", [2, 3])
    def test_of_pairs_has_the_gradient_of_the_authors(self, spread, beta):
        """Theirs is written by hand, with the power of a difference kept above 1e-5."""
        mask = 0.5 + spread * (MASKS[0].numpy() - 0.5)
        expected = np.zeros_like(mask)
        for i, j in itertools.product(range(4), range(5)):
            down = mask[i + 1, j] - mask[i, j] if i < 3 else 0
            right = mask[i, j + 1] - mask[i, j] if j < 4 else 0
            slope = beta * max((down**2 + right**2) ** (beta / 2), 1e-5) ** ((beta - 2) / beta)
            expected[i, j] -= slope * (down + right)
            if i < 3:
                expected[i + 1, j] += slope * down
            if j < 4:
                expected[i, j + 1] += slope * right
        leaf = torch.from_numpy(mask)[None].requires_grad_()
        (gradient,) = torch.autograd.grad(variation_of_pairs(leaf, beta).sum(), leaf)
        np.testing.assert_allclose(gradient[0], expected, atol=1e-14)

    @pytest.mark.parametrize("function", [variation, variation_of_pairs])
    def test_of_one_cell_and_of_flat_masks(self, function):
        for shape in ((2, 1, 1), (2, 1, 4), (2, 4, 1), (2, 3, 3)):
            masks = torch.full(shape, 0.5, requires_grad=True)
            (gradient,) = torch.autograd.grad(function(masks, 3).sum(), masks, create_graph=True)
            (second,) = torch.autograd.grad(gradient.sum(), masks)
            assert (gradient == 0).all()
            assert (second == 0).all()
            assert torch.isfinite(function(masks, 3)).all()


def test_blend_is_the_image_under_ones_and_the_baseline_under_zeros():
    baseline = torch.zeros_like(IMAGES)
    blend = Blend(baseline, IMAGES - baseline, torch.tensor([[0], [1]]), torch.float32)
    ones = torch.ones(2, 9, 7, dtype=torch.float64)
    assert torch.equal(blend(ones), IMAGES.float())
    assert torch.equal(blend(0 * ones), baseline.float())
    assert torch.equal(blend[[1]](ones[:1]), IMAGES[1:].float())
    assert blend[[1]].index.tolist() == [[1]]
