"""Retrained models as the sample axis: one number of each model, and what each model's number is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from hashlib import blake2b
from typing import Any

import numpy as np

from metfa._arrays import to_host
from metfa._base.provenance import describe, versions
from metfa._base.validation import as_list, one_of, positive_int
from metfa.calls.behind import loaded_torch, owner_of
from metfa.calls.guard import left_as_found
from metfa.calls.targets import row_targets
from metfa.results.across import number_of_each
from metfa.results.population import NUMBERS, Population
from metfa.results.sample import AttributionSample
from metfa.sampling.clean import clean_maps
from metfa.sampling.explain import explain
from metfa.sampling.loop import Job, Loop
from metfa.sampling.protocol import (
    check_explainer,
    explained_model,
    known_signed,
    known_unit,
    prediction_of,
)
from metfa.sampling.request import DEFAULT_BATCH_SIZE, checked_names, fitting_names
from metfa.sampling.rows import Rows
from metfa.sampling.run import Run
from metfa.sampling.streams import SCHEME, checked_ids, root_entropy

__all__ = ["Models", "across_models"]


def across_models(
    models: Sequence[Any],
    explainer: Callable[[Any], Callable[..., Any]],
    inputs: Any,
    target: Any = None,
    *,
    noise: Any = None,
    n_samples: int = 10,
    of: str = "vanilla",
    batch_size: int | None = None,
    rng: Any = None,
    run: Run | None = None,
) -> AttributionSample:
    r"""Explain the same inputs for several trained models, and take the models as samples.

    Does an explanation hold for every model that is trained like these, or for this one alone? Every statement is about
    the law of one number, of each model, over such trainings: with other seeds, or on other bootstrap samples of the
    training data. The models must be trained independently of each other; checkpoints of one training are not.

    Parameters
    ----------
    models : sequence
        Two or more models. To decide anything about one feature at alpha 0.05 takes 5, after a correction more: for
        example 10 for 50 columns by Holm. `AttributionSample.decide` says how many.
    explainer : callable
        ``explainer(model)`` -> an explainer as for `metfa.explain`: a class such as `metfa.explainers.Gradient`, or
        ``lambda model: metfa.explainers.LRP(model, composite="epsilon_plus")``.
    inputs : array, tuple or dict of arrays, or list of objects
        As for `metfa.explain`.
    target : int or sequence, optional
        As for `metfa.explain`. None: the class that all models predict, refused where they predict different ones.
    noise, n_samples
        As for `metfa.explain`, for the number of each model; `n_samples` is fixed. They are not used for "vanilla".
    of : {"vanilla", "mean", "smoothed", "median"}
        Which number of each model: its score without noise, or the mean, the smoothed score or the median of its
        samples.
    batch_size : int, optional
        As for `metfa.explain`.
    rng : int, numpy.random.Generator or None
        Seed. Each model has streams of its own below it, also for the explainer's own randomness, so that models are
        independent units.
    run : Run, optional
        As for `metfa.explain`. A `store` has one folder for each model; `metfa.spread` with the same arguments reads
        them from there, and explains nothing again.

    Returns
    -------
    AttributionSample
        Values (models, batch, \*features), whose `population` says what they are. There is no map without noise
        (`vanilla`) and no certificate.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, for one model that is there twice (the same object, or a torch module with equal parameters),
        and where models predict different classes.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> weights = np.random.default_rng(0).normal([3.0, 0.0], 0.5, size=(8, 2))
    >>> models = [lambda x, w=w: x * w for w in weights]
    >>> linear = lambda model: lambda inputs, target: model(inputs)
    >>> found = metfa.across_models(models, linear, np.ones((1, 2)), target=0)
    >>> found.values.shape, found.sample_noun
    ((8, 1, 2), 'model')
    >>> found.significance_map(0.0)
    array([[1, 0]], dtype=int8)
    """
    one_of(of, "of", NUMBERS)
    asked = Models.of(models, explainer, inputs, target, batch_size=batch_size, rng=rng, run=run)
    if of == "vanilla":
        numbers, flips, names = [asked.clean(number) for number in range(len(models))], None, asked.feature_names
    else:
        results = [asked.explained(number, noise, n_samples) for number in range(len(models))]
        numbers = [number_of_each(result, of) for result in results]
        rates = [result.flip_rate for result in results]
        flips = None if any(rate is None for rate in rates) else np.mean(np.array(rates), axis=0).tolist()
        names = results[0].feature_names
    shapes = {one.shape for one in numbers}
    if len(shapes) > 1:
        raise ValueError(f"`explainer` must give each model the same features, got maps of shapes {sorted(shapes)}")
    values = np.stack(numbers)
    return AttributionSample(
        values=values.astype(np.result_type(values.dtype, np.float32), copy=False),
        inputs=asked.rows.host,
        target=tuple(asked.targets),
        vanilla=None,
        scores=None,
        predictions=None,
        sample_ids=tuple(range(len(values))),
        input_names=asked.ids,
        feature_names=fitting_names(names, values.shape[2:], required=asked.run.feature_names is not None),
        provenance={
            "explainer": describe(asked.explainers[0]),
            "noise": describe(noise) if of != "vanilla" and noise is not None else None,
            "rng": hex(asked.root),
            "streams": SCHEME,
            "signed": known_signed(asked.explainers[0]),
            "unit": known_unit(asked.explainers[0]),
            "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "versions": versions(),
        },
        population=Population(
            noun="model",
            names=tuple(f"model {number}" for number in range(len(values))),
            of=of,
            copies=0 if of == "vanilla" else n_samples,
            absolute=False,
            score="attribution score",
            flips=None if flips is None else tuple(flips),
        ),
    )


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
        size = DEFAULT_BATCH_SIZE if batch_size is None else positive_int(batch_size, "batch_size")
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
            maps, _ = clean_maps(loop.ready(self.targets, None, jobs)[0])
        return maps

    def explained(self, number: int, noise: Any, n_samples: int, draw: int = 0) -> AttributionSample:
        """Samples of one model under noise; another `draw` has the same copies, and other draws of the explainer."""
        explainer, store = self.explainers[number], self.run.store
        name = f"model_{number}" + (f"_draw_{draw}" if draw else "")
        return explain(
            _Redrawn(explainer, draw) if draw else explainer,
            self.inputs,
            self.targets,
            noise=noise,
            n_samples=positive_int(n_samples, "n_samples"),
            batch_size=self.batch_size,
            rng=self.root_of(number),
            run=replace(self.run, store=None if store is None else f"{store}/{name}"),
        )

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
    made = [explainer(model) for model in models]
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
            found.update(np.ascontiguousarray(to_host(part.detach().float())).tobytes())
    return found.hexdigest() if state else None
