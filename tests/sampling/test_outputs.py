"""What an explainer of several inputs may return, and what cannot be read in one way."""

import numpy as np
import pytest

import metfa
from metfa.sampling.outputs import read_output

IMAGE, TABLE, SCORES = np.ones((2, 3, 4)), np.ones((2, 5)), np.ones((2, 7))
TUPLE, DICT = (IMAGE, TABLE), {"image": IMAGE, "table": TABLE}
HEAT = IMAGE[:, 0]


def names_of(output, batch):
    attributions, scores = read_output(output, batch, 2)
    scored = scores is not None and (scores == SCORES).all()
    return list(attributions) if isinstance(attributions, dict) else None, scored


@pytest.mark.parametrize(
    ("output", "batch", "names", "scored"),
    [
        ((IMAGE, TABLE), TUPLE, [0, 1], False),
        ([IMAGE, TABLE], TUPLE, [0, 1], False),
        (((HEAT, TABLE), SCORES), TUPLE, [0, 1], True),
        (({0: HEAT}, SCORES), TUPLE, [0], True),
        ({1: TABLE, 0: HEAT}, TUPLE, [0, 1], False),
        ((HEAT, TABLE, TABLE), (IMAGE, TABLE, TABLE), [0, 1, 2], False),
        ((IMAGE,), (IMAGE,), [0], False),
        ((IMAGE, SCORES), (IMAGE,), None, True),
        (IMAGE, TUPLE, None, False),
        ({"table": TABLE, "image": HEAT}, DICT, ["image", "table"], False),
        (({"table": TABLE}, SCORES), DICT, ["table"], True),
        ({"pixels": HEAT}, {"pixels": IMAGE}, ["pixels"], False),
        ((IMAGE, SCORES), DICT, None, True),
        ((HEAT, SCORES), IMAGE, None, True),
    ],
)
def test_read_in_one_way(output, batch, names, scored):
    assert names_of(output, batch) == (names, scored)


@pytest.mark.parametrize(
    ("output", "batch", "message"),
    [
        ((HEAT, TABLE), TUPLE, r"tuple of shapes \(2, 4\), \(2, 5\) for inputs .*dict .*\{0: ..., 1: ...\}"),
        ((IMAGE, SCORES), TUPLE, r"which are attributions and which scores"),
        ((IMAGE, None), TUPLE, r"\(2, 3, 4\), NoneType"),
        ((IMAGE, TABLE, TABLE), TUPLE, "tuple of shapes"),
        (((IMAGE,), SCORES), TUPLE, r"tuple of 1 attributions for a tuple of 2 inputs.*\{0: ..., 1: ...\}"),
        ((IMAGE, TABLE), DICT, r"\{'image': ..., 'table': ...\}"),  # in which order?
        (((IMAGE, TABLE), SCORES), DICT, "a tuple of 2 attributions for a dict of 2 inputs"),
        ((IMAGE, TABLE, TABLE), DICT, "tuple of shapes"),
        ({"picture": IMAGE}, DICT, "names of the inputs, 'image', 'table', got 'picture'"),
        ({}, DICT, "got none"),
        ({"image": IMAGE}, IMAGE, "a dict of attributions for one input"),
        ({None: IMAGE}, {None: IMAGE}, "texts as keys"),
        ({"image": "map"}, DICT, "the attributions of part 'image'` must be an array"),
    ],
)
def test_refused(output, batch, message):
    with pytest.raises(TypeError, match=message):
        read_output(output, batch, 2)


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        (np.ones((3, 5)), r"got shape \(3, 5\) as the attributions of part 'table' for 2 rows"),
        (np.ones(2), r"got shape \(2,\) as the attributions of part 'table', which leaves no features"),
    ],
)
def test_a_wrong_shape_names_the_part(maps, message):
    with pytest.raises(ValueError, match=message):
        read_output({"image": IMAGE, "table": maps}, DICT, 2)


def test_scores_that_pass_for_the_second_part():
    def explainer(inputs, target):
        return inputs[0], predict(*inputs)  # two classes, as many as columns

    def predict(image, table):
        return table * [2.0, 3.0]

    inputs = np.ones((2, 4)), np.random.default_rng(0).random((2, 2))
    noise = metfa.noise.Uniform(0.1), None
    with pytest.raises(TypeError, match=r"the second is the model's scores, .*\(\{0: ...\}, scores\)"):
        metfa.explain(explainer, inputs, 0, noise=noise, predict=lambda inputs: predict(*inputs), rng=0)
    found = metfa.explain(
        lambda inputs, target: ({0: inputs[0]}, predict(*inputs)), inputs, 0, noise=noise, n_samples=10, rng=0
    )
    assert list(found) == [0]
    assert found.scores.shape == (2, 2)
