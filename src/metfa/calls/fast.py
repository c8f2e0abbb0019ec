"""A faster copy of a network: the same function up to rounding, or the same function in bfloat16.

The copy has its batch normalisations folded into the layers before them, weights with channels last where
`metfa.calls.layouts` asks so, and no gradients of weights, also for libraries that would compute them.
``torch.compile`` is not used: it won a tenth at most, after a minute of compiling, and hides the layers that explainers
look at.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

from metfa._base.warnings import MetfaWarning, warn
from metfa.calls.behind import loaded_torch
from metfa.calls.parts import answered_by_parts, each, named, of_rows
from metfa.calls.plain import hidden_layers, unwrapped

__all__ = ["FAST", "FastCopy", "check_fast", "fast_copy"]

FAST = ("exact", "bfloat16")
INSTEAD = "leave `fast` out, which asks the model itself"


class FastCopy:
    """What is known of a copy; the copy holds it as its attribute `fast_copy`."""

    def __init__(self, model: Any, way: str, network: Any) -> None:
        self.way, self._model, self._state = way, model, _state(model)
        self._copy: Callable[[], Any] = ref(network)
        self.folded: int | None = None  # how many layers; None until the first inputs come
        self._layout: Any = None  # of the weights; None: as they are in the model
        self._checked = 0  # how many open contexts have seen that the model is as it was

    def __deepcopy__(self, memo: Any) -> FastCopy:
        return self  # that of a copy of the copy

    def __reduce__(self) -> Any:
        return _facts, (self.way, self.folded, self._layout)  # in another process there is no model that could change

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Context for asking the copy many times: raises if the model has changed since it was copied."""
        self._check()
        self._checked += 1
        try:
            yield
        finally:
            self._checked -= 1

    def _check(self) -> None:
        if not self._checked and self._model is not None and _state(self._model) != self._state:
            raise ValueError(
                f"the model has changed since its copy for `fast={self.way!r}` was made: make the `metfa.Called` anew, "
                f"or {INSTEAD}"
            )

    def model_of(self, network: Any) -> Any:
        """The model that the copy was made of; None if the network is another one, such as a copy of the copy."""
        return self._model if self._copy() is network else None

    def name_of(self, layer: Any) -> str | None:
        """Name of a module of the model, by which the copy has it too; None if it is none of them."""
        parts = () if self._model is None else self._model.named_modules()
        return next((name for name, part in parts if part is layer and name), None)

    def fold(self, network: Any, batch: Any, *, layout: Any) -> None:
        """Fold the copy, for which the first inputs show how, and give its weights the layout of a batch.

        Raises if the model has changed since it was copied.
        """
        self._check()
        torch: Any = loaded_torch()
        parts = named(batch).values()
        if not all(isinstance(part, torch.Tensor) for part in parts):
            return
        if self.folded is None:
            self._fold(network, each(torch.detach, of_rows(batch, 0, 1)))
        if layout != self._layout:  # weights with channels last would lay out what is as given
            for weight in network.parameters():
                if weight.ndim in (4, 5):
                    of_them = {4: torch.channels_last, 5: torch.channels_last_3d}[weight.ndim]
                    weight.data = weight.data.contiguous(
                        memory_format=of_them if layout == of_them else torch.contiguous_format
                    )
            torch.clear_autocast_cache()  # of weights that are cast as they were
            self._layout = layout

    def _fold(self, network: Any, row: Any) -> None:
        torch: Any = loaded_torch()
        from metfa.calls.folding import folded_in_place  # which needs torch

        def ask() -> Any:
            return answered_by_parts(network, each(torch.clone, row))

        with torch.no_grad(), torch.autocast(next(iter(named(row).values())).device.type, enabled=False):
            self.folded = folded_in_place(network, ask)[0] if isinstance(ask(), torch.Tensor) else 0

    @property
    def said(self) -> str:
        """What was done, for a reader of results."""
        folded = {None: "", 0: "", 1: ", one batch normalisation folded"}.get(
            self.folded, f", {self.folded} batch normalisations folded"
        )
        precision = "; the model runs in bfloat16, so single maps differ by more than rounding"
        return (
            f"{self.way}: a copy of the model is asked{folded}; the same function up to rounding"
            f"{precision if self.way == 'bfloat16' else ''}"
        )


def check_fast(way: Any) -> None:
    """Raise if there is no such way to ask a copy of a model."""
    if way is None:
        return
    if not isinstance(way, str):
        raise TypeError(f"`fast` must be 'exact', 'bfloat16' or None, got {type(way).__name__}: {way!r:.80}")
    if way not in FAST:
        raise ValueError(f"`fast` must be 'exact', 'bfloat16' or None, got {way!r:.80}")


def fast_copy(model: Any, way: Any) -> Any:
    """The model that ``Called(fast=)`` asks: a copy, or for None the model itself.

    A model that is such a copy stays as it is, and for another way gives way to the model that it was made of.

    Raises
    ------
    TypeError, ValueError
        If there is no such way, or the model cannot be copied.
    """
    torch, made = loaded_torch(), getattr(model, "fast_copy", None)
    if isinstance(made, FastCopy) and made.way != way:
        model = made.model_of(model) or model
    check_fast(way)
    if way is None:
        return model
    if isinstance(made, FastCopy) and made.way == way:
        return model
    network = unwrapped(model)
    if torch is None or not isinstance(network, torch.nn.Module):
        raise TypeError(
            f"`fast` works on a copy of a torch.nn.Module, got {type(model).__name__}, which cannot be copied with "
            f"what it calls: give the module itself, or {INSTEAD}"
        )
    if (hidden := hidden_layers(network)) is not None:
        raise ValueError(f"`fast` folds the layers of a copy of the model, and {hidden}; or {INSTEAD}")
    try:
        found = copy.deepcopy(network)
    except Exception as error:
        raise ValueError(
            f"`fast` works on a copy of the model, and {type(network).__name__} cannot be copied ({error}): {INSTEAD}"
        ) from error
    # In bfloat16 torch keeps the weights that it has cast only where they could have a gradient.
    found = found.eval().requires_grad_(way == "bfloat16")
    found.fast_copy = FastCopy(network, way, found)
    weight = next(found.parameters(), None)
    if way == "bfloat16" and weight is not None and weight.device.type == "cpu" and not _has_bfloat16(torch):
        warn(
            "this processor has no bfloat16 instructions, so that `fast='bfloat16'` is slower than float32: write "
            "`fast='exact'`",
            MetfaWarning,
        )
    return found


def _has_bfloat16(torch: Any) -> bool:
    """Whether the processor has instructions for bfloat16; true where torch does not say."""
    known = getattr(torch.cpu, "get_capabilities", dict)()
    found = [has for name, has in known.items() if "bf16" in name]
    return not found or any(found)


def _state(model: Any) -> tuple[Any, ...]:
    """Where each weight and buffer of a model is, and the sums of its bits along the first axis and across it.

    The sums are of integers, which wrap around: so they are exact, and whatever changes one number changes them.
    """
    torch: Any = loaded_torch()
    kinds = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    found = []
    for tensor in (*model.parameters(), *model.buffers()):
        plain = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
        bits = plain.view(kinds[plain.element_size()])
        table = bits.flatten(1) if bits.ndim > 1 else bits.reshape(-1, 1)
        dtype = torch.int64 if bits.dtype == torch.int64 else torch.int32
        sums = torch.cat([table.sum(0, dtype=dtype), table.sum(1, dtype=dtype)])
        found.append((str(plain.device), sums.cpu().numpy().tobytes()))
    return tuple(found)


def _facts(way: str, folded: int | None, layout: Any) -> FastCopy:
    found = object.__new__(FastCopy)
    found._model, found._state, found._copy, found._checked = None, (), lambda: None, 0
    found.way, found.folded, found._layout = way, folded, layout
    return found
