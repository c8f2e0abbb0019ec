"""Insertion, deletion and overall: by hand on small inputs, against a slow second implementation on others."""

import numpy as np
import pandas as pd
import pytest
import torch

from metfa import Called, DegenerateAttributionsWarning, ModelOutputWarning, ModelStateWarning
from metfa.metrics import OverallFaithfulness, deletion, insertion, overall

WEIGHTS = np.random.default_rng(1).normal(size=(3 * 9 * 9, 4)) / 4
IMAGES = np.random.default_rng(0).random((3, 3, 9, 9))
MAPS = np.random.default_rng(2).random((3, 9, 9))


def logits(images):
    return images.reshape(len(images), -1) @ WEIGHTS


def probabilities(images):
    weights = np.exp(logits(images))
    return weights / weights.sum(axis=1, keepdims=True)


def upper_left(images):
    """Two classes; the first is as probable as the upper left pixel is bright."""
    return np.stack([images[:, 0, 0, 0], 1 - images[:, 0, 0, 0]], axis=1)


def net(dtype=torch.float64):
    linear = torch.nn.Linear(*WEIGHTS.shape, bias=False, dtype=dtype)
    linear.weight.data.copy_(torch.from_numpy(WEIGHTS.T))
    return torch.nn.Sequential(torch.nn.Flatten(), linear).eval()


def slow_curve(image, scores, target, steps, baseline, kind):
    """One pixel after the other, from the highest score; no two scores equal."""
    values, places = [], np.argsort(-scores.ravel())
    for step in range(steps + 1):
        changed = image.copy() if kind == "deletion" else np.broadcast_to(baseline, image.shape).copy()
        source = np.broadcast_to(baseline, image.shape) if kind == "deletion" else image
        for place in places[: step * scores.size // steps]:
            row, column = divmod(int(place), scores.shape[1])
            changed[:, row, column] = source[:, row, column]
        values.append(probabilities(changed[None])[0, target])
    return np.array(values)


class TestByHand:
    ONE = np.array([[[[0.8, 0.3], [0.2, 0.1]]]])

    def test_insertion(self):
        curve = insertion(Called(upper_left, softmax=False), self.ONE, np.array([[[3, 4], [2, 1]]]), 0)
        np.testing.assert_array_equal(curve.fractions, [0, 0.25, 0.5, 0.75, 1])
        np.testing.assert_array_equal(curve.values, [[0, 0, 0.8, 0.8, 0.8]])
        np.testing.assert_array_equal(curve.clean, [0.8])
        np.testing.assert_allclose(curve.raw, [0.8 * 0.625])
        np.testing.assert_allclose(curve.score, [0.625])
        np.testing.assert_allclose(curve.normalised, [[0, 0, 1, 1, 1]])

    def test_deletion(self):
        curve = deletion(Called(upper_left, softmax=False), self.ONE, np.array([[[3, 4], [2, 1]]]), 0)
        np.testing.assert_array_equal(curve.values, [[0.8, 0.8, 0, 0, 0]])
        np.testing.assert_allclose(curve.score, [0.375])

    def test_overall(self):
        result = overall(Called(upper_left, softmax=False), self.ONE, np.array([[[4, 3], [2, 1]]]), 0)
        np.testing.assert_allclose(result.insertion.score, [0.875])
        np.testing.assert_allclose(result.deletion.score, [0.125])
        np.testing.assert_allclose(result.raw, [0.8 * 0.75])
        np.testing.assert_allclose(result.score, [0.75])

    def test_steps_of_a_size_that_does_not_divide(self):
        """Nine by nine pixels in 5 steps: 16, 32, 48, 64 and 81 of them."""
        image = np.zeros((1, 1, 9, 9))
        image[0, 0, 0, 0] = 1
        scores = np.arange(81.0)[::-1].reshape(1, 9, 9)
        curve = insertion(Called(upper_left, softmax=False), image, scores, 0, steps=5)
        np.testing.assert_array_equal(curve.fractions, np.array([0, 16, 32, 48, 64, 81]) / 81)
        np.testing.assert_array_equal(curve.values, [[0, 1, 1, 1, 1, 1]])
        np.testing.assert_allclose(curve.score, [1 - 8 / 81])

    def test_baselines(self):
        maps = np.array([[[3, 4], [2, 1]]])

        def first(baseline):
            return insertion(Called(upper_left, softmax=False), self.ONE, maps, 0, baseline=baseline).values[0, 0]

        assert first("black") == 0
        assert first("mean") == pytest.approx(0.35)
        assert first(0.5) == 0.5
        assert first([0.25]) == 0.25
        assert first(lambda inputs: inputs / 2) == 0.4
        assert 0.1 < first("blur") < 0.8

    @pytest.mark.parametrize(
        "baseline",
        [
            np.array([0.1, 0.5, 0.9]),
            np.array([0.1, 0.5, 0.9], dtype=np.float32),
            np.reshape([0.1, 0.5, 0.9], (3, 1, 1)),
            np.reshape([0.1, 0.5, 0.9], (1, 3, 1, 1)),
            np.broadcast_to(np.reshape([0.1, 0.5, 0.9], (3, 1, 1)), (3, 9, 9)),
            torch.tensor([0.1, 0.5, 0.9], requires_grad=True),
        ],
        ids=lambda baseline: f"{type(baseline).__name__} {tuple(baseline.shape)}",
    )
    @pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
    def test_arrays_that_fit_one_image(self, baseline, library):
        model = logits if library is np.asarray else net()
        expected = overall(logits, IMAGES, MAPS, 1, baseline=(0.1, 0.5, 0.9))
        result = overall(model, library(IMAGES), MAPS, 1, baseline=baseline)
        np.testing.assert_allclose(result.score, expected.score, rtol=1e-6)

    def test_an_image_of_its_own_as_baseline(self):
        other = np.random.default_rng(5).random((3, 9, 9))
        curve = insertion(logits, IMAGES, MAPS, 2, steps=7, baseline=other)
        expected = [
            slow_curve(image, scores, 2, 7, other, "insertion") for image, scores in zip(IMAGES, MAPS, strict=True)
        ]
        np.testing.assert_allclose(curve.values, expected)

    @pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
    @pytest.mark.parametrize(
        ("baseline", "first"),
        [
            ("black", 0),
            (0.25, 0.25),
            (np.float32(0.25), 0.25),
            (np.array(0.25), 0.25),
            ([5.0, 0.3, 7.0], 0.3),
            (np.array([5.0, 0.3, 7.0]), 0.3),
            (np.array([[5.0, 0.3, 7.0]]), 0.3),
            (torch.tensor([5.0, 0.3, 7.0]), 0.3),
            (pd.Series([5.0, 0.3, 7.0], index=list("abc")), 0.3),
            (np.array([5, 1, 7]), 1),
            (lambda rows: rows / 2, 0.25),
        ],
    )
    def test_baselines_of_a_table(self, baseline, first, library):
        """The probability is in the second column: what stands there while it is hidden is seen."""
        model = lambda rows: rows[:, 1:2] * library(np.array([[1.0, -1]])) + library(np.array([[0.0, 1]]))  # noqa: E731
        rows, maps = library(np.array([[4.0, 0.5, 2.0]])), np.array([[0.1, 0.9, 0.2]])
        curve = insertion(Called(model, softmax=False), rows, maps, 0, baseline=baseline)
        np.testing.assert_allclose(curve.values, [[first, 0.5, 0.5, 0.5]], rtol=1e-6)

    def test_table(self):
        """Features of a table are hidden one by one."""
        model = lambda rows: np.stack([rows[:, 1], 1 - rows[:, 1]], axis=1)  # noqa: E731
        curve = deletion(Called(model, softmax=False), np.array([[5.0, 0.5, 2.0]]), np.array([[0.1, 0.9, 0.2]]), 0)
        np.testing.assert_array_equal(curve.values, [[0.5, 0, 0, 0]])


class TestAgainstASlowImplementation:
    @pytest.mark.parametrize("kind", ["insertion", "deletion"])
    @pytest.mark.parametrize("baseline", [0.0, (0.1, 0.5, 0.9)])
    @pytest.mark.parametrize("steps", [1, 7, 81])
    @pytest.mark.parametrize("library", ["numpy", "torch"])
    def test_curve(self, kind, baseline, steps, library):
        metric = {"insertion": insertion, "deletion": deletion}[kind]
        targets = [0, 3, 1]
        if library == "numpy":
            curve = metric(Called(logits, batch_size=5), IMAGES, MAPS, targets, baseline=baseline, steps=steps)
        else:
            images, maps = torch.from_numpy(IMAGES), torch.from_numpy(MAPS)
            curve = metric(Called(net(), batch_size=5), images, maps, targets, baseline=baseline, steps=steps)
        substitute = np.reshape(baseline, (-1, 1, 1))
        for row, target in enumerate(targets):
            expected = slow_curve(IMAGES[row], MAPS[row], target, steps, substitute, kind)
            np.testing.assert_allclose(curve.values[row], expected, rtol=1e-10)
            area = np.trapezoid(expected, curve.fractions)
            np.testing.assert_allclose(curve.raw[row], area)
            np.testing.assert_allclose(curve.score[row], area / probabilities(IMAGES)[row, target])

    def test_overall_is_insertion_minus_deletion(self):
        both = overall(logits, IMAGES, MAPS)
        for kind, metric in (("insertion", insertion), ("deletion", deletion)):
            alone = metric(logits, IMAGES, MAPS)
            # in other batches, whose products BLAS may round otherwise
            np.testing.assert_allclose(getattr(both, kind).values, alone.values, rtol=1e-12)
        np.testing.assert_allclose(both.score, both.insertion.score - both.deletion.score)

    def test_overall_asks_no_image_twice(self):
        seen = []

        def model(images):
            seen.extend(image.tobytes() for image in images)
            return logits(images)

        overall(model, IMAGES, MAPS, steps=10)
        assert len(seen) == 3 * (1 + 10 + 9) + 4  # whole, insertion from black, deletion; and two of them alone, twice
        assert len(set(seen)) == 3 * (1 + 10 + 9) - 2  # the three black images

    @pytest.mark.parametrize("batch_size", [1, 4, 1000])
    def test_batches_do_not_matter(self, batch_size):
        expected = overall(logits, IMAGES, MAPS)
        result = overall(Called(logits, batch_size=batch_size), IMAGES, MAPS)
        np.testing.assert_allclose(result.score, expected.score, rtol=1e-12)

    def test_rows_do_not_matter(self):
        together = overall(logits, IMAGES, MAPS.round(1))
        for row in range(3):
            alone = overall(logits, IMAGES[row : row + 1], MAPS[row : row + 1].round(1))
            np.testing.assert_allclose(together.score[row], alone.score[0], rtol=1e-12)

    def test_float32_against_float64(self):
        expected = overall(net(), torch.from_numpy(IMAGES), MAPS)
        result = overall(net(torch.float32), torch.from_numpy(IMAGES).float(), torch.from_numpy(MAPS).float())
        np.testing.assert_allclose(result.score, expected.score, atol=1e-5)

    def test_target_is_the_predicted_class(self):
        best = logits(IMAGES).argmax(axis=1)
        np.testing.assert_array_equal(
            insertion(logits, IMAGES, MAPS).values, insertion(logits, IMAGES, MAPS, best).values
        )

    def test_autocast_and_layout(self):
        seen = []
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * 49, 3)).eval()
        model[0].register_forward_pre_hook(lambda _, args: seen.append(args[0].stride(1)))
        model[0].register_forward_hook(lambda _, args, output: seen.append(output.dtype))
        images = torch.from_numpy(IMAGES).float()
        exact = overall(model, images, MAPS, 0)
        called = Called(model, fast="bfloat16", memory_format=torch.channels_last)
        called.scores(images)  # shows how to fold
        seen.clear()
        result = overall(called, images, MAPS, 0)
        assert set(seen) == {1, torch.bfloat16}
        assert 0 < np.abs(result.score - exact.score).max() < 0.05


class TestTies:
    MAPS = np.random.default_rng(3).integers(0, 2, (3, 9, 9))

    def test_equal_scores_go_in_an_order_at_random_not_from_the_corner(self):
        """Half of a bright image is marked: as its pixels come at random, few are in the upper rows at first."""
        image = np.ones((1, 1, 40, 40))
        maps = np.zeros((1, 40, 40))
        maps[:, :, :20] = 1
        rows = lambda images: np.stack([images[:, 0, :4].mean(axis=(1, 2)), images[:, 0, 4:].mean(axis=(1, 2))], 1)  # noqa: E731
        curve = insertion(Called(rows, softmax=False), image, maps, 0, steps=4)
        assert 0.15 < curve.values[0, 1] < 0.35
        assert curve.values[0, 2] == 0.5

    def test_the_seed_decides(self):
        first, again, other = (insertion(logits, IMAGES, self.MAPS, rng=seed).values for seed in (0, 0, 1))
        np.testing.assert_array_equal(first, again)
        assert np.abs(first - other).max() > 0

    def test_all_maps_of_an_input_meet_the_same_order(self):
        """A map and its double have the same ties: the same curves."""
        np.testing.assert_array_equal(
            insertion(logits, IMAGES, self.MAPS).values, insertion(logits, IMAGES, 2 * self.MAPS + 1).values
        )


class TestDegenerate:
    def test_a_constant_map_cannot_win(self):
        maps = MAPS.copy()
        maps[1] = 0.5
        with pytest.warns(DegenerateAttributionsWarning, match="1 of 3 inputs have constant attributions: 1"):
            result = overall(logits, IMAGES, maps)
        assert np.isnan(result.score).tolist() == [False, True, False]
        assert np.isnan(result.raw).tolist() == [False, True, False]
        assert result.degenerate == (None, "constant attributions", None)
        assert np.isfinite(result.insertion.values).all()
        np.testing.assert_array_equal(result.score[[0, 2]], overall(logits, IMAGES, MAPS).score[[0, 2]])

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_only_the_bad_row_has_no_score(self, bad):
        maps = MAPS.copy()
        maps[2, 4, 4] = bad
        with pytest.warns(
            DegenerateAttributionsWarning, match="1 of 3 inputs have attributions with NaN or infinity: 2"
        ):
            curve = insertion(logits, IMAGES, maps)
        assert np.isnan(curve.score).tolist() == [False, False, True]
        assert np.isnan(curve.values[2]).all()

    @pytest.mark.parametrize("clean", [0.0, 1e-30])
    def test_a_clean_score_of_nearly_zero(self, clean):
        image = np.full((1, 1, 2, 2), clean)
        with pytest.warns(ModelOutputWarning, match="a clean score below 1e-06, so no normalised score"):
            curve = insertion(Called(upper_left, softmax=False), image, np.arange(4.0).reshape(1, 2, 2), 0)
        assert np.isnan(curve.score).all()
        assert curve.raw == pytest.approx(0, abs=1e-29)
        assert curve.degenerate == (None,)

    def test_probabilities_taken_for_logits(self):
        with pytest.warns(ModelOutputWarning, match="look like probabilities"):
            insertion(probabilities, IMAGES, MAPS)

    def test_curves_of_other_inputs_make_no_overall(self):
        with pytest.raises(ValueError, match="not of the same inputs"):
            OverallFaithfulness(insertion(logits, IMAGES, MAPS, 0), deletion(logits, IMAGES, MAPS, 1))

    def test_curves_of_two_baselines(self):
        shown, hidden = insertion(logits, IMAGES, MAPS, baseline="blur"), deletion(logits, IMAGES, MAPS)
        np.testing.assert_allclose(OverallFaithfulness(shown, hidden).score, shown.score - hidden.score)


class TestState:
    def test_the_model_is_as_before_also_after_an_exception(self):
        model = net().train()
        for maps in (MAPS, MAPS[:, :5]):
            try:
                with pytest.warns(ModelStateWarning):
                    insertion(model, torch.from_numpy(IMAGES), maps)
            except (ValueError, pytest.fail.Exception):
                assert maps.shape != MAPS.shape
            assert model.training
            assert model[1].weight.requires_grad
            assert model[1].weight.grad is None

    def test_global_generators_are_not_drawn_from(self):
        model = net()
        before = torch.get_rng_state(), np.random.get_state()[1].copy()
        overall(model, torch.from_numpy(IMAGES), MAPS.round(1))
        assert torch.equal(torch.get_rng_state(), before[0])
        np.testing.assert_array_equal(np.random.get_state()[1], before[1])


def untouched(images):
    raise AssertionError("the model was asked")


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "message"),
    [
        ((IMAGES, MAPS[:2]), {}, ValueError, r"`attributions` must have the shape \(3, 9, 9\) .* got \(2, 9, 9\)"),
        (
            (IMAGES, IMAGES),
            {},
            ValueError,
            r"one score for each pixel, \(3, 9, 9\), got \(3, 3, 9, 9\): reduce the chan",
        ),
        ((IMAGES[0], MAPS[0]), {}, ValueError, r"`attributions` must have the shape \(3, 9\)"),
        ((IMAGES[:0], MAPS[:0]), {}, ValueError, r"`inputs` has no rows or no pixels: shape \(0, 3, 9, 9\)"),
        (((IMAGES * 255).astype(np.uint8), MAPS), {}, TypeError, r"got uint8: scale 8-bit images by"),
        ((np.where(IMAGES > 0.99, np.nan, IMAGES), MAPS), {}, ValueError, r"`inputs` must be finite, but input 0"),
        ((IMAGES, MAPS), {"baseline": "blak"}, ValueError, r"got 'blak', did you mean 'black'\?"),
        (
            (IMAGES, MAPS + 1j),
            {},
            TypeError,
            r"`attributions` must be real numbers, which have an order, got complex128",
        ),
        ((IMAGES, torch.from_numpy(MAPS) + 1j), {}, TypeError, r"must be real numbers, .* got torch.complex128"),
        (
            (IMAGES, (MAPS + 1j).tolist()),
            {},
            TypeError,
            r"`attributions` must be an array of real numbers, got list of c",
        ),
        ((IMAGES, MAPS.astype(object)), {}, TypeError, r"`attributions` must hold numbers, got an array of object"),
        ((IMAGES + 1j, MAPS), {}, TypeError, r"`inputs` must be floating point, got complex128"),
        ((IMAGES, MAPS), {"baseline": (0, 1)}, ValueError, r"one for each of the 3 channels, .* got 2 numbers"),
        ((IMAGES, MAPS), {"baseline": np.zeros(9)}, ValueError, r"fits one input, \(3, 9, 9\), got 9 numbers;"),
        ((IMAGES, MAPS), {"baseline": MAPS[0]}, ValueError, r"fits one input, \(3, 9, 9\), got shape \(9, 9\);"),
        (
            (IMAGES, MAPS),
            {"baseline": IMAGES},
            ValueError,
            r"got shape \(3, 3, 9, 9\); .* give a function of the inputs",
        ),
        ((MAPS[0], MAPS[0]), {"baseline": [1, 2]}, ValueError, r"one for each of the 9 columns, .* got 2 numbers"),
        ((MAPS[0], MAPS[0]), {"baseline": "mean"}, ValueError, r"of a table: column, such as `table\.mean\(axis=0\)`"),
        ((IMAGES, MAPS), {"baseline": []}, ValueError, r"one for each of the 3 channels, .* got 0 numbers"),
        ((IMAGES, MAPS), {"baseline": None}, TypeError, r"`baseline` must be an array of real numbers, got NoneType"),
        ((IMAGES, MAPS), {"baseline": True}, TypeError, r"`baseline` must be real numbers, got bool"),
        ((IMAGES, MAPS), {"baseline": IMAGES[0] + 1j}, TypeError, r"`baseline` must be real numbers, got complex128$"),
        ((IMAGES, MAPS), {"baseline": np.full(3, np.nan)}, ValueError, r"must be finite numbers, got NaN or infinity"),
        ((IMAGES, MAPS), {"baseline": lambda x: x[0]}, ValueError, r"return inputs of the shape it is given"),
        (
            (IMAGES, MAPS),
            {"baseline": lambda x: np.where(x == x[1], np.inf, x)},
            ValueError,
            r"`baseline` must return finite numbers, but made NaN or infinity of input 1",
        ),
        (
            (IMAGES[:, :, None, None], MAPS[:, None, None]),
            {"baseline": "mean"},
            ValueError,
            r"`baseline='mean'` is made for series .*, images .* or volumes",
        ),
        ((IMAGES, MAPS), {"steps": 0}, ValueError, r"`steps` must be at least 1, got 0"),
        ((IMAGES, MAPS), {"rng": -1}, ValueError, r"`rng` must not be negative, got -1"),
    ],
)
def test_bad_arguments_are_refused_before_the_model_is_asked(arguments, settings, error, message):
    with pytest.raises(error, match=message):
        insertion(untouched, *arguments, **settings)


@pytest.mark.filterwarnings("ignore:the model's scores all lie between 0 and 1")  # small logits, not sigmoids
@pytest.mark.parametrize("baseline", ["mean", "blur"])
def test_a_series_has_the_baselines_of_a_picture_of_one_row(baseline):
    rows, maps = IMAGES[:, :, 0], MAPS[:, 0]

    def of_series(series):
        return series.reshape(len(series), -1)[:, :4]

    curve = insertion(of_series, rows, maps, 0, baseline=baseline)
    flat = insertion(lambda x: of_series(x[:, :, 0]), rows[:, :, None], maps[:, None], 0, baseline=baseline)
    np.testing.assert_allclose(curve.score, flat.score)


def test_bad_targets():
    with pytest.raises(ValueError, match=r"got 2 entries"):
        insertion(logits, IMAGES, MAPS, [0, 1])
    with pytest.raises(ValueError, match=r"`target` must lie in 0\.\.3"):
        insertion(logits, IMAGES, MAPS, 4)
    with pytest.raises(ValueError, match=r"`target` must lie in 0\.\.3 .* got 4 for input 2"):
        overall(Called(logits, batch_size=1), IMAGES, MAPS, [0, 1, 4])
    with pytest.raises(
        TypeError, match=r"class indices, or one tuple of indices for each row, got ndarray for input 0"
    ):
        insertion(logits, IMAGES, MAPS, list(MAPS))


def test_scores_that_are_not_finite():
    with pytest.raises(ValueError, match="scores are NaN for row 0"):
        insertion(lambda images: logits(images) * np.nan, IMAGES, MAPS)
    with pytest.raises(ValueError, match="scores are NaN for row"):
        insertion(lambda images: np.where(images[:, :1, 0, 0] == 0, np.nan, logits(images)), IMAGES, MAPS, 0)


@pytest.mark.parametrize("batch_size", [1, 2, None])
def test_scores_that_are_not_finite_name_the_input(batch_size):
    """Whatever else is in the batch: the third input, as it is or when its best pixels are hidden."""
    bright = IMAGES.copy()
    bright[2, 0, 8, 8] = 5
    maps = MAPS.copy()
    maps[2, 8, 8] = -1

    def model(images, hidden, bad):
        spoilt = (images[:, 0, 8, 8] == 5) & (not hidden or (images == 0).any(axis=(1, 2, 3)))
        return np.where(spoilt[:, None], bad, logits(images))

    for bad, message in (
        (np.nan, "asked about input 2: the model's scores are NaN"),
        (np.inf, "of input 2 are not fin"),
    ):
        with pytest.raises(ValueError, match=message):
            overall(Called(lambda images, bad=bad: model(images, False, bad), batch_size=batch_size), bright, maps, 0)
    for bad, message in (
        (np.nan, "asked about a changed copy of input 2: the "),
        (np.inf, "changed copy of input 2 are"),
    ):
        with pytest.raises(ValueError, match=message):
            overall(
                Called(lambda images, bad=bad: model(images, True, bad), softmax=False, batch_size=batch_size),
                bright,
                maps,
                0,
            )


def test_errors_of_the_model_about_one_input_name_it():
    def model(images):
        if (images.max(axis=(1, 2, 3)) > 1).any():
            raise ValueError("too bright")
        return logits(images)

    with pytest.raises(ValueError, match="asked about input 1: too bright"):
        insertion(model, np.where(np.arange(3)[:, None, None, None] == 1, 2, IMAGES), MAPS, 0)
    with pytest.raises(ValueError, match=r"^too bright"):  # about all of them
        insertion(model, IMAGES + 1, MAPS, 0)


def test_a_graph_is_let_go():
    """Neither torch's own warnings nor gradients come of inputs, maps or baselines that have a graph."""
    images, maps = torch.from_numpy(IMAGES).requires_grad_(), torch.from_numpy(MAPS).requires_grad_()
    expected = overall(logits, IMAGES, MAPS, baseline="mean")
    torch.set_warn_always(True)
    try:
        result = overall(net(), images * 1, maps * 1, baseline="mean")
        overall(net(), images, maps, baseline=lambda images: images * torch.ones(1, requires_grad=True))
    finally:
        torch.set_warn_always(False)
    np.testing.assert_allclose(result.score, expected.score)
    assert images.grad is maps.grad is None
