"""Models that are not the textbook case: fixed batches, channels last, hidden layers, int8, methods without adapter."""

import functools

import numpy as np
import onnx
import onnxruntime
import pytest
import pytorch_grad_cam
import shap
import torch
from captum import attr
from captum.attr._utils.lrp_rules import EpsilonRule
from lime import lime_image, lime_tabular
from onnx import helper
from torch import nn
from zennit.attribution import Gradient as ZennitGradient
from zennit.composites import EpsilonPlusFlat

import metfa
from metfa import FixedBatch, metrics
from metfa.explainers import (
    CAM,
    IGOS,
    LIME,
    LRP,
    MASK,
    RISE,
    Gradient,
    ScoreCAM,
    SmoothGrad,
    from_captum,
    from_gradcam,
    from_lime,
    from_shap,
    heatmap,
)  # fmt: skip
from metfa.models import Selected, TwoClasses

pytestmark = pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
NOISE = metfa.noise.Uniform(0.1, bounds=(0, 1))
SETTINGS = {"noise": NOISE, "n_samples": 3, "rng": 0}
SQUARES = np.arange(12)[:, None] // 4 * 4 + np.arange(16)[None] // 4
PIXELS = np.random.default_rng(0).random((5, 3, 12, 16)).astype(np.float32)
IMAGES = torch.from_numpy(PIXELS)
MAKERS = {
    "RISE": lambda model: RISE(model, n_masks=20, rng=0),
    "LIME": lambda model: LIME(model, n_perturbations=20, segmentation=SQUARES, n_segments_shown=None, rng=0),
    "MASK": lambda model: MASK(model, n_iterations=4, grid=4, rng=0),
    "IGOS": lambda model: IGOS(model, n_iterations=2, n_steps=3, grid=4, rng=0),
    "Gradient": Gradient,
    "SmoothGrad": lambda model: SmoothGrad(model, n_perturbations=3, std=0.1, rng=0),
}
AT_LAYERS = {
    "CAM": CAM,
    "ScoreCAM": ScoreCAM,
    "LRP": LRP,
    "GuidedBackprop": lambda model: from_captum(model, "GuidedBackprop"),
    "DeepLift": lambda model: from_captum(model, "DeepLift"),
    "GradCAM": lambda model: from_gradcam("GradCAM", model),
}


def net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        body = nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
        module = nn.Sequential(*body)
    module[-1].weight.data *= 20
    return module.eval()


def onnx_model(batch):
    """Softmax of a linear layer of the pixels, with a batch axis of that size, or a name for any."""
    weights = np.random.default_rng(1).normal(size=(3 * 12 * 16, 4)).astype(np.float32) / 5
    nodes = [
        helper.make_node("Flatten", ["images"], ["rows"]),
        helper.make_node("MatMul", ["rows", "weights"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    kind = onnx.TensorProto.FLOAT
    ends = [
        helper.make_tensor_value_info("images", kind, [batch, 3, 12, 16]),
        helper.make_tensor_value_info("probabilities", kind, [batch, 4]),
    ]
    held = [helper.make_tensor("weights", kind, weights.shape, weights.ravel())]
    graph = helper.make_graph(nodes, "linear", ends[:1], ends[1:], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda images: session.run(["probabilities"], {"images": images.astype(np.float32)})[0]


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("answer", [lambda scores: scores[0], lambda scores: scores.squeeze()])
def test_a_model_without_a_batch_axis_takes_no_fixed_batch(answer, n):
    class Dropped(torch.nn.Sequential):
        def forward(self, inputs):
            return answer(super().forward(inputs))

    images = torch.rand(n, 1, 4, 4)
    model = Dropped(torch.nn.Flatten(), torch.nn.Linear(16, 3)).eval()
    with pytest.raises(ValueError, match=r"^`model` must return one row of scores .*keep the batch axis"):
        metfa.explain(Gradient(model), images, 0, noise=metfa.noise.Uniform(0.1), n_samples=6, rng=0)


class TestFixedBatch:
    ANY = staticmethod(onnx_model("rows"))

    @pytest.mark.parametrize("size", [1, 2, 3, 8])
    def test_scores_are_those_of_any_batch(self, size):
        fixed = FixedBatch(onnx_model(size), size)
        for n in (1, 2, 5):
            np.testing.assert_allclose(fixed(PIXELS[:n]), self.ANY(PIXELS[:n]), rtol=1e-4)

    @pytest.mark.parametrize("size", [1, 4])
    @pytest.mark.parametrize("name", ["RISE", "LIME"])
    def test_the_error_of_explain_names_what_works(self, name, size):
        model, make = onnx_model(size), MAKERS[name]
        with pytest.raises(ValueError, match=rf"takes a batch of .* write `metfa\.FixedBatch\(model, {size}\)`"):
            metfa.explain(make(metfa.Called(model, softmax=False)), PIXELS, **SETTINGS)
        fixed = metfa.explain(make(metfa.Called(FixedBatch(model, size), softmax=False)), PIXELS, **SETTINGS)
        free = metfa.explain(make(metfa.Called(self.ANY, softmax=False)), PIXELS, **SETTINGS)
        np.testing.assert_allclose(fixed.values, free.values, atol=1e-4)
        assert fixed.target == free.target

    def test_one_row_by_the_batch_size_of_a_called(self):
        called = metfa.Called(onnx_model(1), softmax=False, batch_size=1)
        sample = metfa.explain(MAKERS["RISE"](called), PIXELS, **SETTINGS)
        free = metfa.explain(MAKERS["RISE"](metfa.Called(self.ANY, softmax=False)), PIXELS, **SETTINGS)
        np.testing.assert_allclose(sample.values, free.values, atol=1e-4)

    @pytest.mark.slow
    def test_in_adapters_predict_and_metrics(self):
        rows = PIXELS.reshape(5, -1)[:, :6]

        def with_rows(model):
            return lambda rows: model(np.pad(rows, ((0, 0), (0, 570))).reshape(-1, 3, 12, 16))

        fixed, free = with_rows(FixedBatch(onnx_model(2), 2)), with_rows(self.ANY)
        for make in (
            lambda model: from_shap(shap.KernelExplainer(model, rows[3:]), nsamples=20),
            lambda model: from_lime(lime_tabular.LimeTabularExplainer(rows), model, num_samples=20),
        ):
            found, expected = (metfa.explain(make(model), rows[:2], **SETTINGS) for model in (fixed, free))
            np.testing.assert_allclose(found.values, expected.values, atol=1e-5)
        alone = from_shap(shap.KernelExplainer(with_rows(onnx_model(1)), rows[3:4]), nsamples=20)
        with pytest.raises(ValueError, match=r"write `metfa\.FixedBatch\(model, 1\)`"):  # said of SHAP's own calls
            alone(rows[:1], 0, rngs=[np.random.default_rng(0)])
        with pytest.raises(ValueError, match=r"write `metfa\.FixedBatch\(model, 2\)`"):
            metfa.explain(lambda x, target: x, PIXELS, predict=onnx_model(2), **SETTINGS)
        maps = PIXELS[:, 0]
        with pytest.raises(ValueError, match=r"write `metfa\.FixedBatch\(model, 2\)`"):
            metrics.insertion(metfa.Called(onnx_model(2), softmax=False), PIXELS, maps, steps=4)
        scores = [
            metrics.insertion(metfa.Called(model, softmax=False), PIXELS, maps, steps=4).score
            for model in (FixedBatch(onnx_model(2), 2), self.ANY)
        ]
        np.testing.assert_allclose(*scores, rtol=1e-4)

    @pytest.mark.slow
    def test_an_exported_program_with_its_gradient(self):
        exported = torch.export.export(net(), (IMAGES[:2],)).module()
        with pytest.raises(ValueError, match=r"write `metfa\.FixedBatch\(model, 2\)`"):
            metfa.explain(Gradient(exported), IMAGES, **SETTINGS)
        sample = metfa.explain(Gradient(FixedBatch(exported, 2)), IMAGES, **SETTINGS)
        np.testing.assert_allclose(sample.values, metfa.explain(Gradient(net()), IMAGES, **SETTINGS).values, atol=1e-5)

    def test_other_faults_are_not_taken_for_it(self):
        def faulty(images):
            raise RuntimeError("size of something: 4")

        with pytest.raises(RuntimeError, match="size of something"):
            metfa.Called(faulty).scores(PIXELS)

    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (lambda: FixedBatch(3, 1), TypeError, "`model` must be a module or a function inputs -> scores, got int"),
            (lambda: FixedBatch(net(), 0), ValueError, "`size` must be at least 1, got 0"),
            (lambda: FixedBatch(lambda x: x[:1], 2)(PIXELS), ValueError, r"each of its 2 inputs, got shape \(1, 3, 12"),
            (lambda: FixedBatch(lambda x: None, 2)(PIXELS), ValueError, "each of its 2 inputs, got NoneType"),
        ],
    )
    def test_what_is_wrong(self, make, error, message):
        with pytest.raises(error, match=message):
            make()


class TestChannelsLast:
    HWC = np.ascontiguousarray(PIXELS.transpose(0, 2, 3, 1))

    @pytest.mark.parametrize("name", [*MAKERS, *AT_LAYERS])
    def test_they_are_refused_with_what_to_write(self, name):
        explainer, inputs = {**MAKERS, **AT_LAYERS}[name](net()), torch.from_numpy(self.HWC)
        for call in (lambda: explainer(inputs, 0), lambda: metfa.explain(explainer, inputs, **SETTINGS)):
            with pytest.raises(
                ValueError, match=r"of shape \(5, 12, 16, 3\) look like .* `inputs\.permute\(0, 3, 1, 2\)`"
            ):
                call()
        explainer(inputs.permute(0, 3, 1, 2), 0)

    def test_a_function_that_takes_them(self):
        """Read as 12 channels of 16 x 3 pixels it would give maps (16, 3)."""

        def model(images):
            return np.stack([images[:, :6, :, 0].mean((1, 2)), images[:, 6:, :, 0].mean((1, 2))], axis=1)

        with pytest.raises(ValueError, match=r"give `lambda images: model\(images\.transpose\(0, 2, 3, 1\)\)`"):
            MAKERS["RISE"](metfa.Called(model, softmax=False))(self.HWC, 0)
        wrapped = metfa.Called(lambda images: model(images.transpose(0, 2, 3, 1)), softmax=False)
        assert MAKERS["RISE"](wrapped)(self.HWC.transpose(0, 3, 1, 2), 0)[0].shape == (5, 12, 16)

    def test_a_gradient_over_the_last_axis(self):
        class Last(nn.Module):
            def __init__(self):
                super().__init__()
                self.network = net()

            def forward(self, x):
                return self.network(x.permute(0, 3, 1, 2))

        maps, _ = Gradient(Last().eval(), channel_axis=3)(torch.from_numpy(self.HWC), 0)
        torch.testing.assert_close(maps, Gradient(net())(IMAGES, 0)[0])


HIDDEN = {
    "scripted": (torch.jit.script, "the model is scripted or traced"),
    "traced": (lambda module: torch.jit.trace(module, IMAGES), "the model is scripted or traced"),
    "exported": (lambda module: torch.export.export(module, (IMAGES,)).module(), "the model is an exported"),
    "a compiled part": (
        lambda module: nn.Sequential(torch.compile(module, backend="eager"), nn.Identity()).eval(),
        "its part '0' is compiled",
    ),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
class TestHiddenLayers:
    @pytest.mark.parametrize("kind", HIDDEN)
    @pytest.mark.parametrize("name", AT_LAYERS)
    def test_are_refused_when_the_explainer_is_made(self, name, kind):
        make, message = HIDDEN[kind]
        with pytest.raises(
            ValueError, match=rf"works at the layers of `model`, and {message}.*: give the torch.nn.Mod"
        ):
            AT_LAYERS[name](make(net()))

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["scripted", "traced"])
    @pytest.mark.parametrize("name", MAKERS)
    def test_are_no_matter_where_the_model_is_only_asked(self, name, kind):
        found, expected = (MAKERS[name](model)(IMAGES[:2], 0)[0] for model in (HIDDEN[kind][0](net()), net()))
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)

    def test_captum_s_own_objects_on_a_compiled_model(self):
        method = attr.GuidedBackprop(torch.compile(net(), backend="eager"))
        for explainer in (method.attribute, functools.partial(method.attribute)):
            with pytest.raises(TypeError, match=r"GuidedBackprop of captum, .* the model is compiled"):
                metfa.explain(explainer, IMAGES, **SETTINGS)
        with pytest.raises(TypeError, match=r"GuidedBackprop of captum, .* the model is compiled"):
            heatmap(method.attribute)

    def test_an_object_of_grad_cam_on_a_compiled_model(self):
        plain = net()
        cam = pytorch_grad_cam.GradCAM(torch.compile(plain, backend="eager"), [plain[0]])
        with pytest.raises(ValueError, match="`method` works at the layers of its model, and the model is compiled"):
            from_gradcam(cam)


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning", "ignore:.*are deprecated and will:UserWarning")
@pytest.mark.filterwarnings("ignore:.*an autograd kernel was not registered:UserWarning")
@pytest.mark.filterwarnings("ignore:the model lets the rows:metfa._base.warnings.RowDependenceWarning")
@pytest.mark.parametrize("name", [*MAKERS, *AT_LAYERS])
def test_an_int8_model(name):
    """Its range is that of the batch, so its rows do depend on each other."""
    quantised = torch.ao.quantization.quantize_dynamic(net(), {nn.Linear}, dtype=torch.qint8).eval()
    make = {**MAKERS, **AT_LAYERS}[name]
    explainer = make(quantised)
    if name in ("RISE", "LIME", "ScoreCAM"):
        maps, scores = explainer(IMAGES, 0)
        torch.testing.assert_close(scores, net()(IMAGES).detach(), atol=0.1, rtol=0)
        assert maps.isfinite().all()
        return
    message = "CAM needs a model" if name == "CAM" else r"no gradient by its input: .* \(int8\)"
    with pytest.raises(ValueError, match=message):
        explainer(IMAGES, 0)


class TestSettingsOfACalled:
    KINDS = (RISE, LIME, MASK, IGOS, Gradient, SmoothGrad, CAM, ScoreCAM, LRP)

    @pytest.mark.parametrize("kind", KINDS)
    def test_are_not_an_explainer_s(self, kind):
        with pytest.raises(TypeError) as refused:
            kind(net(), softmax=False, batch_size=2)
        advice = f"{kind.__name__}(metfa.Called(model, batch_size=2, softmax=False))"
        assert f"`batch_size` says how the model is asked, and belongs to metfa.Called: write `{advice}`" in str(
            refused.value
        )
        made = eval(advice, {"metfa": metfa, kind.__name__: kind, "model": net()})
        assert (made.called.softmax, made.called.batch_size) == (False, 2)

    def test_other_names_lead_to_ours(self):
        with pytest.raises(TypeError, match="no argument `n_mask`, did you mean 'n_masks'"):
            RISE(net(), n_mask=3)


def zennit_advice(attributor):
    return lambda inputs, target: attributor(
        inputs, lambda scores: scores * torch.nn.functional.one_hot(target, scores.shape[1])
    )[::-1]


def kernel_shap():
    return shap.KernelExplainer(lambda rows: rows, np.zeros((1, 4)))


class TestMethodsWithoutAdapter:
    @pytest.mark.parametrize("wrap", [lambda e: metfa.explain(e, IMAGES, 0, **SETTINGS), heatmap, metfa.seeded])
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (
                lambda: pytorch_grad_cam.GradCAM(net(), [net()[0]]),
                r"GradCAM of pytorch_grad_cam, .*from_gradcam\(cam\)",
            ),
            (
                lambda: shap.KernelExplainer(lambda x: x, np.zeros((1, 4))),
                r"of shap, .*from_shap\(explainer, predict\)",
            ),
            (
                lambda: shap.KernelExplainer(lambda x: x, np.zeros((1, 4))).shap_values,
                r"KernelExplainer of shap, .*from_shap\(explainer, predict\)",
            ),
            (
                lambda: lime_image.LimeImageExplainer().explain_instance,
                r"LimeImageExplainer of lime, .*from_lime\(explainer, predict\)",
            ),
            (
                lambda: ZennitGradient(net(), EpsilonPlusFlat()),
                r"Gradient of zennit, .*`lambda inputs, target: attributor\(inputs, lambda scores: scores \* torch\."
                r"nn\.functional\.one_hot\(target, scores\.shape\[1\]\)\)\[::-1\]`",
            ),
        ],
    )
    def test_is_named(self, make, message, wrap):
        with pytest.raises(TypeError, match=message):
            wrap(make())

    def test_what_is_said_of_zennit_works(self):
        explainer = zennit_advice(ZennitGradient(net(), EpsilonPlusFlat()))
        sample = metfa.explain(explainer, IMAGES, predict=net(), **SETTINGS)
        expected = LRP(net(), composite="epsilon_plus_flat", scale=False, channel_axis=None)(IMAGES)[0]
        np.testing.assert_allclose(sample.vanilla, expected, atol=1e-4)


class TestCaptumsLRP:
    def test_leaves_nothing_on_the_modules(self):
        unruled = net()  # Flatten has no rule
        with pytest.raises(ValueError, match=r"cannot explain this: .*has no rule"):
            from_captum(unruled, "LRP")(IMAGES, 0)
        ruled, rows = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3)).eval(), torch.rand(2, 12)
        rule = ruled[0].rule = EpsilonRule()
        weights = [parameter.clone() for parameter in ruled.parameters()]
        from_captum(ruled, "LRP", channel_axis=None)(rows, 0)
        assert ruled[0].rule is rule
        for part in (*unruled.modules(), *ruled):
            assert not {"rule", "activations"} & vars(part).keys() - ({"rule"} if part is ruled[0] else set())
        assert all(map(torch.equal, weights, ruled.parameters()))


class TestWrappers:
    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (lambda: Selected(lambda x: x, "logits"), TypeError, r"`lambda inputs: model\(inputs\)\['logits'\]`"),
            (lambda: Selected(net(), 1.5), TypeError, "`output` must be a name or an index, got float: 1.5"),
            (lambda: Selected(net(), 0)(IMAGES), TypeError, r"one array of shape \(5, 5\): give the model itself"),
            (lambda: Selected(Heads(), "c")(IMAGES), ValueError, "`output` 'c' is no output .* dict with 'a', 'b'"),
            (lambda: TwoClasses(net())(IMAGES), ValueError, r"one logit for each input, .*, got shape \(5, 5\)"),
            (lambda: TwoClasses(Heads())(IMAGES), ValueError, "one logit for each input, .*, got dict"),
            (lambda: TwoClasses(3), TypeError, "`model` must be a torch.nn.Module, got int"),
        ],
    )
    def test_what_is_wrong(self, make, error, message):
        with pytest.raises(error, match=message):
            make()

    def test_a_function_with_several_outputs(self):
        def two(images):
            return images.mean((2, 3)), images.sum((1, 2, 3))

        with pytest.raises(
            TypeError, match=r"`predict` must .* tuple of 2: .* `lambda inputs: predict\(inputs\)\[0\]`"
        ):
            metfa.explain(lambda x, target: x, PIXELS[:2], predict=two, **SETTINGS)
        with pytest.raises(TypeError, match=r"`model` must .* tuple of 2: .* `lambda inputs: model\(inputs\)\[0\]`"):
            metrics.insertion(two, PIXELS, PIXELS[:, 0])

    def test_numbers_in_lists_and_frames_are_scores(self):
        pandas = pytest.importorskip("pandas")
        for form in (np.ndarray.tolist, pandas.DataFrame):
            predict = functools.partial(mean_colours, form)
            sample = metfa.explain(lambda x, target: x, PIXELS, predict=predict, **SETTINGS)
            assert sample.target == tuple(PIXELS.mean((2, 3)).argmax(1))


def mean_colours(form, images):
    return form(images.mean((2, 3)))


MAPS = PIXELS[:, 0]
METRICS = {
    "insertion": lambda model: metrics.insertion(model, IMAGES, MAPS, steps=4),
    "deletion": lambda model: metrics.deletion(model, IMAGES, MAPS, steps=4),
    "overall": lambda model: metrics.overall(model, IMAGES, MAPS, steps=4),
    "region_score": lambda model: metrics.region_score(model, IMAGES, MAPS > 0.5),
    "infidelity": lambda model: metrics.infidelity(model, IMAGES, MAPS, noise=NOISE),
    "robust": lambda model: metrics.robust(metrics.deletion, noise=NOISE, rng=0)(model, IMAGES, MAPS),
}


class Answering(nn.Module):
    def __init__(self, after):
        super().__init__()
        self.network, self.after = net(), after

    def forward(self, x):
        return self.after(self.network(x))


@pytest.mark.filterwarnings("ignore::metfa.ModelOutputWarning")
class TestMetrics:
    @pytest.mark.parametrize("name", METRICS)
    def test_answers_that_are_no_array(self, name):
        model = Answering(lambda scores: {"logits": scores, "loss": None}).eval()
        with pytest.raises(TypeError, match=r"`model` must .* dict .* `metfa\.models\.Selected\(model, 'logits'\)`"):
            METRICS[name](model)
        found, expected = (METRICS[name](model) for model in (Selected(model, "logits"), net()))
        np.testing.assert_allclose(found.score, expected.score, rtol=1e-5)

    @pytest.mark.parametrize("name", METRICS)
    @pytest.mark.parametrize("one", [lambda scores: scores[:, :1], lambda scores: scores[:, 0]])
    def test_one_score_a_row(self, name, one):
        model = Answering(one).eval()
        with pytest.raises(ValueError, match=r"write `metfa\.Called\(model, softmax=False\)`.*TwoClasses\(model\)`"):
            METRICS[name](model)
        for as_said in (metfa.Called(model, softmax=False), TwoClasses(model)):
            assert METRICS[name](as_said).score.shape == (5,)


class Heads(nn.Module):
    def forward(self, x):
        return {"a": x, "b": x}
