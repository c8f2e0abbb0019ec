"""What classes are called, with names, without, and with too few."""

import numpy as np
import pytest

from metfa._base.class_names import class_name, class_with_probability


@pytest.mark.parametrize(
    ("index", "class_names", "name"),
    [(1, ("cat", "dog"), "dog"), (1, None, "class 1"), (2, ("cat", "dog"), "class 2"), (0, (7,), "7")],
)
def test_a_name_or_else_the_index(index, class_names, name):
    assert class_name(index, class_names) == name
    probabilities = np.full(3, 0.126)
    probabilities[index] = 0.748
    assert class_with_probability(index, class_names, probabilities) == f"{name} (0.75)"


@pytest.mark.parametrize(
    ("probability", "shown"), [(0.0, "0.00"), (1e-4, "< 0.01"), (0.0051, "0.01"), (0.996, "> 0.99"), (1.0, "1.00")]
)
def test_what_is_not_0_or_1_is_not_written_so(probability, shown):
    assert class_with_probability(0, ["megalith"], np.array([probability])) == f"megalith ({shown})"
