"""Superpixels of every kind of picture: exact numbers, whole cells of coarse maps, nested levels, what is refused."""

import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data, segmentation

import metfa
from metfa import regions
from metfa.regions._merging import in_order, merged
from metfa.regions._pictures import _resized, _shares
from metfa.regions.colours import place_names

PHOTOGRAPH = data.chelsea()[50:194:2, 80:320:2].copy()  # uint8, (72, 120, 3)
PIXELS = np.moveaxis(PHOTOGRAPH / 255, -1, 0)
MEAN, STD = np.array([0.485, 0.456, 0.406])[:, None, None], np.array([0.229, 0.224, 0.225])[:, None, None]


def quarters(side=16, colours=((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0))):
    labels = np.kron([[0, 1], [2, 3]], np.ones((side, side), int))
    return np.moveaxis(np.array(colours, float)[labels], -1, 0), labels


def labels_of(*args, **kwargs):
    (found,) = regions.superpixels(*args, **kwargs).masks
    return found


def purity(labels, truth):
    """Share of pixels in their region's most frequent true part; slic's blur crosses an edge by one pixel."""
    return sum(np.bincount(truth[labels == label]).max() for label in np.unique(labels)) / truth.size


def agreement(a, b):
    """Share of neighbouring pixels of which both say the same: one region or two."""
    return np.mean((np.diff(a) == 0) == (np.diff(b) == 0))


class TestPictures:
    @pytest.mark.parametrize("method", ["slic", "quickshift"])
    @pytest.mark.parametrize("channels", [1, 3])
    def test_regions_of_a_colour_are_found(self, method, channels):
        picture, truth = quarters()
        picture = picture if channels == 3 else np.array([0, 0.3, 0.6, 1])[truth][None]
        for of in (picture, picture[0] if channels == 1 else np.moveaxis(picture, 0, -1)):
            assert purity(labels_of(of, 4, method=method), truth) > 0.9

    def test_scale_and_library_do_not_matter(self):
        expected = labels_of(PHOTOGRAPH)
        for same in (
            Image.fromarray(PHOTOGRAPH),
            np.moveaxis(PHOTOGRAPH, -1, 0),
            PIXELS,
            PIXELS[None],
            PHOTOGRAPH.astype(np.float64),
            torch.from_numpy(PIXELS),
            4 * PIXELS - 2,
            [Image.fromarray(PHOTOGRAPH)],
        ):
            np.testing.assert_array_equal(labels_of(same), expected)
        assert agreement(labels_of(torch.from_numpy(PIXELS).half()), expected) > 0.95

    def test_normalised_pictures_give_nearly_the_same(self):
        assert agreement(labels_of((PIXELS - MEAN) / STD), labels_of(PIXELS)) > 0.95

    def test_grey_pictures(self):
        grey = np.asarray(Image.fromarray(PHOTOGRAPH).convert("L"))
        expected = labels_of(np.repeat(grey[..., None], 3, axis=2))
        for same in (grey, grey[None], grey[..., None], Image.fromarray(grey), grey / 255):
            np.testing.assert_array_equal(labels_of(same), expected)

    def test_a_picture_of_one_colour_is_cut_into_equal_parts(self):
        sizes = regions.superpixels(np.full((3, 40, 40), 0.5), 16).shares()
        assert sizes.shape == (1, 16)
        assert sizes.max() < 4 * sizes.min()

    def test_other_modes_of_pillow(self):
        picture = Image.fromarray(PHOTOGRAPH)
        np.testing.assert_array_equal(labels_of(picture.convert("RGBA")), labels_of(picture))
        assert labels_of(picture.convert("1"), 5).shape == (72, 120)
        assert labels_of(picture.convert("P"), 5).max() == 4

    def test_each_picture_of_a_batch_by_itself(self):
        other = PIXELS[:, ::-1].copy()
        both = regions.superpixels(np.stack([PIXELS, other]), 20)
        assert len(both.masks) == 2
        assert both.names[3] == "region 3"
        for found, one in zip(both.masks, (PIXELS, other), strict=True):
            np.testing.assert_array_equal(found, labels_of(one, 20))

    def test_no_global_seed(self):
        small = PIXELS[:, :36, :60]
        for method in ("slic", "quickshift"):
            np.random.seed(0)
            first = labels_of(small, 30, method=method)
            np.random.seed(1)
            np.testing.assert_array_equal(labels_of(small, 30, method=method), first)
            drawn = np.random.rand()
            np.random.seed(1)
            assert np.random.rand() == drawn


class TestNumbers:
    @pytest.mark.parametrize("method", ["slic", "quickshift"])
    @pytest.mark.parametrize("n_segments", [2, 3, 7, 50, 149])
    def test_are_exact(self, method, n_segments):
        labels = labels_of(PIXELS[:, :36, :60], n_segments, method=method)
        assert np.unique(labels).tolist() == list(range(n_segments))

    def test_up_to_one_a_pixel(self):
        np.testing.assert_array_equal(labels_of(PIXELS[:, :3, :5], 15), np.arange(15).reshape(3, 5))

    @pytest.mark.parametrize("size", [(1, 30), (30, 1), (2, 2), (5, 4)])
    def test_of_thin_pictures(self, size):
        assert labels_of(np.random.default_rng(0).random((1, *size)), 3).max() == 2

    def test_they_are_numbered_in_the_order_of_their_first_pixels(self):
        _, first = np.unique(labels_of(PIXELS, 20), return_index=True)
        assert (np.diff(first) > 0).all()


class TestNames:
    def test_say_where(self):
        picture, _ = quarters()
        assert regions.superpixels(picture, 4).names == (
            *("region 0 (top left)", "region 1 (top right)"),
            *("region 2 (bottom left)", "region 3 (bottom right)"),
        )

    def test_of_thirds(self):
        nine = np.kron(np.arange(9).reshape(3, 3), np.ones((10, 20), int))
        places = [name.partition("(")[2][:-1] for name in place_names(nine)]
        assert places == [
            "top left",
            "top",
            "top right",
            "left",
            "centre",
            "right",
            "bottom left",
            "bottom",
            "bottom right",
        ]


class TestMaps:
    def test_of_a_result(self):
        images = PIXELS[None, :, :32, :48].astype(np.float32)
        sample = metfa.explain(
            lambda x, target: np.abs(x).sum(1), images, 0, noise=metfa.noise.Uniform(0.1), n_samples=12, rng=0
        )
        found = regions.superpixels(sample, 10, against="rest")
        np.testing.assert_array_equal(found.masks[0], labels_of(images[0], 10))
        pooled = sample.over(found)
        by_hand = [
            sample.values[:, 0, found.masks[0] == k].mean(1, dtype=float)
            - sample.values[:, 0, found.masks[0] != k].mean(1, dtype=float)
            for k in range(10)
        ]
        np.testing.assert_allclose(pooled.values[:, 0], np.stack(by_hand, axis=1), rtol=1e-5, atol=1e-6)
        assert pooled.feature_names == found.names

    def test_with_channels_a_region_holds_all_of_them(self):
        labels = labels_of(PIXELS, 10)
        np.testing.assert_array_equal(labels_of(PIXELS, 10, shape=(3, 72, 120)), np.stack([labels] * 3))
        np.testing.assert_array_equal(labels_of(PIXELS, 10, shape=(72, 120, 3)), np.stack([labels] * 3, axis=-1))

    def test_a_coarse_map_has_whole_cells(self):
        """The superpixels of a map of 8 x 8 are those of the picture's mean colours in its cells."""
        picture = np.random.default_rng(0).random((3, 56, 64))
        cells = picture.reshape(3, 8, 7, 8, 8).mean(axis=(2, 4))
        np.testing.assert_array_equal(labels_of(picture, 6, shape=(8, 8)), labels_of(cells, 6))

    def test_cells_that_share_pixels_take_their_share(self):
        np.testing.assert_allclose(_shares(3, 2), [[2 / 3, 1 / 3, 0], [0, 1 / 3, 2 / 3]])
        np.testing.assert_array_equal(_shares(2, 4), [[1, 0], [1, 0], [0, 1], [0, 1]])
        picture = np.random.default_rng(0).random((10, 15, 3))
        slow = np.kron(picture, np.ones((7, 4, 1))).reshape(7, 10, 4, 15, 3).mean(axis=(1, 3))
        np.testing.assert_allclose(_resized(picture, (7, 4)), slow)

    def test_a_fine_map_has_whole_pixels(self):
        picture, truth = quarters(4)
        assert purity(labels_of(picture, 4, shape=(24, 16)), np.kron(truth, np.ones((3, 2), int))) > 0.9

    def test_the_result_knows_its_shape(self):
        images = np.random.default_rng(0).random((2, 1, 16, 16))
        coarse = metfa.explain(
            lambda x, target: x[:, 0, ::4, ::4], images, 0, noise=metfa.noise.Uniform(0.1), n_samples=3, rng=0
        )
        found = regions.superpixels(coarse, 3)
        assert [one.shape for one in found.masks] == [(4, 4), (4, 4)]
        with pytest.raises(ValueError, match=r"`shape` must be that of the result's maps, \(4, 4\), got \(16, 16\)"):
            regions.superpixels(coarse, 3, shape=(16, 16))


class TestMerging:
    def test_against_a_slow_search(self):
        rng = np.random.default_rng(0)
        labels = np.arange(20).reshape(4, 5)
        features = rng.random((4, 5, 3))

        def within(labels):
            return sum(((features[labels == k] - features[labels == k].mean(0)) ** 2).sum() for k in np.unique(labels))

        def touch(labels, a, b):
            one = labels == a
            grown = one.copy()
            grown[1:] |= one[:-1]
            grown[:-1] |= one[1:]
            grown[:, 1:] |= one[:, :-1]
            grown[:, :-1] |= one[:, 1:]
            return (grown & (labels == b)).any()

        slow = labels
        for left in range(19, 3, -1):
            pairs = [(a, b) for a in np.unique(slow) for b in np.unique(slow) if a < b and touch(slow, a, b)]
            slow = min((np.where(slow == b, a, slow) for a, b in pairs), key=within)
            np.testing.assert_array_equal(merged(labels, features, left), in_order(slow))

    def test_equal_pairs_are_no_chance(self):
        flat = np.zeros((4, 4, 2))
        labels = np.arange(16).reshape(4, 4)
        np.testing.assert_array_equal(merged(labels, flat, 5), merged(labels, flat, 5))
        assert merged(labels, flat, 15)[0].tolist() == [0, 0, 1, 2]


class TestTree:
    def test_each_finer_region_is_in_one_coarser(self):
        tree = regions.tree(PIXELS, (4, 12, 40))
        assert [len(level) for level in tree.levels] == [4, 12, 40]
        for (coarse, fine), parents in zip(pairwise(tree.levels), tree.parents, strict=True):
            for region, parent in enumerate(parents):
                assert np.unique(coarse.masks[0][fine.masks[0] == region]).tolist() == [parent]

    def test_inside(self):
        tree = regions.tree(PIXELS, (4, 12, 40), against="rest", shape=(3, 72, 120))
        inside = tree.inside(5, level=1)
        assert inside.names == tuple(tree.levels[2].names[child] for child in tree.children(5, level=1))
        np.testing.assert_array_equal(inside.as_masks().any(axis=0), tree.levels[1].as_masks()[5])
        assert inside.against == "rest"
        around = tree.inside(5, level=1, against="region").against
        np.testing.assert_array_equal(around, tree.levels[1].as_masks()[5])

    def test_alphas_of_the_finest_add_up(self):
        tree = regions.tree(PIXELS, (4, 12, 40))
        families = [(tree.alpha_inside(region, level=1), len(tree.children(region, level=1))) for region in range(12)]
        assert sum(alpha for alpha, _ in families) == pytest.approx(0.05)
        assert tree.alpha_inside(2) == 0.05 / 4
        parent = tree.parents[0][7]
        assert tree.alpha_inside(7, level=1) == pytest.approx(0.05 / 4 / len(tree.children(parent)))

    def test_false_statements_anywhere_are_at_most_alpha(self):
        """Of two coarse regions one is truly high, so it is opened; neither its four parts nor the other are."""
        rng, runs, n = np.random.default_rng(0), 4000, 15
        false = 0
        for values in rng.standard_normal((runs // 100, 100, n, 5)):
            pvalues = metfa.stats.sign_test(np.moveaxis(values, 1, 0), 0.0, alternative="greater").pvalue
            false += int(((pvalues[:, 0] <= 0.05 / 2) | (pvalues[:, 1:] <= 0.05 / 2 / 4).any(axis=1)).sum())
        assert 0.005 < false / runs <= 0.05

    def test_the_part_that_matters_is_found_from_level_to_level(self):
        """An explainer whose scores are large in one quarter of one of four squares."""
        where = np.zeros((32, 32))
        where[:8, :8] = 1
        picture, _ = quarters()
        sample = metfa.explain(
            lambda x, target: np.abs(x).sum(1) * (0.1 + where), picture[None] + 1, 0,
            noise=metfa.noise.Uniform(0.5), n_samples=20, rng=0,
        )  # fmt: skip
        tree = regions.tree(sample, (4, 16), against="rest")
        marks = sample.over(tree.levels[0]).significance_map(correction="bonferroni")[0]
        assert marks.tolist() == [1, -1, -1, -1]
        inside = tree.inside(0, against="region")
        pooled = sample.over(inside)
        marks = pooled.significance_map(alpha=tree.alpha_inside(0), correction="bonferroni")[0]
        found = inside.as_masks()[marks == 1].any(axis=0)
        assert where[found].mean() > 0.5
        assert (marks == 1).any()
        assert (marks == -1).any()
        assert pooled.terms().sides == ("more than the other region", "less than the other region")

    @pytest.mark.parametrize(
        ("numbers", "message"),
        [
            ((), r"`n_segments` must be ascending numbers such as \(8, 40, 200\), got \(\)"),
            ((8, 8), r"ascending numbers .* got \(8, 8\)"),
            ((8, 4), r"ascending numbers .* got \(8, 4\)"),
            ((1, 4), "`n_segments` must be at least 2, got 1"),
            ((4, 9000), r"at most the number of pixels of a map, 72 x 120 = 8640, got 9000"),
        ],
    )
    def test_other_numbers_are_refused(self, numbers, message):
        with pytest.raises(ValueError, match=message):
            regions.tree(PIXELS, numbers)

    def test_what_is_not_there_is_refused(self):
        tree = regions.tree(PIXELS, (2, 4))
        with pytest.raises(ValueError, match=r"`region` must be one of 0\.\.1 of level 0, got 2"):
            tree.inside(2)
        with pytest.raises(ValueError, match="`level` must be at most 0, as the finest has none, got 1"):
            tree.alpha_inside(0, level=1)
        with pytest.raises(ValueError, match=r"`alpha` must lie between 0 and 0\.5, got 2"):
            tree.alpha_inside(0, alpha=2)
        both = np.stack([PIXELS, PIXELS[::-1]])
        sample = metfa.explain(lambda x, target: x[:, 0], both, 0, noise=metfa.noise.Uniform(0.1), n_samples=3, rng=0)
        for of in (both, sample):
            with pytest.raises(ValueError, match=r"`image` must be one picture, got 2: .* `sample.of_input\(0\)`"):
                regions.tree(of, (2, 4))
        assert len(regions.tree(sample.of_input(0), (2, 4)).levels) == 2
        with pytest.raises(TypeError, match="`n_segments` must be numbers of superpixels"):
            regions.tree(PIXELS, 8)


BROKEN = PIXELS.copy()
BROKEN[1, 5, 5] = np.nan


@pytest.mark.parametrize(
    ("image", "settings", "error", "message"),
    [
        (PIXELS, {"n_segments": 0}, ValueError, "`n_segments` must be at least 2, got 0"),
        (PIXELS, {"n_segments": 1}, ValueError, "`n_segments` must be at least 2, got 1"),
        (PIXELS, {"n_segments": 8641}, ValueError, "72 x 120 = 8640, got 8641"),
        (PIXELS, {"shape": (7, 7)}, ValueError, "a map, 7 x 7 = 49, got 50"),
        (PIXELS, {"n_segments": 2.5}, TypeError, "`n_segments` must be an integer, got float: 2.5"),
        (PIXELS, {"method": "felzenszwalb"}, ValueError, "`method` must be one of 'slic', 'quickshift', got 'felzen"),
        (PIXELS, {"shape": (50,)}, ValueError, r"maps of shape \(50,\); `metfa.regions.windows` cuts a series"),
        (PIXELS, {"how": "max", "against": "rest"}, ValueError, "`against` compares means, got how='max'"),
        (BROKEN, {}, ValueError, "`image` must hold finite numbers, but holds NaN"),
        (np.zeros((5, 20, 20)), {}, ValueError, r"1 or 3 channels, got shape \(5, 20, 20\): choose the channels"),
        (np.zeros((20, 20, 4)), {}, ValueError, r"got shape \(20, 20, 4\): drop the opacity, `image\[..., :3\]`"),
        (np.zeros((3, 0, 20)), {}, ValueError, r"`image` has no pixels: shape \(3, 0, 20\)"),
        (np.zeros((0, 3, 9, 9)), {}, ValueError, "`image` must hold at least one picture, got none"),
        (np.zeros(30), {}, ValueError, r"`image` must be a picture .* got shape \(30,\)"),
        (PIXELS * 1j, {}, TypeError, "`image` must hold real numbers, got complex128"),
        ("photo.jpg", {}, TypeError, "`image` must be an array of real numbers, got str"),
        ([PHOTOGRAPH, PHOTOGRAPH[:9]], {}, ValueError, r"pictures of one size, got \[\(72, 120\), \(9, 120\)\]"),
    ],
)
def test_what_is_refused(image, settings, error, message):
    with pytest.raises(error, match=message):
        regions.superpixels(image, **settings)


@pytest.mark.parametrize(
    ("shape", "advice"),
    [
        ((2, 20, 20), "choose the channel that shows its parts, such as `image[0]`"),
        ((20, 20, 2), "choose the channel that shows its parts, such as `image[..., 0]`"),
        ((5, 20, 20), "such as `image[[3, 2, 1]]`"),
        ((20, 20, 4), "such as `image[..., [3, 2, 1]]`"),
    ],
)
def test_advice_on_channels_names_channels_that_are_there(shape, advice):
    image = np.random.default_rng(0).random(shape)
    with pytest.raises(ValueError, match=re.escape(advice)):
        regions.superpixels(image, 4)
    chosen = eval(re.search(r"such as `(.*?)`", advice)[1], {"image": image})
    assert labels_of(chosen, 4).shape == (20, 20)


def test_advice_on_channels_works():
    assert labels_of(np.zeros((20, 20, 4))[..., :3], 4).shape == (20, 20)
    assert labels_of(np.random.default_rng(0).random((5, 20, 20))[[3, 2, 1]], 4).shape == (20, 20)


def test_a_result_without_pictures_is_refused():
    images = np.random.default_rng(0).random((1, 4, 4))
    sample = metfa.explain(lambda x, target: x, images, 0, noise=metfa.noise.Uniform(0.1), n_samples=2, rng=0)
    with pytest.raises(ValueError, match=r"inputs are list, no pictures: .* `shape=sample.feature_shape`"):
        regions.superpixels(replace(sample, inputs=["a text"]), 2)
    assert labels_of(PIXELS, 2, shape=sample.feature_shape).shape == (4, 4)


@pytest.mark.slow
def test_without_scikit_image_the_grid_is_named():
    code = (
        "import sys; sys.modules['skimage'] = None\n"
        "import numpy as np\nfrom metfa import regions\n"
        "assert len(regions.grid((28, 28), 14)) == 196\n"
        "regions.superpixels(np.zeros((3, 28, 28)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: `metfa.regions.superpixels`, unlike `metfa.regions.grid`, needs skimage: "
        "pip install 'metfa[lime]'"
    )


def test_slic_is_scikit_images():
    """Every superpixel is a union of segments of scikit-image's slic."""
    image = np.moveaxis(PIXELS, 0, -1)
    scaled = (image - image.min()) / (image.max() - image.min())
    fine = segmentation.slic(scaled, n_segments=100, compactness=10, sigma=1, start_label=0)
    labels = labels_of(PIXELS, 30)
    assert len(np.unique(fine)) > 30
    for segment in np.unique(fine):
        assert len(np.unique(labels[fine == segment])) == 1
