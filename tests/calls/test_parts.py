"""Models of several inputs: gradients of each against autograd by hand, and what is said of parts that do not fit."""

import numpy as np
import pytest
import torch
from captum.attr import Saliency

import metfa
from metfa.explainers import IGOS, LIME, LRP, RISE, Gradient, ScoreCAM, SmoothGrad, from_captum, heatmap


class Both(torch.nn.Module):
    """An image and a table; a mask says which columns count."""

    def __init__(self):
        super().__init__()
        self.look = torch.nn.Conv2d(3, 2, 3)
        self.decide = torch.nn.Linear(2 + 4, 3)

    def forward(self, image, table, mask=None):
        table = table if mask is None else table * mask
        return self.decide(torch.cat([self.look(image).tanh().mean((2, 3)), table.sin()], dim=1))


torch.manual_seed(0)
MODEL = Both().eval().double()
IMAGE, TABLE = torch.rand(3, 3, 6, 5, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
MASK = torch.tensor([[1, 1, 0, 1]]).repeat(3, 1)
NOISE = metfa.noise.Uniform(0.05), metfa.noise.Gaussian(0.1)
AXES = (1, None)


def by_hand(row, target):
    image, table = (part[row : row + 1].clone().requires_grad_() for part in (IMAGE, TABLE))
    MODEL(image, table)[0, target].backward()
    MODEL.zero_grad()
    return image.grad[0].abs().amax(0), table.grad[0].abs()


@pytest.mark.parametrize("form", ["tuple", "dict"])
def test_the_gradient_of_each_part_is_that_by_hand(form):
    inputs, axes = (IMAGE, TABLE), AXES
    if form == "dict":  # by name, in any order
        inputs, axes = {"table": TABLE, "image": IMAGE}, {"image": 1, "table": None}
    maps, scores = Gradient(MODEL, channel_axis=axes, scale=False)(inputs, [0, 1, 2])
    assert torch.equal(scores, MODEL(IMAGE, TABLE))
    assert isinstance(maps, tuple if form == "tuple" else dict)
    image, table = maps if form == "tuple" else (maps["image"], maps["table"])
    for row in range(3):
        for found, expected in zip((image[row], table[row]), by_hand(row, row), strict=True):
            torch.testing.assert_close(found, expected)


def test_each_part_is_scaled_by_itself():
    (image, table), _ = Gradient(MODEL, channel_axis=AXES)((IMAGE, 100 * TABLE), 1)
    for part in (image, table):
        assert (part.amin(tuple(range(1, part.ndim))) == 0).all()
        assert (part.amax(tuple(range(1, part.ndim))) == 1).all()


def test_parts_of_integers_and_booleans_get_no_map():
    explainer = Gradient(MODEL, channel_axis=AXES, scale=False)
    for mask in (MASK, MASK.bool()):
        maps, scores = explainer((IMAGE, TABLE, mask), 1)
        assert list(maps) == [0, 1]
        assert torch.equal(scores, MODEL(IMAGE, TABLE, mask))
        assert (maps[1][:, 2] == 0).all()
    with pytest.raises(TypeError, match=r"no part of `inputs` is floating point, .*`inputs\[1\]` \(3, 4\) of int64"):
        explainer((MASK, MASK), 1)


def test_maps_are_differentiable_in_the_parts_that_ask_for_it():
    table = TABLE.clone().requires_grad_()
    (_, map_of_table), _ = Gradient(MODEL, channel_axis=AXES, scale=False)((IMAGE, table), 1)
    (second,) = torch.autograd.grad(map_of_table.sum(), table)
    assert second.abs().sum() > 0
    assert not IMAGE.requires_grad


def test_smooth_grad_of_parts():
    def generators():
        return [np.random.default_rng(row) for row in range(3)]

    still, _ = SmoothGrad(MODEL, channel_axis=AXES, std=(0.0, 0.0))((IMAGE, TABLE, MASK), 1)
    for name, part in Gradient(MODEL, channel_axis=AXES)((IMAGE, TABLE, MASK), 1)[0].items():
        torch.testing.assert_close(still[name], part)
    explainer = SmoothGrad(MODEL, channel_axis=AXES, std={0: 0.1, 1: 2.0}, n_perturbations=7, scale=False)
    (_, table), _ = explainer((IMAGE, TABLE), 1, rngs=generators())
    for row, rng in enumerate(generators()):
        total = 0
        for seed in rng.integers(0, 2**63, 7):
            draw = np.random.default_rng(seed)
            noisy = [
                part[row : row + 1] + torch.from_numpy(metfa.noise.Gaussian(std)(np.zeros(part.shape[1:], "f4"), draw))
                for part, std in ((IMAGE, 0.1), (TABLE, 2.0))
            ]
            leaf = noisy[1].requires_grad_()
            total = total + torch.autograd.grad(MODEL(noisy[0], leaf)[0, 1], leaf)[0][0]
        torch.testing.assert_close(table[row], (total / 7).abs())
    with pytest.raises(ValueError, match=r"`std` must have an entry for each .*got 0.15: .*`std=\(0.15, 2.0\)`"):
        SmoothGrad(MODEL, channel_axis=AXES)((IMAGE, TABLE), 1)


def test_explained_with_error_bars_as_by_captum():
    given = {"noise": NOISE, "n_samples": 10, "rng": 0}
    ours = metfa.explain(Gradient(MODEL, channel_axis=AXES), (IMAGE, TABLE), **given)
    assert isinstance(ours, metfa.AttributionParts)
    captums = metfa.explain(from_captum(MODEL, "Saliency", channel_axis=AXES), (IMAGE, TABLE), **given)
    assert ours.target == captums.target == tuple(MODEL(IMAGE, TABLE).argmax(1).tolist())
    for name, part in ours.items():
        np.testing.assert_allclose(part.values, captums[name].values, atol=1e-6)
    assert ours.flip_rate.shape == (3,)
    names = metfa.explain(
        Gradient(metfa.Called(MODEL, batch_size=2), channel_axis={"image": 1, "table": None}),
        {"image": IMAGE, "table": TABLE}, noise={"image": NOISE[0], "table": None}, n_samples=3, rng=0,
    )  # fmt: skip
    assert list(names) == ["image", "table"]
    assert names.target == ours.target


def test_a_model_that_mixes_rows_is_asked_about_one_at_a_time():
    def model(image, table):
        return torch.stack([image.mean((1, 2, 3)) + table[:, 0] * table.mean(), table[:, 1]], dim=1)

    with pytest.warns(metfa.RowDependenceWarning):
        maps, _ = Gradient(model, channel_axis=AXES, scale=False)((IMAGE, TABLE), [0, 0, 1])
    alone, _ = Gradient(model, channel_axis=AXES, scale=False)((IMAGE[1:2], TABLE[1:2]), 0)
    torch.testing.assert_close(maps[1][1:2], alone[1])


def test_a_model_of_one_dict():
    def model(batch):
        return MODEL(batch["image"], batch["table"])

    found, _ = Gradient(model, channel_axis={"image": 1, "table": None})({"image": IMAGE, "table": TABLE}, 1)
    expected, _ = Gradient(MODEL, channel_axis=AXES)((IMAGE, TABLE), 1)
    assert torch.equal(found["table"], expected[1])


class TestBadInput:
    @pytest.mark.parametrize(
        "explainer",
        [Gradient(MODEL, channel_axis=(None, 1)), Saliency(MODEL).attribute, heatmap(Saliency(MODEL).attribute)],
    )
    def test_parts_in_the_wrong_order(self, explainer):
        said = (
            r"the model fails on the parts `inputs\[0\]` \(3, 4\) of float64, `inputs\[1\]` \(3, 3, 6, 5\) of float64, "
            r"given in this order; it takes \(image, table, mask\): give the parts in the order of its arguments; "
            "it says: "
        )
        with pytest.raises(ValueError, match=said):
            metfa.explain(explainer, (TABLE, IMAGE), noise=(None, NOISE[0]), n_samples=3, rng=0)

    def test_wrong_names(self):
        axes = {"picture": 1, "table": None}
        with pytest.raises(
            ValueError, match=r"`inputs\['picture'\]` \(3, 3, 6, 5\) .* it takes \(image, table, mask\)"
        ):
            Gradient(MODEL, channel_axis=axes)({"picture": IMAGE, "table": TABLE}, 1)

    @pytest.mark.parametrize("axes", [1, None, (1,), {"image": 1, "table": None}])
    def test_no_axis_for_a_part(self, axes):
        with pytest.raises(ValueError, match=r"`channel_axis` must have an entry for each .*has none for part [01],"):
            Gradient(MODEL, channel_axis=axes)((IMAGE, TABLE), 1)

    def test_axes_of_several_inputs_for_one(self):
        for explainer in (
            Gradient(MODEL, channel_axis=AXES),
            heatmap(lambda inputs, target: inputs, channel_axis=AXES),
        ):
            with pytest.raises(ValueError, match=r"`inputs` is one array, got \(1, None\)"):
                explainer(IMAGE, target=1)

    def test_a_part_without_a_gradient_and_the_advice(self):
        mask = MASK.double()

        def model(image, table, mask):
            return MODEL(image, table, mask > 0.5)

        explainer = Gradient(model, channel_axis=(1, None, None))
        with pytest.raises(ValueError, match=r"have no gradient by `inputs\[2\]`: .*`inputs\[2\].bool\(\)`"):
            explainer((IMAGE, TABLE, mask), 1)
        assert list(explainer((IMAGE, TABLE, mask.bool()), 1)[0]) == [0, 1]
        with pytest.raises(ValueError, match="have no gradient by its input"):
            Gradient(lambda image, table: MODEL(image, table).detach(), channel_axis=AXES)((IMAGE, TABLE), 1)

    @pytest.mark.parametrize(
        ("inputs", "error", "message"),
        [
            ((IMAGE.numpy(), TABLE), TypeError, r"`inputs\[0\]` must be a torch.Tensor, got ndarray"),
            ((IMAGE, TABLE / 0), ValueError, r"`inputs\[1\]` must be finite, but input 0"),
            ((IMAGE, TABLE[:2]), ValueError, r"one batch axis in common, got \{0: 3, 1: 2\} rows"),
            ((torch.rand(3, 9, 9, 3), TABLE), ValueError, r"write `inputs\[0\].permute\(0, 3, 1, 2\)`"),
            ((), ValueError, "is an empty tuple"),
        ],
    )
    def test_parts_that_are_no_inputs(self, inputs, error, message):
        with pytest.raises(error, match=message):
            Gradient(MODEL, channel_axis=AXES)(inputs, 1)

    @pytest.mark.parametrize("kind", [RISE, LIME, IGOS, ScoreCAM, LRP])
    def test_others_take_one(self, kind):
        with pytest.raises(
            TypeError, match=r"must be one array .*, got a tuple of 2: .*`Gradient\(model, channel_axis="
        ):
            kind(MODEL)((IMAGE, TABLE), 1)

    def test_a_list_is_no_tuple(self):
        explainer = Gradient(MODEL, channel_axis=AXES)
        with pytest.raises(TypeError, match=r"`inputs` is a list, a batch of objects: .*write `tuple\(inputs\)`"):
            metfa.explain(explainer, [IMAGE, TABLE], noise=NOISE, n_samples=3)

    def test_names_of_a_part_that_do_not_fit(self):
        run = metfa.Run(feature_names={1: ["a", "b"]})
        with pytest.raises(ValueError, match=r"`feature_names\[1\]` has 2 names, but an attribution has 4 features"):
            metfa.explain(Gradient(MODEL, channel_axis=AXES), (IMAGE, TABLE), noise=NOISE, n_samples=1, rng=0, run=run)
