"""Noise in text form."""

import re

import pytest

from metfa import noise
from metfa.by_name.noises import noise_of
from metfa.text import SenseSynonyms, Synonyms

PIXELS = (0.0, 1.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uniform:0.1", noise.Uniform(0.1, bounds=PIXELS)),
        ("Gaussian:1e-1", noise.Gaussian(0.1, bounds=PIXELS)),
        ("laplace:.05", noise.Laplace(0.05, bounds=PIXELS)),
        ("brightness:0.9:1.1", noise.Brightness(0.9, 1.1, bounds=PIXELS)),
        ("brightness:0.9:1.1:pixel", noise.Brightness(0.9, 1.1, per="pixel", bounds=PIXELS)),
        ("none", None),
    ],
)
def test_noises(text, expected):
    assert noise_of(text) == expected


def test_noises_are_joined():
    joined = noise_of("uniform:0.1 + brightness:0.9:1.1")
    assert joined.noises == (noise.Uniform(0.1, bounds=PIXELS), noise.Brightness(0.9, 1.1, bounds=PIXELS))


@pytest.mark.parametrize(
    "text",
    [
        *("", "salt:0.1", "uniform", "uniform:", "uniform:x", "uniform:0.1:0.2", "brightness:1", "uniform:0.1+"),
        *("uniform:nan", "uniform:-1", "uniform:inf", "brightness:1.1:0.9", "brightness:0.9:1.1:word", "[red]:0.1"),
        "none+none",
    ],
)
def test_what_is_no_noise(text):
    with pytest.raises(
        ValueError, match=rf"{re.escape(repr(text))} is not a noise: |the noise must be .*, got {re.escape(repr(text))}"
    ):
        noise_of(text)


def test_noises_of_texts():
    assert noise_of("synonyms:0.3", "text") == Synonyms(0.3)
    assert noise_of("Synonyms:0.3:adj+adv", "text") == Synonyms(0.3, part_of_speech={"adj", "adv"})
    assert noise_of("Sense-synonyms:0.5", "text") == SenseSynonyms(0.5)
    assert noise_of("none", "text") is None
    for text in ("synonyms:1.5", "synonyms:word", "synonyms:nan", "synonyms:0.3:adverb", "sense-synonyms:0.5:adj"):
        with pytest.raises(ValueError, match=rf"{re.escape(repr(text))} is not a noise: "):
            noise_of(text, "text")
    for text in (
        "synonyms",
        "synonyms:",
        "synonyms:0.3:",
        "synonyms:0.3:adj:adv",
        "sense-synonyms:",
        "gaussian:0.1",
        "",
    ):
        with pytest.raises(ValueError, match=rf"the noise must be sense-synonyms:P.*, got {re.escape(repr(text))}"):
            noise_of(text, "text")
    with pytest.raises(ValueError, match="the noise must be uniform"):
        noise_of("synonyms:0.3")
