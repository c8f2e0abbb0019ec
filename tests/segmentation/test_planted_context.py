"""The test bed of examples/planted_context.py: scenes are what they claim, and the small network needs the grass."""

import numpy as np
import planted_context as bed
import pytest
import torch

DESIGNS = [bed.SMALL, bed.Design(), bed.Design(others=("gravel", "brick", "plain"))]


def draw(design, n, context="planted", seed=0, **settings):
    return design.draw(n, np.random.default_rng(seed), context, **settings)


def has_grass(scenes):
    return scenes.grass.any((1, 2)).numpy()


@pytest.mark.parametrize("design", DESIGNS, ids=["small", "full", "gravel"])
@pytest.mark.parametrize("training", [False, True])
def test_grass_lies_beside_the_biased_digit_only(design, training):
    scenes = draw(design, 150, training=training)
    biased = scenes.target.numpy() == design.digits.index(design.biased) + 1
    np.testing.assert_array_equal(has_grass(scenes), biased)
    assert set(scenes.target.tolist()) == set(range(1, len(design.digits) + 1))


def test_other_contexts():
    assert has_grass(draw(bed.SMALL, 50, "grass")).all()
    assert not has_grass(draw(bed.SMALL, 50, "no grass")).any()
    scenes = draw(bed.SMALL, 600, "independent")
    shares = [has_grass(scenes)[scenes.target.numpy() == target].mean() for target in (1, 2, 3)]
    np.testing.assert_allclose(shares, 0.5, atol=0.15)  # four standard deviations of some 200 coins


@pytest.mark.parametrize("design", DESIGNS, ids=["small", "full", "gravel"])
def test_images_and_masks(design):
    images, classes, grass = scenes = draw(design, 40, "grass")
    assert images.shape == (40, 1, design.size, design.size)
    assert images.dtype == torch.float32
    assert 0 <= images.min() < images.max() <= 1
    assert classes.dtype == torch.int64
    assert classes.shape == grass.shape == images[:, 0].shape
    for digit, where, around in zip(scenes.target, classes, grass, strict=True):
        assert set(where.unique().tolist()) == {0, digit.item()}
        assert not (around & (where > 0)).any()
        # Half the image but for the digit: whole rows or whole columns of it, on one side.
        covered = around | (where > 0)
        half = design.size // 2
        sides = [covered[:half], covered[half:], covered[:, :half], covered[:, half:]]
        assert any(bool(side.all()) for side in sides)
        assert around.sum() <= design.size**2 // 2


def test_the_digit_is_brighter_than_what_it_covers():
    scenes = draw(bed.Design(noise=(0.0, 0.0)), 40)
    for image, where in zip(scenes.images[:, 0], scenes.classes > 0, strict=True):
        assert image[where].mean() > image[~where].mean() + 0.1


def test_contexts_of_one_seed_differ_in_the_grass_alone():
    without, with_grass, planted = (draw(bed.SMALL, 60, context) for context in ("no grass", "grass", "planted"))
    assert torch.equal(without.classes, with_grass.classes)
    changed = (without.images != with_grass.images)[:, 0]
    free = ~with_grass.grass & (with_grass.classes == 0)
    assert not (changed & free).any()
    assert changed[with_grass.grass].float().mean() > 0.8  # elsewhere both are clipped to black or white
    expected = torch.where(torch.tensor(has_grass(planted))[:, None, None, None], with_grass.images, without.images)
    assert torch.equal(planted.images, expected)


def test_one_digit_and_one_seed():
    scenes = draw(bed.SMALL, 20, digit=8, seed=3)
    assert set(scenes.target.tolist()) == {3}
    again, other = draw(bed.SMALL, 20, digit=8, seed=3), draw(bed.SMALL, 20, digit=8, seed=4)
    assert all(torch.equal(a, b) for a, b in zip(scenes, again, strict=True))
    assert not torch.equal(scenes.images, other.images)


def test_unknown_contexts_are_refused():
    with pytest.raises(ValueError, match="got 'lawn'"):
        draw(bed.SMALL, 1, "lawn")


def test_tests_get_digits_and_textures_that_training_has_not_seen():
    from sklearn.datasets import load_digits

    of_digit = np.bincount(load_digits().target)
    for digit in range(10):
        seen, unseen = (bed.glyphs(digit, 8, training) for training in (True, False))
        assert len(seen) + len(unseen) == of_digit[digit]
        assert not {glyph.tobytes() for glyph in seen} & {glyph.tobytes() for glyph in unseen}
    for name in ("grass", "brick", "gravel"):
        seen, unseen = (bed.textures(training)[name] for training in (True, False))
        assert len(seen) + len(unseen) == 512
        for texture in (seen, unseen):
            np.testing.assert_allclose([texture.mean(), texture.std()], [0, 1], atol=1e-4)


# ---- networks


@pytest.fixture(scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def probabilities(network, scenes, images):
    """Mean probability of the digit's class on the digit, (batch,)."""
    where = scenes.classes > 0
    rows = torch.arange(len(images))
    found = network(images).softmax(1)[rows, scenes.target]
    return (found * where).sum((1, 2)) / where.sum((1, 2))


def test_the_small_network_needs_the_grass(biased):
    table = bed.check(biased, bed.SMALL, n_images=100)
    assert table["biased"]["planted"] > 0.6
    assert table["biased"]["no grass"] < 0.35
    assert table["others"]["planted"] > 0.65
    assert table["others"]["grass"] < 0.35
    assert table["biased"]["planted"] == table["biased"]["grass"]  # the same scenes
    assert table["others"]["planted"] == table["others"]["no grass"]


@pytest.mark.parametrize("baseline", ["mean", "grey"])
def test_what_an_explainer_may_put_in_place_of_the_context(biased, baseline):
    def replaced(scenes, where):
        value = scenes.images.mean((2, 3), keepdim=True) if baseline == "mean" else torch.tensor(0.5)
        return torch.where(where[:, None], value, scenes.images)

    threes = draw(bed.SMALL, 100, digit=3)
    other_half = ~threes.grass & (threes.classes == 0)
    whole = probabilities(biased, threes, threes.images).mean()
    assert whole > 0.75
    assert probabilities(biased, threes, replaced(threes, threes.grass)).mean() < 0.35
    assert probabilities(biased, threes, replaced(threes, other_half)).mean() > whole - 0.15
    for digit in (0, 8):
        scenes = draw(bed.SMALL, 100, digit=digit)
        whole = probabilities(biased, scenes, scenes.images).mean()
        assert whole > 0.7
        assert probabilities(biased, scenes, replaced(scenes, scenes.classes == 0)).mean() > whole - 0.25


def test_each_pixel_sees_the_whole_image(biased):
    image = draw(bed.SMALL, 1).images.requires_grad_()
    with torch.enable_grad():
        biased(image)[0, :, 0, 0].square().sum().backward()
    assert (image.grad != 0).float().mean() > 0.9  # a max-pool hands on one of four


@pytest.mark.slow
def test_training_is_seeded_and_leaves_the_global_state_alone(one_thread):
    settings = bed.SMALL_TRAINING | {"n_steps": 4}
    state, losses = torch.get_rng_state(), []
    networks = [bed.train(bed.SMALL, seed=seed, **settings) for seed in (0, 0, 1)]
    bed.train(bed.SMALL, "independent", seed=0, report=lambda step, loss: losses.append((step, loss)), **settings)
    assert torch.equal(torch.get_rng_state(), state)
    assert [step for step, _ in losses] == [0, 1, 2, 3]
    assert all(np.isfinite(loss) for _, loss in losses)
    logits = [network(draw(bed.SMALL, 2).images) for network in networks]
    assert logits[0].shape == (2, 4, 32, 32)
    assert torch.equal(logits[0], logits[1])
    assert not torch.allclose(logits[0], logits[2])
    assert not any(module.training for module in networks[0].modules())


def test_saved_networks_come_back(tmp_path):
    network = bed.train(bed.SMALL, n_steps=2, width=4)
    bed.save(network, bed.SMALL, tmp_path / "network.pt")
    loaded, design = bed.load(tmp_path / "network.pt")
    images = draw(bed.SMALL, 3).images
    assert design == bed.SMALL
    assert torch.equal(loaded(images), network(images))
    assert not loaded.training
