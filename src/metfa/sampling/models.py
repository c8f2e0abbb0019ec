"""Several trained models and what they explain: checked that they are several, each with streams of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, cast

import numpy as np

from metfa._arrays import to_host
from metfa._base.validation import as_list, positive_int
from metfa.calls.behind import loaded_torch, owner_of
from metfa.calls.guard import left_as_found
from metfa.calls.targets import row_targets
from metfa.results.attribution_parts import AttributionParts
from metfa.results.sample import AttributionSample
from metfa.sampling.clean_maps import clean_maps
from metfa.sampling.explain import explain
from metfa.sampling.loop import Job, Loop
from metfa.sampling.outputs import require_one_map
from metfa.sampling.protocol import check_explainer, explained_model, prediction_of
from metfa.sampling.request import checked_names, usual_batch_size
from metfa.sampling.rows import Rows
from metfa.sampling.run import Run
from metfa.sampling.streams import checked_ids, root_entropy

__all__ = ["Models"]


@dataclass(frozen=True, eq=False, repr=False)
class Models:
    """Explainers of several models, with what they explain, checked before they are asked."""

    explainers: tuple[Callable[..., Any], ...]
    inputs: Any
    rows: Rows
    ids: tuple[str, ...]
    targets: list[Any]
    feature_names: tuple[str, ...] | None
    batch_size: int
    root: int
    run: Run

    @classmethod
    def of(
        cls, models: Any, explainer: Any, inputs: Any, target: Any, *, batch_size: int | None, rng: Any, run: Run | None
    ) -> Models:
        """From the arguments of `across_models`; raises for bad ones."""
        run = Run.checked(run)
        explainers = tuple(_explainers(as_list(models, "models", "a list of two or more models"), explainer))
        rows = Rows(inputs)
        ids = rows.ids() if run.input_names is None else checked_ids(run.input_names, len(rows))
        size = usual_batch_size(rows) if batch_size is None else positive_int(batch_size, "batch_size")
        found = cls(
            explainers, inputs, rows, ids, [], checked_names(run.feature_names, inputs), size, root_entropy(rng), run
        )
        return replace(found, targets=found._shared_targets(target))

    def root_of(self, number: int) -> int:
        """Root of a model's streams."""
        state = np.random.SeedSequence(self.root, spawn_key=(number,)).generate_state(4)
        return int.from_bytes(state.astype("<u4").tobytes(), "little")

    def clean(self, number: int) -> np.ndarray:
        r"""Maps without noise of one model, (batch, \*features)."""
        loop = self._loop(number)
        with left_as_found(self.explainers[number]):
            jobs = [Job(row, 0) for row in range(len(self.rows))]
            found = clean_maps(loop.ready(self.targets, None, jobs)[0])
        require_one_map(found.layout and found.layout.parts, "a statement across models")
        return found.maps

    def explained(self, number: int, noise: Any, n_samples: int, draw: int = 0) -> AttributionSample:
        """Samples of one model under noise; another `draw` has the same copies, and other draws of the explainer."""
        explainer, store = self.explainers[number], self.run.store
        name = f"model_{number}" + (f"_draw_{draw}" if draw else "")
        found: Any = explain(
            _Redrawn(explainer, draw) if draw else explainer,
            self.inputs,
            self.targets,
            noise=noise,
            n_samples=positive_int(n_samples, "n_samples"),
            batch_size=self.batch_size,
            rng=self.root_of(number),
            run=replace(self.run, store=None if store is None else f"{store}/{name}"),
        )
        require_one_map(found if isinstance(found, AttributionParts) else None, "a statement across models")
        return cast("AttributionSample", found)

    def _loop(self, number: int) -> Loop:
        addresses = [(self.root_of(number), identity) for identity in self.ids]
        return Loop(self.explainers[number], self.rows, None, addresses, self.batch_size, clean=True)

    def _shared_targets(self, target: Any) -> list[Any]:
        """A target for each row; None: the classes that the models predict, which must agree."""
        if target is not None:
            return list(row_targets(target, None, len(self.rows)))
        first: Sequence[Any] = ()
        for number, explainer in enumerate(self.explainers):
            predict = prediction_of(explainer)
            if predict is None:
                raise ValueError(
                    "`target` is None, and the explainers do not say which model they explain: write the class, such "
                    "as `target=0`"
                )
            with left_as_found(explainer):
                found = self._loop(number).aimed(None, predict)[0].targets
            first = first or found
            row = next((row for row, (a, b) in enumerate(zip(first, found, strict=True)) if a != b), None)
            if row is not None:
                raise ValueError(
                    f"`target` is None, and the models predict different classes for input {row}: class {first[row]} "
                    f"by model 0, class {found[row]} by model {number}; write one class for each input, such as "
                    f"`target={list(first)!r:.60}`"
                )
        return list(first)


@dataclass(frozen=True)
class _Redrawn:
    """An explainer with other draws of its own randomness for the same generators."""

    explainer: Callable[..., Any]
    draw: int

    @property
    def model(self) -> Any:
        """The model behind it."""
        return explained_model(self.explainer)

    @property
    def rows_independent(self) -> bool:
        """Whether the explainer promises that its rows do not depend on each other."""
        return bool(getattr(owner_of(self.explainer), "rows_independent", False))

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Any, **row_args: Any) -> Any:
        """Its maps, row i with randomness from far ahead in the stream of ``rngs[i]``."""
        ahead = [np.random.Generator(rng.bit_generator.jumped(self.draw)) for rng in rngs]
        return self.explainer(inputs, target=target, rngs=ahead, **row_args)


def _explainers(models: list[Any], explainer: Any) -> Iterator[Callable[..., Any]]:
    """An explainer of each model; raises if a model is there twice."""
    if len(models) < 2:
        raise ValueError(f"`models` must hold two models or more, got {len(models)}")
    if not callable(explainer) or (not isinstance(explainer, type) and explained_model(explainer) is not None):
        raise TypeError(
            f"`explainer` must be a function that makes an explainer of a model, got {type(explainer).__name__}: write "
            "a class such as `metfa.explainers.Gradient`, or `lambda model: ...`"
        )
    digests: dict[Any, int] = {}
    for number, model in enumerate(models):
        first = next((other for other in range(number) if models[other] is model), None)
        first = digests.setdefault(_digest(model) or number, number) if first is None else first
        if first != number:
            raise ValueError(
                f"`models` holds one model twice: {number} is {first} again, with the same parameters, which is no new "
                "unit: train each by itself"
            )
    made: list[Any] = [explainer(model) for model in models]
    for one in made:
        check_explainer(one)
    behind = [explained_model(one) for one in made]
    if behind[0] is not None and all(model is behind[0] for model in behind):
        raise ValueError(
            "`explainer` explains the same model each time, whatever model it is given: write `lambda model: ...` with "
            "that model in it"
        )
    yield from made


def _digest(model: Any) -> str | None:
    """Fingerprint of the parameters and buffers of a torch module; None for anything else, or if it has none."""
    torch = loaded_torch()
    module = owner_of(model)
    if torch is None or not isinstance(module, torch.nn.Module):
        return None
    state = module.state_dict()
    found = blake2b(digest_size=16)
    for name, part in state.items():
        if isinstance(part, torch.Tensor):
            found.update(f"{name}|{part.dtype}|{tuple(part.shape)}|".encode())
            plain = part.detach().cpu()
            found.update(to_host(plain.double() if plain.is_floating_point() else plain).tobytes())
    return found.hexdigest() if state else None
