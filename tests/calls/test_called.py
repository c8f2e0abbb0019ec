"""`Called`, and what all explainers have of it: a model may work in place, must give scores, must not mix rows."""

import dataclasses
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import metfa
from metfa import DegenerateAttributionsWarning, ModelStateWarning, RowDependenceWarning, metrics
from metfa.explainers import CAM, IGOS, LIME, LRP, MASK, RISE, Gradient, ScoreCAM, SmoothGrad, from_captum, heatmap

NOISE = metfa.noise.Uniform(0.1, bounds=(0, 1))
SQUARES = np.arange(12)[:, None] // 4 * 4 + np.arange(16)[None] // 4
MAKERS = {
    "RISE": lambda model: RISE(model, n_masks=20, rng=0),
    "LIME": lambda model: LIME(model, n_perturbations=20, segmentation=SQUARES, n_segments_shown=None, rng=0),
    "MASK": lambda model: MASK(model, n_iterations=4, grid=4, rng=0),
    "IGOS": lambda model: IGOS(model, n_iterations=2, n_steps=3, grid=4, rng=0),
    "ScoreCAM": ScoreCAM,
    "CAM": CAM,
    "SmoothGrad": lambda model: SmoothGrad(model, n_perturbations=3, std=0.1, rng=0),
}


class Sharp(nn.Linear):
    """Scores that differ much."""

    def forward(self, x):
        return 30 * super().forward(x)


def net(seed=0, **norm):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8, **norm),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            Sharp(8, 5),
        ).eval()


class Around(nn.Module):
    """A network behind a change of its inputs or scores."""

    def __init__(self, before=lambda x: x, after=lambda scores: scores):
        super().__init__()
        self.network, self.before, self.after = net(), before, after

    def forward(self, x):
        return self.after(self.network(self.before(x)))


IMAGES = torch.rand(2, 3, 12, 16, generator=torch.Generator().manual_seed(0))


class TestCalled:
    LOGITS = net()(IMAGES).detach()

    @pytest.mark.parametrize("batch_size", [None, 1, 7])
    def test_scores_and_probabilities(self, batch_size):
        called = metfa.Called(net(), batch_size=batch_size)
        torch.testing.assert_close(called.scores(IMAGES), self.LOGITS)
        torch.testing.assert_close(called.probabilities(IMAGES), self.LOGITS.softmax(1))
        as_they_are = dataclasses.replace(called, softmax=False)
        torch.testing.assert_close(as_they_are.probabilities(IMAGES), self.LOGITS)
        torch.testing.assert_close(called(IMAGES).detach(), self.LOGITS)

    def test_probabilities_of_targets_and_of_changed_copies(self):
        called, expected = metfa.Called(net(), batch_size=3), self.LOGITS.softmax(1).numpy()
        targets, clean = called.target_probabilities(IMAGES, None)
        assert targets == self.LOGITS.argmax(1).tolist()
        np.testing.assert_allclose(clean, expected.max(axis=1), rtol=1e-6)
        rows = [1, 0, 1, 1, 0]
        found = called.copies_probabilities(rows, IMAGES, lambda start, stop: IMAGES[rows[start:stop]], targets)
        np.testing.assert_allclose(found, clean[rows], rtol=1e-6)

    def test_gradient(self):
        leaf = IMAGES.clone().requires_grad_()
        (expected,) = torch.autograd.grad(net()(leaf)[:, 2].sum(), leaf)
        found, scores = metfa.Called(net()).gradient(IMAGES, 2)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(scores, self.LOGITS)
        assert not found.requires_grad
        assert metfa.Called(net()).gradient(leaf, 2)[0].requires_grad

    def test_the_model_is_asked_in_evaluation_mode_and_put_back(self):
        model = net().train()
        with pytest.warns(ModelStateWarning, match="in training mode"):
            torch.testing.assert_close(metfa.Called(model).scores(IMAGES), self.LOGITS)
        assert model.training

    def test_a_plain_model_means_the_usual_settings(self):
        model = net()
        assert Gradient(model) == Gradient(metfa.Called(model))
        assert metfa.Called.of(model) == metfa.Called(model)
        called = metfa.Called(model, softmax=False)
        assert metfa.Called.of(called) is called

    @pytest.mark.parametrize("name", MAKERS)
    def test_explainers_hold_it(self, name):
        called = metfa.Called(net(), batch_size=2, fast="bfloat16", memory_format=torch.channels_last)
        explainer = MAKERS[name](called)
        assert explainer.called is called
        assert explainer.model is called.model
        assert dataclasses.replace(explainer, scale=False).called is called
        again = pickle.loads(pickle.dumps(explainer))
        assert dataclasses.replace(again.called, model=called.model) == called

    def test_a_metric_of_ours_or_of_the_users_takes_it(self):
        called, maps = metfa.Called(net(), softmax=False), np.random.default_rng(0).random((2, 12, 16))

        def best(model, inputs, attributions, target):
            return model(inputs).detach().amax(1)

        assert np.array_equal(metrics.robust(best, noise=NOISE, rng=0)(called, IMAGES, maps).raws.shape, (10, 2))
        with pytest.warns(metfa.ModelOutputWarning, match="a clean score below"):  # a logit, and a negative one
            curve = metrics.insertion(called, IMAGES, maps, 1, steps=4)
        np.testing.assert_allclose(curve.clean, self.LOGITS[:, 1], rtol=1e-6)

    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (lambda: metfa.Called(3), TypeError, "`model` must be a module or a function inputs -> scores, got int"),
            (lambda: metfa.Called(metfa.Called(net())), TypeError, r"got a Called: .* `dataclasses.replace\(called"),
            (lambda: metfa.Called(net(), batch_size=0), ValueError, "`batch_size` must be at least 1, got 0"),
            (lambda: metfa.Called(net(), softmax="no"), TypeError, "`softmax` must be True or False, got str: 'no'"),
            (
                lambda: metfa.Called(net(), autocast=torch.bfloat16),
                TypeError,
                "Called has no argument `autocast`, here it is 'fast'",
            ),
            (
                lambda: metfa.Called(lambda x: x[:, 0, 0, 0]).probabilities(IMAGES),
                ValueError,
                r"no softmax over classes",
            ),
        ],
    )
    def test_what_is_wrong(self, make, error, message):
        with pytest.raises(error, match=message):
            make()


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
@pytest.mark.parametrize("name", [name for name in MAKERS if name != "SmoothGrad"])
def test_a_model_that_works_in_place_gets_copies(name):
    given = IMAGES.clone()
    in_place = Around(before=lambda x: x.sub_(0.5).div_(0.25)).eval()
    pure = Around(before=lambda x: (x - 0.5) / 0.25).eval()
    maps, scores = MAKERS[name](in_place)(given, target=1)
    expected = MAKERS[name](pure)(IMAGES, target=1)
    assert torch.equal(given, IMAGES)
    torch.testing.assert_close(maps, expected[0])
    torch.testing.assert_close(scores, expected[1])


def test_a_metric_s_model_that_works_in_place_gets_copies():
    maps = np.random.default_rng(0).random((2, 12, 16))
    given = IMAGES.clone()
    in_place = Around(before=lambda x: x.sub_(0.5).div_(0.25)).eval()
    pure = Around(before=lambda x: (x - 0.5) / 0.25).eval()
    result = metrics.overall(in_place, given, maps, 1)
    assert torch.equal(given, IMAGES)
    np.testing.assert_allclose(result.score, metrics.overall(pure, IMAGES, maps, 1).score, rtol=1e-6)


@pytest.mark.parametrize(
    ("after", "error", "message"),
    [
        (
            lambda s: (s, s),
            TypeError,
            r"must return an array of scores .* got tuple of 2: write `metfa\.models\.Selected\(model, 0\)`",
        ),
        (
            lambda s: {"logits": s},
            TypeError,
            r"dict with 'logits': write `metfa.models.Selected\(model, 'logits'\)`",
        ),
        (
            lambda s: {"scores": s, "loss": 0},
            TypeError,
            r"dict with 'scores', 'loss': .*Selected\(model, 'scores'\)`",
        ),
        (lambda s: s.sum(), ValueError, r"one row of scores an input, got shape \(\) for"),
        (lambda s: s[:0], ValueError, r"got shape \(0, 5\) for"),
        (lambda s: s * torch.nan, ValueError, "the model's scores are NaN for row 0"),
        (lambda s: s.argmax(1), TypeError, "got one torch.int64 a row, like class labels: .*`predict_proba`"),
        (lambda s: s + 1j * s, TypeError, r"must return real scores, got torch\.complex\d+: return their sizes"),
    ],
)
@pytest.mark.parametrize("name", [*MAKERS, "Gradient", "LRP"])
def test_what_are_no_scores(name, after, error, message):
    if name == "LRP" and error is ValueError and "NaN" in message:
        pytest.skip("the change of the scores is a step without a rule")
    maker = {**MAKERS, "Gradient": Gradient, "LRP": LRP}[name]
    with pytest.raises(error, match=message):
        maker(Around(after=after).eval())(IMAGES, target=1)


def test_labels_are_no_scores_without_a_softmax_either():
    called = metfa.Called(Around(after=lambda s: s.argmax(1)).eval(), softmax=False)
    with pytest.raises(TypeError, match="like class labels"):
        metfa.explainers.RISE(called)(IMAGES, target=0)
    with pytest.raises(TypeError, match="like class labels"):
        metfa.metrics.insertion(called, IMAGES, IMAGES[:, 0], 0)
    with pytest.raises(TypeError, match="like class labels"):
        called.probabilities(IMAGES)


@pytest.mark.parametrize("after", [lambda s: s.detach(), lambda s: (s == s.amax(1, keepdim=True)).to(s.dtype)])
@pytest.mark.filterwarnings("ignore::metfa.ModelOutputWarning")
@pytest.mark.parametrize("name", ["Gradient", "SmoothGrad", "MASK", "IGOS"])
def test_a_model_that_cuts_the_gradient_is_refused(name, after):
    """Penalties have a gradient of their own, by which an optimised mask would say that nothing matters."""
    maker = {**MAKERS, "Gradient": Gradient}[name]
    with pytest.raises(ValueError, match="no gradient by its input: it detaches them"):
        maker(Around(after=after).eval())(IMAGES, target=1)


@pytest.mark.parametrize("maker", [Gradient, metfa.explainers.SmoothGrad])
def test_a_model_that_answers_in_numpy_has_no_gradient(maker):
    network = Around().eval()
    with pytest.raises(ValueError, match="no gradient by its input"):
        maker(lambda images: network(images).detach().numpy())(IMAGES, target=1)


@pytest.mark.parametrize("name", [*MAKERS, "Gradient"])
def test_weights_of_another_precision(name):
    maker = {**MAKERS, "Gradient": Gradient}[name]
    with pytest.raises(
        TypeError, match=r"float32, but the model's weights torch.float64.*`inputs.to\(torch.float64\)`"
    ):
        maker(net().double())(IMAGES, target=1)


def test_other_errors_of_a_model_stay_what_they_are():
    def broken(images):
        raise RuntimeError("the licence has run out")

    with pytest.raises(RuntimeError, match=r"^the licence has run out$"):
        Gradient(broken)(IMAGES, target=1)


def test_a_module_may_say_that_it_mixes_rows():
    class Of(Around):
        rows_independent = False

    assert Gradient(Around().eval()).rows_independent
    assert not Gradient(Of().eval()).rows_independent


def test_numpy_into_a_torch_model():
    with pytest.raises(TypeError, match=r"must be a torch\.Tensor for a torch model, got ndarray: .*from_numpy"):
        RISE(net(), n_masks=2)(IMAGES.numpy(), target=1)
    with pytest.raises(TypeError, match=r"must be a torch\.Tensor for a torch model, got ndarray: .*`predict=`"):
        metfa.explain(RISE(net(), n_masks=2), IMAGES.numpy(), 1, noise=NOISE, n_samples=2)


@pytest.mark.parametrize("make", [CAM, LRP, Gradient, ScoreCAM])
def test_a_model_that_normalises_by_the_batch_is_asked_one_row_at_a_time(make):
    with pytest.warns(RowDependenceWarning, match="normalises each batch by its own mean"):
        explainer = make(net(track_running_stats=False))
    settings = {"noise": NOISE, "n_samples": 3, "rng": 0}
    together = metfa.explain(explainer, IMAGES, 1, batch_size=6, **settings)
    alone = metfa.explain(explainer, IMAGES, 1, batch_size=1, **settings)
    np.testing.assert_array_equal(together.values, alone.values)


def test_rounding_is_no_map():
    """I-GOS cannot move the mask of this network: what little it moves is rounding, and not scaled to [0, 1]."""
    with pytest.warns(
        DegenerateAttributionsWarning,
        match=r"masks of 2 of 2 rows of one call \(inputs, or noisy copies of them\) are the same everywhere",
    ):
        maps, _ = IGOS(Around(after=lambda scores: scores / 3000).eval())(IMAGES, target=1)
    assert not maps.any()


@pytest.mark.parametrize("composite", ["guided_backprop", "deconvnet", "beta_smooth"])
def test_composites_without_a_rule_for_batch_normalisation(composite):
    maps, _ = LRP(net(), composite=composite)(IMAGES, target=1)
    assert maps.shape == (2, 12, 16)
    plain, _ = LRP(metfa.models.fold_batch_norm(net(), IMAGES), composite=composite)(IMAGES, target=1)
    torch.testing.assert_close(maps, plain, rtol=1e-3, atol=1e-4)


def test_heatmap_of_a_heat_map():
    with pytest.raises(ValueError, match=r"maps \(2, 12, 16\) without channels .* use them as they are"):
        heatmap(Gradient(net()))(IMAGES, target=1)


class TestCaptum:
    @pytest.mark.parametrize(
        ("target", "message"),
        [(-1, "must not be negative, got -1"), (5, r"must lie in 0\.\.4"), ([1], "got 1 entries")],
    )
    def test_targets_are_checked(self, target, message):
        with pytest.raises(ValueError, match=message):
            from_captum(net(), "Saliency")(IMAGES, target=target)

    @pytest.mark.parametrize("name", ["GuidedBackprop", "Deconvolution"])
    def test_methods_that_change_relu_alone(self, name):
        network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU6(), nn.Flatten(), nn.LazyLinear(5))
        network(IMAGES)
        with pytest.warns(ModelStateWarning, match=f"captum's {name} changes the gradient of torch.nn.ReLU alone"):
            explainer = from_captum(network.eval(), name)
        torch.testing.assert_close(explainer(IMAGES, target=1), from_captum(network, "Saliency")(IMAGES, target=1))

    @pytest.mark.parametrize("n_steps", [0, "abc"])
    def test_settings_that_it_cannot_take(self, n_steps):
        with pytest.raises(ValueError, match=rf"IntegratedGradients\(n_steps={n_steps!r}\) cannot explain this"):
            from_captum(net(), "IntegratedGradients", n_steps=n_steps)(IMAGES, target=1)


@pytest.mark.slow
def test_python_dash_m():
    done = subprocess.run([sys.executable, "-m", "metfa", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "explain" in done.stdout
