"""Seeds of addressed streams: what `numpy.random.SeedSequence` makes of an address, at a fraction of its time.

All samples of an input share the beginning of their addresses. NumPy mixes it once, and the last two words, sample and
purpose, are mixed here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence

__all__ = ["Address", "address_words"]

# SeedSequence's constants and steps: M. E. O'Neill, "Developing a seed_seq alternative" (2015); NumPy documents them.
INIT_A, TIMES_A = 0x43B0D7E5, 0x931E8875
INIT_B, TIMES_B = 0x8B51F9DD, 0x58F38DED
MIX_LEFT, MIX_RIGHT = 0xCA01F9DD, 0x4973F715
LOW = 0xFFFFFFFF
POOL = 4  # words
OUT = [[INIT_B * pow(TIMES_B, k + more, 1 << 32) & LOW for k in range(POOL)] for more in (0, 1)]
INPUTS, WORDS = 2**15, 2**13  # remembered

Pool = tuple[int, int, int, int]


def address_words(input_id: str) -> tuple[int, ...]:
    """Four 32-bit words that stand for an input's id in a stream's address."""
    digest = hashlib.blake2b(input_id.encode(), digest_size=16).digest()
    return tuple(int(word) for word in np.frombuffer(digest, dtype="<u4"))


class Address(ISpawnableSeedSequence):
    """The seed sequence of one address, equal to ``SeedSequence(root, spawn_key=(*words, sample, purpose))``."""

    def __init__(self, root: int, input_id: str, sample: int, purpose: int, key: np.ndarray | None = None) -> None:
        self._of = root, input_id, sample, purpose
        self._key = key

    @classmethod
    def several(cls, samples: Sequence[tuple[int, str, int]], purpose: int) -> list[Address]:
        """Addresses of samples (root, input's id, sample), whose keys are made at once."""
        pools = [_pool(root, input_id) for root, input_id, _ in samples]
        first = [_hashed(sample, done) for (_, _, sample), (_, done) in zip(samples, pools, strict=True)]
        second = [_hashed(purpose, done + POOL) for _, done in pools]
        words = ([pool for pool, _ in pools], first, second, *OUT)
        mixed = _mixed(*(np.array(each, np.uint64) for each in words))
        keys = mixed[:, ::2] | mixed[:, 1::2] << 32
        return [cls(*sample, purpose, key) for sample, key in zip(samples, keys, strict=True)]

    @cached_property
    def sequence(self) -> np.random.SeedSequence:
        """NumPy's own, which counts its children."""
        root, input_id, sample, purpose = self._of
        return np.random.SeedSequence(root, spawn_key=(*address_words(input_id), sample, purpose))

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        """See `numpy.random.SeedSequence`."""
        if n_words != 2 or dtype is not np.uint64:
            return self.sequence.generate_state(n_words, dtype)
        if self._key is None:
            root, input_id, sample, purpose = self._of
            pool, done = _pool(root, input_id)
            a, b, c, d = map(_mixed, pool, _hashed(sample, done), _hashed(purpose, done + POOL), *OUT)
            self._key = np.array((a | b << 32, c | d << 32), np.uint64)
        return self._key

    def spawn(self, n_children: int) -> list[np.random.SeedSequence]:
        """See `numpy.random.SeedSequence`."""
        return self.sequence.spawn(n_children)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.sequence, name)  # entropy, spawn_key, pool, state


@lru_cache(INPUTS)
def _pool(root: int, input_id: str) -> tuple[Pool, int]:
    """The pool after root and input, and how many words have been hashed for it."""
    sequence = np.random.SeedSequence(root, spawn_key=address_words(input_id))
    words = max(POOL, -(-root.bit_length() // 32)) + POOL
    a, b, c, d = sequence.pool.tolist()
    return (a, b, c, d), POOL * POOL + POOL * (words - POOL)


@lru_cache(WORDS)
def _hashed(word: int, done: int) -> Pool:
    """One word hashed for each place of the pool, after `done` others."""
    found = []
    times = INIT_A * pow(TIMES_A, done, 1 << 32) & LOW
    for _ in range(POOL):
        value = word ^ times
        times = times * TIMES_A & LOW
        value = value * times & LOW
        found.append(value ^ value >> 16)
    a, b, c, d = found
    return a, b, c, d


def _mixed(word: Any, first: Any, second: Any, start: Any, times: Any) -> Any:
    """A word of the key from one of the pool, after two more hashed words; each may be an array of uint64."""
    word = (MIX_LEFT * word - MIX_RIGHT * first) & LOW
    word ^= word >> 16
    word = (MIX_LEFT * word - MIX_RIGHT * second) & LOW
    word = ((word ^ word >> 16) ^ start) * times & LOW
    return word ^ word >> 16
