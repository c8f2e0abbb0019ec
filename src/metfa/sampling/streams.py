"""Addressed random streams: one generator for each (input, sample, purpose), never drawn in order.

The address scheme, recorded in every result as `SCHEME`: a Philox generator seeded by
``SeedSequence(root, spawn_key=(*words, sample id, purpose))`` where `words` are the four 32-bit words of the 128-bit
BLAKE2b digest of the input's id. Numbers are drawn on the host, so they are the same for every device.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from metfa._arrays import is_array, to_host
from metfa._base.validation import as_list, digits, is_whole, positive_int, shown, with_article
from metfa.sampling.addresses import Address

__all__ = [
    "MAX_SAMPLE_ID",
    "MOST_ENTROPY",
    "SCHEME",
    "Purpose",
    "checked_ids",
    "content_digest",
    "numbered_ids",
    "root_entropy",
    "stream",
    "streams",
]

SCHEME = "philox-blake2b-1"
START = np.zeros(4, np.uint64)  # of a counter; given as 0 it would take a fifth longer to make a generator
MAX_SAMPLE_ID = 2**32 - 1
MOST_ENTROPY = 2**256 - 1  # a SHA-256 digest is one; NumPy mixes any seed into 128 bits


class Purpose(IntEnum):
    """What a stream is for; two purposes of one sample never share numbers."""

    NOISE = 0
    EXPLAINER = 1
    CLEAN = 2
    OUTER = 3  # noise of the robust metrics
    TIES = 4  # order of equal scores
    SECOND_EXPLAINER = 5  # own draws of the second of two explainers that are compared
    SECOND_CLEAN = 6
    PILOT = 7  # rows that an explainer asks about before its samples


def root_entropy(rng: Any) -> int:
    """Root of all streams of one call, from `rng` (None: fresh entropy; int: itself; Generator: one draw of it)."""
    if rng is None:
        return int.from_bytes(np.random.SeedSequence().generate_state(4).tobytes(), "little")
    if isinstance(rng, np.random.Generator):
        return int.from_bytes(rng.integers(0, 2**32, size=4, dtype=np.uint32).tobytes(), "little")
    if not is_whole(rng):
        raise TypeError(f"`rng` must be None, an int or a numpy.random.Generator, got {shown(rng)}")
    if rng < 0:
        raise ValueError(f"`rng` must not be negative, got {digits(int(rng))}")
    return positive_int(rng, "rng", 0, MOST_ENTROPY)


def stream(root: int, input_id: str, sample_id: int, purpose: Purpose) -> np.random.Generator:
    """Generator at the address (input, sample, purpose) below `root`."""
    seed: Any = Address(root, input_id, sample_id, int(purpose))  # a seed sequence, which NumPy's types do not name
    return np.random.Generator(np.random.Philox(seed))


def streams(samples: Sequence[tuple[int, str, int]], purpose: Purpose) -> Iterator[np.random.Generator]:
    """Generators at the addresses of samples (root, input's id, sample id), equal to those of `stream`."""
    seeds: Any = Address.several(samples, int(purpose))
    return (np.random.Generator(np.random.Philox(seed, counter=START)) for seed in seeds)


def content_digest(row: Any) -> str:
    """Digest of the content of one input; its place in the batch does not matter."""
    digest = hashlib.blake2b(digest_size=16)
    for piece in _content(row):
        digest.update(piece)
    return digest.hexdigest()


def _content(part: Any) -> Iterator[bytes]:
    """Bytes that two plain objects share if, and only if, they are equal."""
    if is_array(part):
        host = to_host(part)
        yield f"{host.dtype.str}|{host.shape}|".encode()
        yield host.tobytes()
    elif isinstance(part, tuple | list):
        yield f"{type(part).__name__} of {len(part)}|".encode()
        for entry in part:
            yield from _content(entry)
    elif isinstance(part, Mapping):
        yield f"dict of {len(part)}|".encode()
        for key, entry in sorted(part.items(), key=lambda item: repr(item[0])):
            yield from _content(key)
            yield from _content(entry)
    elif isinstance(part, str | bytes | int | float | complex | None):
        text = repr(part)
        yield f"{type(part).__name__}|{len(text)}|{text}".encode()
    else:
        raise TypeError(
            f"`inputs` holds {with_article(type(part).__name__)}, whose content cannot address its random streams: "
            "pass `run=metfa.Run(input_names=...)` with one name for each input"
        )


def numbered_ids(names: Iterable[str]) -> tuple[str, ...]:
    """Ids from content digests, or names: a repeated one gets a number, so equal inputs have different ids."""
    seen: Counter[str] = Counter()
    ids: dict[str, None] = {}
    for name in names:
        found = name
        while found in ids:
            seen[name] += 1
            found = f"{name}#{seen[name]}"
        ids[found] = None
    return tuple(ids)


def checked_ids(input_names: Sequence[Any], n_inputs: int) -> tuple[str, ...]:
    """The caller's ids as strings; raises unless there is one for each input and all differ."""
    names = as_list(input_names, "input_names", "a sequence with one name for each input")
    ids = tuple(str(identity.item() if getattr(identity, "shape", None) == () else identity) for identity in names)
    if len(ids) != n_inputs:
        raise ValueError(f"`input_names` must hold one name for each of the {n_inputs} inputs, got {len(ids)}")
    repeated = [identity for identity, count in Counter(ids).items() if count > 1]
    if repeated:
        raise ValueError(f"`input_names` must differ from each other, got {repeated[0]!r} more than once")
    return ids
