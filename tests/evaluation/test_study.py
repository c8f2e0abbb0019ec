"""What a study may say; everything that cannot work shows before anything is loaded."""

import functools
import random

import numpy as np
import pytest
import torch

import metfa
from metfa import Study
from metfa.explainers import RISE, Gradient
from metfa.noise import Gaussian, Uniform


def untouched(rows):
    raise AssertionError("the model was touched")


class Unread:
    """Inputs that nobody may load yet."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        raise AssertionError("an input was loaded")


def study(**changes):
    settings = {
        "model": untouched,
        "inputs": Unread(),
        "explainers": {"gradient": "gradient"},
        "metrics": ["mstd"],
        "sampling": {"u": Uniform(0.1)},
        "outer": {"u": Uniform(0.1)},
    }
    return Study(**{**settings, **changes})


def test_defaults_are_the_papers():
    default = study()
    assert (default.sizes, default.levels, default.n_outer) == ((10,), (0.95,), 10)
    assert default.maps == ("vanilla", "mean", "smoothed")
    assert len(default.data) == 3


def test_nothing_is_loaded_and_nothing_global_changes():
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state(), torch.get_num_threads()
    study(explainers={"rise": functools.partial(RISE, n_masks=10), "slow": "captum:Saliency", "own": "no_such:thing"})
    assert random.getstate() == before[0]
    assert np.random.get_state()[1].tolist() == before[1]
    assert torch.equal(torch.get_rng_state(), before[2])
    assert torch.get_num_threads() == before[3]


@pytest.mark.parametrize(
    ("given", "sizes", "levels"),
    [
        ({"n_samples": 12}, (12,), (0.95,)),
        ({"n_samples": [30, 10, 30]}, (10, 30), (0.95,)),
        ({"n_samples": range(10, 13)}, (10, 11, 12), (0.95,)),
        ({"n_samples": np.int64(10)}, (10,), (0.95,)),
        ({"confidence_level": (0.9, 0.5)}, (10,), (0.5, 0.9)),
    ],
)
def test_one_or_several_sizes_and_levels(given, sizes, levels):
    several = study(**given)
    assert (several.sizes, several.levels) == (sizes, levels)


def test_only_the_vanilla_map_is_made_where_nothing_is_sampled():
    assert study(sampling={}).maps == ("vanilla",)


INNER = metfa.Smoothed(lambda inputs, target: inputs, noise=Uniform(0.1))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model": 3}, TypeError, "`model` must be a name, a LoadedModel or a function, got int"),
        ({"explainers": ["gradient"]}, TypeError, r"`explainers` must be a dict of names, got list: \['gradient'\]"),
        ({"explainers": {}}, ValueError, "`explainers` is empty"),
        ({"explainers": {3: "gradient"}}, TypeError, r"`explainers` must have strings as names, got \[3\]"),
        ({"explainers": {"": "gradient"}}, TypeError, r"`explainers` must have strings as names, got \[''\]"),
        (
            {"explainers": {"g": "gradent"}},
            ValueError,
            r"`explainers\['g'\]`: the method must be one of gradient, .*, got 'gradent', did you mean 'gradient'",
        ),
        ({"explainers": {"g": 3}}, TypeError, r"`explainers\['g'\]` must be .* a function of the model .* got int"),
        ({"explainers": {"g": Gradient(torch.nn.Identity())}}, TypeError, r"`explainers\['g'\]`.*, got Gradient: "),
        (
            {"explainers": {"g": metfa.seeded(lambda inputs, target: np.abs(inputs))}},
            TypeError,
            r"`explainers\['g'\]`.*, got seeded: .*`lambda model",
        ),
        ({"sampling": [Uniform(0.1)]}, TypeError, "`sampling` must be a dict of names, got list"),
        ({"sampling": {"u": None}}, TypeError, r"`sampling\['u'\]` must be a function f\(x, rng\) -> x.*, got None"),
        ({"outer": {"u": 0.1}}, TypeError, r"`outer\['u'\]` must be a function f\(x, rng\) -> x.*, got 0.1"),
        ({"aggregates": "mean"}, TypeError, "`aggregates` must be a sequence of names, got str: 'mean'"),
        ({"aggregates": 3}, TypeError, "`aggregates` must be a sequence of names, got int: 3"),
        ({"aggregates": []}, ValueError, "`aggregates` is empty: give some of vanilla, mean, smoothed"),
        ({"aggregates": ["smothed"]}, ValueError, "got 'smothed', did you mean 'smoothed'"),
        ({"aggregates": ["mean"], "sampling": {}}, ValueError, r"`aggregates` are \['mean'\] without a noise"),
        ({"n_samples": 0}, ValueError, "`n_samples` must be at least 1, got 0"),
        ({"n_samples": 2.5}, TypeError, "`n_samples` must be an integer, got float: 2.5"),
        ({"n_samples": True}, TypeError, "`n_samples` must be an integer, got bool: True"),
        ({"n_samples": "10"}, TypeError, "`n_samples` must be an integer, got str: '10'"),
        ({"n_samples": []}, ValueError, "`n_samples` is empty"),
        ({"n_samples": [10, 3]}, ValueError, "3 samples.*at least 6|at least 6"),
        ({"n_samples": 3, "aggregates": ["vanilla"], "metrics": ["interval_width"]}, ValueError, "at least 6"),
        ({"confidence_level": 1.0}, ValueError, "`confidence_level` must lie strictly between 0 and 1, got 1.0"),
        ({"confidence_level": 0}, ValueError, "`confidence_level` must lie strictly between 0 and 1, got 0"),
        ({"confidence_level": float("nan")}, ValueError, "`confidence_level` must be finite, got nan"),
        ({"confidence_level": "0.9"}, TypeError, "`confidence_level` must be a number, got str: '0.9'"),
        ({"confidence_level": []}, ValueError, "`confidence_level` is empty"),
        ({"n_outer": 0}, ValueError, "`n_outer` must be at least 1, got 0"),
        ({"n_outer": 1}, ValueError, "`n_outer` must be at least 2 for mstd, got 1"),
        ({"seed": -1}, ValueError, "`seed` must be at least 0, got -1"),
        ({"seed": None}, TypeError, "`seed` must be an integer, got NoneType"),
        ({"batch_size": 0}, ValueError, "`batch_size` must be at least 1, got 0"),
        ({"device": None}, TypeError, "`device` must be a string, got NoneType: None"),
        ({"version": 2}, TypeError, "`version` must be a string, got int: 2"),
        ({"limit": 0}, ValueError, "`limit` must be at least 1, got 0"),
        ({"targets": [0, 1]}, ValueError, "`targets` must hold one class index for each of the 3 inputs, got 2"),
        ({"metrics": "mstd"}, TypeError, "`metrics` must be a sequence of names or a dict of names, got str"),
        ({"metrics": 3}, TypeError, "`metrics` must be a sequence of names or a dict of names, got int"),
        ({"metrics": []}, ValueError, "`metrics` is empty: give some of faithfulness, "),
        ({"metrics": [{"mstd": {}}]}, TypeError, "`metrics` must hold names, got dict"),
        ({"metrics": ["msdt"]}, ValueError, "got 'msdt', did you mean 'mstd'"),
        ({"metrics": {"mstd": 5}}, TypeError, r"`metrics\['mstd'\]` must be a dict of settings, got int: 5"),
        ({"metrics": {"mstd": {"k": 5}}}, ValueError, "`metrics`: mstd has no setting 'k'; it has none"),
        ({"metrics": {"faithfulness": {"step": 5}}}, ValueError, "no setting 'step', did you mean 'steps'"),
        ({"metrics": {"faithfulness": {"rng": 5}}}, ValueError, "faithfulness has no setting 'rng'"),
        ({"metrics": {"faithfulness": {"steps": 0}}}, ValueError, r"`metrics\['faithfulness'\]`: `steps` must be .* 0"),
        ({"metrics": {"faithfulness": {"softmax": 1}}}, TypeError, "`softmax` must be True or False, got int: 1"),
        ({"metrics": {"faithfulness": {"baseline": "blck"}}}, ValueError, "`baseline` must be .*'blck', did you mean"),
        ({"metrics": {"region_score": {"baseline": None}}}, TypeError, r"`metrics\['region_score'\]`: `baseline`"),
        ({"metrics": ["top_k_overlap"]}, ValueError, "top_k_overlap needs k, as in {'top_k_overlap': {'k': ...}}"),
        ({"metrics": {"top_k_overlap": {"k": 0}}}, ValueError, r"`metrics\['top_k_overlap'\]`: `k` must be at least 1"),
        ({"metrics": ["infidelity"]}, ValueError, "infidelity needs noise"),
        ({"metrics": {"infidelity": {"noise": "u"}}}, TypeError, r"`noise` must be a function .*, got 'u'"),
        ({"metrics": ["mstd"], "outer": {}}, ValueError, "mstd is measured under noise, and `outer` names none"),
        ({"metrics": ["interval_width"], "sampling": {}}, ValueError, "interval_width .*, and `sampling` names none"),
        ({"metrics": ["robust_faithfulness"], "outer": {"own": None}}, ValueError, "needs a noise in `outer` that"),
        ({"metrics": {"mstd": np.abs}}, ValueError, "metfa uses the name 'mstd' already, give your function another"),
        ({"metrics": {"RI": np.abs}}, ValueError, "metfa uses the name 'RI' already"),
        ({"metrics": ["prediction_agreement"], "aggregates": ["mean"]}, ValueError, "must hold 'vanilla' for"),
    ],
)  # fmt: skip
def test_what_cannot_work_shows_at_once(changes, error, message):
    with pytest.raises(error, match=message):
        study(**changes)


def test_an_explainer_at_hand_is_told_from_one_of_the_model():
    with pytest.raises(TypeError, match=r"`explainers\['s'\]`.*, got Smoothed"):
        study(explainers={"s": metfa.Smoothed(Gradient(torch.nn.Identity()), noise=Gaussian(0.1))})
    from captum.attr import Saliency

    with pytest.raises(TypeError, match=r"`explainers\['c'\]`.*, got method"):
        study(explainers={"c": Saliency(torch.nn.Identity()).attribute})
