"""`import metfa` in a fresh process: lazy, the names it promises, and useful without torch."""

import ast
import importlib.util
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import metfa
from metfa import explainers, regions, text


def fresh(code):
    """What `code` prints as JSON in a new process, where every warning is an error."""
    command = [sys.executable, "-W", "error", "-c", f"import json, sys\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_loads_neither_torch_nor_matplotlib():
    loaded = fresh("import metfa, numpy\nprint(json.dumps(sorted({m.partition('.')[0] for m in sys.modules})))")
    assert not {"torch", "matplotlib", "jax", "tqdm", "PIL", "scipy", "captum"} & set(loaded)


def test_sampling_and_statistics_load_neither():
    used = ["explain", "stats", "noise", "Smoothed", "load", "seeded", "randomised", "allocator"]
    loaded = fresh(
        f"import metfa\nfor name in {used}: getattr(metfa, name)\n"
        "print(json.dumps(sorted({m.partition('.')[0] for m in sys.modules})))"
    )
    assert not {"torch", "matplotlib", "jax", "tqdm", "PIL", "scipy"} & set(loaded)


@pytest.mark.parametrize("package", [metfa, explainers, regions, text], ids=lambda package: package.__name__)
class TestNames:
    def test_resolve(self, package):
        for name in package.__all__:
            assert getattr(package, name) is not None
        assert dir(package) == sorted(package.__all__)

    @pytest.mark.slow
    def test_are_what_they_were_after_every_module_is_loaded(self, package):
        """A module named as one of them would take its place on the package."""
        code = f"""
import importlib, pkgutil, types
package = importlib.import_module({package.__name__!r})
def kinds():
    found = {{name: getattr(package, name) for name in package.__all__}}
    return {{name: [isinstance(thing, types.ModuleType), id(thing)] for name, thing in found.items()}}
first = kinds()
again = kinds()
for module in pkgutil.iter_modules(package.__path__):
    importlib.import_module(f"{{package.__name__}}.{{module.name}}")
print(json.dumps([first, again, kinds()]))
"""
        first, again, last = fresh(code)
        assert first == again == last

    def test_are_those_of_the_stub(self, package):
        stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
        declared = {}
        for node in stub.body:
            assert isinstance(node, ast.ImportFrom)
            declared |= {alias.asname: (node.module, alias.name) for alias in node.names}
        assert sorted(declared) == sorted(package.__all__)
        for name, (module, attribute) in declared.items():
            home = importlib.import_module(module)
            expected = (
                getattr(home, attribute)
                if hasattr(home, attribute)
                else importlib.import_module(f"{module}.{attribute}")
            )
            assert getattr(package, name) is expected

    def test_others_are_refused_as_python_does(self, package):
        with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nonsense'"):
            _ = package.nonsense
        assert not hasattr(package, "_private")


def test_functions_are_functions():
    for name in ("explain", "load", "randomised", "seeded", "Smoothed", "AttributionSample"):
        assert callable(getattr(metfa, name)), name
    for name in ("noise", "stats", "plot", "models", "explainers", "allocator"):
        assert getattr(metfa, name).__name__ == f"metfa.{name}"


def test_every_name_of_all_exists():
    for module in pkgutil.walk_packages(metfa.__path__, "metfa."):
        if "._" in module.name or module.name.endswith("__main__"):
            continue
        if module.name == "metfa.explore" and importlib.util.find_spec("anywidget") is None:
            continue
        loaded = importlib.import_module(module.name)
        assert all(hasattr(loaded, name) for name in getattr(loaded, "__all__", ())), module.name


NOT_INSTALLED = """
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
"""


@pytest.mark.parametrize("block", [NOT_INSTALLED, "sys.modules['torch'] = None"], ids=["not installed", "None"])
def test_works_on_numpy_without_torch(block):
    code = """
import numpy as np
import metfa
try:
    import torch
except ImportError:
    pass
else:
    raise AssertionError
x = np.linspace(0, 1, 12).reshape(2, 6)
def global_draws(x, target):
    return x + np.random.normal(size=x.shape)
sample = metfa.explain(lambda x, target: np.abs(x), x, noise=metfa.noise.Uniform(0.1), n_samples=20, rng=0,
                       predict=lambda x: np.stack([x.sum(1), -x.sum(1)], axis=1))
seeded = metfa.explain(metfa.seeded(global_draws), x, 0, noise=metfa.noise.Gaussian(0.1), n_samples=4, rng=0)
smooth = metfa.Smoothed(lambda x, target: x, noise=metfa.noise.Laplace(0.1), n_samples=6, rng=0)(x, 0)
brightness = metfa.noise.Compose(metfa.noise.Brightness(0.9, 1.1, bounds=(0, 1)))(x[0], np.random.default_rng(0))
test = metfa.stats.sign_test(sample.values, 0.5)
print(json.dumps([sample.values.shape, sample.target, seeded.values.shape, smooth.shape, test.sign.tolist(),
                  sample.significance_map(0.5).tolist(), sample.provenance["versions"].get("torch")]))
"""
    shape, target, seeded, smooth, sign, significance, torch_version = fresh(f"{block}\n{code}")
    assert (shape, target, seeded, smooth, torch_version) == ([20, 2, 6], [0, 0], [4, 2, 6], [2, 6], None)
    assert significance == sign == [[-1] * 6, [1] * 6]


@pytest.mark.slow
def test_torch_loaded_only_later_is_seen():
    """metfa never loads torch by itself, yet its guards know it from the moment that the caller does."""
    code = """
import numpy as np
import metfa
x = np.ones((2, 3))
settings = dict(noise=metfa.noise.Uniform(0.1), n_samples=3, rng=0)
metfa.explain(lambda x, target: x, x, 0, **settings)
assert "torch" not in sys.modules
import torch
net = torch.nn.Linear(3, 2).eval()
sample = metfa.explain(metfa.explainers.Gradient(net, channel_axis=None), torch.ones(2, 3), **settings)
print(json.dumps(sample.values.shape))
"""
    assert fresh(code) == [3, 2, 3]


@pytest.mark.parametrize(
    ("missing", "code", "what", "extra"),
    [
        ("torch", "metfa.explainers.Gradient", "metfa.explainers.Gradient needs torch", "'metfa[image]'"),
        ("tqdm", "metfa.explain(f, x, 0, noise=n, run=metfa.Run(progress=True))", "`progress` needs tqdm", "tqdm"),
        ("matplotlib", "metfa.explain(f, x, 0, noise=n).plot()", "a figure needs matplotlib", "'metfa[plot]'"),
    ],
)
def test_a_missing_extra_says_what_to_install(missing, code, what, extra):
    setup = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import numpy as np, metfa\n"
        "f, n = lambda inputs, target: abs(inputs), metfa.noise.Uniform(0.1)\n"
        "x = np.random.default_rng(0).random((1, 60, 60))\n"
    )
    done = subprocess.run([sys.executable, "-c", setup + code], capture_output=True, text=True, check=False)
    assert f"ModuleNotFoundError: {what}: pip install {extra}" in done.stderr.splitlines()[-1]
