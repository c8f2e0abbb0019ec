"""Black-box models of other libraries: one line each, and no torch installed where none is needed."""

import subprocess
import sys
import textwrap

import numpy as np
import onnx
import onnxruntime
import pytest
import shap
import torch
from lime.lime_tabular import LimeTabularExplainer
from onnx import helper
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier

import metfa
from metfa.explainers import RISE
from metfa.explainers.lime_adapter import from_lime
from metfa.explainers.shap_adapter import from_shap

IRIS = load_iris()
ROWS = IRIS.data[[0, 60, 133]].astype(np.float32)


def linear_network(weights, bias):
    """A network input -> softmax(input @ weights + bias), as an ONNX model."""

    def tensor(name, array):
        return helper.make_tensor(name, onnx.TensorProto.FLOAT, array.shape, array.ravel().astype(np.float32))

    nodes = [
        helper.make_node("Gemm", ["input", "weights", "bias"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    sizes = {"input": ["rows", weights.shape[0]], "probabilities": ["rows", weights.shape[1]]}
    ends = {name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, size) for name, size in sizes.items()}
    graph = helper.make_graph(
        nodes, "linear", [ends["input"]], [ends["probabilities"]], [tensor("weights", weights), tensor("bias", bias)]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


WEIGHTS, BIAS = np.random.default_rng(0).normal(size=(4, 3)), np.array([0.5, 0.0, -0.5])


def predict_with_onnx(model):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(["probabilities"], {"input": inputs.astype(np.float32)})[0]


def test_onnx_runtime_in_black_box_explainers():
    predict = predict_with_onnx(linear_network(WEIGHTS, BIAS))
    logits = ROWS @ WEIGHTS + BIAS
    np.testing.assert_allclose(predict(ROWS), np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), rtol=1e-4)
    noise = metfa.noise.per_column(IRIS.data, 0.1, categorical=[3])
    explainers = {
        "shap": from_shap(shap.KernelExplainer(predict, IRIS.data[::50].astype(np.float32))),
        "lime": from_lime(LimeTabularExplainer(IRIS.data, discretize_continuous=False), predict, num_samples=200),
    }
    for name, explainer in explainers.items():
        sample = metfa.explain(
            explainer, ROWS, noise=noise, n_samples=6, rng=0, run=metfa.Run(feature_names=IRIS.feature_names)
        )
        assert sample.target == tuple(logits.argmax(axis=1)), name
        assert sample.values.shape == (6, 3, 4)
        assert sample.flip_rate is not None


def test_rise_asks_an_onnx_model_about_images():
    pixels = np.random.default_rng(1).random((2, 3, 8, 8)).astype(np.float32)
    weights = np.zeros((3, 8, 8, 2))
    weights[:, :4, :4, 1] = 0.3  # the class is the brightness of the upper left quarter
    predict = predict_with_onnx(linear_network(weights.reshape(192, 2), np.array([4.0, 0.0])))
    explainer = RISE(
        metfa.Called(lambda images: predict(images.reshape(len(images), -1)), softmax=False), n_masks=400, grid=4
    )
    sample = metfa.explain(explainer, pixels, 1, noise=metfa.noise.Uniform(0.05), n_samples=5, rng=0)
    maps = sample.median()
    assert (maps[:, :4, :4].mean(axis=(1, 2)) > 2 * maps[:, 4:, 4:].mean(axis=(1, 2))).all()


def test_noise_of_a_table_leaves_categories_to_the_bit_before_the_model():
    seen = []

    def predict(inputs):
        seen.append(inputs[:, 3].copy())
        return IRIS_FOREST.predict_proba(inputs)

    noise = metfa.noise.per_column(IRIS.data, 0.3, categorical=["petal width (cm)"], feature_names=IRIS.feature_names)
    explainer = from_shap(shap.TreeExplainer(IRIS_FOREST), predict)
    metfa.explain(explainer, ROWS, noise=noise, n_samples=6, rng=0)
    assert set(np.concatenate(seen).tolist()) == set(ROWS[:, 3].tolist())


IRIS_FOREST = RandomForestClassifier(5, max_depth=3, random_state=0).fit(IRIS.data, IRIS.target)


WITHOUT_TORCH = """
    import sys

    class NoTorch:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "torch":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, NoTorch())
    import numpy as np
    import metfa
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    iris = load_iris()
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(iris.data, iris.target)
    noise = metfa.noise.per_column(iris.data, 0.1)

    def ablation(inputs, target):
        rows, maps, scores = np.arange(len(inputs)), np.empty_like(inputs), predict(inputs)
        for feature, centre in enumerate(iris.data.mean(axis=0)):
            without = inputs.copy()
            without[:, feature] = centre
            maps[:, feature] = (scores - predict(without))[rows, target]
        return maps, scores

    def check(explainer, **settings):
        settings = {"noise": noise, "n_samples": 6, "rng": 0, **settings}
        run = metfa.Run(feature_names=iris.feature_names)
        sample = metfa.explain(explainer, iris.data[[0, 60]].astype(np.float32), run=run, **settings)
        assert sample.values.shape == (6, 2, 4)
        assert np.isfinite(sample.smoothed()).all()
        sample.significance_map(0.0)
        sample.plot()
"""

WHAT_RUNS = {
    "scikit-learn": """
        predict = forest.predict_proba
        check(ablation, predict=predict)
    """,
    "onnxruntime": """
        import onnxruntime
        session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
        predict = lambda inputs: session.run(["probabilities"], {"input": inputs.astype(np.float32)})[0]
        check(ablation, predict=predict)
    """,
    "shap": """
        import shap
        from metfa.explainers.shap_adapter import from_shap
        check(from_shap(shap.TreeExplainer(forest), forest.predict_proba))
        check(from_shap(shap.KernelExplainer(forest.predict_proba, iris.data[::50])), noise=None)
    """,
    "lime": """
        from lime.lime_tabular import LimeTabularExplainer
        from metfa.explainers.lime_adapter import from_lime
        check(from_lime(LimeTabularExplainer(iris.data), forest.predict_proba, num_samples=100), noise=None)
    """,
    "rise": """
        from metfa.explainers import RISE
        def bright(images):
            share = images[:, 0, :4].mean(axis=(1, 2))
            return np.stack([share, 1 - share], axis=1)
        explainer = RISE(metfa.Called(bright, softmax=False), n_masks=20, grid=2)
        sample = metfa.explain(explainer, np.full((1, 1, 8, 8), 0.5), noise=None, n_samples=3, rng=0)
        assert sample.values.shape == (3, 1, 8, 8)
    """,
}


@pytest.mark.slow
def test_without_torch(tmp_path):
    """All in one process: each part of it starts with what another has loaded, but none has torch."""
    model = tmp_path / "model.onnx"
    model.write_bytes(linear_network(WEIGHTS, BIAS))
    code = textwrap.dedent(WITHOUT_TORCH) + "".join(map(textwrap.dedent, WHAT_RUNS.values()))
    code += "\nassert not any(name.partition('.')[0] == 'torch' for name in sys.modules)\n"
    ran = subprocess.run(
        [sys.executable, "-c", code, str(model)], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_deep_shap_and_a_torch_network_on_a_table():
    table = load_breast_cancer()
    rows = torch.tensor((table.data - table.data.mean(0)) / table.data.std(0), dtype=torch.float32)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(30, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
    explainer = from_shap(shap.DeepExplainer(net, rows[:20]), check_additivity=False)
    sample = metfa.explain(
        explainer,
        rows[20:22],
        noise=metfa.noise.Gaussian(0.1),
        n_samples=12,
        rng=0,
        run=metfa.Run(feature_names=table.feature_names),
    )
    test = sample.test(0)
    assert set(np.unique(test.sign)) <= {-1, 0, 1}
    assert (test.pvalue < 0.01).any()
    assert len(sample.plot().axes[0].patches) == 20
