"""The memory layout in which a model is asked: chosen by a rule on the network and the device, never by timing.

The rule, ``memory_format="auto"``: images in float32 or float64 go channels last to a network on a CPU with two or more
two-dimensional convolutions; everything else goes as it is given. Measured, with weights as they are: gradients of
EfficientNet-Lite0 took 0.81, of ResNet-18 0.85 (float64: 0.81) of the time, forward passes 0.78 and 0.81 (0.83); a
network of volumes took longer (1.16 forward). A model that fails on that layout, as one that reshapes by ``view``, gets
its batches as they are given, and so does one of several inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from metfa._base.earlier_words import AS_GIVEN, CHANNELS_LAST
from metfa.calls.answers import answered
from metfa.calls.behind import loaded_torch, modules_behind
from metfa.calls.parts import are_parts, each

__all__ = ["AUTO", "Layouts", "check_layout", "layout_kept"]

AUTO = "auto"
CONVOLUTIONS = 2  # fewer, such as the one that cuts a transformer's patches, gain nothing
AXES = {"channels_last": 4, "channels_last_3d": 5}

_kept: ContextVar[str | None] = ContextVar("metfa_layout_kept", default=None)


@contextmanager
def layout_kept(layout: str | None) -> Iterator[None]:
    """Let "auto" mean the layout in which earlier samples of the same run were made; None: the rule."""
    token = _kept.set(layout)
    try:
        yield
    finally:
        _kept.reset(token)


def check_layout(layout: Any) -> None:
    """Raise unless this is "auto", a layout of torch, or None, which leaves batches as they are."""
    torch = loaded_torch()
    if layout is None or layout == AUTO or (torch is not None and isinstance(layout, torch.memory_format)):
        return
    raise TypeError(
        "`memory_format` must be 'auto', a torch.memory_format such as torch.channels_last, or None, got "
        f"{type(layout).__name__}: {layout!r:.80}"
    )


class Layouts:
    """How batches are laid out for one model; what was chosen once is kept.

    Attributes
    ----------
    refused : str or None
        What the model said of a layout that it failed on.
    """

    def __init__(self, model: Any, wanted: Any) -> None:
        self._model, self._wanted = model, wanted
        self._chosen: dict[Any, Any] = {}
        self.refused: str | None = None

    def laid_out(self, batch: Any) -> Any:
        """The batch in the layout for it; a layout that was never used is first tried on one row.

        Of several inputs each is laid out as it is asked for, without a trial.
        """
        torch = loaded_torch()
        if are_parts(batch):
            return batch if self._wanted == AUTO else each(self._as_wanted, batch)
        if torch is None or not isinstance(batch, torch.Tensor):
            return batch
        key = self._key(batch)
        layout = self._chosen[key] if key in self._chosen else self._tried(batch)
        return batch if layout is None else batch.contiguous(memory_format=layout)

    def asked_first(self, batch: Any, ask: Callable[[], Any]) -> Any:
        """``ask()``, which asks the model about such a batch and is itself the trial of a layout.

        If the model fails, it is asked again about the batch as it is given.
        """
        torch = loaded_torch()
        if torch is None or not isinstance(batch, torch.Tensor) or self._key(batch) in self._chosen:
            return ask()
        key, layout = self._key(batch), self._layout_for(batch)
        self._chosen[key] = layout
        try:
            return ask()
        except (RuntimeError, ValueError) as error:
            if layout is None or "out of memory" in str(error):
                raise
            self._chosen[key] = None
            answer = ask()  # raises an error of its own where the layout is not the reason
            self._refuse(layout, error)
            return answer
        except BaseException:
            del self._chosen[key]
            raise

    def _as_wanted(self, part: Any) -> Any:
        torch = loaded_torch()
        layout = self._layout_for(part) if torch is not None and isinstance(part, torch.Tensor) else None
        return part if layout is None else part.contiguous(memory_format=layout)

    def are_last(self, batch: Any) -> bool:
        """Whether such a batch would go channels last."""
        return not are_parts(batch) and _written(self._layout_for(batch)) in AXES

    def said(self) -> str | None:
        """The layout in which batches were laid out, as results record it; None if no tensor came."""
        chosen = [layout for key, layout in self._chosen.items() if key[-1] == _kept.get()]
        found = {AS_GIVEN if layout is None else _name(layout) for layout in chosen}
        return " and ".join(sorted(found)) or None

    def _key(self, batch: Any) -> Any:
        return batch.ndim, batch.device.type, batch.dtype, _kept.get()

    def _layout_for(self, batch: Any) -> Any:
        """The layout for such a batch; None leaves it as it is."""
        torch: Any = loaded_torch()
        if self._wanted == AUTO:
            kept = _kept.get()
            last = batch.ndim == AXES["channels_last"] and (kept or self._usual(batch)) == CHANNELS_LAST
            return torch.channels_last if last else None
        axes = AXES.get(_written(self._wanted))
        if axes is not None and batch.ndim in AXES.values() and batch.ndim != axes:
            other = next(name for name, n in AXES.items() if n == batch.ndim)
            raise ValueError(
                f"`memory_format` {self._wanted} is for inputs of {axes} axes, got shape {tuple(batch.shape)}: write "
                f"torch.{other}, or leave it out"
            )
        return self._wanted if batch.ndim in AXES.values() else None

    def _usual(self, batch: Any) -> str:
        """What the rule says."""
        torch: Any = loaded_torch()
        if batch.device.type != "cpu" or batch.dtype not in (torch.float32, torch.float64):
            return AS_GIVEN
        found = sum(isinstance(part, torch.nn.Conv2d) for part in modules_behind(self._model))
        return CHANNELS_LAST if found >= CONVOLUTIONS else AS_GIVEN

    def _tried(self, batch: Any) -> Any:
        """The layout for such a batch, or None if the model fails on a row in it."""
        torch: Any = loaded_torch()
        layout = self._layout_for(batch)
        if layout is not None:
            row = batch[:1].detach()
            try:
                with torch.no_grad():
                    answered(self._model, row.clone(memory_format=layout))
            except (RuntimeError, ValueError) as error:  # as torch raises for a layout; others are the model's own
                if self._takes(row):
                    self._refuse(layout, error)
                layout = None
        self._chosen[self._key(batch)] = layout
        return layout

    def _takes(self, row: Any) -> bool:
        torch: Any = loaded_torch()
        try:
            with torch.no_grad():
                answered(self._model, row.clone(memory_format=torch.contiguous_format))
        except Exception:  # the layout is not the reason, and who asks next gets the error
            return False
        return True

    def _refuse(self, layout: Any, error: Exception) -> None:
        said = " ".join(str(error.__cause__ or error).split())[:200]
        if self._wanted != AUTO:
            self._chosen.clear()
            raise ValueError(
                f"the model fails on inputs in the layout {layout} that `memory_format` asks for, and not on others: "
                f"leave `memory_format` out, or write `reshape` where the model has `view`; it says: {said}"
            ) from error
        self.refused = said


def _written(layout: Any) -> str:
    return str(layout).removeprefix("torch.")


def _name(layout: Any) -> str:
    written = _written(layout)
    return CHANNELS_LAST if written in AXES else written.replace("_", " ")
