"""Models of other libraries and of the user, in the form that `load` returns."""

import importlib
import inspect
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image
from torch import nn

from metfa._base.import_path import imported
from metfa._base.validation import did_you_mean
from metfa.models._loaded_model import LoadedModel
from metfa.models._network import hugging_face_in_time, is_reachable
from metfa.models._normalised import Normalised
from metfa.models._preprocess import CentreCrop, WholePicture

__all__ = ["from_callable", "from_timm", "from_torchvision", "segmentation_from_torchvision"]


def from_timm(name: str, pretrained: bool) -> LoadedModel:
    """Classifier of timm, with the input size, crop, filter, mean and std of its weights' configuration.

    A crop larger than the picture (1.15 in three VOLO models, where timm adds a black frame) becomes the whole square.
    """
    timm = _library("timm")
    if not timm.is_model(name):
        raise ValueError(f"`name`: timm has no model {name!r}{did_you_mean(name, timm.list_models())}")
    with _download(f"timm:{name}"), hugging_face_in_time() if pretrained else nullcontext():
        try:
            model = timm.create_model(name, pretrained=pretrained)
        except RuntimeError as error:  # an unknown tag, or a model without weights
            raise ValueError(f"`name`: timm cannot load {name!r}: {error}") from error
    settings = timm.data.resolve_model_data_config(model)
    channels, height, width = settings["input_size"]
    if channels != 3 or height != width:
        raise ValueError(f"`name`: timm's {name!r} takes no square RGB images but {settings['input_size']}")
    subset = timm.data.infer_imagenet_subset(model)
    class_names = None
    if subset:
        info = timm.data.ImageNetInfo(subset)
        class_names = tuple(info.index_to_description(index) for index in range(info.num_classes()))
    configuration = model.pretrained_cfg
    return LoadedModel(
        Normalised(model, settings["mean"], settings["std"]).eval(),
        CentreCrop(height, min(settings["crop_pct"], 1.0), Image.Resampling[settings["interpolation"].upper()]),
        class_names,
        f"timm:{name}",
        f"timm {timm.__version__}, {configuration['architecture']}.{configuration['tag']}" if pretrained else None,
    )


def from_torchvision(name: str, pretrained: bool) -> LoadedModel:
    """Classifier of torchvision, with the transform and class names of its weights: the named ones or the default."""
    torchvision = _library("torchvision")
    model, weights = _torchvision_model(name, torchvision.models, "classifier", pretrained)
    transform = weights.transforms()
    (size,), (short,) = transform.crop_size, transform.resize_size
    return LoadedModel(
        Normalised(model, transform.mean, transform.std).eval(),
        CentreCrop(size, size / short, Image.Resampling[transform.interpolation.value.upper()]),
        tuple(weights.meta["categories"]),
        f"torchvision:{name}",
        f"torchvision {torchvision.__version__}, {weights}" if pretrained else None,
    )


def segmentation_from_torchvision(name: str, pretrained: bool) -> LoadedModel:
    """Segmentation network of torchvision, which takes whole pictures; its weights were trained on sides of 520."""
    torchvision = _library("torchvision")
    model, weights = _torchvision_model(name, torchvision.models.segmentation, "segmentation network", pretrained)
    transform = weights.transforms()
    return LoadedModel(
        Normalised(model, transform.mean, transform.std).eval(),
        WholePicture(),
        tuple(weights.meta["categories"]),
        f"torchvision:{name}",
        f"torchvision {torchvision.__version__}, {weights}" if pretrained else None,
    )


def _torchvision_model(name: str, module: Any, kind: str, pretrained: bool) -> tuple[nn.Module, Any]:
    """A model of a module of torchvision, and its weights; an untrained model comes with those it would have."""
    models = _library("torchvision").models
    architecture, _, tag = name.partition(".")
    known = models.list_models(module=module)
    if architecture not in known:
        raise ValueError(f"`name`: torchvision has no {kind} {architecture!r}{did_you_mean(architecture, known)}")
    choices = models.get_model_weights(architecture)
    if tag and tag not in choices.__members__:
        raise ValueError(f"`name`: {architecture} has no weights {tag!r}, choose from {', '.join(choices.__members__)}")
    weights = choices[tag] if tag else choices.DEFAULT
    untrained = {} if pretrained or kind == "classifier" else {"weights_backbone": None}
    with _download(f"torchvision:{name}"):
        if pretrained:
            _check_reachable(weights.url)
        return models.get_model(architecture, weights=weights if pretrained else None, **untrained), weights


def from_callable(name: str, preprocess: Any) -> LoadedModel:
    """The model that the callable at the import path ``package.module:callable`` returns, called without arguments."""
    try:
        make = imported(name, "`name`")
    except ValueError as error:
        raise ValueError(f"{error}; the prefixes timm: and torchvision: name models of those libraries") from error
    made = make if isinstance(make, nn.Module | LoadedModel) else _called(make, name)
    if isinstance(made, nn.Module):
        made = LoadedModel(made, preprocess)
    if not isinstance(made, LoadedModel):
        raise TypeError(f"{name!r} must return a LoadedModel or a torch.nn.Module, got {type(made).__name__}")
    made.module.eval()
    return replace(made, name=made.name or name)


def _called(make: Any, name: str) -> Any:
    """The result of a callable without arguments."""
    if not callable(make):
        raise TypeError(f"`name` {name!r} must name a callable that makes a model, got {type(make).__name__}")
    try:
        needed = [
            parameter.name
            for parameter in inspect.signature(make).parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
    except (TypeError, ValueError):  # some callables have no signature
        needed = []
    if needed:
        raise TypeError(
            f"`name` {name!r} must make a model when it is called without arguments (a torch.nn.Module, or a "
            f"metfa.models.LoadedModel with preprocessing and class names), but it needs {', '.join(needed)}"
        )
    return make()


def _library(name: str) -> Any:
    """An optional library, imported only when a model of it is asked for."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(f"`name`: {name} is not installed: pip install {name}", name=name) from None


def _check_reachable(url: str) -> None:
    """Raise at once where a file is in no cache, and cannot be downloaded."""
    from torch import hub

    cached = Path(hub.get_dir()) / "checkpoints" / Path(urllib.parse.urlsplit(url).path).name
    if not cached.exists() and not is_reachable(url):
        raise OSError(f"no connection to {urllib.parse.urlsplit(url).hostname}")


@contextmanager
def _download(name: str) -> Iterator[None]:
    """Report a failed download in one line; the libraries raise many kinds of OSError."""
    try:
        yield
    except OSError as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConnectionError(
            f"the weights of {name} cannot be downloaded ({type(error).__name__}: {reason}); "
            "connect once to fill the library's cache; or try with random weights, of an untrained network: "
            "pretrained=False in Python, --random-weights on the command line"
        ) from error
