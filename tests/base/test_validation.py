"""One check for each kind of argument: what passes, in which form it is kept, and what the error says."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from metfa._base import validation
from metfa._base.validation import (
    MOST,
    as_list,
    as_names,
    as_path,
    check_flag,
    check_function,
    check_kind,
    check_number,
    keep,
    one_of,
    positive_int,
    with_article,
)  # fmt: skip


class Broken:
    """An object of which nothing can be asked."""

    def __repr__(self):
        raise RuntimeError("no repr")

    __index__ = __float__ = __bool__ = __len__ = __repr__


class TestIntegers:
    @pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.int64(3)])
    def test_become_python_ints(self, value):
        assert type(positive_int(value, "n")) is int

    @pytest.mark.parametrize(
        "value",
        [True, np.True_, 3.0, "3", None, np.array(3), torch.tensor(3), np.timedelta64(3), Fraction(3), Broken()],
    )
    def test_nothing_else_is_one(self, value):
        with pytest.raises(TypeError, match=r"^`n` must be an integer, got "):
            positive_int(value, "n")

    def test_an_array_of_one_says_what_to_write(self):
        with pytest.raises(TypeError, match=r"got ndarray: array\(3\); write `int\(n\)`"):
            positive_int(np.array(3), "n")
        assert positive_int(int(np.array(3)), "n") == 3

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (0, "^`n` must be at least 1, got 0$"),
            (MOST + 1, "^`n` must be at most 1,000,000,000, got 1000000001$"),
            (10**5000, "^`n` must be at most 1,000,000,000, got an integer of 16610 bits$"),
            (-(10**5000), "^`n` must be at least 1, got an integer of 16610 bits$"),
        ],
        ids=["small", "large", "huge", "negative"],
    )
    def test_limits(self, value, message):
        with pytest.raises(ValueError, match=message):
            positive_int(value, "n")


class TestNumbers:
    @pytest.mark.parametrize("value", [1, 0.5, np.float16(0.5), np.longdouble(0.5), np.int8(1)])
    def test_become_python_floats(self, value):
        assert type(check_number(value, "x")) is float

    @pytest.mark.parametrize("value", [True, "1", None, 1j, np.array(0.5), torch.tensor(0.5), Fraction(1, 2), Broken()])
    def test_nothing_else_is_one(self, value):
        with pytest.raises(TypeError, match=r"^`x` must be a number, got "):
            check_number(value, "x")

    @pytest.mark.parametrize(
        ("value", "limits", "message"),
        [
            (-1, {}, "finite and not negative, got -1$"),
            (float("nan"), {}, "finite and not negative, got nan$"),
            (10**400, {}, "finite and not negative, got an integer of 1329 bits$"),
            (0.5, {"least": 1}, "finite and at least 1, got 0.5$"),
            (0, {"above": 0}, "finite and above 0, got 0$"),
            (2.0, {"above": 0, "most": 1}, "finite and above 0 and at most 1, got 2.0$"),
            (float("inf"), {"least": -float("inf")}, "must be finite, got inf$"),
        ],
    )
    def test_limits(self, value, limits, message):
        with pytest.raises(ValueError, match=message):
            check_number(value, "x", **limits)


def test_flags():
    assert check_flag(np.False_, "scale") is False
    assert check_flag(True, "scale") is True
    for value in (1, 0, None, "no", np.array(True), Broken()):
        with pytest.raises(TypeError, match=r"^`scale` must be True or False, got "):
            check_flag(value, "scale")


def test_choices():
    assert one_of(np.str_("less"), "side", ("less", "greater")) == "less"
    with pytest.raises(
        ValueError, match=r"^`side` must be one of 'less', 'greater', got 'les', did you mean 'less'\?$"
    ):
        one_of("les", "side", ("less", "greater"))
    with pytest.raises(TypeError, match=r"^`side` must be one of 'less', 'greater', got ndarray: array\(\['less'\]"):
        one_of(np.array(["less"]), "side", ("less", "greater"))


class TestPaths:
    def test_texts_and_paths(self):
        assert as_path("a/b", "path") == as_path(Path("a/b"), "path") == Path("a/b")
        assert as_path("~/a", "path") == Path.home() / "a"

    @pytest.mark.parametrize("value", ["", "a\0b", "\ud800", "x" * 256, "~no such user/a"])
    def test_texts_that_are_none(self, value):
        with pytest.raises(ValueError, match=r"^`path` must be a path, got a text that "):
            as_path(value, "path")

    @pytest.mark.parametrize("value", [b"a", None, 3, ["a"], np.array("a"), Broken()])
    def test_nothing_else_is_one(self, value):
        with pytest.raises(TypeError, match=r"^`path` must be a path, a str or pathlib.Path, got "):
            as_path(value, "path")


def test_lists_and_names():
    assert as_list(np.arange(3), "x", "numbers") == [0, 1, 2]
    assert as_names(np.array(["a", "b"]), "names") == ("a", "b")
    for value in ("ab", {"a"}, {"a": 1}, iter("ab"), np.array("a"), 3, Broken()):
        with pytest.raises(TypeError, match=r"^`names` must be a list of texts, got "):
            as_names(value, "names")
    with pytest.raises(TypeError, match=r"^`names` must be a list of texts, but holds int: 1$"):
        as_names(["a", 1], "names")


def test_functions_by_their_signature():
    check_function(lambda x, rng: x, "noise", "noise(x, rng)", None, None)
    check_function(max, "noise", "noise(x, rng)", None, None)  # shows no signature
    for value in (len, lambda x: x, lambda x, rng, more: x, int):
        with pytest.raises(TypeError, match=r"^`noise` must be a function.* called as noise\(x, rng\), got "):
            check_function(value, "noise", "noise(x, rng)", None, None)
    with pytest.raises(TypeError, match=r"got float: 0.1$"):
        check_function(0.1, "noise", "noise(x, rng)", None, None)


def test_objects_of_ours():
    assert check_kind(np.random.default_rng(0), "rng", np.random.Generator, "`default_rng`")
    with pytest.raises(TypeError, match=r"^`rng` must be a Generator, made by `default_rng`, got int: 3$"):
        check_kind(3, "rng", np.random.Generator, "`default_rng`")


def test_kept_in_a_frozen_dataclass():
    @dataclass(frozen=True)
    class Settings:
        n: int

        def __post_init__(self):
            keep(self, n=positive_int(self.n, "n"))

    assert type(Settings(np.int8(100)).n) is int


def test_a_message_is_short_and_on_one_line():
    assert validation.shown("a\nb" * 1000) == "str: '" + ("a\\nb" * 20)[:79] + "..."
    assert "\n" not in validation.shown(np.ones((9, 9)))
    assert validation.shown(Broken()) == "Broken"


def test_names_of_code_have_their_article():
    names = ("Pipeline", "ExtraTreesClassifier", "int", "object", "dict")
    assert [*map(with_article, names)] == ["a Pipeline", "an ExtraTreesClassifier", "an int", "an object", "a dict"]
