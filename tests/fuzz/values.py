"""Odd values for arguments, and what a kind of argument takes: what else is accepted is silent nonsense."""

import datetime as dt
import decimal
import fractions
import functools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch

Make = Callable[[np.random.Generator], Any]


class IndexRaises:
    """Says that it is an integer, and is none."""

    def __index__(self):
        raise RuntimeError("no index")


class IndexLies:
    def __index__(self):
        return "three"


class FiveByIndex:
    def __index__(self):
        return 5


class ArrayRaises:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")


class FloatRaises:
    def __float__(self):
        raise RuntimeError("no float")


class LenRaises:
    def __len__(self):
        raise RuntimeError("no length")

    def __getitem__(self, index):
        raise IndexError


class ReprRaises:
    def __repr__(self):
        raise RuntimeError("no repr")


class BoolRaises:
    def __bool__(self):
        raise RuntimeError("no truth")

    def __eq__(self, other):
        return np.array([True, False])

    __hash__ = None


class OddPath(os.PathLike):
    def __fspath__(self):
        return b"bytes"


class TextInHerOwnWay(str):
    __slots__ = ()


def read_only():
    array = np.ones((1, 3, 8, 8))
    array.flags.writeable = False
    return array


def no_arguments():
    return 0.5


def two_arguments(first, second):
    return first


def five_arguments(a, b, c, d, e):
    return a


def gives_none(*_, **__):
    return None


def gives_text(*_, **__):
    return "text"


def gives_nan(*_, **__):
    return math.nan


def gives_itself(*first, **__):
    return first[0] if first else None


INTEGERS = [-1, 0, 1, 2, 3, 7, 255, -(2**63), 10**9, 2**31, 2**63, 2**64, 10**30, 10**400]
NUMBERS = [
    *(math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.5, -0.5, 1.0, 1.5, 3.7, 1 + 2j),
    *(decimal.Decimal("0.5"), fractions.Fraction(1, 3), decimal.Decimal("NaN")),
]
SCALARS = [
    *(np.int8(5), np.int64(3), np.uint64(2**64 - 1), np.uint8(200), np.bool_(True), np.bool_(False)),
    *(np.float16(0.5), np.float32(0.25), np.float64(0.1), np.float64("nan"), np.longdouble(0.3), np.complex64(1j)),
    *(np.str_("text"), np.datetime64("2024-01-01"), np.timedelta64(3, "s"), np.ma.masked),
]
PLAIN = [None, True, False, "", "text", "5", "0.5", "none", "jenks", b"bytes", "x" * 5000, "a\0b", "../..", "\ud800"]
TIMES = [dt.datetime(2024, 1, 1), dt.date(2024, 1, 1), dt.timedelta(seconds=1)]
NESTED = [[], (), {}, set(), [1, 2], [[1, 2], [3]], [[[]]], ["a", "b"], [None], {"a": 1}, {1: 2}, {1, 2}, [True, False]]
FUNCTIONS = [
    *(len, max, id, no_arguments, two_arguments, five_arguments, gives_none, gives_text, gives_nan, gives_itself),
    *(functools.partial(two_arguments, 1), int, dict, np.mean, np.median),
]
OBJECTS = [
    *(IndexRaises(), IndexLies(), FiveByIndex(), ArrayRaises(), FloatRaises(), LenRaises(), ReprRaises(), BoolRaises()),
    *(object(), object, Ellipsis, NotImplemented, slice(3), range(3), memoryview(b"abc"), bytearray(b"abc")),
    *(OddPath(), Path("no/such/place"), TextInHerOwnWay("text"), np, ValueError("an error"), np.random.default_rng(0)),
    *(np.random.RandomState(0), np.random.SeedSequence(0), np.dtype("f4"), torch.float32),
]
ARRAYS: list[Make] = [
    lambda rng: (value for value in range(3)),  # one that is used up
    lambda rng: np.array(5),
    lambda rng: np.array(0.5),
    lambda rng: np.array([5]),
    lambda rng: np.array([[5]]),
    lambda rng: np.array(None),
    lambda rng: np.array(True),
    lambda rng: np.array("text"),
    lambda rng: np.array([]),
    lambda rng: np.empty((0, 3)),
    lambda rng: np.empty((1, 0)),
    lambda rng: np.empty((1, 3, 0, 0)),
    lambda rng: np.empty((0, 3, 8, 8)),
    lambda rng: np.array(["a", "b"]),
    lambda rng: np.array([b"a", b"b"]),
    lambda rng: np.array([1, None, "a"], dtype=object),
    lambda rng: np.array([1.0, 2.0], dtype=object),
    lambda rng: np.array([dt.date(2024, 1, 1)], dtype="datetime64"),
    lambda rng: np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]),
    lambda rng: np.ones((1, 3), np.complex128),
    lambda rng: np.ones((1, 3, 8, 8), np.float16),
    lambda rng: np.ones((2, 6))[:, ::2],
    lambda rng: np.asfortranarray(np.ones((2, 3))),
    lambda rng: read_only(),
    lambda rng: rng.random((1, 3)),
    lambda rng: rng.random((1, 3, 8, 8)),
    lambda rng: rng.random((1, 3, 8, 8)).astype(np.float32),
    lambda rng: rng.random((2, 3, 8, 8)) > 0.5,
    lambda rng: np.full((1, 3), np.nan),
    lambda rng: np.full((1, 3, 8, 8), np.inf),
    lambda rng: np.full((1, 3, 8, 8), 1e308),
    lambda rng: np.full((5, 1, 3), -1e308),
    lambda rng: np.ma.masked_array([1.0, 2.0, 3.0], [True, False, True]),
    lambda rng: np.matrix([[1.0, 2.0, 3.0]]),
    lambda rng: np.ones((1,) * 20),
    lambda rng: np.broadcast_to(np.float64(1), (1, 3, 8, 8)),
    lambda rng: torch.ones((), dtype=torch.int64),
    lambda rng: torch.rand(1, 3, 8, 8),
    lambda rng: torch.rand(1, 3, 8, 8, dtype=torch.float64),
    lambda rng: torch.rand(1, 3, 8, 8).half(),
    lambda rng: torch.rand(1, 3, 8, 8).bfloat16(),
    lambda rng: torch.ones(1, 3, 8, 8, dtype=torch.int64),
    lambda rng: torch.ones(1, 3, dtype=torch.complex64),
    lambda rng: torch.empty(0, 3, 8, 8),
    lambda rng: torch.empty(1, 3, 8, 8, device="meta"),
    lambda rng: torch.full((1, 3, 8, 8), math.nan),
    lambda rng: torch.rand(1, 3, 8, 8, requires_grad=True),
    lambda rng: torch.rand(1, 3, 16, 16)[..., ::2, ::2],
    lambda rng: torch.eye(3).to_sparse(),
]
POOL: list[Make] = [
    *(
        lambda rng, value=value: value
        for value in [*INTEGERS, *NUMBERS, *SCALARS, *PLAIN, *TIMES, *NESTED, *FUNCTIONS, *OBJECTS]
    ),
    *ARRAYS,
]


def is_real(value):
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value):
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def is_finite(value):
    try:
        return is_real(value) and math.isfinite(value)
    except OverflowError:
        return False


def is_array_of_reals(value):
    """Finite numbers, as an array or a nested list."""
    try:
        host = np.asarray(value.detach().cpu() if isinstance(value, torch.Tensor) else value)
        return host.dtype.kind in "biuf" and bool(np.isfinite(host).all())
    except Exception:
        return False


@dataclass(frozen=True)
class Kind:
    """What an argument takes. A value that is accepted although it `takes` it not is silent nonsense."""

    takes: Callable[[Any], bool]


def none_or(takes):
    return lambda value: value is None or takes(value)


COUNT = Kind(lambda value: is_whole(value) and 1 <= value < 2**63)
INDEX = Kind(lambda value: is_whole(value) and value >= 0)
FLAG = Kind(lambda value: isinstance(value, bool | np.bool_))
LEVEL = Kind(lambda value: is_real(value) and 0 < value < 1)
NUMBER = Kind(is_finite)
NUMBERS_OR_ONE = Kind(lambda value: is_finite(value) or is_array_of_reals(value))
THRESHOLD = Kind(lambda value: value is None or callable(value) or NUMBERS_OR_ONE.takes(value))
PATH = Kind(lambda value: isinstance(value, str | Path) and str(value) != "" and "\0" not in str(value))
NAME = Kind(lambda value: isinstance(value, str))  # one of a few, and none of those in the pool but "none"
TITLE = Kind(none_or(lambda value: isinstance(value, str)))
FUNCTION = Kind(callable)
SEED = Kind(none_or(lambda value: (is_whole(value) and value >= 0) or isinstance(value, np.random.Generator)))
NAMES = Kind(none_or(lambda value: not isinstance(value, str | bytes | bytearray | dict | set | memoryview)))
ANYTHING = Kind(lambda value: True)

KINDS = {
    COUNT: (
        "n_samples n_masks n_perturbations n_iterations n_steps n_outer steps batch_size workers max_samples "
        "n_components k n n_tests n_features height width max_features n_restarts n_draws check_every refresh_every "
        "n_segments_shown n_words jitter max_length limit min_pixels first size kernel n_first_steps"
    ),
    INDEX: "index split first_sample seed target_class",
    FLAG: (
        "scale softmax upsample normalise progress pretrained truncate differences normalised rounded relative "
        "multi_word page sequential allow_import allow_download colour create_graph multi_label"
    ),
    LEVEL: "alpha confidence_level",
    NUMBER: (
        "radius keep learning_rate l1_weight tv_weight tv_beta score_weight first_step kernel_width regularization "
        "momentum undecided change max_seconds growth fraction p fused step_size prediction_weight "
        "delta map_weight distance_weight margin epsilon first_step_size sigma probability low high"
    ),
    THRESHOLD: "threshold",
    PATH: "path store folder url name_or_path",
    NAME: (
        "correction alternative palette sign variant average against to per border executor enlargement l1_reduction "
        "tv_reduction step prediction_loss map_scale schedule metric explainer_name name shape"
    ),
    TITLE: "title",
    FUNCTION: "rule explainer function law method predict",
    SEED: "rng",
    NAMES: "feature_names class_names input_names",
}  # fmt: skip
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}
