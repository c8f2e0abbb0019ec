"""Digits on textures, planted texts and mosaics: what is planted is there, and what cannot matter is never marked."""

import numpy as np
import pytest
import torch
from benchmarks.truth import digits, explainers, mosaics, rules, texts

import metfa


@pytest.fixture(scope="module")
def on_textures():
    return {decides: digits.planted(decides, 0) for decides in ("digit", "texture")}


@pytest.mark.parametrize("decides", ["digit", "texture"])
def test_digits_on_textures(decides, on_textures):
    pytest.importorskip("sklearn")
    data = on_textures[decides]
    assert [part.inputs.shape for part in data] == [(n, 1, 8, 8) for n in (8000, 1000, 1000)]
    assert 0.45 < data.test.labels.mean() < 0.55
    used = data.test.used
    assert used.any(axis=(1, 2)).all()
    assert not used[..., 4:].any() or decides == "digit"
    again, other = digits.planted(decides, 0), digits.planted(decides, 1)
    np.testing.assert_array_equal(again.test.inputs, data.test.inputs)
    assert not np.array_equal(other.test.inputs, data.test.inputs)


def test_the_texture_of_the_left_half_decides_and_the_digit_does_not(on_textures):
    """Stripes that lie have neighbours of one row alike, stripes that stand those of one column."""
    images, labels = on_textures["texture"].test.inputs[:, 0], on_textures["texture"].test.labels

    def standing(half):
        return np.abs(np.diff(half, axis=2)).mean(axis=(1, 2)) > np.abs(np.diff(half, axis=1)).mean(axis=(1, 2))

    assert (standing(images[:, :, :4]) == labels).mean() > 0.85
    assert 0.4 < (standing(images[:, :, 4:]) == labels).mean() < 0.6
    digit = on_textures["digit"].test
    assert 0.4 < (standing(digit.inputs[:, 0, :, :4]) == digit.labels).mean() < 0.6


@pytest.mark.parametrize("family", ["KEY", "NOT"])
def test_planted_texts(family):
    data = texts.drawn(family, 0)
    words, labels, used = data.test
    assert words.shape == used.shape == (300, 16)
    assert set(used.sum(axis=1)) == {1 if family == "KEY" else 2}
    assert (texts.PlantedReader()(words.tolist()).argmax(axis=1) == labels).all()
    assert set(words.ravel().tolist()) <= set(texts.VOCABULARY)
    keys = np.isin(words, texts.GOOD + texts.BAD)
    assert (keys.sum(axis=1) == 1).all()
    assert used[keys].all()
    assert (words == texts.NOT).any() == (family == "NOT")
    alone = np.isin(words, texts.GOOD).any(axis=1)
    assert (alone == labels).mean() == 1 if family == "KEY" else 0.4 < (alone == labels).mean() < 0.6


def test_synonyms_keep_the_class():
    rng, words = np.random.default_rng(0), texts.drawn("NOT", 0).test.inputs[:20].tolist()
    noisy = [texts.Synonyms(0.5)(text, rng) for text in words]
    reader = texts.PlantedReader()
    np.testing.assert_array_equal(reader(noisy), reader(words))
    changed = np.mean([one != other for text, copy in zip(words, noisy, strict=True)
                       for one, other in zip(text, copy, strict=True)])  # fmt: skip
    assert 0.35 < changed < 0.55
    assert texts.Synonyms(0.0)(words[0], rng) == words[0]


@pytest.mark.parametrize("name", ["Occlusion", "LEMNA"])
def test_a_filler_is_never_important(name):
    """Whatever the threshold rule; and the key word of the rule itself always is."""
    data = texts.drawn("KEY", 0)
    found = texts.as_planted(data, 0)
    rows = texts.right(found, data)[:2]
    explainer = explainers.OF_TEXTS[name](found.model, data)
    words, used = data.test.inputs[rows].tolist(), data.test.used[rows]
    sample = metfa.explain(explainer, words, 1, noise=texts.Synonyms(0.3), n_samples=10, rng=0)
    for rule in rules.RULES.values():
        marks = sample.significance_map(rule)
        assert not (marks[~used] == 1).any()
        assert (marks[used] == 1).all()
    np.testing.assert_array_equal(texts.planted_places(found, data, data.test.inputs[rows]), used)
    np.testing.assert_array_equal(texts.redrawn(found, data, data.test.inputs[rows]), used)


def test_mosaics():
    pictures = [torch.full((3, 4, 6), level) for level in (0.1, 0.2, 0.3, 0.4)]
    image = mosaics.mosaic(pictures)
    assert image.shape == (1, 3, 4, 6)
    for place, level in enumerate((0.1, 0.2, 0.3, 0.4)):
        truth = mosaics.cell(place, 4, 6)
        assert truth.sum() == 6
        assert image[0, 0][torch.from_numpy(truth)].tolist() == pytest.approx([level] * 6)
