"""One target for each row, in every form that a caller may write it."""

import array_api_strict
import numpy as np
import pytest
import torch

from metfa.calls.targets import row_targets, stacked_targets

SCORES = np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]])


@pytest.mark.parametrize("scores", [SCORES, None])
@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (1, [1, 1]),
        (np.int32(1), [1, 1]),
        (np.array(1), [1, 1]),
        (torch.tensor(1), [1, 1]),
        (array_api_strict.asarray(1), [1, 1]),
        ([2, 0], [2, 0]),
        ((2, 0), [2, 0]),
        (range(2), [0, 1]),
        (np.array([2, 0], np.uint8), [2, 0]),
        (torch.tensor([2, 0]), [2, 0]),
        (array_api_strict.asarray([2, 0]), [2, 0]),
        ([np.int64(2), torch.tensor(0)], [2, 0]),
        ([(2,), [0]], [(2,), (0,)]),
    ],
)
def test_forms_of_the_same_target(target, expected, scores):
    targets = row_targets(target, scores, 2)
    assert targets == expected
    assert [type(entry) for entry in targets] == [type(entry) for entry in expected]


def test_masks_stay_as_they_are():
    masks = np.ones((2, 4, 4), bool)
    assert all((entry == mask).all() for entry, mask in zip(row_targets(masks, None, 2), masks, strict=True))


def test_predicted_class_where_none_is_asked_for():
    assert row_targets(None, SCORES, 2) == [1, 0]
    assert row_targets(None, np.array([0.3, 0.4]), 2) == [None, None]


@pytest.mark.parametrize("scores", [SCORES, None])
@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ([1], ValueError, "each of the 2 inputs, got 1 entries"),
        ((0, 1, 2), ValueError, r"each of the 2 inputs, got 3 entries; .*\[target\] \* 2"),
        (torch.tensor([1]), ValueError, "got 1 entries"),
        ([], ValueError, "got 0 entries"),
        (-1, ValueError, "`target` must not be negative, got -1 for input 0"),
        ([0, -2], ValueError, "`target` must not be negative, got -2 for input 1"),
        ([(0,), (-1,)], ValueError, r"`target` must not be negative, got \(-1,\) for input 1"),
        (True, TypeError, "got bool: True"),
        ([0, False], TypeError, "got bool: False"),
        (np.True_, TypeError, "got bool"),
        (np.array([True, False]), TypeError, "got bool"),
        (torch.tensor(True), TypeError, "got bool"),
        (torch.tensor([True, False]), TypeError, "got bool"),
        (1.0, TypeError, r"got float: 1\.0"),
        (np.float32(1.5), TypeError, "got float32"),
        (torch.tensor(1.7), TypeError, "got float32"),
        (np.array([0.0, 1.0]), TypeError, "got float64"),
        ([0, 1.5], TypeError, r"got float: 1\.5"),
        (1j, TypeError, "got complex: 1j"),
        ("cat", TypeError, "got the text 'cat'"),
        (["cat", "dog"], TypeError, "got str: 'cat'"),
        ([0, None], TypeError, "got NoneType: None"),
        ([(0, "a"), (0, 1)], TypeError, "got str: 'a'"),
    ],
)
def test_unfit_targets_are_refused(target, error, message, scores):
    with pytest.raises(error, match=message):
        row_targets(target, scores, 2)


@pytest.mark.parametrize(
    ("target", "scores", "message"),
    [
        (3, SCORES, r"0\.\.2 \(the model's scores have shape \(3,\)\), got 3 for input 0"),
        ([0, 7], SCORES, r"0\.\.2 .*got 7 for input 1"),
        ([(0,), (3,)], SCORES, r"0\.\.2 .*got \(3,\) for input 1"),
        (
            [(0, 1), (1, 9)],
            np.zeros((2, 3, 4)),
            r"0\.\.3 \(the model's scores have shape \(3, 4\)\), got \(1, 9\) for input 1",
        ),
        (1, np.zeros((2, 3, 4)), r"one score of each row by 2 indices \(.* shape \(3, 4\)\), got 1 for input 0"),
        ([(0, 1, 2), (0, 1)], np.zeros((2, 3, 4)), r"by 2 indices .*got \(0, 1, 2\) for input 0"),
        (0, np.zeros(2), r"must be None for a model with one score a row, shape \(batch,\), got 0"),
        (
            None,
            None,
            "`target` is None and the explainer's model is unknown: pass `target=`, or `predict=` .* so that",
        ),
        (None, np.zeros((2, 3, 4)), r"`target` is None, but the model's scores have shape \(2, 3, 4\)"),
    ],
)
def test_targets_are_checked_against_the_scores(target, scores, message):
    with pytest.raises(ValueError, match=message):
        row_targets(target, scores, 2)


@pytest.mark.parametrize("like", [None, np.zeros(2), torch.zeros(2, dtype=torch.float16), array_api_strict.zeros(2)])
def test_integers_come_as_an_array_beside_the_inputs(like):
    stacked = stacked_targets([2, 0], like)
    assert type(stacked) is type(np.zeros(1) if like is None else like)
    assert np.asarray(stacked).tolist() == [2, 0]
    assert np.asarray(stacked).dtype == np.int64


@pytest.mark.slow
def test_integers_beside_jax_arrays():
    jnp = pytest.importorskip("jax.numpy")
    stacked = stacked_targets([2, 0], jnp.zeros(2))  # int64 would warn where jax has 32 bits
    assert isinstance(stacked, type(jnp.zeros(2)))
    assert stacked.tolist() == [2, 0]


def test_other_targets_come_as_a_list():
    assert stacked_targets([(0, 1), (1, 2)], torch.zeros(2)) == [(0, 1), (1, 2)]
    assert stacked_targets([None, None], torch.zeros(2)) is None
