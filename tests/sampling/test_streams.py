"""Addressed streams: every address its own numbers, the same ones for ever."""

import hashlib
import itertools
import pickle

import numpy as np
import pytest
import torch

from metfa._base.content_ids import is_content_id
from metfa.sampling.addresses import Address, address_words
from metfa.sampling.streams import (
    SCHEME,
    Purpose,
    checked_ids,
    content_digest,
    numbered_ids,
    root_entropy,
    stream,
    streams,
)


def test_the_scheme_is_what_its_docstring_says():
    digest = hashlib.blake2b(b"cat", digest_size=16).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    assert address_words("cat") == tuple(words)
    seed = np.random.SeedSequence(12345, spawn_key=(*words, 7, 1))
    expected = np.random.Generator(np.random.Philox(seed)).random(5)
    assert (stream(12345, "cat", 7, Purpose.EXPLAINER).random(5) == expected).all()


def test_recorded_numbers():
    """Saved results name `SCHEME`: whoever changes these numbers must change that name."""
    assert SCHEME == "philox-blake2b-1"
    assert stream(0, "input", 0, Purpose.NOISE).integers(0, 2**32, 3).tolist() == [4088369410, 860900789, 3451897392]


@pytest.mark.parametrize("root", [0, 1, 2**32 - 1, 2**32, 2**64 + 5, 2**128 - 1, 2**128, 2**200 + 3, 2**256 - 1])
def test_seeds_are_those_of_numpy(root):
    for name, sample, purpose in itertools.product(
        ("", "a"), (0, 77, 2**32 - 1), (Purpose.NOISE, Purpose.SECOND_CLEAN)
    ):
        expected = np.random.SeedSequence(root, spawn_key=(*address_words(name), sample, int(purpose)))
        found = Address(root, name, sample, int(purpose))
        np.testing.assert_array_equal(found.generate_state(2, np.uint64), expected.generate_state(2, np.uint64))
        np.testing.assert_array_equal(found.generate_state(5), expected.generate_state(5))
        assert found.spawn_key == expected.spawn_key


def test_many_are_those_of_one_by_one():
    samples = [(root, name, sample) for root in (0, 7, 2**64, 2**200 + 3) for name in "ab" for sample in (0, 2**32 - 1)]
    for purpose in (Purpose.NOISE, Purpose.SECOND_CLEAN):
        for found, address in zip(streams(samples, purpose), samples, strict=True):
            expected = stream(*address, purpose)
            assert found.spawn(1)[0].random() == expected.spawn(1)[0].random()
            np.testing.assert_array_equal(found.standard_normal(9), expected.standard_normal(9))


def test_generators_spawn_and_are_copied_as_those_of_numpy():
    sequence = np.random.SeedSequence(5, spawn_key=(*address_words("x"), 3, 0))
    expected = np.random.Generator(np.random.Philox(sequence))
    found = stream(5, "x", 3, Purpose.NOISE)
    for _ in range(2):  # each call gives other children
        assert found.spawn(2)[1].random() == expected.spawn(2)[1].random()
    assert pickle.loads(pickle.dumps(found)).random() == found.random() == expected.random()


def test_addresses_differ_in_every_part():
    roots, ids, samples = (0, 1, 2**100), ("", "a", "b", "a#1"), (0, 1, 2**32 - 1)
    addresses = list(itertools.product(roots, ids, samples, Purpose))
    first = [tuple(stream(*address).integers(0, 2**63, 2)) for address in addresses]
    assert len(set(first)) == len(addresses)
    assert first == [tuple(stream(*address).integers(0, 2**63, 2)) for address in addresses]


def test_streams_are_uncorrelated():
    """Of 2 016 correlations of 1 000 numbers each none is beyond 5.2 standard errors: false alarm 4e-4."""
    draws = np.array([stream(3, "x", sample, Purpose.NOISE).standard_normal(1000) for sample in range(64)])
    correlations = np.corrcoef(draws)[np.triu_indices(64, 1)]
    assert np.abs(correlations).max() < 5.2 / np.sqrt(1000)


@pytest.mark.parametrize("rng", [0, 5, np.int64(5), np.uint8(5), 2**200])
def test_an_integer_is_its_own_root(rng):
    assert root_entropy(rng) == int(rng)
    assert type(root_entropy(rng)) is int


def test_a_generator_gives_one_draw():
    used, reference = np.random.default_rng(0), np.random.default_rng(0)
    root = root_entropy(used)
    words = reference.integers(0, 2**32, size=4, dtype=np.uint32)
    assert root == sum(int(word) << 32 * place for place, word in enumerate(words))
    assert used.bit_generator.state == reference.bit_generator.state
    assert root_entropy(used) != root


def test_none_is_fresh_entropy():
    roots = {root_entropy(None) for _ in range(5)}
    assert len(roots) == 5
    assert all(root.bit_length() > 64 for root in roots)


@pytest.mark.parametrize(
    "rng", [True, np.True_, 1.0, "0", np.random.RandomState(0), torch.Generator(), np.random.SeedSequence(0), [1]]
)
def test_other_seeds_are_refused(rng):
    with pytest.raises(
        TypeError, match=f"`rng` must be None, an int or a numpy.random.Generator, got {type(rng).__name__}"
    ):
        root_entropy(rng)


def test_negative_seeds_are_refused():
    with pytest.raises(ValueError, match="`rng` must not be negative, got -3"):
        root_entropy(-3)


def test_repetitions_are_numbered():
    assert numbered_ids(["a", "b", "a", "a", "b"]) == ("a", "b", "a#1", "a#2", "b#1")
    assert numbered_ids(iter([])) == ()


def test_ids_of_contents_are_known_from_names_that_users_give():
    digest = content_digest(np.zeros(3))
    assert all(map(is_content_id, numbered_ids([digest, digest])))
    assert not any(map(is_content_id, ["cat", "", "0", f"{digest}.png", f"{digest}#", f"{digest}\n", digest.upper()]))


def test_ids_of_the_caller_become_strings():
    assert checked_ids(["cat", 7, ("a", 1)], 3) == ("cat", "7", "('a', 1)")
    assert checked_ids(np.arange(2), 2) == checked_ids(torch.arange(2), 2) == checked_ids(range(2), 2) == ("0", "1")


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ("ab", TypeError, "got str: 'ab'"),
        (7, TypeError, "got int: 7"),
        (["a"], ValueError, "each of the 2 inputs, got 1"),
        (["a", "b", "c"], ValueError, "each of the 2 inputs, got 3"),
        (["a", "a"], ValueError, "must differ from each other, got 'a' more than once"),
        ([1, "1"], ValueError, "must differ from each other, got '1' more than once"),
    ],
)
def test_ids_of_the_caller_are_checked(ids, error, message):
    with pytest.raises(error, match=f"`input_names` .*{message}"):
        checked_ids(ids, 2)
