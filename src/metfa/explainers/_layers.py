"""Layers of a module: found by name or as the last feature map, and watched during one call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import torch
from torch import nn

from metfa.calls.behind import owner_of
from metfa.calls.inputs import SHAPES
from metfa.explainers._channel_axes import ChannelAxes, channels_first
from metfa.explainers._places import Places, Tokens

__all__ = ["CONVOLUTIONS", "Reshaping", "Watch", "check_layer", "layer_of", "name_of", "watched"]

NAMES_SHOWN = 12
CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
Output = tuple[nn.Module, torch.Tensor]
Reshaping = Callable[[Any], torch.Tensor]


def check_layer(layer: Any, model: Any) -> None:
    """Raise unless `layer` is None, a name or a module, and a model that must be searched is a module."""
    if layer is not None and not isinstance(layer, str | nn.Module):
        raise TypeError(f"`layer` must be a name, a module or None, got {type(layer).__name__}: {layer!r}")
    if not isinstance(layer, nn.Module) and not isinstance(owner_of(model), nn.Module):
        raise TypeError(
            f"`model` must be a torch.nn.Module for its layers to be found, got {type(model).__name__}; for a function "
            "that calls a module, pass the layer itself: `layer=module.features`"
        )


def layer_of(model: Any, layer: str | nn.Module) -> nn.Module:
    """The module of that name: a dotted name, or the end of exactly one (``"head.act"`` of ``"model.head.act"``)."""
    if isinstance(layer, nn.Module):
        return layer
    modules = _named_modules(model)
    if layer in modules:
        return modules[layer]
    found = {name: module for name, module in modules.items() if layer and name.endswith(f".{layer}")}
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    if found:
        raise ValueError(f"`layer` {layer!r} is the end of {len(found)} names: write one of {_listed(found)}")
    close = get_close_matches(layer, modules, n=3, cutoff=0.5)
    raise ValueError(f"`model` has no layer {layer!r}; it has {_listed(close or modules)}")


def name_of(model: Any, layer: nn.Module) -> str:
    """The layer's dotted name in the model; its type where it has none."""
    return next((repr(name) for name, module in _named_modules(model).items() if module is layer), type(layer).__name__)


class Watch:
    """What a forward pass shows of a named layer, or of the last feature map.

    The last feature map is found in the order of execution. Take the last convolution that gives more than one pixel.
    The feature map is the output of the last module, leaf or container, that has the same height and width: behind
    batch normalisation, activation and the sum of a residual block, before pooling. It is kept by reference, so that a
    function which works on it in place (DenseNet's ReLU) is seen. The output of a named layer is copied as it leaves
    the layer. Where its channels are is known from the functions that work on it, see `ChannelAxes`, or from
    `reshape_transform`.

    In a transformer that convolution only cuts patches. Where its tokens lie in the image is seen, see `Places`. There
    the layer is the last normalisation of tokens before the last attention: behind that attention, a model with a class
    token reads no patch. Where no layer gives tokens, as in Swin, it is the last map with channels last.
    """

    def __init__(
        self,
        model: Any,
        layer: str | nn.Module | None,
        reshape_transform: Any = None,
        size: Any = None,
        n_axes: int = 2,
    ) -> None:
        self.model, self.size = model, size
        self.n_axes = n_axes if size is None else len(size)
        self.channel_axes, self.places = ChannelAxes(self.n_axes), Places(size, n_axes)
        self.reshape_transform = reshape_transform
        self.named = None if layer is None else layer_of(model, layer)
        self.module: nn.Module | None = self.named
        self.output: Any = None
        self.calls = Counter[nn.Module]()
        self._pixels: Output | None = None  # the last map with channels last
        self._pixels_at = -1  # the number of attentions before it
        self._tokens: Output | None = None  # the last tokens of which the places are known
        self._norms: dict[int, Output] = {}  # of tokens, the last one before each attention

    def see(self, module: nn.Module, _: Any, output: Any) -> None:
        """Forward hook."""
        self.calls[module] += 1
        if self.named is not None:
            self.output = output.clone() if isinstance(output, torch.Tensor) else output
        elif self._places_of(output) is not None:
            self._tokens = module, output
            if _normalises(module):
                self._norms[self.places.n_attentions] = module, output
        elif self._is_map(output) and self.channel_axes.channel_axis(output) == self.channel_axes.last:
            if output.shape[1:-1].numel() > 1:
                self.channel_axes.since = tuple(output.shape)
                self._pixels, self._pixels_at = (module, output), self.places.n_attentions
        elif self._is_map(output) and output.shape[2:].numel() > 1:
            same_size = self.output is not None and output.shape[2:] == self.output.shape[2:]
            if self.n_axes == 1 and self.channel_axes.shown_axis(output) == self.channel_axes.last:
                return
            if same_size or isinstance(module, CONVOLUTIONS[self.n_axes]):
                self.module, self.output = module, output
                self.channel_axes.since = None

    @property
    def name(self) -> str:
        """Name of the layer, for messages."""
        return "of no layer" if self.module is None else name_of(self.model, self.module)

    def feature_map(self, n_rows: int, *, instead: str | None = None) -> torch.Tensor:
        """The layer's output (batch, channels, height, width), of the one call that was watched.

        Raises
        ------
        ValueError
            If there is no such layer, or if it is not certain where its channels are. `instead` says what to do if no
            layer was named, in place of naming one; then a layer of a transformer is not taken.
        """
        if self.named is None:
            if instead is None:
                self._choose_in_a_transformer(n_rows)
            self._require_a_last(instead or f"name the layer by `layer=`, of {_listed(_named_modules(self.model))}")
        else:
            self.require_one_call()
        if self.reshape_transform is not None:
            return self._of_rows(self.reshape_transform(self.output), n_rows, "`reshape_transform` must make")
        reshape = self.reshaping() if self.named is not None or instead is None else None
        return self._of_rows(self.output if reshape is None else reshape(self.output), n_rows)

    def averaged_maps(self, n_rows: int) -> Iterator[torch.Tensor]:
        """Last feature maps (batch, channels, height, width) that a classifier may average; `name` is the latest's."""
        if self.module is not None and self.channel_axes.since is None:
            yield self._of_rows(self.output, n_rows)
        for candidate in (self._pixels, self._tokens):
            if candidate is not None and len(candidate[1]) == n_rows:
                self.module, self.output = candidate
                reshape = self.reshaping()
                assert reshape is not None
                yield self._of_rows(reshape(self.output), n_rows)

    def reshaping(self) -> Reshaping | None:
        """What makes (batch, channels, height, width) of the layer's output; None where it is so already.

        Raises
        ------
        ValueError
            If it is not certain where its channels are, or where its tokens lie.
        """
        if self.reshape_transform is not None:
            return self.reshape_transform
        if not isinstance(self.output, torch.Tensor) or self.output.ndim not in (3, self.n_axes + 2):
            return None  # no feature map at all
        tokens = self._places_of(self.output)
        if tokens is not None:
            return tokens
        shape = tuple(self.output.shape)
        axis = self.channel_axes.channel_axis(self.output, self.size) if len(shape) == self.n_axes + 2 else None
        if axis is None:
            what = (
                "tokens" if len(shape) < self.n_axes + 2 else "a map whose channels may be its second or its last axis"
            )
            named = f"`layer={self.name}` and " if self.named is None else ""
            raise ValueError(
                f"`layer` {self.name} gives {what}, of shape {shape}: write {named}how it lies in the input, such as "
                f"{self.channel_axes.reshape_for(shape)}; or name another layer"
            )
        return None if axis == 1 else channels_first

    def _places_of(self, output: Any) -> Tokens | None:
        if not isinstance(output, torch.Tensor) or output.ndim != 3 or output.shape[2] == 1:
            return None  # one number behind a pooling is no token
        if self.n_axes == 1:  # a map of series has three axes, too
            shown = self.channel_axes.shown_axis(output)
            if shown == 1 or (shown is None and not self.places.follows(output)):
                return None
        return self.places.of_tensor(output)

    def _is_map(self, output: Any) -> bool:
        return isinstance(output, torch.Tensor) and output.ndim == self.n_axes + 2 and output.is_floating_point()

    def _choose_in_a_transformer(self, n_rows: int) -> None:
        """Take a layer of tokens, or one with channels last, where these follow the last convolution's feature map."""
        if self.channel_axes.since is None:
            return
        before_last = self.places.n_attentions - 1
        chosen = self._pixels if self._pixels_at >= before_last else self._norms.get(before_last)
        if chosen is not None and len(chosen[1]) == n_rows:
            self.module, self.output = chosen
            self.channel_axes.since = None

    def _require_a_last(self, instead: str) -> None:
        if self.module is None:
            raise ValueError(
                "`model` has no convolution that gives a feature map of more than one pixel (for a larger input, it "
                f"may have); {instead}"
            )
        if self.channel_axes.since is not None:
            raise ValueError(
                f"the last convolution's feature map {self.name}, of shape {tuple(self.output.shape)}, is not the last "
                f"of `model`: tokens or a map with channels last, of shape {self.channel_axes.since}, follow it, as in "
                f"transformers; {instead}"
            )

    def _of_rows(self, features: Any, n_rows: int, must: str | None = None) -> torch.Tensor:
        if not self._is_map(features) or len(features) != n_rows:
            got = f"shape {tuple(features.shape)}" if hasattr(features, "shape") else type(features).__name__
            form = SHAPES[self.n_axes].partition(" ")[2]
            other = (
                ""
                if self.n_axes == 2
                else f" whose axes are those of the inputs; or write `reshape_transform=`, {form}"
            )
            raise ValueError(
                f"{must or f'`layer` {self.name} must give'} a feature map {form} of {n_rows} rows, got {got}"
                + ("" if must else f"; name another one{other}")
            )
        return features

    def require_one_call(self) -> None:
        """Raise unless the layer was called once; otherwise its name does not say which output is meant."""
        assert self.module is not None
        if not self.calls[self.module]:
            raise ValueError(f"`layer` {self.name} is not called by the model, so it has no output")
        if self.calls[self.module] > 1:
            raise ValueError(
                f"`layer` {self.name} is used {self.calls[self.module]} times in a forward pass, so it has no single "
                "output: name a layer around one of its uses"
            )


@contextmanager
def watched(
    model: Any,
    layer: str | nn.Module | None = None,
    reshape_transform: Any = None,
    size: Any = None,
    n_axes: int = 2,
) -> Iterator[Watch]:
    """Watch a layer, or find the last feature map, during one forward pass; all hooks are removed afterwards.

    `size` is that of the images (height, width), of series or of volumes; `n_axes` says how many axes it has where it
    is not given.
    """
    watch = Watch(model, layer, reshape_transform, size, n_axes)
    modules = owner_of(model).modules() if watch.named is None else (watch.named,)
    hooks = [module.register_forward_hook(watch.see) for module in modules]
    try:
        with watch.places, watch.channel_axes:
            yield watch
    finally:
        for hook in hooks:
            hook.remove()


def _normalises(module: nn.Module) -> bool:
    """Whether a module is a single layer without a matrix: a normalisation of any library, or a scale for each feature.

    Those that leave their input as it is (Identity, Dropout) have no weights.
    """
    weights = list(module.parameters(recurse=False))
    return not list(module.children()) and bool(weights) and all(weight.ndim <= 1 for weight in weights)


def _named_modules(model: Any) -> dict[str, nn.Module]:
    owner = owner_of(model)
    if not isinstance(owner, nn.Module):
        return {}
    return {name: module for name, module in owner.named_modules(remove_duplicate=False) if name}


def _listed(names: Any) -> str:
    """Names for a message; if there are many, the last ones, which are usually wanted."""
    names = list(names)
    left_out = "..., " if len(names) > NAMES_SHOWN else ""
    return left_out + ", ".join(map(repr, names[-NAMES_SHOWN:])) if names else "none"
