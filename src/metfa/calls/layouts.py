"""The memory layout in which a model is asked: chosen by a rule on the network and the device, never by timing.

The rule, ``memory_format="auto"``: images in float32 or float64 go channels last to a network on a CPU with two or more
two-dimensional convolutions; everything else goes as it is given. Measured, with weights as they are: gradients of
EfficientNet-Lite0 took 0.81, of ResNet-18 0.85 (float64: 0.81) of the time, forward passes 0.78 and 0.81 (0.83); a
network of volumes took longer (1.16 forward). A model that fails on that layout, as one that reshapes by ``view``, gets
its batches as they are given, and so does one of several inputs. A layout is at fault only if the model fails in it
twice, and not on the same rows as they are given: any other error is the model's own, and changes no layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from metfa._base.earlier_words import AS_GIVEN, CHANNELS_LAST
from metfa.calls.answers import answered
from metfa.calls.behind import loaded_torch, modules_behind
from metfa.calls.parts import are_parts, each

__all__ = ["AUTO", "Layouts", "check_layout", "layout_kept"]

AUTO = "auto"
CONVOLUTIONS = 2  # fewer, such as the one that cuts a transformer's patches, gain nothing
AXES = {"channels_last": 4, "channels_last_3d": 5}


class _Run:
    """The layout that is kept in a run, and for which batches each `Layouts` was asked in it."""

    def __init__(self, kept: str | None) -> None:
        self.kept = kept
        self.asked: WeakKeyDictionary[Layouts, set[Any]] = WeakKeyDictionary()


_run: ContextVar[_Run] = ContextVar("metfa_run_in_a_layout", default=_Run(None))  # noqa: B039 - what is asked outside runs


@contextmanager
def layout_kept(layout: str | None) -> Iterator[None]:
    """A run, in which "auto" means the layout in which earlier samples of it were made; None: the rule."""
    token = _run.set(_Run(layout))
    try:
        yield
    finally:
        _run.reset(token)


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
        """The batch in the layout for it.

        Of several inputs each is laid out as it is asked for, without a trial.
        """
        if are_parts(batch):
            return each(self._as_wanted, batch)
        return _in_layout(batch, self.layout_of(batch))

    def layout_of(self, batch: Any) -> Any:
        """The layout for a batch, None to leave it as it is; one that was never used for such rows is tried first."""
        if are_parts(batch) or not _is_tensor(batch):
            return None
        key = self._key(batch)
        if key not in self._chosen:
            self._try(batch)
        return self._chosen.get(key)

    def asked_first(self, batch: Any, ask: Callable[[], Any]) -> Any:
        """``ask()``, which asks the model about such a batch; where that has several rows, it is itself the trial."""
        if are_parts(batch) or not _is_tensor(batch) or len(batch) < 2 or self._key(batch) in self._chosen:
            return ask()
        answer, failure = self._judged(batch, ask)
        self._refuse(self._layout_for(batch), failure)
        return answer

    def _as_wanted(self, part: Any) -> Any:
        if not _is_tensor(part):
            return part
        self._chosen[self._key(part)] = layout = None if self._wanted == AUTO else self._layout_for(part)
        return _in_layout(part, layout)

    def said(self) -> str | None:
        """The layout in which batches were laid out, as results record it; None if no tensor came."""
        chosen = [self._chosen.get(key) for key in _run.get().asked.get(self, ())]
        found = {AS_GIVEN if layout is None else _name(layout) for layout in chosen}
        return " and ".join(sorted(found)) or None

    def _key(self, batch: Any) -> Any:
        """What a choice depends on; the run remembers that it was asked for."""
        run = _run.get()
        key = tuple(batch.shape[1:]), batch.device.type, batch.dtype, run.kept
        run.asked.setdefault(self, set()).add(key)
        return key

    def _layout_for(self, batch: Any) -> Any:
        """The layout for such a batch; None leaves it as it is."""
        torch: Any = loaded_torch()
        if self._wanted == AUTO:
            kept = _run.get().kept
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

    def _try(self, batch: Any) -> None:
        """Choose the layout for such a batch by a trial.

        Two rows are tried, because on one row alone every layout may do; then one row, for a model that takes only one.
        Nothing is chosen if the model fails on these too: the error is its own, and who asks next gets it.
        """
        torch: Any = loaded_torch()
        if self._layout_for(batch) is None:
            self._chosen[self._key(batch)] = None
            return
        row, failure = batch[:1].detach(), None
        for rows in (torch.cat([row, row]), row):

            def ask(rows: Any = rows) -> None:
                with torch.no_grad():
                    answered(self._model, self.laid_out(rows.clone()))

            with suppress(Exception):
                _, failure = self._judged(batch, ask)
                break
        self._refuse(self._layout_for(batch), failure)

    def _judged(self, batch: Any, ask: Callable[[], Any]) -> tuple[Any, Exception | None]:
        """``ask()`` with a layout chosen for such a batch, and the model's error in the layout where it is at fault."""
        key, layout = self._key(batch), self._layout_for(batch)

        def in_layout(chosen: Any) -> Any:
            self._chosen[key] = chosen
            try:
                return ask()
            except BaseException:
                self._chosen.pop(key, None)
                raise

        try:
            return in_layout(layout), None
        except (RuntimeError, ValueError) as error:  # as torch raises for a layout
            if layout is None or "out of memory" in str(error):
                raise
            failure = error
        answer = in_layout(None)  # raises an error of its own where the layout is not the reason
        with suppress(RuntimeError, ValueError):
            return in_layout(layout), None
        self._chosen[key] = None
        return answer, failure

    def _refuse(self, layout: Any, error: Exception | None) -> None:
        """Keep what the model said of a layout that is at fault, and raise it where that layout was asked for."""
        if error is None:
            return
        said = " ".join(str(error.__cause__ or error).split())[:200]
        if self._wanted != AUTO:
            self._chosen.clear()
            raise ValueError(
                f"the model fails on inputs in the layout {layout} that `memory_format` asks for, and not on others: "
                f"leave `memory_format` out, or write `reshape` where the model has `view`; it says: {said}"
            ) from error
        self.refused = said


def _is_tensor(batch: Any) -> bool:
    torch = loaded_torch()
    return torch is not None and isinstance(batch, torch.Tensor)


def _in_layout(batch: Any, layout: Any) -> Any:
    return batch if layout is None else batch.contiguous(memory_format=layout)


def _written(layout: Any) -> str:
    return str(layout).removeprefix("torch.")


def _name(layout: Any) -> str:
    written = _written(layout)
    return CHANNELS_LAST if written in AXES else written.replace("_", " ")
