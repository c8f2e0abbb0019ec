"""Inputs as rows: kinds, ids by content, noise on each kind, and what is refused."""

import array_api_strict
import numpy as np
import pytest
import torch

from metfa.noise import Uniform
from metfa.sampling.entries import count_rows, one_row
from metfa.sampling.fitting import like_row
from metfa.sampling.rows import Rows


def rng():
    return np.random.default_rng(0)


ARRAY = np.arange(12.0, dtype=np.float32).reshape(3, 4)


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    return type(a) is type(b) and np.array_equal(a, b)


@pytest.mark.parametrize(
    "inputs",
    [
        ARRAY,
        ARRAY[:, ::-1],
        ARRAY.astype(np.float16),
        ARRAY.astype(np.uint8),
        ARRAY[:, 0],
        torch.tensor(ARRAY).to(torch.bfloat16),
        torch.tensor(ARRAY).T.contiguous().T,
        torch.arange(3),
        (torch.tensor(ARRAY), torch.arange(3)),
        {"ids": np.arange(3), "mask": ARRAY > 2},
        ["one", "two", "three"],
        [("a", 1), ("b", 2), ("c", 3)],
    ],
)
def test_rows_stacked_again_are_the_inputs(inputs):
    rows = Rows(inputs)
    assert len(rows) == 3 == count_rows(inputs)
    assert same(rows.batch([rows[i] for i in range(3)]), inputs)
    assert same(one_row(inputs, 1), rows.batch([rows[1]]))


def test_subclasses_and_gradients_become_plain_tensors():
    rows = Rows(torch.nn.Parameter(torch.ones(2, 3)))
    batch = rows.batch([rows[0], rows[1]])
    assert type(batch) is torch.Tensor
    assert not batch.requires_grad


def test_rows_are_a_copy_that_cannot_be_changed():
    inputs = ARRAY.copy()
    rows = Rows(inputs)
    inputs[:] = -1
    assert (rows[0] == ARRAY[0]).all()
    with pytest.raises(ValueError, match="read-only"):
        rows[0][0] = 1
    rows.batch([rows[0]])[0, 0] = 1  # a batch is the explainer's own
    assert (rows.host == ARRAY).all()


class TestIds:
    def test_equal_content_has_equal_ids_in_every_library_and_layout(self):
        ids = Rows(ARRAY).ids()
        assert len(set(ids)) == 3
        assert Rows(torch.tensor(ARRAY)).ids() == ids
        assert Rows(array_api_strict.asarray(ARRAY)).ids() == ids
        assert Rows(np.asfortranarray(ARRAY)).ids() == ids
        assert Rows(ARRAY[::-1]).ids() == ids[::-1]
        assert Rows(list(ARRAY)).ids() == ids

    def test_dtype_shape_and_values_show(self):
        first = [Rows(x).ids()[0] for x in (ARRAY, ARRAY.astype(np.float64), ARRAY.reshape(3, 2, 2), ARRAY + 1)]
        assert len(set(first)) == 4

    def test_repetitions_are_numbered(self):
        first, second, third = Rows(["a", "b", "a"]).ids()
        assert third == f"{first}#1"
        assert second not in (first, third)

    def test_parts_do_not_run_into_each_other(self):
        rows = [
            ("ab", "c"),
            ("a", "bc"),
            ("abc",),
            "abc",
            b"abc",
            ("a", ("b", "c")),
            (("a", "b"), "c"),
            1,
            1.0,
            "1",
            None,
        ]
        assert len({identity.partition("#")[0] for identity in Rows(rows).ids()}) == len(rows)

    def test_dicts_do_not_depend_on_their_order(self):
        a, b = np.arange(3), ARRAY
        assert Rows({"a": a, "b": b}).ids() == Rows({"b": b, "a": a}).ids() != Rows({"a": a, "c": b}).ids()

    def test_long_arrays_in_lists_are_told_apart(self):
        long = np.zeros(5000)
        other = long.copy()
        other[2500] = 1e-9  # which a printed array would hide
        assert len({i.partition("#")[0] for i in Rows([long, other]).ids()}) == 2
        assert len({i.partition("#")[0] for i in Rows([torch.tensor(long), torch.tensor(other)]).ids()}) == 2

    def test_objects_of_unknown_content_need_ids(self):
        with pytest.raises(TypeError, match=r"`inputs` holds an object, whose content.*input_names="):
            Rows([object()]).ids()


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (np.float64(1), ValueError, "`inputs` must have a batch axis, got a single number"),
        (torch.tensor(1.0), ValueError, "`inputs` must have a batch axis, got a single number"),
        (3.0, ValueError, "`inputs` must have a batch axis, got a single number"),
        ("text", TypeError, r"`inputs` must have a batch axis, got the text 'text': write a list, such as \[text\]"),
        (None, TypeError, "`inputs` must be an array of real numbers, got NoneType"),
        (object(), TypeError, "`inputs` must be an array of real numbers, got object"),
        (np.array(["a", "b"]), TypeError, r"`inputs` must hold numbers, got an array of <U1: write texts as a list"),
        (np.array([None, 1]), TypeError, "`inputs` must hold numbers, got an array of object"),
        (np.ma.masked_array(ARRAY, ARRAY > 3), TypeError, "`inputs` must not be a masked array"),
        (np.zeros((0, 3)), ValueError, "`inputs` is empty"),
        (torch.zeros(0), ValueError, "`inputs` is empty"),
        ([], ValueError, "`inputs` is empty"),
        ((), ValueError, r"one batch axis in common, got lengths \[\]"),
        ({}, ValueError, r"one batch axis in common, got lengths \[\]"),
        ((np.zeros(2), np.zeros(3)), ValueError, r"one batch axis in common, got lengths \[2, 3\]"),
        ({"a": np.zeros(2), "b": 1.0}, ValueError, r"`inputs\['b'\]` must have a batch axis, got a single number"),
        ((np.zeros(2), "ab"), TypeError, r"`inputs\[1\]` must have a batch axis, got the text 'ab'"),
        (np.array([[1.0], [np.nan]]), ValueError, "`inputs` must be finite, but input 1 holds NaN"),
        (np.array([1 + 1j, np.nan]), ValueError, "`inputs` must be finite, but input 1 holds NaN"),
        (torch.tensor([[1.0], [-torch.inf]]).half(), ValueError, "`inputs` must be finite, but input 1 holds"),
        (torch.tensor([torch.nan, 1.0]).to(torch.bfloat16), ValueError, "`inputs` must be finite, but input 0 holds"),
        ((ARRAY, np.array([0, 0, np.inf])), ValueError, r"`inputs\[1\]` must be finite, but input 2 holds"),
    ],
)
def test_unfit_inputs_are_refused(inputs, error, message):
    with pytest.raises(error, match=message):
        Rows(inputs)


class TestNoise:
    def noisy(self, inputs, noise, index=1):
        return Rows(inputs).noisy([index], noise, [rng()], [f"input {index}, sample 4"])[0]

    def test_none_leaves_the_row(self):
        assert (self.noisy(ARRAY, None) == ARRAY[1]).all()

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_dtype_of_the_row_is_kept(self, dtype):
        noisy = self.noisy(ARRAY.astype(dtype), lambda x, rng: x + rng.normal(size=x.shape))
        assert noisy.dtype == dtype

    def test_a_noise_may_answer_in_another_library(self):
        assert type(self.noisy(ARRAY, lambda x, rng: torch.tensor(x) + 1)) is np.ndarray

    def test_rows_that_are_numbers(self):
        assert self.noisy(ARRAY[:, 0], Uniform(0.1)).shape == ()

    @pytest.mark.parametrize(
        ("noise", "error", "message"),
        [
            (lambda x, rng: x[:2], ValueError, r"changed the shape of input 1, sample 4 from \(4,\) to \(2,\)"),
            (lambda x, rng: x[None], ValueError, r"changed the shape of input 1, sample 4 from \(4,\) to \(1, 4\)"),
            (lambda x, rng: x * np.nan, ValueError, "made NaN or infinity of input 1, sample 4"),
            (lambda x, rng: x.astype(np.float64) * 1e300, ValueError, "made NaN or infinity of input 1, sample 4"),
            (lambda x, rng: None, TypeError, r"`noise\(x, rng\)` must be an array of real numbers, got NoneType"),
            (lambda x, rng: "noise", TypeError, r"`noise\(x, rng\)` must be an array of real numbers, got str"),
            (lambda x, rng: x + 0j, TypeError, "returned complex64 for input 1, sample 4, which is float32"),
        ],
    )
    def test_unfit_noise_names_input_and_sample(self, noise, error, message):
        with pytest.raises(error, match=message):
            self.noisy(ARRAY, noise)

    def test_a_noise_in_place_is_stopped(self):
        def in_place(x, rng):
            x += 1

        with pytest.raises(ValueError, match="read-only"):
            self.noisy(ARRAY, in_place)

    @pytest.mark.parametrize(
        ("dtype", "change"), [(np.uint8, np.float64(0.5)), (np.uint8, np.int64(-1)), (np.int32, np.float32(0.5))]
    )
    def test_integers_are_never_truncated_or_wrapped(self, dtype, change):
        inputs = np.zeros((2, 3), dtype)
        with pytest.raises(
            TypeError, match=rf"`noise` returned {change.dtype} for input 1, sample 4, which is {np.dtype(dtype)}"
        ):
            self.noisy(inputs, lambda x, rng: x.astype(change.dtype) + change)
        assert self.noisy(inputs, lambda x, rng: x + dtype(1)).dtype == dtype

    def test_lists_take_a_noise_on_objects(self):
        assert self.noisy(["one two", "three four"], lambda text, rng: text.upper()) == "THREE FOUR"

    def test_one_noise_a_part(self):
        inputs = {"x": ARRAY, "ids": np.arange(3)}
        noisy = self.noisy(inputs, {"x": Uniform(0.1), "ids": None})
        assert list(noisy) == ["x", "ids"]
        assert (noisy["x"] == Uniform(0.1)(ARRAY[1], rng())).all()
        assert noisy["ids"] == 1
        left, right = self.noisy((ARRAY, ARRAY), (Uniform(0.1), Uniform(0.1)))
        assert (left != right).any()

    def test_one_noise_for_all_parts(self):
        def swapped(row, rng):
            return row[1], row[0]

        left, right = self.noisy((ARRAY, ARRAY + 1), swapped)
        assert (left == ARRAY[1] + 1).all()
        assert (right == ARRAY[1]).all()

    @pytest.mark.parametrize(
        ("noise", "error", "message"),
        [
            (
                lambda row, rng: row[0],
                TypeError,
                r"must return a tuple of \[0, 1\] like the input, got ndarray for input 1",
            ),
            (lambda row, rng: row[:1], TypeError, r"must return a tuple of \[0, 1\] like the input, got tuple"),
            (lambda row, rng: (*row, row[0]), TypeError, r"must return a tuple of \[0, 1\] like the input, got tuple"),
            (
                lambda row, rng: (row[0], row[1][:1]),
                ValueError,
                r"shape of input 1, sample 4, part 1 from \(4,\) to \(1,\)",
            ),
            ((None, lambda x, rng: x * np.inf), ValueError, "made NaN or infinity of input 1, sample 4, part 1"),
            (
                Uniform(0.1),
                TypeError,
                r"got tuple: .*takes one noise for each part, as in `noise=\(metfa.noise.Uniform",
            ),
        ],
    )
    def test_unfit_noise_on_parts_is_named(self, noise, error, message):
        with pytest.raises(error, match=message):
            self.noisy((ARRAY, ARRAY + 1), noise)

    @pytest.mark.parametrize(
        ("inputs", "noise", "error", "message"),
        [
            (ARRAY, 0.1, TypeError, r"`noise` must be a function f\(x, rng\) -> x, .*got float: 0\.1"),
            (ARRAY, (Uniform(0.1),), TypeError, "`noise` must be a function"),
            (["a"], {"a": Uniform(0.1)}, TypeError, "`noise` must be a function"),
            ((ARRAY, ARRAY), 0.1, TypeError, r"`noise` must be a function f\(x, rng\) -> x, .*got float: 0\.1"),
            ((ARRAY, ARRAY), (Uniform(0.1),), ValueError, r"each of \[0, 1\], got \[0\]"),
            ({"x": ARRAY}, {"y": Uniform(0.1)}, ValueError, r"each of \['x'\], got \['y'\]"),
            ((ARRAY, ARRAY), (Uniform(0.1), 0.2), TypeError, r"`noise\[1\]` must be a function.*got 0\.2"),
        ],
    )
    def test_noise_must_fit_the_kind_of_inputs(self, inputs, noise, error, message):
        with pytest.raises(error, match=message):
            Rows(inputs).check_noise(noise)


def test_like_row_keeps_library_and_graph():
    row = torch.ones(3, requires_grad=True)
    noisy = like_row(row.double() * 2, row, "input 0")
    assert noisy.dtype == torch.float32
    assert noisy.requires_grad
