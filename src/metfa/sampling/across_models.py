"""Retrained models as the sample axis: one number of each model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np

from metfa._base.provenance import describe, versions
from metfa._base.validation import one_of
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.results.across import number_of_each
from metfa.results.population import NUMBERS, Population
from metfa.results.sample import AttributionSample
from metfa.sampling.explainer_attributes import known_signed, known_unit
from metfa.sampling.models import Models
from metfa.sampling.request import fitting_names
from metfa.sampling.run import Run
from metfa.sampling.streams import SCHEME

__all__ = ["across_models"]


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
        example 10 for 50 columns by Holm. With fewer there is a result, but no decision: `AttributionSample.decide`
        raises, and says how many it takes.
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
    _warn_of_equal(values)
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
            **({} if asked.run.class_names is None else {"class_names": list(asked.run.class_names)}),
            **asked.rows.facts,
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


def _warn_of_equal(values: np.ndarray) -> None:
    """Models that agree in every number are likely one model, which is no new unit."""
    same = {number: first for number in range(len(values)) if (first := _first_equal(values, number)) < number}
    if same:
        number, first = next(iter(same.items()))
        others = f" ({len(same)} of {len(values)} models have the numbers of an earlier one)" if len(same) > 1 else ""
        warn(
            f"models {first} and {number} give exactly the same maps for every input{others}: one training that is "
            "there twice is no new unit, and the intervals would be too narrow",
            DegenerateAttributionsWarning,
        )


def _first_equal(values: np.ndarray, number: int) -> int:
    return next(other for other in range(number + 1) if np.array_equal(values[other], values[number]))
