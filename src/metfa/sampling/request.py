"""The arguments of `metfa.explain`, checked as a whole before the model is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import InitVar, dataclass, field
from typing import Any

from metfa._arrays import is_array, is_floating
from metfa._base.percents import counted
from metfa._base.provenance import describe
from metfa._base.validation import MOST_CALLS, as_names, check_function, positive_int
from metfa.calls.batches import rows_that_fit
from metfa.calls.behind import loaded_torch
from metfa.calls.fitted_names import by_name, check_blind
from metfa.calls.targets import row_targets
from metfa.results.regions import regions_of
from metfa.results.until import Until
from metfa.sampling.first_copy import counted_apart
from metfa.sampling.loop import Job, Loop
from metfa.sampling.protocol import check_explainer, explained_model, prediction_of, takes_rngs
from metfa.sampling.rows import Rows
from metfa.sampling.run import Run
from metfa.sampling.streams import MAX_SAMPLE_ID, SCHEME, checked_ids, root_entropy

__all__ = ["Request", "checked_names", "fitting_names", "usual_batch_size"]

DEFAULT_BATCH_SIZE, ON_GPU = 10, 32
ROWS_OF_TABLES = 200  # in a call by default: it takes nearly as long with one such row as with many
MOST_COLUMNS = 1000  # of an array that counts as a table


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Request:
    """The arguments of `metfa.explain`, with defaults filled in.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, when it is made.
    """

    explainer: Callable[..., Any]
    inputs: InitVar[Any]
    target: Any
    noise: Any
    n_samples: int | Until
    over: Any
    predict: Callable[..., Any] | None
    row_args: Any
    batch_size: Any
    rng: InitVar[Any]
    run: Run
    follows: bool = False  # whether its targets may be those of another request
    own_draws: bool = False  # see `Loop`
    rows: Rows = field(init=False)
    root: int = field(init=False)
    ids: tuple[str, ...] = field(init=False)
    seed_given: bool = field(init=False)
    feature_names: tuple[str, ...] | dict[Any, tuple[str, ...]] | None = field(init=False)
    settings: dict[str, Any] = field(init=False)  # what the samples depend on, as in provenance

    def __post_init__(self, inputs: Any, rng: Any) -> None:
        run = self.run
        check_explainer(self.explainer, self.row_args if isinstance(self.row_args, Mapping) else ())
        if self.predict is not None and not callable(self.predict):
            raise TypeError(f"`predict` must be a function inputs -> scores, got {type(self.predict).__name__}")
        if self.predict is not None:
            check_function(self.predict, "predict", "predict(inputs)", None)
        if not isinstance(self.n_samples, Until):
            self._fill(n_samples=positive_int(self.n_samples, "n_samples", maximum=MOST_CALLS))
        if self.over is not None:
            self._fill(over=regions_of(self.over))
            if isinstance(self.n_samples, Until) and self.n_samples.over is not None:
                raise ValueError(
                    "`over` and `Until(over=)` are both given: with `over` only the regions' scores are kept"
                )
            if run.feature_names is not None:
                raise ValueError(
                    "`feature_names` are for single features, and `over` keeps regions alone: write "
                    "`metfa.Regions(masks, names=...)`"
                )
        after = run.first_sample + self.most
        if after - 1 > MAX_SAMPLE_ID:
            raise ValueError(f"`first_sample` + `n_samples` must not exceed {MAX_SAMPLE_ID + 1}, got {after}")
        root, rows = root_entropy(rng), Rows(inputs)
        size = usual_batch_size(rows) if self.batch_size is None else positive_int(self.batch_size, "batch_size")
        rows.check_noise(self.noise)
        rows, noise = rows.matched(self.noise)
        noise = counted_apart(noise)
        if self.predict is None:
            _check_library(explained_model(self.explainer), rows)
        model = None if self.predict else explained_model(self.explainer)
        predict = self.predict or prediction_of(self.explainer)
        if rows.columns is not None:
            check_blind(self.explainer, rows.columns.names)
            predict = predict and by_name(predict, rows.columns.names, model)
        self._fill(predict=predict)
        if self.target is not None or not (self.predict or self.follows):
            row_targets(self.target, None, len(rows))  # a wrong kind or number fails before the model is used
        if self.noise is None and not takes_rngs(self.explainer):
            raise ValueError(
                "`noise` is None, which samples the explainer's own randomness, but `explainer` takes no `rngs`: give "
                f"a noise such as {rows.some_noise}, or wrap a random explainer by metfa.seeded or metfa.randomised"
            )
        self._fill(
            rows=rows,
            batch_size=size,
            row_args=_checked_row_args(self.row_args, len(rows)),
            root=root,
            seed_given=rng is not None,
            ids=rows.ids() if run.input_names is None else checked_ids(run.input_names, len(rows)),
            feature_names=checked_names(run.feature_names, inputs) if self.over is None else self.over.names,
            settings={
                "explainer": describe(self.explainer),
                "noise": describe(self.noise),
                "n_samples": self.most,
                "first_sample": run.first_sample,
                "rng": hex(root),
                "streams": SCHEME,
                **({} if self.over is None else {"over": f"{self.over!r} {self.over.digest}"}),
                "draws": "own" if self.own_draws else None,
                **rows.facts,
            },
            noise=noise,
        )

    def _fill(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def most(self) -> int:
        """Largest number of samples that may be made."""
        return self.n_samples.max_samples if isinstance(self.n_samples, Until) else self.n_samples

    def loop(self, root: int) -> Loop:
        """The loop that makes the samples, with streams from `root`."""
        addresses = [(root, identity) for identity in self.ids]
        given = (self.explainer, self.rows, self.noise, addresses, self.batch_size, self.row_args)
        return Loop(*given, own_draws=self.own_draws)

    def with_root(self, root: int) -> Request:
        """The same with another seed, from which a store must not differ."""
        found = copy(self)
        found._fill(root=root, seed_given=True, settings={**self.settings, "rng": hex(root)})
        return found

    def jobs(self, start: int, stop: int, is_done: Callable[[int], bool]) -> Iterator[Job]:
        """Jobs of the samples from `start` to `stop`, counted from 0, without those whose number ``is_done``."""
        n_rows = len(self.rows)
        for sample in range(start, stop):
            for row in range(n_rows):
                if not is_done(sample * n_rows + row):
                    yield Job(row, self.run.first_sample + sample)


def usual_batch_size(rows: Rows) -> int:
    """Rows in one call of the explainer where nobody says it: many of a table, fewer of images that fill the memory."""
    of_numbers = rows.kind == "array" and rows.array.ndim == 2 and is_floating(rows.array)
    if rows.columns is not None or (of_numbers and rows.array.shape[1] <= MOST_COLUMNS):
        return ROWS_OF_TABLES
    return rows_that_fit(rows.array, on_cpu=DEFAULT_BATCH_SIZE, on_gpu=ON_GPU)


def _check_library(model: Any, rows: Rows) -> None:
    torch = loaded_torch()
    if torch is None or rows.kind not in ("array", "frame") or not isinstance(model, torch.nn.Module):
        return
    if not isinstance(rows.array, torch.Tensor):
        got, values = type(rows.array).__name__, "inputs"
        if rows.columns is not None:
            got, values = "a data frame", "inputs.to_numpy('float32')"
        raise TypeError(
            f"`inputs` must be a torch.Tensor for a torch model, got {got}: write `torch.from_numpy({values})`, or "
            "pass `predict=` if the explainer converts them"
        )


def _checked_row_args(row_args: Any, n_rows: int) -> dict[str, Any]:
    if row_args is None:
        return {}
    if not isinstance(row_args, Mapping):
        raise TypeError(f"`row_args` must be a dict of arrays, got {type(row_args).__name__}")
    for name, values in row_args.items():
        if name in ("inputs", "target", "rngs"):
            raise ValueError(f"`row_args` must not hold {name!r}, which metfa passes to the explainer by itself")
        shape = values.shape if is_array(values) else (len(values),) if isinstance(values, list | tuple) else ()
        if tuple(shape[:1]) != (n_rows,):
            got = f"{shape[0]} entries" if shape else f"{type(values).__name__}: {values!r}"
            raise ValueError(f"`row_args[{name!r}]` must have one entry for each of the {n_rows} inputs, got {got}")
    return dict(row_args)


def checked_names(given: Any, inputs: Any) -> Any:
    """The names given, or the columns' names if `inputs` is a data frame; None if there are none.

    Of several inputs a dict with those of some parts.
    """
    if isinstance(inputs, tuple | Mapping) and isinstance(given, Mapping):
        parts = list(inputs) if isinstance(inputs, Mapping) else list(range(len(inputs)))
        unknown = [name for name in given if name not in parts]
        if unknown:
            raise ValueError(
                f"`feature_names` has names of {unknown[0]!r:.40}, which is no input: there are "
                f"{', '.join(map(repr, parts))}"
            )
        return {name: as_names(names, f"feature_names[{name!r}]") for name, names in given.items()}
    if given is None:
        columns = list(getattr(inputs, "columns", ()))
        return None if columns == list(range(len(columns))) else tuple(map(str, columns))  # else made up by pandas
    return as_names(given, "feature_names")


def fitting_names(
    names: tuple[str, ...] | dict[Any, tuple[str, ...]] | None,
    feature_shape: tuple[int, ...],
    *,
    required: bool = True,
    name: str = "feature_names",
) -> tuple[str, ...] | None:
    """The names, if there is one for each feature along one axis; else a ValueError if they were given, or None."""
    if isinstance(names, dict):
        if required:
            raise ValueError(
                "`feature_names` is a dict with names of parts, and `explainer` returned one map: write a list of names"
            )
        return None
    if names is None or feature_shape == (len(names),):
        return names
    if not required:
        return None
    if len(feature_shape) != 1:
        raise ValueError(
            f"`{name}` has {counted(len(names), 'name')}, but an attribution has features of shape {feature_shape}: "
            "only features along one axis have names"
        )
    raise ValueError(f"`{name}` has {counted(len(names), 'name')}, but an attribution has {feature_shape[0]} features")
