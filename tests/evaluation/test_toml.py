"""Studies in TOML: read as written, refused in one clear sentence, and no code is run that was not allowed."""

import sys

import numpy as np
import pytest
from PIL import Image

import metfa
from metfa import Study
from metfa.evaluation import read_study
from metfa.evaluation.study import NamedMethod
from metfa.noise import Brightness, Compose, Gaussian, Uniform

WHOLE = """
    [study]
    aggregates = ["vanilla", "smoothed"]
    n_samples = [10, 20]
    confidence_level = [0.8, 0.95]
    n_outer = 5
    seed = 3
    batch_size = 4
    device = "cpu"
    version = "1"

    [model]
    name = "efficientnet-lite0"

    [data]
    inputs = "pictures"
    limit = 1

    [explainers]
    gradient = "gradient"
    saliency = "captum:Saliency"
    rise = {settings = {n_masks = 50, grid = [5, 6]}}
    many = {method = "rise", settings = {n_masks = 500}}

    [sampling]
    normal = "gaussian:0.1"
    both = "uniform:0.05 + brightness:0.9:1.1:pixel"

    [outer]
    uniform = "uniform:0.2"
    own = "none"

    [metrics]
    mstd = {}
    top_k_overlap = {k = 100}
    infidelity = {noise = "gaussian:0.01", n_perturbations = 5}
    faithfulness = {steps = 20, baseline = "mean"}
"""


@pytest.fixture
def write(tmp_path):
    """Write a study beside a folder of pictures; returns its path."""
    for name in ("a.png", "b.png"):
        (tmp_path / "pictures").mkdir(exist_ok=True)
        Image.fromarray(np.zeros((4, 4, 3), dtype=np.uint8)).save(tmp_path / "pictures" / name)

    def write(text):
        path = tmp_path / "study.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_everything_that_can_be_written(write, tmp_path, monkeypatch):
    monkeypatch.chdir("/")  # paths are relative to the file
    bounded = {"bounds": (0.0, 1.0)}
    study = read_study(write(WHOLE))
    assert study == Study(
        model="efficientnet-lite0",
        inputs=tmp_path / "pictures",
        limit=1,
        explainers={
            "gradient": NamedMethod("gradient"),
            "saliency": NamedMethod("captum:Saliency"),
            "rise": NamedMethod("rise", {"n_masks": 50, "grid": (5, 6)}),
            "many": NamedMethod("rise", {"n_masks": 500}),
        },
        sampling={
            "normal": Gaussian(0.1, **bounded),
            "both": Compose(Uniform(0.05, **bounded), Brightness(0.9, 1.1, per="pixel", **bounded)),
        },
        outer={"uniform": Uniform(0.2, **bounded), "own": None},
        metrics={
            "mstd": {},
            "top_k_overlap": {"k": 100},
            "infidelity": {"noise": Gaussian(0.01, **bounded), "n_perturbations": 5},
            "faithfulness": {"steps": 20, "baseline": "mean"},
        },
        aggregates=["vanilla", "smoothed"],
        n_samples=[10, 20],
        confidence_level=[0.8, 0.95],
        n_outer=5,
        seed=3,
        batch_size=4,
        version="1",
    )
    assert study.data.names == ("a.png",)


LEAST = """
    [model]
    name = "efficientnet-lite0"
    [data]
    inputs = "pictures"
    [explainers]
    gradient = "gradient"
    [metrics]
    faithfulness = {}
"""


def test_the_least_that_must_be_written(write, tmp_path):
    assert read_study(str(write(LEAST))).sizes == (10,)
    assert read_study(write("\ufeff" + LEAST)).maps == ("vanilla",)
    absolute = LEAST.replace('"pictures"', f'"{tmp_path / "pictures"}"')
    assert len(read_study(write(absolute)).data) == 2
    (tmp_path / "index.csv").write_text("path\npictures/b.png\n")
    assert read_study(write(LEAST.replace('"pictures"', '"index.csv"'))).data.names == ("pictures/b.png",)


def test_a_rule_that_ends_sampling(write):
    rule = 'undecided = 0.05, width = 0.1, threshold = "jenks", correction = "bonferroni", max_samples = 99'
    noisy = entry("study", f"n_samples = {{{rule}}}") + '[sampling]\nn = "gaussian:0.1"\n'
    noisy = noisy.replace(
        "faithfulness = {}", 'undecided = {threshold = "jenks", correction = "none"}\ncertified_share = {radius = 0.2}'
    )
    study = read_study(write(noisy))
    breaks = metfa.stats.jenks
    assert study.rule == metfa.Until(
        undecided=0.05, width=0.1, threshold=breaks, correction="bonferroni", max_samples=99
    )
    assert study.measures[0].settings == {"threshold": metfa.stats.jenks, "correction": "none"}


def entry(table, line):
    """The least study with a line more in one of its tables."""
    head = f"[{table}]\n"
    return LEAST.replace(head, f"{head}{line}\n") if head in LEAST else f"{LEAST}{head}{line}\n"


def without(text, *lines):
    for line in lines:
        assert line in text
        text = text.replace(line, "")
    return text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LEAST + "[studi]\n", "the file has no entry 'studi', did you mean 'study'.; it may have study, model"),
        ("seed = 3\n" + LEAST, "the file has no entry 'seed'"),
        (entry("study", "sead = 3"), r"\[study\] has no entry 'sead', did you mean 'seed'"),
        (entry("data", "target = [0]"), r"\[data\] has no entry 'target'; it may have inputs, limit"),
        (entry("model", 'nam = "x"'), r"\[model\] has no entry 'nam', did you mean 'name'"),
        (entry("explainers", 'x = {metod = "rise"}'), r"\[explainers\.x\] has no entry 'metod', did you mean 'method'"),
        (entry("explainers", "x = 3"), r"\[explainers\.x\] must be a table, got 3"),
        (
            entry("explainers", "x = {method = 3}"),
            r"\[explainers\.x\]: `method` must be a string and `settings` a table",
        ),
        (entry("explainers", 'x = "risee"'), r"\[explainers\.x\]: .*'risee'"),
        (
            entry("explainers", "rise = {settings = {n_mask = 3}}"),
            r"\[explainers\.rise\]: .*'n_mask', did you mean 'n_",
        ),
        (entry("explainers", "rise = {settings = {n_masks = -3}}"), r"\[explainers\.rise\]: .*n_masks.*-3"),
        (entry("explainers", 'x = "captum:Nothing"'), r"\[explainers\.x\]: .*captum has no method 'Nothing'"),
        (entry("sampling", 'x = "gausian:0.1"'), r"\[sampling\] x: .*got 'gausian:0\.1'"),
        (entry("sampling", 'x = "uniform:-1"'), r"\[sampling\] x: .*'uniform:-1' is not a noise"),
        (entry("sampling", "x = 0.1"), r"\[sampling\]: `x` must be a string such as 'gaussian:0\.1', got 0\.1"),
        (entry("outer", "x = []"), r"\[outer\]: `x` must be a string"),
        (entry("metrics", "mstdd = {}"), "got 'mstdd', did you mean 'mstd'"),
        (entry("metrics", 'infidelity = {noise = "x:1"}'), r"\[metrics\] noise: .*got 'x:1'"),
        (entry("study", "n_samples = {undecidd = 0.1}"), r"\[study\] n_samples has no entry 'undecidd', did you"),
        (entry("study", "n_samples = {undecided = 0.1, max_seconds = 9}"), "must not depend on the speed of a machine"),
        (entry("study", "n_samples = {undecided = 5}"), r"\[study\] n_samples: `undecided` must be a share below 1"),
        (entry("study", "n_samples = {max_samples = 50}"), r"\[study\] n_samples: `Until` needs a reason to stop"),
        (
            entry("study", 'n_samples = {undecided = 0.1, threshold = "otsu"}'),
            r"\[study\] n_samples: `threshold` must be 'jenks_of_medians' .*, got 'otsu'",
        ),
        (
            entry("metrics", 'undecided = {threshold = "otsu"}'),
            r"\[metrics\]: `threshold` must be 'jenks_of_medians' .*'otsu'",
        ),
        (entry("study", "n_outer = 0"), "`n_outer` must be at least 1, got 0"),
        (entry("study", 'aggregates = ["median"]'), "`aggregates` must be of vanilla, mean, smoothed, got 'median'"),
        (without(LEAST, 'name = "efficientnet-lite0"'), "`name` must be a string, got None"),
        (without(LEAST, 'inputs = "pictures"'), "`inputs` must be a string, got None"),
        (without(LEAST, "[metrics]", "faithfulness = {}"), r"the table \[metrics\] is missing"),
        (without(LEAST, "[model]", 'name = "efficientnet-lite0"'), r"the table \[model\] is missing"),
        (without(LEAST, "faithfulness = {}"), "`metrics` is empty"),
        (without(LEAST, 'gradient = "gradient"'), "`explainers` is empty"),
        ("metrics = ['mstd']\n" + without(LEAST, "[metrics]", "faithfulness = {}"), "`metrics` must be a table, got"),
        ("sampling = 'uniform:0.1'\n" + LEAST, "`sampling` must be a table, got 'uniform:0.1'"),
        ("explainers = 3\n" + without(LEAST, "[explainers]", 'gradient = "gradient"'), "`explainers` must be a table"),
        ("[model\n", r"study\.toml is not a TOML file"),
        (b"\x00\xff\xfe" * 30, r"study\.toml is not a TOML file"),
        ("x = " + "[" * 100_000, r"study\.toml is not a TOML file"),
        ("#" * 2**20 + "\n", r"study\.toml is larger than a study can be \(1048576 bytes\)"),
    ],
)
def test_what_is_no_study(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_study(write(text))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (entry("study", "seed = 1.5"), TypeError, "`seed` must be an integer, got float: 1.5"),
        (entry("study", "device = 3"), TypeError, "`device` must be a string, got int: 3"),
        (entry("metrics", "mstd = true"), TypeError, r"`metrics\['mstd'\]` must be a dict of settings, got bool: True"),
        (LEAST.replace("pictures", "nowhere"), FileNotFoundError, "no such folder or file: .*nowhere"),
    ],
)
def test_values_are_checked_as_in_python(write, text, error, message):
    with pytest.raises(error, match=message):
        read_study(write(text))


def test_what_is_no_file(tmp_path):
    for path in (tmp_path, tmp_path / "missing.toml"):
        with pytest.raises(FileNotFoundError, match=f"no such study: {path}"):
            read_study(path)


# Code and downloads


@pytest.fixture
def marking(tmp_path, monkeypatch):
    """A module that leaves a mark where it is imported."""
    (tmp_path / "marking_module.py").write_text(
        "from pathlib import Path\n"
        "Path(__file__).with_name('imported').touch()\n"
        "import torch\n"
        "from metfa.explainers import Gradient\n"
        "def model():\n"
        "    return torch.nn.Flatten()\n"
        "def method(model, scale=True):\n"
        "    return Gradient(model, scale=scale)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "imported"
    sys.modules.pop("marking_module", None)


OF_MODEL = LEAST.replace("efficientnet-lite0", "marking_module:model")
OF_METHOD = entry("explainers", 'own = "marking_module:method"')
OF_SETTINGS = entry("explainers", 'own = {method = "marking_module:method", settings = {scale = false}}')


@pytest.mark.parametrize("text", [OF_MODEL, OF_METHOD, OF_SETTINGS])
@pytest.mark.parametrize("allowed", [{}, {"allow_download": True}])
def test_code_is_refused(write, marking, text, allowed):
    with pytest.raises(ValueError, match=r"'marking_module:\w+', and importing it runs its code: .* --allow-import"):
        read_study(write(text), **allowed)
    assert not marking.exists()
    assert "marking_module" not in sys.modules


@pytest.mark.parametrize("text", [OF_MODEL, OF_METHOD, OF_SETTINGS])
def test_code_that_is_allowed(write, marking, text):
    assert isinstance(read_study(write(text), allow_import=True), Study)


@pytest.mark.parametrize("source", ["timm", "torchvision"])
def test_downloads_are_refused(write, source):
    text = LEAST.replace("efficientnet-lite0", f"{source}:resnet18")
    for allowed in ({}, {"allow_import": True}):
        with pytest.raises(ValueError, match=f"'{source}:resnet18', and {source} may download its weights: .*--allow"):
            read_study(write(text), **allowed)
    assert read_study(write(text), allow_download=True).model == f"{source}:resnet18"
